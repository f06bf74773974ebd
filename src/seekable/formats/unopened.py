"""Suffixes of files, specs and addresses that cannot be opened, each with its name and the way out.

A line leaves the table when a reader of its format comes.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from seekable.errors import UnsupportedFormat

__all__ = ["NO_WAY_IN", "Unopened", "refuse_unopened", "unopened_suffix"]

NO_WAY_IN = (".bz2", ".tbz2", ".xz", ".txz", ".lz4", ".zip")
"""The suffixes of compressed files that can only be read from their start."""

_TO_JSONL = "write it once as .jsonl or .parquet, which are opened"
_TO_PARQUET = "write it once as Parquet, which is opened"
_ITERATE = "read it with {reader}, and give the items to sk.from_iterable"
_RANDOM = "read it with {reader}, and give that to sk.from_sequence"
_LIST = (
    "list the files with their facts in a .jsonl or .parquet file, open that, and read the files in ds.map"
)


@dataclass(frozen=True, slots=True)
class Unopened:
    """A format, a spec or an address that cannot be opened."""

    marks: tuple[str, ...]
    """The suffixes of names, in lower case, or the schemes of specs and addresses."""

    what: str
    """The name of the format, as the object of a sentence."""

    way_out: str
    """The advice, after which data can be opened."""

    ever: bool = True
    """False for what will not be opened in a later version either."""

    @property
    def refusal(self) -> str:
        """The end of the message: that it cannot be opened, and what to do."""
        return f"which cannot be opened{' yet' if self.ever else ''}; {self.way_out}"


_SUFFIXES = (
    Unopened((".mds", ".mds.zstd", ".mds.zst"), "a shard of MosaicML Streaming (MDS)",
             "if it has tokens and is not compressed, open the folder of its index.json; else read it with "
             "streaming.StreamingDataset, and give that to sk.from_sequence", ever=False),
    Unopened((".lance",), "a file of Lance", _TO_PARQUET),
    Unopened((".bin", ".npy", ".ds"), "a file of tokens or of other numbers",
             "if it has tokens, open it as sk.open('tokens:PATH'), with format=sk.formats.Tokens(dtype=) "
             "where files do not say it",
             ever=False),
    Unopened((".idx",), "an index of other files, as of Megatron", "open the .bin beside it", ever=False),
    Unopened((".ds.index", ".ds.metadata", ".ds.loss"), "a file beside tokens of datatrove",
             "open the .ds that it belongs to", ever=False),
    Unopened((".npz",), "an archive of numpy", "give one array of numpy.load(path) to sk.from_sequence",
             ever=False),
    Unopened((".tfrecord", ".tfrecords", ".array_record", ".arrayrecord"),
             "a file of TFRecord or ArrayRecord", _ITERATE.format(reader="tensorflow or array_record")),
    Unopened((".avro",), "a file of Avro", _TO_JSONL),
    Unopened((".orc",), "a file of ORC", "write it once as Parquet, with pyarrow.orc and pyarrow.parquet"),
    Unopened((".h5", ".hdf5", ".zarr"), "arrays of HDF5 or Zarr", _RANDOM.format(reader="h5py or zarr")),
    Unopened((".safetensors",), "a file of safetensors",
             "if it has rows of tokens, name it: sk.open('PATH.safetensors'); else read it with "
             "safetensors.safe_open, and give that to sk.from_sequence", ever=False),
    Unopened((".wav", ".flac", ".mp3", ".opus", ".ogg", ".m4a", ".sph"), "a piece of audio", _LIST),
    Unopened((".jpg", ".jpeg", ".png", ".webp", ".gif", ".tif", ".tiff", ".mp4", ".webm"),
             "an image or a video", _LIST),
    Unopened((".xml", ".html", ".yaml", ".yml", ".toml", ".md", ".pdf"), "one document, and no records",
             f"{_LIST}; format='text' opens the lines of such a file", ever=False),
    Unopened((".xlsx", ".xls", ".ods"), "a spreadsheet", "save it as .csv, which is opened", ever=False),
    Unopened((".db", ".sqlite", ".sqlite3", ".mdb", ".lmdb", ".duckdb"), "a database", _TO_PARQUET,
             ever=False),
    Unopened(NO_WAY_IN, "a compressed file without a cheap way to its middle",
             "decompress it once, or compress it with gzip or zstd", ever=False),
    Unopened((".pkl", ".pickle", ".pt", ".pth"), "a pickle, which could run any code",
             "load it where you trust it, and write its records as .jsonl or .parquet", ever=False),
)  # fmt: skip

_SCHEMES = (
    Unopened(("shar",), "a folder of Lhotse Shar",
             "whose cuts are read in any order: sk.open('shar:DIR'), and its stream() if one is needed",
             ever=False),
    Unopened(("megatron", "tokens"), "a dataset of tokens",
             "whose documents are read in any order: sk.open('megatron:PREFIX') or sk.open('tokens:PATH'), "
             "and its stream() if one is needed", ever=False),
    Unopened(("wds", "webdataset"), "WebDataset", "write the paths of its tar files alone, 'shards/*.tar'",
             ever=False),
    Unopened(("mds", "litdata", "forager"), "a dataset of another tool",
             "if it has tokens, write the path of its folder alone, sk.open('DIR'); else "
             f"{_RANDOM.format(reader='streaming, litdata or data_forager')}", ever=False),
    Unopened(("lance",), "a dataset of Lance", _RANDOM.format(reader="lance")),
    Unopened(("wasb", "wasbs"), "an address of Azure in an old form", "write az://CONTAINER/KEY",
             ever=False),
    Unopened(("r2",), "a bucket of Cloudflare R2",
             "write s3://BUCKET/KEY with "
             "sk.Storage(options={'endpoint': 'https://ACCOUNT.r2.cloudflarestorage.com'})",
             ever=False),
    Unopened(("pipe",), "a command",
             "sk.open_stream('COMMAND |', allow_pipes=True) reads lines of it; open copies of tar files",
             ever=False),
)  # fmt: skip

_STORES = frozenset({"s3", "gs", "gcs", "az", "abfs", "abfss", "http", "https"})
"""The schemes of addresses."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/{0,2})")
"""A scheme has two letters at least, because one letter is a drive of Windows."""


