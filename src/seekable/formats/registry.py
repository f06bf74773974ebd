"""Which formats there are, and which one a file's name tells of."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.arrow import ArrowFormat
from seekable.formats.csv import CsvScanner
from seekable.formats.huggingface import data_files
from seekable.formats.jsonl import JsonlScanner
from seekable.formats.parquet.form import ParquetFormat
from seekable.formats.text import TextScanner
from seekable.storage.compression import COMPRESSED, uncompressed_name
from seekable.storage.listing import find_files

if TYPE_CHECKING:
    from seekable.formats.table import TableFormat
    from seekable.index.scanner import Scanner
    from seekable.storage.listing import Asked, Found

_NO_WAY_IN = (".bz2", ".xz", ".lz4", ".zip")


@dataclass(frozen=True, slots=True)
class Format:
    """A format of data files."""

    name: str
    """What a user calls it: ``format="jsonl"``."""

    suffixes: tuple[str, ...]
    """How the names of its files end, in lower case."""

    scanner: Scanner | TableFormat
    """What finds the records in its files; of tables, what reads them too."""

    decode: str
    """How its records are decoded unless the user says otherwise."""

    compressible: bool = False
    """Whether files of it may be compressed as a whole, and end with ``.gz`` or ``.zst``."""


FORMATS = MappingProxyType(
    {
        form.name: form
        for form in (
            Format("jsonl", (".jsonl", ".ndjson", ".json"), JsonlScanner(), "json", compressible=True),
            Format("text", (".txt",), TextScanner(), "text", compressible=True),
            Format("csv", (".csv",), CsvScanner("csv"), "csv", compressible=True),
            Format("tsv", (".tsv",), CsvScanner("tsv"), "tsv", compressible=True),
            Format("csv-semicolon", (), CsvScanner("csv-semicolon"), "csv-semicolon", compressible=True),
            Format("parquet", (".parquet", ".pq"), ParquetFormat(), "python"),
            Format("arrow", (".arrow", ".feather", ".ipc"), ArrowFormat(), "python"),
        )
    }
)
"""All formats by name."""

SUFFIXES = tuple(
    suffix + more
    for form in FORMATS.values()
    for suffix in form.suffixes
    for more in ("", *(f".{kind}" for kind in COMPRESSED if form.compressible))
)
"""How names of data files end."""


def find_data(asked: Asked) -> tuple[Found, ...]:
    """Return the data files that are meant by a path, a folder, a glob, or a list of those.

    Raises:
        DataNotFound: nothing is there, or no file is.
        AccessDenied: this user may not look there.
        UnsupportedFormat: a folder holds several datasets, of which one has to be asked for.
        WrongType: something that is neither a path nor a list of paths.
    """
    return find_files(asked, suffixes=SUFFIXES, arrange=data_files)


def format_of(name: str) -> Format:
    """Return the format that a file's name tells of.

    Raises:
        UnsupportedFormat: it tells of none that is known.

    Example:
        >>> format_of("web/part-0001.JSONL").name
        'jsonl'
        >>> format_of("web/part-0001.txt.gz").name
        'text'
    """
    lower = name.lower()
    content = uncompressed_name(lower)
    for form in FORMATS.values():
        if lower.endswith(form.suffixes) or (form.compressible and content.endswith(form.suffixes)):
            return form
    suffix = os.path.splitext(lower)[1]
    if suffix in _NO_WAY_IN:
        raise UnsupportedFormat(
            f"{name!r} is compressed by its name ({suffix}), and such a file has no cheap way to its "
            f"middle; decompress it once, or compress it with gzip or zstd. Known suffixes: "
            f"{', '.join(SUFFIXES)}"
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
