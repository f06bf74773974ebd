"""Where texts have a text or a regular expression in them.

A plain text is found whatever the case of letters, unless that is asked for: two letters are the same if
their small forms are. A regular expression is one of Python. It is matched in another process, because a
hostile one takes longer than the universe has, and holds the lock of the interpreter while it does: the
process is killed two seconds after it was given some texts, at most a million characters or a single text.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
import warnings
from typing import IO, TYPE_CHECKING, Protocol

import msgspec

from seekable.errors import BadValue, InvalidArgument
from seekable.parallel.processes import (
    HEAD_BYTES,
    head_of,
    leave_signals_to_parent,
    length_in,
    start_interpreter,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    Spans = list[tuple[int, int]]
    """Places within a text: from a character to the one after the last."""

_Answer = tuple[str | None, list[list[tuple[int, int]]]]

_MOST_BYTES = 1024
_MOST_SPANS = 1000
"""The most places that are returned for one text."""

_SECONDS = 2.0
_CHARACTERS_AT_ONCE = 1_000_000
_TOO_LONG = (
    "the regular expression {!r} took more than {:.0f} seconds for one text, or for a million characters of "
    "texts, and was ended: write one without repeats inside of repeats, such as (a+)+"
)

_ENDED = "the process that matches regular expressions has ended: search again"

_NOT_SMALL = re.compile("([\u0130\u212a])")
"""Letters that are not of ASCII and whose small forms are, or have one more character."""


class Needle(Protocol):
    """What is looked for in texts."""

    def spans(self, texts: Sequence[str], *, most: int = _MOST_SPANS) -> list[Spans]:
        """Return the places of each text that have it, without overlaps, at most some for each."""

    def close(self) -> None:
        """End what works for it."""


def small(text: str) -> str:
    r"""Return a text with small letters, each of its characters as one.

    Example:
        >>> small("\u00c9COLE"), small("\u03a3") == small("\u03c2"), len(small("\u0130"))
        ('école', True, 1)
    """
    if text.isascii():
        return text.lower()
    if _NOT_SMALL.search(text) is not None:
        text = "".join(part if at % 2 else part.lower() for at, part in enumerate(_NOT_SMALL.split(text)))
    else:
        text = text.lower()
    return text.replace("\u03c2", "\u03c3")


def as_text(value: str | bytes, *, strict: bool = True) -> str:
    """Return a text, or bytes as text; an empty one if they are not UTF-8."""
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8", "strict" if strict else "replace")
    except UnicodeDecodeError:
        return ""


def needle_of(text: str, *, regex: bool = False, case: bool = False) -> Needle:
    """Return what finds a text, or a regular expression.

    Args:
        text: the text, at most 1,024 bytes of UTF-8.
        regex: True if it is a regular expression.
        case: True if capital and small letters differ.

    Raises:
        InvalidArgument: the text is empty or too long.
    """
    return RegexNeedle(text, case=case) if regex else PlainNeedle(text, case=case)


def _checked(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    if not 0 < len(raw) <= _MOST_BYTES:
        message = f"a search takes a text of 1 to {_MOST_BYTES:,} bytes (got {len(raw):,})"
        raise InvalidArgument(message)
    return raw


class PlainNeedle:
    """Finds a text.

    Example:
        >>> PlainNeedle("Met").spans(["the committee met; MET", "no"])
        [[(14, 17), (19, 22)], []]
    """

    def __init__(self, text: str, *, case: bool = False) -> None:
        raw = _checked(text)
        self.case = case
        self.text = text if case else small(text)
        self.raw = raw if case else self.text.encode("utf-8", "surrogatepass")

    def is_in(self, value: str | bytes) -> bool:
        """Return True if a text, or bytes as UTF-8, have it."""
        if isinstance(value, str):
            return self.text in (value if self.case else small(value))
        if self.case:
            return self.raw in value
        if self.text.isascii():
            return self.raw in value.lower()
        return self.text in small(value.decode("utf-8", "replace"))

    def spans(self, texts: Sequence[str], *, most: int = _MOST_SPANS) -> list[Spans]:
        """Return the places of each text that have it."""
        return [self._spans(text if self.case else small(text), most) for text in texts]

    def close(self) -> None:
        """Do nothing: no process works for it."""

    def _spans(self, text: str, most: int) -> Spans:
        found: Spans = []
        at = text.find(self.text)
        while at >= 0 and len(found) < most:
            found.append((at, at + len(self.text)))
            at = text.find(self.text, found[-1][1])
        return found


class RegexNeedle:
    r"""Finds a regular expression, in a process of its own that starts with the first texts.

    Example:
        >>> needle = RegexNeedle(r"m.t\b")
        >>> needle.spans(["the committee Met", "no"])
        [[(14, 17)], []]
        >>> needle.close()
    """

    def __init__(self, text: str, *, case: bool = False) -> None:
        _checked(text)
        self.text = text
        self._flags = 0 if case else int(re.IGNORECASE)
        self._process: subprocess.Popen[bytes] | None = None

    def spans(self, texts: Sequence[str], *, most: int = _MOST_SPANS) -> list[Spans]:
        """Return the places of each text that the expression matches; no empty ones.

        Raises:
            InvalidArgument: it is no regular expression, or takes more than two seconds for some texts.
        """
        found: list[Spans] = []
        while len(found) < len(texts):
            some: list[str] = []
            size = 0
            for text in texts[len(found) :]:
                size += len(text)
                if some and size > _CHARACTERS_AT_ONCE:
                    break
                some.append(text)
            found += self._exchange([[text.encode("utf-8", "surrogatepass") for text in some], most])
        return found

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _exchange(self, request: list[object]) -> list[Spans]:
        if self._process is None:
            self._process = start_interpreter(__name__, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._ask([self.text.encode("utf-8", "surrogatepass"), self._flags], start=True)
        found: list[Spans] = self._ask(request)
        return found

    def _ask(self, request: object, *, start: bool = False) -> list[Spans]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        message = msgspec.msgpack.encode(request)
        try:
            process.stdin.write(head_of(message) + message)
            process.stdin.flush()
        except BrokenPipeError:
            raise BadValue(_ENDED) from None
        until = time.monotonic() + _SECONDS * (5 if start else 1)
        answer = _read_until(process.stdout, until)
        if answer is None:
            self.close()
            raise InvalidArgument(_TOO_LONG.format(self.text[:80], _SECONDS))
        why, found = msgspec.msgpack.decode(answer, type=_Answer)
        if why is not None:
            self.close()
            raise InvalidArgument(f"{self.text[:80]!r} is no regular expression: {why}")
        return found


def _read_until(pipe: IO[bytes], until: float) -> bytes | None:
    """Return the next message of a pipe; None if it is not there in time.

    Raises:
        BadValue: the process ended.
    """
    data, size = b"", HEAD_BYTES
    head = True
    poll = select.poll()
    poll.register(pipe.fileno(), select.POLLIN)
    while True:
        if len(data) == size:
            if not head:
                return data
            data, size, head = b"", length_in(data), False
            continue
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(1000 * left):
            return None
        more = os.read(pipe.fileno(), size - len(data))
        if not more:
            raise BadValue(_ENDED)
        data += more


def serve() -> None:
    """Answer requests for matches until the input ends: first the expression, then texts."""
    leave_signals_to_parent()
    warnings.simplefilter("ignore")
    expression: re.Pattern[str] | None = None
    while head := sys.stdin.buffer.read(HEAD_BYTES):
        request = msgspec.msgpack.decode(sys.stdin.buffer.read(length_in(head)))
        why, found = None, []
        if expression is None:
            try:
                expression = re.compile(request[0].decode("utf-8", "surrogatepass"), request[1])
            except (re.error, OverflowError, RecursionError, MemoryError) as error:
                why = str(error) or type(error).__name__
        else:
            texts, most = request
            found = [_matches(expression, text.decode("utf-8", "surrogatepass"), most) for text in texts]
        answer = msgspec.msgpack.encode((why, found))
        sys.stdout.buffer.write(head_of(answer) + answer)
        sys.stdout.buffer.flush()


def _matches(expression: re.Pattern[str], text: str, most: int) -> Spans:
    found: Spans = []
    for match in expression.finditer(text):
        if match.end() > match.start():
            found.append(match.span())
            if len(found) == most:
                break
    return found
