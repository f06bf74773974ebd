"""What docs/from/lhotse.md says of Lhotse holds for the version that is installed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from lhotse import CutSet
from lhotse.lazy import LazyMapper, LazyShuffler
from lhotse.testing.dummies import dummy_cut

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTITION = "LHOTSE_USE_WORKER_PARTITION"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two manifests of 40 cuts, in the present folder."""
    monkeypatch.chdir(tmp_path)
    for number in range(2):
        CutSet.from_cuts(dummy_cut(40 * number + row) for row in range(40)).to_file(f"cuts-{number}.jsonl")


def opened(number: int = 0, **given: Any) -> Any:
    return CutSet.from_file(f"cuts-{number}.jsonl", indexed=True, **given)


def after_five(cuts: Any) -> tuple[dict[str, Any], Iterator[Any]]:
    run = iter(cuts)
    for _ in range(5):
        next(run)
    return cuts.state_dict(), run


def first_after(cuts: Any, state: dict[str, Any]) -> Any:
    cuts.load_state_dict(state)
    return next(iter(cuts))


def ids(cuts: Any) -> list[str]:
    return [cut.id for cut in cuts]


def mixture(weight: float = 0.7, seed: int = 0) -> Any:
    return CutSet.mux(opened(0), opened(1), weights=[weight, 1 - weight], seed=seed)


def test_a_state_loads_into_a_mixture_with_other_weights() -> None:
    state, _ = after_five(mixture())
    changed = mixture(weight=0.1, seed=5)
    changed.load_state_dict(state)
    assert len(ids(changed)) == 75

    def ours(weight: float) -> sk.Loader:
        parts = [sk.open(f"cuts-{number}.jsonl").shuffle(seed=1) for number in range(2)]
        return sk.Loader(sk.mix(parts, weights=[weight, 1 - weight], seed=0), batch_size=1, collate=list)

    with pytest.raises(sk.StateMismatch, match="weights"):
        ours(0.1).load_state_dict(ours(0.7).state_dict())


def test_a_state_loads_into_another_manifest_of_the_same_length() -> None:
    state, _ = after_five(opened(0))
    other = opened(1)
    other.load_state_dict(state)
    assert ids(other) == ids(opened(1))[5:]

    state = sk.Loader(sk.open("cuts-0.jsonl"), batch_size=1).state_dict()
    with pytest.raises(sk.StateMismatch, match=r"cuts-0\.jsonl"):
        sk.Loader(sk.open("cuts-1.jsonl"), batch_size=1).load_state_dict(state)


def test_a_state_of_a_mixture_does_not_survive_json() -> None:
    state, rest = after_five(mixture())
    resumed = mixture()
    resumed.load_state_dict(state)
    assert ids(resumed) == ids(rest)

    state, _ = after_five(mixture())
    resumed = mixture()
    with pytest.raises(TypeError, match="state vector must be a tuple"):
        first_after(resumed, json.loads(json.dumps(state)))


def as_rank(monkeypatch: pytest.MonkeyPatch, rank: int, world_size: int) -> None:
    for name, value in {"RANK": rank, "WORLD_SIZE": world_size, PARTITION: 1}.items():
        monkeypatch.setenv(name, str(value))


def test_a_state_loads_only_with_as_many_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    as_rank(monkeypatch, 0, 2)
    state, _ = after_five(opened())
    as_rank(monkeypatch, 0, 4)
    resumed = opened()
    with pytest.raises(ValueError, match="topology mismatch"):
        first_after(resumed, state)


def test_seeds_have_32_bits() -> None:
    assert ids(opened(shuffle=True, seed=1)) == ids(opened(shuffle=True, seed=2**32 + 1))
    ours = sk.open("cuts-0.jsonl")
    assert list(ours.shuffle(seed=1)) != list(ours.shuffle(seed=2**32 + 1))


@pytest.mark.parametrize("seed", [None, 3])
def test_ranks_without_a_seed_disagree(monkeypatch: pytest.MonkeyPatch, seed: int | None) -> None:
    found: list[str] = []
    for rank in range(4):
        as_rank(monkeypatch, rank, 4)
        found += ids(CutSet.from_files(["cuts-0.jsonl", "cuts-1.jsonl"], indexed=True, seed=seed))
    assert len(found) == 80
    assert (len(set(found)) == 80) is (seed is not None)


def name_of(cut: Any) -> str:
    return str(cut.id)


def test_items_that_hold_no_attributes_cannot_be_saved_in_a_buffer() -> None:
    buffer = LazyShuffler(LazyMapper(opened().data, name_of), buffer_size=10)
    next(iter(buffer))
    with pytest.raises(RuntimeError, match="requires '_graph_origin'"):
        buffer.state_dict()

    names = sk.open("cuts-0.jsonl").map(lambda cut: cut["id"]).stream(epochs=1).shuffle(buffer=10, seed=0)
    run = iter(names)
    next(run)
    resumed = iter(names)
    resumed.load_state_dict(run.state_dict())
    assert list(resumed) == list(run)


def is_there(cut: Any) -> bool:
    return cut is not None


def test_a_chain_of_filters_fails_at_its_first_item() -> None:
    chain = opened(0).filter(is_there) + opened(1).filter(is_there)
    with pytest.raises(TypeError, match="__len__"):
        next(iter(chain))

    parts = [sk.open(f"cuts-{number}.jsonl").stream(epochs=1).filter(is_there) for number in range(2)]
    assert len(list(sk.concat(parts))) == 80


def test_a_mixture_of_many_open_streams_cannot_be_saved() -> None:
    mixed = CutSet.infinite_mux(opened(0), opened(1), seed=0)
    next(iter(mixed))
    with pytest.raises(NotImplementedError, match="does not support checkpointing"):
        mixed.state_dict()
