"""``columns="union"``: the columns of several datasets, or of several files, as those of one.

Files of tables declare their columns. Of other records some are read: the first 256, 768 at even steps, and
the first of up to 1,024 blocks, so that each of as many files is met. The call takes constant time therefore,
and a record with a column that none of these has, or a value that does not fit, is an error when it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.errors import InvalidArgument, MissingColumn, WrongType
from seekable.nodes.columns.arrow_types import UnsupportedType, type_of
from seekable.nodes.columns.cast import UnifyColumns
from seekable.nodes.columns.column_node import ColumnNode
from seekable.nodes.columns.names import no_such_column
from seekable.nodes.columns.rename import MapColumns
from seekable.nodes.columns.unified_type import NoCommonType, unified_type
from seekable.nodes.display import describe_place
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.graph import HOLE, each_once, file_matches, with_children
from seekable.nodes.node import OrderNode
from seekable.nodes.readahead import read_rows
from seekable.writing.preview import looked_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from seekable.nodes.node import Node
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["checked_union", "unified_files", "unified_parts"]

_BLOCKS = 1024
"""The most blocks whose first record is read."""


def checked_union(what: str, columns: object) -> bool:
    """Return True for ``columns="union"``, False for None.

    Raises:
        InvalidArgument: ``columns`` is something else.
        MissingDependency: pyarrow, whose types columns have, is not installed.
    """
    if columns not in (None, "union"):
        message = f'{what} takes columns="union", or no columns= (got {columns!r})'
        raise InvalidArgument(message)
    if columns is not None:
        _ = pa.DataType  # the first use of pyarrow, which says how to install it
    return columns is not None


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of one file, or of a source without files."""

    path: str
    name: str
    """The path of the file below the folder that was opened."""

    types: Mapping[str, Any]
    """The Arrow type of each column; None where it is not known."""

    empty: frozenset[str] = frozenset()
    """The columns of which None alone was met in the records that were read."""


@dataclass(slots=True)
class _Union:
    """The columns that were met, each with its type and with the file that each distinct type was met in."""

    what: str
    types: dict[str, Any] = field(default_factory=dict)
    met: dict[str, list[tuple[Any, str]]] = field(default_factory=dict)

    def add(self, columns: _Columns) -> None:
        """Add the columns of a file.

        Raises:
            InvalidArgument: a column has a type there without a common one with the types before.
        """
        for name, kind in columns.types.items():
            before = self.types.setdefault(name, kind)
            if kind is None:
                continue
            try:
                self.types[name] = kind if before is None else unified_type(before, kind)
            except NoCommonType as error:
                raise InvalidArgument(self._clash(name, kind, columns.path, error)) from None
            met = self.met.setdefault(name, [])
            if all(kind != other for other, _ in met):
                met.append((kind, columns.path))

    def _clash(self, name: str, kind: Any, path: str, error: NoCommonType) -> str:
        """Return the message for a type that has no common one with a type that was met before."""
        other, there = next(
            ((other, there) for other, there in self.met[name] if not _have_common(other, kind)),
            self.met[name][0],
        )
        within = f", in its field {error.within!r}," if error.within else ""
        return (
            f"{self.what}: the column {name!r}{within} is {other} in {there} and {kind} in {path}, and no "
            f"type holds the values of both as they are: cast it in one of them first, with "
            f"cast({{{name!r}: ...}}), or leave it out, with drop_columns([{name!r}])"
        )


def _have_common(one: Any, other: Any) -> bool:
    try:
        unified_type(one, other)
    except NoCommonType:
        return False
    return True


def unified_parts(what: str, parts: Sequence[Node]) -> tuple[Node, ...]:
    """Return some datasets whose records have the columns of all of them, in common types.

    Args:
        what: the call that unites them, for messages.
        parts: the datasets.

    Raises:
        InvalidArgument: a column has types without a common one.
        WrongType: records are not dicts.
    """
    union, declared = _Union(what), [part.declared() for part in parts]
    for part, below in zip(parts, declared, strict=True):
        for columns in _columns_of(what, part, below):
            union.add(columns)
    whole = tuple(union.types.items())
    return tuple(
        part
        if below is not None and None not in below.values() and tuple(below.items()) == whole
        else UnifyColumns(part, whole)
        for part, below in zip(parts, declared, strict=True)
    )


