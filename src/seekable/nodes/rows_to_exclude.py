"""Records that a user names to be left out, as rows of files.

It may be places, keys, rows of named sources, a dataset, or a file of rows.

Each file is looked up once, however many of its rows are named. Lists of many rows are read in whole arrays.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import msgspec
import numpy as np

from seekable._arguments import checked_rows
from seekable.errors import (
    DataNotFound,
    InvalidArgument,
    KeyNotFound,
    OutOfRange,
    UnsupportedFormat,
    WrongType,
)
from seekable.index.location import Location
from seekable.nodes.bases import leaves_of
from seekable.nodes.graph import known_size, nodes_of
from seekable.nodes.key import asked_key, is_key
from seekable.nodes.mix import Mix
from seekable.nodes.node import HoldsNode, node_of
from seekable.state.excluded_rows import ExcludedFile, ExcludedRows
from seekable.storage.paths import open_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.node import NamedFiles, Node

__all__ = ["Excludes", "excluded_rows", "rows_left_out", "rows_of_several"]

Excludes: TypeAlias = """(
    str | os.PathLike[str] | HoldsNode | Location | Mapping[str, Sequence[int] | NDArray[Any]]
    | Iterable[Location | tuple[str | os.PathLike[str], int] | str | int | list[Any] | tuple[Any, ...]]
)"""
"""What names the records to leave out."""

_AT_ONCE = 1 << 18
"""The number of rows that are located together."""

_READ = 8 << 20
"""The number of bytes of a file of rows that are read together."""

_MOST_NAMED = 3
_PAIR = 2

_TAKES = (
    "what is left out is named by Locations, by pairs of a path and a row, by keys of a dataset that was "
    "opened with key=, by a dict of the names of a mixture's sources and row numbers, by a dataset over the "
    'same files, or by the path of a file of JSON lines {"path": ..., "row": ...}'
)


def excluded_rows(node: Node, what: object) -> ExcludedRows:
    """Return the rows of files that a user names to be left out of a dataset; a row named twice counts once.

    Args:
        node: the dataset.
        what: Locations or ``(path, row)`` pairs; keys; a dict of source names and row numbers; a dataset over
            the same files; or the path of a file of JSON lines with ``path`` and ``row``.

    Raises:
        WrongType: it is nothing of these.
        DataNotFound: the dataset has no file of a name, or there is no file of rows.
        OutOfRange: a file, or a source, has no row of a number.
        KeyNotFound: no record has a key.
        InvalidArgument: a name stands for several files, or the dataset has no keys or no named sources.
        UnsupportedFormat: a line of the file of rows has no path and row.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence("abcdef", version=1)
        >>> excluded_rows(node_of(ds), [ds.locate(3), ("<builtins.str 1>", 5)]).rows.tolist()
        [3, 5]
    """
    return rows_of_several((node,), what)


def rows_of_several(
    nodes: Sequence[Node], what: object, *, streams: Iterable[tuple[str, Sequence[Node]]] = ()
) -> ExcludedRows:
    """Return the rows of files that a user names to be left out of several datasets, as `excluded_rows` does.

    Args:
        nodes: the datasets.
        what: as of `excluded_rows`.
        streams: the names of streams that are mixed, each with the datasets that it reads.

    Raises:
        SeekableError: as of `excluded_rows`.
    """
    if isinstance(what, ExcludedRows):
        return what
    files = _Files(nodes)
    if isinstance(what, HoldsNode):
        return files.rows(_places_of(node_of(what)))
    if isinstance(what, str | os.PathLike):
        return files.rows(_places_in_file(os.fspath(what)))
    if isinstance(what, Mapping):
        return files.rows(_places_of_sources(_named_sources(nodes, streams), what))
    if _is_place(what):
        what = [what]
    if not isinstance(what, Iterable) or isinstance(what, bytes):
        message = f"{_TAKES} (got {what!r:.80} of type {type(what).__name__})"
        raise WrongType(message)
    named = list(what)
    if any(map(_is_key, named)):
        return _of_keys(nodes, named)
    return files.rows(_in_arrays(_places(named)))


def rows_left_out(domain: Node, rows: Int64s) -> ExcludedRows:
    """Return which rows in files make some rows of a dataset.

    Args:
        domain: the dataset.
        rows: its rows that are left out.

    Example:
        >>> import seekable as sk
        >>> rows_left_out(node_of(sk.from_sequence("abcdef", version=1)[2:]), np.array([3])).rows.tolist()
        [5]
    """
    return _Files((domain,)).rows(_places_at(domain, rows))


@dataclass(frozen=True, slots=True)
class _Places:
    """Rows of files, by the paths or names of these."""

    paths: list[str]
    which: NDArray[np.int32]
    """The index of the path of each row."""
    rows: Int64s


@final
class _Files:
    """The files of datasets, looked up by path or name."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._leaves = [(leaf, leaf.named_files()) for node in nodes for leaf in leaves_of(node)]
        self._by_name: dict[str, dict[ExcludedFile, int]] | None = None

    def rows(self, parts: Iterable[_Places]) -> ExcludedRows:
        """Return places as rows of files, each row once.

        Raises:
            DataNotFound, InvalidArgument, OutOfRange: as `excluded_rows`.
        """
        numbers: dict[str, int] = {}
        which, rows = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int64)]
        for part in parts:
            own = [numbers.setdefault(path, len(numbers)) for path in part.paths]
            which.append(np.array(own, dtype=np.int32)[part.which])
            rows.append(part.rows)
        all_which, all_rows = np.concatenate(which), np.concatenate(rows)
        order = np.argsort(all_which, kind="stable")
        edges = np.searchsorted(all_which[order], np.arange(len(numbers) + 1))
        each = (all_rows[order[edges[i] : edges[i + 1]]] for i in range(len(numbers)))
        return ExcludedRows.of(
            (file, own) for path, own in zip(numbers, each, strict=True) for file in self._checked(path, own)
        )

    def _checked(self, path: str, rows: Int64s) -> list[ExcludedFile]:
        """Return the file of a path, after a check that it has some rows."""
        found = self._named(path) or self._at(path)
        if not found:
            message = f"{path!r} is no file of the dataset, which has {self._some_names()}: {_HOW_NAMED}"
            raise DataNotFound(message)
        if len(found) > 1:
            message = (
                f"{path!r} is the name of {len(found)} files that differ, in several sources of the dataset: "
                f"name them by absolute paths, or give a dict of source names and row numbers"
            )
            raise InvalidArgument(message)
        ((file, count),) = found.items()
        wrong = rows[(rows < 0) | (rows >= count)]
        if wrong.size:
            message = f"{path!r} has rows 0 to {count - 1:,}, and row {int(wrong[0]):,} is to be left out"
            raise OutOfRange(message)
        return [file]

    def _named(self, path: str) -> dict[ExcludedFile, int]:
        """Return the files with a name below the opened folder, and the number of records of each."""
        if self._by_name is None:
            self._by_name = {}
            for _, files in self._leaves:
                columns = zip(files.names, files.head_tails, files.records.tolist(), strict=True)
                for name, digest, count in columns:
                    self._by_name.setdefault(name, {})[ExcludedFile(name, digest)] = count
        return self._by_name.get(path, {})

    def _at(self, path: str) -> dict[ExcludedFile, int]:
        """Return the file at a path, or at an address, with its number of records."""
        path = path if path.startswith("<") or "://" in path else os.path.abspath(path)
        found = {}
        for leaf, files in self._leaves:
            for first in leaf.rows_of(path, 0):
                number = int(np.searchsorted(np.cumsum(files.records), first, side="right"))
                file = ExcludedFile(files.names[number], files.head_tails[number])
                found[file] = int(files.records[number])
        return found

    def _some_names(self) -> str:
        names = list(dict.fromkeys(name for _, files in self._leaves for name in files.names[:_MOST_NAMED]))
        count = sum(len(files.names) for _, files in self._leaves)
        shown = ", ".join(map(repr, names[:_MOST_NAMED]))
        return shown if count <= _MOST_NAMED else f"{count:,} files: {shown} ..."


