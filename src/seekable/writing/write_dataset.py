"""The writing of a dataset: the rows of each file are known before, and any process writes it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.file_format import TracedRecords
from seekable.nodes.columns.record_batches import is_columnar, table_of
from seekable.nodes.display import describe_row
from seekable.nodes.evaluated import check_seen
from seekable.nodes.graph import HOLE, known_size
from seekable.nodes.readahead import read_rows, seconds_a_row
from seekable.parallel.map_ranges import map_ranges, with_workers_if_worth_it
from seekable.writing.manifest import MANIFEST_SECONDS, Shards, finished
from seekable.writing.pipeline_code import functions_of, origin_paths, paths_of
from seekable.writing.preview import DatasetPreview
from seekable.writing.target import write_whole
from seekable.writing.write_source import Tally, WriteSource, Writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from seekable._typing import Int64s
    from seekable.formats.file_format import FileFormat
    from seekable.nodes.graph import Plan
    from seekable.nodes.node import Node
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch
    from seekable.writing.manifest import Manifest, ManifestFile
    from seekable.writing.target import Target

__all__ = ["dataset_source"]

_AHEAD = 4096
"""The number of rows that are planned at a time."""

_TABLE_BYTES = 32 << 20
"""About the number of bytes of files that are read as one record batch."""

_RECENT = 1024
"""The number of records before the last chunk whose row numbers are remembered."""


class _RowChunks:
    """Reads consecutive rows in chunks, and remembers the row numbers of the last records."""

    def __init__(
        self,
        dataset: Node,
        rows: range,
        tell: Callable[[int], None],
        *,
        tables: bool = False,
        numbers: Mapping[str, int] | None = None,
    ) -> None:
        """Take the arguments; nothing is read yet.

        Args:
            dataset: the node whose records are read.
            rows: the rows to read.
            tell: is called with the number of rows that are read so far.
            tables: True to yield record batches where the sources are tables, without Python values.
            numbers: the index of each path of `origin_paths`, to yield records with their origins.
        """
        self._dataset = dataset
        self._range = rows
        self._tell = tell
        self._tables = tables
        self._numbers = numbers
        self._recent: list[int] = []
        self.rows = 0
        """The number of records so far that were no holes."""

    def read(self) -> Iterator[Sequence[Any] | pa.RecordBatch | TracedRecords]:
        """Yield the records without holes, in lists or record batches, or with their origins."""
        for start in range(self._range.start, self._range.stop, _AHEAD):
            rows = np.arange(start, min(start + _AHEAD, self._range.stop), dtype=np.int64)
            origins = None if self._numbers is None else self._origins(rows, self._numbers)
            for first, records in self._read(rows):
                count = len(records)
                if isinstance(records, list) and any(record is HOLE for record in records):
                    kept = [row for row, record in enumerate(records, start + first) if record is not HOLE]
                    records = [record for record in records if record is not HOLE]  # noqa: PLW2901
                else:
                    kept = list(range(start + first, start + first + count))
                self._recent = self._recent[-_RECENT:] + kept
                if origins is not None:
                    files, places = (each[np.array(kept, dtype=np.int64) - start] for each in origins)
                    yield TracedRecords(records, files, places)
                else:
                    yield records
                self.rows += len(kept)
                self._tell(start + first + count - self._range.start)

    def row(self, back: int) -> int:
        """Return the row of the record ``back`` places from the end of the yielded ones; 1 is the last."""
        return self._recent[-back]

    def _origins(self, rows: Int64s, numbers: Mapping[str, int]) -> tuple[Int64s, Int64s]:
        """Return the index of each record's file, -1 for none or several, and its row there."""
        try:
            found = self._dataset.plan(rows).origins()
        except InvalidArgument:
            return np.full(rows.size, -1), np.zeros(rows.size, dtype=np.int64)
        files = np.array([numbers.get(path, -1) for path in found.paths], dtype=np.int64)[found.files]
        return files, np.where(files < 0, 0, found.rows)

    def _read(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[int, Any]]:
        if self._tables:
            plan = self._dataset.plan(rows)
            if is_columnar(plan):
                return _batches(plan)
        return read_rows(self._dataset, rows)


