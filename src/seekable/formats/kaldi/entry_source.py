"""The builder of sources of Kaldi's tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument
from seekable.formats.kaldi.entry_decoder import EntryDecoder
from seekable.formats.kaldi.entry_reader import EntryReader, ObjectFiles
from seekable.formats.kaldi.files.pipes import checked_pipes, pipes_inside
from seekable.formats.lines.line_source import refuse_options_of_tables, source_of
from seekable.formats.source_options import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.formats.registry import Format
    from seekable.index.fileset import FileSet
    from seekable.nodes.files.byte_source import FileSource
    from seekable.nodes.saving import Loading

__all__ = ["decoder_from_json", "decoder_of", "entry_source"]


def entry_source(form: Format, options: SourceOptions) -> Callable[[FileSet], FileSource]:
    """Return a function from indexed files to the source of their entries.

    Args:
        form: the format, ``ark`` or ``scp``, with its holder.
        options: those of tables, and of the decoding of lines, must be left out.

    Raises:
        InvalidArgument: an option is for other formats.
    """
    refuse_options_of_tables(form.name, options)
    for name, given in (("decode=", options.decode), ("a column", options.column or options.field)):
        if given is not None:
            message = f"{name} is for lines (got {given!r}); the objects of {form.name} are read by holder="
            raise InvalidArgument(message)
    checked_pipes(options.pipes)

    def source(files: FileSet) -> FileSource:
        return source_of(files, decoder_of(form, options, files), form, options)

    return source


def decoder_of(form: Format, options: SourceOptions, files: FileSet) -> EntryDecoder:
    """Return the decoder of entries.

    Args:
        form: the format, ``ark`` or ``scp``, with its holder.
        options: the arguments of the user.
        files: the indexed archives or scripts.

    Raises:
        InvalidArgument: ``pipes`` is not known.
    """
    assert form.holder is not None
    is_script = form.name == "scp"
    entries = EntryReader(
        "scp" if is_script else "ark",
        form.holder,
        pipes=pipes_inside(checked_pipes(options.pipes)),
        permissive=options.permissive,
        files=ObjectFiles(options.most_open_files, _store_of(files)),
        script_ns=int(files.mtimes_ns.max()) if is_script and not _store_of(files) else None,
        below=_folders(files) if is_script and _store_of(files) else (),
        folder=_folder_in_store(files) if is_script else None,
    )
    return EntryDecoder(entries)


def decoder_from_json(form: Format, said: Mapping[str, Any], given: Loading, where: str) -> EntryDecoder:
    """Return the decoder that ``EntryDecoder.as_json`` wrote.

    Raises:
        CorruptState: it wrote no such thing.
    """
    holder = given.checked(said.get("holder"), str, f"{where}.holder")
    permissive = given.checked(said.get("permissive", False), bool, f"{where}.permissive")
    try:
        resolved = form.with_holder(holder)
    except InvalidArgument as error:
        message = f"{where}.holder: {error}"
        raise CorruptState(message) from None
    options = SourceOptions(shown="", permissive=permissive, pipes=checked_pipes(given.pipes))
    return decoder_of(resolved, options, given.arguments["files"])


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
