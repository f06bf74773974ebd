"""The sources and rows of an old pipeline, of which there is a description, found in the present pipeline.

A source is described by its files, or by its type and length: its rows are found in a present source. A
filter or selection is described by a digest of the rows that it chose: ``selected_rows`` finds a present
node, or a file, that has these rows.

The rest of a begun epoch comes in its old order, but its records are made by the present pipeline. So the two
pipelines are gone through side by side, from the top down:

    described                present                  transplanted
    shuffle(seed=1)          shuffle(seed=2)          shuffle(seed=1)       what orders rows is the old node
      map(old function)        map(new function)        map(new function)   what makes records is the new one
        files a, b               files a, b, c            files a, b        the old rows of the present source
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from seekable._log import LOG
from seekable.errors import InvalidArgument, StateMismatch
from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.concat import Concat
from seekable.nodes.evaluated import Evaluated
from seekable.nodes.filter import Filter
from seekable.nodes.flatten import FlattenNode
from seekable.nodes.node import LeafNode, Node, OrderNode, RecordNode
from seekable.nodes.repeat import Repeat
from seekable.nodes.rows_to_exclude import rows_left_out
from seekable.nodes.saved_rows import KeptRows, keep_unnamed
from seekable.nodes.slice import Slice
from seekable.nodes.sort import Sort
from seekable.nodes.without import LeavesOut, WithHoles, excluded
from seekable.resume.continued import Continued
from seekable.resume.from_description import rebuild_loosely
from seekable.resume.pipeline_sources import with_child
from seekable.resume.placeholders import PlaceholderSource
from seekable.state.canonical import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.without import Fill
    from seekable.order.positions import StridedRange
    from seekable.resume.consumed import Remainder
    from seekable.resume.pipeline_sources import NamedSource

__all__ = ["Match", "matched", "selected_rows"]


@dataclass(frozen=True, slots=True)
class Match:
    """The rows of an old source that a present one delivers before its own order begins."""

    remainder: Remainder

    orders: Mapping[int, Node]
    """For the ``id`` of each order in the remainder's segments, that order over the present source."""

    @property
    def segments(self) -> list[tuple[Node, StridedRange]]:
        """The rows that are left, as positions of orders over the present source."""
        return [(self.orders[id(order)], positions) for order, positions in self.remainder.segments]


def matched(olds: Sequence[tuple[NamedSource, Remainder]], news: Sequence[NamedSource]) -> dict[int, Match]:
    """Return, for the index of each present source that continues an old one, what it continues.

    A source is continued by the present one with its name; without names by the one in its place, if there
    are as many as before; otherwise by the first one that has its rows. A source that nothing continues is
    left out with a warning in the log. One without a name is left out only if every present source continues
    something: otherwise it more likely changed than went.

    Args:
        olds: the old sources, and what is left of them.
        news: the present sources.

    Raises:
        StateMismatch: a present source lacks rows of the old one that it should continue, or no source is
            continued at all.
    """
    by_name = {source.name: number for number, source in enumerate(news)}
    same_names = [source.name for source, _ in olds] == [source.name for source in news]
    matches: dict[int, Match] = {}
    unmatched: list[tuple[NamedSource, Remainder]] = []
    for old, remainder in olds:
        number = by_name.get(old.name)
        if number is None or not (same_names or all(isinstance(part, str) for part in old.name)):
            unmatched.append((old, remainder))
            continue
        try:
            matches[number] = _match(old, remainder, news[number])
        except StateMismatch:
            if _has_name(old):
                raise
            unmatched.append((old, remainder))
    left_out: list[tuple[NamedSource, Remainder]] = []
    for old, remainder in unmatched:
        failure = _match_any(old, remainder, news, matches)
        if failure is None:
            continue
        if not matches or (len(matches) < len(news) and not _has_name(old)):
            raise failure
        left_out.append((old, remainder))
    for old, remainder in left_out:
        _warn_of_rows_left_out(old, remainder)
    return matches


