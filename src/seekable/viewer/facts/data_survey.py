"""What the index knows of data: files, sizes, fields, compression, what lies in stores.

No record is decoded.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._lazy import lazy
from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument
from seekable.formats.shar.shar_source import DataSource, SharSource
from seekable.formats.tables.tables import TableSource
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tokens.token_source import TokenSource
from seekable.index.catalog import CATALOG
from seekable.index.digest import digest_number, digest_text, unread_content_digest
from seekable.index.location import shown_path
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.node import node_of
from seekable.packing.nodes.lists import NotAList, lists_of
from seekable.packing.nodes.packed_node import PackedNode
from seekable.packing.nodes.sample_form import LOSS_MASK
from seekable.storage.addresses import is_address
from seekable.storage.compression import compression_of
from seekable.storage.memory import bytes_in_words
from seekable.storage.seek_points import open_points, points_name
from seekable.viewer.facts.json_documents import in_words, json_safe
from seekable.viewer.facts.lengths import record_lengths
from seekable.viewer.facts.reading import FROM_INDEX
from seekable.viewer.facts.token_contents import packing_of, token_contents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.index.fileset import FileSet
    from seekable.nodes.files.byte_source import FileSource
    from seekable.nodes.node import LeafNode, Node
    from seekable.remote import object_bytes
    from seekable.remote.cache import disk_cache, disk_room
    from seekable.remote.fetching import fetcher
    from seekable.remote.index import publishing
    from seekable.viewer.facts.lengths import LengthHistogram
else:
    disk_cache = lazy("seekable.remote.cache.disk_cache")
    disk_room = lazy("seekable.remote.cache.disk_room")
    fetcher = lazy("seekable.remote.fetching.fetcher")
    object_bytes = lazy("seekable.remote.object_bytes")
    publishing = lazy("seekable.remote.index.publishing")

_COMPRESSIONS = {"gz": "gzip", "zst": "zstd"}

_ROWS_AT_ONCE = 1 << 12

_LENGTH = 2048
"""The tokens in a packed sample whose waste is computed, where nothing is given."""


def data_facts(node: Node) -> dict[str, Any]:
    """Return the expression, records, files and bytes of a dataset, JSON-safe, from its index.

    Example:
        >>> import seekable as sk
        >>> data_facts(sk.from_sequence("abc")._node)["records"]
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
            "index": [json_safe(folder) for folder in _index_folders(node)],
        }
    return document


def _unread_files(files: FileSet) -> int:
    """Count the files that were never read as a whole, because another index had their offsets."""
    return sum(
        entry.content_digest
        == digest_text(
            unread_content_digest(
                head_tail=digest_number(entry.head_tail_digest),
                offsets=digest_number(entry.offsets_digest),
                size=entry.size,
                mtime_ns=mtime_ns,
            )
        )
        for entry, mtime_ns in zip(map(files.entry, range(len(files))), files.mtimes_ns.tolist(), strict=True)
    )


def _compression_found(files: FileSet) -> dict[str, Any] | None:
    """Return the number of files, blocks and bytes for each compression; None if all files are plain.

    Returns:
        ``files`` maps ``"gz"``, ``"zst"`` and ``"plain"`` to counts of files; ``blocks`` is the number of
        seek points, ``content_bytes`` the decompressed size, ``points_bytes`` the size of the seek points.
    """
    kinds: Counter[str] = Counter()
    blocks = content = points_bytes = 0
    folders = itertools.chain.from_iterable(itertools.repeat(run[1], run[2]) for run in files.runs)
    for folder, name, digest in zip(folders, files.names(), files.contents.tolist(), strict=True):
        kind = compression_of(name)
        kinds[kind or "plain"] += 1
        if kind is not None:
            path = os.path.join(folder, points_name(digest))
            points = open_points(path)
            blocks, content = blocks + points.count, content + points.size
            points_bytes += os.path.getsize(path)
    if set(kinds) <= {"plain"}:
        return None
    return {"files": dict(kinds), "blocks": blocks, "content_bytes": content, "points_bytes": points_bytes}