_HOW_NAMED = "a file is named by its path below the folder that was opened, or by its absolute path"


def _is_place(named: object) -> bool:
    return isinstance(named, Location) or (hasattr(named, "path") and hasattr(named, "row"))


def _is_key(named: object) -> bool:
    return is_key(named) or isinstance(named, np.integer)


def _places(named: Iterable[Any]) -> Iterator[tuple[str, int]]:
    """Yield the path and row of each place; a place may be nested, as ``locate`` returns it.

    Raises:
        WrongType: it is no place.
    """
    for each in named:
        if _is_place(each):
            yield each.path, each.row
        elif isinstance(each, tuple) and len(each) == _PAIR and isinstance(each[0], str | os.PathLike):
            path, row = each
            if isinstance(row, bool) or not isinstance(row, int | np.integer):
                message = f"the row of {path!r} is an integer (got {row!r} of type {type(row).__name__})"
                raise WrongType(message)
            yield os.fspath(path), int(row)
        elif isinstance(each, list | tuple):
            yield from _places(each)
        else:
            message = f"{_TAKES} (got {each!r:.80} of type {type(each).__name__})"
            raise WrongType(message)


def _in_arrays(places: Iterable[tuple[str, int]]) -> Iterator[_Places]:
    numbers: dict[str, int] = {}
    pairs = [(numbers.setdefault(path, len(numbers)), row) for path, row in places]
    if pairs:
        which, rows = zip(*pairs, strict=True)
        if wrong := next((row for row in rows if not -(1 << 62) < row < 1 << 62), None):
            message = f"a row of a file is at least 0 and below 2**62 (got {wrong})"
            raise OutOfRange(message)
        yield _Places(list(numbers), np.array(which, dtype=np.int32), np.array(rows, dtype=np.int64))


