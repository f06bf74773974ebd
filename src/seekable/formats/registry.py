"""The formats by name and by suffix, and the one protocol by which each builds the source of its records.

A format is one line of the table below, and one module or folder of its own. The line names its scanner and
the builder of its node by dotted paths. Both are imported when data of the format is opened.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from seekable._lazy import lazy
from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.finding import find_files
from seekable.formats.source_options import SourceOptions
from seekable.storage.compression import COMPRESSED, compression_of, uncompressed_name
from seekable.storage.listing import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable.formats import folders, hub_folders, unopened
    from seekable.formats.source_options import Pipes
    from seekable.index.fileset import FileSet
    from seekable.index.surveyor import Finder
    from seekable.storage.listing import Asked, FoundFiles, Listing
else:
    folders = lazy("seekable.formats.folders")
    hub_folders = lazy("seekable.formats.hub_folders")
    unopened = lazy("seekable.formats.unopened")

__all__ = [
    "FORMATS",
    "SUFFIXES",
    "Format",
    "HolderFinder",
    "SourceBuilder",
    "find_data",
    "format_named",
    "format_of",
    "format_of_all",
    "refuse_copies",
    "without_other_tools",
    "without_their_files",
]


class SourceBuilder(Protocol):
    """Builds the node that reads the records of indexed files of one format."""

    def __call__(self, form: Format, options: SourceOptions) -> Callable[[FileSet], Any]:
        """Return a function from indexed files to their source, a leaf of the graph of nodes.

        The options are checked here: a wrong one is refused before a file is indexed.

        Args:
            form: the format.
            options: the arguments of the user for its records.

        Raises:
            InvalidArgument: an option breaks a rule, or is for formats of another kind.
            WrongType: an option is of the wrong type.
        """


class HolderFinder(Protocol):
    """Finds the holder of a format whose name alone does not say where records start."""

    def __call__(self, form: Format, holder: object, found: Sequence[FoundFiles], pipes: Pipes) -> Format:
        """Return the format with its holder.

        Args:
            form: the format without a holder.
            holder: what the user named as the holder; None to find it from the files.
            found: the files.
            pipes: ``"allow"`` runs commands that the files contain, to find it.

        Raises:
            InvalidArgument: there is no such holder, or the files can be of several.
        """


@dataclass(frozen=True, slots=True)
class Format:
    """A format of data files."""

    name: str
    """The name that users write: ``format="jsonl"``."""

    suffixes: tuple[str, ...]
    """The ends of the names of its files, in lower case."""

    finder: str
    """The class of what finds its records, ``module:name``; it is made of the format's name and holder."""

    builder: str
    """The `SourceBuilder` of its records, ``module:name``."""

    decode: str
    """The decoding of its records by default."""

    compressible: bool = False
    """True if files of it may be compressed as a whole, and end with ``.gz`` or ``.zst``."""

    multiline: bool = False
    """True if a record may be several lines of a file."""

    holder_finder: str = ""
    """The `HolderFinder` of a format that needs a holder, ``module:name``; empty if it needs none."""

    holder: Any = None
    """The holder that reads the objects of Kaldi's tables; None before it is found, and for others."""

    key: str = ""
    """The field that is the key of records where the user names none; empty for no keys."""

    has_keys: bool = False
    """True if all records have keys, whatever columns are read, without being read for them."""

    variants: str = ""
    """A function from options to the name of the format with those that decide where records start,
    ``module:name``; empty if no options do."""

    named_suffixes: tuple[str, ...] = ()
    """The ends of names, in lower case, that decide the format of a file that the user names. In folders they
    decide nothing, because files of other data may have them too."""

    names_commands: bool = False
    """True if its files name commands, so that ``pipes`` means something, without a holder_finder."""

    finds_again: str = "seekable.formats.lines.line_source:found_again"
    """The function behind `found_again`, ``module:name``."""

    saved_decoder: str = "seekable.formats.lines.line_source:decoder_from_json"
    """The function behind `decoder_from_json`, ``module:name``."""

    @property
    def scanner(self) -> Finder:
        """The scanner that finds the records in its files; of tables, the format that reads them too."""
        made_of = (self.name,) if self.holder is None else (self.name, self.holder)
        found: Finder = _imported(self.finder)(*made_of)
        return found

    def resolved(self, options: SourceOptions, found: Sequence[FoundFiles]) -> Format:
        """Return the format with all that decides where records start: of Kaldi's tables, with their holder.

        Args:
            options: the arguments of the user.
            found: the files; the holder is found from their first entries if the user named none.

        Raises:
            InvalidArgument: the files can be of several holders, or the options are of another format.
            WrongType: ``holder`` is of another type.
        """
        if self.name.partition("-")[0] != "tokens":
            options.refuse_those_of_tokens(self.name)
        if not self.multiline:
            options.refuse_those_of_csv(self.name)
        if self.variants and options.holder is None and options.pipes == "refuse":
            variant: Callable[[SourceOptions, str], str] = _imported(self.variants)
            return replace(self, name=variant(options, self.name))
        if not self.variants:
            options.refuse_those_of_archives(self.name)
            options.refuse_those_of_tokens(self.name)
        if not self.holder_finder:
            has_pipes = options.pipes != "refuse" and not self.names_commands
            if options.holder is not None or has_pipes:
                name = "pipes" if options.holder is None else "holder"
                message = f"{name}= is for Kaldi's tables (ark, scp), and this is {self.name}: drop it"
                raise InvalidArgument(message)
            return self
        if self.holder is not None and options.holder is None:
            return self
        return self.with_holder(options.holder, found, options.pipes)

    def with_holder(
        self, holder: object, found: Sequence[FoundFiles] = (), pipes: Pipes = "refuse"
    ) -> Format:
        """Return the format with a holder; see `HolderFinder`."""
        holder_finder: HolderFinder = _imported(self.holder_finder)
        return holder_finder(self, holder, found, pipes)

    def decoder_from_json(self, said: Mapping[str, Any], given: object, where: str) -> Any:
        """Return the decoder that a pipeline file has; see ``Decoder.from_json``."""
        return _imported(self.saved_decoder)(self, said, given, where)

    def source(self, options: SourceOptions) -> Callable[[FileSet], Any]:
        """Return a function from indexed files to the node that reads them; see `SourceBuilder`."""
        builder: SourceBuilder = _imported(self.builder)
        return builder(self, options)

    def found_again(self, files: FileSet, described: Mapping[str, Any], shown: str) -> Any:
        """Return the source of a described one whose files were found, for the places of its records.

        Args:
            files: the files, as their index has them.
            described: the description of the source.
            shown: the data as the user names it.
        """
        made: Callable[[Format, FileSet, Mapping[str, Any], str], Any] = _imported(self.finds_again)
        return made(self, files, described, shown)


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


