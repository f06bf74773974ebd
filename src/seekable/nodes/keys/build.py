"""Reading the keys of all records into an index, once; and opening it."""

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
from seekable.nodes.failures import add_place
from seekable.nodes.hole import HOLE
from seekable.nodes.keys.duplicates import find_duplicates
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
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.index.keys.hashes import KeyIndex
    from seekable.nodes.keys.key import KeyOf
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressHook

    UInt64s = NDArray[np.uint64]
    Bools = NDArray[np.bool_]

__all__ = ["open_keys"]


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