def _places_of(node: Node) -> Iterator[_Places]:
    """Yield the places of all records in epoch 0."""
    size = known_size(node, "without(a dataset)")
    for start in range(0, size, _AT_ONCE):
        yield from _places_at(node, np.arange(start, min(start + _AT_ONCE, size), dtype=np.int64))


def _places_at(node: Node, positions: Int64s) -> Iterator[_Places]:
    """Yield the places of the records at some positions; all of those that a record is made of."""
    for start in range(0, positions.size, _AT_ONCE):
        plan = node.plan(positions[start : start + _AT_ONCE])
        try:
            origins = plan.origins()
        except InvalidArgument:  # A record is made of several others.
            yield from _in_arrays(_places(plan.locate()))
        else:
            yield _Places(list(origins.paths), origins.files.astype(np.int32), origins.rows)


def _named_sources(
    nodes: Sequence[Node], streams: Iterable[tuple[str, Sequence[Node]]]
) -> dict[str, list[Sequence[Node]]]:
    """Return the sources of each name in all mixtures, and the datasets that each source reads."""
    found: dict[str, list[Sequence[Node]]] = {}
    for name, datasets in streams:
        found.setdefault(name, []).append(datasets)
    for mix in (each for node in nodes for each in nodes_of(node)):
        if isinstance(mix, Mix):
            for name, part in zip(mix.names or (), mix.parts, strict=False):
                found.setdefault(name, []).append((part,))
    return found


def _places_of_sources(
    sources: Mapping[str, list[Sequence[Node]]], what: Mapping[Any, Any]
) -> Iterator[_Places]:
    """Yield the places of rows of named sources, which count as the source has them before a shuffle."""
    for name, rows in what.items():
        if len(sources.get(name, ())) != 1:
            many = f"names {len(sources[name])} of them" if name in sources else "names none of them"
            message = (
                f"a dict to leave out has the names of a mixture's sources, {sorted(sources)} (got {name!r}, "
                f"which {many})"
            )
            raise InvalidArgument(message)
        below = _steady_part(sources[name][0])
        if below is None:
            message = (
                f"the rows of {name!r} have no numbers, because several datasets are put together there in "
                f"orders of their own: name them by Locations, or by pairs of a path and a row"
            )
            raise InvalidArgument(message)
        size = known_size(below, "without()")
        yield from _places_at(below, np.unique(checked_rows(rows, size)))


