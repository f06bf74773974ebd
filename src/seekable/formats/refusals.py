"""Data that cannot be opened: folders of other tools, suffixes, specs, addresses, each with the way out.

A folder is recognised by the names in it, which were listed anyway; where they leave a doubt, the first bytes
of one file are read. Formats that read datasets of other tools as a whole recognise those themselves
(`Format.foreign`), and are asked where a folder has a mark of their card.

A folder that is such a dataset is refused. The files of such a dataset in a subfolder are never data: where
some have the suffix of a format that is read, or there is nothing else, the subfolder is refused. A line
leaves the tables when a reader of its format comes.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable._log import LOG
from seekable.errors import UnsupportedFormat
from seekable.formats.look import Folder, OtherTool
from seekable.formats.table import cards_at, format_class

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from seekable.formats.contract import Format
    from seekable.storage import paths
    from seekable.storage.listing import FoundFiles, Listing
else:
    paths = lazy("seekable.storage.paths")

__all__ = [
    "NO_WAY_IN",
    "OTHER_TOOLS",
    "Unopened",
    "refuse_parts_of_tables",
    "refuse_unopened",
    "unopened_suffix",
    "without_other_tools",
    "without_their_files",
]

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


def _is_mds(folder: Folder) -> bool:
    """Return True for an index of shards, also of none, and for shards without an index."""
    head = folder.head("index.json")
    if b'"shards"' in head and re.search(rb'"format"\s*:\s*"(mds|json|csv|tsv|xsv)"', head):
        return True
    if b'"version"' in head and re.search(rb'"shards"\s*:\s*\[\s*\]', head):
        return True
    return not folder.suffixes.isdisjoint((".mds", ".zstd", ".br", ".snappy")) and folder.has(
        r"shard\.\d+\.mds(\.\w+)?"
    )


def _is_litdata(folder: Folder) -> bool:
    """Return True for an index of chunks, and for chunks without an index."""
    head = folder.head("index.json")
    if b'"chunks"' in head and (b'"chunk_bytes"' in head or b'"data_format"' in head):
        return True
    return ".bin" in folder.suffixes and folder.has(r"chunk-\d+-\d+(\.\w+)?\.bin")


def _is_lance(folder: Folder) -> bool:
    """Return True for versions of a table beside its data."""
    if "_versions" not in folder.inner:
        return False
    named = folder.path.lower().endswith(".lance") or "_transactions" in folder.inner
    return named or any(name.endswith(".lance") for name in folder.below("data"))


def _is_iceberg(folder: Folder) -> bool:
    """Return True for data beside the metadata of its versions."""
    if not folder.inner.issuperset(("data", "metadata")):
        return False
    return any(name.endswith(".metadata.json") for name in folder.below("metadata"))


def _to_sequence(reader: str) -> str:
    return f"read it with {reader}, and give that to sk.from_sequence(..., version=1)"


OTHER_TOOLS: tuple[tuple[OtherTool, Callable[[Folder], bool]], ...] = (
    (OtherTool("a dataset of MosaicML Streaming (MDS)",
               _to_sequence("streaming.StreamingDataset(local='DIR', batch_size=1)"), planned=True), _is_mds),
    (OtherTool("a dataset of LitData", _to_sequence("litdata.StreamingDataset('DIR')"), planned=True),
     _is_litdata),
    (OtherTool("a table of Lance",
               "write it once as Parquet; lance.dataset('DIR').to_batches() gives the rows", planned=True),
     _is_lance),
    (OtherTool("a table of Delta Lake",
               "its folder may also hold deleted rows. Open the files of its last version, "
               "sk.open(deltalake.DeltaTable('DIR').file_uris())", keeps_old_rows=True),
     lambda folder: "_delta_log" in folder.inner),
    (OtherTool("a table of Iceberg",
               "its folder may also hold deleted rows. Open the files of its last version, which pyiceberg's "
               "table.scan().plan_files() names", keeps_old_rows=True), _is_iceberg),
    (OtherTool("a table of Hudi",
               "its folder may also hold replaced rows. Open a list of the files of its last version",
               keeps_old_rows=True),
     lambda folder: ".hoodie" in folder.inner),
    (OtherTool("a dataset of TensorFlow Datasets", _to_sequence("tensorflow_datasets.data_source")),
     lambda folder: folder.files.issuperset(("features.json", "dataset_info.json"))),
    (OtherTool("arrays of Zarr", _to_sequence("zarr.open('DIR')")),
     lambda folder: not {"zarr.json", ".zgroup", ".zarray"}.isdisjoint(folder.files | folder.inner)),
)  # fmt: skip
"""The datasets that are recognised and not read; the first line that fits a folder gives the message."""


def without_other_tools(listing: Listing) -> frozenset[str]:
    """Return the files of a folder that belong to the index of another tool, and so are never data.

    Raises:
        UnsupportedFormat: the folder, one below it, or each of its files is of a format that is not read.
    """
    files = _by_folder(listing)
    own = _never_data(listing, files)
    data = [name for name in listing.data if name not in own] if own else listing.data
    found = _recognised(listing, files)
    for folder, tool in found.items():
        inside = [name for name in data if not folder or name.startswith(folder + os.sep)]
        if inside or not folder or not data:
            raise tool.refusal(os.path.join(listing.root, folder) if folder else listing.root, inside)
    if not data:
        _refuse_files(listing, own)
    _tell_of_left_out(listing)
    return own


def _tell_of_left_out(listing: Listing) -> None:
    """Log the files of a folder that would be data if they were not compressed in a way without a middle."""
    left = [
        name
        for name in (listing.names if listing.whole else ())
        if name.endswith(NO_WAY_IN) and os.path.splitext(name)[0].lower().endswith(listing.suffixes)
    ]
    if left:
        more = f" and {len(left) - 1:,} more" if len(left) > 1 else ""
        LOG.warning(
            "%r in %r%s cannot be opened and is left out, because such compression has no cheap way to its "
            "middle: compress it with gzip or zstd",
            left[0],
            listing.root,
            more,
        )


def refuse_parts_of_tables(found: Sequence[FoundFiles]) -> None:
    """Refuse files of a glob or a folder that lie in a table whose files may hold rows that it lost.

    Args:
        found: the files; the folders of the first one of each run are looked at, those of this machine alone.

    Raises:
        UnsupportedFormat: they are a part of such a table.
    """
    for run in found:
        path = os.path.join(run.root, run.names[0])
        while "://" not in path and os.path.dirname(path) != path:
            path = os.path.dirname(path)
            if tool := _table_at(path):
                raise tool.refusal(path, run.names)


def _table_at(path: str) -> OtherTool | None:
    """Return the table with old rows that a folder is; its files need not be listed to see it."""
    marks = ("_delta_log", ".hoodie", "data", "metadata")
    inner = frozenset(name for name in marks if os.path.isdir(os.path.join(path, name)))

    def below(name: str) -> Collection[str]:
        with suppress(OSError):
            return os.listdir(os.path.join(path, name))
        return ()

    folder = Folder(path, frozenset(), inner, frozenset(), below)
    tools = (tool for tool, is_one in OTHER_TOOLS if inner and tool.keeps_old_rows and is_one(folder))
    return next(tools, None)


def without_their_files(listing: Listing) -> frozenset[str]:
    """Return the files of a folder that belong to the index of another tool, whatever the folder is."""
    return _never_data(listing, _by_folder(listing))


def _by_folder(listing: Listing) -> dict[str, set[str]]:
    files: dict[str, set[str]] = {"": set()}
    for name in listing.names:
        folder, _, base = name.rpartition(os.sep)
        files.setdefault(folder, set()).add(base)
    return files


def _never_data(listing: Listing, files: Mapping[str, set[str]]) -> frozenset[str]:
    """Return the indexes that other tools have written, which formats know by a mark."""
    never: set[str] = set()
    for folder, names in files.items():
        for form in _formats_at(names):
            last = os.path.basename(os.path.join(listing.root, folder).rstrip(os.sep))
            never.update(os.path.join(folder, name) for name in form.never_data(last, names))
    return frozenset(never)


def _formats_at(names: Collection[str]) -> Iterator[type[Format]]:
    """Yield the formats that have a mark among the names in a folder."""
    yield from map(format_class, cards_at(names))


def _tool_of(folder: Folder) -> OtherTool | None:
    """Return the dataset of another tool that a folder is, read or not; None for a plain folder."""
    for form in _formats_at(folder.files | folder.inner):
        if tool := form.foreign(folder):
            return tool
    return next((tool for tool, is_one in OTHER_TOOLS if is_one(folder)), None)


def _recognised(listing: Listing, files: Mapping[str, set[str]]) -> dict[str, OtherTool]:
    """Return the datasets of other tools, by folder; what is inside of one is left out."""
    inner = _inner([*files, *listing.passed])
    found: dict[str, OtherTool] = {}
    # A folder comes before those in it.
    for name in sorted(files.keys() | inner.keys()):
        if found and any(part in found for part in _ancestors(name)):
            continue
        folder = Folder(
            os.path.join(listing.root, name) if name else listing.root,
            frozenset(files.get(name, ())),
            frozenset(inner.get(name, ())),
            frozenset(map(str.lower, {each[each.rfind(".") :] for each in files.get(name, ())})),
            partial(_names, listing, files, name),
        )
        if tool := _tool_of(folder):
            found[name] = tool
    return found


def _refuse_files(listing: Listing, own: frozenset[str]) -> None:
    """Refuse a folder without data by the suffixes of its files, if one of them is known.

    Raises:
        UnsupportedFormat: some file has the suffix of a format that is not read.
    """
    examples = {name[name.rfind(".") :].lower(): name for name in listing.names if name not in own}
    for name in examples.values():
        if unopened := unopened_suffix(name):
            message = (
                f"the folder {listing.root!r} has no data file that can be opened; {name!r} in it is "
                f"{unopened.what}, {unopened.refusal}"
            )
            raise UnsupportedFormat(message)


def _names(listing: Listing, files: Mapping[str, set[str]], parent: str, name: str) -> Collection[str]:
    """Return the names of the files in a subfolder, which is listed now if a glob did not go into it."""
    folder = os.path.join(parent, name)
    if folder in files or listing.whole:
        return files.get(folder, ())
    with suppress(OSError):
        return paths.list_folder(os.path.join(listing.root, folder))
    return ()


def _inner(paths: Iterable[str]) -> dict[str, set[str]]:
    """Return the last names of paths by the folder that they are in, and those of the folders above them."""
    inner: dict[str, set[str]] = {}
    for path in paths:
        name = path
        while name:
            folder, _, base = name.rpartition(os.sep)
            known = inner.setdefault(folder, set())
            if base in known:
                break
            known.add(base)
            name = folder
    return inner


def _ancestors(folder: str) -> Iterator[str]:
    """Yield the folders above a folder, the next one first, the root as an empty name last."""
    while folder:
        folder = folder.rpartition(os.sep)[0]
        yield folder