def compression_in_words(found: dict[str, Any]) -> str:
    """Return the result of ``_compression_found`` as one line for people."""
    kinds = ", ".join(
        f"{count:,} {_COMPRESSIONS.get(kind, kind)}" for kind, count in sorted(found["files"].items())
    )
    return (
        f"{kinds}; {bytes_in_words(found['content_bytes'])} of content, entered at "
        f"{in_words(found['blocks'], 'point')} ({bytes_in_words(found['points_bytes'])})"
    )


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


def file_sizes(sources: Iterable[LeafNode]) -> FileSizes:
    """Return the files of some sources by size; no file is opened.

    Args:
        sources: sources of data; one that is not made of files counts as empty.
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


def _stores_found(files: Iterable[FileSet], *, refresh: bool) -> dict[str, Any] | None:
    """Return the published indexes of data in stores, and its bytes on disk; None for local data.

    Args:
        files: the files of the data.
        refresh: True to ask the stores for published indexes, one request a folder.
    """
    roots = list(dict.fromkeys(root for each in files for root, _, _ in each.runs if is_address(root)))
    if not roots:
        return None
    objects = itertools.chain.from_iterable(cache.contents() for cache in disk_cache.disk_caches())
    shown = [shown_path(root) for root in roots]
    kept = sum(each.kept_bytes for each in objects if disk_room.is_chosen(each.address, shown))
    published = (
        [folder.shown for folder in map(publishing.PublishedFolder, roots) if folder.stat(CATALOG)]
        if refresh
        else None
    )
    return {
        "folders": shown,
        "published": published,
        "cache_folder": disk_cache.remote_folder(),
        "kept_bytes": kept,
    }


def stores_in_words(found: dict[str, Any]) -> dict[str, str]:
    """Return the facts on stores for people, by name."""
    published = found["published"]
    facts = {"kept on disk": f"{bytes_in_words(found['kept_bytes'])} in {found['cache_folder']}"}
    if published is None:
        return facts
    return {"published index": ", ".join(published) or "none; seekable index --publish writes it", **facts}


def requests_of(dataset: Node, positions: Sequence[int]) -> dict[str, int] | None:
    """Return the requests that fetch some records where none is in the cache; None for local data.

    It is also None for a pipeline that was rebuilt from a saved state, which reads no records.

    Returns:
        ``count``, the number of requests, their ``bytes``, and ``record_bytes``, those of the records.
    """
    plan = dataset.plan(np.array(positions, np.int64))
    if not plan.from_stores:
        return None
    needed = object_bytes.wants(plan.ranges())
    requests = fetcher.fetcher().plan(needed)
    return {
        "count": len(requests),
        "bytes": sum(each.stop - each.start for each in requests),
        "record_bytes": int((needed.stops - needed.starts).sum()),
    }


def data_survey(
    dataset: DataSource,
    *,
    path: str,
    files_indexed: int = 0,
    refresh: bool = False,
    length: int | None = None,
    key: str | None = None,
) -> dict[str, Any]:
    """Return the survey that ``seekable info`` prints, JSON-safe; records are read only for ``key``.

    Args:
        dataset: the source of the data.
        path: what the user named it.
        files_indexed: the number of files that were indexed for this call.
        refresh: True to send a request for the published index of a store.
        length: the tokens in a packed sample, whose waste is computed; None for 2,048, or for none.
        key: the column of the token ids, of data that is not of tokens.

    Raises:
        InvalidArgument: a length is given, and the data is not of tokens and has no key; or a key without
            length.
    """
    folders, unread, files = _index_folders(dataset), _unread_files(dataset.files), files_of([dataset])
    stores = _stores_found(files, refresh=refresh)
    return {
        "path": json_safe(path),
        "format": dataset.format,
        "files": sum(map(len, files)),
        "records": dataset.size,
        "bytes": sum(int(each.data_sizes.sum()) for each in files),
        **_content_found(dataset, path, length if key is None else None),
        **({} if key is None else {"packing": _packing_found(dataset, length, key)}),
        "compression": _compression_found(dataset.files),
        "index": {
            "folder": ", ".join(map(json_safe, folders)),
            "bytes": sum(map(_folder_bytes, folders)),
            "files_indexed": files_indexed,
            "was_up_to_date": not files_indexed,
            **({"from_other_indexes": unread} if unread else {}),
        },
        **({} if stores is None else {"stores": stores}),
    }


def _content_found(dataset: DataSource, path: str, length: int | None) -> dict[str, Any]:
    """Return the lengths of records, and the fields of samples; for tables columns and row groups.

    Raises:
        InvalidArgument: a length of packed samples is given, and the data is not tokens.
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


