"""Token stores with ``idx=True`` against the writer and the reader of Megatron-core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests import tokens_apart

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.frameworks(name="torch"), pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("largest", [9, 70_000])
def test_the_files_are_those_that_megatron_writes_and_reads(largest: int, tmp_path: Path) -> None:
    tokens_apart.add_to_path()
    import torch
    from megatron.core.datasets.indexed_dataset import DType, IndexedDataset, IndexedDatasetBuilder

    lists = [[5, 6, 7], [], [largest], list(range(5))]
    sk.from_sequence([{"tokens": ids} for ids in lists]).write_tokens(
        tmp_path / "ours", store=sk.formats.TokenStore(idx=True)
    )
    builder = IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=DType.optimal_dtype(largest + 1))
    for ids in lists:
        builder.add_document(torch.tensor(ids, dtype=torch.int64), [len(ids)])
    builder.finalize(str(tmp_path / "theirs.idx"))
    for suffix in ("bin", "idx"):
        found = (tmp_path / "ours" / f"part-000000.{suffix}").read_bytes()
        assert found == (tmp_path / f"theirs.{suffix}").read_bytes()
    read = IndexedDataset(str(tmp_path / "ours" / "part-000000"))
    assert [read[number].tolist() for number in range(len(read))] == lists
