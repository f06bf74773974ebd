"""The footer of a file: its place, its check, its metadata as pyarrow reads it; and the bounds of columns.

The least and the greatest value in a column stand in statistics; no value is read. Those of row groups are
read by pyarrow. Those of pages are in the ColumnIndex, where a writer has left one. They are used for types
that are ordered in the file as their values are in Python; anything odd is ignored, so that more rows are
read, and never fewer.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import repeated
from seekable._cached import cached
from seekable._optional import optional
from seekable.errors import UnsupportedFormat
from seekable.formats.tables.parquet.thrift import ThriftError, fields, list_head, read_struct, skip
from seekable.formats.tables.table_format import Bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from seekable.formats.tables.table_format import Int64s, RangeSource
else:
    pa = optional("pyarrow", extra="parquet")
    pq = optional("pyarrow.parquet", extra="parquet")

__all__ = [
    "MAGIC",
    "Chunk",
    "ColumnPages",
    "Field",
    "Footer",
    "LeafColumn",
    "NamedFields",
    "ParquetLayout",
    "bounds_of_group",
    "page_bounds",
    "read_footer",
    "runs_of",
]


MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
_FIRST_READ = 64 << 10
"""The bytes at the end of a file that are read first; most footers are within."""

_SIGNATURE = 28
"""The bytes of the signature, after the Thrift of a signed footer."""

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


_SCHEMA, _ROW_GROUPS = 2, 4
_LIST, _STRUCT = 9, 12
_REQUIRED, _REPEATED = 0, 2
_OF_ENCRYPTION = frozenset({8, 9})
"""Fields of a chunk that stand there if it is encrypted."""


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A leaf below a column, or the column itself."""

    number: int
    """Its number among the leaves of the file."""

    physical: int
    """Its physical type, as Parquet numbers them."""

    width: int
    """The bytes of a value, where the type is fixed-length bytes."""

    path: tuple[bytes, ...]
    """The names from the column down to it."""

    defined: int
    """The definition level of a value that is there."""

    repeated: int
    """The highest repetition level; 0 is one value a row."""


@dataclass(frozen=True, slots=True)
class Field:
    """One column of the file, with all that lies below it."""

    number: int
    """The number of the column."""

    elements: bytes
    """Its elements of the schema, as they stand in the footer."""

    count: int
    """The number of those elements."""

    leaves: tuple[LeafColumn, ...]
    """Its leaves, in their order."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The place of the values of a leaf in a group, and their codec."""

    path: tuple[bytes, ...]
    """The leaf's path, as the chunk has it."""

    physical: int
    """The leaf's physical type, as the chunk has it."""

    codec: int
    """The codec of its pages, as Parquet numbers it."""

    values: int
    """The number of values, with nulls; larger than the number of rows where values repeat."""

    start: int
    """The first byte of its first page."""

    stop: int
    """The byte after its last page."""

    unpacked: int
    """The number of bytes before compression."""

    index: tuple[int, int] | None
    """The first byte and the size of its OffsetIndex; None if it has none."""

    has_dictionary: bool
    """True if its first page is a dictionary, as the footer says; some old writers leave that out."""


_OLD_WRITER = re.compile(r"parquet-mr(?:$| version (\d*)(?:\.(\d+))?(?:\.(\d+))?)")
"""The name and the version of that writer; a part that is missing is 0, as for pyarrow."""

_SIZES_ARE_WHOLE = (1, 2, 9)
_DICTIONARY_HEADER = 100
"""Before that version parquet-mr left the header of the dictionary page out of a chunk's size (PARQUET-816);
this is as many bytes as the header has at most."""


