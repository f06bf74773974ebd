"""Files that appear whole or not at all, with errors that name the record and the file."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING, BinaryIO

import xxhash

from seekable.errors import WrongType
from seekable.formats.file_format import UnwritableRecord
from seekable.storage.addresses import is_address
from seekable.storage.files import create_new
from seekable.storage.paths import output_of
from seekable.writing.target import unfinished_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.formats.file_format import FileFormat

__all__ = ["content_digest", "write_whole"]

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
