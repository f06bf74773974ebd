"""Files of kept rows: row numbers that ``filter``, ``flatten`` or ``sort`` found, mapped into memory.

A file holds little-endian uint64 and nothing else. Without ``save=`` it lies in the folder for temporary
files. The process that wrote it removes it with the last dataset over it, or when the process ends. A pickle
holds only the file's path; a process that has the file open keeps its content after the removal. Each process
that uses the file holds a shared lock on it, by which the next filter recognises, and removes, files that
killed processes left.

With ``save=`` the file stays. Its description ``<name>.json`` is written before it: a file without a
description was not written by this library, and a description without a file was left by a killed process.
The process that finds no file takes the lock ``<name>.lock``, checks again, and writes the file; other
processes wait for the lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import re
import tempfile
import weakref
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import xxhash

from seekable._cached import cached
from seekable.errors import CorruptState, IndexStale, InvalidArgument, StateMismatch
from seekable.storage.files import TEMPORARY_SUFFIX, locked, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seekable._typing import Int64s


__all__ = ["ROW_BYTES", "KeptRows", "RowsOrigin", "keep_unnamed", "saved_rows"]


ROW_BYTES = 8

_HASHED_BYTES = 16 << 20

_ROW = np.dtype("<u8")

_PREFIX, _SUFFIX = "seekable-kept-", ".u64"


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Row numbers in a file, which each process maps into memory at first use."""

    path: str
    """The absolute path of the file."""

    count: int
    """The number of rows in the file."""

    digest: str
    """The xxh3_64 digest of the file's bytes."""

    named: bool
    """True if the user named the file with ``save=``."""

    operation: str = "filter"
    """The method of a dataset that found the rows."""

    @cached
    def array(self) -> Int64s:
        """The row numbers as an int64 array over the mapped file."""
        if not self.count:
            return np.empty(0, dtype=np.int64)
        return np.frombuffer(self._map, dtype=_ROW).view(np.dtype("<i8"))

    @cached
    def view(self) -> memoryview:
        """The row numbers as a memoryview, which is faster for single rows."""
        return memoryview(self._map).cast("Q")

    def check(self) -> None:
        """Compare the digest of the whole file with ``digest``.

        Raises:
            CorruptState: the file has changed since it was written.
        """
        found = f"xxh3:{_digest_of_map(self._map) if self.count else xxhash.xxh3_64_hexdigest(b'')}"
        if found != self.digest:
            message = (
                f"{self.path!r} has the digest {found}, and was written with {self.digest}: something else "
                f"changed it; remove it to {self.operation} again"
            )
            raise CorruptState(message)

    def __getstate__(self) -> dict[str, object]:
        """Return the fields alone, without the mapped file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached
    def _map(self) -> mmap.mmap:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise IndexStale(self._gone()) from None
        try:
            size = os.fstat(descriptor).st_size
            if size != self.count * ROW_BYTES:
                message = (
                    f"{self.path!r} has {size:,} bytes, and {self.count:,} kept rows have "
                    f"{self.count * ROW_BYTES:,}: it was cut or replaced; remove it to {self.operation} again"
                )
                raise CorruptState(message)
            if not self.named:
                _hold(descriptor)
            # The map has a descriptor of its own, a duplicate that holds the same lock.
            return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        finally:
            os.close(descriptor)

    def _gone(self) -> str:
        if self.named:
            return f"the kept rows in {self.path!r} are gone: {self.operation} again"
        return (
            f"the kept rows in {self.path!r} are gone: they lasted as long as the process that kept them. "
            f"Name a file with {self.operation}(..., save=) where other processes or later runs need them"
        )


def _digest_of_map(mapped: mmap.mmap) -> str:
    """Return the digest of a file, whose pages are given back: else all of it would count as memory."""
    hasher = xxhash.xxh3_64()
    for start in range(0, len(mapped), _HASHED_BYTES):
        hasher.update(memoryview(mapped)[start : start + _HASHED_BYTES])
        if hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED, start, min(_HASHED_BYTES, len(mapped) - start))
    return hasher.hexdigest()


class _Digested:
    """An iterable of the file's bytes for arrays of rows, which counts and hashes them."""

    def __init__(self, arrays: Iterable[Int64s]) -> None:
        self._arrays = arrays
        self._hasher = xxhash.xxh3_64()
        self.count = 0

    def __iter__(self) -> Iterator[memoryview]:
        for array in self._arrays:
            data = array.astype(_ROW).view("u1").data
            self._hasher.update(data)
            self.count += array.size
            yield data

    @property
    def digest(self) -> str:
        """The digest of the bytes that were iterated so far."""
        return f"xxh3:{self._hasher.hexdigest()}"


