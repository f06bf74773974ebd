"""The writing of the records of a dataset: the rows of each file are known before it begins."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, final

from seekable.nodes.evaluated import check_seen
from seekable.nodes.graph import known_size
from seekable.nodes.readahead import seconds_a_row
from seekable.parallel.map_ranges import map_ranges, with_workers_if_worth_it
from seekable.writing.finished_files import finished
from seekable.writing.manifest import MANIFEST_SECONDS, Shards
from seekable.writing.pipeline_code import functions_of, origin_paths, paths_of
from seekable.writing.preview import DatasetPreview
from seekable.writing.shard import WriteShards
from seekable.writing.source import Source, Writing

if TYPE_CHECKING:
    from seekable.formats.file_format import FileFormat
    from seekable.nodes.node import Node
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch
    from seekable.writing.manifest import Manifest, ManifestFile
    from seekable.writing.target import Target

__all__ = ["dataset_source"]


def dataset_source(dataset: Node, call: str) -> Source:
    """Return the records of epoch 0.

    Args:
        dataset: the node of the records.
        call: the call that writes them, for an error message.

    Raises:
        EndlessDataset: the dataset has no length.
    """
    records = known_size(dataset, call)
    return Source(
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
        job = WriteShards(self._dataset, self.form, self.target, self._shards, missing, self.tally)
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
        """Write the manifest."""
        self.file.write(self.manifest)
