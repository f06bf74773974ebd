"""Values that a node computes once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import cached_property as cached
else:

    class cached:  # noqa: N801 - used as a decorator, like the standard library's
        """``functools.cached_property`` without its lock.

        Before Python 3.12 that one holds a lock while it computes, for all objects of a class. A process that
        forks meanwhile, to start PyTorch's workers say, gives its child a lock that nobody there will
        release. Computing a value twice is harmless: nodes are immutable.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, node: Any, owner: type | None = None) -> Any:
            if node is None:
                return self
            value = node.__dict__[self._name] = self._compute(node)
            return value


__all__ = ["cached"]
