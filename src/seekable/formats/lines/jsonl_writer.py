"""Files of JSON lines, plain or compressed, and the text of one record."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self

import msgspec
import numpy as np

from seekable.errors import UnsupportedFormat
from seekable.formats.file_format import FileFormat, UnwritableRecord
from seekable.formats.table import card_named
from seekable.writing.encoded_pieces import (
    checked_compression,
    one_file_compression,
    open_pieces,
    read_pieces,
    write_pieces,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable.storage.compression import Compression


__all__ = ["JsonLines", "Unencodable", "json_lines", "json_text"]


_PLAIN = frozenset({str, int, bool, type(None)})

_JUST_STR = {str}

_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (dict, dict),
    (list, list),
    (tuple, list),
    (str, str.__str__),  # that of an Enum would be its name
    (int, int),
    (float, float),
)
"""The types whose subclasses are written like the type, each with the function that makes a plain value."""


class Unencodable(Exception):
    """A value that JSON cannot hold; the message has its path in the record."""


def json_text(record: Any) -> bytes:
    r"""Return a record as one line of JSON, without the line end.

    Tuples and arrays of numpy become lists, and numbers of numpy become Python's.

    Raises:
        Unencodable: the record has a value that JSON cannot hold.

    Example:
        >>> json_text({"text": "ä", "tokens": np.array([1, 2])})
        b'{"text":"\xc3\xa4","tokens":[1,2]}'
    """
    try:
        encodable = _checked(record, ())
        try:
            return msgspec.json.encode(encodable)
        except UnicodeEncodeError:
            # A lone surrogate is not UTF-8, but JSON can escape it.
            return json.dumps(encodable, separators=(",", ":"), allow_nan=False).encode()
    except RecursionError:
        raise Unencodable("the record holds itself, or is nested too deep") from None


def _checked(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return a value in a form that msgspec writes exactly; mostly the value itself."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        raise Unencodable(f"{_at(path)} is {value}, and JSON has no such number")
    if kind is dict:
        return _checked_dict(value, path)
    if kind is list or kind is tuple:
        return _checked_list(value, path)
    return _checked_other(value, path)


def _checked_dict(value: dict[Any, Any], path: tuple[str | int, ...]) -> dict[Any, Any]:
    if value and set(map(type, value)) != _JUST_STR:
        for name in value:
            if not isinstance(name, str):
                raise Unencodable(
                    f"{_at(path)} has the name {name!r} of type {type(name).__name__}, and in JSON names are "
                    f"strings"
                )
        value = {str.__str__(name): held for name, held in value.items()}
    if set(map(type, value.values())) <= _PLAIN:
        return value
    changed = {}
    for name, held in value.items():
        kind = type(held)
        if kind not in _PLAIN and (checked := _checked(held, (*path, name))) is not held:
            changed[name] = checked
    return {**value, **changed} if changed else value


def _checked_list(value: Any, path: tuple[str | int, ...]) -> Any:
    kinds = set(map(type, value))
    if kinds <= _PLAIN or (kinds == {float} and all(map(math.isfinite, value))):
        return value
    checked = [_checked(held, (*path, place)) for place, held in enumerate(value)]
    return checked if any(new is not old for new, old in zip(checked, value, strict=True)) else value


def _checked_other(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return a value of a further type as a value that JSON can hold."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO":
        return _checked(value.tolist(), path)
    # A longdouble has more digits than Python's float, and ``item`` returns it unchanged: an error.
    if isinstance(value, np.bool_ | np.integer | np.floating) and not isinstance(value, np.longdouble):
        return _checked(value.item(), path)
    for base, plain in _BASES:
        if isinstance(value, base):
            return _checked(plain(value), path)
    raise Unencodable(f"{_at(path)} is of type {type(value).__name__}, which JSON lacks")


def _at(path: tuple[str | int, ...]) -> str:
    """Return the path of a value in its record, in words.

    Example:
        >>> _at(("meta", "times", 3)), _at(())
        ("the value at ['meta']['times'][3]", 'the record')
    """
    return "the value at " + "".join(f"[{step!r}]" for step in path) if path else "the record"


_AT_ONCE = 1 << 20


def json_lines(*, compression: str | None = None) -> JsonLines:
    """Return the format of JSON lines, plain or compressed.

    Args:
        compression: ``"gz"``, ``"zst"``, or None.

    Raises:
        InvalidArgument: ``compression`` is something else.
        MissingDependency: ``compression`` is ``"zst"``, and zstandard is not installed.
    """
    return JsonLines(checked_compression(compression))


@dataclass(frozen=True, slots=True)
class JsonLines(FileFormat):
    """The format of JSON lines: one line of JSON for each record."""

    compression: Compression | None

    name: ClassVar[str] = "jsonl"

    @property
    def way_out(self) -> str:
        """The advice for a value that JSON cannot hold."""
        return "make it what JSON has first, with map(); write_parquet() keeps more types"

    @property
    def suffix(self) -> str:
        """The suffix: ``.jsonl``, ``.jsonl.gz`` or ``.jsonl.zst``."""
        return ".jsonl" if self.compression is None else f".jsonl.{self.compression}"

    @property
    def options(self) -> dict[str, Any]:
        """The compression, as the user gave it."""
        return {"compression": self.compression}

    def of_one_file(self, name: str) -> Self:
        """Return the format with the compression of the suffix, ``.jsonl.gz`` or ``.jsonl.zst`` or none."""
        suffixes = card_named("jsonl").suffixes
        content = "a file of JSON lines"
        return type(self)(one_file_compression(name, self.compression, suffixes=suffixes, content=content))

    def write(
        self, file: BinaryIO, chunks: Iterator[Any], *, first: int, beside: Sequence[BinaryIO] = ()
    ) -> None:
        """Write one line for each record; a compressed file has many members or frames, for random access."""
        write_pieces(file, _pieces(chunks), self.compression)

    def write_piece(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write one line for each record, not compressed."""
        file.writelines(_pieces(chunks))

    def merged(self, pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        """Yield the lines of pieces."""
        with open_pieces(pieces) as files:
            following = [file.__next__ for file in files]
            for turn in turns:
                yield EncodedLines([following[number]() for number in turn.tolist()])

    def rows_in(self, path: str, *, beside: Sequence[str] = ()) -> int | None:
        """Return the number of lines, None for a file that ends in the middle of a line."""
        rows, last = 0, b"\n"
        try:
            for piece in read_pieces(path):
                rows += piece.count(b"\n")
                last = piece[-1:]
        except UnsupportedFormat:
            return None
        return rows if last == b"\n" else None


@dataclass(frozen=True, slots=True)
class EncodedLines:
    """Records that are encoded already."""

    lines: Sequence[bytes]
    """One line for each record, with its line end."""


def _pieces(chunks: Iterable[Sequence[Any] | EncodedLines]) -> Iterator[bytes]:
    """Yield the lines of records, about 1 MiB at a time; where pieces end depends on the lines alone."""
    held = bytearray()
    for chunk in chunks:
        for line in chunk.lines if isinstance(chunk, EncodedLines) else _lines(chunk):
            held += line
            if len(held) >= _AT_ONCE:
                yield bytes(held)
                held.clear()
    yield bytes(held)


def _lines(records: Sequence[Any]) -> Iterator[bytes]:
    for place, record in enumerate(records):
        try:
            yield json_text(record) + b"\n"
        except Unencodable as error:
            raise UnwritableRecord(len(records) - place, str(error)) from None
