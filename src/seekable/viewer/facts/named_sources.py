"""The sources of a pipeline: their names, exact counts of their records, their files; no record is read.

The sources of a pipeline are the parts of its mixtures and concatenations, to any depth. Counts pass through
mixtures, concatenations, ``take``, ``skip``, ``epoch``, ``repeat``, maps and batches in closed form. Where a
shuffle, ``select`` or the like stands *above* a mixture or a concatenation, the records of the epoch that is
begun are counted one by one by the arithmetic of their order, at about 100 ns each.

A pipeline that was rebuilt from a saved state has placeholders for its sources, which know files and rows and
have no records. Where the files were found again, ``as_in_files`` reads them as the run read them.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from seekable.errors import DataNotFound, InvalidArgument
from seekable.formats.lines.line_source import decoder_named
from seekable.formats.shar.shar_source import DataSource
from seekable.index.fileset import FileSet
from seekable.nodes.bases import ElementwiseNode, PermutationNode, UnaryNode, leaves_of, replaced
from seekable.nodes.batch import Batch
from seekable.nodes.concat import Concat
from seekable.nodes.epoch import Epoch
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import nodes_of, with_children
from seekable.nodes.mix import Mix
from seekable.nodes.node import LeafNode, OrderNode
from seekable.nodes.slice import Slice
from seekable.nodes.without import WithHoles
from seekable.order.arrays import numbered
from seekable.order.mixture import BLOCK, segments
from seekable.packing.nodes.blend import MegatronBlend
from seekable.resume.placeholders import PlaceholderMap, PlaceholderSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.node import Node

SEVERAL = -1
"""What ``sources_of`` returns for a batch with records of several sources."""

_AT_ONCE = 1 << 18
"""The positions that are routed together: some 20 ms, and some 20 MB of arrays."""

_Named = TypeVar("_Named")

_ONLY = np.zeros(1, dtype=np.int64)


def source_names(node: Node) -> tuple[str, ...]:
    """Return the name of each source: its parts' names or indices with dots between; ``"data"`` if it is one.

    Example:
        >>> import seekable as sk
        >>> a, b, c = (sk.from_sequence(range(n)) for n in (3, 4, 5))
        >>> source_names(sk.mix({"web": a, "code": sk.concat([b, c])}, seed=0).take(6)._node)
        ('web', 'code.0', 'code.1')
        >>> source_names(a.shuffle(seed=1)._node)
        ('data',)
    """
    return tuple(".".join(name) or "data" for name, _ in _named(node))


def source_nodes(node: Node) -> tuple[Node, ...]:
    """Return the node of each source, below all that orders or changes its records one by one.

    Example:
        >>> import seekable as sk
        >>> a = sk.from_sequence("abc")
        >>> source_nodes(a.shuffle(seed=1).map(str.upper)._node) == (a._node,)
        True
    """
    return tuple(source for _, source in _named(node))


def source_counts(node: Node, positions: Int64s) -> Int64s:
    """Return how many records of each source come before each position, over all epochs.

    The lists that ``batch`` makes count as the records in them.

    Args:
        node: the pipeline.
        positions: int64, one dimension, at least 0, in any order.

    Returns:
        An int64 array of shape (positions, sources), with the columns of ``source_names``.

    Raises:
        InvalidArgument: a position is negative.

    Example:
        >>> import seekable as sk
        >>> a, b = sk.from_sequence(range(10**9)), sk.from_sequence(range(10**9))
        >>> ds = sk.mix({"a": a, "b": b}, weights={"a": 7, "b": 3}, seed=0)
        >>> source_counts(ds._node, np.array([0, 10**6])).tolist()
        [[0, 0], [700000, 300000]]
    """
    _check(positions)
    distinct, where = np.unique(positions, return_inverse=True)
    return _counts(node, distinct.astype(np.int64))[where]


def sources_of(node: Node, positions: Int64s) -> Int64s:
    """Return the index in ``source_names`` of each position's source, or ``SEVERAL``.

    Args:
        node: the pipeline.
        positions: int64, one dimension, at least 0.

    Raises:
        InvalidArgument: a position is negative.

    Example:
        >>> import seekable as sk
        >>> ds = sk.concat([sk.from_sequence("abc"), sk.from_sequence("xy")])
        >>> sources_of(ds._node, np.arange(5)).tolist(), sources_of(ds.batch(2)._node, np.arange(3)).tolist()
        ([0, 0, 0, 1, 1], [0, -1, 1])
    """
    _check(positions)
    return _sources(node, positions)


def _check(positions: Int64s) -> None:
    if positions.size and positions.min() < 0:
        message = f"positions must be at least 0 (got {positions.min()})"
        raise InvalidArgument(message)


def _named(node: Node, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield the name of each source in parts, and its node."""
    if isinstance(node, Mix | Concat | MegatronBlend):
        own = node.names if isinstance(node, Mix) and node.names else map(str, range(len(node.parts)))
        for name, child in zip(own, node.parts, strict=True):
            yield from _named(child, (*above, name))
    elif (child_of_one := _only_child(node)) is not None:
        yield from _named(child_of_one, above)
    else:
        yield above, node


