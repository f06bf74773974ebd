"""Which blocks of tables are decoded whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seekable as sk
from seekable.formats.tables.table_files import RowBlocks
from seekable.formats.tables.table_reading import blocks_to_decode
from seekable.nodes.columns.decode_column import DECODED

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

BLOCKS, ROWS = 8, 100


def decoded_for(rows: np.ndarray[tuple[int], np.dtype[np.int64]], most: int) -> frozenset[int]:
    """Return the blocks to decode whole, of which so many fit."""
    edges = np.arange(0, (BLOCKS + 1) * ROWS, ROWS)
    zeros = np.zeros(1, np.int64)
    blocks = RowBlocks(edges, np.zeros(BLOCKS, np.int64), edges[[0, -1]], zeros, zeros)
    return blocks_to_decode(rows, blocks, size_of=lambda _: 10, most_bytes=10 * most)


def test_where_windows_meet_the_blocks_of_each_have_to_fit_and_not_of_both() -> None:
    random = np.random.default_rng(1)
    first, second = random.permutation(4 * ROWS), 4 * ROWS + random.permutation(4 * ROWS)
    rows = np.concatenate([first, second])
    assert decoded_for(rows, most=4) == frozenset(range(8))
    assert decoded_for(rows, most=3) == frozenset()
    assert decoded_for(random.permutation(rows), most=4) == frozenset()
    assert decoded_for(random.permutation(rows), most=8) == frozenset(range(8))


def test_blocks_of_which_few_rows_are_wanted_need_no_room() -> None:
    rows = np.concatenate([np.array([700, 100]), np.arange(20)])
    assert decoded_for(rows, most=1) == {0}
    assert decoded_for(np.array([0]), most=0) == frozenset()


def test_no_more_is_decoded_at_once_than_the_cache_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan in the order of the file needs few blocks at a time, but who reads all of it needs all."""
    table = pa.table({"id": list(range(8 * ROWS)), "text": [f"{row:0500d}" for row in range(8 * ROWS)]})
    pq.write_table(
        table, tmp_path / "a.parquet", row_group_size=ROWS, compression="none", use_dictionary=False
    )
    dataset = sk.open(str(tmp_path), decode="arrow")
    node = dataset._node
    monkeypatch.setattr(DECODED, "_most_bytes", 500_000)
    DECODED.forget()
    plan = node.plan(np.arange(8 * ROWS))
    assert plan.dense == frozenset(range(8))  # type: ignore[attr-defined]  # the plan of a table
    assert plan.table().to_pydict() == table.to_pydict()  # type: ignore[attr-defined]
    assert not DECODED._values
    assert plan.slice(0, ROWS).table().to_pydict() == table.slice(0, ROWS).to_pydict()  # type: ignore[attr-defined]
    assert len(DECODED._values) == 1
    DECODED.forget()
