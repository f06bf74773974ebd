"""Tables as a command line names them: their specifiers and holders; and the count of their entries."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from seekable.cli.output import StatusLine, tell
from seekable.errors import InvalidArgument, SeekableError
from seekable.formats.kaldi.files.pipes import file_command, pipes_inside
from seekable.formats.kaldi.files.specifiers import command_of
from seekable.formats.kaldi.files.streams import StandardInput
from seekable.formats.kaldi.holder_detection import candidates_of, detect_holder
from seekable.kaldi import (
    classify_rxfilename,
    classify_wxfilename,
    open_rx,
    parse_rspecifier,
    parse_wspecifier,
    split_range,
)
from seekable.parallel.progress import Throttle
from seekable.viewer.facts.json_documents import document

if TYPE_CHECKING:
    from seekable.formats.kaldi.files.pipes import Pipes


_SPECIFIER = re.compile(r"([a-z]+[, ])*(ark|scp)([, ][a-z]*)*:")
_HEAD_BYTES = 1 << 12


def looks_like_a_table(text: str) -> bool:
    """Return True for a text that is meant as a specifier, also if one of its options is wrong.

    Example:
        >>> [looks_like_a_table(text) for text in ("ark,x:a", "data/a.ark", "s3://a", "sox a.scp -t wav - |")]
        [True, False, False, False]
    """
    return _SPECIFIER.match(text) is not None


def as_rspecifier(path: str) -> str:
    """Return the rspecifier of a table, also of a file that is named without one, by its suffix.

    Example:
        >>> as_rspecifier("ark,s:-"), as_rspecifier("feats.scp"), as_rspecifier("feats.1.ark")
        ('ark,s:-', 'scp:feats.scp', 'ark:feats.1.ark')
    """
    if looks_like_a_table(path):
        return path
    return f"scp:{path}" if path.lower().endswith(".scp") else f"ark:{path}"


def wxfilenames(wspecifier: str) -> list[str]:
    """Return the extended filenames of the archive and the script that are written; none with ``scp:``.

    Example:
        >>> wxfilenames("ark,scp:a.ark,a.scp"), wxfilenames("scp:targets.scp")
        (['a.ark', 'a.scp'], [])
    """
    specifier = parse_wspecifier(wspecifier)
    if specifier.archive_wxfilename is None:
        return []
    return [specifier.archive_wxfilename, *filter(None, [specifier.script_wxfilename])]


def script_of_targets(wspecifier: str) -> str:
    """Return the extended filename of the script that names the files to write, of ``scp:``.

    Example:
        >>> script_of_targets("scp:targets.scp")
        'targets.scp'
    """
    script = parse_wspecifier(wspecifier).script_wxfilename
    assert script is not None
    return script


def is_on_stdout(wspecifier: str) -> bool:
    """Return True if a table, or its script, is written to standard output.

    Example:
        >>> is_on_stdout("ark,t:-"), is_on_stdout("ark:a.ark")
        (True, False)
    """
    return any(classify_wxfilename(name) == "stdout" for name in wxfilenames(wspecifier))


def chosen_holder(holder: str | None, source: str, pipes: Pipes) -> str:
    """Return the name of the holder of a table or an object.

    Args:
        holder: the name on the command line; None to find it from the first bytes of objects.
        source: a rspecifier, or the extended filename of one object.
        pipes: ``"allow"`` runs the commands of the first lines of a script.

    Raises:
        InvalidArgument: the bytes fit several holders or none, or come from a command, which is run once.
        DataNotFound, AccessDenied, UnsupportedFormat: there is no such file, or it cannot be read.
    """
    if holder is not None:
        return holder
    if not looks_like_a_table(source):
        return _of_object(split_range(source)[0])
    specifier = parse_rspecifier(source)
    _refuse_command(specifier.rxfilename)
    return detect_holder(specifier.kind, [specifier.rxfilename], pipes=pipes_inside(pipes))


def _refuse_command(rxfilename: str) -> None:
    if classify_rxfilename(rxfilename) == "pipe" and file_command(command_of(rxfilename)) is None:
        raise InvalidArgument(
            f"say --holder NAME: the type of objects is found from the first of them in files, and "
            f"{rxfilename!r} is a command, which is run only once"
        )


def _of_object(rxfilename: str) -> str:
    _refuse_command(rxfilename)
    if classify_rxfilename(rxfilename) == "stdin":
        head = StandardInput().peek(_HEAD_BYTES)
    else:
        with open_rx(rxfilename, header=False) as file:
            head = file.read(_HEAD_BYTES)
    names = candidates_of(head)
    if len(names) == 1:
        return names[0]
    found = f"it can be {', '.join(names)}" if names else "no type is known by them"
    raise InvalidArgument(
        f"say --holder NAME: the first bytes of {rxfilename!r} do not tell the type of the object: {found}"
    )


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
