"""The decoder of utterances, of the text tables of a data directory of Kaldi."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from seekable.errors import CorruptState, InvalidArgument, UnsupportedFormat
from seekable.formats.kaldi.directory.text_tables import TABLES
from seekable.formats.kaldi.directory.utterances import WAVE, SortedTable, Utterances, columns_of, tables_of
from seekable.formats.kaldi.directory.validation import BASES, check_directory
from seekable.formats.kaldi.entry_reader import EntryReader, ObjectFiles, fetch_named
from seekable.formats.kaldi.files.pipes import checked_pipes
from seekable.formats.kaldi.files.stored_file import script_folders
from seekable.formats.lines.line_source import line_span
from seekable.nodes.columns.names import checked_names
from seekable.nodes.files.decoders import Decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seekable.formats.contract import Reading
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.index.fileset import FileSet
    from seekable.nodes.saving import Loading, Saving

__all__ = ["UtteranceDecoder", "decoder_from_json", "utterances_in", "utterances_of"]


@final
@dataclass(frozen=True, slots=True)
class UtteranceDecoder(Decoder):
    """Decodes the line of an utterance, with what the other tables say about it."""

    utterances: Utterances
    fast: Callable[[memoryview], Any] = field(init=False)
    name: str = field(init=False, default="kaldi-directory")
    recover: None = field(init=False, default=None)
    function: None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Decode lines by the reader of utterances."""
        object.__setattr__(self, "fast", self.utterances)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the reader alone."""
        return UtteranceDecoder, (self.utterances,)

    @property
    def reads_objects(self) -> bool:
        """True: recordings and features."""
        return True

    @property
    def names_objects(self) -> bool:
        """True: scripts name them."""
        return True

    def span(self, view: memoryview) -> int:
        """Return the length of the line."""
        return line_span(view)

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the columns and the other tables."""
        folders = [folder for files in self.beside() for folder in into.folders(files)]
        return {"columns": list(self.utterances.columns), "tables": folders}

    def described_besides(self) -> dict[str, Any]:
        """Return the columns, and each other table."""
        return self.utterances.described()

    def fetch_named(self, views: Iterable[memoryview]) -> list[object]:
        """Fetch the objects of stores that the lines of scripts name."""
        lines = itertools.chain.from_iterable(map(self.utterances.named_lines, views))
        return fetch_named(self.utterances.entries, lines)

    def narrowed(self, columns: frozenset[str]) -> UtteranceDecoder:
        """Return a decoder that reads nothing for the other columns."""
        return UtteranceDecoder(self.utterances.narrowed(columns))

    def declared(self) -> Mapping[str, Any] | None:
        """Return the names of the columns."""
        return dict.fromkeys(self.utterances.columns)

    def beside(self) -> tuple[FileSet, ...]:
        """Return the other tables."""
        return tuple(table.files for table in self.utterances.tables.values())

    def close(self) -> None:
        """Close the other tables and the files that scripts name."""
        self.utterances.close()


def utterances_in(files: FileSet, reading: Reading, *, pipes: Pipes) -> tuple[FileSet, UtteranceDecoder]:
    """Return the table that lists the utterances of a directory, and the decoder of its lines.

    Args:
        files: the indexed tables.
        reading: the arguments of ``sk.open``; ``columns`` are columns of records.
        pipes: ``"allow"`` if commands in scripts may be run.

    Raises:
        UnsupportedFormat: the files are not the tables of one directory.
        InvalidArgument: the directory has no table for a column.
        CorruptTable: the tables do not go together.
    """
    columns = None if reading.columns is None else checked_names("columns", reading.columns)
    _check_tables(files)
    check_directory(files)
    main, *others = files.apart()
    most, allow = reading.most_open_files, reading.allow
    utterances = utterances_of(main, others, columns, pipes=pipes, most_open_files=most, allow=allow)
    return main, UtteranceDecoder(utterances)


def utterances_of(
    main: FileSet,
    others: Sequence[FileSet],
    columns: tuple[str, ...] | None,
    *,
    pipes: Pipes,
    most_open_files: int,
    allow: tuple[str, ...],
) -> Utterances:
    """Return the reader of the utterances of a directory.

    Args:
        main: the table that lists the utterances.
        others: the other tables, each by itself; those that no column is made of are left out.
        columns: the columns of records, in their order; None for all that there are.
        pipes: ``"allow"`` if commands in scripts may be run.
        most_open_files: the most files of audio and other objects that are open at once.
        allow: the folders and files that lines of scripts in stores may name besides.

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
            allow=allow,
            folder=folder,
        ),
        {
            name: None if "://" in folder else int(table.mtimes_ns[0])
            for name, table in tables.items()
            if name.endswith(".scp")
        },
    )


def decoder_from_json(said: Mapping[str, Any], given: Loading, where: str) -> UtteranceDecoder:
    """Return the decoder that ``UtteranceDecoder.as_json`` wrote.

    Raises:
        CorruptState: it wrote no such thing.
        DataNotFound: a table is not found.
    """
    columns = given.checked(said.get("columns"), tuple[str, ...], f"{where}.columns")
    main: FileSet = given.arguments["files"]
    others = given.beside(said.get("tables"), "tables", f"{where}.tables")
    pipes = checked_pipes(given.pipes)
    try:
        utterances = utterances_of(
            main, others, columns, pipes=pipes, most_open_files=main.most_open, allow=given.allow
        )
    except InvalidArgument as error:
        message = f"{where}: {error}"
        raise CorruptState(message) from None
    return UtteranceDecoder(utterances)


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
