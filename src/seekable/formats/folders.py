"""Folders of other tools, recognised by the names in them; a folder of a format that is not read is refused.

One table has a line for each tool: the evidence, and what to do instead. When a format gets a reader, its
line goes. Evidence is a function of names that were listed anyway; where names leave a doubt, the first bytes
of one file are read.

A folder that is such a dataset is refused. The files of such a dataset in a subfolder are never data: where
some have the suffix of a format that is read, or there is nothing else, the subfolder is refused.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable.errors import SeekableError, UnsupportedFormat
from seekable.formats.lines import forager
from seekable.formats.shar import discovery
from seekable.formats.tokens.tokenizing.store_document import DOCUMENT, FACTS, TOKENIZER
from seekable.formats.unopened import unopened_suffix
from seekable.storage.compression import uncompressed_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from seekable.formats.tar import energon
    from seekable.formats.tokens import token_folders
    from seekable.storage import paths
    from seekable.storage.listing import Listing
else:
    energon = lazy("seekable.formats.tar.energon")
    paths = lazy("seekable.storage.paths")
    token_folders = lazy("seekable.formats.tokens.token_folders")

__all__ = ["OTHER_TOOLS", "TOKEN_LISTS", "Folder", "OtherTool", "inspect_folder", "of_one_kind"]

_PEEKED_BYTES = 1 << 16

TOKEN_LISTS = frozenset({"index.json", forager.INDEX})
"""The names of which one is in each folder of tokens whose own index lists its files."""

_FACTS = f".{FACTS}"
"""The suffix of a file that each part of a token store has."""

_OF_STORES = frozenset({DOCUMENT, TOKENIZER})
"""The names of files of a token store that have the suffix of lines."""

_DESCRIPTIONS = frozenset({"index.json", "sizes.json", "meta.json"})
"""The names of files that describe tar files: the index of wids, and those that other tools keep."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The names in one folder, by which the tool that wrote it is recognised."""

    path: str
    """The absolute path."""

    files: frozenset[str]
    """The names of its files, without those that are skipped because of their names."""

    inner: frozenset[str]
    """The names of its subfolders, and of all that is skipped; empty subfolders may be missing."""

    suffixes: frozenset[str]
    """The last suffixes of its files, in lower case."""

    data_suffixes: tuple[str, ...]
    """The suffixes of formats that are read, in lower case."""

    below: Callable[[str], Collection[str]]
    """Returns the names of the files in a subfolder."""

    @property
    def data(self) -> list[str]:
        """The names of its files that have the suffix of a format that is read."""
        return [name for name in self.files if name.lower().endswith(self.data_suffixes)]

    def has(self, pattern: str) -> bool:
        """Return True if an expression matches the name of a file from start to end."""
        return any(map(re.compile(pattern).fullmatch, self.files))

    def head(self, name: str) -> bytes:
        """Return the first bytes of a file in the folder; none if it is not there or cannot be read."""
        with suppress(OSError):
            if name in self.files:
                with paths.open_file(os.path.join(self.path, name)) as file:
                    return file.read(_PEEKED_BYTES) or b""
        return b""


@dataclass(frozen=True, slots=True)
class OtherTool:
    """One kind of dataset that another tool keeps in a folder."""

    name: str
    """The name of the dataset, as the object of a sentence."""

    is_one: Callable[[Folder], bool]
    """Returns True if a folder is such a dataset."""

    way_out: str
    """The advice; ``DIR`` stands for the folder."""

    planned: bool = True
    """True if a later version is to read it."""

    facts: Callable[[str], str] = lambda _: ""
    """Returns what the advice says besides of a folder, by its path."""

    def refusal(self, folder: str, data: Sequence[str]) -> UnsupportedFormat:
        """Return the error that names the folder.

        Args:
            folder: the absolute path of the dataset.
            data: the files in it that could be opened as something else.
        """
        message = (
            f"{folder!r} is {self.name}, which cannot be opened{' yet' if self.planned else ''}: "
            f"{self.way_out.replace('DIR', folder)}{self.facts(folder)}"
        )
        if data:
            message += "; to open some of its files for themselves, name them by a glob or a list"
        return UnsupportedFormat(message)


