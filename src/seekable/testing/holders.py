"""The contract of holders of Kaldi, as an assertion."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import cloudpickle

from seekable.errors import CorruptObject, InvalidArgument, SeekableError, WrongType
from seekable.formats.kaldi.basic_types import BINARY_HEADER
from seekable.formats.kaldi.cursor import Cursor, FileCursor, MemoryCursor
from seekable.formats.kaldi.holders.registry import Holder, SupportsRange, find_holder
from seekable.formats.kaldi.holders.script_ranges import parse_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["assert_holder"]

_NAME = "a table"
_BEHIND = b"next \0B"
"""Bytes that follow an object: those of the next key and of its object."""

_ALL_CUTS = 1000
_PIECE_BYTES = 7


def assert_holder(holder: str | Holder | type, values: Iterable[Any], *, lossless: bool = True) -> None:
    """Assert that a holder keeps the contract of `seekable.kaldi.Holder`, with some values.

    Each value is written in binary form and, if the holder has it, as text. Then it is read, skipped and
    measured from memory, from a file and from a pipe; with other bytes after it; and cut at every byte (of
    more than 1,000 bytes, at some). What is read must give the same bytes when it is written again. A copy
    of the holder that was pickled must write and read the same. If the holder has ranges, the range of all
    rows must be the value, unless ranges have a type of their own.

    Args:
        holder: a holder, its name, or a class with Read and Write in the style of Kaldi.
        values: values that the holder writes; small ones, because each is read as often as it has bytes.
        lossless: False for a holder that compresses: what is read is then only compared between readings.

    Raises:
        AssertionError: the holder does not keep the contract; the message has the value and the bytes.
        InvalidArgument: there are no values.

    Example:
        >>> from seekable.testing import assert_holder
        >>> assert_holder("int32-vector", [[1, 2], []])
    """
    found, count = find_holder(holder), 0
    if not isinstance(values, Iterable):
        raise WrongType(f"values must be a list of values that the holder writes (got {values!r})")
    for value in values:
        count += 1
        binary = _written(found, value, binary=True)
        text = _text(found, value)
        forms = [(True, binary), *([] if text is None else [(False, text)])]
        for is_binary, raw in forms:
            is_strict = raw.startswith(BINARY_HEADER) or text is None
            _WrittenValue(found, value, is_binary, raw).check(is_strict=is_strict, lossless=lossless)
    if not count:
        raise InvalidArgument("values must not be empty: a holder is tested with the values that it writes")
    _check_refusal(found)


class _WrittenValue:
    """One value of one holder in one form."""

    def __init__(self, holder: Holder, value: Any, is_binary: bool, raw: bytes) -> None:  # noqa: FBT001
        self._holder, self._value, self._is_binary, self._raw = holder, value, is_binary, raw

    def check(self, *, is_strict: bool, lossless: bool) -> None:
        """Read, skip, measure, cut and pickle."""
        wanted = self._again(self._holder, self._read(MemoryCursor(self._raw, name=_NAME)))
        if lossless and wanted != self._raw:
            raise self._failure(f"what was read is written as {wanted!r:.200}")
        for raw in (self._raw, self._raw + _BEHIND, self._raw + self._raw):
            for cursor in _cursors(raw):
                self._check_whole(cursor, wanted, raw)
        self._check_cuts(is_strict=is_strict)
        self._check_ranges(wanted)
        copy: Holder = cloudpickle.loads(cloudpickle.dumps(self._holder))
        if _written(copy, self._value, binary=self._is_binary) != self._raw:
            raise self._failure("a copy of the holder that was pickled writes other bytes")
        if self._again(copy, copy.read(MemoryCursor(self._raw))) != wanted:
            raise self._failure("a copy of the holder that was pickled reads another value")

    def _check_whole(self, cursor: Cursor, wanted: bytes, raw: bytes) -> None:
        """Read the object at the start of some bytes, and look where the cursor stands; skip it as well."""
        value = self._read(cursor)
        if self._again(self._holder, value) != wanted:
            raise self._failure(f"{type(cursor).__name__} reads another value, {value!r:.200}")
        self._check_position("read", cursor)
        for name in ("skip", "shape"):
            again = MemoryCursor(raw, name=_NAME)
            try:
                result = getattr(self._holder, name)(again)
            except SeekableError as error:
                raise self._failure(f"{name} raises {error!r}, and read does not") from error
            self._check_position(name, again)
        if not isinstance(result, tuple) or not all(isinstance(size, int) for size in result):
            raise self._failure(f"shape must return a tuple of int (got {result!r})")

    def _check_position(self, name: str, cursor: Cursor) -> None:
        rest = self._raw[cursor.position :]
        if cursor.position > len(self._raw) or (rest if self._is_binary else rest.strip()):
            raise self._failure(f"{name} ends at byte {cursor.position} of {len(self._raw)}")

    def _check_cuts(self, *, is_strict: bool) -> None:
        """Cut the object at every byte: CorruptObject is raised, or a text was complete before."""
        count = len(self._raw)
        for cut in sorted({*range(0, count, count // _ALL_CUTS + 1), *range(max(0, count - 9), count)}):
            for name in ("read", "skip", "shape"):
                for cursor in _cursors(self._raw[:cut]):
                    self._check_cut(name, getattr(self._holder, name), cursor, cut, is_strict=is_strict)

    def _check_cut(
        self, name: str, move: Callable[[Cursor], Any], cursor: Cursor, cut: int, *, is_strict: bool
    ) -> None:
        try:
            found = move(cursor)
        except CorruptObject as error:
            if error.path != _NAME or not 0 <= error.offset <= cut:
                message = (
                    f"{name} of the first {cut} bytes raises an error of {error.path!r}, byte {error.offset}"
                )
                raise self._failure(message) from error
        except Exception as error:
            raise self._failure(f"{name} of the first {cut} bytes raises {error!r}") from error
        else:
            if is_strict or not cut:
                raise self._failure(f"{name} of the first {cut} bytes returns {found!r:.200}")

    def _check_ranges(self, wanted: bytes) -> None:
        holder = self._holder
        if not isinstance(holder, SupportsRange):
            return
        rows = holder.shape(MemoryCursor(self._raw, name=_NAME))[:1]
        for cursor in _cursors(self._raw + _BEHIND):
            found = holder.read_range(cursor, parse_range("[:]"))
            is_other_type = type(found) is not type(holder.read(MemoryCursor(self._raw)))
            if not is_other_type and self._again(holder, found) != wanted:
                raise self._failure(f"the range [:] is {found!r:.200}")
            self._check_position("read_range", cursor)
        if rows and rows[0]:
            cursor = MemoryCursor(self._raw + _BEHIND, name=_NAME)
            part = holder.read_range(cursor, parse_range("[0:0]"))
            self._check_position("read_range", cursor)
            size = getattr(part, "shape", None) or (len(part),)
            if size[0] != 1:
                raise self._failure(f"the range [0:0] has {size[0]} rows")

    def _read(self, cursor: Cursor) -> Any:
        try:
            return self._holder.read(cursor)
        except SeekableError as error:
            raise self._failure(f"{type(cursor).__name__}: read raises {error!r}") from error

    def _again(self, holder: Holder, value: Any) -> bytes:
        return _written(holder, value, binary=self._is_binary)

    def _failure(self, what: str) -> AssertionError:
        form = "binary" if self._is_binary else "text"
        return AssertionError(f"{self._holder.name}, {self._value!r:.200}, {form} {self._raw!r:.200}: {what}")


def _written(holder: Holder, value: Any, *, binary: bool) -> bytes:
    file = io.BytesIO()
    holder.write(file, value, binary=binary)
    return file.getvalue()


def _text(holder: Holder, value: Any) -> bytes | None:
    """The text form of a value; None if the holder refuses it, and has written nothing."""
    file = io.BytesIO()
    try:
        holder.write(file, value, binary=False)
    except InvalidArgument:
        if file.getvalue():
            message = f"{holder.name} wrote {file.getvalue()!r:.200} before it refused {value!r:.200} as text"
            raise AssertionError(message) from None
        return None
    return file.getvalue()


def _check_refusal(holder: Holder) -> None:
    file = io.BytesIO()
    try:
        holder.write(file, object(), binary=True)
    except (WrongType, InvalidArgument):
        if not file.getvalue():
            return
    except Exception as error:
        message = f"{holder.name}: write of an object() must raise WrongType (raised {error!r})"
        raise AssertionError(message) from error
    message = f"{holder.name}: write of an object() must raise WrongType and write nothing"
    raise AssertionError(message)


def _cursors(raw: bytes) -> Iterator[Cursor]:
    """Yield cursors over the same bytes: in memory, in a file, in a pipe."""
    yield MemoryCursor(raw, name=_NAME)
    yield FileCursor(io.BytesIO(raw), name=_NAME)
    yield FileCursor(io.BufferedReader(_Pipe(raw)), name=_NAME)


class _Pipe(io.RawIOBase):
    """Bytes that arrive in small pieces, from a file that cannot seek."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def readable(self) -> bool:
        """Return True, as for every file that is read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read a few bytes into a buffer, and return their number."""
        part = self._inner.read(min(len(buffer), _PIECE_BYTES))
        buffer[: len(part)] = part
        return len(part)
