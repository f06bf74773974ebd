"""Checks of arguments: each names the argument, the rule and the value."""

from __future__ import annotations

import functools
import operator
import os
import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, SupportsFloat, TypeVar

import numpy as np

from seekable._lazy import lazy
from seekable.errors import InvalidArgument, OutOfRange, WrongType

if TYPE_CHECKING:
    import difflib
    import fractions
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from numpy.typing import NDArray
else:
    difflib = lazy("difflib")
    fractions = lazy("fractions")

__all__ = [
    "AT_ONCE",
    "POSITIONS",
    "check_distinct",
    "check_workers",
    "checked_choice",
    "checked_columns",
    "checked_count",
    "checked_epoch",
    "checked_flag",
    "checked_fraction",
    "checked_function",
    "checked_path",
    "checked_rows",
    "checked_seconds",
    "checked_seed",
    "checked_text",
    "checked_texts",
    "checked_version",
    "checked_word",
    "explains_fields",
    "explains_keywords",
    "repeated",
    "row_array",
]


P = ParamSpec("P")
T = TypeVar("T")

POSITIONS = 1 << 63
"""Positions are below this: signed 64-bit integers."""

AT_ONCE = 1 << 20
"""Numbers of lanes, of ranks and of processes are below this: each of them takes memory."""


def checked_count(name: str, value: object, *, least: int, below: int = POSITIONS) -> int:
    """Return an integer argument from ``least`` on, below a bound.

    Raises:
        WrongType: it is not an integer.
        InvalidArgument: it is too small, or too large.

    Example:
        >>> checked_count("size", 3, least=1)
        3
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:  # also for a class, and for an array of several numbers
        number = None
    if number is None:
        message = f"{name} must be an integer (got {value!r} of type {type(value).__name__})"
        raise WrongType(message)
    if number < least:
        message = f"{name} must be at least {least} (got {number})"
        raise InvalidArgument(message)
    if number >= below:
        message = f"{name} must be below 2**{below.bit_length() - 1} (got {number})"
        raise InvalidArgument(message)
    return number


def checked_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return an argument that is one of a few texts.

    Raises:
        InvalidArgument: it is none of them, or no text.

    Example:
        >>> checked_choice("end", "pad", ("pad", "drop"))
        'pad'
    """
    known = list(choices)
    # Compared as a text alone: an array is equal to a text item by item, and a list has no hash.
    if not isinstance(value, str) or value not in known:
        *most, last = map(repr, known)
        message = f"{name} must be {', '.join(most)} or {last} (got {value!r})"
        raise InvalidArgument(message)
    return value


def checked_word(name: str, value: object, known: Iterable[str]) -> None:
    """Check an option that is one of a few words, or None.

    Raises:
        InvalidArgument: it is another word, or no text.

    Example:
        >>> checked_word("kind", "csv", ("parquet", "arrow"))
        Traceback (most recent call last):
        seekable.errors.InvalidArgument: kind must be 'parquet' or 'arrow', or left out (got 'csv')
    """
    words = list(known)
    if value is not None and not (isinstance(value, str) and value in words):
        message = f"{name} must be {' or '.join(map(repr, words))}, or left out (got {value!r})"
        raise InvalidArgument(message)


def checked_text(name: str, value: object) -> None:
    """Check an option that is a text, or None.

    Raises:
        WrongType: it is something else.
    """
    if value is not None and not isinstance(value, str):
        message = f"{name} must be a text (got {value!r} of type {type(value).__name__})"
        raise WrongType(message)


def checked_function(name: str, value: T) -> T:
    """Return an argument that can be called.

    Raises:
        WrongType: it cannot.
    """
    if not callable(value):
        message = f"{name} must be a function (got {value!r} of type {type(value).__name__})"
        raise WrongType(message)
    return value