class ParquetLayout:
    """The columns and chunks of one file; safe from threads."""

    def __init__(self, footer: bytes, writer: str = "") -> None:
        """Read the heads of the lists in the footer of a file.

        Args:
            footer: its Thrift.
            writer: the program and version that wrote the file, as the footer names them.
        """
        self._footer = footer
        old = _OLD_WRITER.match(writer)
        whole = old is None or tuple(int(part or 0) for part in old.groups()) >= _SIZES_ARE_WHOLE
        self._left_out = 0 if whole else _DICTIONARY_HEADER
        self._places_of_chunks: dict[int, list[int]] = {}

    @cached
    def fields(self) -> tuple[Field, ...]:
        """The columns, in their order.

        Raises:
            ThriftError: the footer is damaged.
        """
        return _fields(self._footer, self._places[_SCHEMA])

    @cached
    def _places(self) -> dict[int, int]:
        """The bytes at which two lists begin: that of schema elements, and that of row groups."""
        places: dict[int, int] = {}
        for field, kind, at in fields(self._footer, 0):
            if kind == _LIST and field in (_SCHEMA, _ROW_GROUPS):
                places[field] = at
                if len(places) == 2:  # noqa: PLR2004 - both are found
                    return places
        raise ThriftError("the footer has no schema or no row groups")

    def chunk(self, group: int, leaf: int, limit: int) -> Chunk:
        """Return the chunk of a leaf in a group.

        Args:
            group: the group's number.
            leaf: the leaf's number.
            limit: where the file's data ends.

        Raises:
            ThriftError: the footer does not say, or says what cannot be.
        """
        places = self._chunks(group)
        if leaf >= len(places):
            raise ThriftError(f"group {group} has {len(places)} columns, and there is no column {leaf}")
        return _chunk(read_struct(self._footer, places[leaf])[0], limit, self._left_out)

    def chunks(self, group: int, limit: int) -> list[Chunk]:
        """Return all chunks of a group; arguments and errors as of ``chunk``."""
        return [self.chunk(group, leaf, limit) for leaf in range(len(self._chunks(group)))]

    def column_index(self, group: int, leaf: int) -> tuple[int, int] | None:
        """Return the place and size of a chunk's ColumnIndex; None if it has none.

        Raises:
            ThriftError: as ``chunk``.
        """
        chunk, _ = read_struct(self._footer, self._chunks(group)[leaf])
        at, length = chunk.get(6, 0), chunk.get(7, 0)
        indexed = isinstance(at, int) and isinstance(length, int) and at > 0 and length > 0
        return (at, length) if indexed else None

    def _chunks(self, group: int) -> list[int]:
        """Return where the Thrift of each chunk of a group begins."""
        if (known := self._places_of_chunks.get(group)) is None:
            known = self._places_of_chunks[group] = self._find_chunks(group)
        return known

    def _find_chunks(self, group: int) -> list[int]:
        groups = self._groups
        if group >= len(groups):
            raise ThriftError(f"group {group} is not among the {len(groups)} of the footer")
        for field, kind, at in fields(self._footer, groups[group]):
            if field == 1 and kind == _LIST:
                return _structs(self._footer, at)
        raise ThriftError(f"group {group} has no columns")

    @cached
    def _groups(self) -> list[int]:
        """The first byte of the Thrift of each group."""
        return _structs(self._footer, self._places[_ROW_GROUPS])


class NamedFields:
    """The columns of a file by their names; safe from threads."""

    def __init__(self, layout: ParquetLayout, names: Sequence[str]) -> None:
        """Read nothing yet.

        Args:
            layout: the columns.
            names: the names of those that have leaves, in their order.
        """
        self._layout = layout
        self._names = names

    def field(self, name: str) -> Field:
        """Return the column of a name.

        Raises:
            ThriftError: the footer has other columns.
        """
        fields, numbers = self._known
        if len(fields) != len(numbers):
            raise ThriftError(f"the footer has {len(fields)} columns, and pyarrow finds {len(numbers)}")
        return fields[numbers[name]]

    @cached
    def _known(self) -> tuple[tuple[Field, ...], dict[str, int]]:
        fields = tuple(field for field in self._layout.fields if field.leaves)
        return fields, {name: number for number, name in enumerate(self._names)}


def _structs(data: bytes, at: int) -> list[int]:
    """Return the first byte of each struct of a list."""
    count, kind, at = list_head(data, at)
    if count and kind != _STRUCT:
        raise ThriftError(f"a list at byte {at} of the footer has no structs")
    places = []
    for _ in range(count):
        places.append(at)
        at = skip(data, at)
    return places


