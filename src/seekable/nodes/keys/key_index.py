"""The index of the keys of a source: built once by reading all records, then opened.

Keys that several records share are found when the index is built; each opening warns of them.
"""

from __future__ import annotations

import contextlib
import functools
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from seekable.errors import BadKey, WrongType
from seekable.formats.decoding import Decoder
from seekable.index.build.commit import make_folder
from seekable.index.keys.hashes import known_hashes, lock_of, places, read_keys, write_keys
from seekable.index.keys.keyed import Keyed
from seekable.nodes.display import add_place
from seekable.nodes.hole import HOLE
from seekable.nodes.keys.key import Keys, is_key, key_hash, key_in
from seekable.nodes.readahead import read_rows
from seekable.nodes.sources.file_source import FileSource
from seekable.nodes.sources.tables import TableSource
from seekable.parallel.map_ranges import map_ranges
from seekable.parallel.progress import watched
from seekable.state.functions import code_digest, describe_function, python_version
from seekable.storage.files import locked

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.index.keys.hashes import KeyIndex
    from seekable.nodes.keys.key import KeyOf
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
    source: FileSource | TableSource,
    of: KeyOf,
    *,
    index_dir: str | os.PathLike[str] | None,
    using: ExecutionOptions,
    progress: ProgressHook | None,
) -> Keys:
    """Return the keys of a source, after reading those that no index has yet.

    Args:
        source: the records.
        of: what their keys are.
        index_dir: the folder for indexes, as `seekable.open` was given it.
        using: what may read them.
        progress: is told how far that is.

    Raises:
        BadKey: a record has no key.
        WrongType: ``of`` is neither a name nor a function.
        InvalidArgument: a function cannot be told from another one.
    """
    if not (isinstance(of, str) or callable(of)):
        message = f"key must be the name of a field or a function of the record (got {of!r})"
        raise WrongType(message)
    keyed = Keyed.of(source.files, _made(source, of))
    folders = places(source.files, index_dir=index_dir)
    for folder in folders:
        if index := read_keys(folder, keyed):
            return Keys(of, index)
    make_folder(folders[-1])
    with watched(progress, task="reading keys", rows=source.size) as watch:
        notice = f"another process is building a key index in {folders[-1]!r}: waiting for it"
        with locked(lock_of(folders[-1]), waiting=lambda: watch(0, notice=notice)):
            if index := read_keys(folders[-1], keyed):
                return Keys(of, index)
            return Keys(of, _built(folders, keyed, source, of, using=using, watch=watch))


def _made(source: FileSource | TableSource, of: KeyOf) -> dict[str, Any]:
    """Return, JSON-safe, all but the files that decides what the keys are."""
    if isinstance(source, TableSource):
        decode: Any = source.decode
    else:
        function = source.decoder.function
        decode = source.decoder.name if function is None else _told(function, source.version)
    key = {"field": of} if isinstance(of, str) else _told(of, source.version)
    made = {"scanned_as": source.files.entry(0).format, "decode": decode, "key": key}
    if source.errors is not None:
        made["errors"] = getattr(source.errors, "__qualname__", type(source.errors).__qualname__)
    normal: dict[str, Any] = json.loads(json.dumps(made))
    return normal


def _told(fn: Callable[..., Any], version: str | int | None) -> dict[str, Any]:
    described = describe_function(fn, version)
    if version is None:
        described |= {"code": code_digest(fn), "python": python_version()}
    return described


def _built(
    folders: tuple[str, ...],
    keyed: Keyed,
    source: FileSource | TableSource,
    of: KeyOf,
    *,
    using: ExecutionOptions,
    watch: Callable[[int], None],
) -> KeyIndex:
    hashes, has_key, known = known_hashes(folders, keyed)
    job = _Hashing.of_files(source, of, np.flatnonzero(~known))
    with contextlib.closing(map_ranges(job, job.size, using=using)) as runs:
        start = 0
        for stop, (some, some_have) in runs:
            rows = job.rows(start, stop)
            hashes[rows], has_key[rows] = some, some_have
            watch(source.size - job.size + stop)
            start = stop
    rows = np.flatnonzero(has_key)
    # Stable, so that the rows of one hash ascend.
    order = np.argsort(hashes[rows], kind="stable")
    rows = rows[order]
    hashes = hashes[rows]
    duplicates = find_duplicates(source, of, hashes, rows)
    return write_keys(folders[-1], source.files, keyed, (hashes, rows), duplicates=duplicates)


