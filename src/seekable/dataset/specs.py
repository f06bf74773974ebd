"""Specs: ``hf:REPO:SPLIT:COLUMN``, ``txt:PATH:COLUMN``, ``kaldi:DIR``, ``energon:DIR:SPLIT`` and others.

They are parsed here, and checked against other arguments.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable.dataset.spec import Spec, checked_format
from seekable.errors import InvalidArgument
from seekable.formats.finding import find_files
from seekable.formats.registry import without_their_files
from seekable.formats.unopened import refuse_unopened
from seekable.storage.compression import COMPRESSED
from seekable.storage.far import far
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.formats.kaldi.directory import validation
    from seekable.formats.kaldi.files import filenames, specifiers
    from seekable.formats.kaldi.files.specifiers import Rspecifier
    from seekable.formats.registry import Format
    from seekable.formats.shar import idxpack_files
    from seekable.formats.shar.idxpack_files import IdxpackSpec
    from seekable.formats.source_options import SourceOptions
    from seekable.formats.tar import energon_files, wids_files
    from seekable.formats.tar.energon_files import EnergonSpec
    from seekable.formats.tar.wids_files import WidsSpec
    from seekable.formats.tokens import token_files
    from seekable.formats.tokens.token_files import TokensSpec
else:
    energon_files = lazy("seekable.formats.tar.energon_files")
    idxpack_files = lazy("seekable.formats.shar.idxpack_files")
    validation = lazy("seekable.formats.kaldi.directory.validation")
    filenames = lazy("seekable.formats.kaldi.files.filenames")
    specifiers = lazy("seekable.formats.kaldi.files.specifiers")
    token_files = lazy("seekable.formats.tokens.token_files")
    wids_files = lazy("seekable.formats.tar.wids_files")


__all__ = [
    "DirectorySpec",
    "KaldiSpec",
    "TextSpec",
    "refuse_specs_among",
    "spec_of",
]


_HUB, _TEXT, _DIRECTORY, _PACK, _ENERGON = "hf:", "txt:", "kaldi:", "idxpack:", "energon:"

_WIDS, _TOKENS = "wids:", ("megatron:", "tokens:")

_PACK_SUFFIX = ".idxpack"

_SHAR = "shar:"
"""The beginning of the specs of Shar, which `seekable.formats.shar.shar_spec` opens."""

_TEXT_FORM = "txt:PATH:COLUMN"

_KALDI = frozenset({"ark", "scp"})

_ITEMS = re.compile("[, ]")


@dataclass(frozen=True, slots=True)
class TextSpec(Spec):
    """A spec of text files: each line is a record of one column."""

    text: str
    """The text of the spec, as the user wrote it."""

    path: str
    """The path of a file or a folder, or a glob."""

    column: str

    def narrowed(self, options: SourceOptions, form: Format) -> SourceOptions:
        """Return the options for the files: each line is the value of the spec's column."""
        return replace(options, column=self.column)

    def files(
        self, format_name: str | None, *, index_dir: str | os.PathLike[str] | None
    ) -> tuple[tuple[FoundFiles, ...], Format]:
        """Return the files of the path and their format."""
        form = checked_format(self, "text", format_name)
        return _files_by_suffix(self.path, form), form


@dataclass(frozen=True, slots=True)
class KaldiSpec(Spec):
    """A rspecifier of Kaldi whose table is files: scripts or archives."""

    text: str
    """The text of the spec, as the user wrote it."""

    rspecifier: Rspecifier

    @property
    def path(self) -> str:
        """The path of a file or a folder, or a glob."""
        return self.rspecifier.rxfilename

    def narrowed(self, options: SourceOptions, form: Format) -> SourceOptions:
        """Return the options for the files: with ``p``, entries that cannot be read become holes."""
        return replace(options, permissive=self.rspecifier.permissive)

    def files(
        self, format_name: str | None, *, index_dir: str | os.PathLike[str] | None
    ) -> tuple[tuple[FoundFiles, ...], Format]:
        """Return the scripts or archives and their format."""
        form = checked_format(self, self.rspecifier.kind, format_name)
        return _files_by_suffix(self.path, form), form


@dataclass(frozen=True, slots=True)
class DirectorySpec(Spec):
    """A spec of a data directory of Kaldi: each utterance is a record."""

    text: str
    """The text of the spec, as the user wrote it."""

    path: str
    """The path of the directory."""

    def files(
        self, format_name: str | None, *, index_dir: str | os.PathLike[str] | None
    ) -> tuple[tuple[FoundFiles, ...], Format]:
        """Return the text tables of the directory and their format; see `found`."""
        form = checked_format(self, "kaldi-directory", format_name)
        return self.found(), form

    def found(self) -> tuple[FoundFiles, ...]:
        """Return the text tables of the directory, the one that lists the utterances first.

        Raises:
            DataNotFound: there is no such directory, or it has no table that lists utterances.
        """
        tables = validation.present_tables(self.path)
        folder = os.path.dirname(next(iter(tables.values())))
        return (FoundFiles(folder, tuple(tables)),)