def unopened_suffix(name: str) -> Unopened | None:
    """Return the format that a file has by the end of its name, if it is known and cannot be opened.

    Example:
        >>> unopened_suffix("a/SHARD-000.MDS").what
        'a shard of MosaicML Streaming (MDS)'
        >>> unopened_suffix("a.jsonl") is None
        True
    """
    lower = os.path.basename(name).lower()
    return next((line for line in _SUFFIXES if lower.endswith(line.marks)), None)


def refuse_unopened(source: str) -> None:
    """Raise an error for a spec or an address that cannot be opened; a path that exists is neither.

    Raises:
        UnsupportedFormat: the text before the colon is that of such a spec or address.

    Example:
        >>> refuse_unopened("corpus/*.jsonl")
        >>> refuse_unopened("wds:shards.tar")
        Traceback (most recent call last):
        ...
        seekable.errors.UnsupportedFormat: 'wds:shards.tar' names WebDataset, which cannot be opened; ...
    """
    found = _SCHEME.match(source)
    if found is None or os.path.lexists(source):
        return
    scheme, slashes = found.group(1).lower(), found.group(2)
    for line in _SCHEMES:
        if scheme in line.marks:
            message = f"{source!r} names {line.what}, {line.refusal}"
            raise UnsupportedFormat(message)
    if scheme == "file" and slashes:
        message = f"{source!r} is an address; write the path alone: {_path_of(source)!r}"
        raise UnsupportedFormat(message)
    if scheme in _STORES and slashes != "//":
        address = f"{scheme}://{source[found.end() :]}"
        message = (
            f"{source!r} is no address, which begins with {scheme}://, and no file that is there; write "
            f"{address!r}"
        )
        raise UnsupportedFormat(message)


def _path_of(address: str) -> str:
    rest = address.partition(":")[2]
    return "/" + rest.removeprefix("//localhost").lstrip("/")
