"""The writing of a dataset or a stream to files, from the start or from where an earlier call ended.

Files that earlier calls wrote to the same place are kept, refused, or removed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable._arguments import checked_flag
from seekable.errors import InvalidArgument, StateMismatch
from seekable.formats.file_format import Origin
from seekable.parallel.map_ranges import execution_options
from seekable.parallel.progress import watched
from seekable.state.functions import code_digests, python_version
from seekable.storage.addresses import is_address, shown
from seekable.storage.files import file_identity, locked
from seekable.storage.listing import has_addresses
from seekable.storage.paths import output_of
from seekable.writing.manifest import (
    Identity,
    ManifestFile,
    Shards,
    Written,
    differences,
    new_manifest,
    read_manifest,
    recorded,
)
from seekable.writing.target import checked_rows_per_file, made_folder, target_of
from seekable.writing.written_parts import STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Executor

    from seekable.formats.file_format import Ending, FileFormat
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressChoice, Watch
    from seekable.storage.access import Storage
    from seekable.writing.manifest import Manifest
    from seekable.writing.target import Target
    from seekable.writing.write_source import WriteSource

__all__ = ["WritePolicy", "checked_policy", "write"]


def write(  # noqa: PLR0913 - the arguments of the public methods
    source: WriteSource,
    path: str | os.PathLike[str],
    form: FileFormat,
    *,
    rows_per_file: int | None,
    policy: WritePolicy,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressChoice,
    storage: Storage | None = None,
) -> Written:
    """Write all records of a source; see ``Dataset.write``."""
    using = execution_options(jobs, executor, at_once=True)
    _check_folder(path, form.ending)
    target, form = target_of(path, form, storage)
    identity = _identity(source, form, checked_rows_per_file(rows_per_file, target, form))
    with watched(progress, task="writing", rows=source.records) as watch:
        written = _write(source, target, form, identity, policy, using, watch)
    form.index(os.fsdecode(path), jobs=jobs, executor=executor)
    return written


def _write(
    source: WriteSource,
    target: Target,
    form: FileFormat,
    identity: Identity,
    policy: WritePolicy,
    using: ExecutionOptions,
    watch: Watch,
) -> Written:
    # Checked before the folder is made: most mistakes show here.
    manifest = _kept(target, identity, policy) if target.output.has_folder(target.folder) else None
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
        manifest = _kept(target, identity, policy)
        if manifest is None:
            manifest = _begun(target, identity, settled, file, reads=source.paths())
        elif before := _complete(target, manifest, form.ending):
            return before
        else:
            file.write(manifest)
            _unend(target.folder, identity.ending)
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


def _identity(source: WriteSource, form: FileFormat, rows_per_file: int | None) -> Identity:
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


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """The treatment of files that earlier calls wrote to the same place."""

    resume: bool
    """True to keep finished files of the same pipeline and arguments."""

    overwrite: bool
    """True to remove files of another pipeline or other arguments; False to raise an error."""

    check_code: bool
    """True to count a pipeline as another one if the code of a function changed."""


def checked_policy(*, resume: object, overwrite: object, check_code: object) -> WritePolicy:
    """Return the policy of three arguments of a user.

    Raises:
        WrongType: an argument is neither True nor False.
    """
    return WritePolicy(
        checked_flag("resume", resume),
        checked_flag("overwrite", overwrite),
        checked_flag("check_code", check_code),
    )


def _kept(target: Target, identity: Identity, policy: WritePolicy) -> Manifest | None:
    """Return the manifest of the files to keep, None if there is none.

    Raises:
        StateMismatch: there are files of another pipeline or other arguments.
        InvalidArgument: the folder has other data, or the file is of another origin.
    """
    manifest = read_manifest(target.manifest)
    if target.file is None or not policy.overwrite:
        try:
            target.refuse_others(
                lambda name: manifest is not None and _is_of(target, manifest, name), suffix=identity.suffix
            )
        except InvalidArgument:
            if read_manifest(target.manifest) == manifest:
                raise
            # Without the lock: another call began between the look at the manifest and that at the files.
            return _kept(target, identity, policy)
    if manifest is None:
        return None
    lines = differences(manifest.identity, identity, check_code=policy.check_code)
    if lines and not policy.overwrite and _has_files(target, manifest):
        code = (
            "; check_code=False goes on with it" if all(each.startswith("the code") for each in lines) else ""
        )
        holds = "holds files" if target.file is None else "is"
        another = "Name another folder" if target.file is None else "Name another file"
        if identity.format == manifest.identity.format == "tokens":
            another += " (what was added to a corpus can be a store of its own: sk.concat opens both as one)"
        message = (
            f"{shown(target.path)!r} {holds} of another pipeline or other arguments:\n"
            + "\n".join(lines)
            + f"\n{another}, or write over it with overwrite=True{code}"
        )
        raise StateMismatch(message)
    return manifest if policy.resume and not lines else None


def _has_files(target: Target, manifest: Manifest) -> bool:
    """Return True if an earlier call finished a file, or a piece of one; else it left nothing to lose."""
    if manifest.finished or os.path.isdir(target.lanes):
        return True
    names = manifest.identity.names(target)
    return target.file is None and any(names.holds(name) for name in target.output.names(target.folder))


def _begun(
    target: Target, identity: Identity, settled: str | None, file: ManifestFile, *, reads: Iterable[str]
) -> Manifest:
    """Remove the files of another call, and write the manifest of this one.

    Args:
        target: the place of the files.
        identity: the pipeline and the arguments of this call.
        settled: the schema of the files, as the manifest has it.
        file: the file of the manifest.
        reads: the paths of the files that the pipeline reads.

    Raises:
        InvalidArgument: the pipeline reads a file that would be removed; nothing is removed then. Or another
            machine writes to the same address.
    """
    before = read_manifest(target.manifest)
    removed: list[str] = []
    if target.file is not None:
        is_there = (
            target.output.size(target.path) is not None if target.mounts else os.path.lexists(target.path)
        )
        removed = [target.path] if is_there else []
    elif before is not None:
        names = before.identity.names(target)
        removed = [target.join(name) for name in target.output.names(target.folder) if names.holds(name)]
    _refuse_sources(removed, reads)
    if before is not None:
        _unend(target.folder, before.identity.ending)
    for path in removed:
        output_of(path).delete(path)
    target.remove_lanes()
    manifest = new_manifest(identity, settled, run=secrets.token_hex(8) if target.mounts else "")
    file.write(manifest)
    return manifest


def _unend(folder: str, names: Sequence[str]) -> None:
    """Remove the files of an ending, the last one first; those that are not there do no harm."""
    for name in reversed(names):
        output_of(folder).delete(os.path.join(folder, name))


def _refuse_sources(removed: Sequence[str], reads: Iterable[str]) -> None:
    """Raise an error if a file is to be removed and to be read, under this name or another."""
    there = {identity for path in removed if (identity := _file_identity(path))}
    for path in reads if there else ():
        if _file_identity(path) in there:
            message = (
                f"the pipeline reads {shown(path)!r}, which overwrite=True would remove before it is read: "
                f"write to another place, and move the result when it is whole"
            )
            raise InvalidArgument(message)


def _file_identity(path: str) -> object:
    return path if is_address(path) else file_identity(path)


def _is_of(target: Target, manifest: Manifest, name: str) -> bool:
    """Return True for the name of a file of a manifest; one file must not have changed since."""
    if target.file is not None:
        return not manifest.finished or bool(recorded(target, manifest))
    names = manifest.identity.names(target)
    number = names.number(name)
    if number is None:
        return names.holds(name) or name in manifest.identity.ending
    return manifest.files is None or number < manifest.files
