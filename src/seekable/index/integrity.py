"""The problems that ``verify`` finds, and the checks of an index by itself: catalog, segments and offsets."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import xxhash

from seekable.index.catalog import CATALOG, encode_catalog
from seekable.index.digest import digest_text
from seekable.index.location import shown_path
from seekable.index.offsets import hashed_units, keep_units, open_offsets
from seekable.index.sidecar_files import content_size
from seekable.storage.compression import compression_of
from seekable.storage.seek_points import points_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.file_table import Entry, FileTable, OffsetSegment


Kind = Literal["not indexed", "gone", "changed", "touched", "content", "offsets", "index", "record"]


@dataclass(frozen=True, slots=True)
class VerificationProblem:
    """A difference between data, index and what was indexed.

    Example:
        >>> VerificationProblem("changed", "/data/a.jsonl", "it has 3 bytes").offset is None
        True
    """

    kind: Kind
    """The kind of the problem: a file that is not indexed, is gone, has another size or time (and content, or
    only "touched"), has other content at the same size and time, offsets that are wrong, an index that is
    damaged, a record that cannot be decoded."""

    path: str
    """The absolute path of the file that is bad: a data file, or one of the index."""

    message: str
    """The message: what was expected, what was found, and what to do."""

    row: int | None = None
    """The first record that is known to be concerned, if one is."""

    offset: int | None = None
    """The first byte that is known to be concerned, if one is."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """A data file that exists, with its entry in the index."""

    root: str
    """The absolute folder that its name is relative to."""

    folder: str
    """The folder of the index."""

    row: int
    """The row of the file in the table of the index."""

    entry: Entry
    """The entry in the index."""

    size: int
    """The number of bytes now."""

    mtime_ns: int
    """When it was modified last."""

    remote_size: int | None = None
    """If it is a placeholder, the number of bytes of the file that it stands for; None for tables."""

    @property
    def bytes(self) -> int:
        """The number of bytes of data now."""
        return self.size if self.remote_size is None else self.remote_size

    @property
    def shown(self) -> str:
        """The name of the file in messages: its path, or its address on the Hub."""
        return shown_path(self.path)

    @property
    def path(self) -> str:
        """The absolute path of the file."""
        return os.path.join(self.root, self.entry.name)

    @property
    def segment(self) -> tuple[str, str]:
        """The segment and the index of its offsets."""
        return self.folder, self.entry.segment.file_name

    @property
    def difference(self) -> str | None:
        """The difference of size and time from those that were indexed, if any."""
        entry = self.entry
        if (self.size, self.mtime_ns) == (entry.size, entry.mtime_ns):
            return None
        return (
            f"it has {self.size:,} bytes, modified at {self.mtime_ns} ns, and was indexed with "
            f"{entry.size:,} bytes, modified at {entry.mtime_ns} ns"
        )


_OFFSETS_AT_ONCE = 1 << 20

_REMEDY = "remove {folder!r} and index again"


def check_catalog(folder: str, table: FileTable) -> VerificationProblem | None:
    """Compare ``catalog.json``, which other programs read, with the table that it names."""
    path = os.path.join(folder, CATALOG)
    with open(os.path.join(folder, table.file_name), "rb") as file:
        data = file.read()
    with open(path, "rb") as file:
        at = 0
        for part in encode_catalog(table.entries(), table=data):
            if file.read(len(part)) != part:
                message = f"its list of files is not that of the table, from about byte {at:,} on; {_REMEDY}"
                return VerificationProblem("index", path, message.format(folder=folder), offset=at)
            at += len(part)
    return None


def check_segment(folder: str, segment: OffsetSegment, *, files: int) -> VerificationProblem | None:
    """Return the problem of a segment that is gone or damaged; else make the digests of units that it lacks.

    Args:
        folder: the index folder.
        segment: the segment to check.
        files: the number of verified files whose offsets are in the segment.
    """
    path = os.path.join(folder, segment.file_name)
    what = f"the offsets of {files:,} of the files are in it; {_REMEDY.format(folder=folder)}"
    try:
        size, hasher = os.path.getsize(path), hashed_units(path)
    except FileNotFoundError:
        return VerificationProblem("index", path, f"it is not there, and {what}")
    except OSError as error:
        return VerificationProblem("index", path, f"it cannot be read ({error.strerror}), and {what}")
    if size != segment.bytes:
        offset = min(size, segment.bytes)
        return VerificationProblem(
            "index", path, f"it has {size:,} bytes instead of {segment.bytes:,}, and {what}", offset=offset
        )
    if hasher.whole() != segment.digest:
        return VerificationProblem(
            "index",
            path,
            f"its bytes are not those that were written: their digest is {hasher.whole():016x}, and {what}",
        )
    with contextlib.suppress(OSError):  # Another user's index is verified too.
        keep_units(path, hasher)
    return None


def check_offsets(file: Indexed, *, surveyed: bool = False) -> VerificationProblem | None:
    """Return the problem of a file whose offsets do not ascend, lie outside of it, or lack their digest.

    Args:
        file: the file.
        surveyed: True if the offsets are words of a surveyor, of which the first alone ascend.
    """
    entry, hasher, before = file.entry, xxhash.xxh3_64(), -1
    # A table's numbers are rows, and several groups may begin with the same one: those between have none.
    least = 0 if entry.schema else 1
    size = _indexed_size(file)
    if size is None:
        return _bad(
            file, f"{points_name(entry.content)}, the table of where it can be entered, is damaged or gone"
        )
    offsets = open_offsets(file.folder, entry.segment).array
    limit = np.iinfo(np.int64).max if surveyed else size
    last, stop = -1, entry.start + entry.numbers
    if stop > len(offsets):
        message = f"its offsets end after those of {entry.segment.file_name} in {file.folder!r}"
        return VerificationProblem("offsets", file.path, f"{message}; {_REMEDY.format(folder=file.folder)}")
    ascending = entry.start + (entry.records + 1 if surveyed else entry.numbers)
    for first in range(entry.start, stop, _OFFSETS_AT_ONCE):
        some = offsets[first : min(first + _OFFSETS_AT_ONCE, stop)]
        hasher.update(some.tobytes())
        checked = some[: max(ascending - first, 0)]
        wrong = _first_wrong(checked, before=before, size=limit, least=least)
        if wrong is not None:
            row = first - entry.start + wrong
            what, unit = ("group", "row") if entry.schema else ("record", "byte")
            at = int(some[wrong])
            message = (
                f"{what} {row:,} is indexed at {unit} {at:,}, which is before the {what} before it or after "
                f"the end of the file"
            )
            return _bad(file, message, row=None if entry.schema else row)
        before = int(checked[-1]) if len(checked) else before
        last = int(some[-1])
    if last != size:
        return _bad(
            file,
            f"the last {'row' if entry.schema else 'record'} is indexed to end at {last:,} of {size:,}",
            row=entry.records - 1,
        )
    if hasher.intdigest() != entry.offsets:
        return _bad(
            file,
            f"the digest of its offsets is {digest_text(hasher.intdigest())}, not "
            f"{digest_text(entry.offsets)}",
        )
    return None


def _indexed_size(file: Indexed) -> int | None:
    """Return where the last record must end: a row of a table, or a byte; None without its seek points."""
    if file.entry.schema:
        return file.entry.records
    if file.remote_size is None or compression_of(file.entry.name):
        return content_size(file.folder, file.entry)
    return file.remote_size


def _first_wrong(some: NDArray[np.uint64], *, before: int, size: int, least: int) -> int | None:
    """Return the index of the first offset that does not ascend, or lies after the end."""
    numbers = some.astype(np.int64)
    # The sentinel may equal the last start only in a file without a byte, which has no record.
    bad = np.diff(numbers, prepend=before) < least
    bad |= (numbers < 0) | (numbers > size)
    return int(np.argmax(bad)) if bad.any() else None


def _bad(file: Indexed, what: str, *, row: int | None = None) -> VerificationProblem:
    message = f"{what}: the index in {file.folder!r} is wrong; {_REMEDY.format(folder=file.folder)}"
    return VerificationProblem("offsets", file.path, message, row=row)
