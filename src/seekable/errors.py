"""Everything that seekable raises on purpose.

Each error is also the builtin that a caller would expect, so ``except ValueError`` and
``except sk.SeekableError`` both work::

    SeekableError
    |-- InvalidArgument      (ValueError)         an argument breaks a rule
    |-- WrongType            (TypeError)          an argument or operation of the wrong type
    |   `-- EndlessDataset                        a length was needed of a dataset without end
    |-- OutOfRange           (IndexError)         a row that the dataset does not have
    |-- KeyNotFound          (KeyError)           a key that no record has
    |-- AmbiguousKey         (KeyError)           a key that several records have
    |-- BadKey               (ValueError)         a record without a key, or with one of another type
    |-- BadToken             (KeyError)           a token that names no item of a stream
    |-- MissingColumn        (KeyError)           a column that a record, or a table, does not have
    |-- BadValue             (ValueError)         a value that a column cannot have
    |-- DataNotFound         (FileNotFoundError)  no file where data was looked for
    |-- AccessDenied         (PermissionError)    what this user may not read, or not write
    |-- Unreachable          (ConnectionError)    data on another machine that cannot be had now
    |-- UnsupportedFormat    (ValueError)         bytes that are not what their name says
    |-- CorruptRecord        (ValueError)         one record that cannot be decoded
    |-- IndexStale           (OSError)            data that changed under its index
    |-- StateMismatch        (ValueError)         a state of another pipeline
    |-- CorruptState         (ValueError)         a state that cannot be read
    |-- AmbiguousRank        (RuntimeError)       several ranks, and none was named
    |-- NothingPassed        (RuntimeError)       a batch, an epoch or a source without one record
    |-- NotResumable         (RuntimeError)       a state that nothing could go on from
    |-- TooManyHoles         (RuntimeError)       more records that could not be had than are allowed
    |-- ForkUnsafe           (RuntimeError)       something that does not survive a fork
    |-- StoppedIterator      (RuntimeError)       an iterator that a later one replaced
    |-- DeliveryUnknown      (RuntimeError)       a state, and no telling what was delivered
    |-- WorkerDied           (RuntimeError)       a worker process ended before its work was done
    |-- WorkerHung           (TimeoutError)       a worker process did not answer in time
    `-- MissingDependency    (ImportError)        an optional package is not installed

A message says what was asked, the rule, the value found, and the way out. What is only worth a word is a
warning: ``CacheTooSmall``, ``DuplicateKeys`` (UserWarning).
"""

from __future__ import annotations

