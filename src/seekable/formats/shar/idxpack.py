"""Packs of Lhotse's indexes: the offsets of many files in one, ``corpus.idxpack``."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable._cached import cached
from seekable.formats.shar.idxpack_tables import Collection, read_tables, refuse
from seekable.formats.shar.lhotse_index import NUMBERS, consecutive_ranges
from seekable.index.finder import ALWAYS_NS, OtherOffsets
from seekable.storage import paths
from seekable.storage.files import read_or_map, unreadable_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["SUFFIX", "Collection", "Pack", "PackedOffsets", "pack_over", "read_pack"]

SUFFIX = ".idxpack"
"""The end of the name of a pack."""


@dataclass(frozen=True, eq=False)
class Pack:
    """A pack whose catalog was checked; payloads are checked when they are used."""

    path: str
    """The path of the pack."""

    data: memoryview
    """All of it, memory-mapped unless it is small."""

    made_ns: int
    """The time at which it was last written, in nanoseconds; `ALWAYS_NS` in a store."""

    collections: tuple[Collection, ...]
    segments: NDArray[np.void]
    """The table of segments."""

    texts: tuple[str, ...]
    """The path of each segment."""

    @cached
    def numbers(self) -> Mapping[str, int]:
        """The segments that have offsets, by the absolute paths of their files."""
        found = enumerate(zip(self.texts, self.segments["flags"].tolist(), strict=True))
        return {self.located(text): number for number, (text, flags) in found if not flags}

    def located(self, text: str) -> str:
        """Return the absolute path of a file: below the working folder, else below that of the pack."""
        path = paths.absolute(text)
        if "://" in path:
            return path
        beside = os.path.join(os.path.dirname(paths.absolute(self.path)), text)
        if "://" in beside:
            return path if os.path.lexists(path) else beside
        return beside if not os.path.lexists(path) and os.path.lexists(beside) else path

    def offsets(self, segment: int) -> NDArray[np.uint64]:
        """Return the first bytes of the records of one file, and the size of the file, uint64.

        Raises:
            UnsupportedFormat: they are damaged; the message names the byte.
        """
        row, of = self.segments[segment], f"the offsets of {self.texts[segment]!r}"
        begin, count = int(row["payload"]), int(row["bytes"])
        payload = self.data[begin : begin + count]
        if (crc := zlib.crc32(payload)) != (wanted := int(row["crc"])):
            refuse(self.path, begin, f"{of} have the CRC-32 {crc:#x}, not {wanted:#x}")
        bounds = np.frombuffer(payload, NUMBERS)
        descending = np.flatnonzero(bounds[1:] < bounds[:-1])
        if descending.size:
            at = int(descending[0]) + 1
            found = f"{of} descend: {bounds[at]} behind {bounds[at - 1]}"
            refuse(self.path, begin + at * NUMBERS.itemsize, found)
        if (last := int(bounds[-1])) != (size := int(row["size"])):
            refuse(self.path, begin + count - NUMBERS.itemsize, f"{of} end with {last:,}, not with {size:,}")
        return bounds


@dataclass(frozen=True, slots=True)
class PackedOffsets:
    """The files of a pack below a folder; an `OtherIndex`."""

    pack: Pack
    folder: str

    @property
    def label(self) -> str:
        """The name of the pack in messages."""
        return f"the pack {self.pack.path!r}"

    def find(self, name: str) -> OtherOffsets | None:
        """Return the lines of a file; None if the pack has no offsets of it.

        Raises:
            UnsupportedFormat: its offsets are damaged.
        """
        segment = self.pack.numbers.get(os.path.join(self.folder, name))
        if segment is None:
            return None
        return OtherOffsets(self.pack.made_ns, iter([consecutive_ranges(self.pack.offsets(segment))]))


def pack_over(folder: str, _names: Sequence[str], named: str) -> PackedOffsets:
    """Return the offsets that a pack has of the files below a folder; a `FindIndex`.

    Raises:
        DataNotFound: the pack is not there.
        UnsupportedFormat: it is damaged.
    """
    return PackedOffsets(read_pack(named), folder)


def read_pack(path: str) -> Pack:
    """Return a pack, after a check of its catalog.

    Raises:
        DataNotFound: there is no such file.
        AccessDenied: this user may not read it.
        UnsupportedFormat: it is no pack, one of another version, or damaged; the message names the byte.
    """
    status = paths.status(path)
    if "://" in path:
        data = memoryview(paths.read_bytes(path))
    else:
        try:
            data = memoryview(read_or_map(path))
        except PermissionError:
            raise unreadable_error(path) from None
    tables = read_tables(path, data)
    texts = tables.texts()
    collections = tuple(tables.collections(texts))
    tables.check_layout(collections)
    made_ns = ALWAYS_NS if "://" in path else status.mtime_ns
    return Pack(path, tables.data, made_ns, collections, tables.segments, texts)