def _match_any(
    old: NamedSource, remainder: Remainder, news: Sequence[NamedSource], matches: dict[int, Match]
) -> StateMismatch | None:
    """Add a match with the first present source that is free and has the rows; return why there is none."""
    failures: list[StateMismatch] = []
    for number, new in enumerate(news):
        if number not in matches:
            try:
                matches[number] = _match(old, remainder, new)
            except StateMismatch as error:
                failures.append(error)
            else:
                return None
    return failures[0] if failures else StateMismatch(f"{old.label} is not in the pipeline any more")


def _match(old: NamedSource, remainder: Remainder, new: NamedSource) -> Match:
    """Return the match of two sources.

    Raises:
        StateMismatch: the new source lacks rows of the old one; the message names the source.
    """
    latest = old.dataset.new if isinstance(old.dataset, Continued) else old.dataset
    # Without rows that are left, the latest order is looked at nevertheless: sources must be the same.
    orders = {id(order): order for order, _ in remainder.segments} or {id(latest): latest}
    try:
        return Match(remainder, {key: _transplanted(order, new.dataset) for key, order in orders.items()})
    except StateMismatch as error:
        message = f"resume='rows' needs the sources as they were, for {old.label}: {error}"
        raise StateMismatch(message) from error


def _warn_of_rows_left_out(old: NamedSource, remainder: Remainder) -> None:
    if remainder.num_left:
        LOG.warning(
            "resume: %s is not in the pipeline any more: %d rows of its begun epoch are left out",
            old.label,
            remainder.num_left,
        )


def _has_name(source: NamedSource) -> bool:
    return bool(source.name) and isinstance(source.name[-1], str)


_ROWS_AT_ONCE = 1 << 16

_IDENTITY = ("size", "records", "head_tail", "offsets")
"""The values in the description of a file that must not have changed."""