def keep_unnamed(arrays: Iterable[Int64s], operation: str = "filter") -> KeptRows:
    """Write rows to a temporary file, which is removed with the returned object.

    Args:
        arrays: int64 arrays of rows.
        operation: the method of a dataset that finds the rows.

    Example:
        >>> kept = keep_unnamed([np.array([3, 5]), np.array([8])])
        >>> kept.array.tolist(), os.path.getsize(kept.path)
        ([3, 5, 8], 24)
        >>> path = kept.path
        >>> del kept
        >>> os.path.exists(path)
        False
    """
    _remove_left_behind()
    descriptor, path = _new_file()
    try:
        kept = _kept_in(descriptor, path, arrays, operation)
    except OSError as error:
        error.filename = error.filename or path  # a full disk names no file
        raise
    weakref.finalize(kept, _remove, path, os.getpid())
    return kept


def _kept_in(descriptor: int, path: str, arrays: Iterable[Int64s], operation: str) -> KeptRows:
    with open(descriptor, "wb") as file:
        try:
            parts = _Digested(arrays)
            file.writelines(parts)
            file.flush()
            kept = KeptRows(path, parts.count, parts.digest, named=False, operation=operation)
            if kept.count:
                kept._map  # noqa: B018, SLF001 - from now on this is what holds the file
        except BaseException:
            # Before the file is closed: without its lock another process may remove it.
            os.unlink(path)
            raise
    return kept


def _new_file() -> tuple[int, str]:
    while True:
        descriptor, path = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX)
        # Before the lock was taken, another process may have removed the file as left behind.
        if _hold(descriptor) and os.path.exists(path):
            return descriptor, path
        os.close(descriptor)


def _hold(descriptor: int) -> bool:
    """Mark a file as used by a shared lock, for as long as a duplicate of the descriptor is open."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # A file system without locks: no process removes the file there.
    return True


def _remove(path: str, pid: int) -> None:
    # A forked child inherits this finalizer and must not remove the file.
    if os.getpid() == pid:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _remove_left_behind() -> None:
    """Remove the temporary files of processes that were killed."""
    with os.scandir(tempfile.gettempdir()) as files:
        paths = [file.path for file in files if file.name.startswith(_PREFIX) and file.name.endswith(_SUFFIX)]
    for path in paths:
        with contextlib.suppress(OSError):  # The file belongs to another user, is in use, or is gone.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(descriptor)


_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RowsOrigin:
    """The operation, dataset and function that decide the kept rows."""

    operation: str
    """The method of a dataset that finds the rows."""

    dataset: str
    """The fingerprint of the dataset."""

    records: int
    """The number of records of the dataset."""

    function: dict[str, Any]
    """The name and version of the function, and the arguments of a partial."""

    code: str | None
    """The digest of the function's code; None if a version replaces it."""

    python: str
    """The minor version of Python, on which the code's digest depends."""


class _Sidecar(msgspec.Struct, omit_defaults=True):
    seekable_kept: int
    dataset: str
    records: int
    function: dict[str, Any]
    code: str | None
    python: str
    count: int
    rows: str
    operation: str = "filter"


def saved_rows(
    path: str,
    origin: RowsOrigin,
    keep: Callable[[], Iterable[Int64s]],
    *,
    waiting: Callable[[], None],
) -> KeptRows:
    """Return the rows in a file; write them first if the file does not exist.

    Args:
        path: the absolute path of the file.
        origin: the operation, dataset and function that the rows must come from.
        keep: returns arrays of the rows; called only if the file does not exist.
        waiting: called if another process is writing the file.

    Raises:
        StateMismatch: the file holds rows of another operation, dataset or function.
        CorruptState: the file or its description has changed since it was written.
        InvalidArgument: the file was not written by this library.
    """
    if kept := _opened(path, origin):
        return kept
    with locked(f"{path}.lock", waiting=waiting):
        if kept := _opened(path, origin):
            return kept
        _remove_torn(path)
        return _written(path, origin, keep())