_CSV = "seekable.formats.lines.csv:CsvScanner"
_DIALECTS = "seekable.formats.lines.csv_dialect:csv_variant"
_LINES = "seekable.formats.lines.line_source:line_source"
_TABLES = "seekable.formats.tables.tables:table_source"
_TABLES_AGAIN = "seekable.formats.tables.tables:found_again"
_ENTRIES = "seekable.formats.kaldi.entry_source:entry_source"
_SAVED_ENTRIES = "seekable.formats.kaldi.entry_source:decoder_from_json"
_HOLDER = "seekable.formats.kaldi.holder_detection:with_holder"

FORMATS = MappingProxyType(
    {
        form.name: form
        for form in (
            Format("jsonl", (".jsonl", ".ndjson", ".json"), "seekable.formats.lines.jsonl:JsonlScanner",
                   _LINES, "json", compressible=True),
            Format("text", (".txt",), "seekable.formats.lines.text:TextScanner", _LINES, "text",
                   compressible=True),
            Format("csv", (".csv",), _CSV, _LINES, "csv", compressible=True, multiline=True,
                   variants=_DIALECTS),
            Format("tsv", (".tsv",), _CSV, _LINES, "tsv", compressible=True, multiline=True,
                   variants=_DIALECTS),
            Format("csv-semicolon", (), _CSV, _LINES, "csv-semicolon", compressible=True,
                   multiline=True, variants=_DIALECTS),
            Format("parquet", (".parquet", ".pq"), "seekable.formats.tables.parquet.format:ParquetFormat",
                   _TABLES, "python", finds_again=_TABLES_AGAIN),
            Format("arrow", (".arrow", ".feather", ".ipc"),
                   "seekable.formats.tables.arrow.format:ArrowFormat", _TABLES, "python",
                   finds_again=_TABLES_AGAIN),
            Format("ark", (".ark",), "seekable.formats.kaldi.archive_scanner:ArchiveScanner", _ENTRIES,
                   "kaldi", compressible=True, holder_finder=_HOLDER, saved_decoder=_SAVED_ENTRIES),
            Format("scp", (".scp",), "seekable.formats.kaldi.script_lines:ScriptScanner", _ENTRIES, "kaldi",
                   compressible=True, holder_finder=_HOLDER, saved_decoder=_SAVED_ENTRIES),
            Format("kaldi-directory", (), "seekable.formats.lines.text:TextScanner",
                   "seekable.formats.kaldi.utterance_source:utterance_source", "kaldi-directory", key="key",
                   names_commands=True,
                   saved_decoder="seekable.formats.kaldi.utterance_source:decoder_from_json"),
            Format("tar", (".tar", ".tgz"), "seekable.formats.tar.tar_format:TarSurveyor",
                   "seekable.formats.tar.sample_source:sample_source", "fields", compressible=True,
                   key="__key__", has_keys=True, variants="seekable.formats.tar.tar_format:tar_variant",
                   finds_again="seekable.formats.tar.sample_source:found_again"),
            Format("tokens", (), "seekable.formats.tokens.families.by_family:TokenSurveyor",
                   "seekable.formats.tokens.source.token_source:token_source", "arrays",
                   variants="seekable.formats.tokens.options:token_variant",
                   finds_again="seekable.formats.tokens.source.token_source:found_again",
                   named_suffixes=(".bin", ".ds", ".npy", ".mds", ".safetensors")),
        )
    }
)  # fmt: skip
"""All formats that there are, by name."""

