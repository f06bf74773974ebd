"""The table of indexed-parquet-dataset's names has all of them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import indexed_parquet_dataset
import pytest
from indexed_parquet_dataset import IndexedParquetDataset
from tests.docs.tables import rows_of

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "from-indexed-parquet-dataset.md"
THEIRS = " ".join(row.theirs for row in rows_of(PAGE.read_text(encoding="utf-8")))

# Arguments that the row of their method tells, and the class itself.
TOLD = {"IndexedParquetDataset", "batch_size", "directory", "fn", "kwargs", "self", "show_progress"}


def methods() -> list[str]:
    return [name for name in vars(IndexedParquetDataset) if not name.startswith("_")]


def is_named(name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", THEIRS) is not None


@pytest.mark.parametrize("name", methods())
def test_every_method_is_in_the_table(name: str) -> None:
    assert is_named(name)


def arguments_and_classes() -> list[str]:
    methods = (
        IndexedParquetDataset,
        IndexedParquetDataset.filter,
        IndexedParquetDataset.from_folder,
        IndexedParquetDataset.map,
    )
    names = {name for method in methods for name in inspect.signature(method).parameters}
    return sorted(name for name in names.union(indexed_parquet_dataset.__all__) - TOLD if name[0] != "_")


@pytest.mark.parametrize("name", arguments_and_classes())
def test_every_argument_and_class_is_in_the_table(name: str) -> None:
    assert is_named(name)
