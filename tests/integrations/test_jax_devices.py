"""Batches of a loader as arrays of JAX, on a device or over several."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import seekable as sk


def features(record: int) -> dict[str, Any]:
    return {"id": np.int32(record), "x": np.full(3, record, dtype=np.float32), "text": str(record)}


def loader_of(**arguments: Any) -> sk.Loader:
    dataset = sk.from_sequence(range(30), version=1).shuffle(seed=1).map(features)
    return sk.Loader(dataset, **{"batch_size": 4, "end": "drop", "device": jax.devices()[0], **arguments})


@pytest.mark.parametrize("arguments", [{}, {"prefetch": 0}])
def test_arrays_come_to_the_device_and_all_else_stays(arguments: dict[str, Any]) -> None:
    batches, plain = list(loader_of(**arguments)), list(loader_of(device=None))
    assert len(batches) == len(plain) == 7
    for batch, wanted in zip(batches, plain, strict=True):
        assert isinstance(batch["x"], jax.Array)
        assert batch["x"].devices() == {jax.devices()[0]}
        assert np.array_equal(batch["x"], wanted["x"])
        assert np.array_equal(batch["id"], wanted["id"])
        assert batch["text"] == wanted["text"]


def test_a_sharding_gets_the_rows_of_this_process() -> None:
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    over_devices = NamedSharding(mesh, PartitionSpec("data"))
    batch = next(iter(loader_of(device=over_devices)))
    assert batch["x"].sharding == over_devices
    assert batch["x"].shape == (4 * jax.process_count(), 3)


def test_a_batch_keeps_its_numbers_or_is_refused() -> None:
    numbers = [np.array([2**31 - 1]), np.array([2**31])]
    run = iter(sk.Loader(sk.from_sequence(numbers), batch_size=None, device=jax.devices()[0]))
    first = next(run)
    assert (first.dtype, int(first[0])) == (np.int32, 2**31 - 1)
    with pytest.raises(sk.errors.BadValue, match=r"int64 numbers beyond int32.*jax_enable_x64"):
        next(run)


def test_memory_of_others_is_not_used() -> None:
    array = np.zeros(1 << 16, dtype=np.float32)
    (batch,) = sk.Loader(sk.from_sequence([array]), batch_size=None, device=jax.devices()[0])
    array += 1
    assert float(batch.sum()) == 0
