"""Blocks of Ray: one schema for a whole dataset, records as tables, and rows by number.

Columns of records that are arrays of numpy become Ray's tensors, which come back as one array of a batch. The
rows of a result are fetched block by block from the object store of its cluster.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import ray
import xxhash
from ray.data.block import BlockAccessor
from ray.data.extensions import (
    ArrowTensorArray,
    ArrowVariableShapedTensorArray,
    ArrowVariableShapedTensorType,
    get_arrow_extension_tensor_types,
)

from seekable.errors import ForkUnsafe, InvalidArgument, WrongType
from seekable.formats.file_format import UnwritableRecord
from seekable.formats.tables.arrow_table import RecordColumns, check_names, inferred_schema
from seekable.nodes.columns.arrow_types import UnsupportedType
from seekable.nodes.graph import HOLE
from seekable.parallel.pickling import deserialized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Previewed = tuple[Sequence[Any], Callable[[int], str]]
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["ITEM", "WAY_OUT", "BlockColumns", "RayRows", "columns_of", "rows_of"]

ITEM = "item"
"""The column of records that are not dicts; Ray's own name for it."""

WAY_OUT = (
    "the files, or the records looked at first, say so: give sk_source(..., schema=) what all columns hold, "
    "or make the records fit with map()"
)

_KEPT_BLOCKS = 4
"""The number of blocks that stay open; they lie in memory that the processes of a node share."""


