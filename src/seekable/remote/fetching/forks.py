"""Stores in a forked child: one that its parent has used must not be used there.

The compiled code of such a store (obstore) has threads and an epoll instance of its own. A fork copies the
instance and not the threads: the child would hang, and could end the parent. So the child reads through a
helper process, a fresh interpreter (``relay``). The hook of a fork sets a flag and touches no lock.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, final

from seekable._lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.remote.fetching import relay
    from seekable.remote.stores.store import Store
else:
    relay = lazy("seekable.remote.fetching.relay")

__all__ = ["GuardedStores"]


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
        self._helper: relay.Helper | None = None

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
                self._helper = relay.Helper()
            return relay.RelayedStore(store, path, self._helper), key
        _Use.process = os.getpid()
        return store, key

    def close(self) -> None:
        """End the helper process, if there is one."""
        if self._helper is not None:
            self._helper.close()
