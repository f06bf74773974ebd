"""The classes that a package defines and that can be made: what a closed world has to know."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

import seekable
from seekable.nodes.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEFT_OUT = (
    "seekable.__main__",
    "seekable.cli",
    "seekable.formats.tokens.chats.sandbox",
    "seekable.integrations",
    "seekable.testing",
    "seekable.viewer",
)
"""What defines no node, stage or format, and needs packages that may not be there."""

__all__ = ["concrete_classes", "node_classes"]


def concrete_classes(root: Any) -> set[type]:
    """Return the classes below an abstract class that can be made, as seekable defines them."""
    for name in _modules():
        importlib.import_module(name)
    found: set[type] = set()
    pending: list[Any] = [root]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind.__module__.startswith("seekable.") and not inspect.isabstract(kind):
            found.add(kind)
    return found


def node_classes() -> set[type[Node]]:
    """Return the classes of nodes that can be made."""
    return {kind for kind in concrete_classes(Node) if issubclass(kind, Node)}


def _modules() -> Iterator[str]:
    for module in pkgutil.walk_packages(seekable.__path__, "seekable."):
        if not module.name.startswith(_LEFT_OUT):
            yield module.name
