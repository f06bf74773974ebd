"""Archives: the bytes at which their entries start, found by the headers of the objects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from seekable.errors import CorruptObject, CorruptTable, InvalidArgument, UnsupportedFormat
from seekable.formats.kaldi.chunk_cursor import ChunkCursor
from seekable.formats.kaldi.entry_reader import ENTRY
from seekable.formats.kaldi.holders.candidates import candidates_of
from seekable.formats.kaldi.holders.objects import ObjectHolder
from seekable.formats.kaldi.holders.registry import is_own
from seekable.formats.kaldi.objects.cursor import END_OF_FILE, MemoryCursor
from seekable.formats.kaldi.objects.tokens import TOKEN
from seekable.storage.first_bytes import check_compression, refuse_foreign

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.index.scanner import ByteSource

__all__ = ["ArchiveScanner"]

_SHOWN_BYTES = 24

_AT_ONCE = 1 << 16

_SPACES = b" \t\n\r\f\v"

_TORN_KEY = re.compile(TOKEN)


@dataclass(frozen=True, slots=True)
class ArchiveScanner:
    """Finds the entries of an archive, whose holder finds the end of an object.

    Bytes from which on no entry can be found, of a torn or damaged archive, are the last record, which cannot
    be read.
    """

    form: str = "ark"
    """The name of the format."""

    holder: Holder | None = None

    splittable: bool = False
    """False: where an entry starts is known from the one before it."""

    @property
    def name(self) -> str:
        """The name in the index: ``ark-`` and the name of the holder; of the user's own, a digest too."""
        if self.holder is None or is_own(self.holder):
            return self.form
        kind = self.holder.kind if isinstance(self.holder, ObjectHolder) else type(self.holder)
        digest = xxhash.xxh3_64_hexdigest(
            f"{self.holder.name} {kind.__module__}.{kind.__qualname__}".encode()
        )
        return f"ark-user-{digest}"

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first entry of a file.

        Raises:
            InvalidArgument: the archive has no holder.
            UnsupportedFormat: the first entry is not one of the holder.
        """
        check_compression(head, path)
        holder = self._holder()
        start = len(head) - len(head.lstrip(_SPACES))
        key = ENTRY.match(head, start)
        if key is None:
            refuse_foreign(head, path, what="an archive of Kaldi")
            if start < len(head) and not _TORN_KEY.fullmatch(head, start):
                shown = head[start : start + _SHOWN_BYTES]
                message = (
                    f"{path!r} is no archive: expected a key and a space at byte {start}, found {shown!r}"
                )
                raise UnsupportedFormat(message)
            return
        cursor = MemoryCursor(head, name=path, key=str(key[1], "utf-8", "replace"), position=key.end())
        try:
            holder.skip(cursor)
        except CorruptTable as error:
            # An object may be longer than these first bytes, or be torn: then it is an error when it is read.
            is_cut = isinstance(error, CorruptObject) and END_OF_FILE in error.found
            if not is_cut:
                names = [name for name in candidates_of(head[key.end() :]) if name != holder.name]
                hint = f"; it looks like {' or '.join(names)}" if names else ""
                message = f"{path!r} is no archive of the holder {holder.name!r}{hint}: {error}"
                raise UnsupportedFormat(message) from error

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return the offsets of the keys, uint64."""
        holder, cursor = self._holder(), ChunkCursor(source)
        starts: list[int] = []
        found: list[NDArray[np.uint64]] = []
        while (start := cursor.next_entry()) is not None:
            starts.append(start)
            if not cursor.skip_key() or not _skip(holder, cursor):
                break
            if len(starts) == _AT_ONCE:
                found.append(np.array(starts, np.uint64))
                starts.clear()
        cursor.finish()
        return np.concatenate([*found, np.array(starts, np.uint64)])

    def _holder(self) -> Holder:
        if self.holder is None:
            raise InvalidArgument(
                "an archive needs a holder: say sk.formats.Kaldi(holder=...), "
                "or format='ark-matrix' and the like"
            )
        return self.holder


def _skip(holder: Holder, cursor: Any) -> bool:
    """Move past an object; return False if none is there."""
    try:
        holder.skip(cursor)
    except CorruptTable:
        return False
    return True