def _steady_part(datasets: Sequence[Node]) -> Node | None:
    """Return the first node from the top with rows that stay the same; None if there is not one."""
    while len(datasets) == 1:
        if datasets[0].steady:
            return datasets[0]
        datasets = datasets[0].children
    return None


def _of_keys(nodes: Sequence[Node], named: list[Any]) -> ExcludedRows:
    """Return the rows whose records have some keys: all of those with a key."""
    leaves = (leaf for node in nodes for leaf in leaves_of(node))
    keyed = [(leaf, leaf.keys) for leaf in leaves if leaf.keys is not None]
    if not keyed:
        message = (
            f"the records to leave out are named by keys, such as {named[0]!r}, and no source of this "
            f'dataset was opened with any: sk.open(..., key="id"), or a function of the record. Row numbers '
            f"are those of a dataset: ds.without(ds.select([...]))"
        )
        raise InvalidArgument(message)
    found: dict[int, list[int]] = {}
    missing = []
    for key in dict.fromkeys(map(asked_key, named)):
        before = sum(map(len, found.values()))
        for number, (leaf, keys) in enumerate(keyed):
            found.setdefault(number, []).extend(row for row, _ in keys.matches(leaf.parts[0], key))
        if sum(map(len, found.values())) == before:
            missing.append(key)
    if missing:
        more = f" and {len(missing) - _MOST_NAMED:,} others" if len(missing) > _MOST_NAMED else ""
        message = f"no record has the key {', '.join(map(repr, missing[:_MOST_NAMED]))}{more} to leave out"
        raise KeyNotFound(message)
    return ExcludedRows.of(
        part for number, rows in found.items() for part in _in_files(keyed[number][0].named_files(), rows)
    )


def _in_files(files: NamedFiles, rows: list[int]) -> Iterator[tuple[ExcludedFile, Int64s]]:
    """Yield each file with those of some rows of its source that it has."""
    ends = np.cumsum(files.records)
    which = np.searchsorted(ends, rows, side="right")
    for number in np.unique(which).tolist():
        first = int(ends[number] - files.records[number])
        own = np.array(rows, dtype=np.int64)[which == number] - first
        yield ExcludedFile(files.names[number], files.head_tails[number]), own


class _Line(msgspec.Struct, gc=False):
    """A line of a file of rows; it may have other fields."""

    path: str
    row: int


_DECODER = msgspec.json.Decoder(_Line)


def _places_in_file(path: str) -> Iterator[_Places]:
    """Yield the places that a file of JSON lines names, many lines at a time.

    Raises:
        DataNotFound: there is no such file.
        UnsupportedFormat: a line has no path and row.
    """
    try:
        file = open_file(path)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        message = f"there is no file {path!r} of rows to leave out: {_TAKES}"
        raise DataNotFound(message) from None
    with file:
        rest, lines = b"", 0
        while data := file.read(_READ):
            whole, end, rest = (rest + data).rpartition(b"\n")
            if end:
                yield _places_in_lines(whole, path, lines)
                lines += whole.count(b"\n") + 1
        if rest.strip():
            yield _places_in_lines(rest, path, lines)


def _places_in_lines(data: bytes, path: str, before: int) -> _Places:
    numbers: dict[str, int] = {}
    try:
        lines = _DECODER.decode_lines(data)
    except ValueError:
        lines = [_decoded(line, path, before + number) for number, line in enumerate(data.split(b"\n"), 1)]
    which = np.fromiter((numbers.setdefault(line.path, len(numbers)) for line in lines), np.int32, len(lines))
    try:
        rows = np.fromiter((line.row for line in lines), np.int64, len(lines))
    except OverflowError:
        largest = max(lines, key=lambda line: abs(line.row))
        message = f"{path!r} names row {largest.row} of {largest.path!r}, and no file has so many"
        raise OutOfRange(message) from None
    return _Places(list(numbers), which, rows)


def _decoded(line: bytes, path: str, number: int) -> _Line:
    try:
        return _DECODER.decode(line)
    except ValueError as error:
        message = (
            f'line {number:,} of {path!r} is no JSON object with "path", a text, and "row", an integer '
            f"({error}): {line[:80]!r}"
        )
        raise UnsupportedFormat(message) from None
