"""The node that makes columns of folders ``year=2024/lang=de/``, as Hive and pyarrow name them.

The folders between the opened folder and a file count, and those at the end of the opened folder's own path.
So a file has the same keys, whether it was opened by its path, by a glob or with the folder around it. Names
and values are URL-decoded; ``__HIVE_DEFAULT_PARTITION__`` is None. The type of a key is int64 if all of its
values are integers, else string.

A record whose file lies in no folder of a key has there what it has itself, or None. Where the keys alone are
used, and no record may have a value of its own there, no file is opened.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final
from urllib.parse import unquote

import numpy as np

from seekable._cached import cached
from seekable._lazy import lazy
from seekable._optional import is_installed, optional
from seekable.errors import BadValue, InvalidArgument
from seekable.index.fileset import FileSet
from seekable.nodes.columns.column_node import ByFile, ColumnarNode
from seekable.nodes.columns.unified_type import fitted_array
from seekable.nodes.conditions import Bounds
from seekable.nodes.display import describe_place
from seekable.nodes.files.leaf import FilesLeaf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyarrow import compute

    from seekable._typing import Int64s
    from seekable.errors import SeekableError
    from seekable.nodes.columns import record_batches
    from seekable.nodes.columns.column_node import Making
    from seekable.nodes.conditions import Where
    from seekable.nodes.graph import Origins
    from seekable.nodes.node import Node

    _Place = tuple[dict[str, Any], dict[str, str | None]]
else:
    pa = optional("pyarrow", extra="parquet")
    compute = optional("pyarrow.compute", extra="parquet")
    record_batches = lazy("seekable.nodes.columns.record_batches")

__all__ = ["KeyType", "Partitions", "key_types", "keys_of", "partitioned"]

_NULL = "__HIVE_DEFAULT_PARTITION__"

_INTEGER = re.compile(r"-?[0-9]+")

_BOUNDS = -(1 << 63), (1 << 63) - 1

KeyType = Literal["int64", "string"]
"""The type of a column, by Arrow's name."""


def keys_of(root: str, name: str) -> dict[str, str | None]:
    """Return the keys and values in the path of a file; None for a null.

    Args:
        root: the folder that was opened.
        name: the path of the file below it.

    Raises:
        InvalidArgument: a key comes twice.

    Example:
        >>> keys_of("/data/year=2024", "lang=de/part=__HIVE_DEFAULT_PARTITION__/a.parquet")
        {'year': '2024', 'lang': 'de', 'part': None}
    """
    found: dict[str, str | None] = {}
    for folder in [*_end_of(root), *name.split("/")[:-1]]:
        key, equals, value = folder.partition("=")
        if not (key and equals):
            continue
        key = unquote(key)
        if key in found:
            message = f"{os.path.join(root, name)!r} lies in two folders of {key!r}: rename one of them"
            raise InvalidArgument(message)
        found[key] = None if value == _NULL else unquote(value)
    return found


def _end_of(root: str) -> list[str]:
    """Return the folders at the end of a path that are of the form key=value."""
    folders = root.split("/")
    first = len(folders)
    while first and "=" in folders[first - 1][1:]:
        first -= 1
    return folders[first:]


def key_types(files: FileSet) -> dict[str, KeyType]:
    """Return the keys in the paths of some files, each with the type of its values.

    Raises:
        InvalidArgument: a key comes twice in a path.
    """
    texts: dict[str, set[str]] = {}
    folders: set[tuple[str, str]] = set()
    for root, name in _roots_and_names(files):
        folder = root, os.path.dirname(name)
        if folder not in folders:
            folders.add(folder)
            for key, text in keys_of(root, name).items():
                texts.setdefault(key, set()).update([] if text is None else [text])
    return {key: _type(some) for key, some in texts.items()}


def _type(texts: set[str]) -> KeyType:
    return "int64" if texts and all(map(_is_int64, texts)) else "string"


def _is_int64(text: str) -> bool:
    return bool(_INTEGER.fullmatch(text)) and _BOUNDS[0] <= int(text) <= _BOUNDS[1]


def _roots_and_names(files: FileSet) -> Iterable[tuple[str, str]]:
    """Return the root and the name of each file."""
    roots = [root for root, _, count in files.runs for _ in range(count)]
    return zip(roots, files.names(), strict=True)


def partitioned(source: Any, types: Mapping[str, KeyType], order: Sequence[str] | None) -> Node:
    """Return a source with columns for the folders of its files.

    Args:
        source: a source of files.
        types: the keys, with the types of their values.
        order: the columns of records, in their order; None for those of the source, then the keys.

    Raises:
        InvalidArgument: a file declares a column of the name of a key, of another type.
    """
    declared = source.declared() or {}
    chosen = {key: kind for key, kind in types.items() if order is None or key in order}
    columns = tuple((key, _with_declared(key, kind, declared.get(key))) for key, kind in chosen.items())
    if not columns:
        node: Node = source
        return node
    roots = tuple("/".join(_end_of(root)) for root, _, _ in source.files.runs)
    return Partitions(source, columns, None if order is None else tuple(order), roots if any(roots) else ())


