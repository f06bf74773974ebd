"""JSON to nodes: from the classes, data files and functions that a pipeline file names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._lazy import lazy
from seekable.dataset.pipeline.fields import PLAIN, arrow_type_from_json, checked, value_from_json
from seekable.dataset.pipeline.functions import same_function, stand_in
from seekable.dataset.pipeline.kinds import FUNCTIONS, NODE_KINDS, fields_of
from seekable.dataset.pipeline.row_files import int_rows, kept_rows
from seekable.dataset.pipeline.sources import found_files, saved_entries
from seekable.errors import CorruptState, InvalidArgument, SeekableError, WrongType
from seekable.formats.registry import FORMATS, format_named
from seekable.formats.source_options import SourceOptions
from seekable.index.opening import open_files
from seekable.index.table_indexer import is_table_indexer
from seekable.nodes.columns.cast import target_of
from seekable.nodes.files.payload import payload_decoder, payload_kinds
from seekable.nodes.keys import key_index
from seekable.nodes.keys.key import entry_key
from seekable.packing.lengths.row_lengths import RowLengths
from seekable.parallel.map_ranges import execution_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.dataset.pipeline.functions import Given
    from seekable.dataset.pipeline.sources import Roots
    from seekable.formats.kaldi import utterance_source
    from seekable.formats.registry import Format
    from seekable.formats.source_options import Pipes
    from seekable.formats.tar.fields import decode_argument
    from seekable.formats.tar.fields.decode_argument import FieldDecoders
    from seekable.index.fileset import FileSet
    from seekable.nodes.columns.cast import Target
    from seekable.nodes.contract import Node
    from seekable.nodes.files.decoder import Decoder
    from seekable.parallel.progress import ProgressHook
else:
    decode_argument = lazy("seekable.formats.tar.fields.decode_argument")
    utterance_source = lazy("seekable.formats.kaldi.utterance_source")

__all__ = ["NodeReader", "Resources"]


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

    pipes: Pipes
    """``"allow"`` runs the commands in Kaldi's scripts."""


_MOST_NODES = 100_000
"""The most nodes of a file: a mixture of ten thousand sources has some of each."""


