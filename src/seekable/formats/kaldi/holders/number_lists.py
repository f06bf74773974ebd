"""Lists of numbers, and of lists of numbers, as text: parsed and written by msgspec as JSON.

Text as Kaldi writes it becomes JSON by a few replacements of bytes. Other text is not parsed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

if TYPE_CHECKING:
    from seekable.formats.kaldi.objects.basic_types import BasicType

__all__ = ["groups_text", "integers_text", "parse_bracketed", "parse_float_groups", "parse_groups"]

_INT64_MOST = (1 << 63) - 1
_INTEGERS = b"0123456789- ;"
_FLOATS = b"0123456789-+.e ;"
_BRACKETED = b"0123456789-+.e []"
_MIXED_DECODER = msgspec.json.Decoder(list[list[int | float]])
_FLOAT_DECODER = msgspec.json.Decoder(list[list[float]])


def _decoder(least: int, most: int) -> msgspec.json.Decoder[list[list[int]]]:
    return msgspec.json.Decoder(list[list[Annotated[int, msgspec.Meta(ge=least, le=most)]]])


_DECODERS: dict[str, msgspec.json.Decoder[list[list[int]]]] = {}


def parse_groups(line: bytes, basic: BasicType) -> list[list[int]] | None:
    """Return the integers between the semicolons of a line; None of other text than Kaldi's."""
    if line.translate(None, _INTEGERS) or basic.is_float or basic.most > _INT64_MOST:
        return None
    decoder = _DECODERS.get(basic.name)
    if decoder is None:
        decoder = _DECODERS[basic.name] = _decoder(int(basic.least), int(basic.most))
    try:
        return decoder.decode(_json(line))
    except msgspec.DecodeError:
        return None


def parse_float_groups(line: bytes) -> list[list[float]] | None:
    """Return the numbers between the semicolons of a line, not rounded; None of other text than Kaldi's."""
    # JSON has no negative zero among integers, and Kaldi writes one as -0.
    if line.translate(None, _FLOATS) or b"-0 " in line + b" ":
        return None
    try:
        return _FLOAT_DECODER.decode(_json(line))
    except msgspec.DecodeError:
        return None


def parse_bracketed(line: bytes) -> list[list[int | float]] | None:
    """Return the numbers in each pair of brackets of a line, not rounded; None of other text than Kaldi's."""
    if line.translate(None, _BRACKETED) or b"-0 " in line:
        return None
    text = line.strip(b" ").replace(b"[ ]", b"[]").replace(b"[ ", b"[").replace(b" ]", b"]")
    try:
        return _MIXED_DECODER.decode(b"[" + text.replace(b" ", b",") + b"]")
    except msgspec.DecodeError:
        return None


def _json(line: bytes) -> bytes:
    text = line.strip(b" ").replace(b" ;", b";").replace(b"; ", b";")
    return b"[[" + text.replace(b" ", b",").replace(b";", b"],[") + b"]]"


def integers_text(numbers: list[int]) -> bytes:
    """Return integers as Kaldi writes them in text, each with a space behind it."""
    text = msgspec.json.encode(numbers)[1:-1]
    return text.replace(b",", b" ") + b" " if numbers else b""


def groups_text(groups: list[list[int]]) -> bytes:
    """Return lists of integers as Kaldi writes them in text, each with a semicolon and a space behind it."""
    text = msgspec.json.encode(groups)[1:-1]
    text = text.replace(b"[]", b";").replace(b"]", b" ;").replace(b"[", b"").replace(b",", b" ")
    return text + b" " if text else b""
