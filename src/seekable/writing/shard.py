"""One file of many: its records read, and written so that it appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.errors import WrongType
from seekable.storage.files import create_new, put_in_place
from seekable.writing.chunks import Chunks
from seekable.writing.folder import unfinished_name
from seekable.writing.misfit import Misfit
from seekable.writing.place import place_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.nodes.contract import Node
    from seekable.writing.form import Form
    from seekable.writing.shards import Shards

__all__ = ["Done", "Tally", "WriteShards"]


@dataclass(frozen=True, slots=True)
class Done:
    """A file that is there."""

    number: int
    """Which of the files it is."""

    rows: int
    bytes: int


class Tally:
    """Counts the records of files that are being written by the thread that made it; elsewhere it is mute."""

    def __init__(self, tell: Callable[[int], None] | None = None) -> None:
        self._tell = tell
        self._thread = threading.get_ident()
        self.done = 0
        """The records of files that are finished."""

    def add(self, records: int) -> None:
        """Tell of records of a file that is not finished yet."""
        if self._tell is not None and threading.get_ident() == self._thread:
            self._tell(self.done + records)

    def __reduce__(self) -> tuple[type[Tally], tuple[()]]:
        """Pickle as one that is mute."""
        return Tally, ()


@dataclass(frozen=True, slots=True)
class WriteShards:
    """Writes some of the files: a job for `map_ranges`."""

    dataset: Node
    form: Form
    folder: str
    shards: Shards
    numbers: tuple[int, ...]
    """Those that are not there yet."""

    tally: Tally

    def __call__(self, start: int, stop: int) -> list[Done]:
        """Write the files from one of the numbers up to another.

        Raises:
            WrongType: a record cannot be written; the message names it.
            OSError: the disk is full, or the folder cannot be written.
        """
        return [self._write(number) for number in self.numbers[start:stop]]

    def _write(self, number: int) -> Done:
        name = self.shards.name(number)
        temporary = os.path.join(self.folder, unfinished_name(name, secrets.token_hex(8)))
        chunks = Chunks(self.dataset, self.shards.rows(number), self.tally.add, tables=self.form.takes_tables)
        try:
            with create_new(temporary) as file:
                try:
                    self.form.write(file, chunks.read())
                except Misfit as misfit:
                    place = place_of(self.dataset, chunks.row(misfit.back))
                    message = (
                        f"{place} cannot be written as {self.form.name}: {misfit.why}; {self.form.way_out}"
                    )
                    raise WrongType(message) from None
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            put_in_place(temporary, os.path.join(self.folder, name))
        except OSError as error:
            error.add_note(
                f"while {name!r} was written in {self.folder!r}: the files that are there are whole, and the "
                f"same call goes on behind them"
            )
            raise
        finally:
            if os.path.lexists(temporary):
                os.unlink(temporary)
        return Done(number, chunks.rows, size)
