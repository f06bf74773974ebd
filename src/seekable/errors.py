"""The errors and warnings of seekable.

Each error is also the builtin that a caller would expect, so ``except ValueError`` and
``except sk.SeekableError`` both work::

    SeekableError
    |-- InvalidArgument      (ValueError)         an argument breaks a rule
    |-- WrongType            (TypeError)          an argument or operation of the wrong type
    |   `-- EndlessDataset                        an operation needs a length, and the dataset has no end
    |-- OutOfRange           (IndexError)         no row of this number in the dataset
    |-- KeyNotFound          (KeyError)           no record with this key
    |-- AmbiguousKey         (KeyError)           several records with this key
    |-- BadKey               (ValueError)         a record has no key, or one of another type
    |-- BadToken             (KeyError)           no item of the stream has this token
    |-- MissingColumn        (KeyError)           a record, or a table, lacks a column
    |-- BadValue             (ValueError)         a value does not fit its column
    |-- DataNotFound         (FileNotFoundError)  no data file at this path
    |-- AccessDenied         (PermissionError)    no permission to read or write a file
    |-- Unreachable          (ConnectionError)    data of a store, or of a disk that fails, cannot be read now
    |-- UnsupportedFormat    (ValueError)         a file of an unknown format
    |-- CorruptRecord        (ValueError)         one record cannot be decoded
    |   `-- CorruptTokens    (UnsupportedFormat)  a file of tokens, or one beside it, is torn or damaged
    |-- CorruptTable         (ValueError)         a table or a script of Kaldi is torn or damaged
    |   `-- CorruptObject                         one object of it is not what its holder reads
    |-- PipeRefused          (PermissionError)    a command where a file may stand, and pipes are off
    |-- PipeFailed           (OSError)            a command whose output or input is a table failed
    |-- IndexStale           (OSError)            a data file changed after it was indexed
    |-- StateMismatch        (ValueError)         a state belongs to another pipeline
    |-- CorruptState         (ValueError)         a state cannot be read
    |-- AmbiguousRank        (RuntimeError)       several ranks, and rank= was left out
    |-- NothingPassed        (RuntimeError)       a batch, an epoch or a source has no record
    |-- NotResumable         (RuntimeError)       no exact state can be taken of this stream
    |-- TooManyHoles         (RuntimeError)       more holes than max_holes
    |-- ForkUnsafe           (RuntimeError)       an object was used after a fork
    |-- StoppedIterator      (RuntimeError)       a later iterator replaced this one
    |-- DeliveryUnknown      (RuntimeError)       the number of delivered batches is not known
    |-- WorkerDied           (RuntimeError)       a worker process ended too early
    |-- WorkerHung           (TimeoutError)       a worker process exceeded the timeout
    `-- MissingDependency    (ImportError)        an optional package is not installed

A message names the argument or the file, the rule, the value found, and what to do. Warnings:
``CacheTooSmall``, ``DuplicateKeys``, ``EndlessRun``, ``KaldiWarning``, ``TarWarning`` (UserWarning).
"""

from __future__ import annotations

from functools import partial
from typing import Any

__all__ = [
    "AccessDenied",
    "AmbiguousKey",
    "AmbiguousRank",
    "BadKey",
    "BadToken",
    "BadValue",
    "CacheTooSmall",
    "CorruptObject",
    "CorruptRecord",
    "CorruptState",
    "CorruptTable",
    "CorruptTokens",
    "DataNotFound",
    "DeliveryUnknown",
    "DuplicateKeys",
    "EndlessDataset",
    "EndlessRun",
    "ForkUnsafe",
    "IndexStale",
    "InvalidArgument",
    "KaldiWarning",
    "KeyNotFound",
    "MissingColumn",
    "MissingDependency",
    "NotResumable",
    "NothingPassed",
    "OutOfRange",
    "PipeFailed",
    "PipeRefused",
    "SeekableError",
    "StateMismatch",
    "StoppedIterator",
    "TarWarning",
    "TooManyHoles",
    "Unreachable",
    "UnsupportedFormat",
    "WorkerDied",
    "WorkerHung",
    "WrongType",
]

_PREVIEW_BYTES = 80


class SeekableError(Exception):
    """The root of all errors raised by seekable."""


class InvalidArgument(SeekableError, ValueError):
    """An argument breaks a rule; the message names the argument, the rule and the value."""


class WrongType(SeekableError, TypeError):
    """An argument, or an operation on it, is of the wrong type."""


class EndlessDataset(WrongType):
    """An operation needs the length of a dataset, and the dataset has no end."""


class OutOfRange(SeekableError, IndexError):
    """A row number is outside ``-n <= row < n``."""


class KeyNotFound(SeekableError, KeyError):
    """No record of the dataset has the given key."""

    __str__ = Exception.__str__  # KeyError.__str__ would show the repr of the message.


class AmbiguousKey(SeekableError, KeyError):
    """Several records have the given key; the message names them."""

    __str__ = Exception.__str__


class BadKey(SeekableError, ValueError):
    """A record has no key, or one that is neither a str nor an int; the message names the record."""


