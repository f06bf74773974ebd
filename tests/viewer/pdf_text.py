"""The text of a PDF file of Chromium: the glyphs of each font, and the characters that they stand for."""

from __future__ import annotations

import re
import zlib

OBJECT = re.compile(rb"(?<!\d)(\d+) 0 obj(.*?)endobj", re.DOTALL)
STREAM = re.compile(rb"stream\r?\n(.*?)endstream", re.DOTALL)
FONT = re.compile(rb"/(F\d+) (\d+) 0 R")
CHARACTERS = re.compile(rb"/ToUnicode (\d+) 0 R")
SINGLE = re.compile(rb"^<(\w{4})> <(\w+)>$", re.MULTILINE)
RANGE = re.compile(rb"^<(\w{4})> <(\w{4})> <(\w+)>$", re.MULTILINE)
SHOWN = re.compile(rb"/(F\d+) [\d.]+ Tf|<(\w+)> Tj|(ET)")


def text_of(pdf: bytes) -> str:
    """Return the text of all pages, in the order in which it is drawn, with single spaces."""
    objects = {int(number): body for number, body in OBJECT.findall(pdf)}
    fonts = {}
    for name, number in FONT.findall(pdf):
        found = CHARACTERS.search(objects[int(number)])
        if found is not None:
            fonts[name] = characters_of(inflated(objects[int(found[1])]))
    texts = (drawn(inflated(body), fonts) for body in objects.values() if b"/Filter" in body)
    return " ".join(" ".join(texts).split())


def inflated(body: bytes) -> bytes:
    found = STREAM.search(body)
    assert found is not None
    try:
        return zlib.decompress(found[1])
    except zlib.error:
        return b""  # An image in another form.


def characters_of(table: bytes) -> dict[int, str]:
    """Return the characters of a font by its glyphs."""
    found = {
        int(glyph, 16): bytes.fromhex(text.decode()).decode("utf-16-be")
        for glyph, text in SINGLE.findall(table)
    }
    for first, last, text in RANGE.findall(table):
        start = int(text, 16)
        found |= {int(first, 16) + at: chr(start + at) for at in range(int(last, 16) - int(first, 16) + 1)}
    return found


def drawn(content: bytes, fonts: dict[bytes, dict[int, str]]) -> str:
    """Return the text of a page."""
    font: dict[int, str] = {}
    parts = []
    for name, glyphs, end in SHOWN.findall(content):
        if name:
            font = fonts.get(name, {})
        elif end:
            parts.append(" ")
        else:
            parts += [font.get(int(glyphs[at : at + 4], 16), "?") for at in range(0, len(glyphs), 4)]
    return "".join(parts)