SUFFIXES = tuple(
    suffix + more
    for form in FORMATS.values()
    for suffix in form.suffixes
    for more in ("", *(f".{kind}" for kind in COMPRESSED if form.compressible and not compression_of(suffix)))
)
"""The ends of the names of data files."""


def find_data(asked: Asked, *, format_name: str | None = None) -> tuple[FoundFiles, ...]:
    """Return the data files of a path, a folder, a glob, or a list of those.

    Args:
        asked: the path, folder, glob or list.
        format_name: the format that the user gave; with one, folders of other tools are taken for plain ones.

    Raises:
        DataNotFound: nothing is there, or no file is.
        AccessDenied: this user may not look there.
        UnsupportedFormat: a folder holds several datasets, and the path names none of them; or it is a
            dataset of another tool, which is not read.
        WrongType: something that is neither a path nor a list of paths.
    """
    inspect = without_other_tools if format_name is None else without_their_files

    def arranged(folder: str, names: Sequence[str]) -> Sequence[str]:
        return hub_folders.data_files(folder, folders.of_one_kind(names, format_name))

    return find_files(asked, suffixes=SUFFIXES, inspect=inspect, arrange=arranged, kind=format_name or PLAIN)


def without_other_tools(listing: Listing) -> frozenset[str]:
    """Return the files of a folder that belong to the index of another tool, and so are never data.

    Raises:
        UnsupportedFormat: the folder is a dataset of another tool, which is not read.
    """
    return folders.inspect_folder(listing, refuse=True)


def without_their_files(listing: Listing) -> frozenset[str]:
    """Return the files of a folder that belong to the index of another tool, whatever the folder is."""
    return folders.inspect_folder(listing, refuse=False)


