"""From a pipeline's description back to its order.

A description, which ``sk.save_state`` writes beside the states, holds all that decides the order of records.
What it does not hold is the records and the functions that they go through; neither is needed to say which
record comes when. Rows that were chosen by content are in it by digest alone: over those no order can be
rebuilt.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument, SeekableError
from seekable.nodes.batch import Batch
from seekable.nodes.concat import Concat
from seekable.nodes.epoch import Epoch
from seekable.nodes.interleave import Interleave
from seekable.nodes.mix import Mix
from seekable.nodes.repeat import Repeat
from seekable.nodes.sample import Sample
from seekable.nodes.shuffle import Shuffle
from seekable.nodes.slice import Slice
from seekable.nodes.split import Split
from seekable.nodes.windowed import WindowedShuffle
from seekable.nodes.zip import Zip
from seekable.resume.continued import Continued
from seekable.resume.placeholders import DescribedMap, DescribedSource
from seekable.resume.saved_description import without_paths
from seekable.state.canonical import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.dataset.base import Dataset
    from seekable.nodes.sources.columnar.source import TableSource
    from seekable.nodes.sources.files import FileSource

    Finder = Callable[[Mapping[str, Any]], FileSource | TableSource | None]
    Parts = tuple[Dataset, ...]

__all__ = ["FORMATS_OF_RUNS", "REBUILT", "UNKNOWN_ROWS", "has_schedule", "outlined", "rebuild", "sources_of"]

UNKNOWN_ROWS = {
    "select": "the description has a digest of the rows that were selected, and not the rows",
    "filter": "the description has a digest of the rows that were kept, and not the rows",
    "join": "the description has a digest of the rows that were matched, and not the rows",
}
"""The kinds of node whose order cannot be rebuilt, and why."""

FORMATS_OF_RUNS = frozenset({"jsonl", "text", "csv", "tsv", "csv-semicolon"})
"""The formats whose files have blocks of 1,024 rows: of others a description does not tell them."""


def rebuild(description: Mapping[str, Any], *, find: Finder | None = None) -> Dataset:
    """Return a dataset in the order of the one that was described, whose records are their own places.

    Pure, but for what ``find`` does. What comes back has the fingerprint of the description, which is
    checked.

    Args:
        description: what ``describe`` returned, also after a JSON round trip.
        find: returns the files of a source's description, so that places have bytes, or None; it is asked
            once for each source of files, in the order of the description.

    Raises:
        InvalidArgument: a node stands in the way; the message names it and says why.
        CorruptState: it is no description of this version.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence("abcd").map(str.upper).shuffle(seed=3)
        >>> again = rebuild(ds.describe(None))
        >>> again.fingerprint == ds.fingerprint, again[0].row == ds.locate(0).row
        (True, True)
    """
    return _checked(description, lambda: _node(description, find, path=""))


def outlined(description: Mapping[str, Any]) -> Dataset:
    """Return what ``rebuild`` returns of any description; where it knows no order, rows have any order.

    Lengths, lanes and mixtures are those of what was described.

    Raises:
        CorruptState: it is no description of this version.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence(range(9)).select([3, 1, 2]).shuffle(seed=3)
        >>> outlined(ds.describe(None)).fingerprint == ds.fingerprint
        True
    """
    bare = without_paths(description)
    return _checked(bare, lambda: _node(description, None, path="", outline=True))


def _checked(description: Mapping[str, Any], make: Callable[[], Dataset]) -> Dataset:
    """Return what is made of a description, if it is what was described."""
    try:
        rebuilt = make()
        same = _canonical(rebuilt.describe(None)) == _canonical(description)
    except SeekableError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
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


def has_schedule(description: Mapping[str, Any]) -> bool:
    """Tell whether a mixture of a description has a schedule of weights."""
    return "schedule" in description or any(map(has_schedule, description.get("of", ())))


def sources_of(description: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the descriptions of a pipeline's sources, in the order in which they stand there.

    Example:
        >>> source = {"kind": "sequence", "type": "builtins.list", "length": 3}
        >>> sources_of({"kind": "shuffle", "seed": 1, "of": [source]}) == [source]
        True
    """
    if "of" not in description:
        return [description]
    return [source for below in description["of"] for source in sources_of(below)]


