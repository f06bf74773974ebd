"""Megatron's blend as a node: its draws, the way up, what it refuses, pipeline files, and changed sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import seekable as sk
from seekable.packing.nodes.blend import MegatronBlend
from seekable.packing.order.megatron_order import blend_exhaustively, blend_weighted
from seekable.resume.from_description import rebuild

if TYPE_CHECKING:
    from pathlib import Path

PARTS = [
    sk.from_sequence([f"{name}{row}" for row in range(n)], version=name) for name, n in (("a", 9), ("b", 6))
]


def blend(weights: tuple[float, ...] | None, draws: int, parts: list[sk.Dataset] = PARTS) -> sk.Dataset:
    return sk.Dataset(MegatronBlend(tuple(part._node for part in parts), weights, draws))


@pytest.mark.parametrize("weights", [(0.7, 0.3), None])
def test_draws_are_those_of_the_blend(weights: tuple[float, ...] | None) -> None:
    draws = 12 if weights else 15
    which, rows = blend_weighted(weights, draws) if weights else blend_exhaustively([9, 6])
    ds = blend(weights, draws)
    expected = [f"{'ab'[part]}{row}" for part, row in zip(which.tolist(), rows.tolist(), strict=True)]
    assert list(ds) == expected
    assert [ds[row] for row in range(draws)] == expected
    assert ds._node.steady
    # Every epoch has the same draws, of the same epoch of each part.
    assert ds._node.fetch(np.arange(draws, 2 * draws)) == expected
    shuffled = blend(weights, draws, [part.shuffle(seed=3) for part in PARTS])
    assert not shuffled._node.steady
    both = [shuffled._node.record(row) for row in range(2 * draws)]
    assert both == shuffled._node.fetch(np.arange(2 * draws))
    assert both[:draws] != both[draws:]


def test_rows_are_found_where_they_are_drawn() -> None:
    ds = blend((0.7, 0.3), 12)
    places = [ds.locate(row) for row in range(12)]
    for place in places:
        expected = [row for row, other in enumerate(places) if other == place]
        assert list(ds.find(place.path, place.row)) == expected
    # Of the first part 8 of 9 records are drawn, of the second 4 of 6.
    assert [len(ds.find(places[0].path, row)) for row in range(9)] == [1] * 8 + [0]
    assert [len(ds.find(places[1].path, row)) for row in range(6)] == [1] * 4 + [0] * 2


def test_more_draws_than_a_part_has_are_refused() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"draws 7 samples of part 1, which has 6.*surplus"):
        blend((0.5, 0.5), 14)
    with pytest.raises(sk.errors.InvalidArgument, match="part 1 has no record"):
        blend((0.5, 0.5), 4, [PARTS[0], sk.from_sequence([])])
    with pytest.raises(sk.errors.EndlessDataset):
        blend((1.0,), 4, [sk.mix(PARTS, weights=[1, 1], seed=1, stop="never")])


def text_files(folder: Path, name: str) -> sk.Dataset:
    (folder / f"{name}.txt").write_text("".join(f"{name}{row}\n" for row in range(9 if name == "a" else 6)))
    return sk.open(folder / f"{name}.txt")


def test_a_pipeline_file_has_the_blend(tmp_path: Path) -> None:
    for weights, draws in (((0.7, 0.3), 12), (None, 15)):
        ds = blend(weights, draws, [text_files(tmp_path, name) for name in "ab"])
        ds.save(tmp_path / "blend.json")
        loaded = sk.load_pipeline(tmp_path / "blend.json")
        assert loaded.fingerprint == ds.fingerprint
        assert list(loaded) == list(ds)
        again = rebuild(ds._node.describe(None))
        assert again.fingerprint == ds.fingerprint
        assert [again.record(row).row for row in range(draws)] == [ds.locate(row).row for row in range(draws)]


def test_a_run_goes_on_by_rows_where_a_part_has_new_records() -> None:
    def loader(parts: list[sk.Dataset], weights: tuple[float, ...]) -> sk.Loader:
        return sk.Loader(blend(weights, 12, parts), batch_size=3, collate=list)

    begun = loader(PARTS, (0.7, 0.3))
    expected = list(loader(PARTS, (0.7, 0.3)))[2:]
    begun.skip_batches(2)
    changed = loader([PARTS[0].map(str.upper), PARTS[1]], (0.5, 0.5))
    changed.load_state_dict(begun.state_dict(), resume="rows")
    found = [[text.lower() for text in batch] for batch in changed]
    assert found[: len(expected)] == expected
