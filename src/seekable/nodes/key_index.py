"""The index of the keys of a source: built once by reading all records, then opened.

Keys that several records share are found when the index is built; each opening warns of them.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import BadKey, WrongType
from seekable.index.build.commit import make_folder
from seekable.index.digest import key_hash
from seekable.index.key_files import Keyed, known_hashes, lock_of, places, read_keys, write_keys
from seekable.nodes.cluster_files import check_seen
from seekable.nodes.display import add_place
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.hole import HOLE
from seekable.nodes.key import Keys, entry_key, is_key, key_in, source_of_keys
from seekable.nodes.readahead import read_rows
from seekable.parallel.finished_ranges import FinishedRanges
from seekable.parallel.map_ranges import map_ranges
from seekable.parallel.progress import watched
from seekable.state.functions import code_digest, describe_function, python_version
from seekable.storage.files import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.index.key_files import KeyIndex
    from seekable.nodes.files.leaf import FilesLeaf, OwnKeys
    from seekable.nodes.key import KeyOf
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressHook

    UInt64s = NDArray[np.uint64]
    Bools = NDArray[np.bool_]

__all__ = ["duplicates_message", "find_duplicates", "open_keys"]

_MOST_READ = 100_000
"""The number of records that are read to compare keys with equal hashes. Above it nearly all keys with equal
hashes are equal, so the hashes alone decide."""

_MOST_KEYS = 5
_MOST_ROWS = 10


def open_keys(
    source: FilesLeaf,
    of: KeyOf,
    *,
    index_dir: str | os.PathLike[str] | None,
    using: ExecutionOptions,
    progress: ProgressHook | None,
) -> Keys:
    """Return the keys of a source; build their index first if there is none.

    Args:
        source: the source of the records.
        of: the field or function that gives a record's key.
        index_dir: the folder for indexes, the argument of `seekable.open`.
        using: the processes or executor that read the records.
        progress: called with the number of records read so far.

    Raises:
        BadKey: a record has no key.
        WrongType: ``of`` is neither a name nor a function.
        InvalidArgument: a function cannot be described without ``version``.
    """
    if not (isinstance(of, str) or callable(of)):
        message = f"key must be the name of a field or a function of the record (got {of!r})"
        raise WrongType(message)
    keyed = Keyed.of(source.files, _made(source, of))
    source = source_of_keys(source, of)
    folders = places(source.files, index_dir=index_dir)
    for folder in folders:
        if index := read_keys(folder, keyed):
            return Keys(of, index)
    check_seen(using.executor, source.files)
    make_folder(folders[-1])
    with watched(progress, task="reading keys", rows=source.size) as watch:
        notice = f"another process is building a key index in {folders[-1]!r}: waiting for it"
        with locked(lock_of(folders[-1]), waiting=lambda: watch(0, notice=notice)):
            if index := read_keys(folders[-1], keyed):
                return Keys(of, index)
            return Keys(of, _built(folders, keyed, source, of, using=using, watch=watch))


def _made(source: FilesLeaf, of: KeyOf) -> dict[str, Any]:
    """Return, as JSON-safe values, all that decides the keys besides the files."""
    if own := _own(source, of):
        return own.described()
    decode = source.described_decode(_function)
    key = {"field": of} if isinstance(of, str) else _function(of, source.version)
    made = {"scanned_as": source.files.entry(0).format, "decode": decode, "key": key}
    if source.errors is not None:
        made["errors"] = getattr(source.errors, "__qualname__", type(source.errors).__qualname__)
    normal: dict[str, Any] = json.loads(json.dumps(made))
    return normal


def _own(source: FilesLeaf, of: KeyOf) -> OwnKeys | None:
    """Return the keys that a source has without its records, if they are the ones that are meant."""
    own = source.own_keys()
    return own if own is not None and own.of == of else None


def _function(fn: Callable[..., Any], version: str | int | None) -> dict[str, Any]:
    described = describe_function(fn, version)
    if version is None:
        described |= {"code": code_digest(fn), "python": python_version()}
    return described


def _built(
    folders: tuple[str, ...],
    keyed: Keyed,
    source: FilesLeaf,
    of: KeyOf,
    *,
    using: ExecutionOptions,
    watch: Callable[[int], None],
) -> KeyIndex:
    hashes, has_key, known = known_hashes(folders, keyed)
    job = _Hashing.of_files(source, of, np.flatnonzero(~known))
    path = os.path.join(folders[-1], f"{keyed.name}.part")
    with FinishedRanges(path, of=[keyed.name, np.flatnonzero(known).tolist()]) as finished:
        using = replace(using, finished=finished)
        with contextlib.closing(map_ranges(job, job.size, using=using)) as runs:
            start = 0
            for stop, (some, some_have) in runs:
                rows = job.rows(start, stop)
                hashes[rows], has_key[rows] = some, some_have
                watch(source.size - job.size + stop)
                start = stop
        index = _written(folders[-1], keyed, source, of, hashes, has_key)
        finished.remove()
    return index


def _written(
    folder: str,
    keyed: Keyed,
    source: FilesLeaf,
    of: KeyOf,
    hashes: UInt64s,
    has_key: Bools,
) -> KeyIndex:
    """Sort the hashes of all keys, and write them as an index."""
    rows = np.flatnonzero(has_key)
    # The stable sort keeps the rows of equal hashes ascending.
    order = np.argsort(hashes[rows], kind="stable")
    rows = rows[order]
    hashes = hashes[rows]
    duplicates = find_duplicates(source, of, hashes, rows)
    return write_keys(folder, source.files, keyed, (hashes, rows), duplicates=duplicates)


@dataclass(frozen=True, eq=False)
class _Hashing:
    """A picklable job that hashes the keys of runs of rows, numbered over some of a source's files."""

    source: FilesLeaf
    of: KeyOf
    firsts: Int64s
    """The first row of each file: int64."""
    ends: Int64s
    """The number of rows up to the end of each file: int64."""

    @classmethod
    def of_files(cls, source: FilesLeaf, of: KeyOf, files: Int64s) -> _Hashing:
        """Return the job for the files with the given numbers."""
        return cls(source, of, source.files.starts[files], np.cumsum(source.files.records[files]))

    @property
    def size(self) -> int:
        """The number of rows of all these files."""
        return int(self.ends[-1]) if self.ends.size else 0

    def rows(self, start: int, stop: int) -> Int64s:
        """Return the source's rows with the numbers ``start`` to ``stop`` of this job."""
        at = np.arange(start, stop, dtype=np.int64)
        files = np.searchsorted(self.ends, at, side="right")
        before = np.where(files, self.ends[files - 1], 0)
        rows: Int64s = self.firsts[files] + at - before
        return rows

    def __call__(self, start: int, stop: int) -> tuple[UInt64s, Bools]:
        """Return the hash of each row's key, and a bool array that is False for holes."""
        rows = self.rows(start, stop)
        if own := _own(self.source, self.of):
            return own.hashes(rows)
        hashes: list[int | None] = []
        if isinstance(self.of, str) and (alone := _key_alone(self.source, self.of)):
            for at, found in read_rows(alone, rows):
                for i, lean in enumerate(found, start=at):
                    key = lean.key
                    hashes.append(key_hash(key) if is_key(key) else self._read_one(rows[i]))
        else:
            source = self.source.narrowed(frozenset([self.of])) if isinstance(self.of, str) else self.source
            for at, found in read_rows(source, rows):
                hashes += [self._hash(record, rows[i]) for i, record in enumerate(found, start=at)]
        has_key = np.array([hashed is not None for hashed in hashes], dtype=bool)
        return np.array([hashed or 0 for hashed in hashes], dtype=np.uint64), has_key

    def _read_one(self, row: np.int64) -> int | None:
        return self._hash(self.source.record(int(row)), row)

    def _hash(self, record: Any, row: np.int64) -> int | None:
        if record is HOLE:
            return None
        try:
            key = key_in(record, self.of)
        except Exception as error:
            if isinstance(self.of, str) and isinstance(error, KeyError | TypeError):
                raise BadKey(self._no_field(record, row)) from None
            add_place(error, f"the function {self.of!r} of key=", self.source, int(row))
            raise
        if not is_key(key):
            shown = f"{key!r} of type {type(key).__name__}"
            message = f"{self._place(row)} has the key {shown}, and a key is a str or an int"
            raise BadKey(message)
        return key_hash(key)

    def _no_field(self, record: Any, row: np.int64) -> str:
        found = f"is a {type(record).__name__}"
        if isinstance(record, dict):
            whole = self.source.record(int(row))
            found = "has other columns that cannot be read" if whole is HOLE else f"has {list(whole)!r}"
        return f"{self._place(row)} has no field {self.of!r} to be its key: it {found}"

    def _place(self, row: np.int64) -> str:
        place = self.source.plan(np.array([row], dtype=np.int64)).locate()[0]
        return f"{place.path}: record {place.row} at byte {place.offset}"