def _opened(path: str, origin: RowsOrigin) -> KeptRows | None:
    # The rows are looked for before the description, which is written first.
    if not os.path.lexists(path):
        return None
    sidecar = _sidecar(path, origin.operation)
    if lines := _differences(sidecar, origin):
        message = (
            f"{path!r} holds rows that were kept of something else:\n"
            + "\n".join(lines)
            + f"\nName another file with save=, or remove this one to {origin.operation} again"
        )
        raise StateMismatch(message)
    kept = KeptRows(path, sidecar.count, sidecar.rows, named=True, operation=origin.operation)
    kept.check()
    return kept


def _sidecar(path: str, operation: str) -> _Sidecar:
    try:
        with open(f"{path}.json", "rb") as file:
            sidecar = msgspec.json.decode(file.read(), type=_Sidecar)
    except FileNotFoundError:
        message = (
            f"{path!r} is there, and {path + '.json'!r}, which would say what rows it holds, is not: it was "
            f"not kept by {operation}(). Name another file with save=, or remove this one if nobody needs it"
        )
        raise InvalidArgument(message) from None
    except ValueError as error:
        message = f"{path + '.json'!r} cannot be read ({error}): remove it and {path!r} to {operation} again"
        raise CorruptState(message) from error
    if sidecar.seekable_kept != _SCHEMA:
        message = (
            f"{path + '.json'!r} has version {sidecar.seekable_kept}, and this seekable knows {_SCHEMA}: use "
            f"the version that wrote it, or remove it and {path!r} to {operation} again"
        )
        raise CorruptState(message)
    return sidecar


def _differences(was: _Sidecar, now: RowsOrigin) -> list[str]:
    lines = []
    if was.operation != now.operation:
        lines.append(f"the rows were found by {was.operation}(), and here by {now.operation}()")
    if was.dataset != now.dataset:
        lines.append(
            f"the dataset was {was.dataset} of {was.records:,} records, "
            f"is {now.dataset} of {now.records:,} records"
        )
    if was.function != now.function:
        lines.append(f"the function was {_called(was.function)}, is {_called(now.function)}")
    elif was.code != now.code:
        line = f"the code of {_called(now.function)} was {was.code}, is {now.code}"
        if was.python != now.python:
            line += (
                f" (by Python {was.python} then and {now.python} now, whose code differs even where nothing "
                f"was changed: version= stands for the code in both)"
            )
        lines.append(line)
    return lines


def _called(function: dict[str, Any]) -> str:
    return ", ".join([str(function["name"]), *(f"{k} {v!r}" for k, v in function.items() if k != "name")])


def _written(path: str, origin: RowsOrigin, arrays: Iterable[Int64s]) -> KeptRows:
    parts = _Digested(arrays)

    def rows_then_description() -> Iterator[memoryview]:
        yield from parts
        # All rows are written; their file gets its name after this.
        sidecar = _Sidecar(
            _SCHEMA,
            origin.dataset,
            origin.records,
            origin.function,
            origin.code,
            origin.python,
            parts.count,
            parts.digest,
            origin.operation,
        )
        write_atomically(f"{path}.json", msgspec.json.format(msgspec.json.encode(sidecar)) + b"\n")

    write_atomically(path, rows_then_description())
    return KeptRows(path, parts.count, parts.digest, named=True, operation=origin.operation)


def _remove_torn(path: str) -> None:
    """Remove files that killed processes left; the caller holds the lock of ``path``."""
    folder, name = os.path.split(path)
    torn = re.compile(rf"{re.escape(name)}(\.json)?\.[0-9a-f]{{16}}{re.escape(TEMPORARY_SUFFIX)}", re.DOTALL)
    for other in os.listdir(folder):
        if torn.fullmatch(other):
            os.unlink(os.path.join(folder, other))
