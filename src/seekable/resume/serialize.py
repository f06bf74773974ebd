"""The ``rows`` of a state: the segments of older orders that a pipeline resumed by rows still has.

Of a dataset it has an entry for each source that is a `Continued` node, under the index of the source. What
is empty or 0 is left out, so an entry whose segments have come is a number or two:

    {"0": {"olds": [...], "pieces": [...], "lagging": [...], "tail": 0, "first": 1000}}

``olds`` are descriptions in which nodes of the present source are their numbers there (``{"node": 1}``), so
that no function is searched for and no file is named again.

Of a stream it has an entry for each stage that reads a dataset: the position at which the run starts, the one
at which it really began, and in ``parts`` the entries of the dataset:

    {"0": {"start": 0, "begin": 900, "parts": {"0": {...}}}}
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import SeekableError, StateMismatch
from seekable.nodes.bases import UnaryNode
from seekable.nodes.evaluated import Evaluated
from seekable.nodes.kinds import node_class
from seekable.resume.consumed import readers_of, with_readers
from seekable.resume.continued import Continued
from seekable.resume.from_description import node_over
from seekable.resume.match import selected_rows
from seekable.resume.pipeline_sources import sources_of, with_child, with_sources
from seekable.stream.lineage import lineage_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable.nodes.node import Node
    from seekable.stream.from_dataset import FromDataset
    from seekable.stream.stream import Stream

__all__ = [
    "dataset_from_rows",
    "rows_of_dataset",
    "rows_of_stream",
    "stream_from_rows",
]

_DEFAULTS = {"pieces": [], "lagging": [], "tail": 0, "first": 0}
"""The arguments of a `Continued` node that are left out of its entry."""


def rows_of_dataset(dataset: Node) -> dict[str, Any]:
    """Return the entries of a dataset; empty for a plain one.

    Example:
        >>> import seekable as sk
        >>> rows_of_dataset(sk.from_sequence("abc").shuffle(seed=1)._node)
        {}
    """
    return {
        str(number): _entry(source.dataset)
        for number, source in enumerate(sources_of(dataset))
        if isinstance(source.dataset, Continued)
    }


def dataset_from_rows(rows: Mapping[str, Any], plain: Node) -> Node:
    """Return the dataset that ``rows_of_dataset`` returned some entries for.

    Args:
        rows: the entries, also after a JSON round trip.
        plain: the dataset without what resuming by rows has added.

    Raises:
        StateMismatch: the entries are of another dataset, or its sources have changed.
        InvalidArgument: rows that were chosen by content are not to be found any more.
    """
    sources = [source.dataset for source in sources_of(plain)]
    try:
        for number, entry in rows.items():
            new = sources[int(number)]
            nodes = list(_nodes_in(new))
            olds = [_from_brief(brief, nodes) for brief in entry.get("olds", [])]
            sources[int(number)] = Continued.from_arguments({**_DEFAULTS, **entry}, (*olds, new))
    except SeekableError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"the state's 'rows' are not of this pipeline: {type(error).__name__}: {error}"
        raise StateMismatch(message) from error
    return with_sources(plain, sources)


def rows_of_stream(stream: Stream) -> dict[str, Any]:
    """Return the entries of a stream that resumed by rows."""
    return {
        str(number): {
            "start": reader.start,
            "begin": reader.begin,
            **({"parts": parts} if (parts := rows_of_dataset(reader.dataset)) else {}),
        }
        for number, reader in enumerate(_reading_stages(stream))
    }


def stream_from_rows(rows: Mapping[str, Any], plain: Stream) -> Stream:
    """Return the stream that ``rows_of_stream`` returned some entries for.

    Args:
        rows: the entries, also after a JSON round trip.
        plain: the stream without what resuming by rows has added.

    Raises:
        StateMismatch: the entries are of another stream, or its sources have changed.
        InvalidArgument: rows that were chosen by content are not to be found any more.
    """
    readers = _reading_stages(plain)
    try:
        for number, entry in rows.items():
            reader = readers[int(number)]
            dataset = dataset_from_rows(entry.get("parts", {}), reader.dataset)
            start, begin = int(entry["start"]), int(entry["begin"])
            readers[int(number)] = replace(reader, dataset=dataset, start=start, begin=begin)
    except SeekableError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"the state's 'rows' are not of this stream: {type(error).__name__}: {error}"
        raise StateMismatch(message) from error
    return with_readers(plain, readers)


def _reading_stages(stream: Stream) -> list[FromDataset]:
    return [reader.stage for reader in readers_of(lineage_of(stream.stage))]


def _entry(source: Continued) -> dict[str, Any]:
    """Return the entry of one source."""
    arguments = {key: value for key, value in source.arguments(None).items() if value != _DEFAULTS[key]}
    if not source.olds:
        return arguments
    nodes = list(_nodes_in(source.new))
    return {"olds": [_brief(old, nodes) for old in source.olds], **arguments}


def _brief(node: Node, nodes: Sequence[Node]) -> dict[str, Any]:
    """Return the description of a node, which may name nodes of the present source by their numbers.

    A node is one of these (``{"node": 1}``), or one of them over another child
    (``{"like": 1, "of": [...]}``), or is described by its arguments.
    """
    for number, own in enumerate(nodes):
        if own is node:
            return {"node": number}
    below = [_brief(child, nodes) for child in node.children]
    for number, own in enumerate(nodes):
        if isinstance(node, UnaryNode) and _differ_in_child_alone(node, own):
            return {"like": number, "of": below}
    path = {"path": node.rows.path} if isinstance(node, Evaluated) and node.rows.named else {}
    return {"kind": node.kind, **node.arguments(None), **path, "of": below}


def _from_brief(brief: Mapping[str, Any], nodes: Sequence[Node]) -> Node:
    """Return the node that ``_brief`` described."""
    if "node" in brief:
        own: Node = nodes[brief["node"]]
        return own
    below = tuple(_from_brief(child, nodes) for child in brief["of"])
    if "like" in brief:
        return with_child(nodes[brief["like"]], below[0])
    if brief["kind"] != Continued.kind and not node_class(brief["kind"]).decides_order(brief):
        return selected_rows(brief, below[0], nodes, path=brief.get("path"))
    return node_over(brief, below)


def _differ_in_child_alone(node: Node, own: Node) -> bool:
    """Return True if two nodes are of one class and have the same objects as arguments, but for the child."""
    if type(node) is not type(own) or not is_dataclass(node):
        return False
    return all(
        getattr(node, field.name) is getattr(own, field.name)
        for field in fields(node)
        if field.name != "child"
    )


def _nodes_in(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it, those above before those below."""
    yield node
    for child in node.children:
        yield from _nodes_in(child)
