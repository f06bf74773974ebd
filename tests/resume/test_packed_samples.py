"""Packed samples go on by rows: the begun epoch in its old cut, then the new description."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.nodes.token_data import write_pair

import seekable as sk
from seekable.loader.checkpoint_files import read_saved, rebuild_saved
from seekable.testing.resume import same

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LENGTHS = [3, 5, 2, 9, 14, 1, 5, 3, 0, 8]


def documents(lengths: list[int], first: int = 0) -> list[np.ndarray]:
    """Return arrays of tokens that are all different."""
    ends = np.cumsum([first, *lengths])
    return [np.arange(a, b) for a, b in itertools.pairwise(ends)]


def lists(lengths: list[int] = LENGTHS, first: int = 0, name: str = "lists") -> sk.Dataset:
    records = [{"tokens": each.tolist(), "mask": (each % 2).tolist()} for each in documents(lengths, first)]
    return sk.from_sequence(records, version=name)


def loader_of(dataset: sk.Dataset, **arguments: Any) -> sk.Loader:
    return sk.Loader(dataset, **{"batch_size": 2, "collate": list, "prefetch": 0, "epochs": 2, **arguments})


def tokens_of(samples: list[Any]) -> list[tuple[int, ...]]:
    return [tuple(sample["tokens"].tolist()) for sample in samples]


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(state))


def check_at_every_cut(old: sk.Dataset, new: sk.Dataset) -> None:
    """Check that the begun epoch is delivered once in the old cut, and is followed by the new one's next."""
    for batches in range(1, (len(old) + 1) // 2):
        before = loader_of(old, end="short")
        run = iter(before)
        first = [sample for _ in range(batches) for sample in next(run)]
        after = loader_of(new, end="short")
        after.load_state_dict(through_json(before.state_dict()), resume="rows")
        rest = [sample for batch in after for sample in batch]
        left = len(old) - len(first)
        assert Counter(tokens_of(first + rest[:left])) == Counter(tokens_of(list(old)))
        assert all(sample.keys() == new[0].keys() for sample in rest)
        assert same(rest[left:], list(new.epoch(1)))


CHANGES: dict[str, Callable[[sk.Dataset], sk.Dataset]] = {
    "length": lambda ds: ds.pack(7, seed=1, jobs=1),
    "seed": lambda ds: ds.pack(5, seed=2, jobs=1),
    "order": lambda ds: ds.pack(5, seed=1, method=sk.Packing(order="exchange"), jobs=1),
    "method": lambda ds: ds.pack(6, seed=1, method=sk.Packing("best_fit", most=2), jobs=1),
    "columns": lambda ds: ds.pack(6, seed=1, align=["mask"], columns=["mask", "tokens"], jobs=1),
    "windows": lambda ds: ds.windows(4, jobs=1),
    "shuffled windows": lambda ds: ds.windows(4, jobs=1).shuffle(3),
    "a function": lambda ds: ds.pack(7, seed=1, jobs=1).map(dict, version=2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_begun_epoch_ends_in_its_old_cut(change: str) -> None:
    check_at_every_cut(lists().pack(5, seed=1, jobs=1), CHANGES[change](lists()))


@pytest.mark.exhaustive
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("begun", CHANGES)
def test_any_cut_ends_before_any_other(change: str, begun: str) -> None:
    if "columns" not in (begun, change):
        check_at_every_cut(CHANGES[begun](lists()), CHANGES[change](lists()))


def test_labels_of_a_cut_that_was_made_without_them() -> None:
    plain, with_labels = lists().pack(5, seed=1, jobs=1), lists().pack(7, seed=1, labels="across", jobs=1)
    for old, new, length in ((plain, with_labels, 7), (with_labels, plain, 5)):
        before = loader_of(old)
        next(iter(before))
        after = loader_of(new)
        after.load_state_dict(before.state_dict(), resume="rows")
        rest = next(iter(after))
        assert all(sample.keys() == new[0].keys() for sample in rest)
        whole = tokens_of(list(old))
        assert all(tuple(sample["tokens"].tolist()) in whole for sample in rest)
        assert all(sample["loss_mask"].sum() == 4 for sample in rest if length == 7)


def test_what_is_resumed_can_be_changed_again() -> None:
    old, middle, last = (lists().pack(length, seed=1, jobs=1) for length in (4, 6, 9))
    first = loader_of(old)
    delivered = next(iter(first))
    second = loader_of(middle)
    second.load_state_dict(first.state_dict(), resume="rows")
    delivered += next(iter(second))
    third = loader_of(last, batch_size=1)
    third.load_state_dict(through_json(second.state_dict()), resume="rows")
    delivered += [sample for batch in third for sample in batch]
    assert Counter(tokens_of(delivered[: len(old)])) == Counter(tokens_of(list(old)))
    assert same(delivered[len(old) :], list(last.epoch(1)))


@pytest.mark.parametrize("world", [1, 2, 3])
def test_ranks_share_the_rest_of_the_old_cut(world: int) -> None:
    old, new = lists().pack(4, seed=1, jobs=1), lists().pack(6, seed=1, jobs=1)
    first = loader_of(old, batch_size=6)
    delivered = next(iter(first))
    for rank in range(world):
        own = loader_of(new, batch_size=None, global_batch_size=6, rank=rank, world_size=world, end="pad")
        own.load_state_dict(first.state_dict(), resume="rows")
        delivered += next(iter(own))
    assert Counter(tokens_of(delivered[: len(old)])) <= Counter(tokens_of(list(old)))
    assert len(delivered) == len(old)


def test_files_were_added_to_token_files(tmp_path: Path) -> None:
    def write(name: str, lengths: list[int], first: int) -> None:
        write_pair(tmp_path / name, documents(lengths, first))

    write("b.bin", LENGTHS, 0)
    write("d.bin", LENGTHS, 100)
    tokens = sk.open(f"megatron:{tmp_path}/b"), sk.open(f"megatron:{tmp_path}/d")
    old = sk.concat(tokens).pack(4, seed=1)
    write("e.bin", LENGTHS, 200)
    check_at_every_cut(old, sk.concat([*tokens, sk.open(f"megatron:{tmp_path}/e")]).pack(6, seed=1))


def test_weights_of_a_mixture_were_changed() -> None:
    parts = {"web": lists(), "code": lists([4, 4, 7, 9, 3, 5], 100, "code")}

    def mixture(weights: dict[str, float], lengths: dict[str, int]) -> sk.Dataset:
        packed = {name: part.pack(lengths[name], seed=1, jobs=1) for name, part in parts.items()}
        return sk.mix(packed, weights=weights, seed=3, stop="all")

    old = mixture({"web": 0.7, "code": 0.3}, {"web": 4, "code": 5})
    first = loader_of(old)
    run = iter(first)
    delivered = [sample for _ in range(5) for sample in next(run)]
    assert {sample[0] >= 100 for sample in tokens_of(delivered)} == {True, False}
    new = mixture({"web": 0.4, "code": 0.6}, {"web": 6, "code": 3})
    after = loader_of(new, epochs=3)
    after.load_state_dict(through_json(first.state_dict()), resume="rows")
    delivered += [sample for batch in after for sample in batch]
    for name, length in (("web", 4), ("code", 5)):
        whole = tokens_of(list(parts[name].pack(length, seed=1, jobs=1)))
        own = [sample for sample in tokens_of(delivered) if (sample[0] >= 100) == (name == "code")]
        assert Counter(own[: len(whole)]) == Counter(whole)
        assert all(len(sample) != length for sample in own[len(whole) :])


def test_documents_of_other_lengths_are_refused() -> None:
    state = loader_of(lists().pack(4, seed=1, jobs=1)).state_dict()
    with pytest.raises(sk.StateMismatch, match="other lengths now"):
        loader_of(lists(LENGTHS[::-1]).pack(6, seed=1, jobs=1)).load_state_dict(state, resume="rows")
    plain = loader_of(lists()).state_dict()
    with pytest.raises(sk.StateMismatch, match="is pack now"):
        loader_of(lists().pack(6, seed=1, jobs=1)).load_state_dict(plain, resume="rows")
    with pytest.raises(sk.StateMismatch, match="what was pack"):
        loader_of(lists()).load_state_dict(state, resume="rows")


@pytest.mark.parametrize("method", ["pack", "windows"])
def test_the_places_of_a_saved_run_are_found_in_token_files(tmp_path: Path, method: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_pair(data / "a.bin", documents(LENGTHS))
    tokens = sk.open(f"megatron:{data}/a")
    ds = tokens[1:].pack(4, seed=1, labels="within") if method == "pack" else tokens[1:].windows(4)
    loader = loader_of(ds.map(dict, version=1))
    next(iter(loader))
    sk.save_state(tmp_path / "states", loader)
    saved = read_saved(tmp_path / "states")
    rebuilt = rebuild_saved(saved, roots=[str(data)]).dataset
    rows = np.arange(2 * len(ds))
    assert rebuilt.plan(rows).locate() == ds._node.plan(rows).locate()
    (data / "a.bin").unlink()
    with pytest.raises(sk.errors.InvalidArgument, match=f"map > {method} .*token files that are found"):
        rebuild_saved(saved, roots=[str(data)])


def test_a_state_is_small() -> None:
    loader = loader_of(lists().pack(4, seed=1, jobs=1))
    next(iter(loader))
    state = loader.state_dict()
    del state["pipeline"]
    assert len(json.dumps(state)) < 200
