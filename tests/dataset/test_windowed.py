"""Windowed and fixed shuffles, and interleaving: what users are told of them."""

from __future__ import annotations

import json
import pickle
import warnings
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.dataset.common import endless, flow, numbers

import seekable as sk
from seekable.resume.from_description import rebuild

if TYPE_CHECKING:
    from pathlib import Path


def test_every_epoch_is_another_permutation() -> None:
    ds = sk.concat(
        [numbers(700), numbers(700, "b").map(lambda i: i + 700), numbers(3).map(lambda i: i + 1400)]
    )
    local = ds.shuffle(3, window=2, lanes=4)
    epochs = [flow(local, 1403, start=1403 * epoch) for epoch in (0, 1, 2, 10**9)]
    assert all(sorted(epoch) == list(range(1403)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


def test_a_fixed_order_is_that_of_epoch_0() -> None:
    for window, lanes in ((None, None), (1, 2)):
        fixed = numbers(3000).shuffle(5, fixed=True, window=window, lanes=lanes)
        changing = numbers(3000).shuffle(5, window=window, lanes=lanes)
        assert fixed._node.steady
        assert not changing._node.steady
        assert list(fixed) == list(changing)
        assert list(fixed.epoch(7)) == list(fixed)
        assert list(changing.epoch(7)) != list(changing)
        assert fixed.split({"a": 0.5, "b": 0.5}, seed=1)["a"][0] in range(3000)
        assert fixed.fingerprint != changing.fingerprint


def test_a_fixed_order_passes_epochs_on() -> None:
    below = numbers(50).shuffle(1)
    fixed = below.shuffle(2, fixed=True)
    assert not fixed._node.steady
    order = list(numbers(50).shuffle(2, fixed=True))
    for epoch in range(3):
        records = list(below.epoch(epoch))
        assert list(fixed.epoch(epoch)) == [records[row] for row in order]


def test_aligned_data_stays_aligned_where_blocks_and_lanes_agree() -> None:
    x, y = numbers(5000), sk.from_sequence([str(i) for i in range(5000)])
    both = sk.zip([x.shuffle(7, window=2, lanes=3), y.map(int).shuffle(7, window=2, lanes=3)])
    assert all(a == b for epoch in range(2) for a, b in both.epoch(epoch))


def test_what_decides_the_order_is_in_the_fingerprint() -> None:
    ds = numbers(5000)
    orders = [
        ds.shuffle(1),
        ds.shuffle(1, window=2),
        ds.shuffle(1, window=3),
        ds.shuffle(1, window=2, lanes=2),
        ds.shuffle(2, window=2),
        ds.interleave(lanes=2),
        ds.interleave(lanes=3),
        ds.shuffle(1, fixed=True),
        ds.shuffle(1, window=2, fixed=True),
        ds.shuffle(1, window=2, block_rows=2048),
        ds.shuffle(1, window=2, block_rows=1024),
    ]
    assert len({dataset.fingerprint for dataset in orders}) == len(orders)
    assert ds.shuffle(1, window=2).fingerprint == ds.shuffle(1, window=2, lanes=1).fingerprint


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"seed": 1, "window": 0}, "window must be at least 1"),
        ({"seed": 1, "window": 2, "lanes": 0}, "lanes must be at least 1"),
        ({"seed": 1, "lanes": 2}, "lanes= is for shuffle"),
        ({"seed": 1, "block_rows": 2}, "block_rows= is for shuffle"),
        ({"seed": 1, "window": 2, "block_rows": 0}, "block_rows must be at least 1"),
        ({"seed": -1, "window": 2}, "seed"),
        ({"seed": 1, "window": 2.5}, "window must be an integer"),
        ({"seed": 1, "fixed": 1}, "fixed must be True or False"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, int], match: str) -> None:
    with pytest.raises(sk.SeekableError, match=match):
        numbers(10).shuffle(**arguments)  # type: ignore[arg-type]


def test_what_has_no_length_is_refused() -> None:
    with pytest.raises(sk.errors.EndlessDataset, match="take"):
        endless().shuffle(1, window=2)
    with pytest.raises(sk.errors.EndlessDataset, match="take"):
        endless().interleave(lanes=2)
    assert len(endless().take(500).shuffle(1, window=2)) == 500


def test_no_record_or_one() -> None:
    for ds in (numbers(0).shuffle(1, window=2, lanes=3), numbers(0).interleave(lanes=3)):
        assert list(ds) == []
        assert ds.explain()
        with pytest.raises(sk.errors.OutOfRange):
            ds[0]
    assert list(numbers(1).shuffle(1, window=2, lanes=3)) == [0]
    assert list(numbers(1).interleave(lanes=3)) == [0]


