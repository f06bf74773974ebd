"""Messages between a loader and its worker processes, over a socket of this machine.

What a message holds goes one of three ways. Large arrays, and tensors of torch, are written to memory that
has no name, of which the socket carries the descriptor: the receiver maps it, and the arrays are views of
that map, without another copy. All else that a worker sends is put into a slot of memory that both sides
have mapped from the start, and that is used again once the receiver has taken the message out. What has no
slot, or is too large for one, and what goes to a worker, takes the first way or the socket itself. Memory
without a name is freed with its last user, whoever of them is killed.

Messages are pickles, between a process and its own children only.
"""

from __future__ import annotations

import functools
import mmap
import os
import pickle
import socket
import struct
from typing import TYPE_CHECKING, Any

from seekable.loader.workers.slots import SlotWriter, memory_without_name
from seekable.loader.workers.tensors import reducers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.loader.workers.slots import Slots

__all__ = ["Closed", "Connection"]

_SHARED_BYTES = 64 << 10
"""From here on an array, and a message without a slot, is put into memory of its own: what is smaller fits
the buffer of a socket."""

_ALIGNED = 64
"""Arrays begin at multiples of this."""

_HEAD = struct.Struct("<bQiQI")
"""The way, the tag, the slot, the bytes of the pickle, and how many buffers follow."""

_SOCKET, _MEMORY, _SLOT = range(3)

_SIZE = struct.Struct("<Q")


class Closed(Exception):
    """The other side is gone."""


class Connection:
    """One end of a socket, for one thread that sends and one that receives."""

    def __init__(self, end: socket.socket, slots: Slots | None = None) -> None:
        """Take an end of a pair of sockets, which is closed with this, and the slots of what is sent."""
        self._socket = end
        self._slots = slots
        self.whole = True
        """Whether all that was sent or received was so to its end: an interrupt may come in the middle."""

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait for."""
        return self._socket.fileno()

    def send(self, item: Any, *, tag: int = 0, slot: int | None = None) -> int:
        """Send something that can be pickled, and return how many bytes it took.

        Args:
            item: what to send.
            tag: a number by which the receiver can tell whether it still wants this.
            slot: which slot is free for it; None for none.

        Raises:
            Closed: nobody receives any more.
        """
        large: list[pickle.PickleBuffer] = []
        writer = SlotWriter() if slot is None or self._slots is None else self._slots.writer(slot)
        pickler = pickle.Pickler(writer, 5, buffer_callback=functools.partial(_keep, large))
        pickler.dispatch_table = reducers()
        pickler.dump(item)
        self.whole = False
        try:
            if large or not writer.fits:
                total = self._send_parts([writer.taken(), *(array.raw() for array in large)], tag)
            else:
                self._socket.sendall(_HEAD.pack(_SLOT, tag, slot, writer.size, 0))
                total = writer.size
        except OSError as error:
            raise Closed from error
        self.whole = True
        return total

    def receive(self, wanted: int | None = None) -> Any:
        """Wait for something and return it, or None if it has another tag than 0 and the one that is wanted.

        Raises:
            Closed: nobody sends any more.
        """
        self.whole = False
        try:
            head, descriptors, _, _ = socket.recv_fds(self._socket, _HEAD.size, 1)
            head += self._exactly(_HEAD.size - len(head)) if head else b""
            if not head:
                raise Closed
            way, tag, slot, size, count = _HEAD.unpack(head)
            sizes = [size, *(_SIZE.unpack(self._exactly(_SIZE.size))[0] for _ in range(count))]
            if way == _SLOT:
                assert self._slots is not None
                view = self._slots.view(slot, size)
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
        """Hang up."""
        self._socket.close()

    def _send_parts(self, parts: Sequence[Any], tag: int) -> int:
        sizes = [len(part) for part in parts]
        padded: list[Any] = []
        for part, size in zip(parts, sizes, strict=True):
            padded += [part, bytes(-size % _ALIGNED)]
        total = sum(map(len, padded))
        shared = total >= _SHARED_BYTES
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
    """Keep a large array out of the pickle; return whether it is to be in it."""
    if array.raw().nbytes < _SHARED_BYTES:
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
        # Writable, because whoever gets an array may want to change it.
        return memoryview(mmap.mmap(memory, size, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)))
    finally:
        os.close(memory)
