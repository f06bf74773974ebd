"""Nodes to JSON, one object a node, those below before those above; and JSON to nodes.

Nodes are made of the classes, data files and functions that a pipeline file names. The types of fields have a
way to be written, and one to be read: `NodeWriter` and `NodeReader` are each other's inverse, type by type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from seekable._typing import Int64s
from seekable.dataset.pipeline.data_files import files_as_json, found_files, saved_entries
from seekable.dataset.pipeline.fields import (
    Names,
    checked,
    described,
    fields_of,
    int_rows,
    kept_rows,
    pair_type,
    same_function,
    stand_in,
    value_as_json,
    value_from_json,
)
from seekable.errors import CorruptState, InvalidArgument, SeekableError, WrongType
from seekable.formats.table import NAMES, card_named, format_named
from seekable.index.fileset import FileSet
from seekable.index.finder import TableIndexer
from seekable.index.opening import Indexing
from seekable.nodes.graph import check_depth
from seekable.nodes.key import Keys, entry_key
from seekable.nodes.key_lookup import open_keys
from seekable.nodes.kinds import KINDS, node_class
from seekable.nodes.node import LeafNode, Node
from seekable.nodes.saved_rows import KeptRows
from seekable.nodes.sequence_source import SequenceSource, SupportsItems
from seekable.parallel.map_ranges import execution_options
from seekable.storage.mapped import MOST_OPEN_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.dataset.pipeline.data_files import Roots
    from seekable.dataset.pipeline.fields import Given, RowFiles
    from seekable.parallel.progress import ProgressHook
    from seekable.storage.listing import FoundFiles

__all__ = ["NodeReader", "NodeWriter", "Resources"]

_MOST_NODES = 100_000
"""The most nodes of a file: a mixture of ten thousand sources has some of each."""


class NodeWriter:
    """Writes the graph of one dataset.

    Example:
        >>> import seekable as sk
        >>> from seekable.dataset.pipeline.fields import RowFiles
        >>> writer = NodeWriter("/data", RowFiles("/data/pipeline.json"))
        >>> writer.add_graph(sk.from_sequence("abc").map(str.upper).shuffle(seed=7)._node)
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
    parts = node.parts if isinstance(node, LeafNode) else ()
    return [*node.children, *(part for part in parts if part is not node)]


def _label(value: Any, where: str) -> Any:
    """Return the name of a part as JSON; it decides nothing, so any text will do for what JSON lacks."""
    try:
        return value_as_json(value, where)
    except InvalidArgument:
        return repr(value)


@dataclass(frozen=True, slots=True)
class Resources:
    """All that a pipeline file needs besides itself."""

    roots: Roots
    functions: Given
    sequences: Given
    described: Mapping[str, Mapping[str, Any]]
    """The functions of the file as they were described, by their names there."""

    sequence_types: Mapping[str, Mapping[str, Any]]
    """The type and the length of each sequence of the file, by its name there."""

    progress: ProgressHook | None

    order_only: bool
    """True if no record will be read: functions that were not given do no harm, and keys are left out."""

    pipes: str
    """``"allow"`` runs the commands in Kaldi's scripts."""

    allow: tuple[str, ...]
    """The folders and files that lists may name besides what lies below them."""


