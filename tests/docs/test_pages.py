"""Pages are short, few, and listed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = {"api", "cli", "stages", "index-format", "state-format", "benchmarks", "versions", "changelog"}
"""Pages, and folders of pages, in which one looks up a fact: they may be long."""

MOST_WORDS, MOST_HOW_TO_PAGES = 1500, 45
FENCED = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*$", re.MULTILINE | re.DOTALL)
TABLE_ROW = re.compile(r"^\s*\|.*$", re.MULTILINE)
PAGES = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if "_build" not in page.parts and page.relative_to(DOCS).parts[0].removesuffix(".md") not in REFERENCE
]


def prose_of(page: str) -> str:
    """Return a page without its blocks of code and its tables."""
    return TABLE_ROW.sub("", FENCED.sub("", page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_is_read_in_a_few_minutes(page: Path) -> None:
    words = len(prose_of(page.read_text(encoding="utf-8")).split())
    assert words <= MOST_WORDS, f"{words} words of prose: divide the page, or say less"


def test_blocks_and_tables_are_no_prose() -> None:
    page = "one\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n\n- two\n\n  ```text\n  y\n  ```\nthree\n"
    assert prose_of(page).split() == ["one", "-", "two", "three"]


def test_there_are_few_pages_of_how_to() -> None:
    assert len(list((DOCS / "howto").glob("*.md"))) <= MOST_HOW_TO_PAGES


def test_each_page_of_how_to_stands_in_one_group() -> None:
    listed = re.findall(
        r"^howto/(.+)$", "\n".join(each.read_text("utf-8") for each in DOCS.glob("*.md")), re.MULTILINE
    )
    assert sorted(listed) == sorted(page.stem for page in (DOCS / "howto").glob("*.md"))
