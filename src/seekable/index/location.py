"""The location of a record."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from seekable._html import facts, notebook_html, preformatted

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN_BYTES = 300
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How files of gzip and zstd begin."""


@dataclass(frozen=True, slots=True, repr=False)
class Location:
    """The file and the bytes of one record.

    Example:
        >>> where = Location("/data/a.jsonl", row=2, offset=40, length=12)
        >>> f"tail -c +{where.offset + 1} {where.path} | head -c {where.length}"
        'tail -c +41 /data/a.jsonl | head -c 12'
    """

    path: str
    """The absolute path of the file; of one on the Hugging Face Hub, its name there, ``hf://datasets/...``."""

    row: int
    """The record's number in that file, from 0."""

    offset: int
    """The first byte of the record in the file; in the content, if the file is compressed."""

    length: int
    """The number of bytes of the record, without the end of its line."""

    source: Location | None = None
    """Of a document of a token store, the location of the record that it was made of; its offset and length
    are 0 where no index of its file has them. None for all other records."""

    is_shared: bool = field(default=False, compare=False)
    """True if the bytes hold other records too: a row of a table has those of its group, an item of a record
    those of the record."""

    def __repr__(self) -> str:
        """Show the fields; ``source`` and ``is_shared`` only where they say something."""
        source = "" if self.source is None else f", source={self.source!r}"
        source += ", is_shared=True" if self.is_shared else ""
        place = f"row={self.row!r}, offset={self.offset!r}, length={self.length!r}"
        return f"{type(self).__name__}(path={self.path!r}, {place}{source})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the place, and the first bytes of a record of a local plain file."""
        return notebook_html(lambda: _parts(self), self)


def shared(place: Any) -> Any:
    """Return a place, nested as a record may be, whose bytes hold other records too."""
    if isinstance(place, list | tuple):
        return type(place)(map(shared, place))
    return replace(place, is_shared=True) if isinstance(place, Location) else place


def _parts(place: Location) -> Iterator[str]:
    bytes_of = f"{place.length:,} from byte {place.offset:,} on" if place.length else "not known"
    bytes_of += ", with other records" if place.is_shared else ""
    rows = [("file", place.path), ("record", f"{place.row:,}, from 0"), ("bytes", bytes_of)]
    if place.source is not None:
        rows.append(("made of", repr(place.source)))
    yield facts(rows)
    if (head := _head(place)) is not None:
        yield preformatted(head.decode("utf-8", "backslashreplace"))


def _head(place: Location) -> bytes | None:
    """Return the first bytes of a record; None where no plain file of this machine has them there."""
    if not place.length or place.is_shared or not os.path.isabs(place.path) or not os.path.isfile(place.path):
        return None
    with open(place.path, "rb") as file:
        if place.path.endswith((".gz", ".zst")) or file.read(4).startswith(_COMPRESSED):
            return None
        file.seek(place.offset)
        return file.read(min(place.length, _SHOWN_BYTES))
