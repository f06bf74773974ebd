"""The bytes and requests that an index build takes from stores, known before the first request. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.errors import InvalidArgument
from seekable.index.digest import END_BYTES
from seekable.index.surveyor import is_table_indexer
from seekable.remote.index.object_reader import STREAMED_BYTES
from seekable.storage.memory import bytes_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.index.build.parts import FileToIndex
    from seekable.index.surveyor import Finder

__all__ = ["Transfer", "check_transfer", "transfer_of"]

_WORTH_SAYING = 1 << 30
"""A transfer of more bytes is announced before it begins."""

_GIGABIT = 125_000_000
_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Transfer:
    """The most that an index build fetches from stores."""

    files: int
    """The number of objects."""

    bytes: int
    """The number of bytes."""

    requests: int
    """The number of requests."""

    def in_words(self) -> str:
        """Return the transfer as a part of a sentence.

        Example:
            >>> Transfer(3, 3 << 30, 384).in_words()
            '3.2 GB of 3 objects in 384 requests (26 s at 1 Gbit/s)'
        """
        seconds = self.bytes / _GIGABIT
        time = f"{seconds / _MINUTE:,.0f} minutes" if seconds > 2 * _MINUTE else f"{seconds:.0f} s"
        size = bytes_in_words(self.bytes)
        return f"{size} of {self.files:,} objects in {self.requests:,} requests ({time} at 1 Gbit/s)"


def transfer_of(tasks: Iterable[FileToIndex], scanner: Finder) -> Transfer:
    """Return the most that a scan of some files fetches: of tables the ends, of other objects all bytes.

    Of archives whose members are large, and of objects of which a killed build has kept parts, it is less.
    """
    sizes = [task.size for task in tasks if task.is_object]
    if is_table_indexer(scanner):
        return Transfer(len(sizes), sum(min(size, 2 * END_BYTES) for size in sizes), 2 * len(sizes))
    # Of an object that is larger than one request both ends are fetched too.
    requests = sum(1 if size <= STREAMED_BYTES else 2 - (-size // STREAMED_BYTES) for size in sizes)
    return Transfer(len(sizes), sum(sizes), requests)


def check_transfer(transfer: Transfer, *, most_bytes: int | None) -> str | None:
    """Return the announcement of a transfer; None for one of less than 1 GiB.

    Args:
        transfer: the transfer.
        most_bytes: the most bytes that the user allows; None for any number.

    Raises:
        InvalidArgument: the transfer may have more bytes than the user allows.
    """
    if most_bytes is not None and transfer.bytes > most_bytes:
        message = (
            f"to index this data may transfer {transfer.in_words()}, and most_bytes is {most_bytes:,}; "
            f"nothing was transferred. Raise most_bytes, build the index once near the data with `seekable "
            f"index --publish`, or begin with sk.Index(sampled=True)"
        )
        raise InvalidArgument(message)
    if transfer.bytes < _WORTH_SAYING:
        return None
    return f"indexing transfers up to {transfer.in_words()}; it is done once, and goes on where it was ended"
