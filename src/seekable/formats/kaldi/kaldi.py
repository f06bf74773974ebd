"""Kaldi as a format, ``sk.formats.Kaldi``: scripts, archives, and data directories."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

from seekable._arguments import (
    checked_flag,
    checked_word,
    explains_fields,
)
from seekable._lazy import lazy
from seekable.errors import CorruptState, InvalidArgument
from seekable.formats.classify import files_of_card, format_of_spec
from seekable.formats.contract import Claim, Format, Reading
from seekable.formats.kaldi.entry_reader import EntryReader, ObjectFiles
from seekable.formats.kaldi.files.pipes import checked_pipes, pipes_inside
from seekable.formats.kaldi.files.specifiers import check_rxfilename, parse_rspecifier
from seekable.formats.kaldi.holder_detection import detect_holder, first_paths
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.script_lines import ScriptScanner
from seekable.formats.kaldi.table_entries import ArchiveScanner, EntryDecoder
from seekable.formats.lines.line_source import decoder_named, refuse_columns, source_of
from seekable.formats.lines.text import TextScanner
from seekable.formats.look import OtherTool
from seekable.formats.table import card_named
from seekable.nodes.columns.names import checked_names
from seekable.nodes.key import entry_key
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.formats.contract import Card
    from seekable.formats.kaldi.directory import utterances, validation
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.specifiers import Rspecifier
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.formats.look import Folder, Look
    from seekable.index.fileset import FileSet
    from seekable.nodes.files.byte_source import FileSource
    from seekable.nodes.files.decoders import Decoder
    from seekable.nodes.key import KeyOf
    from seekable.nodes.saving import Loading
else:
    utterances = lazy("seekable.formats.kaldi.directory.utterances")
    validation = lazy("seekable.formats.kaldi.directory.validation")

__all__ = ["Kaldi"]

_KEY = "key"
"""The column with the key of an utterance."""

_NAMES = ("ark", "scp", "kaldi-directory")
"""The names of the formats."""

_KINDS = frozenset({"ark", "scp"})
"""The kinds of tables, as specifiers name them."""

_ITEMS = re.compile("[, ]")
_TABLES_OF_UTTERANCES = ("segments", "spk2utt", "text", "utt2spk")


@explains_fields("sk.formats.Kaldi")
@dataclass(frozen=True, slots=True, kw_only=True)
class Kaldi(Format):
    """Scripts, archives and data directories of Kaldi.

    Args:
        holder: how the objects are read: a name such as ``"matrix"``, a `kaldi.Holder`, or a class with
            ``Read`` and ``Write``. Found from the first entries if left out. Records are pairs of a key and
            an object, and ``ds.key`` finds a record by its key.
        pipes: ``"allow"`` runs the commands that lines of scripts contain. Commands that only copy or
            decompress a file (``gunzip -c a.gz |``) are done without running them in any case.
        kind: ``"ark"``, ``"scp"`` or ``"kaldi-directory"``; by default what the names of the files say.
        permissive: True if entries that cannot be read become holes, with a warning, as in ``scp,p:PATH``.

    Raises:
        InvalidArgument: ``pipes`` or ``kind`` is another word, or no holder has the name.
        WrongType: an option has another type.

    Example:
        >>> import seekable as sk
        >>> sk.formats.Kaldi(holder="matrix").pipes
        'refuse'
    """

    card: ClassVar[Card] = card_named("ark")

    holder: str | Holder | type[Any] | None = None
    pipes: Pipes = "refuse"
    kind: Literal["ark", "scp", "kaldi-directory"] | None = None
    permissive: bool = False

    def __post_init__(self) -> None:
        """Check the options that need no files."""
        if self.holder is not None:
            find_holder(self.holder)
        checked_pipes(self.pipes)
        checked_word("kind", self.kind, _NAMES)
        checked_flag("permissive", self.permissive)

    @property
    def name(self) -> str:
        """The kind of the files, and the holder of archives, which decides where their entries start."""
        kind = self.kind or self.card.name
        return f"{kind}-{self._holder.name}" if kind == "ark" and self._holder is not None else kind

    @property
    def _holder(self) -> Holder | None:
        """The holder, if it is found; None for what only names one."""
        return None if isinstance(self.holder, str | type) else self.holder

    def with_name(self, name: str) -> Self:
        """Return the format of the kind that a name says, with its holder unless the value has one.

        Raises:
            InvalidArgument: no holder has the name, or a directory is to have one.
        """
        if name == "kaldi-directory":
            if self.holder is not None:
                message = f"holder= is for Kaldi's tables (ark, scp), and this is {name}: drop it"
                raise InvalidArgument(message)
            return replace(self, kind="kaldi-directory")
        kind, dash, named = name.partition("-")
        if kind not in ("ark", "scp"):
            message = f"format {name!r} is not known; tables of Kaldi are 'ark' or 'scp', as 'ark-matrix'"
            raise InvalidArgument(message)
        holder = find_holder(named) if dash and self.holder is None else self.holder
        return replace(self, kind="ark" if kind == "ark" else "scp", holder=holder)

    def settled(self, found: Sequence[FoundFiles]) -> Self:
        """Return the format with its holder, which is found from the first entries if nobody has named one.

        Raises:
            InvalidArgument: no holder has the name, or the first entries can be of several holders.
            WrongType: the holder is of another type.
        """
        if self.kind == "kaldi-directory":
            return self
        holder = self.holder
        if holder is None:
            holder = detect_holder(self.name, first_paths(found), pipes=pipes_inside(self.pipes))
        return replace(self, holder=find_holder(holder))

    @property
    def finder(self) -> ArchiveScanner | ScriptScanner | TextScanner:
        """The scanner that finds entries, or the lines of text tables."""
        if self.kind == "kaldi-directory":
            return TextScanner("kaldi-directory")
        if self.kind == "scp":
            return ScriptScanner("scp", self._holder)
        return ArchiveScanner(self.name, self._holder)

    @classmethod
    def claim(cls, look: Look) -> Claim | None:
        """Return the tables of a data directory, or the files of a rspecifier.

        Raises:
            InvalidArgument: the spec is incomplete, is none of files, or the user gave another format.
            DataNotFound: there is no such file or directory.
        """
        if look.spec == "kaldi":
            return _directory_claim(look)
        if _KINDS.isdisjoint(_ITEMS.split(look.spec)):
            return None
        specifier = _specifier(look.path)
        form = cast("Self", format_of_spec(look, specifier.kind))
        found = files_of_card(specifier.rxfilename, card_named(specifier.kind))
        return Claim(format=replace(form, permissive=specifier.permissive), found=found)

    @classmethod
    def foreign(cls, folder: Folder) -> OtherTool | None:
        """Return what a data directory is: a script of features or audio beside a table of its utterances."""
        if folder.files.isdisjoint(("feats.scp", "wav.scp")) or folder.files.isdisjoint(
            _TABLES_OF_UTTERANCES
        ):
            return None
        way_out = "open its utterances, with all tables, as sk.open('kaldi:DIR')"
        return OtherTool("a data directory of Kaldi", way_out)

    def check(self, reading: Reading) -> None:
        """Check the columns; no format of Kaldi has a decoding.

        Raises:
            InvalidArgument: an argument is for other formats.
            WrongType: ``columns`` is not a list of names.
        """
        if self.kind == "kaldi-directory":
            if reading.decode is not None:
                message = (
                    f"decode= is for lines, and this is a data directory of Kaldi (got {reading.decode!r})"
                )
                raise InvalidArgument(message)
            if reading.columns is not None:
                checked_names("columns", reading.columns)
            return
        refuse_columns(self.name, reading)
        if reading.decode is not None:
            message = (
                f"decode= is for lines (got {reading.decode!r}); the objects of {self.name} are read by "
                f"holder="
            )
            raise InvalidArgument(message)

    def leaf(self, files: FileSet, reading: Reading) -> FileSource:
        """Return the source: its records are entries of tables, or utterances of a directory.

        Raises:
            UnsupportedFormat: the files are not the tables of one directory.
            InvalidArgument: the directory has no table for a column.
        """
        if self.kind == "kaldi-directory":
            pipes = pipes_inside(self.pipes)
            main, decoder = utterances.utterances_in(files, reading, pipes=pipes)
            return source_of(main, decoder, self.name, reading)
        return source_of(files, self.decoder_of(files, reading), self.name, reading)

    def key(self, asked: KeyOf | None, reading: Reading) -> KeyOf | None:
        """Return the key of an entry, or that of an utterance unless the user names another one.

        Raises:
            InvalidArgument: the user defines the key of entries.
        """
        if self.kind != "kaldi-directory":
            if asked is None:
                return entry_key
            message = (
                f"key= is for records that are dicts, and those of Kaldi's tables are pairs of a key and an "
                f"object: leave it out (got {asked!r})"
            )
            raise InvalidArgument(message)
        has_key = reading.columns is None or _KEY in reading.columns
        return _KEY if asked is None and has_key else asked

    def found_again(self, files: FileSet, described: Mapping[str, Any], shown: str) -> FileSource:
        """Return the source of a described one whose files were found; its records are bytes."""
        reading = Reading(shown=shown)
        return source_of(files, decoder_named("bytes"), described["format"], reading)

    def decoder_from_json(self, said: Mapping[str, Any], given: Loading, where: str) -> Decoder:
        """Return the decoder of a pipeline file; whoever opens the file decides if commands are run.

        Raises:
            CorruptState: it wrote no such thing.
            DataNotFound: a table of a directory is not found.
        """
        if self.kind == "kaldi-directory":
            return utterances.decoder_from_json(said, given, where)
        holder = given.checked(said.get("holder"), str, f"{where}.holder")
        permissive = given.checked(said.get("permissive", False), bool, f"{where}.permissive")
        pipes = checked_pipes(given.pipes)
        try:
            form = replace(self, holder=find_holder(holder), permissive=permissive, pipes=pipes)
        except InvalidArgument as error:
            message = f"{where}.holder: {error}"
            raise CorruptState(message) from None
        return form.decoder_of(given.arguments["files"], Reading(shown="", allow=given.allow))

    def decoder_of(self, files: FileSet, reading: Reading) -> EntryDecoder:
        """Return the decoder of the entries of indexed archives or scripts."""
        assert self._holder is not None
        is_script, store = self.kind == "scp", _store_of(files)
        return EntryDecoder(
            EntryReader(
                "scp" if is_script else "ark",
                self._holder,
                pipes=pipes_inside(self.pipes),
                permissive=self.permissive,
                files=ObjectFiles(reading.most_open_files, store),
                script_ns=int(files.mtimes_ns.max()) if is_script and not store else None,
                below=_folders(files) if is_script and store else (),
                allow=reading.allow,
                folder=_folder_in_store(files) if is_script else None,
            )
        )


def _specifier(text: str) -> Rspecifier:
    """Return a rspecifier whose table is files.

    Raises:
        InvalidArgument: it is not an rspecifier, or its table is not a file.
    """
    parsed = parse_rspecifier(text)
    kind = check_rxfilename(parsed.rxfilename)
    if kind == "file":
        return parsed
    if kind == "offset":
        whole = f"{parsed.kind}:{parsed.rxfilename.rpartition(':')[0]}"
        found = f"it names one byte of a file. Open all of it: {whole}"
    else:
        what = "standard input" if kind == "stdin" else "a command"
        found = (
            f"its table is {what}, which can only be read once, from start to end: "
            f"seekable.kaldi.SequentialReader({text!r}, HOLDER) does so; or write the table to a file"
        )
    message = f"{text!r} cannot be opened, because a dataset needs files with records in any order; {found}"
    raise InvalidArgument(message)


def _directory_claim(look: Look) -> Claim:
    """Return the text tables of a directory, the one that lists the utterances first.

    Raises:
        InvalidArgument: the spec has no path, or the user gave another format.
        DataNotFound: there is no such directory, or it has no table that lists utterances.
    """
    if not look.rest:
        message = (
            f"{look.path!r} is not complete: kaldi:DIR, where DIR is a data directory such as data/train"
        )
        raise InvalidArgument(message)
    form = format_of_spec(look, "kaldi-directory")
    tables = validation.present_tables(look.rest)
    folder = os.path.dirname(next(iter(tables.values())))
    return Claim(format=form, found=(FoundFiles(folder, tuple(tables)),))


def _store_of(files: FileSet) -> str:
    """Return the address of the first folder of scripts that is in a store; an empty text if none is."""
    return next((root for root, _, _ in files.runs if "://" in root), "")


def _folder_in_store(files: FileSet) -> str | None:
    """Return the address of the folder that all scripts lie in; None of local scripts and several folders."""
    if not _store_of(files):
        return None
    folders = _folders(files)
    return folders[0] if len(folders) == 1 else None


def _folders(files: FileSet) -> tuple[str, ...]:
    """Return the folders of files, each once."""
    return tuple(dict.fromkeys(os.path.dirname(files.path(file)) for file in range(len(files))))
