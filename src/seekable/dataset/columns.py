"""The methods of a dataset for the columns of records that are dicts, and for records in Arrow's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from seekable._arguments import checked_count, checked_flag
from seekable._lazy import lazy
from seekable.dataset.face import Face
from seekable.dataset.position import checked_places
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.graph import known_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.dataset import summary, union
    from seekable.nodes.columns import arrow_types as column_types
    from seekable.nodes.columns import cast, choose, rename
    from seekable.nodes.columns import names as column_names
    from seekable.nodes.columns import record_batches as tables
    from seekable.nodes.columns.choose import Missing
    from seekable.nodes.node import BatchForm
else:
    summary = lazy("seekable.dataset.summary")
    union = lazy("seekable.dataset.union")
    cast = lazy("seekable.nodes.columns.cast")
    choose = lazy("seekable.nodes.columns.choose")
    column_names = lazy("seekable.nodes.columns.names")
    column_types = lazy("seekable.nodes.columns.arrow_types")
    rename = lazy("seekable.nodes.columns.rename")
    tables = lazy("seekable.nodes.columns.record_batches")

__all__ = ["ColumnTools"]

_KINDS = ("python", "numpy", "arrow")


class ColumnTools(Face):
    """Methods for the columns of records; nothing is read, unless a method says so.

    ``missing`` decides what becomes of a record that lacks a column: ``"error"`` raises, ``"none"`` puts None
    in its place. A column that no file has raises `MissingColumn` at once where the files declare their
    columns (Parquet, Arrow), and elsewhere when such a record is read.

    Columns that no one uses are not read: a table's files are read for the columns that come out at the end.
    """

    __slots__ = ()

    def select_columns(self, columns: Iterable[str], *, missing: Missing = "error") -> Self:
        """Return the records with these columns alone, in this order.

        Raises:
            MissingColumn: the files declare their columns, and one is not among them.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"id": 1, "text": "a", "lang": "de"}])
            >>> ds.select_columns(["lang", "id"])[0]
            {'lang': 'de', 'id': 1}
        """
        names = column_names.checked_names("select_columns()", columns)
        self._must_have("select_columns()", names, missing)
        return self._over(choose.SelectColumns(self._node.narrowed(frozenset(names)), names, missing))

    def drop_columns(self, columns: Iterable[str]) -> Self:
        """Return the records without these columns; a record may lack them.

        Raises:
            MissingColumn: the files declare their columns, and one is not among them.

        Example:
            >>> import seekable as sk
            >>> sk.from_sequence([{"id": 1, "text": "a"}]).drop_columns(["text"])[0]
            {'id': 1}
        """
        names, node = column_names.checked_names("drop_columns()", columns), self._node
        self._must_have("drop_columns()", names, "error")
        declared = node.declared()
        if declared is not None:
            node = node.narrowed(frozenset(declared).difference(names))
        return self._over(choose.DropColumns(node, names))

    def rename(
        self,
        names: Mapping[str, str] | Mapping[str, Mapping[str, str]],
        *,
        keep: bool = False,
        missing: Missing = "error",
        columns: Literal["union"] | None = None,
    ) -> Self:
        """Return the records with some columns under other names, in all files or by file.

        Args:
            names: old names and new ones, ``{"content": "text"}``; two columns may exchange their names. Or
                such a dict for a pattern of files, ``{"old-*.jsonl": {"content": "text"}}`` (see ``filter``).
                The first pattern that matches a file counts; files that none matches stay as they are.
            keep: True to keep the columns under their old names too: each gets a second name. A column that
                has a new name already is replaced. Not by file.
            missing: ``"none"`` for None where a record lacks a column, instead of an error. By file all
                records have all new names then, and no None under an old name that a file replaces.
            columns: by file, ``"union"`` gives each record the columns of all files under their new names,
                None in those that its file lacks, in types that hold the values of all files; see
                ``sk.concat``. An old name that no file of its pattern has is an error now, unless ``missing``
                is ``"none"``.

        Raises:
            MissingColumn: the files declare their columns, and one is not among them; with ``columns``: no
                file of a pattern has an old name.
            InvalidArgument: arguments exclude each other; with ``columns``: no type holds the values of a
                column of several files.
            WrongType: ``names`` is something else.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"content": "a", "id": 1}])
            >>> ds.rename({"content": "text"})[0], ds.rename({"id": "row"}, keep=True)[0]
            ({'text': 'a', 'id': 1}, {'content': 'a', 'id': 1, 'row': 1})
        """
        keep = checked_flag("keep", keep)
        if isinstance(names, Mapping) and any(isinstance(new, Mapping) for new in names.values()):
            if keep:
                message = "rename(keep=True) takes names of columns, and no patterns of files (got {names!r})"
                raise InvalidArgument(message.format(names=names))
            return self._renamed_by_file(names, choose.checked_missing(missing), columns)
        if columns is not None:
            message = f"rename(columns=) is for names by file, {{'old-*': {{...}}}} (got {columns!r})"
            raise InvalidArgument(message)
        pairs = rename.checked_renames("rename()", names)
        self._must_have("rename()", [old for old, _ in pairs], missing)
        if not keep:
            return self._over(rename.Rename(self._node, pairs, missing))
        if again := {new for old, new in pairs if new != old}.intersection(old for old, _ in pairs):
            message = (
                f"rename(keep=True) keeps {min(again)!r}, which cannot be a new name too (got {names!r})"
            )
            raise InvalidArgument(message)
        node = self._node
        for old, new in pairs:
            node = rename.Alias(node, new, old, missing)
        return self._over(node)

    def _renamed_by_file(
        self, files: Mapping[str, Any], missing: Missing, columns: Literal["union"] | None
    ) -> Self:
        """Return the records with names that differ from file to file; see ``rename``."""
        mapped = tuple(
            (pattern, rename.checked_renames(f"rename() of {pattern!r}", names))
            for pattern, names in files.items()
        )
        if columns is not None and union.checked_union("rename()", columns):
            return self._over(union.unified_files(self._node, mapped, lenient=missing == "none"))
        return self._over(rename.MapColumns(self._node, mapped, missing))

    def cast(
        self, types: Mapping[str, Any], *, missing: Missing = "error", version: str | int | None = None
    ) -> Self:
        """Return the records with the values of some columns as another type; None stays None.

        Nothing is lost on the way: 3.7 is no int, and 300 no int8. A value that does not fit is an error that
        names the column, the value, the file and the row. A float may be rounded to a shorter float.

        Args:
            types: for each column int, float, str or bool, a dtype of NumPy, a type of pyarrow, the name of
                one of the first two (``"int"``, ``"float32"``), or a function of a value.
            missing: ``"none"`` for None where a record lacks a column, instead of an error.
            version: stands for the code of functions, and enters the fingerprint.

        Raises:
            WrongType: a type is none of these.
            MissingColumn: the files declare their columns, and one is not among them.

        Example:
            >>> import seekable as sk
            >>> sk.from_sequence([{"n": "12", "ok": "false"}]).cast({"n": int, "ok": bool})[0]
            {'n': 12, 'ok': False}
        """
        targets = cast.checked_targets(types, version)
        self._must_have("cast()", [name for name, _ in targets], missing)
        return self._over(cast.Cast(self._node, targets, missing))

    def fill(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        types: Mapping[Any, Any] | None = None,
        auto: bool = False,
        default: Any = None,
        nested: bool = False,
    ) -> Self:
        """Return the records with values where a column is missing or None.

        A column's own value comes first, then that of its type, then an automatic one, then the default. With
        ``types``, ``auto`` or ``default`` the columns are those of ``schema``, which is read now.

        Args:
            values: by name of the column.
            types: by type: int, float, str, bool, bytes, list or dict, or Arrow's name of one (``"int64"``).
            auto: 0 for numbers, ``""`` for texts, False for bools.
            default: for any other column.
            nested: True to replace None inside of a filled column's lists and dicts too.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"n": 1, "text": None}, {"n": None, "text": "b"}])
            >>> list(ds.fill({"text": "?"}, auto=True))
            [{'n': 1, 'text': '?'}, {'n': 0, 'text': 'b'}]
        """
        if not isinstance(values, Mapping | None) or not isinstance(types, Mapping | None):
            message = f"fill() takes dicts of values by column and by type (got {values!r}, types={types!r})"
            raise WrongType(message)
        named = {column_names.checked_name("fill()", name): value for name, value in (values or {}).items()}
        if types or checked_flag("auto", auto) or default is not None:
            named = column_types.fill_values(
                self.schema, types=types, auto=auto, default=default, columns=named
            )
        return self._over(choose.Fill(self._node, tuple(named.items()), checked_flag("nested", nested)))

    def source_column(
        self, name: str = "__source_file__", *, row: str | None = None, relative: bool = False
    ) -> Self:
        """Return the records with the path of the file that each came from.

        Args:
            name: the column for the path; a source that is not a file is named in angle brackets.
            row: a column for the record's number in its file, from 0; none if left out.
            relative: True for the path below the folder that was opened, which is the same on any machine.

        Example:
            >>> import seekable as sk
            >>> sk.from_sequence([{"text": "a"}]).source_column("file", row="line")[0]
            {'text': 'a', 'file': '<builtins.list>', 'line': 0}
        """
        name = column_names.checked_name("source_column()", name)
        if row is not None and column_names.checked_name("source_column(row=)", row) == name:
            message = f"source_column() needs two names for the file and the row (got {name!r} twice)"
            raise InvalidArgument(message)
        return self._over(choose.SourceColumn(self._node, name, row, checked_flag("relative", relative)))

    @property
    def schema(self) -> pa.Schema:
        """The columns of the records and their types.

        Files that declare their columns (Parquet, Arrow) are not read: the result unites their schemas. Of
        other files the first 1,000 records are read, and the metadata of the schema, or of a field, says so.

        Raises:
            BadValue: the values of a column have no type in common.
            WrongType: records are not dicts.
            MissingDependency: pyarrow is not installed.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"id": 1, "text": None}, {"id": 2, "text": "b"}])
            >>> ds.schema.names, str(ds.schema.field("text").type), ds.schema.metadata
            (['id', 'text'], 'string', {b'seekable.inferred_from': b'the first 2 records'})
        """
        return column_names.schema_of(self._node)

    def info(self) -> summary.Info:
        """Return rows, files and columns of the dataset; print it for a table.

        The first 1,000 records are read. The rows of each file are counted without reading.

        Raises:
            EndlessDataset: the dataset has no length.
        """
        return summary.info_of(self._node)

    def to_arrow(self, rows: Any = None) -> pa.RecordBatch:
        """Return some rows of epoch 0 as one record batch, in the order given.

        Values of tables (Parquet, Arrow) never become Python objects on the way.

        Args:
            rows: a list or array of rows; all if left out.

        Raises:
            InvalidArgument: records are not dicts, or the values of a column have no common type.
            OutOfRange: a row that the dataset does not have.
            MissingDependency: pyarrow is not installed.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"id": 0, "text": "a"}, {"id": 1, "text": "b"}])
            >>> ds.to_arrow([1, 0]).to_pydict()
            {'id': [1, 0], 'text': ['b', 'a']}
        """
        node = self._node
        if rows is None:
            rows = np.arange(known_size(node, "to_arrow() without rows"), dtype=np.int64)
        positions = checked_places(rows, node.size)
        return tables.table_of(node.plan(positions)) if positions.size else tables.empty_table(node)

    def batches(self, kind: BatchForm, *, size: int) -> Iterator[Any]:
        """Yield the records of epoch 0 in batches: the last may be short.

        Args:
            kind: ``"python"`` for lists of records, ``"arrow"`` for record batches, ``"numpy"`` for dicts of
                arrays: numbers, bools and times without nulls have the dtype of their column
                (``datetime64`` for times), all else is ``object``, with None for null.
            size: the number of records in a batch.

        Raises:
            InvalidArgument: an argument breaks a rule, or records are not dicts.
            MissingDependency: pyarrow is not installed, and the kind is not ``"python"``.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"id": number} for number in range(3)])
            >>> [batch.to_pydict() for batch in ds.batches("arrow", size=2)]
            [{'id': [0, 1]}, {'id': [2]}]
        """
        if kind not in _KINDS:
            message = f"kind must be one of {', '.join(map(repr, _KINDS))} (got {kind!r})"
            raise InvalidArgument(message)
        return tables.batches(self._node, kind, checked_count("size", size, least=1))

    def _batch_at(self, positions: NDArray[np.int64]) -> Any:
        """Return the records at positions as a list, or of tables in the form of their ``decode``."""
        form = self._node.batch_form
        if form == "python":
            return self._node.fetch(positions)
        if positions.size:
            return tables.batch_of(self._node.plan(positions), form)
        empty = tables.empty_table(self._node)
        return empty if form == "arrow" else tables.numpy_batch(empty)

    def _must_have(self, method: str, columns: Iterable[str], missing: Missing) -> None:
        """Raise `MissingColumn` for columns that no file has, unless records may lack them."""
        if choose.checked_missing(missing) == "error":
            column_names.must_have(self._node, method, columns)
