"""The paths of the files of a pipeline, and later weights of its schedule, which ``sk.save_state`` writes.

They are not part of the fingerprint, because they decide no order that has begun. ``seekable plan`` reads
them, to find the bytes that a step will read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.nodes.contract import Leaf, Node
from seekable.nodes.filter import row_files_of
from seekable.nodes.sources.file_source import FileSource
from seekable.nodes.sources.tables import TableSource
from seekable.stream.description import datasets_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.stream.stream import Stream

__all__ = ["SCHEMA", "whereabouts", "whereabouts_name"]

SCHEMA = 1


def whereabouts_name(fingerprint: str) -> str:
    """Return the name of the file with the source paths of the pipeline with a fingerprint.

    Example:
        >>> whereabouts_name("xxh3:0123")
        'sources-0123.json'
    """
    return f"sources-{fingerprint.rpartition(':')[2]}.json"


def whereabouts(pipeline: Node | Stream) -> dict[str, Any]:
    """Return the paths of each source's files and of row files, JSON-safe.

    For a pipeline with a schedule, the whole description is in it too.

    Example:
        >>> import seekable as sk
        >>> whereabouts(sk.from_sequence("abc").shuffle(seed=1).node)
        {'seekable_sources': 1, 'sources': [{'kind': 'sequence'}]}
    """
    datasets = [pipeline] if isinstance(pipeline, Node) else list(datasets_of(pipeline.stage))
    leaves = [leaf for dataset in datasets for leaf in _leaves(dataset)]
    noted: dict[str, Any] = {"seekable_sources": SCHEMA, "sources": [_noted(leaf) for leaf in leaves]}
    paths = {digest: path for dataset in datasets for digest, path in row_files_of(dataset).items()}
    if paths:
        noted["kept"] = {digest: path for digest, path in paths.items() if _as_text(path)}
    if isinstance(pipeline, Node) and pipeline.scheduled:
        return {**noted, "description": pipeline.describe(None)}
    return noted


def _noted(leaf: Leaf) -> dict[str, Any]:
    if not isinstance(leaf, FileSource | TableSource):
        return {"kind": leaf.kind}
    runs = [
        {"root": _as_text(root), "index": _as_text(folder), "files": files}
        for root, folder, files in leaf.files.runs
    ]
    return {"kind": leaf.kind, "runs": runs}


def _as_text(path: str) -> str | None:
    """Return a path, None if it has bytes that are no UTF-8, which JSON cannot hold."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return None
    return path


def _leaves(node: Node) -> Iterator[Leaf]:
    """Yield the sources in the order of the description."""
    if isinstance(node, Leaf):
        yield node
    for child in node.children:
        yield from _leaves(child)