def _only_child(node: Node) -> Node | None:
    """Return the child that each record, or each record of a list, comes from; None at a source."""
    passes = isinstance(node, UnaryNode) and isinstance(node, OrderNode | ElementwiseNode | Batch | WithHoles)
    return node.children[0] if passes else None


def _width(node: Node) -> int:
    return sum(1 for _ in _named(node))


def _is_plain(node: Node) -> bool:
    """Return True if each position is one record of the one source."""
    if isinstance(node, Batch) or (isinstance(node, Mix | Concat | MegatronBlend) and len(node.parts) != 1):
        return False
    below = node.children if isinstance(node, Mix | Concat | MegatronBlend) else (_only_child(node),)
    return all(child is None or _is_plain(child) for child in below)


def _columns(node: Node) -> list[int]:
    """Return the first column of each child, then the number of columns."""
    return [0, *itertools.accumulate(_width(child) for child in node.children)]


def _counts(node: Node, positions: Int64s) -> Int64s:  # noqa: PLR0911 - a case for each kind of node
    """Return the counts before positions, which need not ascend: a row for each."""
    if _is_plain(node):
        return positions[:, None]
    if not positions.size or node.size == 0:
        return np.zeros((positions.size, _width(node)), dtype=np.int64)
    if isinstance(node, Batch):
        return _counts(node.child, _first_of(node, positions))
    if isinstance(node, Mix):
        return _counts_of_mix(node, positions)
    if isinstance(node, Concat):
        return _counts_of_concat(node, positions)
    if isinstance(node, Slice) and node.step == 1:
        return _counts_of_slice(node, positions)
    if isinstance(node, Epoch):
        epochs, rows = np.divmod(positions, node.size)
        edges = node.number * node.size + np.append(rows, [0, node.size])
        counts = _counts(node.child, edges)
        counted: Int64s = epochs[:, None] * (counts[-1] - counts[-2]) + counts[:-2] - counts[-2]
        return counted
    if isinstance(node, PermutationNode):
        begun = positions // node.size * node.size
        return _counts(node.child, begun) + _between(node, begun, positions)
    if isinstance(node, WithHoles) or (isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode)):
        return _counts(node.child, positions)
    return _counts_by_routing(node, positions)


def _counts_of_mix(node: Mix, positions: Int64s) -> Int64s:
    """Return counts in closed form up to the last edge of a block, and count the rest one by one."""
    if node.cuts:
        return _counts_of_cut_mix(node, positions)
    epochs, rows = np.divmod(positions, node.size) if node.size else (np.zeros_like(positions), positions)
    laid = segments(node.schedule, lanes=node.lanes)
    starts = np.array([segment.start for segment in laid], dtype=np.int64)
    draws = rows // node.lanes
    which = np.searchsorted(starts, draws, side="right") - 1
    draws -= (draws - starts[which]) % BLOCK
    parts = []
    for slot, child in enumerate(node.parts):
        drawn = np.array([segment.before[slot] for segment in laid], dtype=np.int64)[which]
        for number in np.unique(which).tolist():
            shares, here = laid[number].shares, which == number
            if shares.weights[slot]:
                drawn[here] += shares.count(slot, draws[here] - starts[number])
        an_epoch = node.drawn_by_lanes(slot, node.size)[0] if node.size else 0
        parts.append(_counts(child, epochs * an_epoch + drawn * node.lanes))
    whole = epochs * (node.size or 0) + draws * node.lanes
    total: Int64s = np.concatenate(parts, axis=1) + _between(node, whole, positions)
    return total


def _counts_of_cut_mix(node: Mix, positions: Int64s) -> Int64s:
    """Return the counts of a mixture of a run that was steered, where lanes have drawn different numbers."""
    if any(_width(part) > 1 for part in node.parts):
        return _between(node, np.zeros_like(positions), positions)
    drawn = [
        [sum(node.drawn_by_lanes(slot, position)[1]) for slot in range(len(node.parts))]
        for position in positions.tolist()
    ]
    return np.array(drawn, dtype=np.int64)


def _counts_of_concat(node: Concat, positions: Int64s) -> Int64s:
    epochs, rows = np.divmod(positions, node.size)
    parts, start = [], 0
    for child in node.parts:
        size = child.size or 0
        parts.append(_counts(child, epochs * size + np.clip(rows - start, 0, size)))
        start += size
    return np.concatenate(parts, axis=1)