__all__ = [
    "AccessDenied",
    "AmbiguousKey",
    "AmbiguousRank",
    "BadKey",
    "BadToken",
    "BadValue",
    "CacheTooSmall",
    "CorruptRecord",
    "CorruptState",
    "DataNotFound",
    "DeliveryUnknown",
    "DuplicateKeys",
    "EndlessDataset",
    "ForkUnsafe",
    "IndexStale",
    "InvalidArgument",
    "KeyNotFound",
    "MissingColumn",
    "MissingDependency",
    "NotResumable",
    "NothingPassed",
    "OutOfRange",
    "SeekableError",
    "StateMismatch",
    "StoppedIterator",
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
    """A length was needed of a dataset that has none."""


class OutOfRange(SeekableError, IndexError):
    """A row outside ``-n <= row < n`` was asked for."""


class KeyNotFound(SeekableError, KeyError):
    """No record of a dataset has the key that was asked for."""

    __str__ = Exception.__str__  # That of KeyError quotes the message.


class AmbiguousKey(SeekableError, KeyError):
    """Several records have the key that was asked for; the message names them."""

    __str__ = Exception.__str__


class BadKey(SeekableError, ValueError):
    """A record has no key, or one that is neither a str nor an int; the message names the record."""


class BadToken(SeekableError, KeyError):
    """No item of a stream has this token: it is of another stream, of other data, or was changed."""

    __str__ = Exception.__str__  # not the repr that a KeyError shows


class MissingColumn(SeekableError, KeyError):
    """A record, or all of a dataset, lacks a column that was asked for; the message names both."""

    __str__ = Exception.__str__


class BadValue(SeekableError, ValueError):
    """A value is not what its column must hold; the message names the column, the value and the record."""


class DataNotFound(SeekableError, FileNotFoundError):
    """No data file where one was looked for."""


class AccessDenied(SeekableError, PermissionError):
    """A data file that this user may not read, or an index folder that cannot be written."""


class Unreachable(SeekableError, ConnectionError):
    """Data that lies on another machine cannot be had now, and is not kept on this one."""


class UnsupportedFormat(SeekableError, ValueError):
    """A file's name or bytes are of no known format, or of another than its name says."""


class IndexStale(SeekableError, OSError):
    """A data file is no longer the one that was indexed."""


class StateMismatch(SeekableError, ValueError):
    """A state belongs to another pipeline, or to other data; the message is the difference."""


class CorruptState(SeekableError, ValueError):
    """A state document, or a file of one, cannot be read."""


class AmbiguousRank(SeekableError, RuntimeError):
    """The environment speaks of several ranks and the caller did not say which this one is."""


class NothingPassed(SeekableError, RuntimeError):
    """There was not one record to deliver where at least one was due."""


class NotResumable(SeekableError, RuntimeError):
    """A stream has a stage that could not go on exactly from a state; the message names it."""


class TooManyHoles(SeekableError, RuntimeError):
    """More records could not be had than were allowed."""


class ForkUnsafe(SeekableError, RuntimeError):
    """Something made before a fork was used in the child, where it cannot work."""


class StoppedIterator(SeekableError, RuntimeError):
    """An iterator was used after a later one over the same loader took its place."""


class DeliveryUnknown(SeekableError, RuntimeError):
    """A state was asked for while somebody else reads ahead, and does not tell what was delivered."""


class WorkerDied(SeekableError, RuntimeError):
    """A worker process ended before it had done its work."""


class WorkerHung(SeekableError, TimeoutError):
    """A worker process did not answer in time; the message has the stacks of its threads."""


class MissingDependency(SeekableError, ImportError):
    """An optional package is needed; the message is the command that installs it."""


_TABLES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
"""How the names of files end in which a record is no run of bytes."""


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
    """

    def __init__(
        self, path: str, row: int, *, offset: int, length: int, preview: bytes, cause: Exception
    ) -> None:
        self.path = path
        self.row = row
        self.offset = offset
        self.length = length
        self.preview = preview[:_PREVIEW_BYTES]
        self.cause = cause
        super().__init__(path, row)

    def __str__(self) -> str:
        """Say where the record lies, what it starts with and why it could not be decoded."""
        end = f"tail -c +{self.offset + 1} | head -c {self.length}"
        look = {".gz": f"gzip -dc FILE | {end}", "zst": f"zstd -dc FILE | {end}"}.get(self.path[-3:].lower())
        look = look or f"tail -c +{self.offset + 1} FILE | head -c {self.length}"
        what = f"{type(self.cause).__name__}: {self.cause}"
        if self.path.lower().endswith(_TABLES):
            return (
                f"{self.path}: record {self.row} cannot be decoded: {what}; what it is read from lies at "
                f"byte {self.offset} ({self.length} bytes). Put an undamaged copy of the file there, or say "
                f"what to deliver instead with errors= of sk.open"
            )
        return (
            f"{self.path}: record {self.row} at byte {self.offset} ({self.length} bytes) cannot be "
            f"decoded: {what}; it starts with {self.preview!r}. "
            f"Look at it with `{look}`, mend the file, "
            f"or open it with decode='bytes' to read past it"
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with every attribute, so that a worker's error arrives whole."""
        return _corrupt_record, (
            self.path,
            self.row,
            self.offset,
            self.length,
            self.preview,
            self.cause,
        )


def _corrupt_record(
    path: str, row: int, offset: int, length: int, preview: bytes, cause: Exception
) -> CorruptRecord:
    return CorruptRecord(path, row, offset=offset, length=length, preview=preview, cause=cause)


class CacheTooSmall(UserWarning):
    """A pipeline keeps more data open than is taken to stay in memory."""


class DuplicateKeys(UserWarning):
    """Some records have the same key; the message names the first of them."""
