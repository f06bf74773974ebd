"""Key indexes: the rows of the records that have a key, by the hashes of the keys.

``keys-<digest>.u64`` holds, as little-endian uint64, the sorted hashes of all keys and then the row of each,
16 bytes a record; it is named by the xxh3_64 of its bytes. Rows count over the files in their order.

``keys-<digest>.json`` is its header, named by the digest of that. It is written last, and so decides. Its
first line, up to ``"files": [``, holds all that a reader needs; the files follow, one a line. Names are for
people, and tell which files are gone; content and record counts decide.

`seekable.nodes.key` makes the hashes, and compares the real keys. The keys of files that have not
changed are taken over from older key indexes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from bisect import bisect_left
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from seekable._cached import cached
from seekable.errors import IndexStale
from seekable.index.catalog import read_table
from seekable.index.digest import digest_text
from seekable.index.index_location import find_index
from seekable.index.offsets import UNIT_SHIFT, UnitHasher, damaged_error, keep_units, open_units
from seekable.storage.files import read_or_map, regular_only, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from seekable.index.file_table import FileTable
    from seekable.index.fileset import FileSet
    from seekable.index.offsets import Units

    Int64s = NDArray[np.int64]
    UInt64s = NDArray[np.uint64]
    Bools = NDArray[np.bool_]

_PAIR_BYTES = 16
"""The bytes of a key: its hash and its row."""

_WORD = np.dtype("<u8")
_ROWS_AT_ONCE = 1 << 20
_GRACE_SECONDS = 3600

_SCHEMA = 1
_HEAD_END = b', "files": [\n'
_END = b"\n]}\n"
_OURS = re.compile(r"keys-[0-9a-f]{16}\.json")
_PAIRS = re.compile(r"(keys-[0-9a-f]{16})\.(?:u64|units|part)")


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """Files in the order of their records, and the way in which the keys are made."""

    made: dict[str, Any]
    """The scanner, the decoder, and the field or function; JSON-safe."""

    contents: tuple[str, ...]
    """The digest of all of each file."""

    records: NDArray[np.int64]
    """The number of records of each file."""

    @classmethod
    def of(cls, files: FileSet, made: dict[str, Any]) -> Keyed:
        """Return the files of a set, as a key index describes them."""
        return cls(made, tuple(map(digest_text, files.contents.tolist())), files.records)

    @property
    def name(self) -> str:
        """The name of the index, without suffix."""
        hasher = xxhash.xxh3_64(json.dumps(self.made, sort_keys=True).encode())
        hasher.update("".join(self.contents).encode())
        hasher.update(self.records.astype("<i8").tobytes())
        return f"keys-{hasher.hexdigest()}"

    @property
    def starts(self) -> NDArray[np.int64]:
        """The number of records before each file; a last element is the number of all records."""
        starts: NDArray[np.int64] = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.records)])
        return starts


@dataclass(frozen=True, slots=True)
class KeyHeader:
    """The header of a key index, as its description begins."""

    seekable_keys: int
    """The version of the format."""

    pairs: str
    """The name of the file of hashes and rows."""

    keys: int
    """The number of keys."""

    made: dict[str, Any]
    """The way in which the keys are made."""

    duplicates: dict[str, Any] | None
    """The examples of keys that several records have."""


@dataclass(frozen=True, slots=True)
class KeyedFile:
    """A file of a key index."""

    root: int
    """The index of its root; 0 for the root of the index folder."""

    name: str
    """The path of the file, relative to its root."""

    content: str
    """The digest of all of it."""

    records: int
    """The number of records of the file."""


def keys_of_entries(format_name: str) -> dict[str, Any]:
    """Return, for `Keyed`, how the keys of entries are made: they stand in Kaldi's tables.

    Args:
        format_name: the name of the format in the index.
    """
    return {"scanned_as": format_name, "key": "whole entry"}


def keys_of_samples(format_name: str) -> dict[str, Any]:
    """Return, for `Keyed`, how samples get their keys: from the names of members in tar files.

    Args:
        format_name: the name of the format in the index.
    """
    return {"scanned_as": format_name, "key": "sample"}


def _encode_description(
    files: FileSet, keyed: Keyed, *, pairs: str, keys: int, duplicates: dict[str, Any] | None
) -> Iterator[bytes]:
    """Yield the bytes of a description."""
    head = {
        "seekable_keys": _SCHEMA,
        "pairs": pairs,
        "keys": keys,
        "made": keyed.made,
        "duplicates": duplicates,
    }
    # Python's own JSON here and below, because keys and names may have lone surrogates.
    yield json.dumps(head).removesuffix("}").encode() + _HEAD_END
    roots: dict[str, int] = {}
    numbers = (
        number for root, _, count in files.runs for number in [roots.setdefault(root, len(roots))] * count
    )
    for i, (root, content, records) in enumerate(
        zip(numbers, keyed.contents, keyed.records.tolist(), strict=True)
    ):
        line = {"root": root, "name": files.name(i), "content": content, "records": records}
        yield (b",\n" if i else b"") + json.dumps(line).encode()
    yield _END


def read_head(path: str) -> KeyHeader | None:
    """Return the head of a description, None if there is none that is whole and of this version."""
    try:
        with open(path, "rb", opener=regular_only) as file:
            data = file.read()
        head = KeyHeader(**json.loads(data[: data.index(_HEAD_END)] + b"}"))
    except (OSError, ValueError, TypeError):
        return None
    return head if head.seekable_keys == _SCHEMA and data.endswith(_END) else None


def read_files(path: str) -> tuple[KeyedFile, ...] | None:
    """Return the files of a description, None if it does not list them."""
    try:
        with open(path, "rb", opener=regular_only) as file:
            return tuple(KeyedFile(**described) for described in json.load(file)["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def descriptions(folder: str) -> list[str]:
    """Return the paths of the descriptions in an index folder, the newest first."""
    try:
        with os.scandir(folder) as files:
            found = [(file.stat().st_mtime_ns, file.path) for file in files if _OURS.fullmatch(file.name)]
    except OSError:
        return []
    return [path for _, path in sorted(found, reverse=True)]


class KeyIndex:
    """Sorted hashes and their rows, memory-mapped; never changed, safe from threads and after fork."""

    def __init__(self, path: str, count: int, records: int, duplicates: dict[str, Any] | None) -> None:
        """Take the pairs of a file, which is opened at first use."""
        self.path = path
        """The absolute path of the pairs."""
        self.count = count
        """The number of keys; a key of two records counts twice."""
        self.records = records
        """The number of records; those that cannot be read have no key."""
        self.duplicates = duplicates
        """Examples of keys that several records have; None if each record has its own."""
        self._opened: memoryview | None = None
        self._units: Units | None = None
        # Eight standard deviations, at least: next to no hash is further from where it is expected.
        self._spread = 4 * isqrt(count) + 1

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyIndex, (self.path, self.count, self.records, self.duplicates)

    @property
    def is_whole(self) -> bool:
        """True if each record has a key, and no other record has it."""
        return self.count == self.records and self.duplicates is None

    @cached
    def row_without_key(self) -> int | None:
        """The first row whose record has no key; None if each has one.

        Raises:
            IndexStale: the file is gone.
        """
        if self.count == self.records:
            return None
        rows = np.frombuffer(self._opened or self._open(), np.int64)[self.count :]
        has_key = np.zeros(self.records, np.bool_)
        has_key[rows] = True
        return int(has_key.argmin())

    def rows(self, hashed: int) -> list[int]:
        """Return the rows whose keys have a hash, ascending.

        Raises:
            IndexStale: the file is gone or damaged.
        """
        pairs = self._opened or self._open()
        count = self.count
        # Hashes are spread evenly, so where one must be is known to within a few pages of the file.
        guess = hashed * count >> 64
        low, high = max(guess - self._spread, 0), min(guess + self._spread, count)
        if (low and pairs[low - 1] >= hashed) or (high < count and pairs[high] < hashed):
            low, high = 0, count
        at = bisect_left(pairs, hashed, low, high)
        # Where these two are as they were written, no other place can have the hash, whatever led here.
        for near in (at - 1, at):
            if 0 <= near < count:
                self._compare(near)
        found = []
        while at < count and pairs[at] == hashed:
            self._compare(at)
            self._compare(count + at)
            found.append(pairs[count + at])
            at += 1
        return found

    def _compare(self, at: int) -> None:
        """Compare the unit of a number with its digest, if it was not."""
        if self._units is not None and not self._units.compared[at >> UNIT_SHIFT]:
            self._units.compare(at >> UNIT_SHIFT)

    def _open(self) -> memoryview:
        if not self.count:
            self._opened = memoryview(b"").cast("Q")
            return self._opened
        try:
            data = read_or_map(self.path, size=self.count * _PAIR_BYTES)
        except FileNotFoundError:
            message = f"the key index {self.path!r} is gone or was cut; open the dataset again to build it"
            raise IndexStale(message) from None
        digest = int(os.path.basename(self.path)[len("keys-") : -len(".u64")], 16)
        if isinstance(data, memoryview):
            self._units = open_units(self.path, data, digest)
        elif xxhash.xxh3_64_intdigest(data) != digest:
            raise damaged_error(self.path, "the key index, is damaged: it has other bytes than were written")
        self._opened = memoryview(data).cast("Q")
        return self._opened


def places(files: FileSet, *, index_dir: str | os.PathLike[str] | None) -> tuple[str, ...]:
    """Return the folders that a key index over some files may be in; the last is where it is written."""
    root, _, _ = files.runs[0]
    place = find_index(root, index_dir=index_dir)
    return (place.folder,) if place.shared is None else (place.shared, place.folder)


def lock_of(folder: str) -> str:
    """Return the lock file that is held while a key index is built in a folder."""
    return os.path.join(folder, "keys.lock")


def read_keys(folder: str, keyed: Keyed) -> KeyIndex | None:
    """Return the key index of some files, None if there is none that is whole."""
    head = read_head(os.path.join(folder, f"{keyed.name}.json"))
    if head is None or head.made != keyed.made:
        return None
    return open_pairs(folder, head, records=int(keyed.records.sum()))


def open_pairs(folder: str, head: KeyHeader, *, records: int) -> KeyIndex | None:
    """Return the key index that a description names, None if it cannot be read or is longer or shorter.

    Args:
        folder: the index folder.
        head: the header of the index.
        records: the number of records of its files.
    """
    path = os.path.join(folder, head.pairs)
    try:
        whole = os.path.getsize(path) == head.keys * _PAIR_BYTES and os.access(path, os.R_OK)
    except FileNotFoundError:
        return None
    return KeyIndex(path, head.keys, records, head.duplicates) if whole else None


def write_keys(
    folder: str,
    files: FileSet,
    keyed: Keyed,
    pairs: tuple[NDArray[np.uint64], NDArray[np.int64]],
    *,
    duplicates: dict[str, Any] | None,
) -> KeyIndex:
    """Write a key index; the caller holds the folder's lock.

    Args:
        folder: the index folder.
        files: the files.
        keyed: the description of the files and of the way in which the keys are made.
        pairs: the hashes of all keys, sorted, and the row of each.
        duplicates: examples of keys that several records have, JSON-safe.
    """
    parts = [column.astype(_WORD, copy=False).view("u1").data for column in pairs]
    hasher = UnitHasher()
    for part in parts:
        hasher.update(part)
    name, count = f"keys-{hasher.whole():016x}.u64", len(pairs[0])
    keep_units(os.path.join(folder, name), hasher)
    write_atomically(os.path.join(folder, name), parts)
    description = _encode_description(files, keyed, pairs=name, keys=count, duplicates=duplicates)
    write_atomically(os.path.join(folder, f"{keyed.name}.json"), description)
    _remove_garbage(folder, of=files.runs[0][1])
    return KeyIndex(os.path.join(folder, name), count, int(keyed.records.sum()), duplicates)


def _remove_garbage(folder: str, *, of: str) -> None:
    """Remove indexes of files that are not as they were, and pairs that nothing has named for an hour.

    Args:
        folder: where the key indexes are.
        of: the index folder of the files, which is another one where that cannot be written.
    """
    table = read_table(of)
    if table is None:
        return
    named = set()
    for path in descriptions(folder):
        head, files = read_head(path), read_files(path)
        if head and files is not None and _present(files, table, str(head.made.get("scanned_as"))):
            named.add(head.pairs)
            continue
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.unlink(path)
            if head:
                os.utime(os.path.join(folder, head.pairs))  # Its hour begins now.
    oldest = time.time() - _GRACE_SECONDS
    with os.scandir(folder) as found:
        for file in found:
            pairs = _PAIRS.fullmatch(file.name)
            if pairs and f"{pairs[1]}.u64" not in named and file.stat().st_mtime < oldest:
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    os.unlink(file.path)


def _present(files: tuple[KeyedFile, ...], table: FileTable, format_name: str) -> bool:
    """Return True if an index folder has the files of a key index at its root, as they were."""
    own = [file for file in files if file.root == 0]
    rows = table.rows([file.name for file in own], format_name=format_name)
    return all(
        row >= 0 and digest_text(table.digest("content", row)) == file.content
        for row, file in zip(rows.tolist(), own, strict=True)
    )


def known_hashes(folders: Iterable[str], keyed: Keyed) -> tuple[UInt64s, Bools, Bools]:
    """Return the hashes of keys that older indexes hold, so that files are not read again.

    Returns:
        The hash of each row, which of the rows have a key, and which of the files are known.
    """
    starts = keyed.starts
    hashes, has_key = np.zeros(starts[-1], np.uint64), np.zeros(starts[-1], np.bool_)
    identities = list(zip(keyed.contents, keyed.records.tolist(), strict=True))
    wanted: dict[tuple[str, int], list[int]] = {}
    for number, identity in enumerate(identities):
        wanted.setdefault(identity, []).append(number)
    known: dict[tuple[str, int], int] = {}
    for files, index in _others(folders, keyed.made):
        shifts = np.full(len(files), -1, np.int64)
        for number, file in enumerate(files):
            identity = file.content, file.records
            if identity in wanted and identity not in known:
                known[identity] = wanted[identity][0]
                shifts[number] = starts[known[identity]]
        if (shifts >= 0).any():
            ends = np.cumsum([file.records for file in files])
            _take_over(index, ends, shifts, hashes=hashes, has_key=has_key)
    for identity, first in known.items():
        own = slice(starts[first], starts[first + 1])
        for number in wanted[identity][1:]:
            copy = slice(starts[number], starts[number + 1])
            hashes[copy], has_key[copy] = hashes[own], has_key[own]
    return hashes, has_key, np.array([identity in known for identity in identities], dtype=np.bool_)


def _others(folders: Iterable[str], made: dict[str, Any]) -> Iterator[tuple[tuple[KeyedFile, ...], KeyIndex]]:
    """Yield the key indexes, over any files, whose keys are made in this way."""
    for folder in folders:
        for path in descriptions(folder):
            head = read_head(path)
            if head is None or head.made != made:
                continue
            files = read_files(path)
            if files is None:
                continue
            records = sum(file.records for file in files)
            if (index := open_pairs(os.path.dirname(path), head, records=records)) is not None:
                yield files, index


def _take_over(index: KeyIndex, ends: Int64s, shifts: Int64s, *, hashes: UInt64s, has_key: Bools) -> None:
    """Move the hashes in an older index to where its rows are now; a shift by -1 drops a file."""
    if not index.count:
        return
    pairs = np.memmap(index.path, _WORD, "r", shape=(2, index.count))
    for start in range(0, index.count, _ROWS_AT_ONCE):
        some, rows = (
            pairs[0, start : start + _ROWS_AT_ONCE],
            pairs[1, start : start + _ROWS_AT_ONCE].view("<i8"),
        )
        files = np.searchsorted(ends, rows, side="right")
        before = np.where(files, ends[files - 1], 0)
        wanted = shifts[files] >= 0
        at = (rows - before + shifts[files])[wanted]
        hashes[at], has_key[at] = some[wanted], True