def _columns_of(what: str, part: Node, declared: Mapping[str, Any] | None) -> Iterable[_Columns]:
    """Return the columns of a dataset, declared or found in some records."""
    if declared is None:
        return _sampled(what, part)
    unknown = frozenset(name for name, kind in declared.items() if kind is None)
    path = part.expression()
    found = [_Columns(path, path, declared)]
    for columns in _by_file(part) or ():
        if len(found) > 1:
            break
        found.insert(0, _Columns(columns.path, columns.name, declared))
    return [found[0], *(_sampled(what, part, unknown) if unknown else ())]


def unified_files(
    child: Node, files: tuple[tuple[str, tuple[tuple[str, str], ...]], ...], *, lenient: bool
) -> UnifyColumns:
    """Return a dataset with columns renamed by file, and the columns of all files in common types.

    Args:
        child: the dataset.
        files: the patterns of files, and for each the old names and the new ones.
        lenient: False if a column that none of the files of its pattern has is an error.

    Raises:
        MissingColumn: there is such a column.
        InvalidArgument: a column has types without a common one, or a file would have two columns of a name.
        WrongType: records are not dicts.
    """
    what = "rename(columns=)"
    union = _Union(what)
    met: list[set[str]] = [set() for _ in files]
    meant, olds = [False] * len(files), frozenset(old for _, names in files for old, _ in names)
    for columns in _files_of(what, child):
        number = next((i for i, (pattern, _) in enumerate(files) if _matches(pattern, columns)), None)
        names = {} if number is None else dict(files[number][1])
        if number is not None:
            met[number].update(columns.types)
            meant[number] = True
        union.add(_renamed(what, columns, names, olds))
    for number, (pattern, renames) in enumerate(files):
        for old, new in renames:
            if meant[number] and old not in met[number] and not lenient:
                message = f"{what}: in the files of {pattern!r} {no_such_column(old, sorted(met[number]))}"
                raise MissingColumn(message)
            union.types.setdefault(new, None)
    return UnifyColumns(MapColumns(child, files, "none"), tuple(union.types.items()))


def _matches(pattern: str, columns: _Columns) -> bool:
    return file_matches(pattern, path=columns.path, name=columns.name)


def _renamed(what: str, columns: _Columns, names: Mapping[str, str], olds: frozenset[str]) -> _Columns:
    """Return the columns of a file under their new names, as ``MapColumns`` gives them.

    Args:
        what: the call, for messages.
        columns: the columns of the file.
        names: the old names and the new ones for this file.
        olds: the old names for all files: a None under one of them, as of a file that lacks it, is left out.
    """
    made: dict[str, Any] = {}
    for old, kind in columns.types.items():
        new = names.get(old, old)
        if old in columns.empty and (new in made or (old in olds and old not in names)):
            continue
        if made.get(new) is not None and kind is not None:
            message = (
                f"{what}: {columns.path} would have two columns {new!r}: drop or rename one of them first"
            )
            raise InvalidArgument(message)
        made[new] = made.get(new) if kind is None else kind
    return _Columns(columns.path, columns.name, made)


def _files_of(what: str, child: Node) -> Iterable[_Columns]:
    """Return the columns of each file of a dataset, in the types that its records have them."""
    declared = child.declared()
    by_file = None if declared is None else _by_file(child)
    if declared is None or by_file is None:
        return _sampled(what, child)
    found = [
        _Columns(columns.path, columns.name, {name: declared.get(name) for name in columns.types})
        for columns in by_file
    ]
    unknown = frozenset(name for name, kind in declared.items() if kind is None)
    return [*found, *(_sampled(what, child, unknown) if unknown else ())]


