"""The table of indexed-parquet-dataset's names has all of them, and names of ours that exist."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import indexed_parquet_dataset
import pytest
from indexed_parquet_dataset import IndexedParquetDataset

import seekable as sk

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "from-indexed-parquet-dataset.md"
LINES = PAGE.read_text(encoding="utf-8").splitlines()
ROWS = [line.split("|")[1:-1] for line in LINES if line.startswith("|")]

# Arguments that the row of their method tells, and the class itself.
TOLD = {"IndexedParquetDataset", "batch_size", "directory", "fn", "kwargs", "self", "show_progress"}


def methods() -> list[str]:
    return [name for name in vars(IndexedParquetDataset) if not name.startswith("_")]


def theirs() -> str:
    return " ".join(row[0] for row in ROWS)


def is_named(name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", theirs()) is not None


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


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0].strip()) for row in ROWS[2:]])
def test_what_is_named_here_exists(row: list[str]) -> None:
    ours = row[1]
    for name in re.findall(r"\bds\.(\w+)", ours):
        assert hasattr(sk.Dataset, name)
    for name in re.findall(r"\bsk\.(\w+)", ours):
        assert hasattr(sk, name)
    for method, arguments in re.findall(r"\b(?:ds|sk)\.(\w+)\(([^()]*)\)", ours):
        called = getattr(sk.Dataset, method, None) or getattr(sk, method)
        named = set(re.findall(r"\b(\w+)=", arguments))
        assert named <= inspect.signature(called).parameters.keys()