class BadToken(SeekableError, KeyError):
    """No item of the stream has this token, or two items of a user's stage have it."""

    __str__ = Exception.__str__


class MissingColumn(SeekableError, KeyError):
    """A record, or the whole dataset, lacks a requested column; the message names both."""

    __str__ = Exception.__str__


class BadValue(SeekableError, ValueError):
    """A value does not fit its column; the message names the column, the value and the record."""


class DataNotFound(SeekableError, FileNotFoundError):
    """No data file is at the given path, or matches the given glob."""


class AccessDenied(SeekableError, PermissionError):
    """The user may not read a data file, or may not write an index folder."""


class Unreachable(SeekableError, ConnectionError):
    """Data cannot be read now: it is on another machine and not in the cache, or its disk fails."""


class UnsupportedFormat(SeekableError, ValueError):
    """The format of a file is not known, or is not the one that its name says."""


class CorruptTable(SeekableError, ValueError):
    """A table or a script of Kaldi is torn or damaged; the message names the file and the line or byte."""


class CorruptObject(CorruptTable):
    """Bytes of a Kaldi file are not the object that a holder reads.

    Attributes:
        path: the name of the file.
        key: the key of the entry in its table; None if it is not known.
        offset: the byte of the file, counted from 0, at which the expected bytes are missing.
        expected: the bytes, or the form, that the holder needs there.
        found: a description of the bytes that are there.
    """

    def __init__(self, path: str, key: str | None, offset: int, expected: str, found: str) -> None:
        self.path = path
        self.key = key
        self.offset = offset
        self.expected = expected
        self.found = found
        super().__init__(path, key, offset, expected, found)

    def __str__(self) -> str:
        """Return the location, what was expected there, what was found, and what to do."""
        key = "" if self.key is None else f" (key {self.key!r})"
        return (
            f"{self.path}{key}: byte {self.offset}: expected {self.expected}, found {self.found}; "
            f"the file is cut or damaged, or it needs another holder"
        )


class PipeRefused(SeekableError, PermissionError):
    """A command stands where a file may stand, and the caller did not say ``pipes="allow"``."""