def _with_declared(key: str, kind: KeyType, declared: Any) -> KeyType:
    """Return the type of a key, whose name may be that of a column too.

    Raises:
        InvalidArgument: the column is of another type.
    """
    if declared is None or (kind == "int64" and pa.types.is_integer(declared)):
        return kind
    values = declared.value_type if pa.types.is_dictionary(declared) else declared
    if pa.types.is_string(values) or pa.types.is_large_string(values):
        return "string"
    message = (
        f"the folders give a column {key!r} of the type {kind}, and files have a column of that name, of "
        f"the type {declared}: leave partitions= out, or name the columns to read without it, in columns="
    )
    raise InvalidArgument(message)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Partitions(ColumnarNode):
    """Each record with columns for the folders that its file lies in."""

    child: Node
    columns: tuple[tuple[str, KeyType], ...]
    """The keys, each with the type of its values."""
    order: tuple[str, ...] | None
    """The columns of records in their order; None for those of the child, then the keys."""
    roots: tuple[str, ...]
    """The folders key=value at the end of the path of each opened folder; empty if there are none."""
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "partitions"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the keys with their types, the order of columns, and the folders above the files' names."""
        order = {} if self.order is None else {"order": list(self.order)}
        roots = {"roots": list(self.roots)} if self.roots else {}
        return {"columns": [list(pair) for pair in self.columns], **order, **roots}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``sk.open``."""
        shown = children[0].removesuffix(")")
        if self.order is not None:
            own = [name for name in self.order if name not in self._keys]
            shown = shown.replace(f", columns={own}", f", columns={list(self.order)}", 1)
        return f"{shown}, partitions='hive')"

    @property
    def making(self) -> Making:
        """Each record is made by itself, from its place too."""
        return ByFile(self.made)

    def made(self, record: dict[str, Any], path: str, name: str, row: int) -> dict[str, Any]:
        """Return a dict with the columns of the folders.

        Raises:
            BadValue: the record has another value in a column of the name of a key.
        """
        if path not in self._of_paths:
            self._of_paths[path] = self._values(path.removesuffix(name).rstrip("/"), name)
        values, texts = self._of_paths[path]
        made = {**record, **values}
        if not values.keys().isdisjoint(record):
            made.update(_own(record, values, texts))
        if self.order is None:
            return made
        return {column: made.get(column) for column in self.order if self.looked_at(column)}

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error as it is: it names the column and both values."""
        return error if isinstance(error, BadValue) else None

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return nothing if the columns are keys alone; else the columns, because files may have keys too."""
        return columns if columns - self._keys or columns & self._perhaps_own else frozenset()

    def beneath(self, column: str) -> str | None:
        """Return the same name; None for a key."""
        return None if column in self._keys else column

    def declared_over(self, below: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of the child, if it declares them, and those of the folders."""
        kinds = {**below, **self._arrow_types}
        return kinds if self.order is None else {name: kinds[name] for name in self.order}

    def may_match(self, where: Where) -> Int64s:
        """Return the runs of the files whose folders may pass; of tables, statistics rule out more."""
        child = self.child
        if not isinstance(child, FilesLeaf):
            return super().may_match(where)
        known: dict[tuple[str, str], dict[str, Bounds]] = {}
        of_file = []
        for root, name in _roots_and_names(child.files):
            folder = root, os.path.dirname(name)
            if folder not in known:
                known[folder] = self._bounds(*self._values(root, name))
            of_file.append(known[folder])
        return child.may_match_knowing(where, of_file)

    def is_columnar(self, positions: Int64s) -> bool:
        """Return True if nothing of the child is needed, or its columns are read as columns."""
        if self._is_apart:
            return is_installed("pyarrow")  # lines of JSON are read without it
        return record_batches.is_columnar(self.child.plan(positions))

    def without_child(self, positions: Int64s) -> list[Any] | None:
        """Return the records of the keys alone, if no other column is used."""
        if not self._is_apart:
            return None
        origins = self.child.plan(positions).origins()
        values = [self._chosen(each) for each, _ in self._of_files(origins)]
        return [dict(values[file]) for file in origins.files.tolist()]

    def table(self, positions: Int64s) -> pa.RecordBatch:
        """Return some records as one record batch.

        Raises:
            BadValue: a record has another value in a column of the name of a key.
            InvalidArgument: a record is not a dict.
        """
        plan = self.child.plan(positions)
        if not self._is_apart and not record_batches.is_columnar(plan):
            return self._in_order(
                record_batches.batch_of_records(self.plan(positions).read(), self._arrow_types)
            )
        columns: dict[str, Any] = {}
        if not self._is_apart:
            batch = record_batches.table_of(plan)
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        origins = plan.origins()
        places = self._of_files(origins)
        self._columns_must_agree(columns, origins, positions)
        for key, kind in self._arrow_types.items():
            values = pa.array([values[key] for values, _ in places], kind).take(pa.array(origins.files))
            if key in columns:
                is_own = np.array([key not in texts for _, texts in places])[origins.files]
                values = compute.if_else(pa.array(is_own), fitted_array(columns[key], kind), values)
            columns[key] = values
        return self._in_order(record_batches.with_rows(list(columns), list(columns.values()), positions.size))

    def _in_order(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        there = dict(zip(batch.schema.names, batch.columns, strict=True))
        names = [name for name in (self.order or there) if self.looked_at(name) and name in there]
        return record_batches.with_rows(names, [there[name] for name in names], batch.num_rows)

    def _columns_must_agree(self, columns: Mapping[str, Any], origins: Origins, positions: Int64s) -> None:
        shared = self._keys.intersection(columns)
        if not shared:
            return
        places = self._of_files(origins)
        own = {key: columns[key].to_pylist() for key in shared}
        for i, file in enumerate(origins.files.tolist()):
            try:
                _own({key: some[i] for key, some in own.items()}, *places[file])
            except BadValue as error:
                where = describe_place(self.child, int(positions[i]))
                raise BadValue(f"{where}: {self.kind}: {error}") from None

    @property
    def _is_apart(self) -> bool:
        """True if no column of the child is used, and none of its records may be replaced by a hole."""
        may_have_holes = getattr(self.child, "errors", None) is not None
        return self.only is not None and not self.needs(self.only) and not may_have_holes

    @cached
    def _perhaps_own(self) -> frozenset[str]:
        """The keys that a file lies in no folder of, and that its records may have themselves."""
        declared, files = self.child.declared(), getattr(self.child, "files", None)
        keys = self._keys if declared is None else self._keys.intersection(declared)
        if not keys or not isinstance(files, FileSet):
            return keys
        texts = [self._values(root, name)[1] for root, name in _roots_and_names(files)]
        return frozenset(key for key in keys if any(key not in some for some in texts))

    def _bounds(self, values: Mapping[str, Any], texts: Mapping[str, str | None]) -> dict[str, Bounds]:
        """Return the bounds of the keys in the records of a file, without keys that records may have."""
        return {
            key: Bounds(value, value, nulls=value is None, values=value is not None)
            for key, value in values.items()
            if key in texts or key not in self._perhaps_own
        }

    def _chosen(self, values: Mapping[str, Any]) -> dict[str, Any]:
        order = self.order or tuple(values)
        return {key: values[key] for key in order if key in values and self.looked_at(key)}

    def _of_files(self, origins: Origins) -> list[_Place]:
        """Return the values and the texts of the keys for each file."""
        return [self._values(*_root_and_name(origins, file)) for file in range(len(origins.paths))]

    def _values(self, root: str, name: str) -> _Place:
        """Return the value of each key for a file, None without a folder, and the texts of its folders."""
        place = root, os.path.dirname(name)
        if place not in self._known:
            texts, values = keys_of(root, name), dict[str, Any]()
            for key, kind in self.columns:
                text = texts.get(key)
                values[key] = int(text) if kind == "int64" and text is not None else text
            self._known[place] = values, texts
        return self._known[place]

    @cached
    def _known(self) -> dict[tuple[str, str], _Place]:
        return {}

    @cached
    def _of_paths(self) -> dict[str, _Place]:
        return {}

    @cached
    def _keys(self) -> frozenset[str]:
        return frozenset(key for key, _ in self.columns)

    @cached
    def _arrow_types(self) -> dict[str, Any]:
        types = {"int64": pa.int64(), "string": pa.string()}
        return {key: types[kind] for key, kind in self.columns}


def _own(
    record: Mapping[str, Any], values: Mapping[str, Any], texts: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return a record's own values for keys without a folder in the path of its file.

    Raises:
        BadValue: the record has another value than the folder.
    """
    found = {}
    for key, value in values.items():
        own = record.get(key)
        if own is None or (key in texts and (own == value or str(own) == texts[key])):
            continue
        if key in texts:
            message = (
                f"the folder says {key}={'null' if value is None else texts[key]}, and the record has "
                f"{own!r} there: leave partitions= out, or move the record to the folder of its value"
            )
            raise BadValue(message)
        found[key] = own
    return found


def _root_and_name(origins: Origins, file: int) -> tuple[str, str]:
    name = origins.names[file]
    return origins.paths[file].removesuffix(name).rstrip("/"), name