def _node(
    description: Mapping[str, Any], find: Finder | None, *, path: str, outline: bool = False
) -> Dataset:
    kind = description["kind"]
    here = f"{path}{kind}"
    if outline and (kind in UNKNOWN_ROWS or "files" in description):
        return _outline(description)
    if kind in UNKNOWN_ROWS:
        message = (
            f"the order of {here} cannot be told from a description: {UNKNOWN_ROWS[kind]}. Give the pipeline "
            f"itself, as module:function"
        )
        raise InvalidArgument(message)
    if kind == "files":
        return _files(description, find, here=here)
    if kind == "table":
        return _of_files(description, find)
    if kind == "sequence":
        return _sequence(description)
    if kind not in REBUILT:
        message = f"a node of the kind {here!r} is not known to this version of seekable"
        raise CorruptState(message)
    below = description["of"]
    steps = [f"{here}[{i}] > " if len(below) > 1 else f"{here} > " for i in range(len(below))]
    parts = tuple(
        _node(child, find, path=step, outline=outline) for child, step in zip(below, steps, strict=True)
    )
    return REBUILT[kind](description, parts)


def _outline(description: Mapping[str, Any]) -> Dataset:
    if "files" not in description:
        where = description.get("path", f"<{description['kind']}>")
        return DescribedSource(without_paths(description), (where,), (description["count"],), None)
    files = description["files"]
    names, records = tuple(file["name"] for file in files), tuple(file["records"] for file in files)
    return DescribedSource(dict(description), names, records, None, any_order=True)


def _files(description: Mapping[str, Any], find: Finder | None, *, here: str) -> Dataset:
    if description["format"] not in FORMATS_OF_RUNS:
        message = f"{here}: where blocks end in files of {description['format']!r} is not in the description"
        raise InvalidArgument(message)
    return _of_files(description, find)


def _of_files(description: Mapping[str, Any], find: Finder | None) -> Dataset:
    names = tuple(file["name"] for file in description["files"])
    records = tuple(file["records"] for file in description["files"])
    return DescribedSource(dict(description), names, records, find(description) if find else None)


def _sequence(description: Mapping[str, Any]) -> Dataset:
    version = f" {description['version']}" if "version" in description else ""
    name = f"<{description['type']}{version}>"
    return DescribedSource(dict(description), (name,), (description["length"],), None)


def _map(description: Mapping[str, Any], parts: Parts) -> Dataset:
    (child,) = parts
    return DescribedMap(child, {key: value for key, value in description.items() if key != "of"})


def _mix(description: Mapping[str, Any], parts: Parts) -> Dataset:
    names, weights = description["names"], description.get("weights")
    schedule = description["schedule"] if weights is None else [(0, weights)]
    return Mix(
        parts,
        names=None if names is None else tuple(names),
        schedule=tuple((start, tuple(some)) for start, some in schedule),
        seed=_int(description, "seed"),
        stop=description["stop"],
    )


def _split(description: Mapping[str, Any], parts: Parts) -> Dataset:
    start, stop = _int(description, "start"), _int(description, "stop")
    return Split(parts[0], seed=_int(description, "seed"), part=f"{start}:{stop}", start=start, stop=stop)


def _windowed(description: Mapping[str, Any], parts: Parts) -> Dataset:
    seed, window, lanes = (_int(description, key) for key in ("seed", "window", "lanes"))
    return WindowedShuffle(parts[0], seed, window, lanes, description.get("fixed", False))


_OVER_COLUMNS = (
    *("alias", "cast", "computed", "drop_columns", "fill"),
    *("map_columns", "rename", "select_columns", "source_column"),
)

REBUILT: Mapping[str, Callable[[Mapping[str, Any], Parts], Dataset]] = {
    "batch": lambda node, parts: Batch(parts[0], _int(node, "length")),
    "concat": lambda _, parts: Concat(parts),
    "continued": lambda node, parts: Continued.of(node, parts[:-1], parts[-1]),
    "epoch": lambda node, parts: Epoch(parts[0], _int(node, "number")),
    "interleave": lambda node, parts: Interleave(parts[0], _int(node, "lanes")),
    "map": _map,
    "map_batches": _map,
    "mix": _mix,
    "repeat": lambda node, parts: Repeat(parts[0], _int(node, "times")),
    "sample": lambda node, parts: Sample(parts[0], _int(node, "count"), _int(node, "seed")),
    "shuffle": lambda node, parts: Shuffle(parts[0], _int(node, "seed"), node.get("fixed", False)),
    "slice": lambda node, parts: Slice(parts[0], _int(node, "start"), _int(node, "step"), node["count"]),
    "split": _split,
    "windowed_shuffle": _windowed,
    "zip": lambda _, parts: Zip(parts),
    **dict.fromkeys(_OVER_COLUMNS, _map),
}
"""What makes a node of each kind from its description and the nodes below."""


def _int(node: Mapping[str, Any], key: str) -> int:
    value = node[key]
    if type(value) is not int:
        message = f"{node['kind']}: {key} must be an integer (got {value!r})"
        raise TypeError(message)
    return value


def _canonical(description: Mapping[str, Any]) -> Any:
    # Compared as what JSON makes of it: tuples are lists there.
    return json.loads(canonical_json(description))
