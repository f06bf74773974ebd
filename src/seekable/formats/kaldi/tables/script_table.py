"""Scripts in memory, as arrays: 18 bytes a line beside the text, which stays on disk if it is long.

Lines are sorted by the hashes of their keys, and a directory has the first line of each run of hashes with
the same upper bits. A key is found by its hash, and compared with the line.
"""

from __future__ import annotations

import io
import os
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, final

import numpy as np

from seekable.errors import CorruptTable
from seekable.formats.kaldi.files.opening import open_rx
from seekable.formats.kaldi.objects.tokens import decoded
from seekable.formats.kaldi.tables.script import check_is_script, line_blocks
from seekable.formats.kaldi.tables.script_keys import hash_of_key, keys_of_block

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.tables.script_keys import KeysOfBlock

__all__ = ["ScriptTable", "load_script"]

_BLOCK_BYTES: Final = 4 << 20
"""The lines of so many bytes are parsed at once: their arrays stay in the caches of a processor."""

_KEPT_BYTES: Final = 16 << 20
"""The text of a longer regular file stays on disk."""

_LINE_BYTES: Final = 512
"""A line on disk is read by pieces of this size; few lines are longer."""

_BITS: Final = 64
_FIELDS: Final = 2


class _Text(Protocol):
    """The text of a script."""

    def line(self, start: int) -> bytes:
        """Return the line that starts at a byte, without its end."""


class _KeptText:
    """The text of a script, in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def line(self, start: int) -> bytes:
        end = self._data.find(b"\n", start)
        return self._data[start : end if end >= 0 else len(self._data)]


class _TextOnDisk:
    """Text of a regular file, which is read by lines. The descriptor is closed with this object."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def line(self, start: int) -> bytes:
        found, size = b"", _LINE_BYTES
        while True:
            piece = os.pread(self._descriptor, size, start + len(found))
            line, end, _ = piece.partition(b"\n")
            found += line
            if end or not piece:
                return found
            size *= 8

    def __del__(self) -> None:
        os.close(self._descriptor)


@final
class ScriptTable:
    """The lines of a script by their keys. Safe from threads, and after a fork."""

    def __init__(self, name: str, text: _Text, hashes: NDArray[np.uint64], starts: Int64s) -> None:
        """Sort the lines by the hashes of their keys.

        Args:
            name: the extended filename of the script, for messages.
            text: the text of the script.
            hashes: the hash of the key of each line.
            starts: the first byte of each line.

        Raises:
            CorruptTable: two lines have the same key.
        """
        self._name = name
        self._text = text
        order = np.argsort(hashes)
        hashes, starts = hashes[order], starts[order]
        del order
        bits = max(1, len(hashes).bit_length() - 1)
        self._shift = _BITS - bits
        counts = np.bincount((hashes >> np.uint64(self._shift)).view(np.int64), minlength=1 << bits)
        # The items of a memoryview are numbers of Python, and come faster than those of an array.
        self._firsts = np.concatenate([[0], np.cumsum(counts)]).data
        self._hashes, self._starts = hashes.data, starts.data
        for place in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():
            self._check_unique(place)

    def _check_unique(self, place: int) -> None:
        """Raise an error if the key of a place is also that of a later one with the same hash."""
        key = self._fields(place)[0]
        other = place + 1
        while other < len(self._hashes) and self._hashes[other] == self._hashes[place]:
            if self._fields(other)[0] == key:
                first, second = sorted([self._starts[place], self._starts[other]])
                raise CorruptTable(
                    f"{self._name!r}: the key {decoded(key)!r} is there twice, at byte {first:,} and at byte "
                    f"{second:,}, so it cannot be looked up: make the keys unique, or read the script in its "
                    f"order"
                )
            other += 1

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, key: str) -> str | None:
        """Return the extended filename of a key, maybe with a range; None if no line has the key.

        Raises:
            CorruptTable: the line is none any more, because the file was changed.
        """
        raw = key.encode("utf-8", "surrogateescape")
        wanted = hash_of_key(raw)
        run = wanted >> self._shift
        hashes = self._hashes
        for place in range(self._firsts[run], self._firsts[run + 1]):
            if hashes[place] == wanted:
                fields = self._fields(place)
                if len(fields) == _FIELDS and fields[0] == raw:
                    return fields[1].rstrip().decode("utf-8", "surrogateescape")
                self._check_unchanged(place, fields)
        return None

    def _fields(self, place: int) -> list[bytes]:
        """Return the key and the extended filename of the line at a place of the arrays."""
        return self._text.line(self._starts[place]).split(None, 1)

    def _check_unchanged(self, place: int, fields: list[bytes]) -> None:
        """Raise an error for a line that has another key than when it was hashed."""
        if len(fields) != _FIELDS or hash_of_key(fields[0]) != self._hashes[place]:
            raise CorruptTable(
                f"{self._name!r}: the line at byte {self._starts[place]:,} was changed after the script was "
                f"read: make a new reader"
            )


def load_script(rxfilename: str, *, is_sorted: bool, pipes: Pipes) -> ScriptTable:
    """Read all lines of a script, for look-ups.

    Args:
        rxfilename: the extended filename of the script.
        is_sorted: True if its keys must ascend, as option ``s`` promises.
        pipes: ``"allow"`` if it may be a command.

    Raises:
        CorruptTable: a line is none of a script, or a key is there twice, or the keys do not ascend.
        PipeFailed, InvalidArgument, PipeRefused, DataNotFound, ...: as in `open_rx`.
    """
    kept: list[bytes] | None = []
    starts, hashes, last = [], [], b""
    with open_rx(rxfilename, pipes=pipes) as file:
        check_is_script(file)
        raw = file.raw
        if isinstance(raw, io.FileIO) and os.fstat(raw.fileno()).st_size > _KEPT_BYTES:
            kept = None
        start = 0 if kept is not None else file.tell()
        for block, number in line_blocks(file, partial(file.read, _BLOCK_BYTES)):
            if not block.endswith(b"\n"):
                block += b"\n"  # noqa: PLW2901 - only the last line lacks its end
            keys = keys_of_block(block, number, rxfilename)
            if is_sorted:
                _check_sorted(keys, last, number, rxfilename)
            last = keys.last
            starts.append(keys.starts + start)
            start += len(block)
            hashes.append(keys.hashes)
            if kept is not None:
                kept.append(block)
        text: _Text = _TextOnDisk(os.dup(file.fileno())) if kept is None else _KeptText(b"".join(kept))
    no_starts, no_hashes = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    return ScriptTable(
        rxfilename, text, np.concatenate([no_hashes, *hashes]), np.concatenate([no_starts, *starts])
    )


def _check_sorted(keys: KeysOfBlock, last: bytes, number: int, name: str) -> None:
    line = number if last and keys.first <= last else None
    if line is None and keys.disorder is not None:
        line = number + keys.disorder
    if line is not None:
        raise CorruptTable(
            f"{name!r}: the key of line {line:,} does not follow that of the line before, and option s says "
            f"that keys ascend, as with LC_ALL=C sort: sort the script, or leave the option out"
        )
