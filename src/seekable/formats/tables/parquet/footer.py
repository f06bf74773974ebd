"""The footer of a file: its place, its check, and its metadata as pyarrow reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable._arguments import repeated
from seekable._optional import optional
from seekable.errors import UnsupportedFormat

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from seekable.formats.tables.table_format import RangeSource
else:
    pa = optional("pyarrow", extra="parquet")
    pq = optional("pyarrow.parquet", extra="parquet")

__all__ = ["MAGIC", "Footer", "read_footer"]

MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
_FIRST_READ = 64 << 10
"""The bytes at the end of a file that are read first; most footers are within."""

_SIGNATURE = 28
"""The bytes of the signature, behind the Thrift of a signed footer."""

_LEAST = 12
"""The bytes of a file without anything: both magics and the footer's length."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The footer of one file."""

    raw: bytes
    """Its Thrift, without length and magic."""

    start: int
    """The first byte of the footer; the bytes before it are data."""

    metadata: pq.FileMetaData
    """The footer as pyarrow reads it."""

    schema: pa.Schema
    """The file's columns, without metadata of the whole schema, and without groups that have no leaf."""

    writer: bytes
    """The program that wrote the file; empty where it is not told."""


def read_footer(source: RangeSource) -> Footer:
    """Return the footer of a file.

    Raises:
        UnsupportedFormat: the file is of another format, damaged or encrypted.
        MissingDependency: pyarrow is not installed.
    """
    read_metadata = pq.read_metadata  # before anything of the file is read: pyarrow may be missing
    raw, start = _raw(source)
    whole = b"".join((MAGIC, raw, len(raw).to_bytes(4, "little"), MAGIC))
    try:
        metadata = read_metadata(pa.BufferReader(whole))
        # Not metadata.schema.to_arrow_schema(), which knows no extension types.
        schema = pq.ParquetFile(pa.BufferReader(b""), metadata=metadata).schema_arrow.remove_metadata()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnsupportedFormat(
            f"{source.path}: the Parquet footer ({len(raw)} bytes at byte {start}) cannot be read: {error}. "
            f"The file is damaged, or needs a newer pyarrow than {pa.__version__}: write it again"
        ) from error
    schema = _with_leaves(schema, source.path)
    if len(raw) - metadata.serialized_size == _SIGNATURE:
        raise UnsupportedFormat(
            f"{source.path}: the footer at byte {start} is signed, as it is where columns are encrypted, and "
            f"there is no way to give their keys here: decrypt the file once"
        )
    if twice := repeated(schema.names):
        raise UnsupportedFormat(
            f"{source.path}: several columns are called {twice[0]!r}, and a record has a name once: rename "
            f"them"
        )
    return Footer(raw, start, metadata, schema, _writer(metadata))


def _writer(metadata: pq.FileMetaData) -> bytes:
    try:
        return (metadata.created_by or "").encode()
    except UnicodeDecodeError as error:
        return error.object


def _with_leaves(schema: pa.Schema, path: str) -> pa.Schema:
    """Return a schema without the columns that have no leaf: nothing of them is in the file.

    Some writers of Go leave structs without fields in the schema.

    Raises:
        UnsupportedFormat: a column has such a struct beside leaves, which pyarrow reads in no way.
    """
    kept = []
    for field in schema:
        leaves = _leaves(field.type)
        if any(leaves) and not all(leaves):
            raise UnsupportedFormat(
                f"{path}: the column {field.name!r} ({field.type}) has a struct without fields in it, and "
                f"pyarrow cannot read such a column: write the file again without that struct"
            )
        if all(leaves):
            kept.append(field)
    return pa.schema(kept)


def _leaves(kind: pa.DataType) -> list[bool]:
    """Return True for each leaf of a type, and False for each struct without fields."""
    if not kind.num_fields:
        return [not pa.types.is_struct(kind)]
    return [leaf for number in range(kind.num_fields) for leaf in _leaves(kind.field(number).type)]


def _raw(source: RangeSource) -> tuple[bytes, int]:
    size = source.size
    if size < _LEAST:
        raise UnsupportedFormat(f"{source.path}: {size} bytes are too few for a Parquet file: copy it again")
    tail = source.range(max(0, size - _FIRST_READ), size)
    end = bytes(tail[-4:])
    if end == _ENCRYPTED:
        raise UnsupportedFormat(
            f"{source.path}: its footer is encrypted ({end!r} at byte {size - 4}), and there is no way "
            f"to give the key here: decrypt the file once"
        )
    if end != MAGIC:
        raise UnsupportedFormat(
            f"{source.path}: expected {MAGIC!r} at byte {size - 4}, the end of a Parquet file; found "
            f"{end!r}. It is of another format, cut off, or has more behind it: copy it again"
        )
    length = int.from_bytes(tail[-8:-4], "little")
    start = size - 8 - length
    if start < len(MAGIC):
        raise UnsupportedFormat(
            f"{source.path}: the footer's length at byte {size - 8} is {length} bytes, and only "
            f"{size - _LEAST} lie before it: the file is damaged, copy it again"
        )
    if length + 8 > len(tail):
        tail = source.range(start, size)
    return bytes(tail[-8 - length : -8]), start
