"""The base of the faces of a dataset: one node, and how a new dataset is made of another node.

``Dataset`` has its methods from three files, each of which imports the nodes that it makes at its top:
``ordering.py`` (which records come, and in what order), ``columns.py`` (columns, batches and files) and
``dataset.py`` (reading, and the class itself). The first two know this base alone, so nothing is imported in
a circle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from seekable.nodes.contract import Node
    from seekable.nodes.keys.lookup import Lookup

__all__ = ["Face"]


class Face:
    """A dataset as its methods see it: an immutable holder of one node."""

    __slots__ = ("__weakref__", "_lookup", "_node")

    _node: Node
    _lookup: Lookup | None
    """What ``key`` has found out about the sources."""

    def __init__(self, node: Node) -> None:
        """Hold a node."""
        self._node = node
        self._lookup = None

    @property
    def node(self) -> Node:
        """The root of the graph of nodes that decides the records and their order; it never changes.

        The rooms of the library that look at the graph take it from here. It is no part of the public face.
        """
        return self._node

    def _over(self, node: Node) -> Self:
        """Return a dataset over another node."""
        return type(self)(node)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class and the node: nothing that was opened or compiled is pickled."""
        return type(self), (self._node,)

    def __repr__(self) -> str:
        """Show the number of records and the expression that makes the dataset."""
        return f"<{type(self).__name__}, {self._node.in_words()}>"
