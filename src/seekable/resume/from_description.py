"""From the description of a dataset back to its order.

A description has all that decides the order of records, but neither the records nor the functions that they
go through. `rebuild` makes of it a dataset in the same order, of which each record is its own file and row.

Rows that were chosen by content are in a description by their digest alone, so the order of a filter, a
selection or a join cannot be rebuilt. `rebuild_loosely` puts a placeholder of the right length in its place:
that is enough to count what was delivered.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument, SeekableError
from seekable.nodes.bases import with_leaves
from seekable.nodes.kinds import node_class
from seekable.nodes.node import LeafNode
from seekable.resume.continued import Continued
from seekable.resume.placeholders import PlaceholderMap, PlaceholderSource
from seekable.state.canonical import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.nodes.files.leaf import FilesLeaf
    from seekable.nodes.node import Node

    Tree = Mapping[str, Any]
    Children = tuple[Node, ...]
    FindFiles = Callable[[Tree], FilesLeaf | None]
    MakeSource = Callable[[Tree, str], Node]

__all__ = ["described_sources", "has_schedule", "node_over", "rebuild", "rebuild_loosely"]


def rebuild(description: Tree, *, find: FindFiles | None = None) -> Node:
    """Return a dataset in the order of a described one, whose records are their own files and rows.

    It has the fingerprint of the description, which is checked. Nothing is read, unless ``find`` reads.

    Args:
        description: what ``describe`` returned, also after a JSON round trip.
        find: called once for each described source of files, in the order of the description. It returns the
            files, so that records have byte offsets too, or None.

    Raises:
        InvalidArgument: the order of a node cannot be rebuilt; the message names the node, and says why.
            That of packed samples can be if ``find`` returns the token files.
        CorruptState: this is not a description of this version of seekable.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence("abcd").map(str.upper).shuffle(seed=3)
        >>> again = rebuild(ds._node.describe(None))
        >>> again.fingerprint == ds.fingerprint, again.record(0).row == ds.locate(0).row
        (True, True)
    """

    def source(tree: Tree, where: str) -> Node:
        if "of" in tree:
            return _over_files(tree, where, None if find is None else source)
        names, records = _names_and_lengths(tree)
        return PlaceholderSource(dict(tree), names, records, find(tree) if find and "files" in tree else None)

    return _checked(description, lambda: _rebuilt(description, source, path=""))


def rebuild_loosely(description: Tree, row_files: Mapping[str, str] | None = None) -> Node:
    """Return a dataset with the lengths, lanes and mixtures of a described one.

    Its order is that of the described one where that is known. Placeholders stand for nodes that chose rows
    by content, and for sources.

    Args:
        description: what ``describe`` returned, also after a JSON round trip.
        row_files: the paths of files of chosen rows, by the digest of these rows.

    Raises:
        CorruptState: this is not a description of this version of seekable.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence(range(9)).select([3, 1, 2]).shuffle(seed=3)
        >>> rebuild_loosely(ds._node.describe(None)).fingerprint == ds.fingerprint
        True
    """

    def source(tree: Tree, _: str) -> Node:
        names, lengths = _names_and_lengths(tree)
        return PlaceholderSource(dict(tree), names, lengths, any_order=True, row_files=row_files or {})

    return _checked(description, lambda: _rebuilt(description, source, path=""))


def described_sources(description: Tree) -> list[Tree]:
    """Return the descriptions of the sources of files or sequences, in the order in which they stand there.

    Example:
        >>> source = {"kind": "sequence", "type": "builtins.list", "length": 3}
        >>> described_sources({"kind": "shuffle", "seed": 1, "of": [source]}) == [source]
        True
    """
    if "of" not in description:
        return [description]
    return [source for below in description["of"] for source in described_sources(below)]


def has_schedule(description: Tree) -> bool:
    """Return True if a mixture of a description has a schedule of weights."""
    return "schedule" in description or any(map(has_schedule, description.get("of", ())))


def _checked(description: Tree, make: Callable[[], Node]) -> Node:
    """Return what ``make`` returns, if it describes itself as it was described.

    Raises:
        CorruptState: it does not, or cannot be made.
    """
    try:
        rebuilt = make()
        same = _plain(rebuilt.describe(None)) == _plain(description)
    except SeekableError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        message = (
            f"not the description of a pipeline of this version of seekable: {type(error).__name__}: {error}"
        )
        raise CorruptState(message) from error
    if not same:
        message = (
            "the description has arguments that this version of seekable does not know, so the order would "
            "be another one; use the version that wrote it, or a newer one"
        )
        raise CorruptState(message)
    return rebuilt


def _rebuilt(tree: Tree, source: MakeSource, *, path: str) -> Node:
    """Return the node that a description is of, over the nodes below it.

    Args:
        tree: the description.
        source: makes a source, or a node that chose rows by content, of its description and its path.
        path: the kinds of the nodes above, for messages.
    """
    here = f"{path}{tree['kind']}"
    known = _class_of(tree, here)
    if not known.decides_order(tree) or issubclass(known, LeafNode):
        return source(tree, here)
    below = tree["of"]
    paths = [f"{here}[{i}] > " if len(below) > 1 else f"{here} > " for i in range(len(below))]
    children = tuple(_rebuilt(child, source, path=step) for child, step in zip(below, paths, strict=True))
    return node_over(tree, children)


def node_over(tree: Tree, children: Children) -> Node:
    """Return the node that a description is of, over the nodes below it.

    A placeholder stands for a node that makes records by a function of the user.
    """
    made = _class_of(tree, tree["kind"]).from_arguments(tree, children)
    if made is not None:
        return made
    (child,) = children
    return PlaceholderMap(child, {key: value for key, value in tree.items() if key != "of"})


def _class_of(tree: Tree, where: str) -> type[Node]:
    """Return the class of a described node.

    Raises:
        CorruptState: there is none; the message names the node by its path ``where``.
        MissingDependency: the subject that has the class cannot be imported.
    """
    if tree["kind"] == Continued.kind:
        return Continued
    try:
        return node_class(tree["kind"])
    except CorruptState:
        message = f"a node of the kind {where!r} is not known to this version of seekable"
        raise CorruptState(message) from None


def _over_files(tree: Tree, where: str, source: MakeSource | None) -> Node:
    """Return a node whose order its description lacks, over files whose index has what decides it.

    Args:
        tree: the description.
        where: the path of the node, for the message.
        source: makes the sources below it, with their files; None where no files are looked for.

    Raises:
        InvalidArgument: the files were not found, or do not decide it either; the message says why.
    """
    kind = node_class(tree["kind"])
    below: list[Node | None] = [None]
    # What is below may be no node at all: a stage of a stream has the name of a node.
    with suppress(CorruptState):
        if source is not None:
            rebuilt = [_rebuilt(each, source, path=f"{where} > ") for each in tree["of"]]
            below = [with_leaves(each, _found, past_records=False) for each in rebuilt]
    children = tuple(each for each in below if each is not None)
    made = kind.from_arguments(tree, children) if len(children) == len(below) else None
    if made is None:
        message = (
            f"the order of {where} cannot be told from a description: {kind.order_unknown}. Give the "
            f"pipeline itself, as module:function"
        )
        raise InvalidArgument(message)
    return made


def _found(source: Any) -> Node:
    """Return the files that a placeholder stands for; itself if they were not found."""
    files: Node | None = source.files
    return source if files is None else files


def _names_and_lengths(tree: Tree) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return each file's name and record count; one stand-in for a source without files."""
    if "of" in tree:
        return (f"<{tree['kind']}>",), (tree["count"],)
    if "files" in tree:
        files = tree["files"]
        return tuple(file["name"] for file in files), tuple(file["records"] for file in files)
    version = f" {tree['version']}" if "version" in tree else ""
    return (f"<{tree['type']}{version}>",), (tree["length"],)


def _plain(description: Tree) -> Any:
    """Return a description as JSON has it, where tuples are lists."""
    return json.loads(canonical_json(description))
