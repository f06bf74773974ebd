"""Columns as methods: what can be done with records that are dicts, of any format.

Each method imports its node inside: nodes are datasets, so they import this class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from seekable._arguments import checked_count, checked_flag
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from seekable.dataset.base import Dataset
    from seekable.dataset.info import Info
    from seekable.nodes.columns.choose import Missing

__all__ = ["ColumnTools"]


class ColumnTools:
    """What can be done with the columns of records; nothing is read, unless a method says so.

    Where a method takes ``missing``, it says what becomes of a record that lacks a column: ``"error"``, or
    ``"none"`` for None in its place. A method that is given a name which no file has raises `MissingColumn`
    at once where the files tell their columns (Parquet, Arrow), and when such a record is read elsewhere.

    What is not looked at is not read: a table's files are asked for the columns that come out at the end.
    """

    def select_columns(self, columns: Iterable[str], *, missing: Missing = "error") -> Dataset:
        """Return the records with these columns alone, in this order.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"id": 1, "text": "a", "lang": "de"}])
            >>> ds.select_columns(["lang", "id"])[0]
            {'lang': 'de', 'id': 1}
        """
        from seekable.nodes.columns.choose import SelectColumns
        from seekable.nodes.columns.missing import must_have
        from seekable.nodes.columns.node import checked_names

        names, dataset = checked_names("select_columns()", columns), _dataset(self)
        if _checked_missing(missing) == "error":
            must_have(dataset, "select_columns()", names)
        return SelectColumns(dataset.narrowed(frozenset(names)), names, missing)

    def drop_columns(self, columns: Iterable[str]) -> Dataset:
        """Return the records without these columns; a record may lack them.

        Example:
            >>> import seekable as sk
            >>> sk.from_sequence([{"id": 1, "text": "a"}]).drop_columns(["text"])[0]
            {'id': 1}
        """
        from seekable.nodes.columns.choose import DropColumns
        from seekable.nodes.columns.missing import must_have
        from seekable.nodes.columns.node import checked_names

        names, dataset = checked_names("drop_columns()", columns), _dataset(self)
        must_have(dataset, "drop_columns()", names)
        declared = dataset.declared()
        if declared is not None:
            dataset = dataset.narrowed(frozenset(declared).difference(names))
        return DropColumns(dataset, names)

    def rename(self, names: Mapping[str, str], *, missing: Missing = "error") -> Dataset:
        """Return the records with some columns under other names.

        Args:
            names: old names and new ones; two columns may change names with each other.
            missing: what becomes of a record that lacks one.

        Example:
            >>> import seekable as sk
            >>> sk.from_sequence([{"content": "a", "id": 1}]).rename({"content": "text"})[0]
            {'text': 'a', 'id': 1}
        """
        from seekable.nodes.columns.missing import must_have
        from seekable.nodes.columns.rename import Rename, checked_renames

        pairs, dataset = checked_renames("rename()", names), _dataset(self)
        if _checked_missing(missing) == "error":
            must_have(dataset, "rename()", [old for old, _ in pairs])
        return Rename(dataset, pairs, missing)

    def map_columns(self, files: Mapping[str, Mapping[str, str]], *, missing: Missing = "error") -> Dataset:
        """Return the records with some columns under other names, as each one's file has them.

        Args:
            files: for a pattern of files (``"old-*.jsonl"``; see ``filter``) the old names and the new ones.
                The first pattern that means a file counts; files that none means stay as they are.
            missing: what becomes of a record of such a file that lacks one of the old names. With
                ``"none"`` all records have all new names, and no None under an old name that a file replaces.

        Example:
            >>> import pathlib, tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = pathlib.Path(folder, "new.jsonl").write_text('{"text": "b"}')
            ...     _ = pathlib.Path(folder, "old.jsonl").write_text('{"content": "a"}')
            ...     list(sk.open(folder).map_columns({"old*": {"content": "text"}}))
            [{'text': 'b'}, {'text': 'a'}]
        """
        from seekable.nodes.columns.rename import MapColumns, checked_renames

        if not isinstance(files, Mapping) or not all(isinstance(pattern, str) for pattern in files):
            message = f'map_columns() takes {{"pattern of files": {{"old": "new"}}}} (got {files!r})'
            raise WrongType(message)
        mapped = tuple(
            (pattern, checked_renames(f"map_columns() of {pattern!r}", names))
            for pattern, names in files.items()
        )
        return MapColumns(_dataset(self), mapped, _checked_missing(missing))

    def cast(
        self, types: Mapping[str, Any], *, missing: Missing = "error", version: str | int | None = None
    ) -> Dataset:
        """Return the records with the values of some columns as another type; None stays None.

        Nothing is lost on the way: 3.7 is no int, and 300 no int8. What does not fit is an error that names
        the column, the value, the file and the row. A float may be rounded to a shorter float.

        Args:
            types: for each column int, float, str or bool, a dtype of NumPy, a type of pyarrow, the name of
                one of the first two (``"int"``, ``"float32"``), or a function of a value.
            missing: what becomes of a record that lacks one.
            version: stands for the code of functions, and enters the fingerprint.

        Raises:
            WrongType: a type is none of these.

        Example:
            >>> import seekable as sk
            >>> sk.from_sequence([{"n": "12", "ok": "false"}]).cast({"n": int, "ok": bool})[0]
            {'n': 12, 'ok': False}
        """
        from seekable.nodes.columns.cast import Cast, checked_targets
        from seekable.nodes.columns.missing import must_have

        targets, dataset = checked_targets(types, version), _dataset(self)
        if _checked_missing(missing) == "error":
            must_have(dataset, "cast()", [name for name, _ in targets])
        return Cast(dataset, targets, missing)

    def alias(
        self,
        name: str,
        source: str | Callable[..., Any],
        *,
        size: int | None = None,
        missing: Missing = "error",
        version: str | int | None = None,
    ) -> Dataset:
        """Return the records with one more column: another one's values, or a function's.

        Args:
            name: the column's name; one that is there already is replaced.
            source: the name of a column, which stays too; or a function of the record.
            size: call the function with lists of up to so many records instead, for a list of values. What
                it makes of a record must not depend on the others.
            missing: what becomes of a record that lacks the column that is named.
            version: enters the fingerprint; change it when the function changes what it returns.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"text": "abc"}])
            >>> ds.alias("body", "text").alias("length", lambda record: len(record["text"]))[0]
            {'text': 'abc', 'body': 'abc', 'length': 3}
        """
        from seekable.nodes.columns.alias import Alias, Computed
        from seekable.nodes.columns.missing import must_have
        from seekable.nodes.columns.node import checked_name

        name, dataset = checked_name("alias()", name), _dataset(self)
        if not isinstance(source, str):
            most = None if size is None else checked_count("size", size, least=1)
            return Computed(dataset, name, source, most, version)
        if size is not None or version is not None:
            message = "alias(size=, version=) are for a function (got the name of a column)"
            raise InvalidArgument(message)
        if _checked_missing(missing) == "error":
            must_have(dataset, "alias()", [source])
        return Alias(dataset, name, source, missing)

    def fill(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        types: Mapping[Any, Any] | None = None,
        auto: bool = False,
        default: Any = None,
        nested: bool = False,
    ) -> Dataset:
        """Return the records with values where a column is missing or None.

        A column's own value comes first, then that of its type, then an automatic one, then the default. By
        type, automatically and by default, the columns are those of ``schema``, which is asked now.

        Args:
            values: by name of the column.
            types: by type: int, float, str, bool, bytes, list or dict, or Arrow's name of one (``"int64"``).
            auto: 0 for numbers, ``""`` for texts, False for bools.
            default: for any other column.
            nested: whether None inside of a filled column's lists and dicts is replaced too.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"n": 1, "text": None}, {"n": None, "text": "b"}])
            >>> list(ds.fill({"text": "?"}, auto=True))
            [{'n': 1, 'text': '?'}, {'n': 0, 'text': 'b'}]
        """
        from seekable.nodes.columns.fill import Fill
        from seekable.nodes.columns.node import checked_name
        from seekable.nodes.columns.zeros import fills

        if not isinstance(values, Mapping | None) or not isinstance(types, Mapping | None):
            message = f"fill() takes dicts of values by column and by type (got {values!r}, types={types!r})"
            raise WrongType(message)
        named = {checked_name("fill()", name): value for name, value in (values or {}).items()}
        if types or checked_flag("auto", auto) or default is not None:
            named = fills(self.schema, types=types, auto=auto, default=default, columns=named)
        return Fill(_dataset(self), tuple(named.items()), checked_flag("nested", nested))

    def source_column(
        self, name: str = "__source_file__", *, row: str | None = None, relative: bool = False
    ) -> Dataset:
        """Return the records with the path of the file that each came from.

        Args:
            name: the column for the path; in angle brackets for what is no file.
            row: a column for the record's number in its file, from 0; none if left out.
            relative: whether the path is the one below the folder that was opened, which is the same on any
                machine.

        Example:
            >>> import seekable as sk
            >>> sk.from_sequence([{"text": "a"}]).source_column("file", row="line")[0]
            {'text': 'a', 'file': '<builtins.list>', 'line': 0}
        """
        from seekable.nodes.columns.node import checked_name
        from seekable.nodes.columns.origin import SourceColumn

        name = checked_name("source_column()", name)
        if row is not None and checked_name("source_column(row=)", row) == name:
            message = f"source_column() needs two names for the file and the row (got {name!r} twice)"
            raise InvalidArgument(message)
        return SourceColumn(_dataset(self), name, row, checked_flag("relative", relative))

    @property
    def schema(self) -> pa.Schema:
        """The columns of the records and their types.

        Files that tell it (Parquet, Arrow) are believed: their schemas in one. For other columns the first
        1,000 records are read, and the metadata of the schema, or of the field, says so.

        Raises:
            BadValue: the values of a column have no type in common.
            WrongType: records are no dicts.
            MissingDependency: pyarrow is not installed.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"id": 1, "text": None}, {"id": 2, "text": "b"}])
            >>> ds.schema.names, str(ds.schema.field("text").type), ds.schema.metadata
            (['id', 'text'], 'string', {b'seekable.inferred_from': b'the first 2 records'})
        """
        from seekable.nodes.columns.infer import schema_of

        return schema_of(_dataset(self))

    def info(self) -> Info:
        """Return what there is to the dataset: rows, files and columns; print it for a table.

        The first 1,000 records are read. What each file has of the rows is counted without reading.

        Raises:
            EndlessDataset: the dataset has no length.
        """
        from seekable.dataset.info import info_of

        return info_of(_dataset(self))


def _checked_missing(missing: Missing) -> Missing:
    if missing not in ("error", "none"):
        message = f"missing must be 'error' or 'none' (got {missing!r})"
        raise InvalidArgument(message)
    return missing


def _dataset(tools: ColumnTools) -> Dataset:
    return cast("Dataset", tools)