@dataclass(frozen=True, eq=False)
class _Hashing:
    """Hashes the keys of runs of rows, counted over some of a source's files."""

    source: FileSource | TableSource
    of: KeyOf
    firsts: Int64s
    """The first row of each of the files."""
    ends: Int64s
    """How many rows the files have up to the end of each."""

    @classmethod
    def of_files(cls, source: FileSource | TableSource, of: KeyOf, files: Int64s) -> _Hashing:
        """Return the job for the files of these numbers."""
        return cls(source, of, source.files.starts[files], np.cumsum(source.files.records[files]))

    @property
    def size(self) -> int:
        """How many rows there are."""
        return int(self.ends[-1]) if self.ends.size else 0

    def rows(self, start: int, stop: int) -> Int64s:
        """Return the rows of the source that a run stands for."""
        at = np.arange(start, stop, dtype=np.int64)
        files = np.searchsorted(self.ends, at, side="right")
        before = np.where(files, self.ends[files - 1], 0)
        rows: Int64s = self.firsts[files] + at - before
        return rows

    def __call__(self, start: int, stop: int) -> tuple[UInt64s, Bools]:
        """Return the hash of each row's key, and which rows have one: holes do not."""
        rows = self.rows(start, stop)
        hashes: list[int | None] = []
        if (
            isinstance(self.of, str)
            and isinstance(self.source, FileSource)
            and self.source.decoder.name == "json"
        ):
            # Only the field is made into an object, which is several times as fast.
            for at, found in read_rows(replace(self.source, decoder=_only(self.of)), rows):
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
        found = (
            f"has {list(self.source.record(int(row)))!r}"
            if isinstance(record, dict)
            else f"is a {type(record).__name__}"
        )
        return f"{self._place(row)} has no field {self.of!r} to be its key: it {found}"

    def _place(self, row: np.int64) -> str:
        place = self.source.plan(np.array([row], dtype=np.int64)).locate()[0]
        return f"{place.path}: record {place.row} at byte {place.offset}"


@functools.lru_cache(maxsize=16)
def _only(field: str) -> Decoder:
    """Return what decodes JSON objects to one field of theirs, and whatever it cannot to a key of None."""
    lean = msgspec.defstruct("Lean", [("key", Any, msgspec.field(name=field))], gc=False)
    return Decoder("json", msgspec.json.Decoder(lean).decode, lambda _: lean(None))


def find_duplicates(
    source: FileSource | TableSource, of: KeyOf, hashes: NDArray[np.uint64], rows: Int64s
) -> dict[str, Any] | None:
    """Return, JSON-safe, what is to be remembered of keys that several records have; None if there are none.

    Args:
        source: the records.
        of: what their keys are.
        hashes: the hashes of all keys, sorted.
        rows: the row of each, ascending where hashes are the same.
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


def duplicates_message(source: FileSource | TableSource, keys: Keys) -> str:
    """Return the warning of an index that knows of duplicates.

    Args:
        source: the records.
        keys: their keys.
    """
    known = keys.index.duplicates or {}
    lines = [f"{known['records']:,} records share {known['keys']:,} of the keys {keys.name} with others:"]
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


def _same(source: FileSource | TableSource, of: KeyOf, rows: list[int]) -> Iterator[tuple[Any, list[int]]]:
    """Yield the keys that several of some rows have, and the rows of each."""
    by_key: dict[tuple[type, Any], list[int]] = {}
    for row in rows:
        key = _key(source, of, row)
        by_key.setdefault((type(key), key), []).append(row)
    for (_, key), same in by_key.items():
        if len(same) > 1:
            yield key, same


def _key(source: FileSource | TableSource, of: KeyOf, row: int) -> Any:
    return key_in(source.record(row), of)
