"""Messages between a loader and its worker processes, over a socket of this machine.

A message goes one of three ways. Large arrays, and tensors of torch, are written to memory without a name,
and the socket carries the descriptor of that memory: the receiver maps it, and the arrays are views of the
map, without another copy. Other messages of a worker are written to a shared buffer, which both sides have
mapped from the start, and which is used again once the receiver has loaded the message. A message without a
shared buffer, or too large for one, and each message to a worker, takes the first way or the socket itself.
Memory without a name is freed with its last user, also if processes are killed.

Messages are pickles, between a process and its own children only. Tensors of torch are sent as arrays.
"""

from __future__ import annotations

import copyreg
import functools
import mmap
import os
import pickle
import socket
import struct
import sys
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray


__all__ = ["BufferWriter", "Closed", "Connection", "SharedBuffers", "memory_without_name", "reducers"]


_LARGE_BYTES = 64 << 10
"""Arrays of at least this size, and such messages without a shared buffer, get memory of their own: smaller
ones fit the buffer of a socket."""

_ALIGNED = 64
"""Arrays begin at multiples of this number of bytes."""

_HEAD = struct.Struct("<bQiQI")
"""The way, the tag, the shared buffer, the bytes of the pickle, and the number of arrays that follow."""

_SOCKET, _MEMORY, _SHARED = range(3)

_SIZE = struct.Struct("<Q")

_BUFFER_BYTES = 4 << 20
"""A buffer takes memory only where something was written: this bounds what the largest messages keep."""


class Closed(Exception):
    """The process at the other end has closed the connection."""


class Connection:
    """One end of a socket, for one thread that sends and one that receives.

    Args:
        end: one of a pair of sockets; ``close`` closes it.
        buffers: the shared buffers for messages of the worker.
    """

    def __init__(self, end: socket.socket, buffers: SharedBuffers | None = None) -> None:
        self._socket = end
        self._buffers = buffers
        self.whole = True
        """False while a message is sent or received, and after an interrupt in its middle."""

    def fileno(self) -> int:
        """Return the descriptor of the socket, for ``select``."""
        return self._socket.fileno()

    def send(self, item: Any, *, tag: int = 0, buffer: int | None = None) -> int:
        """Pickle and send something, and return the number of bytes that it took.

        Args:
            item: what to send.
            tag: a number by which the receiver can tell whether it still wants this.
            buffer: the index of a free shared buffer; None for none.

        Raises:
            Closed: the process at the other end is gone.
        """
        large: list[pickle.PickleBuffer] = []
        writer = BufferWriter() if buffer is None or self._buffers is None else self._buffers.writer(buffer)
        pickler = pickle.Pickler(writer, 5, buffer_callback=functools.partial(_keep, large))
        pickler.dispatch_table = reducers()
        pickler.dump(item)
        self.whole = False
        try:
            if large or not writer.fits:
                total = self._send_parts([writer.taken(), *(array.raw() for array in large)], tag)
            else:
                self._socket.sendall(_HEAD.pack(_SHARED, tag, buffer, writer.size, 0))
                total = writer.size
        except OSError as error:
            raise Closed from error
        self.whole = True
        return total

    def receive(self, wanted: int | None = None) -> Any:
        """Wait for a message and return it; return None if its tag is neither 0 nor ``wanted``.

        Raises:
            Closed: the process at the other end is gone.
        """
        self.whole = False
        try:
            head, descriptors, _, _ = socket.recv_fds(self._socket, _HEAD.size, 1)
            head += self._exactly(_HEAD.size - len(head)) if head else b""
            if not head:
                raise Closed
            way, tag, buffer, size, count = _HEAD.unpack(head)
            sizes = [size, *(_SIZE.unpack(self._exactly(_SIZE.size))[0] for _ in range(count))]
            if way == _SHARED:
                assert self._buffers is not None
                view = self._buffers.view(buffer, size)
            else:
                total = sum(size + -size % _ALIGNED for size in sizes)
                view = _mapped(descriptors[0], total) if way == _MEMORY else memoryview(self._exactly(total))
        except OSError as error:
            raise Closed from error
        self.whole = True
        if wanted is not None and tag not in (0, wanted):
            return None
        at, parts = 0, []
        for size in sizes:
            parts.append(view[at : at + size])
            at += size + -size % _ALIGNED
        return pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 - from our own parent or child

    def close(self) -> None:
        """Close the socket; the other end then gets `Closed`."""
        self._socket.close()

    def _send_parts(self, parts: Sequence[Any], tag: int) -> int:
        sizes = [len(part) for part in parts]
        padded: list[Any] = []
        for part, size in zip(parts, sizes, strict=True):
            padded += [part, bytes(-size % _ALIGNED)]
        total = sum(map(len, padded))
        shared = total >= _LARGE_BYTES
        head = _HEAD.pack(_MEMORY if shared else _SOCKET, tag, -1, sizes[0], len(sizes) - 1)
        head += b"".join(map(_SIZE.pack, sizes[1:]))
        if shared:
            memory = memory_without_name()
            try:
                _write(memory, padded)
                socket.send_fds(self._socket, [head[: _HEAD.size]], [memory])
                self._socket.sendall(head[_HEAD.size :])
            finally:
                os.close(memory)
        else:
            self._socket.sendall(b"".join([head, *padded]))
        return total

    def _exactly(self, count: int) -> bytearray:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            got = self._socket.recv_into(view)
            if not got:
                raise Closed
            view = view[got:]
        return data