def _is_of_listed_tokens(folder: Folder) -> bool:
    """Return True for files of tokens that an index of LitData, MDS or Forager lists."""
    names = folder.files if forager.INDEX not in folder.inner else {*folder.files, forager.INDEX}
    if TOKEN_LISTS.isdisjoint(names):
        return False
    try:
        return token_folders.listed_tokens(folder.path, names) is not None
    except SeekableError:
        return True


def _is_forager_index(folder: Folder) -> bool:
    return os.path.basename(folder.path) == forager.INDEX and forager.NEEDED.issubset(folder.files)


def _is_shar(folder: Folder) -> bool:
    """Return True for cuts beside other fields; cuts alone are JSON lines."""
    cuts = {name for name in folder.files if name.startswith("cuts.")}
    return bool(cuts) and discovery.is_shar(folder.files) and cuts != folder.files


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


def _is_megatron(folder: Folder) -> bool:
    """Return True for tokens beside their index, as Megatron and fairseq write them."""
    if not folder.suffixes.issuperset((".bin", ".idx")):
        return False
    indexes = (f"{name[:-4]}.idx" for name in sorted(folder.files) if name.endswith(".bin"))
    first = next((name for name in indexes if name in folder.files), "")
    return folder.head(first).startswith((b"MMIDIDX\0\0", b"TNTIDX\0\0"))


def _is_iceberg(folder: Folder) -> bool:
    """Return True for data beside the metadata of its versions."""
    if not folder.inner.issuperset(("data", "metadata")):
        return False
    return any(name.endswith(".metadata.json") for name in folder.below("metadata"))


def _is_kaldi(folder: Folder) -> bool:
    """Return True for a script of features or audio beside a table of the same utterances."""
    return not folder.files.isdisjoint(("feats.scp", "wav.scp")) and not folder.files.isdisjoint(
        ("segments", "spk2utt", "text", "utt2spk")
    )


def _splits_of(folder: str) -> str:
    """Return the names of the splits of a dataset of Energon; nothing if they cannot be read."""
    try:
        splits = energon.splits_in_words(energon.read_energon(folder))
    except SeekableError:
        return ""
    return f"; there is {splits}"


def _to_sequence(reader: str) -> str:
    return f"read it with {reader}, and give that to sk.from_sequence(..., version=1)"


def _to_iterable(reader: str) -> str:
    return f"read it with {reader}, and give the items to sk.from_iterable"


OTHER_TOOLS = (
    OtherTool("a dataset of tokens, of LitData, MDS or Forager", _is_of_listed_tokens,
              "open it alone, as sk.open('DIR')", planned=False),
    OtherTool("the index of Forager, and no data", _is_forager_index,
              "open the folder with the files that it names in file_location.txt", planned=False),
    OtherTool("a folder of Lhotse Shar", _is_shar,
              "open its cuts, with all fields, as sk.open('shar:DIR')", planned=False),
    OtherTool("a dataset of Energon", lambda folder: ".nv-meta" in folder.inner,
              "open a split of it as megatron.energon does, sk.open('energon:DIR:SPLIT')", planned=False,
              facts=_splits_of),
    OtherTool("a dataset of MosaicML Streaming (MDS)", _is_mds,
              _to_sequence("streaming.StreamingDataset(local='DIR', batch_size=1)")),
    OtherTool("a dataset of LitData", _is_litdata, _to_sequence("litdata.StreamingDataset('DIR')")),
    OtherTool("a table of Lance", _is_lance,
              "write it once as Parquet; lance.dataset('DIR').to_batches() gives the rows"),
    OtherTool("an indexed dataset of Megatron or fairseq", _is_megatron,
              "open its tokens as sk.open('megatron:DIR')", planned=False),
    OtherTool("tokens of datatrove", lambda folder: ".ds" in folder.suffixes and folder.has(r".+\.ds\.index"),
              "open its tokens as sk.open('tokens:DIR')", planned=False),
    OtherTool("a data directory of Kaldi", _is_kaldi,
              "open its utterances, with all tables, as sk.open('kaldi:DIR')", planned=False),
    OtherTool("a table of Delta Lake", lambda folder: "_delta_log" in folder.inner,
              "its folder may also hold deleted rows. Open the files of its last version, "
              "sk.open(deltalake.DeltaTable('DIR').file_uris())", planned=False),
    OtherTool("a table of Iceberg", _is_iceberg,
              "its folder may also hold deleted rows. Open the files of its last version, which pyiceberg's "
              "table.scan().plan_files() names", planned=False),
    OtherTool("a table of Hudi", lambda folder: ".hoodie" in folder.inner,
              "its folder may also hold replaced rows. Open a list of the files of its last version",
              planned=False),
    OtherTool("a dataset of TensorFlow Datasets",
              lambda folder: folder.files.issuperset(("features.json", "dataset_info.json")),
              _to_sequence("tensorflow_datasets.data_source"), planned=False),
    OtherTool("arrays of Zarr",
              lambda folder: not {"zarr.json", ".zgroup", ".zarray"}.isdisjoint(folder.files | folder.inner),
              _to_sequence("zarr.open('DIR')"), planned=False),
)  # fmt: skip
"""The datasets that are recognised and not read; the first line that fits a folder gives the message."""


