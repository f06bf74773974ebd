"""A source of Ray Data over a dataset or a stream, whose parts are read by the tasks of Ray."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import ray
from ray.data import Datasource
from ray.data.block import BlockMetadata
from ray.data.datasource import ReadTask

from seekable.errors import MissingColumn
from seekable.parallel.pickling import deserialized, serialized

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from ray.data import DataContext

    from seekable.integrations.ray.reads import Reads

__all__ = ["RecordSource"]

_WAY_OUT = "Ray sends it to other processes, so all of it must be possible to pickle"


@final
class RecordSource(Datasource):
    """The source that ``sk_source`` returns."""

    def __init__(self, reads: Reads) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Ray's has no types
        self._reads = reads
        self._projection_map: dict[str, str] | None = None
        self._sent: _Sent | None = None

    def get_name(self) -> str:
        """Return the name of the read tasks."""
        return "Seekable"

    def supports_projection_pushdown(self) -> bool:
        """Return True: only the asked columns are read."""
        return True

    def apply_projection(self, projection_map: dict[str, str] | None) -> Datasource:
        """Return the source of some columns.

        Raises:
            MissingColumn: there is no such column.
        """
        there = self._reads.schema.names
        for name in projection_map or ():
            if name not in there:
                message = (
                    f"records have no column {name!r}; there are {', '.join(map(repr, there)) or 'none'}"
                )
                raise MissingColumn(message)
        return super().apply_projection(projection_map)

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the estimated bytes of all records in memory; no record is read."""
        return self._reads.bytes_of(None, self._get_data_columns())

    def get_read_tasks(
        self,
        parallelism: int,
        per_task_row_limit: int | None = None,
        data_context: DataContext | None = None,
    ) -> list[ReadTask]:
        """Return the tasks in the order of the records; each reads one part."""
        if self._sent is None:
            self._sent = _Sent(secrets.token_hex(8), ray.put(serialized(self._reads, way_out=_WAY_OUT)))
        names = self._get_data_columns()
        schema = self._reads.schema
        if names is not None:
            schema = schema.empty_table().select([name for name in names if name in schema.names]).schema
        return [
            ReadTask(
                _ReadPart(self._sent, part, None if names is None else tuple(names), per_task_row_limit),
                self._metadata(part, names),
                schema=schema,
                per_task_row_limit=per_task_row_limit,
            )
            for part in self._reads.parts(parallelism)
        ]

    def _metadata(self, part: range, names: list[str] | None) -> BlockMetadata:
        rows = self._reads.rows_in(part)
        size = None if rows is None else self._reads.bytes_of(rows, names)
        return BlockMetadata(num_rows=rows, size_bytes=size, exec_stats=None, input_files=None)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what was put for the tasks, which may be gone where it is unpickled."""
        return {**self.__dict__, "_sent": None}


@dataclass(frozen=True, slots=True)
class _Sent:
    """The reading of all parts, which lies once in the object store of the cluster."""

    token: str
    data: Any

    def reads(self) -> Reads:
        """Return the reading; tasks of one worker share it, with its open files."""
        found = _kept.pop(self.token, None)
        if found is None:
            found = deserialized(ray.get(self.data))
            while len(_kept) >= _MOST_KEPT:
                del _kept[next(iter(_kept))]
        _kept[self.token] = found
        return found


_MOST_KEPT = 4

_kept: dict[str, Reads] = {}
"""The readings that this process used last, by token: a union of sources uses them in turn."""


@dataclass(frozen=True, slots=True)
class _ReadPart:
    """The function of a read task."""

    sent: _Sent
    part: range
    names: tuple[str, ...] | None
    most: int | None

    def __call__(self) -> Iterator[pa.Table]:
        return self.sent.reads().tables(self.part, self.names, self.most)
