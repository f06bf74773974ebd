"""The table of indexed-parquet-dataset's names has all of them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from tests.docs.tables import rows_of

PAGE = Path(__file__).parents[2] / "docs" / "from" / "indexed-parquet-dataset.md"
THEIRS = " ".join(row.theirs for row in rows_of(PAGE.read_text(encoding="utf-8")))

# Arguments that the row of their method tells, and the class itself.
TOLD = {"IndexedParquetDataset", "batch_size", "directory", "fn", "kwargs", "self", "show_progress"}


# The package imports torch where it is installed.
pytestmark = pytest.mark.frameworks(name="torch")


def is_named(name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", THEIRS) is not None


def test_every_method_argument_and_class_is_in_the_table() -> None:
    import indexed_parquet_dataset
    from indexed_parquet_dataset import IndexedParquetDataset

    called = (
        IndexedParquetDataset,
        IndexedParquetDataset.filter,
        IndexedParquetDataset.from_folder,
        IndexedParquetDataset.map,
    )
    names = {name for method in called for name in inspect.signature(method).parameters}
    names |= {*indexed_parquet_dataset.__all__, *vars(IndexedParquetDataset)}
    missing = sorted(name for name in names - TOLD if name[0] != "_" and not is_named(name))
    assert missing == []