def _counts_of_slice(node: Slice, positions: Int64s) -> Int64s:
    """Return the counts of the child within the slice, epoch by epoch where these may differ."""
    child, length = node.child, node.epoch_from
    if not length:
        edges = np.append(positions + node.start, node.start)
        counts = _counts(child, edges)
        beyond: Int64s = counts[:-1] - counts[-1]
        return beyond
    epochs, rows = np.divmod(positions, length)
    begun = epochs * node.epoch_to + node.start
    partly = _counts(child, begun + rows) - _counts(child, begun)
    if length == node.epoch_to:
        return _counts(child, begun) + partly
    if child.steady:
        first = _counts(child, np.array([node.start, node.start + length]))
        alike: Int64s = partly + epochs[:, None] * (first[1] - first[0])
        return alike
    starts = np.arange(epochs.max()) * node.epoch_to + node.start
    each = _counts(child, starts + length) - _counts(child, starts)
    summed = np.zeros((starts.size + 1, partly.shape[1]), dtype=np.int64)
    np.cumsum(each, axis=0, out=summed[1:])
    return partly + summed[epochs]


def _counts_by_routing(node: Node, positions: Int64s) -> Int64s:
    """Return counts of positions that are routed one by one; of one epoch alone if all are alike."""
    alike = node.steady or all(map(_is_plain, node.children))
    if node.size is None or not alike:
        return _between(node, np.zeros_like(positions), positions)
    epochs, rows = np.divmod(positions, node.size)
    stops = np.append(rows, node.size)
    counts = _between(node, np.zeros_like(stops), stops)
    counted: Int64s = epochs[:, None] * counts[-1] + counts[:-1]
    return counted


def _between(node: Node, starts: Int64s, stops: Int64s) -> Int64s:
    """Return the counts of the positions from each start to its stop, each position routed once a start."""
    order = np.lexsort((stops, starts))
    starts, stops = starts[order], stops[order]
    same = np.append(False, starts[1:] == starts[:-1])
    begins = np.where(same, np.append(0, stops[:-1]), starts)
    edges = np.append(0, np.cumsum(stops - begins))
    tallies = np.zeros((starts.size, _width(node)), dtype=np.int64)
    for first in range(0, int(edges[-1]), _AT_ONCE):
        places = np.arange(first, min(first + _AT_ONCE, int(edges[-1])))
        pairs = np.searchsorted(edges, places, side="right") - 1
        low, high = int(pairs[0]), int(pairs[-1]) + 1
        routed = begins[pairs] + places - edges[pairs]
        tallies[low:high] += _tally(node, routed, pairs - low, high - low)
    summed = tallies.cumsum(axis=0)
    heads = np.maximum.accumulate(np.where(same, 0, np.arange(starts.size)))
    out = np.empty_like(summed)
    out[order] = summed - summed[heads] + tallies[heads]
    return out


def _tally(node: Node, positions: Int64s, groups: Int64s, size: int) -> Int64s:
    """Return the counts of positions in each of ``size`` groups; ``groups`` has each one's group."""
    if not positions.size:
        return np.zeros((size, _width(node)), dtype=np.int64)
    if _is_plain(node):
        return np.bincount(groups, minlength=size)[:, None].astype(np.int64)
    if isinstance(node, Batch):
        first = _first_of(node, positions)
        which, number = numbered(_first_of(node, positions + 1) - first)
        return _tally(node.child, first[which] + number, groups[which], size)
    slots, below = _routed(node, positions)
    columns = _columns(node)
    if all(map(_is_plain, node.children)):
        cells = np.bincount(groups * columns[-1] + slots, minlength=size * columns[-1])
        return cells.reshape(size, -1).astype(np.int64)
    out = np.zeros((size, columns[-1]), dtype=np.int64)
    for slot in np.unique(slots).tolist():
        at = np.flatnonzero(np.broadcast_to(slots == slot, positions.shape))
        out[:, columns[slot] : columns[slot + 1]] = _tally(node.children[slot], below[at], groups[at], size)
    return out


def _sources(node: Node, positions: Int64s) -> Int64s:
    if not positions.size or _width(node) == 1:
        return np.zeros(positions.size, dtype=np.int64)
    if isinstance(node, Batch):
        first = _first_of(node, positions)
        counts = _first_of(node, positions + 1) - first
        which, number = numbered(counts)
        sources = _sources(node.child, first[which] + number)
        heads = np.cumsum(counts) - counts
        least, most = np.minimum.reduceat(sources, heads), np.maximum.reduceat(sources, heads)
        return np.where(least == most, least, SEVERAL)
    slots, below = _routed(node, positions)
    out = np.empty(positions.size, dtype=np.int64)
    columns = _columns(node)
    for slot in np.unique(slots).tolist():
        at = np.flatnonzero(np.broadcast_to(slots == slot, positions.shape))
        inner = _sources(node.children[slot], below[at])
        out[at] = np.where(inner == SEVERAL, SEVERAL, inner + columns[slot])
    return out