def _batches(plan: Plan) -> Iterator[tuple[int, pa.RecordBatch]]:
    step = max(1, min(len(plan), len(plan) * _TABLE_BYTES // max(1, plan.bytes)))
    for first in range(0, len(plan), step):
        yield first, table_of(plan.slice(first, min(first + step, len(plan))))


@dataclass(frozen=True, slots=True)
class _WrittenShard:
    """The number, the rows and the bytes of a file that was written."""

    number: int
    """The index of the file among ``Shards``."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _WriteShards:
    """Writes files by their numbers: a function for `map_ranges`."""

    dataset: Node
    form: FileFormat
    target: Target
    shards: Shards
    numbers: tuple[int, ...]
    """The indices of the files to write, ascending."""

    tally: Tally

    def __call__(self, start: int, stop: int) -> list[_WrittenShard]:
        """Write the files ``numbers[start:stop]``, and return what was written.

        Raises:
            WrongType: a record cannot be written; the message names it.
            OSError: the disk is full, or the folder cannot be written.
        """
        numbers = None
        if self.form.takes_origins:
            numbers = {path: number for number, path in enumerate(origin_paths(self.dataset))}
        return [self._write(number, numbers) for number in self.numbers[start:stop]]

    def _write(self, number: int, numbers: Mapping[str, int] | None) -> _WrittenShard:
        rows = self.shards.rows(number)
        tables = self.form.takes_tables
        chunks = _RowChunks(self.dataset, rows, self.tally.add, tables=tables, numbers=numbers)
        size = write_whole(
            self.target.join(self.shards.name(number)),
            lambda file, others: self.form.write(file, chunks.read(), first=rows.start, beside=others),
            beside=[self.target.join(name) for name in self.shards.beside(number)],
            form=self.form,
            named=lambda back: describe_row(self.dataset, chunks.row(back)),
        )
        return _WrittenShard(number, chunks.rows, size)


def dataset_source(dataset: Node, call: str) -> WriteSource:
    """Return the records of epoch 0.

    Args:
        dataset: the node of the records.
        call: the call that writes them, for an error message.

    Raises:
        EndlessDataset: the dataset has no length.
    """
    records = known_size(dataset, call)
    return WriteSource(
        fingerprint=dataset.fingerprint,
        records=records,
        lanes=None,
        functions=partial(functions_of, dataset),
        paths=partial(paths_of, dataset),
        origins=partial(origin_paths, dataset),
        preview=DatasetPreview(dataset, records),
        check_seen=lambda executor, *, folder: check_seen(executor, dataset, folder=folder),
        writing=partial(_DatasetWriting, dataset),
    )


@final
class _DatasetWriting(Writing):
    """The writing of files whose rows are known, by `map_ranges`."""

    def __init__(
        self,
        dataset: Node,
        form: FileFormat,
        target: Target,
        manifest: Manifest,
        file: ManifestFile,
        watch: Watch,
    ) -> None:
        super().__init__(form, target, manifest, file, watch)
        self._dataset = dataset
        shards = manifest.identity.names(target)
        assert isinstance(shards, Shards)
        self._shards = shards
        manifest.finished = finished(target, manifest, form)
        self.kept = len(manifest.finished)
        self.tally.done = sum(len(shards.rows(number)) for number in manifest.finished)

    @property
    def is_complete(self) -> bool:
        """True if all files are finished."""
        return len(self.manifest.finished) == len(self._shards)

    def write_missing(self, using: ExecutionOptions) -> None:
        """Write the missing files, each whole by one process."""
        there = self.manifest.finished
        missing = tuple(number for number in range(len(self._shards)) if number not in there)
        job = _WriteShards(self._dataset, self.form, self.target, self._shards, missing, self.tally)
        if missing:
            rows = self._shards.rows(missing[0])
            using = with_workers_if_worth_it(
                using,
                job,
                len(missing),
                seconds=lambda: seconds_a_row(self._dataset, rows) * len(rows) * len(missing),
            )
        with contextlib.closing(map_ranges(job, len(missing), using=using)) as runs:
            for _, written in runs:
                for done in written:
                    there[done.number] = done.rows, done.bytes
                    self.tally.done += len(self._shards.rows(done.number))
                self.watch(self.tally.done)
                self.note(seconds=MANIFEST_SECONDS)

    def write_manifest(self) -> None:
        """Write the manifest as it is now."""
        self.file.write(self.manifest)
