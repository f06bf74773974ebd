"""One schema for files whose columns differ: the columns of all files, and the conversions of each file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable._arguments import repeated
from seekable._optional import optional
from seekable.errors import UnsupportedFormat
from seekable.nodes.columns.unified_type import NoCommonType, unified_type

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["ColumnMapping", "read_schemas", "unified"]


def read_schemas(schemas: Sequence[bytes]) -> list[pa.Schema]:
    """Return the schemas that the index keeps as bytes."""
    return [pa.ipc.read_schema(pa.py_buffer(schema)).remove_metadata() for schema in schemas]


def unified(
    schemas: Sequence[pa.Schema],
    *,
    examples: Sequence[str],
    strict: bool,
    only: Collection[str] | None = None,
) -> pa.Schema:
    """Return a schema with the columns of all files, each of a type that holds all values.

    Columns stand in the order in which they come first. One that is missing in a file, there is None for.

    Args:
        schemas: the distinct schemas, in the order of the files.
        examples: for each, the path of a file that has it.
        strict: whether all must have the same columns of the same types.
        only: the names of the columns to return, as far as there are any; None for all.

    Raises:
        UnsupportedFormat: types of a column have no common one; or they differ, and ``strict`` forbids it.

    Example:
        >>> import pyarrow as pa
        >>> old, new = pa.schema({"id": pa.int32()}), pa.schema({"id": pa.int64(), "text": pa.string()})
        >>> unified([old, new], examples=["a", "b"], strict=False).names
        ['id', 'text']
    """
    whole = _chosen(schemas[0], only)
    for schema, path in zip(schemas, examples, strict=True):
        _refuse_twins(schema, path)
        if strict and not schema.equals(schemas[0]):
            raise UnsupportedFormat(_difference(schemas[0], schema, examples[0], path))
        whole = _joined(whole, _chosen(schema, only), examples[0], path)
    return whole


def _chosen(schema: pa.Schema, only: Collection[str] | None) -> pa.Schema:
    return schema if only is None else pa.schema([field for field in schema if field.name in only])


def _joined(whole: pa.Schema, other: pa.Schema, path: str, other_path: str) -> pa.Schema:
    """Merge two schemas: each column gets a type that holds the values of both.

    Raises:
        UnsupportedFormat: some have no such type.
    """
    try:
        return pa.unify_schemas([whole, other], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass  # pyarrow joins no dictionary with a text, and no view
    fields = {field.name: field for field in whole}
    without: list[str] = []
    for field in other:
        known = fields.setdefault(field.name, field)
        try:
            fields[field.name] = _joined_field(known, field)
        except NoCommonType as error:
            within = f", in its field {error.within!r}" if error.within else ""
            without.append(f"{field.name!r} is {error.other} and not {error.one}{within}")
    if without:
        message = (
            f"the files from {path!r} on and {other_path!r} have no common type for a column: "
            f"{'; '.join(without)}. Read the others with columns=; or open the files apart, and cast the "
            f"column of one: sk.concat([a, b.cast(...)])"
        )
        raise UnsupportedFormat(message)
    return pa.schema(list(fields.values()))


def _joined_field(one: pa.Field, other: pa.Field) -> pa.Field:
    """Return a column of a type that holds the values of two.

    Raises:
        NoCommonType: there is none.
    """
    try:
        (joined,) = pa.unify_schemas([pa.schema([one]), pa.schema([other])], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kind = unified_type(one.type, other.type)
        return pa.field(one.name, kind, nullable=one.nullable or other.nullable)
    return joined


def _refuse_twins(schema: pa.Schema, path: str) -> None:
    if twins := repeated(schema.names):
        message = (
            f"{path!r} has several columns called {twins[0]!r}, and the fields of a record have different "
            f"names: write it anew with other names"
        )
        raise UnsupportedFormat(message)


def _difference(first: pa.Schema, other: pa.Schema, path: str, other_path: str) -> str:
    return (
        f"strict=True wants the same columns of the same types in all files, and {other_path!r} differs from "
        f"{path!r}: {'; '.join(_differences(first, other))}. Leave strict=True out to fill what is missing "
        f"with None and convert to common types"
    )


def _differences(first: pa.Schema, other: pa.Schema) -> list[str]:
    ours, theirs = ({field.name: field.type for field in schema} for schema in (first, other))
    found = [f"it lacks {name!r}" for name in ours if name not in theirs]
    found += [f"it adds {name!r}" for name in theirs if name not in ours]
    found += [
        f"{name!r} is {theirs[name]} and not {kind}"
        for name, kind in ours.items()
        if name in theirs and theirs[name] != kind
    ]
    return found or ["its columns stand in another order, or may or may not be null"]


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """Maps the schema of a file to the wanted columns: which are read, cast, or filled with nulls."""

    wanted: pa.Schema
    """Names and types of the columns of records."""

    file: pa.Schema
    """Names and types of the columns of the file."""

    there: tuple[str, ...]
    """The names of the wanted columns that the file has."""

    @classmethod
    def of(cls, wanted: pa.Schema, file: pa.Schema) -> ColumnMapping:
        """Return the mapping from the schema of a file to the wanted columns."""
        names = set(file.names)
        return cls(wanted, file, tuple(name for name in wanted.names if name in names))

    def take(
        self, batch: pa.RecordBatch, cast: Callable[[str, pa.Array, pa.DataType], pa.Array]
    ) -> pa.RecordBatch:
        """Return the wanted columns of a batch.

        Args:
            batch: the columns ``there``, of a file.
            cast: returns the named column in another type.
        """
        if batch.schema.equals(self.wanted):
            return batch
        arrays = []
        there = dict(zip(self.there, batch.columns, strict=True))
        for field in self.wanted:
            array = there.get(field.name)
            if array is None:
                arrays.append(pa.nulls(batch.num_rows, field.type))
                continue
            arrays.append(array if array.type == field.type else cast(field.name, array, field.type))
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self.wanted)
