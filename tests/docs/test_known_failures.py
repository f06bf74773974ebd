"""The page that lists failures of others and the tests of them say the same."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tests.loader import test_failures_of_others as of_loaders
from tests.stream import test_failures_of_others as of_streams

PAGE = Path(__file__).resolve().parents[2] / "docs" / "design" / "known-failures.md"
ROW = re.compile(r"\| (?:\[(?P<where>[^]]+)\]\((?P<link>[^)]*)\) \| )?.* \| `(?P<test>test_\w+)` \|")


def rows() -> dict[str, re.Match[str]]:
    """Return the rows of the tables, by their tests."""
    found = [
        ROW.fullmatch(line) for line in PAGE.read_text(encoding="utf-8").splitlines() if "`test_" in line
    ]
    return {row["test"]: row for row in found if row is not None}


def docstrings() -> dict[str, str]:
    """Return the docstrings of the tests, in their order."""
    found: dict[str, str] = {}
    for module in (of_loaders, of_streams):
        functions = inspect.getmembers(module, inspect.isfunction)
        in_order = sorted(functions, key=lambda member: member[1].__code__.co_firstlineno)
        found |= {name: fn.__doc__ or "" for name, fn in in_order if name.startswith("test_")}
    return found


def test_each_row_names_a_test_and_each_test_has_a_row() -> None:
    assert list(rows()) == list(docstrings())


def test_a_row_and_its_test_name_the_same_failure() -> None:
    for test, row in rows().items():
        where = row["where"] or "Lhotse"
        assert docstrings()[test].startswith(f"In {where} "), test
        number = where.partition("#")[2]
        assert f"_{number}_" in test or not number
        assert row["link"] is None or row["link"].endswith(f"/{number}")
