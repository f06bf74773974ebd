"""Stores in a forked child: one that its parent has used must not be used there.

The compiled code of such a store (obstore) has threads and an epoll instance of its own. A fork copies the
instance and not the threads: the child would hang, and could end the parent. So the child reads through a
helper process, a fresh interpreter at the other end of a socket.

The hook of a fork sets a flag and touches no lock. Requests and answers are pickles that go nowhere else;
beside each request go the stores of this process with their secrets. The helper ends with the socket, so it
does not outlive the process that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import socket
import subprocess
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, final

from seekable.errors import ForkUnsafe
from seekable.parallel.processes import (
    HEAD_BYTES,
    head_of,
    leave_signals_to_parent,
    length_in,
    start_interpreter,
)
from seekable.remote.mounts import handed_down, store_of, take_over
from seekable.remote.stores.object_store import Passing, Store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from typing_extensions import Buffer

    from seekable.remote.stores.object_store import FolderListing, Page, Pin, Stat

__all__ = ["GuardedStores", "Helper", "RelayedStore", "serve"]

_ENDING_SECONDS = 1.0


class _Use:
    """The process that used a store which no forked child may use."""

    process: int | None = None
    is_inherited: bool = False


def _after_fork() -> None:
    _Use.is_inherited = _Use.process is not None


os.register_at_fork(after_in_child=_after_fork)


@final
class GuardedStores:
    """The stores of a process, by address; in a forked child, those that relay what is not safe there."""

    def __init__(self, store_of: Callable[[str], tuple[Store, str]]) -> None:
        """Start no helper yet.

        Args:
            store_of: returns the store and the key of an address.
        """
        self._store_of = store_of
        self._helper: Helper | None = None

    def store_of(self, path: str) -> tuple[Store, str]:
        """Return the store to use for an address, and the key of the address in it; called in the loop.

        Raises:
            ForkUnsafe: from the calls of the store, if this process was forked and can start no helper.
        """
        store, key = self._store_of(path)
        if store.fork_safe:
            return store, key
        # The number of the process is compared too: not each fork calls the hook.
        if _Use.is_inherited or _Use.process not in (None, os.getpid()):
            if self._helper is None:
                self._helper = Helper()
            return RelayedStore(store, path, self._helper), key
        _Use.process = os.getpid()
        return store, key

    def close(self) -> None:
        """End the helper process, if there is one."""
        if self._helper is not None:
            self._helper.close()


@final
class RelayedStore(Store):
    """A store whose calls are made by a helper process."""

    fork_safe = True

    def __init__(self, store: Store, path: str, helper: Helper) -> None:
        """Send nothing yet.

        Args:
            store: the store of this process, which is asked for nothing but names.
            path: an address in the store.
            helper: makes the calls.
        """
        self._store = store
        self._path = path
        self._helper = helper
        self.lacks = getattr(store, "lacks", "")

    def shown(self, key: str) -> str:
        """Return the address of an object for messages, without secrets."""
        return self._store.shown(key)

    async def stat(self, key: str) -> Stat:
        """Return the size and the entity tag of an object."""
        stat: Stat = await self._result("stat", key)
        return stat

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        """Return bytes of an object."""
        data, pin.etag = await self._result("read", key, start, stop, pin)
        found: bytes = data
        return found

    async def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        """Yield the objects below a folder in pages."""
        answers = self._helper.answers(self._path, "list", (prefix, after, before))
        async with contextlib.aclosing(answers):
            async for page in answers:
                yield page

    async def list_folder(self, prefix: str) -> FolderListing:
        """Return the folders and the objects directly below a folder."""
        listing: FolderListing = await self._result("list_folder", prefix)
        return listing

    async def put(self, key: str, data: Buffer, *, replacing: Stat | Literal["any"] | None) -> Stat:
        """Write a whole object and return its description."""
        stat: Stat = await self._result("put", key, bytes(data), replacing)
        return stat

    async def delete(self, key: str) -> None:
        """Delete an object; nothing happens if there is none."""
        await self._result("delete", key)

    async def _result(self, method: str, *arguments: object) -> Any:
        answers = self._helper.answers(self._path, method, arguments)
        async with contextlib.aclosing(answers):
            return await anext(answers)


@final
class Helper:
    """The helper process of this one, which starts with the first call. All calls are made in one loop."""

    def __init__(self) -> None:
        """Start no process before the first call."""
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._answers: dict[int, asyncio.Queue[tuple[str, Any]]] = {}
        self._number = 0

    async def answers(
        self, path: str, method: str, arguments: tuple[object, ...]
    ) -> AsyncGenerator[Any, None]:
        """Yield what a method of the store of an address returns, or yields.

        Raises:
            ForkUnsafe: the helper cannot start.
            Passing: the helper has ended.
            Exception: the error of the call.
        """
        self._number += 1
        number = self._number
        received = self._answers[number] = asyncio.Queue()
        try:
            await self._send((number, handed_down(), path, method, arguments))
            while True:
                kind, value = await received.get()
                if kind == "error":
                    raise value
                if kind == "end":
                    return
                yield value
        finally:
            del self._answers[number]
            if self._writer is not None:
                _write(self._writer, (number, b"", "", "cancel", ()))

    @property
    def process(self) -> int | None:
        """The number of the helper process; None if there is none."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the helper process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_ENDING_SECONDS)

    async def _send(self, request: object) -> None:
        async with self._starting:
            if self._writer is None:
                await self._start()
        assert self._writer is not None
        _write(self._writer, request)
        try:
            await self._writer.drain()
        except OSError as error:
            raise Passing(f"the helper process has ended: {error}") from None

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = start_interpreter(
                    __name__, theirs.fileno(), stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
                )
            except OSError as error:
                ours.close()
                raise _unsafe(f"no helper process can start ({error})") from error
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._reading = asyncio.get_running_loop().create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Pass answers on to those who wait for them, until the helper ends."""
        try:
            while True:
                number, kind, value = pickle.loads(await _read_frame(reader))  # noqa: S301 - from our child
                if number in self._answers:
                    self._answers[number].put_nowait((kind, value))
        except (EOFError, OSError):
            pass
        finally:
            self.close()
            for received in self._answers.values():
                received.put_nowait(("error", Passing("the helper process has ended")))
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()


def _unsafe(reason: str) -> ForkUnsafe:
    return ForkUnsafe(
        "this process was forked from one that had read an object store, which it cannot read itself, and "
        f'{reason}: start it by multiprocessing_context="forkserver" (or "spawn") instead of "fork"'
    )


def _write(writer: asyncio.StreamWriter, message: object) -> None:
    """Send a message, unless the other process has ended: asyncio would complain of that on stderr."""
    if not writer.is_closing():
        data = pickle.dumps(message, protocol=5)
        writer.write(head_of(data) + data)


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    """Return the next message.

    Raises:
        EOFError: there is none.
    """
    return await reader.readexactly(length_in(await reader.readexactly(HEAD_BYTES)))


def serve(descriptor: int) -> None:
    """Make calls for the process at the other end of a socket until it closes; the helper runs this alone."""
    leave_signals_to_parent()
    with contextlib.suppress(EOFError, OSError):
        asyncio.run(_serve(descriptor))
    # Requests under way end with the process; the end of an interpreter would wait for them.
    os._exit(0)


async def _serve(descriptor: int) -> None:
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
    tasks: dict[int, asyncio.Task[None]] = {}
    known = b""
    while True:
        try:
            number, mounts, path, method, arguments = pickle.loads(await _read_frame(reader))  # noqa: S301
        except (EOFError, OSError):
            os._exit(0)
        if method == "cancel":
            if number in tasks:
                tasks[number].cancel()
            continue
        if mounts != known:
            take_over(mounts)
            known = mounts
        task = asyncio.create_task(_answer(writer, number, path, method, arguments))
        tasks[number] = task
        task.add_done_callback(partial(_forget, tasks, number))


def _forget(tasks: dict[int, asyncio.Task[None]], number: int, _: object) -> None:
    tasks.pop(number, None)


async def _answer(
    writer: asyncio.StreamWriter, number: int, path: str, method: str, arguments: tuple[Any, ...]
) -> None:
    try:
        async for value in _values(path, method, arguments):
            _write(writer, (number, "value", value))
            await writer.drain()
        _write(writer, (number, "end", None))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other process raises it
        _write(writer, (number, "error", _portable(error)))


async def _values(path: str, method: str, arguments: tuple[Any, ...]) -> AsyncIterator[Any]:
    """Yield what a call returns or yields."""
    store, _ = store_of(path)
    if method == "list":
        prefix, after, before = arguments
        async for page in store.list(prefix, after=after, before=before):
            yield page
    elif method == "read":
        key, start, stop, pin = arguments
        data = await store.read(key, start, stop, pin=pin)
        yield bytes(data), pin.etag
    elif method == "put":
        key, data, replacing = arguments
        yield await store.put(key, data, replacing=replacing)
    else:
        yield await getattr(store, method)(*arguments)


def _portable(error: Exception) -> Exception:
    """Return an error that can be pickled, with the text of the given one."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - a copy in memory
    except Exception:  # noqa: BLE001 - errors of others may have any reason not to be copied
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error.with_traceback(None)
