"""Finished ranges of a job in a file, so that the same call goes on where a worker or the process died.

The file begins with a digest of what decides the results. Then comes a frame for each range, in ascending
order: the number after its last, the length and the digest of what the function returned, and that itself,
as msgpack with arrays by dtype, shape and bytes. A torn frame ends what is read.
"""

from __future__ import annotations

import contextlib
import os
import struct
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
import numpy as np
import xxhash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

__all__ = ["FinishedRanges"]

_MAGIC: Final = b"SKRANGE1"
_FRAME: Final = struct.Struct("<QQQ")
_ARRAY: Final = 1
_KINDS: Final = "biuf"
"""The kinds of dtypes that stand in a file: flags and numbers."""


@final
class FinishedRanges:
    """What a function returned for the first ranges of a job.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with FinishedRanges(f"{folder}/a.part", of={"dataset": "xxh3:1"}) as kept:
        ...         kept.add(3, [np.arange(2), "a"])
        ...     with FinishedRanges(f"{folder}/a.part", of={"dataset": "xxh3:1"}) as kept:
        ...         [(stop, made[0].tolist(), made[1]) for stop, made in kept.read()]
        [(3, [0, 1], 'a')]
    """

    def __init__(self, path: str, *, of: Any) -> None:
        """Name the file, which is made with the first range.

        Args:
            path: the file; the caller holds a lock for it.
            of: what decides the results, JSON-safe: ranges of anything else are not read.
        """
        self.path = path
        self._head = _MAGIC + xxhash.xxh3_128_digest(msgspec.json.encode(of, order="sorted"))
        self._file: BinaryIO | None = None
        self._is_full = False

    def read(self) -> Iterator[tuple[int, Any]]:
        """Yield the end of each finished range and what the function returned; lists stand for tuples."""
        try:
            file = open(self.path, "rb")  # noqa: SIM115 - closed below
        except FileNotFoundError:
            return
        with file:
            whole = 0
            if file.read(len(self._head)) == self._head:
                whole = len(self._head)
                while (frame := _read_frame(file)) is not None:
                    whole = file.tell()
                    yield frame
        with open(self.path, "r+b") as cut:
            cut.truncate(whole)

    def add(self, stop: int, made: Any) -> None:
        """Keep the next range; a disk that is full is no error, and ends the keeping.

        Args:
            stop: the number after its last.
            made: what the function returned: arrays of numbers, texts, bytes, and lists and dicts of them.
        """
        if self._is_full:
            return
        data = msgspec.msgpack.encode(made, enc_hook=_encoded)
        try:
            if self._file is None:
                self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 - `close` closes it
                if not self._file.tell():
                    self._file.write(self._head)
            self._file.write(_FRAME.pack(stop, len(data), xxhash.xxh3_64_intdigest(data)) + data)
        except OSError:
            self._is_full = True

    def remove(self) -> None:
        """Remove the file: the whole result is kept elsewhere."""
        self.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> FinishedRanges:
        """Return this object, for a ``with`` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()


def _read_frame(file: BinaryIO) -> tuple[int, Any] | None:
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    stop, length, digest = _FRAME.unpack(head)
    if length > os.fstat(file.fileno()).st_size - file.tell():
        return None
    data = file.read(length)
    if xxhash.xxh3_64_intdigest(data) != digest:
        return None
    return stop, msgspec.msgpack.decode(data, ext_hook=_decoded)


def _encoded(value: Any) -> msgspec.msgpack.Ext:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in _KINDS:
        message = f"a range gave a {type(value).__name__}, which is no array of numbers"
        raise NotImplementedError(message)
    parts = value.dtype.str, list(value.shape), np.ascontiguousarray(value).tobytes()
    return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(parts))


def _decoded(_: int, data: memoryview) -> Any:
    dtype, shape, raw = msgspec.msgpack.decode(data)
    return np.frombuffer(raw, dtype=np.dtype(dtype)).reshape(shape)
