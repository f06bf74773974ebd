"""From the description of a dataset back to its order.

A description has all that decides the order of records, but neither the records nor the functions that they
go through. `rebuild` makes of it a dataset in the same order, of which each record is its own file and row.

Rows that were chosen by content are in a description by their digest alone, so the order of a filter, a
selection or a join cannot be rebuilt. `rebuild_loosely` puts a placeholder of the right length in its place:
that is enough to count what was delivered.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument, SeekableError
from seekable.formats.registry import has_runs
from seekable.nodes.bases import with_leaves
from seekable.nodes.batch import Batch
from seekable.nodes.concat import Concat
from seekable.nodes.epoch import Epoch
from seekable.nodes.interleave import Interleave
from seekable.nodes.mix import Mix
from seekable.nodes.repeat import Repeat
from seekable.nodes.select import Sample
from seekable.nodes.shuffle import Shuffle
from seekable.nodes.slice import Slice
from seekable.nodes.split import Split
from seekable.nodes.stable_split import StableSplit
from seekable.nodes.windowed import WindowedShuffle
from seekable.nodes.zip import Zip
from seekable.packing.lengths.packing_columns import has_documents
from seekable.packing.nodes.blend import MegatronBlend
from seekable.packing.nodes.pack import Pack
from seekable.packing.nodes.sample_cut import SampleCut
from seekable.packing.nodes.sample_form import SampleForm
from seekable.packing.nodes.windows import Windows
from seekable.resume.continued import Continued
from seekable.resume.placeholders import PlaceholderMap, PlaceholderSource
from seekable.state.canonical import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.nodes.contract import Node
    from seekable.nodes.files.leaf import FilesLeaf
    from seekable.packing.nodes.packed_node import PackedNode

    Tree = Mapping[str, Any]
    Children = tuple[Node, ...]
    FindFiles = Callable[[Tree], FilesLeaf | None]
    MakeSource = Callable[[Tree, str], Node]

__all__ = [
    "REBUILT",
    "UNKNOWN_ROWS",
    "described_sources",
    "has_schedule",
    "rebuild",
    "rebuild_loosely",
]

UNKNOWN_ROWS = {
    "select": "the description has a digest of the rows that were selected, and not the rows",
    "filter": "the description has a digest of the rows that were kept, and not the rows",
    "flatten": "the description has a digest of the rows that have items, and not the rows",
    "sorted": "the description has a digest of the order of the rows, and not the order",
    "pack": "the description has a digest of the lengths of documents, and not the lengths (token files that "
    "are found again have them)",
    "windows": "the description has a digest of the lengths of documents, and not the lengths (token files "
    "that are found again have them)",
    "join": "the description has a digest of the rows that were matched, and not the rows",
    "siblings": "the description has a digest of each archive, and not the rows that were matched",
}
"""The kinds of node whose order cannot be rebuilt, and why."""


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
        >>> again = rebuild(ds.node.describe(None))
        >>> again.fingerprint == ds.fingerprint, again.record(0).row == ds.locate(0).row
        (True, True)
    """

    def source(tree: Tree, where: str) -> Node:
        if find is not None and tree["kind"] in _PACKED and "lengths" not in tree:
            packed = _packed(tree, _rebuilt(tree["of"][0], source, path=f"{where} > "))
            if packed is not None:
                return packed
        _check_order_is_known(tree, where)
        return PlaceholderSource(
            dict(tree), *_names_and_lengths(tree), find(tree) if find and "files" in tree else None
        )

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
        >>> rebuild_loosely(ds.node.describe(None)).fingerprint == ds.fingerprint
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
    kind = tree["kind"]
    here = f"{path}{kind}"
    if kind in UNKNOWN_ROWS or kind in _SOURCES:
        return source(tree, here)
    if kind not in REBUILT:
        message = f"a node of the kind {here!r} is not known to this version of seekable"
        raise CorruptState(message)
    below = tree["of"]
    paths = [f"{here}[{i}] > " if len(below) > 1 else f"{here} > " for i in range(len(below))]
    children = tuple(_rebuilt(child, source, path=step) for child, step in zip(below, paths, strict=True))
    return REBUILT[kind](tree, children)


def _check_order_is_known(tree: Tree, where: str) -> None:
    """Refuse a source or node whose order is not in its description.

    Raises:
        InvalidArgument: the message names the node by its path ``where``, and says why.
    """
    kind = tree["kind"]
    if kind in UNKNOWN_ROWS:
        message = (
            f"the order of {where} cannot be told from a description: {UNKNOWN_ROWS[kind]}. Give the "
            f"pipeline itself, as module:function"
        )
        raise InvalidArgument(message)
    if kind in ("files", "samples", "tokens") and not has_runs(tree["format"]):
        message = f"{where}: where blocks end in files of {tree['format']!r} is not in the description"
        raise InvalidArgument(message)


