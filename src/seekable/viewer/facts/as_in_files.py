"""Records as they are in the files: without the functions of a pipeline, and of a rebuilt one with its files.

A pipeline that was rebuilt from a saved state has placeholders for its sources, which know files and rows and
have no records. Where the files were found again, they are read here as the run read them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seekable.errors import DataNotFound
from seekable.formats.lines.line_source import decoder_named
from seekable.formats.shar.shar_source import DataSource
from seekable.nodes.bases import leaves_of, with_leaves
from seekable.nodes.files.byte_source import FileSource
from seekable.resume.placeholders import PlaceholderSource
from seekable.viewer.facts.source_counts import source_nodes

if TYPE_CHECKING:
    from seekable.nodes.contract import Node

__all__ = ["as_in_files", "data_of", "sources_in_files"]


def data_of(leaf: Any) -> DataSource | None:
    """Return the source of the data of a leaf; None where there is none, or its files were not found."""
    if not isinstance(leaf, PlaceholderSource):
        return leaf if isinstance(leaf, DataSource) else None
    found = leaf.files
    if isinstance(found, FileSource) and isinstance(leaf.described.get("decode"), str):
        # The records of a rebuilt source are bytes; here they are decoded as in the run.
        return replace(found, decoder=decoder_named(leaf.described["decode"], found.format))
    return found


def as_in_files(node: Node) -> Node:
    """Return the order of a pipeline over records as in the files; itself where they are grouped.

    Raises:
        DataNotFound: the files of a source are not on this machine.
    """
    _check_found(node)
    changed = with_leaves(node, lambda leaf: data_of(leaf) or leaf, past_records=True)
    return node if changed is None else changed


def sources_in_files(node: Node) -> tuple[Node, ...]:
    """Return the sources of a pipeline, as ``source_nodes`` does, each with its records; errors as above."""
    _check_found(node)
    return tuple(data_of(source) or source for source in source_nodes(node))


def _check_found(node: Node) -> None:
    for leaf in leaves_of(node):
        if isinstance(leaf, PlaceholderSource) and leaf.files is None:
            message = "the files of the run are not here: say with --root in which folder they are now"
            raise DataNotFound(message)