class PipeFailed(SeekableError, OSError):
    """A command that writes or reads a table failed.

    Attributes:
        command: the command, as the shell ran it.
        exit_code: the exit code; negative for the number of the signal that ended the command; None if the
            command stopped reading its input and may still run.
        place: the entry of a table, or the byte, up to which the output was read; empty if it is not known.
    """

    def __init__(self, command: str, exit_code: int | None, place: str = "") -> None:
        self.command = command
        self.exit_code = exit_code
        self.place = place
        if exit_code is None or exit_code == 0:
            end = "stopped reading before everything was written to it"
        elif exit_code < 0:
            end = f"was ended by signal {-exit_code}"
        else:
            end = f"failed with exit code {exit_code}"
        super().__init__(
            f"the command {command!r} {end}: what it read or wrote may not be all"
            f"{f' ({place})' if place else ''}. "
            f"Its own messages are on stderr; run it in a shell to see them again"
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with all attributes, so that an error from a worker process is complete."""
        return PipeFailed, (self.command, self.exit_code, self.place)


class IndexStale(SeekableError, OSError):
    """A data file changed after it was indexed, or while it was open."""


class StateMismatch(SeekableError, ValueError):
    """A state belongs to another pipeline, or to other data; the message shows the difference."""


class CorruptState(SeekableError, ValueError):
    """A state document, or the file of a state, cannot be read."""


class AmbiguousRank(SeekableError, RuntimeError):
    """The environment has several ranks, and the caller left out ``rank=`` and ``world_size=``."""


class NothingPassed(SeekableError, RuntimeError):
    """A batch, an epoch or a source has no record, where at least one must come."""


class NotResumable(SeekableError, RuntimeError):
    """A stage of the stream could not resume exactly from a state; the message names the stage."""


class TooManyHoles(SeekableError, RuntimeError):
    """More records failed to decode than ``max_holes`` allows."""


class ForkUnsafe(SeekableError, RuntimeError):
    """An object that was made before a fork was used in the child process, where it cannot work."""


class StoppedIterator(SeekableError, RuntimeError):
    """An iterator was used after a later one over the same loader replaced it."""


class DeliveryUnknown(SeekableError, RuntimeError):
    """A state was requested while another loader reads ahead and does not report what it has delivered."""


class WorkerDied(SeekableError, RuntimeError):
    """A worker process ended before its work was done."""


class WorkerHung(SeekableError, TimeoutError):
    """A worker process exceeded the timeout; the message has the stacks of its threads."""


class MissingDependency(SeekableError, ImportError):
    """An optional package is missing; the message has the command that installs it."""


_TABLES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
"""Suffixes of formats in which a record is not one contiguous range of bytes."""

_ENTRIES = tuple(f"{suffix}{more}" for suffix in (".ark", ".scp") for more in ("", ".gz", ".zst"))
"""Suffixes of Kaldi's tables."""

_ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.zst")
"""Suffixes of tar files, in which bytes instead of values are no way past members that do not go together."""

_AS_BYTES = "open it with decode='bytes' to read past it"
_DELIVER = "say what to deliver instead with errors= of sk.open"


class CorruptRecord(SeekableError, ValueError):
    """One record cannot be decoded.

    Attributes:
        path: the absolute path of the file.
        row: the record's number in that file, from 0.
        offset: where the record starts, in bytes from the start of the file (of its content, if it is a
            compressed one).
        length: how many bytes it has.
        preview: its first bytes.
        cause: the error that the decoder raised.
        key, field: of a sample of a tar file, its key and the field whose payload lies there; else None.
    """

    def __init__(  # noqa: PLR0913 - all attributes
        self,
        path: str,
        row: int,
        *,
        offset: int,
        length: int,
        preview: bytes,
        cause: Exception,
        key: str | None = None,
        field: str | None = None,
    ) -> None:
        self.path = path
        self.row = row
        self.offset = offset
        self.length = length
        self.preview = preview[:_PREVIEW_BYTES]
        self.cause = cause
        self.key = key
        self.field = field
        super().__init__(path, row)

    def __str__(self) -> str:
        """Return the location of the record, its first bytes, the cause and what to do."""
        return self.told + self._in_python()

    @property
    def told(self) -> str:
        """The message without what only a program can do: what the command line says."""
        place = f"at byte {self.offset} ({self.length} bytes)"
        what = f"{type(self.cause).__name__}: {self.cause}"
        record = f"{self.path}: record {self.row}"
        if self.path.lower().endswith(_TABLES):
            return (
                f"{record} cannot be decoded: {what}; what it is read from lies {place}. Put an undamaged "
                f"copy of the file there"
            )
        is_entry = self.path.lower().endswith(_ENTRIES)
        if is_entry or isinstance(self.cause, CorruptTable | OSError):
            option = ", or leave such records out with the option p ('scp,p:...')" if is_entry else ""
            return f"{record} {place} cannot be read: {what}. Mend the file{option}"
        if isinstance(self.cause, MissingColumn):
            return f"{record} with the key {self.key!r} at byte {self.offset} {self.cause}"
        if self.field is not None:
            return (
                f"{record} with the key {self.key!r}: its field {self.field!r} {place} cannot be decoded: "
                f"{what}. {self._look()}"
            )
        return (
            f"{record} {place} cannot be decoded: {what}; it starts with {self.preview!r}. {self._look()}, "
            f"mend the file"
        )

    def _in_python(self) -> str:
        """Return the end of the message: what a program can do."""
        path = self.path.lower()
        if path.endswith(_TABLES):
            return f", or {_DELIVER}"
        if path.endswith(_ENTRIES) or isinstance(self.cause, CorruptTable | OSError):
            return ", or leave such records out with errors= of sk.open"
        if isinstance(self.cause, MissingColumn):
            return (
                f". sk.formats.Tar(missing='none') delivers None for a field that a sample lacks; or "
                f"{_DELIVER}, or leave the field out of columns="
            )
        if self.field is not None:
            return (
                f". Say what to deliver instead with errors= of sk.open, leave the "
                f"field out with columns=, or take it with decode={{{self.field!r}: 'bytes'}}"
            )
        return f", or {_DELIVER if path.endswith(_ARCHIVES) else _AS_BYTES}"

    def _look(self) -> str:
        """Return the advice to look at the bytes, with the command that prints them."""
        tool = {".gz": "gzip", "tgz": "gzip", "zst": "zstd"}.get(self.path[-3:].lower())
        first, last = f"tail -c +{self.offset + 1}", f"head -c {self.length}"
        command = f"{tool} -dc FILE | {first} | {last}" if tool else f"{first} FILE | {last}"
        return f"Look at it with `{command}`"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with every attribute, so that an error from a worker process is complete."""
        place: dict[str, Any] = {"offset": self.offset, "length": self.length, "preview": self.preview}
        of_sample: dict[str, Any] = {"key": self.key, "field": self.field}
        return partial(type(self), self.path, self.row, cause=self.cause, **place, **of_sample), ()


class CorruptTokens(CorruptRecord, UnsupportedFormat):
    """A file of tokens, or one beside it, is torn or damaged; ``row`` is the number of a document."""

    def __str__(self) -> str:
        """Return the location, what was expected there, what was found, and what to do."""
        return self.told

    @property
    def told(self) -> str:
        """The whole message, which says place and cause."""
        return f"{self.path!r}: byte {self.offset}: {self.cause}"


class KaldiWarning(UserWarning):
    """A Kaldi file breaks a rule, and Kaldi itself reads it with a warning."""


class TarWarning(UserWarning):
    """A tar file is not as its writer may have meant it: it has no end mark, or ids in its fields."""


class CacheTooSmall(UserWarning):
    """A pipeline keeps more data open than the caches in memory hold."""


class DuplicateKeys(UserWarning):
    """Several records have the same key; the message names the first of them."""


class EndlessRun(UserWarning):
    """A ``for`` statement over data without an end has read all of its sources ten times."""
