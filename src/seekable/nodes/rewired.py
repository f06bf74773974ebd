"""A node over other children that are equal to its own."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["rewired"]

T = TypeVar("T")


def rewired(node: T, below: Mapping[int, Any]) -> T:
    """Return a node with others in the place of its children.

    It is made without the checks of a new node: this one has passed them, and the children are equal.

    Args:
        node: a dataclass whose fields hold its children, or tuples of them.
        below: what comes in the place of each child, by its ``id``.
    """
    made = object.__new__(type(node))
    for field in fields(node):  # type: ignore[arg-type]  # every node that can be made is a dataclass
        object.__setattr__(made, field.name, _with_children(getattr(node, field.name), below))
    return made


def _with_children(value: Any, below: Mapping[int, Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(below.get(id(part), part) for part in value)
    return below.get(id(value), value)