def checked_texts(name: str, values: object) -> list[str]:
    """Return an argument that is a list of texts.

    Raises:
        WrongType: it is none.
    """
    texts: list[Any] = [None]
    if isinstance(values, Iterable) and not isinstance(values, str | bytes):
        texts = list(values)
    if not all(isinstance(text, str) for text in texts):
        message = f"{name} must be a list of texts (got {values!r})"
        raise WrongType(message)
    return texts


def checked_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns that the user asks for.

    Raises:
        WrongType: they are no list.
        InvalidArgument: one is no name, or comes twice.

    Example:
        >>> checked_columns(["id", "text"])
        ('id', 'text')
    """
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        message = f"columns must be a list of names (got {columns!r})"
        raise WrongType(message)
    names = tuple(columns)
    if wrong := [name for name in names if not isinstance(name, str)] or repeated(names):
        message = f"columns must be names, each once (got {wrong[0]!r} in {list(names)!r})"
        raise InvalidArgument(message)
    return names


def checked_version(value: object) -> None:
    """Check the version of a function, which is part of descriptions.

    Raises:
        WrongType: it is neither a text nor an integer.
        InvalidArgument: it is an integer that is not a 64-bit one.
    """
    if value is not None and not isinstance(value, str | int):
        message = f"version must be a string or an integer (got {value!r} of type {type(value).__name__})"
        raise WrongType(message)
    if isinstance(value, int) and abs(value) >= POSITIONS:
        message = f"version must lie within 64 bits, or be a string (got {value})"
        raise InvalidArgument(message)


def checked_path(path: object, *, name: str = "a path") -> str:
    """Return a path as a text, which the system can open.

    Args:
        path: the path.
        name: the name of the argument, for errors.

    Raises:
        WrongType: it is neither a text nor a path.
        InvalidArgument: it has a character that no name of a file has.

    Example:
        >>> checked_path("corpus/a.jsonl")
        'corpus/a.jsonl'
    """
    if not isinstance(path, str | bytes | os.PathLike):
        message = f"{name} must be a str or a pathlib.Path (got {path!r} of type {type(path).__name__})"
        raise WrongType(message)
    try:
        text = os.fsdecode(path)
        bad = b"\0" in os.fsencode(text)
    except UnicodeError:
        bad = True
    if bad:
        message = f"{name} must be a name that a file can have (got {path!r})"
        raise InvalidArgument(message)
    return text


def checked_flag(name: str, value: object) -> bool:
    """Return an argument that is True or False.

    Raises:
        WrongType: it is something else.
    """
    if not isinstance(value, bool):
        message = f"{name} must be True or False (got {value!r})"
        raise WrongType(message)
    return value


def check_distinct(values: Mapping[str, object]) -> None:
    """Check that arguments have different values.

    Raises:
        InvalidArgument: two are equal.

    Example:
        >>> check_distinct({"prefix": 1, "suffix": 2})
    """
    seen: dict[object, str] = {}
    for name, value in values.items():
        if value in seen:
            message = f"{seen[value]} and {name} must differ (got {value!r} for both)"
            raise InvalidArgument(message)
        seen[value] = name


def check_workers(jobs: object, executor: object) -> None:
    """Check the arguments that say where work is done.

    Args:
        jobs: a number of processes, or None.
        executor: a ``concurrent.futures.Executor`` or an object with its ``submit``, or None.

    Raises:
        WrongType: ``jobs`` is not an integer, or ``executor`` not an executor.
        InvalidArgument: ``jobs`` is less than 1.
    """
    if jobs is not None:
        checked_count("jobs", jobs, least=1, below=AT_ONCE)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        message = f"executor must be a concurrent.futures.Executor (got {executor!r})"
        raise WrongType(message)


def checked_fraction(name: str, value: object) -> Fraction:
    """Return an argument from 0 to 1, exactly the decimal number that Python prints for it.

    Raises:
        WrongType: it is not a number.
        InvalidArgument: it is not from 0 to 1.

    Example:
        >>> checked_fraction("fraction", 0.1)
        Fraction(1, 10)
    """
    if isinstance(value, bool | type | np.ndarray) or not isinstance(value, SupportsFloat):
        message = f"{name} must be a number from 0 to 1 (got {value!r} of type {type(value).__name__})"
        raise WrongType(message)
    if not 0 <= float(value) <= 1:
        message = f"{name} must be from 0 to 1 (got {value!r})"
        raise InvalidArgument(message)
    return fractions.Fraction(repr(float(value)))


def checked_seconds(name: str, value: float | None) -> float | None:
    """Return a time in seconds, checked; None stands for any time.

    Raises:
        WrongType: the value is not a number.
        InvalidArgument: the value is not above 0.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongType(f"{name} must be a number of seconds, or None (got {value!r})")
    if not value > 0:
        raise InvalidArgument(f"{name} must be above 0 seconds (got {value!r})")
    return float(value)