def _by_file(node: Node) -> list[_Columns] | None:
    """Return the columns that each file of a dataset declares; None if that is not known."""
    if isinstance(node, FilesLeaf):
        declared = node.declared_by_file()
        return None if declared is None else [_Columns(*of_file) for of_file in declared]
    if isinstance(node, OrderNode):
        each = [_by_file(child) for child in each_once(node.children)]
        return None if None in each else [columns for some in each for columns in some or ()]
    below = _by_file(node.child) if isinstance(node, ColumnNode) else None
    if not isinstance(node, ColumnNode) or below is None:
        return None
    known: dict[int, Mapping[str, Any]] = {}
    found = []
    for columns in below:
        types = columns.types
        if isinstance(node, UnifyColumns):
            found.append(columns)  # what a file has not is None, as in a source of several files
            continue
        if isinstance(node, MapColumns):
            names = next((dict(some) for pattern, some in node.files if _matches(pattern, columns)), {})
            types = {names.get(name, name): kind for name, kind in types.items()}
        else:
            if id(types) not in known:
                stub = with_children(node, {id(node.child): _Declaring(types)})
                known[id(types)] = stub.declared() or {}
            types = known[id(types)]
        found.append(_Columns(columns.path, columns.name, types))
    return found


@dataclass(frozen=True, slots=True)
class _Declaring:
    """Stands for a child of which only the declared columns are looked at."""

    types: Mapping[str, Any]

    def declared(self) -> Mapping[str, Any]:
        """Return the columns and their types."""
        return self.types


def _sampled(what: str, node: Node, only: frozenset[str] | None = None) -> list[_Columns]:
    """Return the columns of some records, by file.

    Args:
        what: the call, for messages.
        node: the dataset.
        only: the columns to look at; None for all.

    Raises:
        WrongType: a record is not a dict.
        InvalidArgument: values of a column have no common type.
    """
    node = node if only is None else node.narrowed(only)
    values: dict[tuple[str, str], dict[str, list[Any]]] = {}
    rows = _rows(node)
    files = _files(node, rows)
    for first, records in read_rows(node, rows):
        for number, record in enumerate(records, start=first):
            if record is HOLE:
                continue
            if not isinstance(record, dict):
                place, kind = describe_place(node, int(rows[number])), type(record).__name__
                message = f"{what}: records must be dicts, to have columns (got a {kind}, {place})"
                raise WrongType(message)
            of_file = values.setdefault(files[number], {})
            for name, value in record.items():
                if only is None or name in only:
                    of_file.setdefault(name, []).append(value)
    found = []
    for (path, name), columns in values.items():
        empty = frozenset(column for column, some in columns.items() if all(each is None for each in some))
        types = {column: _type(what, path, column, some) for column, some in columns.items()}
        found.append(_Columns(path, name, types, empty))
    return found


def _rows(node: Node) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the rows that are read, ascending."""
    if node.size is None:
        return np.arange(_BLOCKS, dtype=np.int64)
    blocks = node.blocks[:-1]
    some = blocks[np.unique(np.linspace(0, max(0, blocks.size - 1), _BLOCKS).astype(np.int64))[: blocks.size]]
    rows = np.union1d(looked_at(node.size), some).astype(np.int64)
    return rows[rows < node.size]


def _files(node: Node, rows: np.ndarray[Any, np.dtype[np.int64]]) -> list[tuple[str, str]]:
    """Return the path and the name of the file of each record."""
    try:
        origins = node.plan(rows).origins()
    except InvalidArgument:  # a record is made of several
        return [(node.expression(), "")] * rows.size
    return [(origins.paths[file], origins.names[file]) for file in origins.files.tolist()]


def _type(what: str, path: str, column: str, values: list[Any]) -> Any:
    """Return the type of values; None if all are None, or if Arrow has no type for one.

    Raises:
        InvalidArgument: the values have types without a common one.
    """
    if not isinstance(column, str):
        message = f"{what}: the names of columns must be strings (got {column!r} in {path})"
        raise InvalidArgument(message)
    try:
        kind = type_of(values)
    except UnsupportedType as error:
        if not all(map(_has_type, values)):
            return None
        message = f"{what}: values of the column {column!r} of {path} have no common type, {error}: cast them"
        raise InvalidArgument(message) from None
    return None if pa.types.is_null(kind) else kind


def _has_type(value: Any) -> bool:
    try:
        type_of([value])
    except UnsupportedType:
        return False
    return True
