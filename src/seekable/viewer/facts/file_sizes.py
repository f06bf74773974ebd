"""The files of data by size: which of them hold most of the records and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.viewer.facts.data_survey import files_of
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.made_of import FROM_INDEX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.nodes.contract import Leaf

__all__ = ["FileSizes", "file_sizes"]


@dataclass(frozen=True, slots=True)
class FileSizes:
    """All files of some data, the largest first; of equal ones in natural order."""

    names: tuple[str, ...]
    """The paths below the folder of the data, JSON-safe."""

    records: tuple[int, ...]
    bytes: tuple[int, ...]

    def document(self) -> dict[str, Any]:
        """Return the name, the records and the bytes of each file, with their sums, JSON-safe."""
        columns = zip(self.names, self.records, self.bytes, strict=True)
        return {
            "made_of": FROM_INDEX,
            "files": len(self.names),
            "records": sum(self.records),
            "bytes": sum(self.bytes),
            "largest_first": [
                {"name": name, "records": records, "bytes": size} for name, records, size in columns
            ],
        }


def file_sizes(sources: Iterable[Leaf]) -> FileSizes:
    """Return the files of some sources by size; no file is opened.

    Args:
        sources: sources of data; those that are not made of files have none.
    """
    names: list[str] = []
    records, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for files in files_of(sources):
        names += [json_safe(files.name(number)) for number in range(len(files))]
        records.append(files.records)
        sizes.append(files.data_sizes)
    bytes_of = np.concatenate(sizes)
    order = np.argsort(-bytes_of, kind="stable")
    return FileSizes(
        tuple(names[number] for number in order.tolist()),
        tuple(np.concatenate(records)[order].tolist()),
        tuple(bytes_of[order].tolist()),
    )
