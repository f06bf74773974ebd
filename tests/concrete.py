"""The classes that a package defines and that can be made: what a closed world has to know."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

import seekable.nodes
import seekable.resume
from seekable.nodes.contract import Node

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["concrete_classes", "node_classes"]


def concrete_classes(package: ModuleType, root: Any) -> set[type]:
    """Return the classes below a root that can be made, as seekable defines them.

    Args:
        package: all its modules are imported first.
        root: the abstract class.
    """
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
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
    found = concrete_classes(seekable.nodes, Node) | concrete_classes(seekable.resume, Node)
    return {kind for kind in found if issubclass(kind, Node)}
