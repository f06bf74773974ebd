"""Rows of an old pipeline, of which there is only a description, found in the present pipeline.

A source is described by its files, or by its type and length: ``matching_rows`` finds its rows in a present
source. A filter or selection is described by a digest of the rows that it chose: ``selected_rows`` finds a
present node, or a file, that has these rows.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, StateMismatch
from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.concat import Concat
from seekable.nodes.evaluated import Evaluated
from seekable.nodes.filter import Filter
from seekable.nodes.flatten import Flatten
from seekable.nodes.node import Leaf, RecordNode
from seekable.nodes.saved_rows import KeptRows, keep_unnamed
from seekable.nodes.slice import Slice
from seekable.nodes.sort import Sort
from seekable.resume.sources import with_child

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.node import Node


__all__ = ["matching_rows", "selected_rows"]

_ROWS_AT_ONCE = 1 << 16

_IDENTITY = ("size", "records", "head_tail", "offsets")
"""The values in the description of a file that must not have changed."""


def matching_rows(described: Mapping[str, Any], present: Node) -> Node:
    """Return the rows that a described source had, as rows of a present source.

    Files are compared by name, size, number of records and digests; new files may lie anywhere among them.
    A sequence is compared by type and version; one that is longer counts as the old one with items added at
    its end.

    Args:
        described: the description of the old source.
        present: the source that may have its rows.

    Raises:
        StateMismatch: some of the rows are missing; the message names the file, and the value that differs.

    Example:
        >>> import seekable as sk
        >>> old, new = sk.from_sequence("abc").node, sk.from_sequence("abcde").node
        >>> matching_rows(old.describe(None), new).fetch(np.arange(3))
        ['a', 'b', 'c']
    """
    now = present.describe(None)
    if described["kind"] != now["kind"]:
        raise StateMismatch(f"the source was {described['kind']}, and is {now['kind']}")
    if "files" in described:
        return _spans_of(present, _matching_spans(described, now))
    identity = {key: value for key, value in described.items() if key != "length"}
    same = identity == {key: value for key, value in now.items() if key != "length"}
    if not same or "length" not in described:
        raise StateMismatch(f"the source was {_shown(described)}, and is {_shown(now)}")
    if described["length"] > now["length"]:
        raise StateMismatch(f"the sequence had {described['length']:,} items, and has {now['length']:,}")
    return _spans_of(present, [(0, described["length"])])


def selected_rows(
    described: Mapping[str, Any], child: Node, nodes: Sequence[Node], *, path: str | None
) -> Node:
    """Return the rows that a described ``filter``, ``flatten``, ``select`` or ``sort`` chose.

    Args:
        described: the description of the old node: its kind, how many rows it chose, and their digest.
        child: the rows that it chose from, in the old order.
        nodes: the nodes of the present pipeline, one of which may choose the same rows. The items of a
            ``flatten`` are those of its function in one of these.
        path: the file that the old rows were saved in, if the user named one.

    Raises:
        InvalidArgument: no present node chooses these rows, and there is no file with them.
        CorruptState: the file has other rows.
    """
    kind, wanted = described["kind"], (described["count"], described["rows"])
    method = "sort" if kind == Sort.kind else kind
    alike = [node for node in nodes if node.kind == kind]
    for node in alike:
        arguments = node.arguments(None)
        if (arguments["count"], arguments["rows"]) == wanted:
            return with_child(node, child)
        if isinstance(node, Evaluated):
            kept = keep_unnamed(_rows_of_child(node, child), node.rows.operation)
            if (kept.count, kept.digest) == wanted:
                return _over_rows(node, child, kept)
    if path is not None and os.path.isabs(path) and os.path.exists(path):
        kept = KeptRows(path, *wanted, named=True, operation=method)
        kept.check()
        if kind in _WITHOUT_FUNCTION:
            return _WITHOUT_FUNCTION[kind](child, kept, os.path.basename(path))
        for node in alike:
            return _over_rows(node, child, kept)
    message = (
        f"the begun epoch was over {described['count']:,} rows that a {method} had chosen, and "
        f"the present pipeline does not choose these: a state has only their digest. Finish the epoch with "
        f"the {method} that it began with; or save rows in files of their own, which stay, with "
        f"ds.{method}(fn, save=)"
    )
    if kind == Filter.kind:
        message += "; or let a stream filter: ds.stream().filter(fn)"
    raise InvalidArgument(message)


_WITHOUT_FUNCTION = {Filter.kind: Filter, Sort.kind: Sort}
"""The kinds of nodes whose records are the child's, whatever the function was by which rows were chosen."""


def _over_rows(node: Node, child: Node, rows: KeptRows) -> Node:
    """Return a node of the same function with another child and other rows of it."""
    made: Node = replace(node, child=child, rows=rows)  # type: ignore[type-var]  # nodes are dataclasses
    return made