def _files_by_suffix(path: str, form: Format) -> tuple[FoundFiles, ...]:
    """Return the files of a path, of a folder those with a suffix of a format, compressed or not."""
    endings = [
        f"{suffix}{more}" for suffix in form.suffixes for more in ("", *(f".{kind}" for kind in COMPRESSED))
    ]
    return find_files(os.path.expanduser(path), suffixes=endings, inspect=without_their_files)


def spec_of(source: object) -> Spec | None:
    """Return a source as a parsed spec, None if it is no spec; a path that exists is never a spec.

    Raises:
        InvalidArgument: the spec is incomplete.
        UnsupportedFormat: it is a spec or an address that cannot be opened.

    Example:
        >>> spec = spec_of("hf:HuggingFaceFW/fineweb@v1.0.0:sample-10BT/train:text")
        >>> spec.repo, spec.revision, spec.config, spec.split, spec.column
        ('HuggingFaceFW/fineweb', 'v1.0.0', 'sample-10BT', 'train', 'text')
        >>> spec_of("txt:/data/12:30/*.txt:text").path
        '/data/12:30/*.txt'
        >>> spec_of("scp,p:data/feats.scp").rspecifier.permissive
        True
        >>> spec_of("corpus/*.jsonl") is None
        True
    """
    if isinstance(source, str | os.PathLike) and (pack := _idxpack_spec(os.fsdecode(source))):
        return pack
    if isinstance(source, os.PathLike):
        refuse_unopened(os.fsdecode(source))
    if not isinstance(source, str) or os.path.lexists(source):
        return None
    if source.startswith((_HUB, _TEXT)):
        spec: Spec = far().spec(source) if source.startswith(_HUB) else _text_spec(source)
        return spec
    if source.startswith((_DIRECTORY, _ENERGON, _WIDS, *_TOKENS)):
        return _spec_of_tool(source)
    if not _KALDI.isdisjoint(_ITEMS.split(source.partition(":")[0])):
        return _kaldi_spec(source)
    refuse_unopened(source)
    return None


def _spec_of_tool(source: str) -> DirectorySpec | EnergonSpec | TokensSpec | WidsSpec:
    """Return the spec of a dataset that a tool describes in files of its own."""
    if source.startswith(_DIRECTORY):
        return _directory_spec(source)
    if source.startswith(_ENERGON):
        return energon_files.energon_spec(source)
    return token_files.tokens_spec(source) if source.startswith(_TOKENS) else wids_files.wids_spec(source)


def _idxpack_spec(text: str) -> IdxpackSpec | None:
    """Return the spec of a pack of indexes, by its scheme or the end of the name of an existing file."""
    named = text.startswith(_PACK) and not os.path.lexists(text)
    return idxpack_files.idxpack_spec(text) if named or text.endswith(_PACK_SUFFIX) else None


def _kaldi_spec(text: str) -> KaldiSpec:
    """Return a rspecifier whose table is files.

    Raises:
        InvalidArgument: it is no rspecifier, or its table is no file.
    """
    spec = KaldiSpec(text, specifiers.parse_rspecifier(text))
    kind = filenames.check_rxfilename(spec.path)
    if kind == "file":
        return spec
    if kind == "offset":
        whole = f"{spec.rspecifier.kind}:{spec.path.rpartition(':')[0]}"
        found = f"it names one byte of a file. Open all of it: {whole}"
    else:
        what = "standard input" if kind == "stdin" else "a command"
        found = (
            f"its table is {what}, which can only be read once, from start to end: "
            f"seekable.kaldi.SequentialReader({text!r}, HOLDER) does so; or write the table to a file"
        )
    message = f"{text!r} cannot be opened, because a dataset needs files with records in any order; {found}"
    raise InvalidArgument(message)


def _directory_spec(text: str) -> DirectorySpec:
    path = text.removeprefix(_DIRECTORY)
    if not path:
        message = f"{text!r} is not complete: kaldi:DIR, where DIR is a data directory such as data/train"
        raise InvalidArgument(message)
    return DirectorySpec(text, path)


def _text_spec(text: str) -> TextSpec:
    path, colon, column = text.removeprefix(_TEXT).rpartition(":")
    if not colon or not path or not column or "/" in column:
        message = f"{text!r} is not complete: {_TEXT_FORM}, where COLUMN is the name of the column of lines"
        raise InvalidArgument(message)
    return TextSpec(text, path, column)


def refuse_specs_among(source: object) -> None:
    """Raise an error for a list that has a spec as an item.

    Raises:
        InvalidArgument: an item is a spec.
    """
    items: Iterable[object] = source if isinstance(source, list | tuple) else ()
    for item in items:
        is_shar = isinstance(item, str) and item.startswith(_SHAR) and not os.path.lexists(item)
        shown = item if is_shar else getattr(spec_of(item), "text", None)
        if shown is not None:
            message = (
                f"{shown!r} is opened alone; join several with sk.concat([sk.open(...), ...]), or "
                f"sk.mix([...], weights=..., seed=...)"
            )
            raise InvalidArgument(message)
