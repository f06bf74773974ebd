"""One file that appears whole or not at all, with errors that name the record and the file."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, BinaryIO

from seekable.errors import WrongType
from seekable.storage.files import create_new, put_in_place
from seekable.writing.file_format import UnwritableRecord
from seekable.writing.target import unfinished_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.writing.file_format import FileFormat

__all__ = ["write_whole"]


def write_whole(
    path: str,
    write: Callable[[BinaryIO], None],
    *,
    form: FileFormat,
    named: Callable[[int], str],
) -> int:
    """Write a file under a temporary name, sync and rename it, and return the number of its bytes.

    Args:
        path: the path of the file; a file that is there is replaced.
        write: writes the content.
        form: the format of the file.
        named: returns the name of the record that came ``back`` places before the end, for error messages.

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
            os.fsync(file.fileno())
            size = file.tell()
        put_in_place(temporary, path)
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
