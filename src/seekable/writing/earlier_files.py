"""The files that earlier calls wrote to the same place: kept, refused, or removed."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable._arguments import checked_flag
from seekable.errors import InvalidArgument, StateMismatch
from seekable.storage.addresses import is_address, shown
from seekable.storage.files import file_identity
from seekable.storage.paths import output_of
from seekable.writing.finished_files import recorded
from seekable.writing.manifest import differences, new_manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.writing.manifest import Identity, Manifest, ManifestFile
    from seekable.writing.target import Target

__all__ = ["WritePolicy", "begun", "checked_policy", "kept", "unend"]


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


def kept(target: Target, identity: Identity, policy: WritePolicy) -> Manifest | None:
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
            return kept(target, identity, policy)
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


def begun(
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
        unend(target.folder, before.identity.ending)
    for path in removed:
        output_of(path).delete(path)
    target.remove_lanes()
    manifest = new_manifest(identity, settled, run=secrets.token_hex(8) if target.mounts else "")
    file.write(manifest)
    return manifest


def unend(folder: str, names: Sequence[str]) -> None:
    """Remove the files of an ending, the last one first; those that are not there do no harm."""
    for name in reversed(names):
        output_of(folder).delete(os.path.join(folder, name))


def _refuse_sources(removed: Sequence[str], reads: Iterable[str]) -> None:
    """Raise an error if a file is to be removed and to be read, under this name or another."""
    there = {identity for path in removed if (identity := _identity(path))}
    for path in reads if there else ():
        if _identity(path) in there:
            message = (
                f"the pipeline reads {shown(path)!r}, which overwrite=True would remove before it is read: "
                f"write to another place, and move the result when it is whole"
            )
            raise InvalidArgument(message)


def _identity(path: str) -> object:
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
