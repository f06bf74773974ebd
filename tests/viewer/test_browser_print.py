"""Paper and pictures from a real browser: folded values are printed, controls are not, charts are light."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.viewer.pdf_text import text_of

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.viewer.server import Server

pytestmark = pytest.mark.exhaustive

FOLDED = "[...document.querySelectorAll('main details')].map((each) => each.open)"


def test_a_printed_record_has_what_was_folded_and_no_controls(page: Any, viewer: Server, data: Path) -> None:
    page.goto(viewer.url + "d/corpus/row/17?text=raw")
    page.keyboard.press("e")
    assert not any(page.evaluate(FOLDED))
    assert not page.locator("text=<b>hello</b>").is_visible()
    text = text_of(page.pdf())
    assert "corpus row 17" in text
    assert str(data / "corpus" / "part-0.jsonl") in text
    for folded in ("lang", "0.17", "assistant", "<b>hello</b>"):
        assert folded in text, folded
    for control in ("Copy link", "Theme", "Go to", "as delivered", "previous"):
        assert control not in text, control


def test_paper_is_light_where_the_theme_is_dark(page: Any, viewer: Server) -> None:
    page.goto(viewer.url)
    page.emulate_media(color_scheme="dark")
    ink = "getComputedStyle(document.body).color"
    for theme in ("Theme: light", "Theme: dark"):
        page.click("#theme")
        assert page.locator("#theme").inner_text() == theme
    dark = page.evaluate(ink)
    page.emulate_media(media="print")
    assert (dark, page.evaluate(ink)) == ("rgb(230, 233, 236)", "rgb(28, 32, 36)")


def test_a_chart_is_saved_as_a_light_picture_in_either_scheme(page: Any, viewer: Server) -> None:
    page.goto(viewer.url + "p/train/mixture?from=0&to=20")
    pictures = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        with page.expect_download() as download:
            page.click("button.png >> nth=0")
        pictures.add(download.value.path().read_bytes())
    (picture,) = pictures
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