def _key_alone(source: FilesLeaf, field: str) -> FileSource | None:
    """Return the source of objects with the key alone, if that is faster to read; else None."""
    if not isinstance(source, FileSource):
        return None
    decoder = source.decoder.of_key(field)
    return None if decoder is None else replace(source, decoder=decoder)


def find_duplicates(
    source: FilesLeaf, of: KeyOf, hashes: NDArray[np.uint64], rows: Int64s
) -> dict[str, Any] | None:
    """Return a JSON-safe summary of keys that several records share; None if there are none.

    Args:
        source: the source of the records.
        of: the field or function that gives a record's key.
        hashes: the hashes of all keys, ascending.
        rows: the row of each hash, ascending among equal hashes.
    """
    edges = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1])) if hashes.size else np.empty(0, np.int64)
    counts = np.diff(edges, append=hashes.size)
    several = counts > 1
    starts, counts = edges[several], counts[several]
    order = np.argsort(rows[starts])
    groups = zip(starts[order].tolist(), counts[order].tolist(), strict=True)
    if counts.sum() > _MOST_READ:
        first = [(start, min(count, _MOST_ROWS), count) for start, count in list(groups)[:_MOST_KEYS]]
        return {
            "keys": int(counts.size),
            "records": int(counts.sum()),
            "first": [
                {
                    "key": _key(source, of, int(rows[start])),
                    "rows": rows[start : start + some].tolist(),
                    "records": count,
                }
                for start, some, count in first
            ],
        }
    found = [
        same for start, count in groups for same in _same(source, of, rows[start : start + count].tolist())
    ]
    if not found:
        return None
    return {
        "keys": len(found),
        "records": sum(len(same) for _, same in found),
        "first": [
            {"key": key, "rows": same[:_MOST_ROWS], "records": len(same)} for key, same in found[:_MOST_KEYS]
        ],
    }