def _routed(node: Node, positions: Int64s) -> tuple[Int64s, Int64s]:
    """Return the slot of a child and the position there; maps keep positions."""
    if isinstance(node, OrderNode):
        return type(node).router([node]).route(_ONLY, positions)
    return _ONLY, positions


def _first_of(node: Batch, positions: Int64s) -> Int64s:
    """Return the child's position at which each batch begins."""
    if node.size is None:
        return positions * node.length
    epochs, rows = np.divmod(positions, max(1, node.size))
    counted: Int64s = epochs * (node.child.size or 0) + rows * node.length
    return counted


def data_of(leaf: Any) -> DataSource | None:
    """Return the source of the data of a leaf; None where there is none, or its files were not found."""
    if not isinstance(leaf, PlaceholderSource):
        return leaf if isinstance(leaf, DataSource) else None
    found = leaf.files
    if isinstance(found, FileSource) and isinstance(leaf.described.get("decode"), str):
        # The records of a rebuilt source are bytes; here they are decoded as the run decoded them.
        return replace(found, decoder=decoder_named(leaf.described["decode"], found.format))
    return found


def as_in_files(node: Node) -> Node:
    """Return a pipeline's order over the records as they are in files; itself where records are grouped.

    Raises:
        DataNotFound: the files of a source are not on this machine.
    """
    _check_found(node)
    changed = replaced(node, _in_files, past_records=True)
    return node if changed is None else changed


def as_delivered(node: Node) -> Node | None:
    """Return a pipeline that makes the records that it delivers; None where it lacks its functions.

    One that was rebuilt from a description has the places of its records alone; the files have the rest.

    Raises:
        DataNotFound: the files of a source are not on this machine.
    """
    described = [leaf for leaf in leaves_of(node) if isinstance(leaf, PlaceholderSource)]
    if not described:
        return node
    _check_found(node)
    decoded = all(
        isinstance(leaf.described.get("decode"), str) or not isinstance(leaf.files, FileSource)
        for leaf in described
    )
    if not decoded or any(isinstance(each, PlaceholderMap) for each in nodes_of(node)):
        return None
    return replaced(node, _in_files, past_records=False)


def _in_files(node: Node) -> Node | None:
    """Return what stands in the place of a source, or of holes over it; None for other nodes."""
    if isinstance(node, LeafNode):
        return data_of(node) or node
    if isinstance(node, WithHoles):
        below = replaced(node.child, _in_files, past_records=True)
        return None if below is None else with_children(node, {id(node.child): below})
    return None


def sources_in_files(node: Node) -> tuple[Node, ...]:
    """Return the sources of a pipeline, each with its records as they are in files.

    Raises:
        DataNotFound: the files of a source are not on this machine.
    """
    _check_found(node)
    return tuple(data_of(source) or source for source in source_nodes(node))


def _check_found(node: Node) -> None:
    for leaf in leaves_of(node):
        if isinstance(leaf, PlaceholderSource) and leaf.files is None:
            message = "the files of the run are not here: say with --root in which folder they are now"
            raise DataNotFound(message)


def files_named(files: FileSet, name: str) -> list[int]:
    """Return the indices of the files with a path, else of all whose paths end with it, part by part."""
    last = os.path.basename(name)
    same = [at for at, each in enumerate(files.names()) if os.path.basename(each) == last]
    return _fitting([(files.shown_path(at), at) for at in same], name)


def has_row(node: Node, path: str, row: int) -> bool:
    """Return True if a pipeline has a row of a file in one of its sources."""
    return any(leaf.rows_of(path, row) for leaf in leaves_of(node))


def paths_named(node: Node, name: str) -> dict[str, int]:
    """Return the paths of a pipeline's files that a name means, each with its number of records."""
    found: list[tuple[str, int]] = []
    for leaf in leaves_of(node):
        files = getattr(data_of(leaf), "files", None)
        if isinstance(files, FileSet):
            numbers = files_named(files, name)
            found += [(files.shown_path(at), int(files.records[at])) for at in numbers]
        elif isinstance(leaf, PlaceholderSource):
            found += zip(leaf.names, leaf.records, strict=True)
    return dict(_fitting([(path, (path, records)) for path, records in found], name))


def _fitting(named: Sequence[tuple[str, _Named]], name: str) -> list[_Named]:
    """Return what has the path ``name``, else what has a path that ends with it."""
    whole, end = {name, os.path.abspath(name)}, f"/{name.removeprefix('./')}"
    exact = [each for path, each in named if path in whole]
    return exact or [each for path, each in named if path.endswith(end)]
