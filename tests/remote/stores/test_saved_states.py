"""States of loaders in a store: saved whole, loaded again, old ones removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk

if TYPE_CHECKING:
    from tests.remote.servers.bucket import Bucket


def loader(**arguments: Any) -> sk.Loader:
    data = sk.from_sequence(range(40)).shuffle(seed=1)
    return sk.Loader(data, batch_size=2, collate=list, prefetch=0, **arguments)


@pytest.mark.parametrize(
    "store", ["moto", pytest.param("azurite", marks=pytest.mark.exhaustive)], indirect=True
)
def test_a_run_goes_on_from_a_state_in_a_store(store: Bucket) -> None:
    folder = f"{store.url}/run"
    first = loader()
    assert sk.load_state(folder, loader(), storage_options=store.options) is False
    run = iter(first)
    for step in range(1, 6):
        batch = next(run)
        path = sk.save_state(folder, first, keep=2, storage_options=store.options)
        assert path == f"{folder}/state-{step:012}-00000-of-00001.json"
    rest = list(run)
    again = loader()
    assert sk.load_state(folder, again, storage_options=store.options)
    assert list(again) == rest
    other = loader()
    assert sk.load_state(f"{folder}/state-000000000004-00000-of-00001.json", other)
    assert list(other) == [batch, *rest]
    assert sk.load_state(f"{folder}/state-000000000003-00000-of-00001.json", other) is False
    with pytest.raises(sk.errors.InvalidArgument, match="local path"):
        sk.save_state("run", first, storage_options={"region": "x"})