def duplicates_message(source: FilesLeaf, keys: Keys) -> str:
    """Return the text of the warning about keys that several records share.

    Args:
        source: the source of the records.
        keys: the keys of the source.
    """
    known = keys.index.duplicates or {}
    of = "" if keys.of is entry_key else f" {keys.name}"
    lines = [f"{known['records']:,} records share {known['keys']:,} of the keys{of} with others:"]
    for same in known["first"]:
        places = [
            f"{place.path} row {place.row}"
            for place in source.plan(np.array(same["rows"], dtype=np.int64)).locate()
        ]
        rest = same["records"] - len(places)
        lines.append(f"  {same['key']!r}: {', '.join(places)}" + (f" and {rest:,} more" if rest else ""))
    if known["keys"] > len(known["first"]):
        lines.append(f"  and {known['keys'] - len(known['first']):,} more keys")
    return "\n".join(lines)


def _same(source: FilesLeaf, of: KeyOf, rows: list[int]) -> Iterator[tuple[Any, list[int]]]:
    """Yield each key that several of the rows share, with those rows."""
    by_key: dict[tuple[type, Any], list[int]] = {}
    for row in rows:
        key = _key(source, of, row)
        by_key.setdefault((type(key), key), []).append(row)
    for (_, key), same in by_key.items():
        if len(same) > 1:
            yield key, same


def _key(source: FilesLeaf, of: KeyOf, row: int) -> Any:
    if own := _own(source, of):
        return own.key_at(row)
    return key_in(source.record(row), of)
