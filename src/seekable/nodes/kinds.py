"""The class of each kind of node that users make, for descriptions and pipeline files.

Classes come from this table and from that of the subjects alone: no name of a file is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._lazy import imported
from seekable.errors import CorruptState
from seekable.formats.table import NODE_HOMES, node_home
from seekable.nodes.batch import Batch
from seekable.nodes.columns.cast import Cast, UnifyColumns
from seekable.nodes.columns.choose import DropColumns, Fill, SelectColumns, SourceColumn
from seekable.nodes.columns.partitions import Partitions
from seekable.nodes.columns.rename import Alias, Computed, MapColumns, Rename
from seekable.nodes.concat import Concat
from seekable.nodes.epoch import Epoch
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.files.row_source import RowSource
from seekable.nodes.filter import Filter
from seekable.nodes.flatten import FlattenNode
from seekable.nodes.interleave import Interleave
from seekable.nodes.join import Join
from seekable.nodes.map import Map, MapBatches
from seekable.nodes.mix import Mix
from seekable.nodes.repeat import Repeat
from seekable.nodes.select import Sample, Select
from seekable.nodes.sequence_source import SequenceSource
from seekable.nodes.shuffle import Shuffle
from seekable.nodes.slice import Slice
from seekable.nodes.sort import Sort
from seekable.nodes.split import Split, StableSplit
from seekable.nodes.windowed import WindowedShuffle
from seekable.nodes.without import WithHoles, Without
from seekable.nodes.zip import Zip

if TYPE_CHECKING:
    from seekable.nodes.node import Node

__all__ = ["KINDS", "node_class"]

_CORE: dict[str, type[Node]] = {
    node.kind: node
    for node in (
        *(Alias, Batch, Cast, Computed, Concat, DropColumns, Epoch, FileSource, Fill, Filter, FlattenNode),
        *(Interleave, Join, Map, MapBatches, MapColumns, Mix, Partitions, Rename, Repeat, RowSource, Sample),
        *(Select, SelectColumns, SequenceSource, Shuffle, Slice, Sort, SourceColumn, Split, StableSplit),
        *(UnifyColumns, WindowedShuffle, WithHoles, Without, Zip),
    )
}

KINDS = frozenset({*_CORE, *NODE_HOMES})
"""The kinds of nodes that users make."""


def node_class(kind: str) -> type[Node]:
    """Return the class of a kind of node.

    Raises:
        CorruptState: there is no such kind.
        MissingDependency: the subject that has the class cannot be imported; the message names it.

    Example:
        >>> node_class("shuffle").__name__, node_class("pack").__name__
        ('Shuffle', 'PackNode')
    """
    if kind in _CORE:
        return _CORE[kind]
    home = node_home(kind)
    if home is None:
        message = (
            f"there is no node of the kind {kind!r} in this version of seekable, nor in a format of another "
            f"package that is installed"
        )
        raise CorruptState(message)
    found: type[Node] = imported(home)
    return found
