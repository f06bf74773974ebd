"""Messages between a loader and its worker processes, over a socket of this machine.

A small message goes through the socket. A large one is written to memory that has no name (``memfd_create``),
of which the socket carries the descriptor: the receiver maps it, and arrays in the message are views of that
map, without another copy. Memory without a name is freed with its last user, whoever of them is killed.

Messages are pickles, between a process and its own children only.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Closed", "Connection"]

_SHARED_BYTES = 64 << 10
"""From here on a message is put into memory of its own: what is smaller fits the buffer of a socket."""

_ALIGNED = 64
"""Arrays begin at multiples of this."""

_HEAD = struct.Struct("<?Q I")
"""Whether memory comes with it, the bytes of the pickle, and how many buffers follow."""

_SIZE = struct.Struct("<Q")
_HAS_MEMORY = hasattr(os, "memfd_create")


class Closed(Exception):
    """The other side is gone."""


class Connection:
    """One end of a socket, for one thread that sends and one that receives."""

    def __init__(self, end: socket.socket) -> None:
        """Take an end of a pair of sockets, which is closed with this."""
        self._socket = end
        self.whole = True
        """Whether all that was sent or received was so to its end: an interrupt may come in the middle."""

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait for."""
        return self._socket.fileno()

    def send(self, item: Any) -> int:
        """Send something that can be pickled, and return how many bytes it took.

        Raises:
            Closed: nobody receives any more.
        """
        buffers: list[pickle.PickleBuffer] = []
        parts: list[Any] = [pickle.dumps(item, protocol=5, buffer_callback=buffers.append)]
        parts += [buffer.raw() for buffer in buffers]
        sizes = [len(part) for part in parts]
        padded: list[Any] = []
        for part, size in zip(parts, sizes, strict=True):
            padded += [part, bytes(-size % _ALIGNED)]
        total = sum(map(len, padded))
        shared = _HAS_MEMORY and total >= _SHARED_BYTES
        head = _HEAD.pack(shared, sizes[0], len(buffers)) + b"".join(map(_SIZE.pack, sizes[1:]))
        self.whole = False
        try:
            if shared:
                memory = os.memfd_create("seekable")
                try:
                    _write(memory, padded)
                    socket.send_fds(self._socket, [head[: _HEAD.size]], [memory])
                    self._socket.sendall(head[_HEAD.size :])
                finally:
                    os.close(memory)
            else:
                self._socket.sendall(b"".join([head, *padded]))
        except OSError as error:
            raise Closed from error
        self.whole = True
        return total

    def receive(self) -> Any:
        """Wait for something and return it.

        Raises:
            Closed: nobody sends any more.
        """
        self.whole = False
        try:
            head, descriptors, _, _ = socket.recv_fds(self._socket, _HEAD.size, 1)
            head += self._exactly(_HEAD.size - len(head)) if head else b""
            if not head:
                raise Closed
            shared, size, count = _HEAD.unpack(head)
            sizes = [size, *(_SIZE.unpack(self._exactly(_SIZE.size))[0] for _ in range(count))]
            total = sum(size + -size % _ALIGNED for size in sizes)
            view = _mapped(descriptors[0], total) if shared else memoryview(self._exactly(total))
        except OSError as error:
            raise Closed from error
        self.whole = True
        at, parts = 0, []
        for size in sizes:
            parts.append(view[at : at + size])
            at += size + -size % _ALIGNED
        return pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 - from our own parent or child

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _exactly(self, count: int) -> bytearray:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            got = self._socket.recv_into(view)
            if not got:
                raise Closed
            view = view[got:]
        return data


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
        # Writable, because whoever gets an array may want to change it.
        return memoryview(mmap.mmap(memory, size, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)))
    finally:
        os.close(memory)