class NodeReader:
    """Makes the nodes of one pipeline file."""

    def __init__(self, resources: Resources) -> None:
        """Begin with no nodes; ``resources`` gives what a file lacks."""
        self._resources = resources
        self.nodes: list[Node] = []
        """The nodes that were made so far."""
        self.saved: dict[int, dict[str, Any]] = {}
        """What the description of each source had when it was saved, by the number of the node."""
        self._ways: dict[str, Callable[[Any, str], Any]] = {
            **{name: _plain(kind) for name, kind in PLAIN.items()},
            **dict.fromkeys(FUNCTIONS, self._function_or_none),
            "Any": value_from_json,
            "FieldDecoders": self._field_decoders,
            "Int64s": lambda value, where: int_rows(value, resources.roots.beside, where),
            "KeptRows": lambda value, where: kept_rows(value, resources.roots.beside, where),
            "Node": self._node,
            "RowLengths | None": self._lengths,
            "TableFormat": lambda value, where: format_named(_format(value, where)).scanner,
            "frozenset[str] | None": lambda value, where: checked(value, frozenset[str], where),
            "tuple[Node, ...]": self._nodes,
            "tuple[tuple[str, Any], ...]": _values,
            "tuple[tuple[str, Target], ...]": self._targets,
        }

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
            try:
                self.nodes.append(self._read_node(number, document))
            except RecursionError:
                message = f"nodes[{number}]: more nodes stand one above the other than Python can follow"
                raise CorruptState(message) from None
        return self.nodes

    def _read_node(self, number: int, document: Mapping[str, Any]) -> Node:
        where = f"nodes[{number}]"
        kind = checked(document.get("kind"), str, f"{where}.kind")
        if kind not in NODE_KINDS:
            message = f"{where}.kind: there is no node of the kind {kind!r} in this version of seekable"
            raise CorruptState(message)
        if document.get("node", number) != number:
            message = f"{where}.node: expected {number}, the number of the node (got {document['node']!r})"
            raise CorruptState(message)
        where = f"{where} ({kind})"
        node_class, known = NODE_KINDS[kind], fields_of(NODE_KINDS[kind])
        if unknown := document.keys() - known.keys() - {"node", "kind"}:
            message = f"{where}: there is no argument {min(unknown)!r}; there are {', '.join(known)}"
            raise CorruptState(message)
        given: dict[str, Any] = {}
        for name, field in known.items():
            if name not in document or str(field.type) == "Keys | None":
                continue
            here, value = f"{where}.{name}", document[name]
            if str(field.type) == "FileSet":
                given[name] = self._files(number, value, given, here)
            elif str(field.type) == "SupportsItems":
                given[name] = self._sequence(number, value, here)
            elif str(field.type) == "Decoder":
                given[name] = self._decoder(value, given, here)
            else:
                given[name] = self._ways[str(field.type)](value, here)
        node = _built(node_class, given, where)
        keys = document.get("keys")
        if keys is None or self._resources.order_only:
            return node
        return self._with_keys(node, keys, f"{where}.keys")

    def _node(self, value: Any, where: str) -> Node:
        number: int = checked(value, int, where)
        if not 0 <= number < len(self.nodes):
            message = f"{where}: expected the number of an earlier node (got {number})"
            raise CorruptState(message)
        return self.nodes[number]

    def _nodes(self, value: Any, where: str) -> tuple[Node, ...]:
        return tuple(self._node(number, where) for number in checked(value, list[int], where))

    def _function_or_none(self, value: Any, where: str) -> Callable[..., Any] | None:
        return None if value is None else self._function(value, where)

    def _function(self, value: Any, where: str) -> Callable[..., Any]:
        name = checked(checked(value, dict[str, Any], where).get("function"), str, f"{where}.function")
        if name not in self._resources.described:
            message = f"{where}: expected {{'function': NAME}} with a name of 'functions' (got {value!r:.80})"
            raise CorruptState(message)
        described = self._resources.described
        if self._resources.order_only:
            return stand_in(described[name])
        return same_function(name, described[name], self._resources.functions.get(name, list(described)))

    def _named_or_function(self, value: Any, where: str) -> Any:
        return self._function(value, where) if isinstance(value, dict) else checked(value, str, where)

    def _sequence(self, number: int, value: Any, where: str) -> Any:
        name = checked(value, str, where)
        types = self._resources.sequence_types
        if name not in types:
            message = f"{where}: expected a name of 'sequences' (got {value!r:.80})"
            raise CorruptState(message)
        sequence = self._resources.sequences.get(name, list(types))
        self.saved[number] = {key: types[name].get(key) for key in ("type", "length")}
        if not hasattr(sequence, "__len__") or not hasattr(sequence, "__getitem__"):
            message = f"sequences[{name!r}] must have len() and items by number (got {sequence!r:.80})"
            raise WrongType(message)
        return sequence

    def _files(self, number: int, value: Any, given: Mapping[str, Any], where: str) -> FileSet:
        said = checked(value, dict[str, Any], where)
        most = checked(said.get("max_open_files"), int, f"{where}.max_open_files")
        if most < 1:
            message = f"{where}.max_open_files: expected at least 1 (got {most})"
            raise CorruptState(message)
        name = given["form"].name if "form" in given else _format(given.get("format"), where)
        resources = self._resources
        self.saved[number] = {"files": saved_entries(said.get("folders"), f"{where}.folders")}
        found = found_files(said.get("folders"), resources.roots, f"{where}.folders")
        scanner, roots = format_named(name).scanner, resources.roots
        files = open_files(found, scanner, index_dir=roots.index_dir, progress=resources.progress)
        return files.limited(most, keeps_maps=not is_table_indexer(scanner))

    def _decoder(self, value: Any, given: Mapping[str, Any], where: str) -> Decoder:
        said = checked(value, dict[str, Any], where)
        form = format_named(_format(given.get("format"), where))
        if "tables" in said:
            return self._utterances(form, said, given, where)
        if form.holder_finder:
            return self._entries(form, said, given["files"], where)
        options = SourceOptions(
            shown="",
            decode=self._named_or_function(said.get("decode"), f"{where}.decode"),
            column=checked(said.get("column"), str | None, f"{where}.column"),
            field=checked(said.get("field"), str | None, f"{where}.field"),
        )
        try:
            made: Decoder = form.source(options)(given["files"]).decoder
        except InvalidArgument as error:
            message = f"{where}: {error}"
            raise CorruptState(message) from None
        return made

    def _entries(self, form: Format, said: Mapping[str, Any], files: FileSet, where: str) -> Decoder:
        """Return the decoder of entries of Kaldi's tables."""
        holder = checked(said.get("holder"), str, f"{where}.holder")
        permissive = checked(said.get("permissive", False), bool, f"{where}.permissive")
        try:
            resolved = form.with_holder(holder)
        except InvalidArgument as error:
            message = f"{where}.holder: {error}"
            raise CorruptState(message) from None
        options = SourceOptions(shown="", permissive=permissive, pipes=self._resources.pipes)
        made: Decoder = resolved.source(options)(files).decoder
        return made

    def _utterances(
        self, form: Format, said: Mapping[str, Any], given: Mapping[str, Any], where: str
    ) -> Decoder:
        """Return the decoder of the utterances of a data directory of Kaldi."""
        columns = checked(said.get("columns"), tuple[str, ...], f"{where}.columns")
        here, resources = f"{where}.tables", self._resources
        self.saved[len(self.nodes)]["tables"] = saved_entries(said["tables"], here)
        found = found_files(said["tables"], resources.roots, here)
        main: FileSet = given["files"]
        others: list[FileSet] = []
        if found:
            files = open_files(
                found, form.scanner, index_dir=resources.roots.index_dir, progress=resources.progress
            )
            others = files.apart()
        try:
            return utterance_source.UtteranceDecoder(
                utterance_source.utterances_of(
                    main, others, columns, pipes=resources.pipes, most_open_files=main.most_open
                )
            )
        except InvalidArgument as error:
            message = f"{where}: {error}"
            raise CorruptState(message) from None

    def _field_decoders(self, value: Any, where: str) -> FieldDecoders:
        said = checked(value, dict[str, Any], where)
        by_field = checked(said.get("by_field", []), list[tuple[str, Any]], f"{where}.by_field")
        named = {field: self._named(asked, f"{where}[{field!r}]") for field, asked in by_field}
        try:
            return decode_argument.checked_decode(named or self._named(said.get("every"), f"{where}.every"))
        except InvalidArgument as error:
            message = f"{where}: {error}"
            raise CorruptState(message) from None

    def _named(self, asked: Any, where: str) -> Any:
        kinds = [kind for kind in payload_kinds() if kind in asked] if isinstance(asked, dict) else []
        if kinds:
            said = checked(asked[kinds[0]], dict[str, Any], f"{where}.{kinds[0]}")
            try:
                return payload_decoder(kinds[0], **said)
            except (TypeError, ValueError) as error:
                message = f"{where}.{kinds[0]}: {error}"
                raise CorruptState(message) from None
        return None if asked is None else self._named_or_function(asked, where)

    def _with_keys(self, node: Any, value: Any, where: str) -> Node:
        of = entry_key if value == {"of": "entry"} else self._named_or_function(value, where)
        resources = self._resources
        keys = key_index.open_keys(
            node,
            of,
            index_dir=resources.roots.index_dir,
            using=execution_options(None, None, at_once=False),
            progress=resources.progress,
        )
        with_keys: Node = replace(node, keys=keys)
        return with_keys

    def _lengths(self, value: Any, where: str) -> RowLengths | None:
        if value is None:
            return None
        said = checked(value, dict[str, Any], where)
        rows = kept_rows(said.get("rows"), self._resources.roots.beside, f"{where}.rows")
        dtypes = checked(said.get("dtypes"), tuple[tuple[str | None, str], ...], f"{where}.dtypes")
        return RowLengths(rows, dtypes)

    def _targets(self, value: Any, where: str) -> tuple[tuple[str, Target], ...]:
        pairs = checked(value, list[tuple[str, dict[str, Any]]], where)
        return tuple((name, self._target(said, f"{where}[{name!r}]")) for name, said in pairs)

    def _target(self, said: Mapping[str, Any], where: str) -> Target:
        if "function" in said:
            version = checked(said.get("version"), str | int | None, f"{where}.version")
            return target_of(self._function({"function": said["function"]}, where), version)
        try:
            if "arrow" in said:
                return target_of(arrow_type_from_json(said, where))
            if "numpy" in said:
                return target_of(np.dtype(checked(said["numpy"], str, where)))
            return target_of(checked(said.get("python"), str, where))
        except (TypeError, LookupError) as error:
            message = f"{where}: no type that values are cast to ({error})"
            raise CorruptState(message) from None


def _plain(kind: Any) -> Callable[[Any, str], Any]:
    return lambda value, where: checked(value, kind, where)


def _values(value: Any, where: str) -> tuple[tuple[str, Any], ...]:
    pairs = checked(value, list[tuple[str, Any]], where)
    return tuple((name, value_from_json(said, f"{where}[{name!r}]")) for name, said in pairs)


def _format(value: Any, where: str) -> str:
    if value not in FORMATS and str(value).partition("-")[0] not in FORMATS:
        message = f"{where}: expected one of the formats {', '.join(map(repr, FORMATS))} (got {value!r})"
        raise CorruptState(message)
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