def _names_and_lengths(tree: Tree) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the name and the number of records of each file of a source; one stand-in without files."""
    if tree["kind"] in UNKNOWN_ROWS:
        return (f"<{tree['kind']}>",), (tree["count"],)
    if "files" in tree:
        files = tree["files"]
        return tuple(file["name"] for file in files), tuple(file["records"] for file in files)
    version = f" {tree['version']}" if "version" in tree else ""
    return (f"<{tree['type']}{version}>",), (tree["length"],)


_SOURCES = frozenset({"files", "samples", "sequence", "shar", "table", "tokens"})
"""The kinds of nodes that are sources."""


def _map(tree: Tree, children: Children) -> Node:
    (child,) = children
    return PlaceholderMap(child, {key: value for key, value in tree.items() if key != "of"})


def _packed(tree: Tree, child: Node) -> PackedNode | None:
    """Return the samples of documents of token files that were found again; None if they were not.

    They are read from the files, as those of the described node.
    """
    kinds = (PlaceholderSource,)
    below = with_leaves(child, lambda leaf: leaf.files or leaf, past_records=False, sources=kinds)
    if below is None or not has_documents(below):
        return None
    form = SampleForm.from_description(tree)
    return _PACKED[tree["kind"]](below, SampleCut.from_description(tree), form, None)


_PACKED: dict[str, type[Pack | Windows]] = {Pack.kind: Pack, Windows.kind: Windows}
"""The nodes whose order needs the lengths of documents, which token files have in their index."""


def _mix(tree: Tree, children: Children) -> Node:
    names, weights = tree["names"], tree.get("weights")
    schedule = tree["schedule"] if weights is None else [(0, weights)]
    return Mix(
        children,
        names=None if names is None else tuple(names),
        schedule=tuple((start, tuple(some)) for start, some in schedule),
        seed=_int(tree, "seed"),
        stop=tree["stop"],
    )


def _megatron_blend(tree: Tree, children: Children) -> Node:
    weights = tree["weights"]
    return MegatronBlend(children, None if weights is None else tuple(weights), _int(tree, "count"))


def _split(tree: Tree, children: Children) -> Node:
    number = _int(tree, "number")
    return Split(children[0], seed=_int(tree, "seed"), part=number, number=number, sizes=tuple(tree["sizes"]))


def _stable_split(tree: Tree, children: Children) -> Node:
    start, stop = _int(tree, "start"), _int(tree, "stop")
    return StableSplit(children[0], seed=_int(tree, "seed"), part=f"{start}:{stop}", start=start, stop=stop)


def _windowed(tree: Tree, children: Children) -> Node:
    seed, window, lanes = (_int(tree, key) for key in ("seed", "window", "lanes"))
    block_rows = None if tree.get("block_rows") is None else _int(tree, "block_rows")
    return WindowedShuffle(children[0], seed, window, lanes, tree.get("fixed", False), block_rows)


_OVER_COLUMNS = (
    *("alias", "cast", "computed", "drop_columns", "fill"),
    *("map_columns", "partitions", "rename", "select_columns", "source_column", "unify_columns"),
)
"""The kinds of nodes that change columns, and not the order."""

REBUILT: Mapping[str, Callable[[Tree, Children], Node]] = {
    "batch": lambda tree, children: Batch(children[0], _int(tree, "length")),
    "concat": lambda _, children: Concat(children),
    "continued": lambda tree, children: Continued.from_arguments(tree, children[:-1], children[-1]),
    "epoch": lambda tree, children: Epoch(children[0], _int(tree, "number")),
    "exact_split": _split,
    "interleave": lambda tree, children: Interleave(children[0], _int(tree, "lanes")),
    "map": _map,
    "map_batches": _map,
    "megatron_blend": _megatron_blend,
    "mix": _mix,
    "repeat": lambda tree, children: Repeat(children[0], _int(tree, "times")),
    "sample": lambda tree, children: Sample(children[0], _int(tree, "count"), _int(tree, "seed")),
    "shuffle": lambda tree, children: Shuffle(children[0], _int(tree, "seed"), tree.get("fixed", False)),
    "slice": lambda tree, children: Slice(
        children[0], _int(tree, "start"), _int(tree, "step"), tree["count"]
    ),
    "split": _stable_split,
    "windowed_shuffle": _windowed,
    "zip": lambda _, children: Zip(children),
    **dict.fromkeys(_OVER_COLUMNS, _map),
}
"""For each kind of node, what makes one of its description and the nodes below it."""


def _int(tree: Tree, key: str) -> int:
    value = tree[key]
    if type(value) is not int:
        message = f"{tree['kind']}: {key} must be an integer (got {value!r})"
        raise TypeError(message)
    return value


def _plain(description: Tree) -> Any:
    """Return a description as JSON has it, where tuples are lists."""
    return json.loads(canonical_json(description))