def _chunk(chunk: dict[int, Any], limit: int, left_out: int) -> Chunk:
    if not _OF_ENCRYPTION.isdisjoint(chunk):
        raise ThriftError(
            "the column is encrypted, and there is no way to give its key: decrypt the file once"
        )
    meta = chunk.get(3)
    if not isinstance(meta, dict):
        raise ThriftError("a column has no metadata")
    if not all(isinstance(meta.get(field), int) for field in (1, 4, 5, 6, 7, 9)):
        raise ThriftError("the metadata of a column lacks what must be there")
    start, size = meta[9], meta[7]
    dictionary = meta.get(11, 0)
    has_dictionary = isinstance(dictionary, int) and 0 < dictionary < start
    if has_dictionary:
        start = dictionary
    # A chunk without values may say that it begins nowhere.
    if not (
        (0 < start <= limit or start == meta[5] == 0)
        and 0 <= size <= limit - start
        and meta[5] >= 0
        and meta[6] >= 0
    ):
        raise ThriftError(f"a column of {size} bytes at byte {start}, and the data ends at byte {limit}")
    at, length = chunk.get(4, 0), chunk.get(5, 0)
    indexed = isinstance(at, int) and isinstance(length, int) and at > 0 and length > 0
    path = meta.get(3)
    path = tuple(path) if isinstance(path, list) else ()
    stop = min(start + size + left_out, limit)
    index = (at, length) if indexed else None
    return Chunk(path, meta[1], meta[4], meta[5], start, stop, meta[6], index, has_dictionary)


def _fields(data: bytes, at: int) -> tuple[Field, ...]:
    """Read the schema: a tree, its elements in the order of a walk, each with the number of its children."""
    places = _structs(data, at)
    elements = [read_struct(data, place)[0] for place in places[1:]]
    places = [*places[1:], skip(data, places[-1])] if places else []
    found: list[Field] = []
    first = leaves = 0
    while first < len(elements):
        end, below = _below(elements, first, leaves)
        raw = data[places[first] : places[end]]
        found.append(Field(len(found), raw, end - first, tuple(below)))
        first, leaves = end, leaves + len(below)
    return tuple(found)


def _below(elements: list[dict[int, Any]], at: int, leaves: int) -> tuple[int, list[LeafColumn]]:
    """Return where a column's elements end, and its leaves."""
    below: list[LeafColumn] = []
    # What is open: how many elements are still to come at each depth, and the levels and names down to it.
    todo: list[tuple[int, int, int, tuple[bytes, ...]]] = [(1, 0, 0, ())]
    while todo:
        left, defined, repeated, path = todo.pop()
        if left > 1:
            todo.append((left - 1, defined, repeated, path))
        if at >= len(elements):
            raise ThriftError("the schema ends within a column")
        element = elements[at]
        at += 1
        repetition, name, children = element.get(3, _REQUIRED), element.get(4, b""), element.get(5, 0)
        if not (isinstance(children, int) and isinstance(name, bytes)):
            raise ThriftError("the schema has an element without a name")
        defined, repeated = defined + (repetition != _REQUIRED), repeated + (repetition == _REPEATED)
        if children > 0:
            todo.append((children, defined, repeated, (*path, name)))
        elif isinstance(physical := element.get(1), int):
            width = element.get(2, 0)
            width = width if isinstance(width, int) and width > 0 else 0
            below.append(LeafColumn(leaves + len(below), physical, width, (*path, name), defined, repeated))
    return at, below


_NULL_PAGES, _LEAST_VALUES, _GREATEST, _NULL_COUNTS = 1, 2, 3, 5


def bounds_of_group(chunk: Any, kind: pa.DataType) -> Bounds | None:
    """Return the bounds of a column in a group, from the footer; None if it has no usable ones.

    Args:
        chunk: the column's metadata, as pyarrow has it.
        kind: the type that the column is read as.
    """
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None or not _ordered(kind):
        return None
    nulls = statistics.null_count if statistics.has_null_count else None
    values = nulls is None or nulls < chunk.num_values
    least = greatest = None
    if statistics.has_min_max and values:
        least, greatest = statistics.min, statistics.max
    return Bounds(least, greatest, nulls=nulls != 0, values=values, exact=False)