def inspect_folder(listing: Listing, *, refuse: bool) -> frozenset[str]:
    """Return the files below a folder that are never data, as those of an index that another tool wrote.

    Args:
        listing: the names below the folder.
        refuse: False to accept folders of other tools, because the user said what their files are.

    Raises:
        UnsupportedFormat: the folder, one below it, or each of its files is of a format that is not read.
    """
    files: dict[str, set[str]] = {"": set()}
    for name in listing.names:
        folder, _, base = name.rpartition(os.sep)
        files.setdefault(folder, set()).add(base)
    own = frozenset(
        os.path.join(folder, name)
        for folder, some in files.items()
        if some.issuperset(forager.NEEDED)
        and os.path.basename(os.path.join(listing.root, folder).rstrip(os.sep)) == forager.INDEX
        for name in forager.NAMES
    ) | frozenset(
        os.path.join(folder, name)
        for folder, some in files.items()
        if not some.isdisjoint(_OF_STORES) and any(name.endswith(_FACTS) for name in some)
        for name in some.intersection(_OF_STORES)
    )
    if refuse:
        data = [name for name in listing.data if name not in own] if own else listing.data
        found = _recognised(listing, files)
        for folder, tool in found.items():
            inside = [name for name in data if not folder or name.startswith(folder + os.sep)]
            if inside or not folder or not data:
                raise tool.refusal(os.path.join(listing.root, folder) if folder else listing.root, inside)
        if not data:
            _refuse_files(listing, own)
    return own


def of_one_kind(names: Sequence[str], format_name: str | None = None) -> Sequence[str]:
    """Return the tar files of a folder, or its other files of data.

    Files beside tar files are facts about the shards if each has the name of a numbered shard at its
    beginning, or describes all of them; the tar files are the dataset then. Else they are a list of what is
    in the tar files, a manifest say, and are the dataset themselves.

    Args:
        names: the files of known suffixes.
        format_name: the format that the user named.

    Example:
        >>> of_one_kind(["0.tar", "0_stats.json", "1.tar"]), of_one_kind(["audio_0.tar", "cuts.jsonl"])
        (['0.tar', '1.tar'], ['cuts.jsonl'])
    """
    ends = {name[-8:] for name in names}  # No end of an archive is longer than ``.tar.zst``.
    tars = [name for name in names if _is_tar(name)] if any(map(_is_tar, ends)) else []
    if not tars or len(tars) == len(names):
        return names
    others = [name for name in names if not _is_tar(name)]
    if format_name is not None:
        return tars if format_name.partition("-")[0] == "tar" else others
    stems = (os.path.splitext(uncompressed_name(name))[0] for name in tars)
    numbered = tuple(stem for stem in stems if stem[-1:].isdigit())
    beside = all(name.startswith(numbered) or os.path.basename(name) in _DESCRIPTIONS for name in others)
    return tars if beside else others


def _is_tar(name: str) -> bool:
    """Return True if a file is an archive by its name, compressed or not."""
    return uncompressed_name(name.lower()).endswith(".tar")


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
            listing.suffixes,
            partial(_names, listing, files, name),
        )
        if tool := next((tool for tool in OTHER_TOOLS if tool.is_one(folder)), None):
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
