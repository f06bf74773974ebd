"""The base of ``Dataset``: it holds one node, and makes new datasets of other nodes.

``Dataset`` has its methods from four files, each of which names the nodes that it makes at its top:
``ordering.py`` (order, cuts, maps and chosen rows), ``columns.py`` (columns and batches),
``writing/write_methods.py`` (writing) and ``dataset.py`` (reading, methods with the code of a subject, and
the class itself). All but the last import at most this base, so nothing is imported in a circle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from seekable._other_words import DATASET, no_attribute
from seekable.nodes.display import explained, preformatted
from seekable.nodes.graph import check_depth

if TYPE_CHECKING:
    from seekable.nodes.key_lookup import Lookup
    from seekable.nodes.node import Node

__all__ = ["Face"]


class Face:
    """An immutable holder of one node, and the base of the classes that add methods."""

    __slots__ = ("__weakref__", "_fetches", "_lookup", "_node")

    _node: Node
    """The root of the graph that decides the records and their order; it never changes. Other rooms ask
    ``node_of`` for it."""

    _lookup: Lookup | None
    """The key indexes of the sources, after the first call of ``key``."""

    _fetches: bool | None
    """True if records are read from object stores; None before that was asked."""

    def __init__(self, node: Node) -> None:
        """Make a dataset over a node.

        Raises:
            InvalidArgument: the pipeline is deeper than Python can follow.
        """
        check_depth(node)
        self._node = node
        self._lookup = None
        self._fetches = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise an error that names what other libraries call otherwise; it is called for no other name.

            Raises:
                AttributeError: there is no such attribute.
            """
            raise no_attribute(self, name, DATASET)

    def _over(self, node: Node) -> Self:
        """Return a dataset over another node."""
        return type(self)(node)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class and the node: nothing that was opened or compiled is pickled."""
        return type(self), (self._node,)

    def __repr__(self) -> str:
        """Show the number of records and the expression that makes the dataset."""
        return f"<{type(self).__name__}, {self._node.in_words()}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the expression, and the tree of ``explain``. No record is read."""
        return preformatted(lambda: "\n".join([self._node.in_words(), *explained(self._node)]), self)
