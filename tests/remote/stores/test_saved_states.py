"""States of loaders in a store: saved whole, loaded again, old ones removed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    assert sk.load_state(folder, loader(), storage=sk.Storage(options=store.options)) is False
    run = iter(first)
    for step in range(1, 6):
        batch = next(run)
        path = sk.save_state(folder, first, keep=2, storage=sk.Storage(options=store.options))
        assert path == f"{folder}/state-{step:012}-00000-of-00001.json"
    rest = list(run)
    again = loader()
    assert sk.load_state(folder, again, storage=sk.Storage(options=store.options))
    assert list(again) == rest
    other = loader()
    assert sk.load_state(f"{folder}/state-000000000004-00000-of-00001.json", other)
    assert list(other) == [batch, *rest]
    assert sk.load_state(f"{folder}/state-000000000003-00000-of-00001.json", other) is False
    with pytest.raises(sk.errors.InvalidArgument, match="local path"):
        sk.save_state("run", first, storage=sk.Storage(options={"region": "x"}))


@pytest.mark.parametrize(
    "store", ["moto", pytest.param("azurite", marks=pytest.mark.exhaustive)], indirect=True
)
def test_ranks_agree_on_a_stop_by_a_store(store: Bucket) -> None:
    """Two hear at once, and the one that writes first decides; the next run is not stopped by its file."""
    folder = f"{store.url}/stopped"

    def steps(*, deadlines: list[float | None]) -> list[int]:
        ranks = [
            sk.Loader(
                sk.from_sequence(range(40), version=1),
                global_batch_size=4,
                rank=rank,
                world_size=2,
                collate=list,
                prefetch=0,
            )
            for rank in range(2)
        ]
        for one in ranks:
            sk.load_state(folder, one, storage=sk.Storage(options=store.options))
        stops = [
            sk.preemption(
                one, folder, deadline=deadline, signals=(), storage=sk.Storage(options=store.options)
            )
            for one, deadline in zip(ranks, deadlines, strict=True)
        ]
        with stops[0], stops[1]:
            for _ in zip(*ranks, strict=True):
                asked = [bool(stop) for stop in stops]
                if all(asked):
                    break
        return [one.step for one in ranks]

    assert steps(deadlines=[1e-9, 1e-9]) == [3, 3]
    assert steps(deadlines=[None, 1e-9]) == [6, 6]
    assert steps(deadlines=[None, None]) == [10, 10]


def test_stores_are_reached_as_sk_storage_says_everywhere(tmp_path: Path) -> None:
    untyped: Any = sk
    ds: Any = sk.from_sequence(range(3))
    target = str(tmp_path / "x")
    calls: list[Callable[..., object]] = [
        partial(ds.write, target, "jsonl"),
        *(partial(getattr(ds, f"write_{kind}"), target) for kind in ("parquet", "jsonl", "tar", "shar")),
        partial(ds.write_tokens, target),
        partial(ds.save, target),
        partial(untyped.load_pipeline, target),
        partial(untyped.save_state, target, loader()),
        partial(untyped.load_state, target, loader()),
        partial(untyped.tokenize, ds, to=target, tokenizer=str),
        partial(untyped.SharWriter, target, {}),
    ]
    for call in calls:
        with pytest.raises(sk.errors.InvalidArgument, match=r"write storage=sk\.Storage\(options=\.\.\.\)"):
            call(storage_options={"secret_access_key": "hush"})
    with pytest.raises(
        sk.errors.WrongType, match=r"\(got a dict\): write storage=sk\.Storage\(opt"
    ) as raised:
        ds.save(target, storage={"secret_access_key": "hush"})
    assert "hush" not in str(raised.value)
    with pytest.raises(sk.errors.InvalidArgument, match=r"\(got cache= and pin=\): leave them out"):
        ds.save("s3://bucket/x", storage=sk.Storage(cache=1, pin="version"))
    ds.save(target, storage=sk.Storage())
    assert sorted(tmp_path.iterdir()) == [tmp_path / "x"]
