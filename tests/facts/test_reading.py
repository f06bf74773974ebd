"""Samples against the shuffle that they are the beginning of, and with corrupt records among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.errors import CorruptRecord, InvalidArgument
from seekable.viewer.facts.reading import PIECE_ROWS, read_pieces, read_sample, sample_rows

if TYPE_CHECKING:
    from seekable.nodes.node import Node


@given(st.integers(0, 300), st.integers(0, 400), st.integers(0, 2**64 - 1))
def test_a_sample_is_the_beginning_of_the_shuffle(size: int, n: int, seed: int) -> None:
    expected = list(sk.from_sequence(range(size)).shuffle(seed=seed)[:n])
    assert sample_rows(size, n, seed).tolist() == expected


def test_a_sample_of_a_billion_rows_is_of_distinct_rows() -> None:
    rows = sample_rows(10**9, 100_000, 3)
    assert rows.size == np.unique(rows).size == 100_000
    assert rows.min() >= 0
    assert rows.max() < 10**9


@pytest.mark.parametrize(("size", "n", "seed"), [(-1, 1, 0), (1, -1, 0), (1, 1, -1), (1, 1, 2**64)])
def test_numbers_out_of_range_are_refused(size: int, n: int, seed: int) -> None:
    with pytest.raises(InvalidArgument):
        sample_rows(size, n, seed)


def written(folder: Path, lines: list[bytes]) -> Node:
    for name, some in {"a": lines[: len(lines) // 2], "b": lines[len(lines) // 2 :]}.items():
        (folder / f"{name}.jsonl").write_bytes(b"".join(line + b"\n" for line in some))
    return sk.open(str(folder / "*.jsonl"))._node


@pytest.mark.parametrize("corrupt", [[], [0], [7, 8, 1200], list(range(1300))])
def test_records_come_in_the_order_asked(tmp_path: Path, corrupt: list[int]) -> None:
    lines = [b"{broken" if row in corrupt else json.dumps({"row": row}).encode() for row in range(1300)]
    node = written(tmp_path, lines)
    rows = np.concatenate([sample_rows(1300, 1300, 5), [7, 7]]).astype(np.int64)
    records = read_sample(node, rows)
    assert len(records) == rows.size
    for row, record in zip(rows.tolist(), records, strict=True):
        if row in corrupt:
            assert isinstance(record, CorruptRecord)
            assert (Path(record.path).name, record.row) == ("ab"[row // 650] + ".jsonl", row % 650)
        else:
            assert record == {"row": row}
    pieced = [
        pair for piece, some in read_pieces(node, rows) for pair in zip(piece.tolist(), some, strict=True)
    ]
    assert sorted(row for row, _ in pieced) == sorted(rows.tolist())
    assert all(isinstance(got, CorruptRecord) or got == {"row": row} for row, got in pieced)


def test_each_piece_ends_a_smaller_sample() -> None:
    node = sk.from_sequence(range(5000))._node
    rows = sample_rows(5000, 1500, 1)
    seen: list[Any] = []
    for piece, records in read_pieces(node, rows):
        assert records == piece.tolist() == sorted(records)
        seen += records
        assert sorted(seen) == sorted(rows[: len(seen)].tolist())
    assert len(seen) == 1500
    assert len(list(read_pieces(node, rows))) == -(-1500 // PIECE_ROWS)


def test_nothing_is_read_for_no_rows() -> None:
    node = sk.from_sequence([])._node
    assert read_sample(node, np.empty(0, np.int64)) == []
    assert list(read_pieces(node, sample_rows(0, 10, 0))) == []
