"""A survey of data: files, records, bytes, lengths, fields and columns, and the folder of its index."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument
from seekable.formats.shar.shar_source import DataSource, SharSource
from seekable.formats.tables.tables import TableSource
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tokens.source.token_source import TokenSource
from seekable.nodes.files.leaf import FilesLeaf
from seekable.viewer.facts.compression import compression_found, unread_files
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.record_lengths import record_lengths
from seekable.viewer.facts.store_contents import stores_found
from seekable.viewer.facts.token_contents import token_contents

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.index.fileset import FileSet
    from seekable.nodes.contract import Leaf
    from seekable.nodes.files.byte_source import FileSource
    from seekable.viewer.facts.record_lengths import RecordLengths

__all__ = ["data_survey", "files_of", "folder_bytes", "index_folders", "refuse_length"]

_LENGTH = 2048


def data_survey(
    dataset: DataSource,
    *,
    path: str,
    files_indexed: int = 0,
    refresh: bool = False,
    length: int | None = None,
) -> dict[str, Any]:
    """Return what data is, JSON-safe; of all records the offsets are read, and none is decoded.

    Args:
        dataset: the source of the data.
        path: what the user named it.
        files_indexed: the number of files that were indexed for this call.
        refresh: True to send a request for the published index of a store.
        length: the tokens of a sample of which the waste of packing is computed; None for 2,048.

    Raises:
        InvalidArgument: a length is given, and the data is not of tokens.
    """
    folders, unread, files = index_folders(dataset), unread_files(dataset.files), files_of([dataset])
    stores = stores_found(files, refresh=refresh)
    return {
        "path": json_safe(path),
        "format": dataset.format,
        "files": sum(map(len, files)),
        "records": dataset.size,
        "bytes": sum(int(each.data_sizes.sum()) for each in files),
        **_content_found(dataset, path, length),
        "compression": compression_found(dataset.files),
        "index": {
            "folder": ", ".join(map(json_safe, folders)),
            "bytes": sum(map(folder_bytes, folders)),
            "files_indexed": files_indexed,
            "was_up_to_date": not files_indexed,
            **({"from_other_indexes": unread} if unread else {}),
        },
        **({} if stores is None else {"stores": stores}),
    }


def _content_found(
    dataset: DataSource,
    path: str,
    length: int | None,
) -> dict[str, Any]:
    """Return the lengths of records; of samples also the fields; of tables the columns and row groups.

    Raises:
        InvalidArgument: a length of packed samples is given, and the data is not of tokens.
    """
    if isinstance(dataset, TokenSource):
        tokens = token_contents(dataset, _LENGTH if length is None else length)
        return {"record_bytes": _as_json(record_lengths(dataset.files)), **tokens}
    refuse_length(length, path)
    if isinstance(dataset, SharSource):
        return {"fields": {name: _field_found(part) for name, part in dataset.named_parts}}
    if isinstance(dataset, SampleSource):
        fields = {
            json_safe(name): {"members": members, "bytes": size}
            for name, (members, size) in dataset.words.field_sizes().items()
        }
        return {"record_bytes": _as_json(record_lengths(dataset.files)), "fields": fields}
    if not isinstance(dataset, TableSource):
        return {"record_bytes": _as_json(record_lengths(dataset.files))}
    columns = {field.name: str(field.type) for field in dataset.schema}
    return {"columns": columns, "groups": dataset.row_blocks.group_starts.size - 1}


def _field_found(part: FileSource | SampleSource) -> dict[str, Any]:
    """Return the format, the files and the bytes of one field of Shar."""
    sizes = part.files.data_sizes
    kind = "jsonl" if part.format == "jsonl" else "tar"
    return {"format": kind, "files": len(part.files), "bytes": int(sizes.sum())}


def _as_json(lengths: RecordLengths | None) -> dict[str, Any] | None:
    if lengths is None:
        return None
    percentiles = {f"p{percent}": length for percent, length in lengths.percentiles.items()}
    return {"mean": lengths.mean, "min": lengths.shortest, "max": lengths.longest, **percentiles}


def refuse_length(length: int | None, path: str) -> None:
    """Refuse the length of packed samples for what is no data of tokens.

    Raises:
        InvalidArgument: it was given.
    """
    if length is not None:
        message = f"--length is for data of tokens, and {path!r} is none: drop it"
        raise InvalidArgument(message)


def files_of(sources: Iterable[Leaf]) -> list[FileSet]:
    """Return the files of some sources: of a Shar those of its cuts, and then of each field."""
    parts = [part for source in sources for part in source.parts]
    return [part.files for part in parts if isinstance(part, FilesLeaf)]


def index_folders(dataset: DataSource) -> list[str]:
    """Return the folders of the index: one, but for files that lie in several folders."""
    return list(dict.fromkeys(folder for files in files_of([dataset]) for folder in files.folders))


def folder_bytes(folder: str) -> int:
    """Return the size in bytes of the files in a folder, subfolders excluded."""
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())
