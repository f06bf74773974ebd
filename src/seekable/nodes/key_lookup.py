"""Look-up by key: the index of a source's keys, the search for a record, and the sequence of all keys.

The index is built once by reading all records, then opened. Keys that several records share are found when it
is built; each opening warns of them. A search goes through nodes whose rows are equal in every epoch.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final, overload

import numpy as np

from seekable._arguments import checked_rows
from seekable._cached import cached
from seekable.errors import AmbiguousKey, BadKey, InvalidArgument, KeyNotFound, WrongType
from seekable.index.build.commit import make_folder
from seekable.index.digest import key_hash
from seekable.index.key_files import Keyed, known_hashes, lock_of, places, read_keys, write_keys
from seekable.nodes.bases import leaves_of, replaced
from seekable.nodes.display import add_place, describe_place
from seekable.nodes.epoch import Epoch
from seekable.nodes.evaluated import check_seen
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import HOLE, SearchRange, known_size, must_be_steady
from seekable.nodes.key import KeyIn, Keys, entry_key, is_key, itself, key_in, source_of_keys
from seekable.nodes.map import Map
from seekable.nodes.readahead import read_rows
from seekable.parallel.map_ranges import FinishedRanges, map_ranges
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
    from seekable.nodes.node import LeafNode, Node
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressChoice

    UInt64s = NDArray[np.uint64]
    Bools = NDArray[np.bool_]

__all__ = [
    "KeySequence",
    "Lookup",
    "duplicates_message",
    "keys_of",
    "lookup_of",
    "open_keys",
]

_MOST_SHOWN = 10


def lookup_of(node: Node) -> Lookup:
    """Return the lookup of a node; it walks the whole graph to find the sources with keys.

    Raises:
        EndlessDataset: the node has no length.
        InvalidArgument: the node is not steady, or none of its sources was opened with keys.
    """
    must_be_steady(node, "key()")
    return Lookup(node, known_size(node, "key()"))


@dataclass(frozen=True, slots=True)
class _Match:
    """A record of a source that has the key."""

    leaf: LeafNode
    row: int
    record: Any

    def __str__(self) -> str:
        return describe_place(self.leaf, self.row)


class Lookup:
    """The lookup of records of one dataset by key."""

    def __init__(self, dataset: Node, size: int) -> None:
        """Create the lookup of a steady dataset of ``size`` records.

        Raises:
            InvalidArgument: none of the dataset's sources was opened with keys.
        """
        self._dataset = dataset
        self._within = SearchRange(0, size, range(1))
        self._leaves = leaves_of(dataset)
        self._keyed = [(leaf, leaf.keys) for leaf in self._leaves if leaf.keys is not None]
        if not self._keyed:
            message = (
                "key() needs to know what the key of a record is, and no source of this dataset was opened "
                'with one: sk.open(..., key="id"), or a function of the record'
            )
            raise InvalidArgument(message)

    def has(self, key: str | int) -> bool:
        """Return True if a record has the key, also if several records have it.

        Raises:
            CorruptRecord: none has it, and a damaged record may hide it.
        """
        return any(self._positions(match).size for match in self._matches(key))

    def record(self, key: str | int) -> Any:
        """Return the record with a key.

        Raises:
            KeyNotFound: no record has the key.
            CorruptRecord: no record has the key, and a damaged record may hide it.
            AmbiguousKey: several records have the key.
        """
        matches = self._matches(key)
        if len(matches) == 1 and self._dataset is matches[0].leaf:
            return matches[0].record
        return self._dataset.record(self._position(key, matches))

    def position(self, key: str | int) -> int:
        """Return the first position of the record with a key.

        Raises:
            KeyNotFound: no record has the key.
            CorruptRecord: no record has the key, and a damaged record may hide it.
            AmbiguousKey: several records have the key.
        """
        return self._position(key, self._matches(key))

    def positions(self, key: str | int) -> list[int]:
        """Return the first positions of all records with a key, in ascending order."""
        return sorted({int(at[0]) for match in self._matches(key) if (at := self._positions(match)).size})

    def _position(self, key: str | int, matches: list[_Match]) -> int:
        found = [(int(at[0]), match) for match in matches if (at := self._positions(match)).size]
        if len({position for position, _ in found}) > 1:
            raise AmbiguousKey(_ambiguous(key, [match for _, match in found]))
        if not found:
            raise KeyNotFound(self._not_found(key, matches))
        return found[0][0]

    def _matches(self, key: str | int) -> list[_Match]:
        found = [
            _Match(leaf, row, record if leaf.parts[0] is leaf else leaf.record(row))
            for leaf, keys in self._keyed
            for row, record in keys.matches(leaf.parts[0], key)
        ]
        if not found:
            for leaf, keys in self._keyed:
                keys.check_all_read(leaf.parts[0])
        return found

    def _positions(self, match: _Match) -> Any:
        def rows_of(leaf: LeafNode) -> Sequence[int]:
            return [match.row] if leaf is match.leaf else ()

        return self._dataset.find_within(rows_of, self._within)

    def _not_found(self, key: str | int, matches: list[_Match]) -> str:
        if matches:
            return f"the record with the key {key!r}, {matches[0]}, is not among the rows of this dataset"
        count = sum(keys.index.count for _, keys in self._keyed)
        message = f"no record has the key {key!r}; there are {count:,} keys"
        if unread := sum(leaf.size for leaf, _ in self._keyed) - count:
            message += f", and {unread:,} records that were left out, whose keys are not known"
        if others := len(self._leaves) - len(self._keyed):
            message += f", and {others:,} of {len(self._leaves):,} sources were opened without key="
        other: str | int | None = str(key) if isinstance(key, int) else _number(key)
        if other is not None and self._matches(other):
            message += f". One has the key {other!r}: an int and a str are different keys"
        return message


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and str(int(text)) == text else None


def _ambiguous(key: str | int, matches: list[_Match]) -> str:
    shown = ", ".join(str(match) for match in matches[:_MOST_SHOWN])
    rest = f" and {len(matches) - _MOST_SHOWN:,} more" if len(matches) > _MOST_SHOWN else ""
    return (
        f"{len(matches):,} records have the key {key!r}: {shown}{rest}. Ask for the one you mean by its row "
        f"(find(path, row) tells its position), or make the keys unique"
    )


_PLANNED = 1 << 16


@final
class KeySequence(Sequence[Any]):
    """The key of each record of epoch 0, in their order. Nothing is kept in memory; safe from threads.

    The keys of Kaldi's tables are read without their objects. ``key in keys`` looks into the index of keys.
    """

    def __init__(self, node: Node, keys: Node) -> None:
        """Take a dataset and the same order of keys; callers use `keys_of`.

        Args:
            node: the dataset.
            keys: the same rows, whose records are the keys.
        """
        self._node = node
        self._keys = keys

    def __len__(self) -> int:
        """Return the number of records of an epoch."""
        return known_size(self._node, "keys()")

    def __repr__(self) -> str:
        """Show the number of keys and the dataset."""
        return f"<Keys, {self._node.in_words()}>"

    def __iter__(self) -> Iterator[Any]:
        """Yield the keys of epoch 0."""
        for start in range(0, len(self), _PLANNED):
            rows = np.arange(start, min(start + _PLANNED, len(self)), dtype=np.int64)
            for _, found in read_rows(self._keys, rows):
                yield from found

    @overload
    def __getitem__(self, rows: int) -> Any: ...

    @overload
    def __getitem__(self, rows: slice | Sequence[int] | Int64s) -> list[Any]: ...

    def __getitem__(self, rows: int | slice | Sequence[int] | Int64s) -> Any:
        """Return the key of a row, or a list of keys for a slice or several rows.

        Raises:
            OutOfRange: there is no such row.
            CorruptRecord: the record has no key.
        """
        if isinstance(rows, slice):
            return self._keys.fetch(np.arange(*rows.indices(len(self)), dtype=np.int64))
        if isinstance(rows, Sequence | np.ndarray):
            return self._keys.fetch(checked_rows(rows, len(self)))
        return self._keys.record(int(checked_rows([rows], len(self))[0]))

    def __contains__(self, key: object) -> bool:
        """Return True if a record has the key.

        Raises:
            CorruptRecord: none has it, and a damaged record may hide it.
        """
        # The record of a key alone is no object, so that damage is found by the records themselves.
        return is_key(key) and (self._lookup.has(key) or self._lookup_of_records.has(key))

    @cached
    def _lookup(self) -> Lookup:
        return lookup_of(self._keys if self._keys.steady else Epoch(self._keys, 0))

    @cached
    def _lookup_of_records(self) -> Lookup:
        return lookup_of(self._node if self._node.steady else Epoch(self._node, 0))


def keys_of(node: Node) -> KeySequence:
    """Return the keys of the records of a dataset.

    Raises:
        InvalidArgument: a source was opened without keys, or records are made of several.
        EndlessDataset: the dataset has no end.
    """
    known_size(node, "keys()")
    keys = replaced(node, _keys_in, past_records=True)
    if keys is None:
        message = f"keys() needs one key a record, and {node!r} makes records of several"
        raise InvalidArgument(message)
    return KeySequence(node, keys)


def _keys_in(node: Node) -> Node | None:
    """Return the keys of the records of a source; None for other nodes."""
    found = node.keys_alone()
    if found is None:
        return None
    source, of = found
    return source if of is itself else Map(source, KeyIn(of), None, "keys")


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
    progress: ProgressChoice,
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
    job = _KeyHashing.of_files(source, of, np.flatnonzero(~known))
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
    duplicates = _find_duplicates(source, of, hashes, rows)
    return write_keys(folder, source.files, keyed, (hashes, rows), duplicates=duplicates)


@dataclass(frozen=True, eq=False)
class _KeyHashing:
    """A picklable job that hashes the keys in runs of rows, numbered over some of a source's files."""

    source: FilesLeaf
    of: KeyOf
    firsts: Int64s
    """The first row of each file: int64."""
    ends: Int64s
    """The number of rows up to the end of each file: int64."""

    @classmethod
    def of_files(cls, source: FilesLeaf, of: KeyOf, files: Int64s) -> _KeyHashing:
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


def _find_duplicates(
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