@dataclass(frozen=True, eq=False)
class BlockColumns:
    """The columns of all blocks. Picklable."""

    names: tuple[str, ...]
    """All columns, in their order."""

    plain: RecordColumns
    """The columns that are not tensors."""

    tensors: Mapping[str, Any]
    """The types of Ray for the columns of arrays."""

    boxed: bool
    """True if records are not dicts, so that each is the value of the one column `ITEM`."""

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        kinds = {field.name: field.type for field in self.plain.schema} | dict(self.tensors)
        return pa.schema([(name, kinds[name]) for name in self.names])

    def only(self, names: Iterable[str]) -> BlockColumns:
        """Return some of the columns, in the order of ``names``."""
        chosen = tuple(name for name in names if name in self.names)
        fields = [field for field in self.plain.schema if field.name in chosen]
        tensors = {name: kind for name, kind in self.tensors.items() if name in chosen}
        return replace(
            self, names=chosen, plain=replace(self.plain, schema=pa.schema(fields)), tensors=tensors
        )

    def of_records(self, records: Sequence[Any], *, narrowed: bool) -> pa.Table:
        """Return records as a table.

        Args:
            records: the records, without holes.
            narrowed: True if records may have other columns, which are left out.

        Raises:
            UnwritableRecord: a record does not fit into the columns.
        """
        rows = [{ITEM: record} for record in records] if self.boxed else records
        _check_dicts(rows, None if narrowed else frozenset(self.names))
        others = [name for name in self.names if name not in self.tensors]
        plain = self.plain.table([_part(row, others) for row in rows]) if others else pa.table({})
        columns = {name: self._tensors(name, rows) for name in self.tensors}
        columns |= {name: plain.column(name) for name in others}
        if not columns:
            return pa.table({"none": pa.nulls(len(rows))}).select([])
        return pa.table({name: columns[name] for name in self.names})

    def of_batch(self, batch: pa.RecordBatch) -> pa.Table:
        """Return a record batch as a table; columns that have their type already are not copied.

        Raises:
            WrongType: a column has another type, which does not fit.
        """
        there = set(batch.schema.names)
        arrays = [
            _fitting(batch.column(field.name), field)
            if field.name in there
            else pa.nulls(len(batch), field.type)
            for field in self.schema
        ]
        if not arrays:
            return pa.table({"none": pa.nulls(len(batch))}).select([])
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _tensors(self, name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Array:
        """Return the arrays of a column as tensors of Ray.

        Raises:
            UnwritableRecord: a value is no array of the column's shape and type.
        """
        kind, values = self.tensors[name], [row.get(name) for row in rows]
        for place, value in enumerate(values):
            if not _is_tensor_of(kind, value):
                why = f"column {name!r}: it has {_shown(value)}, and the column holds {kind}"
                raise UnwritableRecord(len(values) - place, why)
        return _tensor_array(values, variable=isinstance(kind, ArrowVariableShapedTensorType))


def columns_of(
    previewed: Iterable[Previewed], *, declared: Mapping[str, Any] | None, given: Any
) -> BlockColumns:
    """Return the columns of all records.

    Args:
        previewed: some records, in lists, each with a function of an index that names a record. They are read
            only where nothing else decides.
        declared: the columns that the files declare, if they do.
        given: the ``pyarrow.Schema`` of the user; None for none.

    Raises:
        WrongType: ``given`` is not a schema, or records have no common columns.
        InvalidArgument: a column is there twice.
    """
    if given is not None:
        return _of_schema(_checked_schema(given), boxed=_is_boxed(previewed))
    if declared is not None and None not in declared.values():
        return _of_schema(pa.schema(list(declared.items())), boxed=False)
    chunks = [(list(records), name) for records, name in previewed]
    kept = [record for records, _ in chunks for record in records if record is not HOLE]
    boxed = bool(kept) and not isinstance(kept[0], dict)
    if boxed:
        kept = [{ITEM: record} for record in kept]
        chunks = [
            ([record if record is HOLE else {ITEM: record} for record in records], name)
            for records, name in chunks
        ]
    tensors = _tensor_types([record for record in kept if isinstance(record, dict)])
    others = [([_without(record, tensors) for record in records], name) for records, name in chunks]
    try:
        schema = inferred_schema(others)
    except WrongType as error:
        message = f"{error}; {WAY_OUT}"
        raise WrongType(message) from None
    names = dict.fromkeys(name for record in kept for name in record)
    return BlockColumns(tuple(names), RecordColumns(schema, inferred=True), tensors, boxed)


def _of_schema(schema: pa.Schema, *, boxed: bool) -> BlockColumns:
    kinds = get_arrow_extension_tensor_types()
    tensors = {field.name: field.type for field in schema if isinstance(field.type, kinds)}
    plain = pa.schema([field for field in schema if field.name not in tensors])
    return BlockColumns(tuple(schema.names), RecordColumns(plain, inferred=False), tensors, boxed)


def _checked_schema(schema: Any) -> pa.Schema:
    if not isinstance(schema, pa.Schema):
        message = f"schema must be a pyarrow.Schema (got {schema!r} of type {type(schema).__name__})"
        raise WrongType(message)
    if twice := sorted({name for name in schema.names if schema.names.count(name) > 1}):
        message = f"a schema has each column once (got {', '.join(map(repr, twice))} several times)"
        raise InvalidArgument(message)
    return schema


def _is_boxed(previewed: Iterable[Previewed]) -> bool:
    """Return True if the first record is not a dict."""
    records = (record for records, _ in previewed for record in records if record is not HOLE)
    return not isinstance(next(records, {}), dict)


def _check_dicts(rows: Sequence[Any], names: frozenset[str] | None) -> None:
    """Raise `UnwritableRecord` for a record that is not a dict, or has a name that is not among ``names``."""
    try:
        check_names(rows, names)
    except UnsupportedType:
        for place, row in enumerate(rows):
            try:
                check_names([row], names)
            except UnsupportedType as error:
                raise UnwritableRecord(len(rows) - place, str(error)) from None


def _part(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names if name in row}


def _without(record: Any, names: Mapping[str, Any]) -> Any:
    if not isinstance(record, dict):
        return record
    return {name: value for name, value in record.items() if name not in names}


def _tensor_types(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the types for columns with arrays of one dtype of numbers in all records.

    Arrays of one dimension and of different lengths are lists, which a batch can hold as such.
    """
    names = dict.fromkeys(name for record in records for name in record)
    found = {}
    for name in names:
        values: list[Any] = [record.get(name) for record in records]
        if not all(isinstance(value, np.ndarray) and value.dtype.kind in "biuf" for value in values):
            continue
        if len({(value.dtype, value.ndim) for value in values}) > 1 or not values[0].ndim:
            continue
        variable = len({value.shape for value in values}) > 1
        if not variable or values[0].ndim > 1:
            found[name] = _tensor_array(values[:1], variable=variable).type
    return found


def _tensor_array(values: list[Any], *, variable: bool) -> pa.Array:
    if variable:
        return ArrowVariableShapedTensorArray.from_numpy(values)
    return ArrowTensorArray.from_numpy(np.stack(values))


def _is_tensor_of(kind: Any, value: Any) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype != _dtype_of(kind):
        return False
    if isinstance(kind, ArrowVariableShapedTensorType):
        return value.ndim == kind.ndim
    return bool(value.shape == tuple(kind.shape))


def _dtype_of(kind: Any) -> np.dtype[Any]:
    storage = kind.storage_type
    values = storage.field("data").type.value_type if pa.types.is_struct(storage) else storage.value_type
    dtype: np.dtype[Any] = np.dtype(values.to_pandas_dtype())
    return dtype


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of the shape {value.shape}"
    return "nothing" if value is None else f"a {type(value).__name__}"


def _fitting(array: pa.Array, field: pa.Field) -> pa.Array:
    if array.type == field.type:
        return array
    try:
        return array.cast(field.type)
    except pa.ArrowException as error:
        message = (
            f"column {field.name!r} is {array.type}, and {field.type} in other files: {error}; {WAY_OUT}"
        )
        raise WrongType(message) from None


@final
class RayRows:
    """The rows of materialized blocks: row ``r`` in constant time. Picklable, for the workers of the cluster.

    Blocks are references. A process fetches a block when it reads a row of it. Fingerprints of
    datasets hold the name of this class and of its module.
    """

    def __init__(self, refs: Sequence[Any], counts: Sequence[int]) -> None:
        """Take references to blocks, and how many rows each has."""
        self._refs: Sequence[Any] | None = refs
        self._sent: bytes | None = None
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._open: OrderedDict[int, Any] = OrderedDict()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, row: int) -> Any:
        """Return a row as a dict."""
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: Sequence[int]) -> list[Any]:
        """Return some rows, in the order of ``rows``."""
        wanted = np.asarray(rows, dtype=np.int64)
        block_of = np.searchsorted(self._starts, wanted, side="right") - 1
        found: list[Any] = [None] * wanted.size
        for block in np.unique(block_of).tolist():
            at = np.flatnonzero(block_of == block)
            table = self._rows_of(block, wanted[at] - self._starts[block])
            for place, row in zip(at.tolist(), table.to_pylist(), strict=True):
                found[place] = row
        return found

    def _rows_of(self, block: int, rows: NDArray[np.int64]) -> pa.Table:
        accessor = self._block(block)
        first, last = int(rows[0]), int(rows[-1])
        if last - first == rows.size - 1 and bool((np.diff(rows) == 1).all()):
            chosen = accessor.slice(first, last + 1, copy=False)
        else:
            chosen = accessor.take(rows.tolist())
        return BlockAccessor.for_block(chosen).to_arrow()

    def _block(self, number: int) -> Any:
        """Return a block, which is fetched unless it is open."""
        if os.getpid() != self._pid:
            message = (
                "rows of Ray Data cannot be read in a process that was forked: read them in this process, or "
                "by the workers of executor=RayExecutor()"
            )
            raise ForkUnsafe(message)
        found = self._open.pop(number, None)
        if found is None:
            found = BlockAccessor.for_block(ray.get(self._reference(number)))
        self._open[number] = found
        while len(self._open) > _KEPT_BLOCKS:
            self._open.popitem(last=False)
        return found

    def _reference(self, number: int) -> Any:
        if self._refs is None:
            if not ray.is_initialized():
                message = (
                    "rows of Ray Data are in its cluster, which this process has not joined: give jobs=1, "
                    "workers=0 or executor=RayExecutor(), whose workers are in the cluster"
                )
                raise InvalidArgument(message)
            assert self._sent is not None
            self._refs = deserialized(self._sent)
        return self._refs[number]

    def __getstate__(self) -> dict[str, Any]:
        """Return the references and the numbers of rows."""
        # References have their owner's address only in what Ray's own pickler writes.
        sent = self._sent if self._refs is None else ray.cloudpickle.dumps(self._refs)
        return {"sent": sent, "starts": self._starts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the state; the references are read with the first row, which shows if Ray is there."""
        self._refs, self._sent, self._starts = None, state["sent"], state["starts"]
        self._begin()


def rows_of(ray_dataset: ray.data.Dataset) -> tuple[RayRows, str]:
    """Execute a dataset of Ray; return its rows, and a digest of the blocks."""
    refs, counts = [], []
    for bundle in ray_dataset.materialize().iter_internal_ref_bundles():
        for block in bundle.blocks:
            if rows := block.metadata.num_rows:
                refs.append(block.ref)
                counts.append(rows)
    digest = xxhash.xxh3_128(repr(counts).encode())
    for ref in refs:
        digest.update(ref.binary())
    return RayRows(tuple(refs), counts), digest.hexdigest()
