"""The secrets in pickles: in clear on the way to processes that work for this one, elsewhere sealed.

Options of object stores have keys and passwords. ``pickle.dumps(ds)`` has none that can be read, because
nobody can say where the bytes will lie. What this library pickles for its own child processes, and for the
workers of an ``executor=`` of the user, has them::

    with sending_secrets():
        pipe.send_bytes(pickle.dumps(work))

Other libraries pickle for their worker processes too, without ``sending_secrets``. Those pickles have secrets
*sealed*: encrypted by the key that ``multiprocessing`` gives a process and its children. It is random and new
for each run, and in no file, unless the program sets ``multiprocessing.current_process().authkey``. Equal
secrets give equal bytes, so that a pickle can be compared with another one.
"""

from __future__ import annotations

import hashlib
import hmac
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import process
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["may_send_secrets", "seal", "sending_secrets", "unseal"]

_MARK_BYTES = 16

_LEAST_KEY_BYTES = 16
"""A key that is shorter, which a program has set itself, could be guessed: nothing is sealed by it."""

_sending: ContextVar[bool] = ContextVar("sending", default=False)


@contextmanager
def sending_secrets() -> Iterator[None]:
    """Let what is pickled inside, in this thread, hold the secrets of storage options."""
    before = _sending.set(True)
    try:
        yield
    finally:
        _sending.reset(before)


def may_send_secrets() -> bool:
    """Return True if what is pickled now goes to a child process alone.

    So it is inside ``sending_secrets``, and while ``multiprocessing`` starts a process by ``spawn`` or
    ``forkserver``.
    """
    if _sending.get():
        return True
    context = sys.modules.get("multiprocessing.context")
    return context is not None and context.get_spawning_popen() is not None


def seal(content: bytes) -> bytes:
    """Return bytes that only this process and the children that ``multiprocessing`` starts for it can read.

    They are empty if the key of this process is too short to hide anything.

    Example:
        >>> b"password" in seal(b"password"), unseal(seal(b"password"))
        (False, b'password')
    """
    if len(process.current_process().authkey) < _LEAST_KEY_BYTES:
        return b""
    mark = _mark(content)
    return mark + _mixed(content, mark)


def unseal(sealed: bytes) -> bytes | None:
    """Return the content of sealed bytes; None if another family of processes has sealed them."""
    mark = sealed[:_MARK_BYTES]
    content = _mixed(sealed[_MARK_BYTES:], mark)
    return content if sealed and hmac.compare_digest(mark, _mark(content)) else None


def _key() -> bytes:
    """Return 64 bytes, the longest key of BLAKE2, made of the key of this process, which may be longer."""
    return hashlib.blake2b(process.current_process().authkey, person=b"key").digest()


def _mark(content: bytes) -> bytes:
    """Return what proves the key and makes each stream of ``_mixed`` another one."""
    return hashlib.blake2b(content, key=_key(), person=b"mark", digest_size=_MARK_BYTES).digest()


def _mixed(content: bytes, mark: bytes) -> bytes:
    """Return the exclusive or of the content and a stream of the key; twice it is the content again."""
    size = hashlib.blake2b().digest_size
    blocks = (
        hashlib.blake2b(mark + number.to_bytes(8, "big"), key=_key(), person=b"stream").digest()
        for number in range(-(-len(content) // size))
    )
    return bytes(byte ^ other for byte, other in zip(content, b"".join(blocks), strict=False))
