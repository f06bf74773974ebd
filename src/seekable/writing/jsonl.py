"""Records as lines of JSON."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.storage.compression import COMPRESSED, WITH_HEADER, Compression, compression_of, inflated, zstd
from seekable.storage.recompress import write_frames
from seekable.writing.form import Form
from seekable.writing.json_text import Unencodable, json_text
from seekable.writing.misfit import Misfit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seekable.nodes.contract import Node

__all__ = ["JsonLines", "json_lines"]

_AT_ONCE = 1 << 20
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3


def json_lines(compression: object) -> JsonLines:
    """Return how files of JSON lines are written.

    Raises:
        InvalidArgument: there is no such compression.
        MissingDependency: zstandard is needed.
    """
    for known in (None, *COMPRESSED):
        if compression == known:
            if known == "zst":
                zstd()
            return JsonLines(known)
    message = f"compression must be {', '.join(map(repr, COMPRESSED))} or None (got {compression!r})"
    raise InvalidArgument(message)


@dataclass(frozen=True, slots=True)
class JsonLines(Form):
    """A line of JSON for each record."""

    compression: Compression | None

    name: ClassVar[str] = "jsonl"
    takes_tables: ClassVar[bool] = False

    @property
    def way_out(self) -> str:
        """What to do with values that JSON lacks."""
        return "make it what JSON has first, with map(); write_parquet() keeps more types"

    @property
    def suffix(self) -> str:
        """``.jsonl``, and that of the compression."""
        return ".jsonl" if self.compression is None else f".jsonl.{self.compression}"

    @property
    def options(self) -> dict[str, Any]:
        """The compression."""
        return {"compression": self.compression}

    def settled(self, dataset: Node, kept: str | None) -> tuple[Form, str | None]:
        """Return the form as it is: JSON needs to know nothing of other records."""
        return self, None

    def write(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write lines; compressed ones so that they can be read from any place."""
        pieces = _pieces(chunks)
        if self.compression == "zst":
            write_frames(file, pieces, level=_ZSTD_LEVEL)
        else:
            file.writelines(_gzipped(pieces) if self.compression == "gz" else pieces)

    def rows_in(self, path: str) -> int | None:
        """Count the lines; a file that is cut within one is damaged."""
        rows, last = 0, b"\n"
        try:
            with open(path, "rb", buffering=0) as file:
                chunks = iter(lambda: file.read(_AT_ONCE), b"")
                kind = compression_of(path)
                for piece in inflated(chunks, kind, path) if kind else chunks:
                    rows += piece.count(b"\n")
                    last = piece[-1:]
        except UnsupportedFormat:
            return None
        return rows if last == b"\n" else None


def _pieces(chunks: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    held = bytearray()
    for records in chunks:
        for place, record in enumerate(records):
            try:
                held += json_text(record)
            except Unencodable as error:
                raise Misfit(len(records) - place, str(error)) from None
            held += b"\n"
            if len(held) >= _AT_ONCE:
                yield bytes(held)
                held.clear()
    yield bytes(held)


def _gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    # Without a name and a time in its header, so that the same records make the same bytes.
    member = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, WITH_HEADER)
    for piece in pieces:
        yield member.compress(piece)
    yield member.flush()
