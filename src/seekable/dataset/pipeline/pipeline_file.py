"""The pipeline file: a JSON document that ``ds.save`` writes and ``sk.load_pipeline`` reads.

    {"seekable_pipeline": 1, "fingerprint": ..., "records": ..., "pipeline": ...,
     "functions": {...}, "sequences": {...}, "nodes": [...]}

``nodes`` decides all. ``records`` and ``pipeline`` are for people.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import msgspec

from seekable.dataset.pipeline import PIPELINE_KEY
from seekable.dataset.pipeline.data_files import Roots, mounted
from seekable.dataset.pipeline.fields import Given, RowFiles, checked
from seekable.dataset.pipeline.node_json import NodeReader, NodeWriter, Resources
from seekable.errors import (
    CorruptState,
    DataNotFound,
    InvalidArgument,
    MissingDependency,
    StateMismatch,
    UnsupportedFormat,
    WrongType,
)
from seekable.state.descriptions import difference
from seekable.storage.access import Storage, checked_reach
from seekable.storage.addresses import is_address, shown
from seekable.storage.files import file_identity
from seekable.storage.paths import open_file, output_of, output_path
from seekable.storage.trust import checked_allow
from seekable.writing.pipeline_code import paths_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.nodes.node import Node
    from seekable.parallel.progress import ProgressHook

__all__ = ["is_pipeline_file", "needed_names", "read_pipeline", "write_pipeline"]

_VERSION = 1

_HEAD_BYTES = 256
_HEAD = re.compile(rb'\s*\{\s*"' + PIPELINE_KEY.encode() + rb'"')

_WIDTH = 110
_MOST = 240
"""The most characters of a line that has a whole object: a data file, say."""


class _Function(msgspec.Struct):
    """The description of a function in a pipeline file."""

    name: str
    arguments: tuple[list[Any], dict[str, Any]] | None = None


def is_pipeline_file(path: str) -> bool:
    """Return True if a path is that of a file that ``ds.save`` wrote, by its first key.

    Of addresses only those that end with ``.json`` are looked at.
    """
    if "://" in path and not path.endswith(".json"):
        return False
    try:
        with open_file(path) as file:
            return _HEAD.match(file.read(_HEAD_BYTES)) is not None
    except (OSError, ValueError):
        return False


def write_pipeline(node: Node, path: object, storage: Storage | None = None) -> None:
    """Write the pipeline file of a dataset, and the rows that it needs beside it; see ``Dataset.save``."""
    if not isinstance(path, str | os.PathLike):
        message = f"save() takes the path of a file (got {path!r} of type {type(path).__name__})"
        raise WrongType(message)
    whole = output_path(path, storage)
    _check_place(whole, node)
    rows = RowFiles(whole)
    writer = NodeWriter(os.path.dirname(whole), rows)
    writer.add_graph(node)
    document = {
        PIPELINE_KEY: _VERSION,
        "fingerprint": node.fingerprint,
        "records": node.size,
        "pipeline": node.expression(saved=True),
        "functions": writer.functions,
        "sequences": writer.sequences,
        "nodes": writer.nodes,
    }
    output_of(whole).make_folder(os.path.dirname(whole))
    rows.write()
    output_of(whole).write(whole, indented(document))


def _check_place(path: str, node: Node) -> None:
    """Check that a pipeline file can be written there.

    Raises:
        InvalidArgument: the path is a folder, or a file that the pipeline reads.
    """
    if os.path.isdir(path):
        raise InvalidArgument(f"{path!r} is a folder: save() takes the path of a file")
    there = path if is_address(path) else file_identity(path)
    if there is not None and any(data == there or file_identity(data) == there for data in paths_of(node)):
        message = f"{path!r} is a data file of the pipeline, which save() would replace: name another file"
        raise InvalidArgument(message)


def read_pipeline(  # noqa: PLR0913 - what `sk.load_pipeline` is given, and one more
    path: object,
    *,
    functions: object,
    sequences: object,
    root: object,
    allow_changed: bool,
    index_dir: str | os.PathLike[str] | None,
    progress: ProgressHook | None,
    order_only: bool = False,
    pipes: str = "refuse",
    storage: Storage | None = None,
    allow: object = None,
) -> Node:
    """Return the node of a dataset that was saved; see ``seekable.load_pipeline``.

    With ``order_only`` no function needs to be given, and no record can be read through one. ``pipes`` is the
    argument of ``sk.open``. ``storage`` says how addresses are reached, ``allow`` which of them may be named.
    """
    reach, allowed = checked_reach(storage), checked_allow(allow)
    place, document = _document(path, reach)
    given = Given("functions", functions), Given("sequences", sequences)
    try:
        checked(document.get("functions"), dict[str, _Function], "functions")
        described: dict[str, Any] = document["functions"]
        sequence_types = checked(document.get("sequences"), dict[str, dict[str, Any]], "sequences")
        fingerprint = checked(document.get("fingerprint"), str, "fingerprint")
        _check_given(document, given, ([] if order_only else list(described), list(sequence_types)))
        roots = Roots.of(os.path.dirname(place), root, index_dir, reach, allowed)
        resources = (roots, *given, described, sequence_types, progress, order_only, pipes, allowed)
        reader = NodeReader(Resources(*resources))
        nodes = _read(reader, document.get("nodes"))
        _check_same(nodes, reader.saved, fingerprint, allow_changed=allow_changed)
    except (CorruptState, DataNotFound, InvalidArgument, MissingDependency, StateMismatch) as error:
        raise type(error)(f"{shown(place)!r}: {error}") from error
    return nodes[-1]


def needed_names(path: str) -> tuple[list[str], list[str]]:
    """Return the names of the functions and of the sequences that a pipeline file needs.

    Raises:
        DataNotFound, UnsupportedFormat, CorruptState: as ``seekable.load_pipeline``.
    """
    _, document = _document(path, Storage())
    functions, sequences = (
        checked(document.get(key), dict[str, Any], key) for key in ("functions", "sequences")
    )
    return list(functions), list(sequences)


def _document(path: object, reach: Storage) -> tuple[str, dict[str, Any]]:
    if not isinstance(path, str | os.PathLike):
        message = f"load_pipeline() takes the path of a file (got {path!r} of type {type(path).__name__})"
        raise WrongType(message)
    place = output_path(path)
    place = mounted(place, reach) if is_address(place) else place
    named = shown(place)
    try:
        text = output_of(place).read(place)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        message = f"there is no file {named!r}: ds.save(path) writes one"
        raise DataNotFound(message) from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        message = (
            f"{named!r} has {len(text):,} bytes that are no JSON document ({error}): it was cut or changed; "
            f"save the pipeline again"
        )
        raise CorruptState(message) from None
    if not isinstance(document, dict) or PIPELINE_KEY not in document:
        message = f"{named!r} is no pipeline file: it has no key {PIPELINE_KEY!r}. sk.open() opens data"
        raise UnsupportedFormat(message)
    version = document[PIPELINE_KEY]
    if version != _VERSION or isinstance(version, bool):
        message = (
            f"{named!r}: {PIPELINE_KEY} is {version!r}, and this version of seekable reads {_VERSION}: "
            f"use the version that wrote the file, or a newer one"
        )
        raise UnsupportedFormat(message)
    return place, document


def _check_given(
    document: Mapping[str, Any], given: Sequence[Given], needed: Sequence[Sequence[str]]
) -> None:
    """Raise one error that lists all names for which the caller gave nothing.

    Raises:
        InvalidArgument: a name is missing, or a shortened name stands for several names.
    """
    missing = [(each.argument, each.missing(names)) for each, names in zip(given, needed, strict=True)]
    if not any(names for _, names in missing):
        return
    calls = []
    for argument, names in missing:
        if names:
            calls.append(f"{argument}={{{', '.join(f'{name!r}: ...' for name in names)}}}")
    message = (
        f"the pipeline {document.get('pipeline', '')!s:.200} needs what a file cannot hold: "
        f"load_pipeline(..., {', '.join(calls)})"
    )
    raise InvalidArgument(message)


def _read(reader: NodeReader, documents: Any) -> list[Node]:
    """Return the nodes of a file.

    Raises:
        StateMismatch: data has changed so that a node cannot be over it.
        CorruptState: the file was changed.
    """
    try:
        return reader.read(documents)
    except CorruptState as error:
        changes = _changes(reader.nodes, reader.saved)
        if not changes:
            raise
        raise StateMismatch(_beyond_repair(error, changes)) from error


def _changes(nodes: Sequence[Node], saved: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
    """Return the differences between sources and what was saved of them, by the index of the node."""
    now = {number: nodes[number].describe(None) for number in saved if number < len(nodes)}
    texts = {number: difference({**now[number], **saved[number]}, now[number]) for number in now}
    return {number: text for number, text in texts.items() if text}


def _beyond_repair(what: object, changes: Mapping[int, str]) -> str:
    why = "\n".join(changes.values())
    return (
        f"{what}: it was made of the records or the lengths of data that has changed, so "
        f"allow_changed=True is not enough: build the pipeline again\n{why}"
    )


def _check_same(
    nodes: Sequence[Node], saved: Mapping[int, Mapping[str, Any]], fingerprint: str, *, allow_changed: bool
) -> None:
    """Compare a loaded pipeline with the saved one.

    Args:
        nodes: the nodes, the dataset last.
        saved: what the description of each source had when it was saved, by the index of the node.
        fingerprint: that of the saved pipeline.
        allow_changed: True if data may have changed.

    Raises:
        StateMismatch: it has another fingerprint, and that is not allowed or cannot be.
        CorruptState: it has arguments that cannot be described.
    """
    try:
        found = nodes[-1].fingerprint
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        message = f"nodes: these arguments make no pipeline: {error}"
        raise CorruptState(message) from error
    if found == fingerprint:
        return
    changes = _changes(nodes, saved)
    why = "\n".join(changes.values()) or "the data is the same, so the file itself was edited"
    if not allow_changed:
        message = (
            f"it is of {fingerprint}, and what was loaded is {found}:\n{why}\n"
            f"Put back what was there, or take it as it is now with allow_changed=True"
        )
        raise StateMismatch(message)
    changed = {id(nodes[number]) for number in changes}
    for number, node in enumerate(nodes):
        if not changed.isdisjoint(map(id, node.children)):
            changed.add(id(node))
            if node.counted:
                raise StateMismatch(_beyond_repair(f"nodes[{number}] ({node.kind})", changes))


def indented(document: Any) -> bytes:
    r"""Return a document as JSON text with a line end; the same document gives the same bytes.

    Example:
        >>> indented({"a": [1, 2]})
        b'{"a": [1, 2]}\n'
    """
    text = f"{_lines(document, 0)}\n"
    try:
        return text.encode()
    except UnicodeEncodeError:  # A file name that is no UTF-8: it is written in escapes.
        return f"{_lines(document, 0, ascii_only=True)}\n".encode()


def _lines(value: Any, indent: int, *, ascii_only: bool = False) -> str:
    line = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)
    if not isinstance(value, dict | list) or not value or len(line) + indent <= _WIDTH:
        return line
    if isinstance(value, dict) and len(line) <= _MOST and not any(map(_is_nested, value.values())):
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        opening, closing = "{", "}"
        parts = [
            f"{json.dumps(key, ensure_ascii=ascii_only)}: {_lines(held, indent + 2, ascii_only=ascii_only)}"
            for key, held in value.items()
        ]
    else:
        opening, closing = "[", "]"
        parts = [_lines(held, indent + 2, ascii_only=ascii_only) for held in value]
    joined = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{joined}\n{' ' * indent}{closing}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list)