class NodeReader:
    """Makes the nodes of one pipeline file."""

    def __init__(self, resources: Resources) -> None:
        """Begin with no nodes; ``resources`` gives what a file lacks."""
        self._resources = resources
        self.nodes: list[Node] = []
        """The nodes that were made so far."""
        self.saved: dict[int, dict[str, Any]] = {}
        """What the description of each source had when it was saved, by the index of the node."""
        self._ways: dict[Any, Callable[[Any, str], Any]] = {
            Any: value_from_json,
            Callable: self.function,
            FileSet: self._files,
            Int64s: lambda value, where: int_rows(value, self._resources.roots.beside, where),
            KeptRows: self.rows,
            Node: self._node,
            SupportsItems: self._sequence,
            TableIndexer: lambda value, where: format_named(_format(value, where)).finder,
            tuple[Node, ...]: self._nodes,
        }
        self.arguments: dict[str, Any] = {}
        """The arguments of the node that is being made."""

    def read(self, documents: Any) -> list[Node]:
        """Return all nodes, the dataset last.

        Args:
            documents: what `NodeWriter.nodes` was.

        Raises:
            CorruptState: the documents are no such list.
            DataNotFound: a data file or a file of rows is not found.
            InvalidArgument: a function is another one than that of the file.
            SeekableError: data cannot be opened, as in ``open``.
        """
        documents = checked(documents, list[dict[str, Any]], "nodes")
        if not documents:
            raise CorruptState("nodes: expected at least one (got none)")
        if len(documents) > _MOST_NODES:
            raise CorruptState(f"nodes: expected at most {_MOST_NODES:,} (got {len(documents):,})")
        for number, document in enumerate(documents):
            self.nodes.append(self._read_node(number, document))
            check_depth(self.nodes[-1])
        return self.nodes

    def _read_node(self, number: int, document: Mapping[str, Any]) -> Node:
        where = f"nodes[{number}]"
        kind = checked(document.get("kind"), str, f"{where}.kind")
        try:
            kind_class = node_class(kind)
        except CorruptState as error:
            message = f"{where}.kind: {error}"
            raise CorruptState(message) from None
        if document.get("node", number) != number:
            message = f"{where}.node: expected {number}, the number of the node (got {document['node']!r})"
            raise CorruptState(message)
        where = f"{where} ({kind})"
        known = fields_of(kind_class)
        if unknown := document.keys() - known.keys() - {"node", "kind"}:
            message = f"{where}: there is no argument {min(unknown)!r}; there are {', '.join(known)}"
            raise CorruptState(message)
        if lacking := [name for name, field in known.items() if field.required and name not in document]:
            message = f"{where}: these arguments make no node: there is no {lacking[0]!r}"
            raise CorruptState(message)
        self.arguments = {}
        for name, field in known.items():
            if name in document and field.type is not Keys:
                value, here = document[name], f"{where}.{name}"
                is_none = value is None and field.optional
                self.arguments[name] = None if is_none else self._made(value, field.type, here)
        node = _built(kind_class, self.arguments, where)
        keys = document.get("keys")
        if keys is None or self._resources.order_only:
            return node
        return self._with_keys(node, keys, f"{where}.keys")

    def _made(self, value: Any, kind: Any, where: str) -> Any:
        """Return the value of a type that `NodeWriter` wrote."""
        if kind in self._ways:
            return self._ways[kind](value, where)
        if hasattr(kind, "from_json"):
            return kind.from_json(value, self, where)
        if (held := pair_type(kind)) is not None:
            pairs = checked(value, list[tuple[str, Any]], where)
            return tuple((name, self._made(said, held, f"{where}[{name!r}]")) for name, said in pairs)
        return checked(value, kind, where)

    @property
    def pipes(self) -> str:
        """``"allow"`` if commands in scripts may be run."""
        return self._resources.pipes

    @property
    def allow(self) -> tuple[str, ...]:
        """The folders and files that lists may name besides what lies below them."""
        return self._resources.allow

    def format(self, where: str) -> str:
        """Return the name of the format of the node.

        Raises:
            CorruptState: there is no such format.
        """
        form = self.arguments.get("form")
        return form.name if form is not None else _format(self.arguments.get("format"), where)

    def checked(self, value: Any, kind: Any, where: str) -> Any:
        """Return a value as a type; see `seekable.dataset.pipeline.fields.checked`."""
        return checked(value, kind, where)

    def function(self, value: Any, where: str) -> Callable[..., Any]:
        """Return the function of the user that stands for a name of the file.

        Raises:
            CorruptState: the file has no such name.
            InvalidArgument, WrongType: the function is another one than that of the file.
        """
        name = checked(checked(value, dict[str, Any], where).get("function"), str, f"{where}.function")
        if name not in self._resources.described:
            message = f"{where}: expected {{'function': NAME}} with a name of 'functions' (got {value!r:.80})"
            raise CorruptState(message)
        known = self._resources.described
        if self._resources.order_only:
            return stand_in(known[name])
        return same_function(name, known[name], self._resources.functions.get(name, list(known)))

    def named(self, value: Any, where: str) -> Any:
        """Return a name as it is, or the function of the user that stands for one of the file."""
        return self.function(value, where) if isinstance(value, dict) else checked(value, str, where)

    def rows(self, value: Any, where: str) -> KeptRows:
        """Return rows of a file beside the pipeline file.

        Raises:
            DataNotFound, CorruptState: as `kept_rows`.
        """
        return kept_rows(value, self._resources.roots.beside, where)

    def value(self, value: Any, where: str) -> Any:
        """Return the value of the user that `value_as_json` wrote."""
        return value_from_json(value, where)

    def beside(self, value: Any, name: str, where: str) -> list[FileSet]:
        """Return further files of the node, each by itself; see `seekable.nodes.saving.Loading`."""
        self.saved[len(self.nodes)][name] = saved_entries(value, where)
        found = found_files(value, self._resources.roots, where)
        return self._opened(found, where).apart() if found else []

    def _node(self, value: Any, where: str) -> Node:
        number: int = checked(value, int, where)
        if not 0 <= number < len(self.nodes):
            message = f"{where}: expected the number of an earlier node (got {number})"
            raise CorruptState(message)
        return self.nodes[number]

    def _nodes(self, value: Any, where: str) -> tuple[Node, ...]:
        return tuple(self._node(number, where) for number in checked(value, list[int], where))

    def _sequence(self, value: Any, where: str) -> Any:
        name = checked(value, str, where)
        types = self._resources.sequence_types
        if name not in types:
            message = f"{where}: expected a name of 'sequences' (got {value!r:.80})"
            raise CorruptState(message)
        sequence = self._resources.sequences.get(name, list(types))
        self.saved[len(self.nodes)] = {key: types[name].get(key) for key in ("type", "length")}
        if not hasattr(sequence, "__len__") or not hasattr(sequence, "__getitem__"):
            message = f"sequences[{name!r}] must have len() and items by number (got {sequence!r:.80})"
            raise WrongType(message)
        return sequence

    def _files(self, value: Any, where: str) -> FileSet:
        said = checked(value, dict[str, Any], where)
        most = checked(said.get("max_open_files"), int, f"{where}.max_open_files")
        if most < 1:
            message = f"{where}.max_open_files: expected at least 1 (got {most})"
            raise CorruptState(message)
        here = f"{where}.folders"
        self.saved[len(self.nodes)] = {"files": saved_entries(said.get("folders"), here)}
        return self._opened(found_files(said.get("folders"), self._resources.roots, here), where, most)

    def _opened(self, found: Sequence[FoundFiles], where: str, most: int = MOST_OPEN_FILES) -> FileSet:
        roots, progress = self._resources.roots, self._resources.progress
        indexing = Indexing(roots.index_dir, None, None, progress, most_open=most)
        return indexing.files(found, format_named(self.format(where)).finder)

    def _with_keys(self, node: Any, value: Any, where: str) -> Node:
        of = entry_key if value == {"of": "entry"} else self.named(value, where)
        resources = self._resources
        keys = open_keys(
            node,
            of,
            index_dir=resources.roots.index_dir,
            using=execution_options(None, None, at_once=False),
            progress=resources.progress,
        )
        with_keys: Node = replace(node, keys=keys)
        return with_keys


def _format(value: Any, where: str) -> str:
    try:
        card_named(str(value))
    except InvalidArgument:
        message = (
            f"{where}: expected one of the formats {', '.join(map(repr, NAMES))} (got {value!r}); one of "
            f"another package is read where that package is installed"
        )
        raise CorruptState(message) from None
    return str(value)


def _built(make: Callable[..., Node], given: Mapping[str, Any], where: str) -> Node:
    try:
        return make(**given)
    except SeekableError as error:
        message = f"{where}: {error}"
        raise CorruptState(message) from error
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        message = f"{where}: these arguments make no node: {error}"
        raise CorruptState(message) from error
