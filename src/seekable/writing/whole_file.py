"""One file that appears whole or not at all, with errors that name the record and the file."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, BinaryIO

import xxhash

from seekable.errors import WrongType
from seekable.storage.files import create_new, put_in_place
from seekable.writing.file_format import UnwritableRecord
from seekable.writing.target import unfinished_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.writing.file_format import FileFormat

__all__ = ["content_digest", "write_whole"]

_READ_BYTES = 1 << 20


def write_whole(
    path: str,
    write: Callable[[BinaryIO], None],
    *,
    form: FileFormat,
    named: Callable[[int], str],
    lasting: bool = True,
) -> int:
    """Write a file under a temporary name, sync and rename it, and return the number of its bytes.

    Args:
        path: the path of the file; a file that is there is replaced.
        write: writes the content.
        form: the format of the file.
        named: returns the name of the record that came ``back`` places before the end, for error messages.
        lasting: False for a file that need not outlast a crash of the machine, which is not synced.

    Raises:
        WrongType: ``write`` raised `UnwritableRecord`; the message names the record.
        OSError: the disk is full, or the folder cannot be written.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, unfinished_name(name, secrets.token_hex(8)))
    try:
        with create_new(temporary) as file:
            try:
                write(file)
            except UnwritableRecord as misfit:
                message = (
                    f"{named(misfit.back)} cannot be written as {form.name}: {misfit.why}; {form.way_out}"
                )
                raise WrongType(message) from None
            file.flush()
            if lasting:
                os.fsync(file.fileno())
            size = file.tell()
        if lasting:
            put_in_place(temporary, path)
        else:
            os.replace(temporary, path)
    except OSError as error:
        error.add_note(
            f"while {name!r} was written in {folder!r}: the files that are there are whole, and the "
            f"same call goes on behind them"
        )
        raise
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return size


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