def format_of(name: str) -> Format:
    """Return the format of a file by its name.

    Raises:
        UnsupportedFormat: the name ends as that of no known format.

    Example:
        >>> format_of("web/part-0001.JSONL").name
        'jsonl'
        >>> format_of("web/part-0001.txt.gz").name
        'text'
    """
    lower = name.lower()
    content = uncompressed_name(lower)
    for form in FORMATS.values():
        own = (*form.suffixes, *form.named_suffixes)
        if lower.endswith(own) or (form.compressible and content.endswith(own)):
            return form
    suffix = os.path.splitext(lower)[1]
    if suffix in unopened.NO_WAY_IN:
        raise UnsupportedFormat(
            f"{name!r} is compressed by its name ({suffix}), and such a file has no cheap way to its "
            f"middle; decompress it once, or compress it with gzip or zstd. Known suffixes: "
            f"{', '.join(SUFFIXES)}"
        )
    known = unopened.unopened_suffix(name)
    named = f"{name!r} is {known.what}, {known.refusal}. It" if known else f"{name!r}"
    raise UnsupportedFormat(
        f"{named} has the suffix of no known format; known suffixes are {', '.join(SUFFIXES)}. "
        f"Say what it is with format=, one of {', '.join(map(repr, FORMATS))}"
    )


def format_named(name: str) -> Format:
    """Return the format that a user names with ``format=``: of Kaldi's tables maybe with a holder.

    Raises:
        InvalidArgument: no format, or no holder, has this name.

    Example:
        >>> format_named("ark-int32-vector").holder.name
        'int32-vector'
    """
    if name in FORMATS:
        return FORMATS[name]
    base, dash, holder = name.partition("-")
    if dash and base in FORMATS and FORMATS[base].holder_finder:
        return FORMATS[base].with_holder(holder)
    if dash and base in FORMATS and FORMATS[base].variants:
        variant: Callable[[SourceOptions, str], str] = _imported(FORMATS[base].variants)
        return replace(FORMATS[base], name=variant(SourceOptions(shown=""), name))
    raise InvalidArgument(f"format must be one of {', '.join(map(repr, FORMATS))}; got {name!r}")


def format_of_all(found: Sequence[FoundFiles]) -> Format:
    """Return the one format of all files.

    Raises:
        UnsupportedFormat: a suffix is not known, or there is more than one format.
    """
    formats: dict[str, tuple[Format, str]] = {}
    for run in found:
        # Most names have one end; the rest of the work is done once for each.
        ends = {name.rpartition(".")[2]: name for name in run.names}
        alike = ends.values() if not any(map(compression_of, ends.values())) else run.names
        for suffix, name in {_suffix(name): name for name in alike}.items():
            form = format_of(name if suffix else os.path.basename(name))
            formats.setdefault(form.name, (form, name))
    if len(formats) > 1:
        examples = ", ".join(f"{form.name} ({name})" for form, name in formats.values())
        way_out = "Scripts name entries of archives, so open one kind: 'scp:PATH' or 'ark:PATH'"
        if formats.keys() != {"ark", "scp"}:
            way_out = "Open them apart and combine them with sk.concat or sk.mix, or say what all are with "
            way_out += "format="
        what = f"a dataset has one format, and here there are {len(formats)}: {examples}"
        raise UnsupportedFormat(f"{what}. {way_out}")
    (form, _), *_ = formats.values()
    return form


def _suffix(name: str) -> str:
    """Return the suffix that decides the format, in lower case; of compressed files both suffixes."""
    stem, suffix = os.path.splitext(name)
    return (os.path.splitext(stem)[1] + suffix if compression_of(name) else suffix).lower()


def refuse_copies(found: Sequence[FoundFiles]) -> None:
    """Refuse a file beside its compressed copy, because each record would come twice.

    Raises:
        UnsupportedFormat: there is such a pair.
    """
    for run in found:
        ends = {name[-4:] for name in run.names}
        compressed = (
            [name for name in run.names if compression_of(name)] if any(map(compression_of, ends)) else []
        )
        names = set(run.names) if compressed else set()
        for name in compressed:
            copies = {uncompressed_name(name), *(f"{uncompressed_name(name)}.{kind}" for kind in COMPRESSED)}
            if copy := min((copies - {name}) & names, default=None):
                message = (
                    f"{copy!r} and {name!r} in {run.root!r} look like the same data twice, compressed and "
                    f"not: keep one of them there, or say which with a glob or a list"
                )
                raise UnsupportedFormat(message)
