"""One schema for files whose columns differ: the columns of all files, and the conversions of each file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable._optional import optional
from seekable.errors import UnsupportedFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["Columns", "read_schemas", "unified"]


def read_schemas(schemas: Sequence[bytes]) -> list[pa.Schema]:
    """Return the schemas that the index keeps as bytes."""
    return [pa.ipc.read_schema(pa.py_buffer(schema)).remove_metadata() for schema in schemas]


def unified(schemas: Sequence[pa.Schema], *, examples: Sequence[str], strict: bool) -> pa.Schema:
    """Return a schema with the columns of all files, each of a type that holds all values.

    Columns stand in the order in which they come first. One that is missing in a file, there is None for.

    Args:
        schemas: the distinct schemas, in the order of the files.
        examples: for each, the path of a file that has it.
        strict: whether all must have the same columns of the same types.

    Raises:
        UnsupportedFormat: types of a column have no common one; or they differ, and ``strict`` forbids it.

    Example:
        >>> import pyarrow as pa
        >>> old, new = pa.schema({"id": pa.int32()}), pa.schema({"id": pa.int64(), "text": pa.string()})
        >>> unified([old, new], examples=["a", "b"], strict=False).names
        ['id', 'text']
    """
    whole = schemas[0]
    for schema, path in zip(schemas, examples, strict=True):
        _refuse_twins(schema, path)
        if strict and not schema.equals(schemas[0]):
            raise UnsupportedFormat(_difference(schemas[0], schema, examples[0], path))
        try:
            whole = pa.unify_schemas([whole, schema], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise UnsupportedFormat(_no_common_type(whole, schema, examples[0], path)) from None
    return whole


def _refuse_twins(schema: pa.Schema, path: str) -> None:
    twins = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twins:
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
    found = [f"it lacks {name!r}" for name in first.names if name not in other.names]
    found += [f"it adds {name!r}" for name in other.names if name not in first.names]
    for name in first.names:
        if name in other.names and first.field(name).type != other.field(name).type:
            found.append(f"{name!r} is {other.field(name).type} and not {first.field(name).type}")
    return found or ["its columns stand in another order, or may or may not be null"]


def _no_common_type(whole: pa.Schema, other: pa.Schema, path: str, other_path: str) -> str:
    found = [text for text in _differences(whole, other) if " is " in text]
    return (
        f"the files from {path!r} on and {other_path!r} have no common type for a column: "
        f"{'; '.join(found)}. Open them apart, and cast the column of one: sk.concat([a, b.cast(...)])"
    )


@dataclass(frozen=True, slots=True)
class Columns:
    """Maps the schema of a file to the wanted columns: which are read, cast, or filled with nulls."""

    wanted: pa.Schema
    """Names and types of the columns of records."""

    file: pa.Schema
    """Names and types of the columns of the file."""

    there: tuple[str, ...]
    """The names of the wanted columns that the file has."""

    @classmethod
    def of(cls, wanted: pa.Schema, file: pa.Schema) -> Columns:
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
        for field in self.wanted:
            if field.name not in self.there:
                arrays.append(pa.nulls(batch.num_rows, field.type))
                continue
            array = batch.column(self.there.index(field.name))
            arrays.append(array if array.type == field.type else cast(field.name, array, field.type))
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self.wanted)
