"""Nodes to JSON: one object a node, those below before those above."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from seekable._typing import Int64s
from seekable.dataset.pipeline.fields import fields_of, pair_type, value_as_json
from seekable.dataset.pipeline.functions import Names, described
from seekable.dataset.pipeline.sources import files_as_json
from seekable.errors import InvalidArgument
from seekable.index.fileset import FileSet
from seekable.index.table_indexer import TableIndexer
from seekable.nodes.contract import Leaf, Node
from seekable.nodes.keys.key import Keys, entry_key
from seekable.nodes.kinds import KINDS, node_class
from seekable.nodes.saved_rows import KeptRows
from seekable.nodes.sources.sequence_source import SequenceSource

if TYPE_CHECKING:
    from seekable.dataset.pipeline.row_files import RowFiles

__all__ = ["NodeWriter"]


class NodeWriter:
    """Writes the graph of one dataset.

    Example:
        >>> import seekable as sk
        >>> from seekable.dataset.pipeline.row_files import RowFiles
        >>> writer = NodeWriter("/data", RowFiles("/data/pipeline.json"))
        >>> writer.add_graph(sk.from_sequence("abc").map(str.upper).shuffle(seed=7).node)
        2
        >>> writer.nodes[2], list(writer.functions)
        ({'node': 2, 'kind': 'shuffle', 'child': 1, 'seed': 7, 'fixed': False}, ['builtins.str.upper'])
    """

    def __init__(self, beside: str, rows: RowFiles) -> None:
        """Begin without a node that is written.

        Args:
            beside: the folder of the pipeline file.
            rows: takes the rows that were chosen by content.
        """
        self.nodes: list[dict[str, Any]] = []
        self.functions: dict[str, dict[str, Any]] = {}
        """The description of each function of the user, by its name in the file."""
        self.sequences: dict[str, dict[str, Any]] = {}
        """The type and length of each sequence of the user, by its name in the file."""
        self._beside = beside
        self._rows = rows
        self._function_names, self._sequence_names = Names(), Names()
        self._numbers: dict[int, int] = {}
        self._ways: dict[Any, Callable[[Any, str], Any]] = {
            Any: _label,
            Callable: lambda fn, _: self.function(fn),
            FileSet: lambda files, _: {"max_open_files": files.most_open, "folders": self.folders(files)},
            Int64s: lambda rows, _: self.rows(rows),
            KeptRows: lambda rows, _: self.rows(rows),
            Keys: lambda keys, _: self._keys(keys),
            Node: lambda node, _: self._numbers[id(node)],
            TableIndexer: lambda form, _: form.name,
            tuple[Node, ...]: lambda nodes, _: [self._numbers[id(node)] for node in nodes],
        }

    def add_graph(self, root: Node) -> int:
        """Write a node and all nodes below it, each once; return its number.

        Raises:
            InvalidArgument: a node or a value cannot be written.
            IndexStale, CorruptState: the file of chosen rows is gone, or has changed.
        """
        pending = [root]
        while pending:
            node = pending[-1]
            below = [each for each in _below(node) if id(each) not in self._numbers]
            if below:
                pending += reversed(below)
                continue
            pending.pop()
            if id(node) not in self._numbers:
                document = self._node(node)
                self._numbers[id(node)] = len(self.nodes)
                self.nodes.append({"node": len(self.nodes), **document})
        return self._numbers[id(root)]

    def _node(self, node: Node) -> dict[str, Any]:
        if node.kind not in KINDS or node_class(node.kind) is not type(node):
            message = (
                f"{node!r} cannot be saved: a node of the kind {node.kind!r} is none that a user makes; save "
                f"the pipeline that it was made of"
            )
            raise InvalidArgument(message)
        document: dict[str, Any] = {"kind": node.kind}
        for name, field in fields_of(type(node)).items():
            value = getattr(node, name)
            if isinstance(node, SequenceSource) and name == "sequence":
                document[name] = self._sequence(node)
            elif not field.is_default(value):
                document[name] = self._written(value, field.type, f"{node.kind}({name}=)")
        return document

    def _written(self, value: Any, kind: Any, where: str) -> Any:
        """Return a value of a type as JSON."""
        if value is None:
            return None
        if kind in self._ways:
            return self._ways[kind](value, where)
        if hasattr(kind, "from_json"):
            return value.as_json(self)
        if (held := pair_type(kind)) is Any:
            return [[name, self.value(each, f"{where}, the column {name!r},")] for name, each in value]
        if held is not None:
            return [[name, each.as_json(self)] for name, each in value]
        return msgspec.to_builtins(value, order="deterministic")

    def _keys(self, keys: Keys) -> Any:
        return {"of": "entry"} if keys.of is entry_key else self.named(keys.of)

    def function(self, fn: Callable[..., Any]) -> dict[str, str]:
        """Return a function of the user as JSON, by the name that it has in the file."""
        description = described(fn)
        name = self._function_names.of(fn, description["name"])
        self.functions[name] = description
        return {"function": name}

    def named(self, asked: Any) -> Any:
        """Return the name of something, or a function of the user, as JSON."""
        return asked if isinstance(asked, str) else self.function(asked)

    def rows(self, rows: KeptRows | Int64s) -> dict[str, Any]:
        """Return rows as JSON; many are written to a file of their own.

        Raises:
            IndexStale, CorruptState: the file of chosen rows is gone, or has changed.
        """
        return self._rows.add(rows)

    def folders(self, files: FileSet) -> list[dict[str, Any]]:
        """Return files as JSON, by folder."""
        return files_as_json(files, self._beside)

    def value(self, value: Any, where: str) -> Any:
        """Return a value of the user as JSON.

        Raises:
            InvalidArgument: a pipeline file has no way to write it.
        """
        return value_as_json(value, where)

    def _sequence(self, node: SequenceSource) -> str:
        wanted = node.type_name if node.version is None else str(node.version)
        name = self._sequence_names.of(node.sequence, wanted)
        self.sequences[name] = {"type": node.type_name, "length": node.size}
        return name


def _below(node: Node) -> list[Node]:
    """Return the nodes that a node holds: its children, or the sources that a source is made of."""
    parts = node.parts if isinstance(node, Leaf) else ()
    return [*node.children, *(part for part in parts if part is not node)]


def _label(value: Any, where: str) -> Any:
    """Return the name of a part as JSON; it decides nothing, so any text will do for what JSON lacks."""
    try:
        return value_as_json(value, where)
    except InvalidArgument:
        return repr(value)
