"""The figures of a dataset by its index alone, with which every page and card begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.formats.shar.shar_source import DataSource
from seekable.viewer.facts.data_survey import files_of, index_folders
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.made_of import FROM_INDEX

if TYPE_CHECKING:
    from seekable.nodes.contract import Node

__all__ = ["data_facts"]


def data_facts(node: Node) -> dict[str, Any]:
    """Return the expression, records, files and bytes of a dataset, JSON-safe, by its index alone.

    Example:
        >>> import seekable as sk
        >>> data_facts(sk.from_sequence("abc").node)["records"]
        3
    """
    document: dict[str, Any] = {
        "pipeline": json_safe(node.expression()),
        "records": node.size,
        "made_of": FROM_INDEX,
    }
    if isinstance(node, DataSource):
        files = files_of([node])
        document |= {
            "format": node.format,
            "files": sum(map(len, files)),
            "bytes": sum(int(each.data_sizes.sum()) for each in files),
            "index": [json_safe(folder) for folder in index_folders(node)],
        }
    return document