def checked_seed(value: object) -> int:
    """Return a seed, ``0 <= seed < 2**64``."""
    return checked_count("seed", value, least=0, below=1 << 64)


def checked_epoch(value: object, size: int | None) -> int:
    """Return the number of an epoch whose positions are 64-bit integers.

    Args:
        value: the epoch.
        size: how many records an epoch has; None without end.

    Raises:
        InvalidArgument: its positions would be 2**63 or more.
    """
    epoch = checked_count("epoch", value, least=0)
    if (epoch + 1) * (size or 0) >= POSITIONS:
        message = f"epoch must lie below 2**63 / {size}, so that positions are 64-bit integers (got {epoch})"
        raise InvalidArgument(message)
    return epoch


def checked_rows(rows: Sequence[int] | NDArray[Any], size: int | None) -> NDArray[np.int64]:
    """Return row numbers as an array, negative ones counted from the end.

    Args:
        rows: a flat list, tuple or array of integers.
        size: how many rows there are; None without end.

    Raises:
        WrongType: they are not a flat list of integers.
        OutOfRange: there is no such row.

    Example:
        >>> checked_rows([0, -1], 5).tolist()
        [0, 4]
    """
    numbers = row_array(rows)
    if not numbers.size:
        return np.empty(0, dtype=np.int64)
    # Integers of more than 64 bits are objects to NumPy.
    are_integers = numbers.dtype.kind in "iu" or all(type(number) is int for number in numbers.flat)
    if numbers.ndim != 1 or not are_integers:
        raise WrongType(_no_rows(rows))
    # Compared before they are made signed: unsigned numbers from 2**63 on would turn negative.
    low, high = int(numbers.min()), int(numbers.max())
    if low < (0 if size is None else -size):
        raise OutOfRange(out_of_range(low, size))
    if high >= (1 << 63 if size is None else size):
        raise OutOfRange(out_of_range(high, size))
    numbers = numbers.astype(np.int64)
    return np.where(numbers < 0, numbers + (size or 0), numbers) if low < 0 else numbers


def row_array(rows: object) -> NDArray[Any]:
    """Return rows that a user names as an array, which `checked_rows` checks.

    Raises:
        WrongType: they are lists of several lengths, of which there is no array.
    """
    try:
        return np.asarray(rows)
    except ValueError:
        raise WrongType(_no_rows(rows)) from None