def _matching_rows(described: Mapping[str, Any], present: Node) -> Node:
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
        >>> old, new = sk.from_sequence("abc")._node, sk.from_sequence("abcde")._node
        >>> _matching_rows(old.describe(None), new).fetch(np.arange(3))
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
    """Return spans of a dataset's rows, one after the other: the dataset itself if they are all."""
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
    """Yield, as rows of ``child``, the rows of a node that have the same sources, in the node's order.

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
    if isinstance(present, Filter | FlattenNode) and isinstance(child, Filter | FlattenNode):
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
    if isinstance(node, LeafNode):
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


def _transplanted(old: Node, new: Node) -> Node:
    """Return a dataset in the order of ``old`` with the records of ``new``.

    Args:
        old: a source of the old pipeline, rebuilt from its description by `rebuild_loosely`.
        new: the source of the present pipeline that continues it.

    Raises:
        StateMismatch: the present sources lack some of the old rows, or are combined in another way.
        InvalidArgument: the old pipeline chose rows by content, and nothing has these rows any more.

    Example:
        >>> import seekable as sk
        >>> words = sk.from_sequence(["a", "b", "c"])
        >>> shuffled = words.shuffle(seed=1)
        >>> node = _transplanted(rebuild_loosely(shuffled._node.describe(None)), words.map(str.upper)._node)
        >>> [node.record(row) for row in range(3)] == [word.upper() for word in shuffled]
        True
    """
    if _are_same(old, new):
        return new
    orders, old_core = _orders_above_core(old)
    nodes, new_core = _nodes_above_core(new)
    made = _transplanted_core(old_core, new_core)
    for order in reversed(orders):
        if isinstance(order, PlaceholderSource):
            path = order.row_files.get(order.described["rows"])
            made = selected_rows(order.described, made, nodes, path=path)
        else:
            made = with_child(order, made)
    for node in reversed(nodes):
        if isinstance(node, LeavesOut):
            # Rows of the present files, which may have other numbers among the old rows.
            fill: Fill = "hole" if isinstance(node, WithHoles) else "replace"
            made = excluded(made, rows_left_out(node.child, node.rows), fill=fill)
        elif isinstance(node, RecordNode):
            made = with_child(node, made)
    if made.size != old.size:
        message = f"what was {old!r} has {made.size:,} records over the present sources: {made!r}"
        raise StateMismatch(message)
    return new if _are_same(made, new) else made


def _orders_above_core(old: Node) -> tuple[list[Node], Node]:
    """Return the nodes that order or choose rows, outermost first, and the first node that is none of these.

    Nodes over one child that neither order nor choose rows are left out: the new pipeline has its own. A node
    that made several records of one is a core, because what is below it must stay below.
    """
    orders: list[Node] = []
    while True:
        if isinstance(old, PlaceholderSource) and _has_selected(old):
            orders.append(old)
            old = rebuild_loosely(old.described["of"][0], old.row_files)
        elif _is_over_one(old):
            if not isinstance(old, ElementwiseNode) or isinstance(old, Repeat):
                orders.append(old)
            old = old.child
        else:
            return orders, old


def _has_selected(old: PlaceholderSource) -> bool:
    """Return True for a node that chose rows of one child, and makes no records."""
    return not old.is_source and issubclass(old.stands_for, OrderNode)


def _nodes_above_core(new: Node) -> tuple[list[Node], Node]:
    """Return the nodes over one child, outermost first, and the first node that is none of these."""
    nodes: list[Node] = []
    while _is_over_one(new):
        nodes.append(new)
        new = new.child
    return nodes, new


def _is_over_one(node: Node) -> TypeGuard[UnaryNode]:
    return isinstance(node, UnaryNode) and isinstance(node, OrderNode | ElementwiseNode | LeavesOut)


def _transplanted_core(old: Node, new: Node) -> Node:
    """Return the rows of a source, or of a node over several children, by the rule for these two kinds."""
    if _are_same(old, new):
        return new
    made = _rows_of_sources(old, new)
    if made is None:
        made = new.taking(old, partial(_below, of=old))
    if made is None:
        was = old.described["kind"] if isinstance(old, PlaceholderSource) else old.kind
        message = f"what was {was}, {old!r}, is {new.kind} now, {new!r}: its rows cannot be told there"
        raise StateMismatch(message)
    return made


def _below(old: Node | Mapping[str, Any], new: Node, *, of: Node) -> Node:
    """Return the order of what was below an old node, which may be described, with the records of ``new``."""
    if isinstance(old, Node):
        return _transplanted(old, new)
    return _transplanted(
        rebuild_loosely(old, of.row_files if isinstance(of, PlaceholderSource) else None), new
    )


def _rows_of_sources(old: Node, new: Node) -> Node | None:
    """Return the rows of an old source, or of several that were concatenated; None for other nodes."""
    if isinstance(old, PlaceholderSource) and old.is_source:
        if isinstance(new, Concat):
            return _first_match(old, new.parts)
        return _matching_rows(old.described, new) if isinstance(new, LeafNode) else None
    if isinstance(old, Concat) and isinstance(new, Concat):
        return _each_part(old, new)
    if isinstance(old, Concat) and isinstance(new, LeafNode):
        return Concat(tuple(_transplanted(part, new) for part in old.parts))
    if isinstance(old, PlaceholderSource) and isinstance(new, FlattenNode) and old.stands_for is FlattenNode:
        below = _below(old.described["of"][0], new.child, of=old)
        return selected_rows(old.described, below, [new], path=old.row_files.get(old.described["rows"]))
    return None


def _each_part(old: Concat, new: Concat) -> Node:
    """Return each old part over the new part in its place, or over the first other one that has its rows."""
    made = []
    for slot, part in enumerate(old.parts):
        others = [other for number, other in enumerate(new.parts) if number != slot]
        made.append(_first_match(part, [*new.parts[slot : slot + 1], *others]))
    return Concat(tuple(made))


def _first_match(old: Node, parts: Sequence[Node]) -> Node:
    """Return the rows of an old node over the first of some parts that has them.

    Raises:
        StateMismatch: none of them has; the message is that of the first part.
    """
    failures: list[StateMismatch] = []
    for part in parts:
        try:
            return _transplanted(old, part)
        except StateMismatch as error:
            failures.append(error)
    raise failures[0]


def _are_same(old: Node, new: Node) -> bool:
    return canonical_json(old.describe(None)) == canonical_json(new.describe(None))
