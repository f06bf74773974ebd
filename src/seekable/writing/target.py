"""The place that records are written to: a folder of files, or one file; and the hidden files beside them.

Files appear there whole or not at all, with errors that name the record and the file.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import xxhash

from seekable._arguments import checked_count
from seekable.errors import AccessDenied, DataNotFound, InvalidArgument, WrongType
from seekable.formats.file_format import UnwritableRecord
from seekable.formats.table import SUFFIXES
from seekable.storage.addresses import is_address, parse, shown
from seekable.storage.far import far
from seekable.storage.files import TEMPORARY_SUFFIX, create_new
from seekable.storage.listing import find_files
from seekable.storage.paths import LOCAL, output_of, output_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.formats.file_format import FileFormat
    from seekable.storage.access import Storage
    from seekable.storage.far import FileOutput

__all__ = [
    "Target",
    "checked_rows_per_file",
    "content_digest",
    "made_folder",
    "target_of",
    "unfinished_name",
    "write_whole",
]


_MANIFEST, _LOCK, _LANES = ".seekable-write.json", ".seekable-write.lock", ".seekable-write.lanes"
"""The ends of the names of the hidden files: of a folder the whole names."""

_RUN = "run"
"""The name of the file in the folder of lanes with the run that they are of."""

_DATA = (*SUFFIXES, ".parquet", ".tar", ".tar.gz", ".tar.zst")


@dataclass(frozen=True, slots=True)
class Target:
    """A folder of files, or one file in a folder.

    The names of the manifest, of the lock and of the folder of lanes begin with a dot, so ``sk.open`` of the
    folder or of a glob skips them.

    Example:
        >>> Target("/data", "one.parquet").manifest
        '/data/.one.parquet.seekable-write.json'
    """

    folder: str
    """The absolute path of the folder, or its address."""

    file: str | None
    """The name of the only file; None for a folder of files."""

    hidden_suffix: str = ""
    """The end of the names of the manifest, of the lock and of the folder of lanes, see `FileFormat`."""

    mounts: object = None
    """Of an address, the options of its store, which the processes that write need; None for a local path."""

    @property
    def path(self) -> str:
        """The absolute path, or the address, that the user named."""
        return self.folder if self.file is None else os.path.join(self.folder, self.file)

    @property
    def manifest(self) -> str:
        """The path of the manifest."""
        return self.join(self._hidden_name(_MANIFEST))

    @property
    def lock(self) -> str:
        """The path of the lock file, which is local: of several machines one may write to an address."""
        return os.path.join(self.scratch, self._hidden_name(_LOCK))

    @property
    def lanes(self) -> str:
        """The path of the folder in which lanes of a stream keep their states and unfinished parts."""
        return os.path.join(self.scratch, self._hidden_name(_LANES))

    @property
    def scratch(self) -> str:
        """The local folder for the lock, for unfinished files and for lanes; of a local target the folder."""
        return self.output.scratch(self.folder)

    @property
    def output(self) -> FileOutput:
        """The storage that writes the files, and reads them again."""
        return output_of(self.folder)

    def join(self, name: str) -> str:
        """Return the path of a file in the folder."""
        return os.path.join(self.folder, name)

    def refuse_others(self, is_ours: Callable[[str], bool], *, suffix: str) -> None:
        """Raise an error for other data where the files are to be.

        That is a file of the same name, or any data file in a folder, which ``sk.open`` of the folder would
        read too.

        Args:
            is_ours: returns True for the names of files that were, or are to be, written there.
            suffix: the suffix of the files to write, which may be that of no data file.

        Raises:
            InvalidArgument: there is other data.
        """
        if self.file is not None:
            is_there = self.output.size(self.path) is not None if self.mounts else os.path.lexists(self.path)
            if is_there and not is_ours(self.file):
                message = (
                    f"{shown(self.path)!r} exists, and was not written by such a call: name another file, or "
                    f"replace it with overwrite=True"
                )
                raise InvalidArgument(message)
            return
        others = self._other_names(is_ours, suffix)
        if others:
            more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
            message = (
                f"the folder {shown(self.folder)!r} holds data that was not written by such a call "
                f"({others[0]!r}{more}): opened as a whole it would be more than the dataset. Name a new "
                f"folder, or one without data"
            )
            raise InvalidArgument(message)

    def remove_torn(self, patterns: Sequence[str] = (), ending: Sequence[str] = ()) -> None:
        """Remove the unfinished files of killed processes; the caller holds the lock.

        Args:
            patterns: the patterns of the names of the files, see `FileFormat.patterns`.
            ending: the names of the files that are written last, see `Ending.names`.
        """
        names = r"part-\d+(-of-\d+)?(\.[a-z]+)+" if self.file is None else re.escape(self.file)
        if patterns:
            names = "|".join(re.escape(each).replace("%06d", r"\d{6,}") for each in patterns)
        atomic = "|".join(map(re.escape, (os.path.basename(self.manifest), *ending)))
        torn = re.compile(rf"(\.({names})|{atomic})\.[0-9a-f]{{16}}{re.escape(TEMPORARY_SUFFIX)}")
        for name in os.listdir(self.scratch):
            if torn.fullmatch(name):
                os.unlink(os.path.join(self.scratch, name))
        for name in os.listdir(self.lanes) if os.path.isdir(self.lanes) else ():
            if name.endswith(TEMPORARY_SUFFIX):
                os.unlink(os.path.join(self.lanes, name))

    def keep_lanes(self, run: str) -> None:
        """Remove what lanes keep on this machine for an address, unless it is of this run.

        Args:
            run: the run of the manifest, which another machine may have begun.
        """
        if self.mounts is None:
            return
        path = os.path.join(self.lanes, _RUN)
        try:
            if LOCAL.read(path) == run.encode():
                return
        except FileNotFoundError:
            pass
        self.remove_lanes()
        os.makedirs(self.lanes)
        LOCAL.write(path, run.encode())

    def remove_lanes(self, *, but: str | None = None) -> None:
        """Remove the folder in which lanes keep their states and unfinished parts, if there is one.

        Args:
            but: the name of a file in it that stays, and the folder with it; None for no file.
        """
        if not os.path.isdir(self.lanes):
            return
        for name in os.listdir(self.lanes):
            if name != but:
                os.unlink(os.path.join(self.lanes, name))
        if but is None:
            os.rmdir(self.lanes)

    def _other_names(self, is_ours: Callable[[str], bool], suffix: str) -> list[str]:
        """Return the names of data files in the folder that are not ours."""
        if is_address(self.folder):
            names = [name for name in self.output.names(self.folder) if not name.startswith((".", "_"))]
            return sorted(name for name in names if name.endswith((*_DATA, suffix)) and not is_ours(name))
        try:
            runs = find_files(self.folder, suffixes={*_DATA, suffix})
        except DataNotFound:
            return []
        return sorted(name for run in runs for name in run.names if not is_ours(name))

    def _hidden_name(self, end: str) -> str:
        return (end if self.file is None else f".{self.file}{end}") + self.hidden_suffix


def target_of(path: object, form: FileFormat, storage: Storage | None = None) -> tuple[Target, FileFormat]:
    """Return the target that a user names, and the format of its files.

    A path that ends in the suffix of the format is one file, unless a folder of that name exists.

    Args:
        path: the path or the address.
        form: the format.
        storage: how the store of an address is reached.

    Raises:
        WrongType: ``path`` is no path.
        InvalidArgument: the suffix is that of another format, or of another compression; or wrong options.
    """
    if not isinstance(path, str | os.PathLike):
        message = f"folder must be the path of a folder (got {path!r} of type {type(path).__name__})"
        raise WrongType(message)
    given = os.fsdecode(path)
    whole = output_path(path, storage)
    used = far().passport([whole]) if is_address(whole) else None
    is_folder = given.endswith(os.sep) or os.path.isdir(whole) or (is_address(whole) and not parse(whole).key)
    if is_folder or not whole.lower().endswith((*_DATA, form.suffix)):
        return Target(whole, None, form.hidden_suffix, used), form
    folder, name = os.path.split(whole)
    return Target(folder, name, mounts=used), form.of_one_file(name)


def checked_rows_per_file(rows_per_file: object, target: Target, form: FileFormat) -> int | None:
    """Return how many rows each file gets, by default as the format says; None for a single file.

    Raises:
        InvalidArgument: a number was given for one file.
    """
    if target.file is None:
        given = form.rows_per_file if rows_per_file is None else rows_per_file
        return checked_count("rows_per_file", given, least=1)
    if rows_per_file is not None:
        message = (
            f"rows_per_file is for a folder of files, and {target.file!r} is one file by its suffix (got "
            f"rows_per_file={rows_per_file!r}): leave it out, or name a folder"
        )
        raise InvalidArgument(message)
    return None


def unfinished_name(name: str, token: str) -> str:
    """Return the name of a file while it is written; it begins with a dot, so ``sk.open`` skips it.

    Example:
        >>> unfinished_name("part-00000-of-00001.jsonl", "0123456789abcdef")
        '.part-00000-of-00001.jsonl.0123456789abcdef.tmp'
    """
    return f".{name}.{token}{TEMPORARY_SUFFIX}"


def made_folder(path: str) -> None:
    """Make a folder and its parents, unless they exist; an address needs no folder.

    Raises:
        InvalidArgument: the path, or a parent, is a file.
        AccessDenied: this user may not make the folder, or not write into it.
    """
    if is_address(path):
        return
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        message = f"{path!r} cannot be a folder: there is a file of that name, or of one above it"
        raise InvalidArgument(message) from None
    except PermissionError as error:
        raise AccessDenied(f"the folder {path!r} cannot be made: {error}; name another one") from None
    if not os.access(path, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        message = f"the folder {path!r} cannot be written by this user (uid {os.geteuid()}): name another one"
        raise AccessDenied(message)


_READ_BYTES = 1 << 20


def write_whole(
    path: str,
    write: Callable[[BinaryIO, Sequence[BinaryIO]], None],
    *,
    form: FileFormat,
    named: Callable[[int], str],
    beside: Sequence[str] = (),
    lasting: bool = True,
) -> int:
    """Write files under temporary names, sync and rename them, and return their size in bytes.

    Files of a store are written locally and put there when they are whole.

    Args:
        path: the path or the address of the file; a file that is there is replaced.
        write: writes the content of the file, and of those beside it.
        form: the format of the file.
        named: returns the name of the record that came ``back`` places before the end, for error messages.
        beside: the paths of the files that belong to it, which get their names before it.
        lasting: False for a file that need not outlast a crash of the machine, which is not synced.

    Raises:
        WrongType: ``write`` raised `UnwritableRecord`; the message names the record.
        OSError: the disk is full, or the folder cannot be written.
    """
    token = secrets.token_hex(8)
    temporary = {target: _temporary_path(target, token) for target in (path, *beside)}
    try:
        with contextlib.ExitStack() as opened:
            file, *others = [opened.enter_context(create_new(each)) for each in temporary.values()]
            try:
                write(file, others)
            except UnwritableRecord as misfit:
                message = (
                    f"{named(misfit.back)} cannot be written as {form.name}: {misfit.why}; {form.way_out}"
                )
                raise WrongType(message) from None
            to_disk = lasting and not is_address(path)
            size = sum(_synced(each, lasting=to_disk) for each in (file, *others))
        for target, made in reversed(temporary.items()):
            if lasting:
                output_of(target).place(made, target)
            else:
                os.replace(made, target)
    except OSError as error:
        folder, name = os.path.split(path)
        error.add_note(
            f"while {name!r} was written in {folder!r}: the files that are there are whole, and the "
            f"same call goes on after them"
        )
        raise
    finally:
        for made in temporary.values():
            if os.path.lexists(made):
                os.unlink(made)
    return size


def _temporary_path(path: str, token: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(output_of(folder).scratch(folder), unfinished_name(name, token))


def _synced(file: BinaryIO, *, lasting: bool) -> int:
    """Return the number of bytes of a file, which are on disk then if they are to last."""
    file.flush()
    if lasting:
        os.fsync(file.fileno())
    return file.tell()


def content_digest(path: str) -> str:
    """Return a digest of the content of a file; an empty string if there is no such file."""
    digest = xxhash.xxh3_128()
    try:
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(_READ_BYTES):
                digest.update(piece)
    except FileNotFoundError:
        return ""
    return digest.hexdigest()