def _no_rows(rows: object) -> str:
    """Return the message for values that are not row numbers; it names the way for texts and for flags."""
    if isinstance(rows, np.ndarray):
        rows = rows.tolist()
    first = rows[0] if isinstance(rows, list | tuple) and rows else rows
    message = f"rows must be a flat list of integers, the numbers of rows (got {reprlib.repr(rows)})"
    if isinstance(first, str):
        return f"{message}; columns are chosen by their names with select_columns([{first!r}])"
    if isinstance(first, bool):
        return f"{message}; of a flag for each row, np.flatnonzero(flags) has the numbers"
    return message


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, in alphabetical order; its time is linear in their number.

    Example:
        >>> repeated(["b", "a", "b", "c", "a"])
        ['a', 'b']
    """
    return sorted(name for name, count in Counter(names).items() if count > 1)


def out_of_range(row: int, size: int | None) -> str:
    """Return the message for a row that is not there."""
    rule = (
        "an endless dataset has rows from 0 to 2**63 - 1" if size is None else f"there are {size:,} records"
    )
    return f"row {row} is out of range: {rule}"


def explains_fields(value: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator for an option class, whose errors begin with a name then, those of fields too.

    Args:
        value: the name that users write, such as ``"sk.Index"``.

    Example:
        >>> import seekable as sk
        >>> sk.Workers(4, timeot=60)
        Traceback (most recent call last):
        seekable.errors.InvalidArgument: Workers() has no argument 'timeot': did you mean timeout=?
        >>> sk.Index(jobs=0)
        Traceback (most recent call last):
        seekable.errors.InvalidArgument: sk.Index: jobs must be at least 1 (got 0)
    """

    def decorated(kind: type[T]) -> type[T]:
        made = explains_keywords({}, value=value)(kind.__init__)
        kind.__init__ = made  # type: ignore[method-assign]
        return kind

    return decorated


def explains_keywords(
    elsewhere: Mapping[str, str], *, value: str = ""
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator by which a function refuses keywords that it lacks, with the name that is meant.

    Arguments that must be named are refused by position likewise, and those that must be given are asked for.

    Args:
        elsewhere: what to write instead, by the keyword that people write.
        value: the name that comes before the function's own errors about arguments; empty for none.

    Example:
        >>> @explains_keywords({"num_workers": "workers="})
        ... def load(*, workers: int) -> int:
        ...     return workers
        >>> load(num_workers=2)
        Traceback (most recent call last):
        seekable.errors.InvalidArgument: load() has no argument 'num_workers': write workers=
        >>> load(worker=2)
        Traceback (most recent call last):
        seekable.errors.InvalidArgument: load() has no argument 'worker': did you mean workers=?
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        code = function.__code__
        of_class = code.co_varnames[:1] == ("self",)
        shown = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
        known = code.co_varnames[of_class : code.co_argcount + code.co_kwonlyargcount]
        allowed, most = frozenset(known), code.co_argcount - of_class
        by_default = {
            *known[most - len(function.__defaults__ or ()) : most],
            *(function.__kwdefaults__ or ()),
        }
        needed = allowed - by_default

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            if not allowed.issuperset(kwargs):
                name = next(name for name in kwargs if name not in allowed)
                near = difflib.get_close_matches(name, known, n=1)
                way = f"did you mean {near[0]}=?" if near else f"it has {', '.join(known)}"
                way = f"write {elsewhere[name]}" if name in elsewhere else way
                message = f"{shown}() has no argument {name!r}: {way}"
                raise InvalidArgument(message)
            given = args[of_class:]
            if len(given) > most:
                named = f": give the others by name, such as {known[most]}=" if known[most:] else ""
                message = f"{shown}() takes {most} argument{'s' * (most != 1)} by position (got {len(given)})"
                # Other values than numbers may be secrets.
                one = repr(given[most]) if isinstance(given[most], int) else "..."
                raise WrongType(message + (f"{named}{one}" if named else ""))
            if lacking := needed.difference(kwargs, known[: len(given)]):
                named = " and ".join(f"{name}=" for name in known if name in lacking)
                raise WrongType(f"{shown}() needs {named}")
            if twice := allowed.intersection(known[: len(given)], kwargs):
                raise WrongType(f"{shown}() takes {min(twice)} once, by position or by name (got both)")
            try:
                return function(*args, **kwargs)
            except (InvalidArgument, WrongType) as error:
                if not value:
                    raise
                raise type(error)(f"{value}: {error}") from None

        return checked

    return decorated
