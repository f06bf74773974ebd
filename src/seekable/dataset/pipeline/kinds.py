"""The classes of nodes that a pipeline file can have, by kind, and the types of their fields.

Classes come from this table alone: a kind that it lacks is refused, and no name of a file is imported.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Any

from seekable.formats.shar.shar_source import SharSource
from seekable.formats.tables.tables import TableSource
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tar.siblings import Siblings
from seekable.formats.tokens.source.token_source import TokenSource
from seekable.nodes.batch import Batch
from seekable.nodes.columns.alias import Alias, Computed
from seekable.nodes.columns.cast import Cast
from seekable.nodes.columns.choose import DropColumns, Fill, SelectColumns, SourceColumn
from seekable.nodes.columns.partitions import Partitions
from seekable.nodes.columns.rename import MapColumns, Rename
from seekable.nodes.columns.unify import UnifyColumns
from seekable.nodes.concat import Concat
from seekable.nodes.epoch import Epoch
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.filter import Filter
from seekable.nodes.flatten import Flatten
from seekable.nodes.interleave import Interleave
from seekable.nodes.join import Join
from seekable.nodes.map import Map
from seekable.nodes.map_batches import MapBatches
from seekable.nodes.mix import Mix
from seekable.nodes.repeat import Repeat
from seekable.nodes.select import Sample, Select
from seekable.nodes.shuffle import Shuffle
from seekable.nodes.slice import Slice
from seekable.nodes.sort import Sort
from seekable.nodes.sources.sequence_source import SequenceSource
from seekable.nodes.split import Split
from seekable.nodes.stable_split import StableSplit
from seekable.nodes.windowed import WindowedShuffle
from seekable.nodes.zip import Zip
from seekable.packing.nodes.blend import MegatronBlend
from seekable.packing.nodes.pack import Pack
from seekable.packing.nodes.windows import Windows

if TYPE_CHECKING:
    from seekable.nodes.contract import Node

__all__ = ["COUNTED", "FUNCTIONS", "NODE_KINDS", "fields_of", "is_default"]

NODE_KINDS: dict[str, type[Node]] = {
    node.kind: node
    for node in (
        *(Alias, Batch, Cast, Computed, Concat, DropColumns, Epoch, FileSource, Fill, Filter, Flatten),
        *(
            Interleave,
            Join,
            Map,
            MapBatches,
            MapColumns,
            MegatronBlend,
            Mix,
            Rename,
            Repeat,
            Sample,
            Select,
            SelectColumns,
        ),
        *(
            Partitions,
            SampleSource,
            SequenceSource,
            SharSource,
            Shuffle,
            Slice,
            Sort,
            SourceColumn,
            Split,
            StableSplit,
            TableSource,
            TokenSource,
        ),
        *(Pack, Siblings, UnifyColumns, WindowedShuffle, Windows, Zip),
    )
}
"""The class of each kind of node."""

COUNTED = frozenset({Filter, Flatten, Join, MegatronBlend, Mix, Pack, Select, Slice, Sort, Split, Windows})
"""The classes whose arguments were made of the records or the lengths of what is below them."""

FUNCTIONS = frozenset({"Callable[..., Any]", "Callable[[list[Any]], Any]", "OnError | None", "ToItems"})
"""The annotations of fields that are functions of the user."""


def fields_of(kind: type[Node]) -> dict[str, Field[Any]]:
    """Return the fields of a class of nodes by name, those that JSON has first.

    Other fields may need these: how files are read depends on their format.
    """
    found = fields(kind)  # type: ignore[arg-type]  # every concrete node is a dataclass
    return {field.name: field for field in sorted(found, key=lambda field: field.type not in _FIRST)}


_FIRST = ("str", "TableFormat")


def is_default(field: Field[Any], value: Any) -> bool:
    """Return True if a field has its default, and need not be written."""
    return field.default is not MISSING and (value is field.default or value == field.default)
