"""The writing of a dataset or a stream to files, from the start or from where an earlier call ended."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument
from seekable.formats.file_format import Origin
from seekable.parallel.map_ranges import execution_options
from seekable.parallel.progress import watched
from seekable.state.functions import code_digests, python_version
from seekable.storage.addresses import shown
from seekable.storage.files import locked
from seekable.storage.listing import has_addresses
from seekable.writing.earlier_files import begun, kept, unend
from seekable.writing.finished_files import recorded
from seekable.writing.manifest import Identity, ManifestFile, Shards, Written
from seekable.writing.state_log import STATES
from seekable.writing.target import checked_rows_per_file, made_folder, target_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Executor

    from seekable.formats.file_format import Ending, FileFormat
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressHook, Watch
    from seekable.writing.earlier_files import WritePolicy
    from seekable.writing.manifest import Manifest
    from seekable.writing.source import Source
    from seekable.writing.target import Target

__all__ = ["write"]


def write(  # noqa: PLR0913 - the arguments of the public methods
    source: Source,
    path: str | os.PathLike[str],
    form: FileFormat,
    *,
    rows_per_file: int | None,
    policy: WritePolicy,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
    storage_options: Mapping[str, Any] | None = None,
) -> Written:
    """Write all records of a source; see ``Dataset.write``."""
    using = execution_options(jobs, executor, at_once=True)
    _check_folder(path, form.ending)
    target, form = target_of(path, form, storage_options)
    identity = _identity(source, form, checked_rows_per_file(rows_per_file, target, form))
    with watched(progress, task="writing", rows=source.records) as watch:
        written = _write(source, target, form, identity, policy, using, watch)
    form.index(os.fsdecode(path), jobs=jobs, executor=executor)
    return written


def _write(
    source: Source,
    target: Target,
    form: FileFormat,
    identity: Identity,
    policy: WritePolicy,
    using: ExecutionOptions,
    watch: Watch,
) -> Written:
    # Checked before the folder is made: most mistakes show here.
    manifest = kept(target, identity, policy) if target.output.has_folder(target.folder) else None
    if manifest is not None and (before := _complete(target, manifest, form.ending)):
        if source.records is not None:
            watch(source.records)
        return before
    source.check_seen(using.executor, folder=target.folder)
    form, settled = form.settled(source.preview, manifest.settled if manifest else None)
    made_folder(target.folder)
    notice = f"another process is writing into {shown(target.path)!r}: waiting for it"
    with locked(target.lock, waiting=lambda: watch(0, notice=notice)):
        file = ManifestFile(target.manifest)
        manifest = kept(target, identity, policy)
        if manifest is None:
            manifest = begun(target, identity, settled, file, reads=source.paths())
        elif before := _complete(target, manifest, form.ending):
            return before
        else:
            file.write(manifest)
            unend(target.folder, identity.ending)
        writing = source.writing(form, target, manifest, file, watch)
        writing.run(using)
        if source.records is None:
            watch.end(writing.tally.done)
        if form.ending is not None:
            origin = Origin(source.fingerprint, source.records, source.origins())
            form.ending.end(target.folder, form, _paths(target, manifest), origin)
            if form.ending.replaces_parts:
                return _replaced(target, manifest, form.ending, kept=0)
        return _written(target, manifest, kept=writing.kept)


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


def _identity(source: Source, form: FileFormat, rows_per_file: int | None) -> Identity:
    return Identity(
        pipeline=source.fingerprint,
        records=source.records,
        code=code_digests([*source.functions(), *form.functions]),
        python=python_version(),
        format=form.name,
        suffix=form.suffix,
        rows_per_file=rows_per_file,
        options=form.options,
        lanes=source.lanes,
        patterns=form.patterns,
        ending=() if form.ending is None else form.ending.names,
    )


def _complete(target: Target, manifest: Manifest, ending: Ending | None) -> Written | None:
    """Return the description of the files if an earlier call has finished all of them, else None."""
    if any(target.output.size(target.join(name)) is None for name in manifest.identity.ending):
        return None
    if ending is not None and ending.replaces_parts:
        return _replaced(target, manifest, ending, kept=len(ending.data))
    names = manifest.identity.names(target)
    files = len(names) if isinstance(names, Shards) else manifest.files
    is_whole = files is not None and len(recorded(target, manifest)) == files
    return _written(target, manifest, kept=len(manifest.finished)) if is_whole else None


def _written(target: Target, manifest: Manifest, *, kept: int) -> Written:
    """Remove what the lanes of a stream need no more, and return the description of all files.

    The states of a folder of files stay: a file that is lost can be made again from those before it.
    """
    with contextlib.suppress(OSError):  # A finished folder may be read-only.
        target.remove_lanes(but=STATES if target.file is None and target.mounts is None else None)
    size = sum(size for _, size in manifest.finished.values())
    return _described(manifest, tuple(map(shown, _paths(target, manifest))), size, kept=kept)


def _replaced(target: Target, manifest: Manifest, ending: Ending, *, kept: int) -> Written:
    """Remove the parts that the files of an ending replace, and return the description of these files."""
    names = manifest.identity.names(target)
    for name in os.listdir(target.folder):
        if names.holds(name):
            os.unlink(target.join(name))
    paths = tuple(map(target.join, ending.data))
    return _described(manifest, paths, sum(map(os.path.getsize, paths)), kept=kept)


def _described(manifest: Manifest, paths: tuple[str, ...], size: int, *, kept: int) -> Written:
    rows, records = sum(rows for rows, _ in manifest.finished.values()), manifest.identity.records
    holes = manifest.holes if records is None else records - rows
    return Written(paths, rows=rows, holes=holes, bytes=size, kept=kept)


def _paths(target: Target, manifest: Manifest) -> tuple[str, ...]:
    """Return the paths of the finished files, in the order of their rows."""
    names = manifest.identity.names(target)
    return tuple(target.join(names.name(number)) for number in sorted(manifest.finished))
