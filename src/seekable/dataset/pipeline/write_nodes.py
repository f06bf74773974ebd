"""Nodes to JSON: one object a node, those below before those above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seekable.dataset.pipeline.fields import PLAIN, arrow_type_as_json, value_as_json
from seekable.dataset.pipeline.functions import Names, described
from seekable.dataset.pipeline.kinds import FUNCTIONS, NODE_KINDS, fields_of, is_default
from seekable.dataset.pipeline.sources import files_as_json
from seekable.errors import InvalidArgument
from seekable.nodes.contract import Leaf
from seekable.nodes.files.payload import kind_of_payload
from seekable.nodes.keys.key import entry_key
from seekable.nodes.sources.sequence_source import SequenceSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seekable.dataset.pipeline.row_files import RowFiles
    from seekable.formats.tar.fields.decode_argument import FieldDecoders
    from seekable.index.fileset import FileSet
    from seekable.nodes.columns.cast import Target
    from seekable.nodes.contract import Node
    from seekable.nodes.keys.key import Keys
    from seekable.packing.lengths.row_lengths import RowLengths

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
        self._ways: dict[str, Callable[[Any, str], Any]] = {
            **dict.fromkeys(PLAIN, lambda value, _: msgspec.to_builtins(value)),
            **dict.fromkeys(FUNCTIONS, self._function_or_none),
            "Any": _label,
            "Decoder": lambda decoder, where: decoder.as_json(self, where),
            "FieldDecoders": self._field_decoders,
            "FileSet": self._files,
            "Int64s": lambda rows, _: self._rows.add(rows),
            "Keys | None": self._keys,
            "KeptRows": lambda rows, _: self._rows.add(rows),
            "Node": lambda node, _: self._numbers[id(node)],
            "RowLengths | None": self._lengths,
            "TableFormat": lambda form, _: form.name,
            "frozenset[str] | None": lambda names, _: sorted(names),
            "tuple[Node, ...]": lambda nodes, _: [self._numbers[id(node)] for node in nodes],
            "tuple[tuple[str, Any], ...]": _values,
            "tuple[tuple[str, Target], ...]": self._targets,
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
        if NODE_KINDS.get(node.kind) is not type(node):
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
            elif not is_default(field, value):
                document[name] = self._ways[str(field.type)](value, f"{node.kind}({name}=)")
        return document

    def _function_or_none(self, fn: Callable[..., Any] | None, where: str) -> dict[str, str] | None:
        return None if fn is None else self._function(fn, where)

    def _function(self, fn: Callable[..., Any], _: str) -> dict[str, str]:
        description = described(fn)
        name = self._function_names.of(fn, description["name"])
        self.functions[name] = description
        return {"function": name}

    def named_or_function(self, value: Any, where: str) -> Any:
        """Return a name as it is, and the mention of a function."""
        return value if isinstance(value, str) else self._function(value, where)

    def _keys(self, keys: Keys, where: str) -> Any:
        return {"of": "entry"} if keys.of is entry_key else self.named_or_function(keys.of, where)

    def _field_decoders(self, decoders: FieldDecoders, where: str) -> Any:
        if decoders.by_field:
            return {"by_field": [[field, self._named(asked, where)] for field, asked in decoders.by_field]}
        return {"every": self._named(decoders.every, where)}

    def _named(self, asked: Any, where: str) -> Any:
        if kind := kind_of_payload(asked):
            return {kind: asked.as_json()}
        return None if asked is None else self.named_or_function(asked, where)

    def folders(self, files: Iterable[FileSet]) -> list[Any]:
        """Return the mention of files, by the folders that they lie in."""
        return [folder for some in files for folder in files_as_json(some, self._beside)]

    def _files(self, files: FileSet, _: str) -> dict[str, Any]:
        return {"max_open_files": files.most_open, "folders": files_as_json(files, self._beside)}

    def _sequence(self, node: SequenceSource) -> str:
        wanted = node.type_name if node.version is None else str(node.version)
        name = self._sequence_names.of(node.sequence, wanted)
        self.sequences[name] = {"type": node.type_name, "length": node.size}
        return name

    def _lengths(self, lengths: RowLengths | None, _: str) -> dict[str, Any] | None:
        return None if lengths is None else {"rows": self._rows.add(lengths.rows), "dtypes": lengths.dtypes}

    def _targets(self, targets: tuple[tuple[str, Target], ...], where: str) -> list[list[Any]]:
        return [[name, self._target(target, where)] for name, target in targets]

    def _target(self, target: Target, where: str) -> dict[str, Any]:
        if target.way == "function":
            version = target.described.get("version")
            return {**self._function(target.to, where), **({} if version is None else {"version": version})}
        if target.way == "arrow":
            return arrow_type_as_json(target.to)
        return {target.way: target.to.__name__ if target.way == "python" else target.to.str}


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


def _values(pairs: tuple[tuple[str, Any], ...], where: str) -> list[list[Any]]:
    return [[name, value_as_json(value, f"{where}, the column {name!r},")] for name, value in pairs]