def _packing_found(dataset: DataSource, length: int | None, key: str) -> dict[str, Any]:
    """Return what packing makes of lists of token ids in records, which are read once.

    Raises:
        InvalidArgument: no length is given, or there is nothing to pack.
        MissingColumn: the records have no such column.
    """
    if length is None:
        raise InvalidArgument(f"--key {key} is the column of token ids to pack: say --length N too")
    packed = node_of(Dataset(dataset).pack(length, seed=0, key=key))
    assert isinstance(packed, PackedNode)
    trained = _trained_in(dataset)
    counted = {} if trained is None else {"trained_tokens": trained}
    return packing_of(packed.documents.lengths, length) | counted


def _trained_in(dataset: DataSource) -> int | None:
    """Return how many numbers of the lists "loss_mask" are not 0; None where records have no such lists."""
    trained = 0
    try:
        for start in range(0, dataset.size, _ROWS_AT_ONCE):
            rows = np.arange(start, min(start + _ROWS_AT_ONCE, dataset.size), dtype=np.int64)
            (masks,) = lists_of(dataset.plan(rows), [LOSS_MASK])
            for array, some in masks.by_array(np.arange(rows.size)):
                begins = masks.starts[some]
                before = np.concatenate([[0], np.cumsum(array != 0)])
                trained += int((before[begins + masks.lengths[some]] - before[begins]).sum())
    except NotAList:
        return None
    return trained


def _field_found(part: FileSource | SampleSource) -> dict[str, Any]:
    """Return the format, the files and the bytes of one field of Shar."""
    sizes = part.files.data_sizes
    kind = "jsonl" if part.format == "jsonl" else "tar"
    return {"format": kind, "files": len(part.files), "bytes": int(sizes.sum())}


def _as_json(lengths: LengthHistogram | None) -> dict[str, Any] | None:
    if lengths is None:
        return None
    percentiles = {f"p{percent}": length for percent, length in lengths.percentiles.items()}
    return {"mean": lengths.mean, "min": lengths.shortest, "max": lengths.longest, **percentiles}


def refuse_length(length: int | None, path: str) -> None:
    """Refuse a length of packed samples, because the data is not tokens.

    Raises:
        InvalidArgument: a length was given.
    """
    if length is not None:
        message = f"--length is for data of tokens, and {path!r} is none: drop it, or name token ids by --key"
        raise InvalidArgument(message)


def files_of(sources: Iterable[LeafNode]) -> list[FileSet]:
    """List the files of some sources; for a Shar the cuts come first, then each field."""
    parts = [part for source in sources for part in source.parts]
    return [part.files for part in parts if isinstance(part, FilesLeaf)]


def _index_folders(dataset: DataSource) -> list[str]:
    """Return the folders of the index: one, or several where the files lie in several folders."""
    return list(dict.fromkeys(folder for files in files_of([dataset]) for folder in files.folders))


def _folder_bytes(folder: str) -> int:
    """Return the size in bytes of the files in a folder, subfolders excluded."""
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())