def _keep(large: list[pickle.PickleBuffer], array: pickle.PickleBuffer) -> bool:
    """Keep a large array out of the pickle; return True if the array belongs into the pickle."""
    if array.raw().nbytes < _LARGE_BYTES:
        return True
    large.append(array)
    return False


def _write(memory: int, parts: Sequence[Any]) -> None:
    # Written and not copied into a map, which would take a page fault for each page.
    at = 0
    for part in parts:
        view = memoryview(part).cast("B")
        while view:
            done = os.pwrite(memory, view, at)
            view, at = view[done:], at + done


def _mapped(memory: int, size: int) -> memoryview:
    try:
        # Writable: the user may change arrays of a batch.
        return memoryview(mmap.mmap(memory, size, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)))
    finally:
        os.close(memory)


def reducers() -> Mapping[type, Callable[[Any], Any]]:
    """Return the reducers for pickling, those of torch tensors too if torch is imported already.

    Example:
        >>> set(reducers()) >= set(copyreg.dispatch_table)
        True
    """
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return copyreg.dispatch_table if tensor is None else {**copyreg.dispatch_table, tensor: _reduced}


def _reduced(tensor: Any) -> Any:
    import torch

    is_plain = tensor.device.type == "cpu" and tensor.layout is torch.strided and not tensor.requires_grad
    if not is_plain or tensor.is_nested or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        return tensor.__reduce_ex__(5)
    # As bytes, because torch has types of numbers that numpy has not.
    data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    return _tensor, (data, tensor.dtype, tuple(tensor.shape))


def _tensor(data: NDArray[np.uint8], dtype: Any, shape: tuple[int, ...]) -> Any:
    import torch

    return torch.from_numpy(data).view(dtype).reshape(shape)


class SharedBuffers:
    """Some buffers of equal size in one memory, which two processes have mapped.

    New memory for each message would have to be made, mapped on both sides, page by page, and given back: for
    a message of half a megabyte that takes longer than to pickle and load it.

    Args:
        descriptor: the memory; it is made larger where it is too small, and stays open.
        count: the number of buffers.

    Example:
        >>> ours = SharedBuffers(descriptor := memory_without_name(), 2)
        >>> theirs = SharedBuffers(descriptor, 2)
        >>> os.close(descriptor)
        >>> theirs.writer(1).write(b"message"), bytes(ours.view(1, 7))
        (7, b'message')
    """

    def __init__(self, descriptor: int, count: int) -> None:
        size = count * _BUFFER_BYTES
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        self._view = memoryview(mmap.mmap(descriptor, size))

    def writer(self, buffer: int) -> BufferWriter:
        """Return a file object that writes to a buffer from its start."""
        start = buffer * _BUFFER_BYTES
        return BufferWriter(self._view[start : start + _BUFFER_BYTES])

    def view(self, buffer: int, size: int) -> memoryview:
        """Return the first ``size`` bytes of a buffer, without a copy."""
        return self._view[buffer * _BUFFER_BYTES : buffer * _BUFFER_BYTES + size]


class BufferWriter:
    """A file object to pickle to: a shared buffer, or memory of its own for a message that does not fit.

    Args:
        buffer: the shared buffer; None for memory of its own alone.
    """

    def __init__(self, buffer: memoryview | None = None) -> None:
        self._buffer = memoryview(bytearray()) if buffer is None else buffer
        self._rest: bytearray | None = None
        self.size = 0
        """The number of bytes written."""

    @property
    def fits(self) -> bool:
        """True if all that was written is in the shared buffer."""
        return self._rest is None

    def write(self, data: bytes) -> int:
        """Add some bytes, and return their number."""
        start, self.size = self.size, self.size + len(data)
        if self._rest is None and self.size <= len(self._buffer):
            self._buffer[start : self.size] = data
        else:
            if self._rest is None:
                self._rest = bytearray(self._buffer[:start])
            self._rest += data
        return len(data)

    def taken(self) -> bytes | bytearray:
        """Return a copy of all that was written."""
        return bytes(self._buffer[: self.size]) if self._rest is None else self._rest


def memory_without_name() -> int:
    """Return the descriptor of new memory, which is freed when no process has it open or mapped any more."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("seekable")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