@dataclass(frozen=True, slots=True)
class ColumnPages:
    """The pages of a column in a group, and the bounds of each."""

    first: Int64s
    """The first row of each page, and the number of rows."""

    bounds: tuple[Bounds, ...]


def page_bounds(
    source: RangeSource, place: tuple[int, int], kind: pa.DataType, pages: int
) -> list[Bounds] | None:
    """Return the bounds of each page of a column, from the ColumnIndex; None if it has no usable ones.

    Args:
        source: the file.
        place: where the ColumnIndex lies, and how many bytes it has.
        kind: the type that the column is read as.
        pages: how many pages the column has.
    """
    start, size = place
    if not _ordered(kind) or not 0 < start <= start + size <= source.size:
        return None
    try:
        found, _ = read_struct(bytes(source.range(start, start + size)))
        empty, lows, highs = found[_NULL_PAGES], found[_LEAST_VALUES], found[_GREATEST]
        counts = found.get(_NULL_COUNTS)
        if {len(empty), len(lows), len(highs)} != {pages} or (counts is not None and len(counts) != pages):
            return None
        least = _decoded([low for low, none in zip(lows, empty, strict=True) if not none], kind)
        greatest = _decoded([high for high, none in zip(highs, empty, strict=True) if not none], kind)
    except (ThriftError, KeyError, TypeError, ValueError, struct.error):
        return None
    bounds = []
    ends = iter(zip(least, greatest, strict=True))
    for page, none in enumerate(empty):
        low, high = (None, None) if none else next(ends)
        nulls = counts is None or counts[page] != 0
        bounds.append(Bounds(low, high, nulls=bool(none) or nulls, values=not none, exact=False))
    return bounds


def runs_of(
    rows: int, groups: Mapping[str, Bounds], pages: Mapping[str, ColumnPages]
) -> list[tuple[int, int, Mapping[str, Bounds]]]:
    """Return a group's rows in runs, cut where a page of any column ends, each with its known bounds.

    Example:
        >>> known = Bounds(0, 9, nulls=False, values=True)
        >>> runs_of(5, {"a": known}, {})
        [(0, 5, {'a': Bounds(least=0, greatest=9, nulls=False, values=True, exact=True)})]
    """
    edges: NDArray[np.int64] = np.unique(
        np.concatenate([[0, rows], *(some.first for some in pages.values())])
    )
    places = {
        name: (np.searchsorted(some.first, edges[:-1], side="right") - 1).tolist()
        for name, some in pages.items()
    }
    return [
        (start, stop, {**groups, **{name: pages[name].bounds[at[run]] for name, at in places.items()}})
        for run, (start, stop) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    ]


def _ordered(kind: pa.DataType) -> bool:
    """Tell whether values of a type are ordered in the file as they are in Python."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
    )


def _decoded(values: Sequence[bytes], kind: pa.DataType) -> list[Any]:
    """Return values as Python has them, of bytes as PLAIN has them.

    Raises:
        ValueError, TypeError, struct.error: they are not of this type.
    """
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind):
        # What was cut off in the middle of a character is not text: nothing is known then.
        return [value.decode() for value in values]
    if types.is_boolean(kind):
        return [struct.unpack("<?", value)[0] for value in values]
    if types.is_floating(kind):
        if kind.bit_width < 32:  # noqa: PLR2004 - half floats are bytes in the file
            raise TypeError
        found = [struct.unpack("<f" if kind.bit_width == 32 else "<d", value)[0] for value in values]  # noqa: PLR2004
        if any(number != number for number in found):  # noqa: PLR0124 - NaN is no bound
            raise ValueError
        return found
    numbers = [struct.unpack("<i" if len(value) == 4 else "<q", value)[0] for value in values]  # noqa: PLR2004
    if types.is_unsigned_integer(kind):
        return [number % (1 << (8 * len(value))) for number, value in zip(numbers, values, strict=True)]
    if types.is_integer(kind):
        return numbers
    if types.is_timestamp(kind) and kind.unit in ("s", "ns"):
        raise TypeError  # kept in another unit, or beyond what Python's times have
    width = pa.int32() if types.is_date32(kind) else pa.int64()
    times: list[Any] = pa.array(numbers, width).cast(kind).to_pylist()
    return times