def test_a_record_is_found_again() -> None:
    ds = numbers(5000).shuffle(1, window=2, lanes=3)
    for epoch in (0, 3):
        for row in (0, 17, 4999):
            (position,) = ds.find("<builtins.range>", row, epoch=epoch)
            assert position // 5000 == epoch
            assert ds._node.record(position) == row
    (position,) = numbers(5000).interleave(lanes=7).find("<builtins.range>", 4321, epoch=2)
    assert numbers(5000).interleave(lanes=7)._node.record(position) == 4321


def test_many_windowed_sources_are_asked_together() -> None:
    sources = [sk.from_sequence(range(i * 100, i * 100 + 100), version=i) for i in range(40)]
    mixed = sk.mix([s.shuffle(i, window=1, lanes=2) for i, s in enumerate(sources)], weights=[1] * 40, seed=0)
    records = flow(mixed, 3 * len(mixed))
    # A lane may be a few draws further on in a source than the other.
    counts = Counter(records)
    assert set(counts) == set(range(4000))
    assert set(counts.values()) <= {2, 3, 4}
    assert [mixed._node.record(p) for p in range(0, len(records), 97)] == records[::97]


def write(path: Path, count: int) -> sk.Dataset:
    path.write_text("".join(json.dumps({"id": i, "text": "x" * 90}) + "\n" for i in range(count)))
    return sk.open(path)


def test_explain_tells_the_open_bytes(tmp_path: Path) -> None:
    ds = write(tmp_path / "a.jsonl", 20_000)
    # 111 to 115 bytes a line, 20 blocks of which 2 x 3 are open: 6 / 20 of the file.
    size = (tmp_path / "a.jsonl").stat().st_size
    local = ds.shuffle(1, window=3, lanes=2)
    assert local._node.open_bytes == pytest.approx(size * 6 / 20, rel=0.01)  # type: ignore[attr-defined]
    assert "2 lanes x 3 of 20 blocks: 692.6 kB open at a time" in local.explain()
    everything = ds.shuffle(1, window=100, lanes=8)
    assert everything._node.open_bytes == pytest.approx(size, rel=0.01)  # type: ignore[attr-defined]


def test_more_open_bytes_than_the_cache_has_are_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = write(tmp_path / "a.jsonl", 20_000)
    monkeypatch.setenv("SEEKABLE_CACHE_BYTES", "600000")
    with pytest.warns(
        sk.errors.CacheTooSmall, match=r"2 lanes x 3 blocks keep 692.6 kB.*cache has room for 600.0 kB"
    ) as seen:
        local = ds.shuffle(1, window=3, lanes=2)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds.shuffle(1, window=2, lanes=2)
        pickle.loads(pickle.dumps(local))
        numbers(10**6).shuffle(1, window=10**6)
    monkeypatch.setenv("SEEKABLE_CACHE_BYTES", "much")
    with pytest.raises(sk.errors.InvalidArgument, match="SEEKABLE_CACHE_BYTES must be a number of bytes"):
        ds.shuffle(1, window=2, lanes=2)


def test_only_the_tables_of_a_few_epochs_are_kept() -> None:
    ds = numbers(5000).shuffle(1, window=2, lanes=2)
    for epoch in range(20):
        ds._node.record(5000 * epoch)
    assert len(ds._node._kept) <= 4  # type: ignore[attr-defined]
    records = ds._node.fetch(np.arange(0, 5000 * 20, 777))
    assert records == [ds._node.record(p) for p in range(0, 5000 * 20, 777)]


def test_blocks_of_the_size_of_the_files_change_nothing_but_the_fingerprint() -> None:
    ds = numbers(5000)
    assert list(ds.shuffle(1, window=2, block_rows=1024)) == list(ds.shuffle(1, window=2))
    assert list(ds.shuffle(1, window=2, block_rows=4096)) != list(ds.shuffle(1, window=2))


@pytest.mark.parametrize("block_rows", [1, 7, 1000, 4096, 10**6])
def test_rows_of_blocks_of_any_size_come_once(block_rows: int) -> None:
    ds = sk.concat([numbers(1500), numbers(3, "b").map(lambda i: i + 1500)])
    local = ds.shuffle(3, window=2, lanes=3, block_rows=block_rows)
    assert sorted(local) == list(range(1503))
    assert sk.Dataset(rebuild(local._node.describe(None))).fingerprint == local.fingerprint
    assert f"block_rows={block_rows}" in repr(local)
    assert list(numbers(0).shuffle(1, window=2, block_rows=block_rows)) == []
