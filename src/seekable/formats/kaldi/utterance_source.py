"""The builder of sources of utterances, of the text tables of a data directory of Kaldi."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument, UnsupportedFormat
from seekable.formats.decoding import utterance_decoder
from seekable.formats.kaldi.directory.sorted_table import SortedTable
from seekable.formats.kaldi.directory.text_tables import TABLES
from seekable.formats.kaldi.directory.utterances import WAVE, Utterances, columns_of, tables_of
from seekable.formats.kaldi.directory.validated import check_directory
from seekable.formats.kaldi.directory.validation import BASES
from seekable.formats.kaldi.entry_reader import EntryReader
from seekable.formats.kaldi.files.pipes import checked_pipes, pipes_inside
from seekable.formats.kaldi.files.stored_file import script_folders
from seekable.formats.kaldi.object_files import ObjectFiles
from seekable.formats.lines.line_source import source_of
from seekable.nodes.columns.names import checked_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable.formats.decoding import Decoder
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.registry import Format
    from seekable.formats.source_options import SourceOptions
    from seekable.index.fileset import FileSet
    from seekable.nodes.saving import Loading
    from seekable.nodes.sources.file_source import FileSource

__all__ = ["decoder_from_json", "utterance_source", "utterances_of"]


def utterance_source(form: Format, options: SourceOptions) -> Callable[[FileSet], FileSource]:
    """Return a function from the indexed tables of a directory to the source of its utterances.

    Args:
        form: the format.
        options: ``columns`` are columns of records; the decoding of lines must be left out.

    Raises:
        InvalidArgument: an option is for other formats, or not known.
        WrongType: ``columns`` is no list of names.
    """
    for name, given, meant in (
        ("decode", options.decode, "lines"),
        ("strict", options.strict or None, "Parquet and Arrow"),
    ):
        if given is not None:
            message = f"{name}= is for {meant}, and this is a data directory of Kaldi (got {given!r})"
            raise InvalidArgument(message)
    pipes = pipes_inside(checked_pipes(options.pipes))
    columns = None if options.columns is None else checked_names("columns", options.columns)

    def source(files: FileSet) -> FileSource:
        _check_tables(files)
        check_directory(files)
        main, *others = files.apart()
        utterances = utterances_of(
            main, others, columns, pipes=pipes, most_open_files=options.most_open_files
        )
        return source_of(main, utterance_decoder(utterances), form, options)

    return source


def utterances_of(
    main: FileSet,
    others: Sequence[FileSet],
    columns: tuple[str, ...] | None,
    *,
    pipes: Pipes,
    most_open_files: int,
) -> Utterances:
    """Return the reader of the utterances of a directory.

    Args:
        main: the table that lists the utterances.
        others: the other tables, each by itself; those that no column is made of are left out.
        columns: the columns of records, in their order; None for all that there are.
        pipes: ``"allow"`` if commands in scripts may be run.
        most_open_files: the most files of audio and other objects that are open at once.

    Raises:
        InvalidArgument: the directory has no table for a column.
    """
    tables = {files.name(0): files for files in (main, *others)}
    there = columns_of(tables)
    for column in columns or ():
        if column not in there:
            message = (
                f"the data directory {os.path.dirname(main.path(0))!r} has no column {column!r}; its tables "
                f"make the columns {', '.join(map(repr, there))}"
            )
            raise InvalidArgument(message)
    folder = os.path.dirname(main.path(0))
    files = ObjectFiles(most_open_files, folder if "://" in folder else "")
    columns = there if columns is None else columns
    used = tables_of(columns)
    return Utterances(
        main.name(0),
        {name: SortedTable(table) for name, table in tables.items() if name in used and table is not main},
        columns,
        EntryReader(
            "scp",
            WAVE,
            pipes=pipes,
            permissive=False,
            files=files,
            below=script_folders(f"{folder}/"),
            folder=folder,
        ),
        {
            name: None if "://" in folder else int(table.mtimes_ns[0])
            for name, table in tables.items()
            if name.endswith(".scp")
        },
    )


def decoder_from_json(_: Format, said: Mapping[str, Any], given: Loading, where: str) -> Decoder:
    """Return the decoder that ``Utterances.as_json`` wrote.

    Raises:
        CorruptState: it wrote no such thing.
        DataNotFound: a table is not found.
    """
    columns = given.checked(said.get("columns"), tuple[str, ...], f"{where}.columns")
    main: FileSet = given.arguments["files"]
    others = given.beside(said.get("tables"), "tables", f"{where}.tables")
    pipes = checked_pipes(given.pipes)
    try:
        utterances = utterances_of(main, others, columns, pipes=pipes, most_open_files=main.most_open)
    except InvalidArgument as error:
        message = f"{where}: {error}"
        raise CorruptState(message) from None
    return utterance_decoder(utterances)


def _check_tables(files: FileSet) -> None:
    """Check that files are the tables of one directory, in their order, as a spec names them.

    Raises:
        UnsupportedFormat: they are something else.
    """
    names = files.names()
    if names[0] in BASES and names == [name for name in TABLES if name in names]:
        return
    message = (
        f"{files.path(0)!r} is opened with the directory that it is in, as "
        f"{'kaldi:' + os.path.dirname(files.path(0))!r}; leave format='kaldi-directory' out"
    )
    raise UnsupportedFormat(message)