def _spans_of(present: Node, spans: Sequence[tuple[int, int]]) -> Node:
    """Return spans of rows of a dataset, one after the other: the dataset itself if that is all of it."""
    if list(spans) == [(0, present.size)]:
        return present
    parts = [Slice(present, start, 1, count) for start, count in spans]
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def _matching_spans(described: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the spans of rows, as starts and counts, that the described files are in the present source."""
    if described["format"] != now["format"]:
        raise StateMismatch(f"the source was of {described['format']!r}, and is of {now['format']!r}")
    files = now["files"]
    starts = np.cumsum([0, *(file["records"] for file in files)]).tolist()
    numbers: dict[tuple[Any, ...], list[int]] = {}
    for number, file in enumerate(files):
        numbers.setdefault(_identity_of(file), []).append(number)
    spans: list[tuple[int, int]] = [(0, 0)]
    for file in described["files"]:
        same = numbers.get(_identity_of(file))
        if same is None:
            raise StateMismatch(_difference(file, files))
        # Equal files are taken in turn; the last of them as often as the old source had more of them.
        number = same.pop(0) if len(same) > 1 else same[0]
        start, count = spans[-1]
        if start + count == starts[number]:
            spans[-1] = (start, count + file["records"])
        elif file["records"]:
            spans.append((starts[number], file["records"]))
    return [span for span in spans if span[1]] or [(0, 0)]


def _identity_of(file: Mapping[str, Any]) -> tuple[Any, ...]:
    return file["name"], *(file[key] for key in _IDENTITY)


def _difference(file: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> str:
    """Return the message for a described file that is not among the present files."""
    name = file["name"]
    other = next((now for now in files if now["name"] == name), None)
    if other is None:
        return f"file {name!r} is gone: its rows were part of the epoch that was begun"
    changed = [key for key in _IDENTITY if file[key] != other[key]]
    what = ", ".join(f"{key} was {file[key]!r}, is {other[key]!r}" for key in changed)
    return f"file {name!r} was changed: {what}"


def _shown(described: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value!r:.60}" for key, value in described.items())


def _rows_of_child(node: Evaluated, child: Node) -> Iterator[Int64s]:
    """Yield, as rows of ``child``, the rows of a node that are of the same sources, in the order of the node.

    The node's own child may have more sources, or the same ones in another order.
    """
    spans = list(_common_spans(node.child, child))
    kept = node.rows.array
    if not isinstance(node, Sort):
        for start, first, count in spans:
            low, high = np.searchsorted(kept, (start, start + count))
            yield kept[low:high] - start + first
        return
    starts, firsts, counts = np.array(sorted(spans), dtype=np.int64).reshape(-1, 3).T
    for at in range(0, kept.size if starts.size else 0, _ROWS_AT_ONCE):
        rows = kept[at : at + _ROWS_AT_ONCE]
        span = np.searchsorted(starts, rows, side="right") - 1
        rows = rows - starts[span]
        yield (rows + firsts[span])[(span >= 0) & (rows < counts[span])]


def _common_spans(present: Node, child: Node) -> Iterator[tuple[int, int, int]]:
    """Yield the spans of rows that two nodes have in common, in the order of ``child``.

    Yields:
        For each span its first row in ``present``, its first row in ``child``, and the number of rows.
    """
    present, child = _without_maps(present), _without_maps(child)
    if isinstance(present, Filter | Flatten) and isinstance(child, Filter | Flatten):
        for start, first, count in _common_spans(present.child, child.child):
            low, high = np.searchsorted(present.rows.array, (start, start + count)).tolist()
            own_low, own_high = np.searchsorted(child.rows.array, (first, first + count)).tolist()
            if low < high and high - low == own_high - own_low:
                yield low, own_low, high - low
        return
    spans = list(_spans_in(present))
    before = 0
    for leaf, first, count in _spans_in(child):
        at = 0
        for other, start, size in spans:
            low, high = max(first, start), min(first + count, start + size)
            if other is leaf and low < high:
                yield at + low - start, before + low - first, high - low
                break
            at += size
        before += count


def _without_maps(node: Node) -> Node:
    """Return the first node below those that make of each record another one in its place."""
    while isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode) and isinstance(node, RecordNode):
        node = node.child
    return node


def _spans_in(node: Node) -> Iterator[tuple[Node, int, int]]:
    """Yield, for the rows of a dataset in natural order, the source they are of, the first row and the count.

    Nothing is yielded for rows in another order.
    """
    node = _without_maps(node)
    if isinstance(node, Leaf):
        yield node, 0, node.size
    elif isinstance(node, Slice) and node.step == 1:
        left, skipped = node.count or 0, node.start
        for leaf, first, count in _spans_in(node.child):
            taken = max(0, min(count - skipped, left))
            if taken:
                yield leaf, first + skipped, taken
            skipped, left = max(0, skipped - count), left - taken
    elif isinstance(node, Concat):
        for part in node.parts:
            yield from _spans_in(part)
