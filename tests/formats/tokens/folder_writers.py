"""Folders of tokens written byte by byte, as LitData, MosaicML Streaming and Forager write them."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

NUMPY_CODES = {
    "int8": 0, "int16": 1, "int32": 2, "int64": 3, "uint8": 4, "uint16": 5, "uint32": 6, "uint64": 7,
}  # fmt: skip
DTYPE_CODES = {
    "uint8": 8, "int8": 9, "uint16": 16, "int16": 17, "uint32": 32, "int32": 33, "uint64": 64, "int64": 65,
}  # fmt: skip


def as_arrays(documents: Iterable[Sequence[int]], dtype: str) -> list[NDArray[Any]]:
    """Return documents as arrays of a type."""
    return [np.array(document, dtype=dtype) for document in documents]


def _with_offsets(items: Sequence[bytes], behind_offsets: bytes = b"") -> bytes:
    first = 4 * (len(items) + 2) + len(behind_offsets)
    offsets = first + np.cumsum([0, *map(len, items)])
    head = struct.pack("<I", len(items)) + offsets.astype("<u4").tobytes()
    return head + behind_offsets + b"".join(items)


def write_litdata(
    folder: Path, chunks: Sequence[Sequence[NDArray[Any]]], *, form: str | None = None, **config: Any
) -> None:
    """Write chunks of documents, as ``litdata.optimize(..., item_loader=TokensLoader())`` does."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for number, documents in enumerate(chunks):
        data = _with_offsets([document.tobytes() for document in documents])
        name = f"chunk-0-{number}.bin"
        (folder / name).write_bytes(data)
        dim = sum(map(len, documents)) if documents and len(documents[0]) else None
        entries.append({"chunk_bytes": len(data), "chunk_size": len(documents), "dim": dim, "filename": name})
    dtype = str(chunks[0][0].dtype) if chunks else "uint16"
    whole = {
        "compression": None,
        "data_format": [form or f"no_header_numpy:{NUMPY_CODES[dtype]}"],
        "encryption": None,
        "item_loader": "TokensLoader",
    }
    whole.update(config)
    (folder / "index.json").write_text(json.dumps({"chunks": entries, "config": whole}, sort_keys=True))


def mds_value(encoding: str, value: Any) -> bytes:
    """Return the bytes of a value of a column of MDS."""
    if encoding == "str":
        return bytes(value, "utf-8")
    if encoding == "bytes":
        return bytes(value)
    if encoding == "int":
        return struct.pack("<q", value)
    coded = bytes([DTYPE_CODES[str(value.dtype)]]) if encoding == "ndarray" else b""
    if encoding.count(":") == 2:
        return bytes(value.tobytes())
    kind = 0 if len(value) < 1 << 8 else 1 if len(value) < 1 << 16 else 2
    shape = len(value).to_bytes(1 << kind, "little")
    return coded + bytes([1 << 2 | kind]) + shape + bytes(value.tobytes())


def mds_size(encoding: str) -> int | None:
    """Return the number of bytes of the values of a column of MDS; None if they differ."""
    if encoding == "int":
        return 8
    kind, *parts = encoding.split(":")
    if kind != "ndarray" or len(parts) < 2:
        return None
    return int(np.prod([int(size) for size in parts[1].split(",")])) * np.dtype(parts[0]).itemsize


def write_mds(
    folder: Path,
    columns: Mapping[str, str],
    shards: Sequence[Sequence[Mapping[str, Any]]],
    **entry: Any,
) -> None:
    """Write shards of samples, as ``MDSWriter(columns=columns)`` does."""
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(columns)
    encodings = [columns[name] for name in names]
    sizes = [mds_size(encoding) for encoding in encodings]
    config = {
        "column_encodings": encodings,
        "column_names": names,
        "column_sizes": sizes,
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": 1 << 26,
        "version": 2,
    }
    text = json.dumps(config, sort_keys=True).encode()
    entries = []
    for number, samples in enumerate(shards):
        items = []
        for sample in samples:
            values = [
                mds_value(*each) for each in zip(encodings, map(sample.__getitem__, names), strict=True)
            ]
            head = [len(value) for value, size in zip(values, sizes, strict=True) if size is None]
            items.append(np.array(head, "<u4").tobytes() + b"".join(values))
        data = _with_offsets(items, text)
        name = f"shard.{number:05}.mds"
        (folder / name).write_bytes(data)
        raw = {"basename": name, "bytes": len(data), "hashes": {}}
        entries.append({**config, "raw_data": raw, "samples": len(samples), "zip_data": None, **entry})
    (folder / "index.json").write_text(json.dumps({"shards": entries, "version": 2}, sort_keys=True))


def write_forager(
    folder: Path,
    files: Mapping[str, Sequence[Mapping[str, NDArray[Any]]]],
    *,
    with_schema: bool = False,
) -> None:
    """Write samples, each a dict of arrays with ``tokens`` first, and the index over them."""
    places: list[tuple[int, int, int]] = []
    names: list[str] = []
    for name, samples in files.items():
        path = folder / "tokenized-samples" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pieces = [b"".join(array.tobytes() for array in sample.values()) for sample in samples]
        path.write_bytes(b"".join(pieces))
        start = 0
        for piece in pieces:
            places.append((len(names), start, len(piece)))
            start += len(piece)
        if pieces:
            names.append(f"tokenized-samples/{name}")
    index = folder / "index"
    index.mkdir()
    (index / "file_location.txt").write_text("".join(f"{name}\n" for name in names))
    (index / "sample_locations.bin").write_bytes(np.array(places, "<u8").tobytes())
    if with_schema:
        example = next(sample for samples in files.values() for sample in samples)
        (index / "sample_schema.json").write_text(json.dumps(forager_schema(example), indent=2))


def forager_schema(sample: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the schema of samples like this one."""
    arrays, offset = [], 0
    for name, array in sample.items():
        arrays.append({"name": name, "dtype": str(array.dtype), "offset": offset})
        offset += array.nbytes
    size = len(sample["tokens"])
    return {"sample_size": size, "arrays": arrays, "total_bytes_per_sample": offset}


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write tensors, as ``safetensors.numpy.save_file`` does."""
    codes = {"uint8": "U8", "int16": "I16", "uint16": "U16", "int32": "I32", "uint32": "U32", "int64": "I64"}
    codes["float32"] = "F32"
    header: dict[str, Any] = {}
    offset = 0
    for name, tensor in tensors.items():
        offsets = [offset, offset + tensor.nbytes]
        header[name] = {
            "dtype": codes[str(tensor.dtype)],
            "shape": list(tensor.shape),
            "data_offsets": offsets,
        }
        offset += tensor.nbytes
    text = json.dumps({"__metadata__": {"format": "np"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(tensor.tobytes() for tensor in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
