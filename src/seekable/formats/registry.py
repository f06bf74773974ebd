"""Which formats there are, and which one a file's name tells of."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.jsonl import JsonlScanner
from seekable.formats.text import TextScanner

if TYPE_CHECKING:
    from seekable.index.scanner import Scanner

_COMPRESSED = (".gz", ".zst", ".bz2", ".xz", ".lz4", ".zip")


@dataclass(frozen=True, slots=True)
class Format:
    """A format of data files."""

    name: str
    """What a user calls it: ``format="jsonl"``."""

    suffixes: tuple[str, ...]
    """How the names of its files end, in lower case."""

    scanner: Scanner
    """What finds the records in its files."""

    decode: str
    """How its records are decoded unless the user says otherwise."""


FORMATS = MappingProxyType(
    {
        form.name: form
        for form in (
            Format("jsonl", (".jsonl", ".ndjson", ".json"), JsonlScanner(), "json"),
            Format("text", (".txt",), TextScanner(), "text"),
        )
    }
)
"""All formats by name."""

SUFFIXES = tuple(suffix for form in FORMATS.values() for suffix in form.suffixes)
"""How names of data files end."""


def format_of(name: str) -> Format:
    """Return the format that a file's name tells of.

    Raises:
        UnsupportedFormat: it tells of none that is known.

    Example:
        >>> format_of("web/part-0001.JSONL").name
        'jsonl'
    """
    lower = name.lower()
    for form in FORMATS.values():
        if lower.endswith(form.suffixes):
            return form
    suffix = os.path.splitext(lower)[1]
    if suffix in _COMPRESSED:
        raise UnsupportedFormat(
            f"{name!r} is compressed by its name ({suffix}), and a compressed file has no cheap way to "
            f"its middle; decompress it once. Known suffixes: {', '.join(SUFFIXES)}"
        )
    raise UnsupportedFormat(
        f"{name!r} tells of no known format; known suffixes are {', '.join(SUFFIXES)}. "
        f"Say what it is with format=, one of {', '.join(map(repr, FORMATS))}"
    )


def format_named(name: str) -> Format:
    """Return the format that a user names with ``format=``.

    Raises:
        InvalidArgument: none has this name.
    """
    if name not in FORMATS:
        raise InvalidArgument(f"format must be one of {', '.join(map(repr, FORMATS))}; got {name!r}")
    return FORMATS[name]
