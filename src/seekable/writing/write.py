"""The writing of a dataset to files, from the start or from where an earlier call ended."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument
from seekable.nodes.cluster_files import check_seen
from seekable.nodes.graph import known_size
from seekable.nodes.readahead import seconds_a_row
from seekable.parallel.map_ranges import execution_options, map_ranges, with_workers_if_worth_it
from seekable.parallel.progress import watched
from seekable.state.functions import code_digests, python_version
from seekable.storage.addresses import shown
from seekable.storage.asked import has_addresses
from seekable.storage.files import locked
from seekable.writing.earlier_files import begun, kept
from seekable.writing.ending import has_ended, unend
from seekable.writing.finished_files import finished, recorded
from seekable.writing.manifest import (
    MANIFEST_SECONDS,
    Identity,
    Manifest,
    ManifestFile,
    Shards,
    Written,
)
from seekable.writing.pipeline_code import functions_of, paths_of
from seekable.writing.preview import DatasetPreview
from seekable.writing.shard import Counter, WriteShards
from seekable.writing.target import checked_rows_per_file, made_folder, target_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Executor

    from seekable.nodes.contract import Node
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressHook, Watch
    from seekable.writing.earlier_files import WritePolicy
    from seekable.writing.ending import Ending
    from seekable.writing.file_format import FileFormat
    from seekable.writing.target import Target

__all__ = ["write"]


def write(  # noqa: PLR0913 - the arguments of the public methods
    dataset: Node,
    path: str | os.PathLike[str],
    form: FileFormat,
    *,
    rows_per_file: int | None,
    policy: WritePolicy,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
    ending: Ending | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Written:
    """Write the records of epoch 0; see ``Dataset.write_parquet``."""
    records = known_size(dataset, f"write_{form.name}()")
    using = execution_options(jobs, executor, at_once=True)
    _check_folder(path, ending)
    target, form = target_of(path, form, storage_options)
    rows_per_file = checked_rows_per_file(rows_per_file, target)
    identity = _identity(dataset, records, form, ending, rows_per_file=rows_per_file)
    shards = Shards(records, identity.rows_per_file, form.suffix, target.file, form.patterns)
    with watched(progress, task="writing", rows=records) as watch:
        # Checked before the folder is made: most mistakes show here.
        manifest = kept(target, identity, policy) if target.output.has_folder(target.folder) else None
        if manifest is not None and (before := _complete(target, shards, manifest, ending)):
            watch(records)
            return before
        check_seen(using.executor, dataset, folder=target.folder)
        preview = DatasetPreview(dataset, records)
        form, settled = form.settled(preview, manifest.settled if manifest else None)
        made_folder(target.folder)
        notice = f"another process is writing into {shown(target.path)!r}: waiting for it"
        with locked(target.lock, waiting=lambda: watch(0, notice=notice)):
            file = ManifestFile(target.manifest)
            manifest = kept(target, identity, policy)
            if manifest is None:
                manifest = begun(target, identity, settled, file, reads=paths_of(dataset))
            elif before := _complete(target, shards, manifest, ending):
                return before
            else:
                file.write(manifest)
            written = _Writing(dataset, form, target, shards, manifest, watch, file).run(using)
            if ending is None:
                return written
            if not has_ended(target.folder, ending.names):
                ending.end(target.folder, form, tuple(map(target.join, shards.names)))
            if ending.replaces_parts:
                return _replaced(target, shards, manifest, ending, kept=0)
            return written


def _check_folder(path: str | os.PathLike[str], ending: Ending | None) -> None:
    """Check that an ending can put the files of a folder together.

    Raises:
        InvalidArgument: it reads files of this machine, and the path is an address.
    """
    if ending is not None and ending.replaces_parts and has_addresses(path):
        message = (
            f"samples of Forager are put together from files of this machine, and "
            f"{shown(os.fsdecode(path))!r} is an address: write them to a local folder, and copy it"
        )
        raise InvalidArgument(message)


def _identity(
    dataset: Node, records: int, form: FileFormat, ending: Ending | None, *, rows_per_file: int | None
) -> Identity:
    return Identity(
        pipeline=dataset.fingerprint,
        records=records,
        code=code_digests([*functions_of(dataset), *form.functions]),
        python=python_version(),
        format=form.name,
        suffix=form.suffix,
        rows_per_file=rows_per_file,
        options=form.options,
        patterns=form.patterns,
        ending=() if ending is None else ending.names,
    )


class _Writing:
    """The writing of one call, which holds the lock of the folder."""

    def __init__(
        self,
        dataset: Node,
        form: FileFormat,
        target: Target,
        shards: Shards,
        manifest: Manifest,
        watch: Watch,
        file: ManifestFile,
    ) -> None:
        self._dataset = dataset
        self._form = form
        self._target = target
        self._shards = shards
        self._manifest = manifest
        self._file = file
        self._watch = watch
        self._noted = time.monotonic()

    def run(self, using: ExecutionOptions) -> Written:
        """Write the missing files, and return the description of all."""
        self._target.remove_torn(self._form.patterns, self._manifest.identity.ending)
        there = finished(self._target, self._manifest, self._form)
        self._manifest.finished = there
        missing = tuple(number for number in range(len(self._shards)) if number not in there)
        already = len(there)
        tally = Counter(self._watch)
        tally.done = sum(len(self._shards.rows(number)) for number in there)
        job = WriteShards(self._dataset, self._form, self._target, self._shards, missing, tally)
        if missing:
            unend(self._target.folder, self._manifest.identity.ending)
            rows = self._shards.rows(missing[0])
            using = with_workers_if_worth_it(
                using,
                job,
                len(missing),
                seconds=lambda: seconds_a_row(self._dataset, rows) * len(rows) * len(missing),
            )
        try:
            with contextlib.closing(map_ranges(job, len(missing), using=using)) as runs:
                for _, written in runs:
                    for done in written:
                        there[done.number] = done.rows, done.bytes
                        tally.done += len(self._shards.rows(done.number))
                    self._watch(tally.done)
                    self._note(seconds=MANIFEST_SECONDS)
        finally:
            self._note(seconds=0)
            # Workers that an error ended, or nodes that died, left unfinished files. In a user's executor
            # others may still be written, unless all are finished.
            if using.executor is None or len(there) == len(self._shards):
                self._target.remove_torn(self._form.patterns, self._manifest.identity.ending)
        return _written(self._target, self._shards, there, kept=already)

    def _note(self, *, seconds: float) -> None:
        """Write the manifest if the last write was at least ``seconds`` ago."""
        now = time.monotonic()
        if now - self._noted >= seconds:
            self._file.write(self._manifest)
            self._noted = now


def _written(target: Target, shards: Shards, there: dict[int, tuple[int, int]], *, kept: int) -> Written:
    rows = sum(rows for rows, _ in there.values())
    return Written(
        paths=tuple(shown(target.join(name)) for name in shards.names),
        rows=rows,
        holes=shards.records - rows,
        bytes=sum(size for _, size in there.values()),
        kept=kept,
    )


def _complete(target: Target, shards: Shards, manifest: Manifest, ending: Ending | None) -> Written | None:
    """Return the description of the files if an earlier call has finished all of them, else None."""
    if not has_ended(target.folder, manifest.identity.ending):
        return None
    if ending is not None and ending.replaces_parts:
        return _replaced(target, shards, manifest, ending, kept=len(ending.data))
    there = recorded(target, manifest)
    return _written(target, shards, there, kept=len(there)) if len(there) == len(shards) else None


def _replaced(target: Target, shards: Shards, manifest: Manifest, ending: Ending, *, kept: int) -> Written:
    """Remove the parts that the files of an ending replace, and return the description of these files."""
    for name in os.listdir(target.folder):
        if shards.holds(name):
            os.unlink(target.join(name))
    rows = sum(rows for rows, _ in manifest.finished.values())
    paths = tuple(map(target.join, ending.data))
    size = sum(map(os.path.getsize, paths))
    return Written(paths, rows=rows, holes=shards.records - rows, bytes=size, kept=kept)
