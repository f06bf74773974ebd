"""The table of stages says what the types say."""

from __future__ import annotations

from docs.tables import PAGE, table, written


def test_the_page_has_the_table_that_the_types_make() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "run docs/tables.py, and look at it"


def test_every_stage_and_every_node_is_in_it() -> None:
    text = table()
    for kind in ("filter", "flatten", "bucket", "pack-concat", "overlay", "dataset", "windowed_shuffle"):
        assert f"`{kind}`" in text
