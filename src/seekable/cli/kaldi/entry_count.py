"""The number of entries that a command has done, shown on a terminal and in messages."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import final

from seekable.cli.output import tell
from seekable.cli.progress_output import StatusLine
from seekable.errors import InvalidArgument, SeekableError
from seekable.parallel.progress import Throttle
from seekable.viewer.facts.documents import document


def entries_in_words(done: int, read: int) -> str:
    """Return the numbers of entries that were done, and read, in words.

    Example:
        >>> entries_in_words(1, 1), entries_in_words(3, 1000)
        ('1 entry', '3 of 1,000 entries')
    """
    part = "" if done == read else f" of {read:,}"
    return f"{done:,}{part} entr{'y' if read == 1 else 'ies'}"


@final
class EntryCount:
    """Counts entries, and shows the count on a terminal some times a second."""

    def __init__(self, verb: str, status: StatusLine) -> None:
        self.verb = verb
        """The work on an entry, as the first word of a message: "Copied"."""
        self.done = 0
        """The number of entries that are done."""
        self.read = 0
        """The number of entries that were read."""
        self._status = status
        self._throttle = Throttle()

    def count(self, *, done: bool = True) -> None:
        """Count an entry that was read, and done unless ``done`` is False."""
        self.read += 1
        self.done += done
        if self._throttle.is_due():
            self._status.show(f"{self.in_words()} so far")

    def in_words(self) -> str:
        """Return the count in words, such as ``Copied 3 of 10 entries``."""
        return f"{self.verb} {entries_in_words(self.done, self.read)}"


@contextmanager
def counted(verb: str, *, shown: bool, on_stdout: bool = False) -> Iterator[EntryCount]:
    """Count entries; an error of the block gets a note with the number of entries before it.

    Args:
        verb: the work on an entry, as the first word of a message.
        shown: show the count on a terminal.
        on_stdout: True if data is written to standard output: where that is a terminal, no count is shown.
    """
    with StatusLine(shown=shown and not (on_stdout and sys.stdout.isatty())) as status:
        entries = EntryCount(verb, status)
        try:
            yield entries
        except (SeekableError, OSError) as error:
            if entries.done:
                error.add_note(f"{entries.in_words()} before that")
            raise


@contextmanager
def writing(holder: str, note: str) -> Iterator[None]:
    """Turn the errors of a block that writes one object into errors that name it.

    Args:
        holder: the name of the holder that writes.
        note: the name of the entry; it is added to errors.

    Raises:
        InvalidArgument: the object is nothing that the holder writes.
        SeekableError: an error of the block.
    """
    try:
        yield
    except SeekableError as error:
        error.add_note(note)
        raise
    except (TypeError, ValueError, OverflowError) as error:
        message = f"the object cannot be written with the holder {holder}: {error}; {note}"
        raise InvalidArgument(message) from error


def print_outcome(
    fields: Mapping[str, object], words: str, *, as_json: bool, quiet: bool, on_stdout: bool = False
) -> None:
    """Print the outcome of a command: a message on stderr, or a JSON document on stdout.

    Args:
        fields: the fields of the document.
        words: the message.
        as_json: print the document.
        quiet: print no message.
        on_stdout: True if data went to standard output, so that the document goes to stderr.
    """
    if as_json:
        (sys.stderr if on_stdout else sys.stdout).buffer.write(document(fields))
    elif not quiet:
        tell(words)
