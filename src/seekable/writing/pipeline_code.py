"""The functions of a pipeline, whose code decides the records that are written, and the files it reads."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from seekable.nodes.bases import leaves_of
from seekable.nodes.files.decoders import Decoder
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.sequence_source import SequenceSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.nodes.node import Node

__all__ = ["functions_of", "origin_paths", "own_functions", "paths_of"]


def own_functions(holder: Any) -> Iterator[Callable[..., Any]]:
    """Yield the functions in the fields of a node or a stage.

    With a ``version`` there are none: the version stands for their code.
    """
    if is_dataclass(holder) and getattr(holder, "version", None) is None:
        for field in fields(holder):
            value = getattr(holder, field.name)
            value = value.function if isinstance(value, Decoder) else value
            if callable(value):
                yield value


def functions_of(node: Node) -> Iterator[Callable[..., Any]]:
    """Yield the functions of a node and of its descendants, depth first; each node once."""
    return _functions(node, set())


def _functions(node: Node, seen: set[int]) -> Iterator[Callable[..., Any]]:
    if id(node) in seen:
        return
    seen.add(id(node))
    yield from own_functions(node)
    for child in node.children:
        yield from _functions(child, seen)


def origin_paths(node: Node) -> list[str]:
    """Return the paths of a dataset's data files, as the origins of records name them, each once.

    A source that reads no files has a name in angle brackets.
    """
    paths: dict[str, None] = {}
    for leaf in leaves_of(node):
        source = leaf.parts[0]
        if isinstance(source, SequenceSource):
            paths.setdefault(source.place)
        elif isinstance(source, FilesLeaf):
            paths.update(dict.fromkeys(map(source.files.shown_path, range(len(source.files)))))
    return list(paths)


def paths_of(node: Node) -> Iterator[str]:
    """Yield the absolute paths of all data files that a dataset reads."""
    for source in (part for leaf in leaves_of(node) for part in leaf.parts):
        if isinstance(source, FilesLeaf):
            yield from map(source.files.path, range(len(source.files)))
