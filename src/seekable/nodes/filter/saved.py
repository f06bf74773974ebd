"""Kept rows under a name, for later runs and other processes.

Beside the rows lies a description of what they are rows of, ``<name>.json``. It is written first, so rows
without it were never written here, and a description without rows is what a killed process left. Whoever
finds no rows takes the lock ``<name>.lock``, looks again, and keeps them; the others wait for it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from seekable.errors import CorruptState, InvalidArgument, StateMismatch
from seekable.nodes.filter.kept import Digested, KeptRows
from seekable.storage.files import TEMPORARY_SUFFIX, locked, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seekable._typing import Int64s


__all__ = ["Origin", "saved_rows"]

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Origin:
    """What decides which rows are kept."""

    dataset: str
    """The fingerprint of the dataset."""

    records: int
    """How many records it has."""

    function: dict[str, Any]
    """The function's name and version, and a partial's arguments."""

    code: str | None
    """The digest of its code; None where a version stands for it."""

    python: str
    """The minor version of Python, which the code's digest depends on."""


class _Sidecar(msgspec.Struct):
    seekable_kept: int
    dataset: str
    records: int
    function: dict[str, Any]
    code: str | None
    python: str
    count: int
    rows: str


def saved_rows(
    path: str,
    origin: Origin,
    keep: Callable[[], Iterable[Int64s]],
    *,
    waiting: Callable[[], None],
) -> KeptRows:
    """Return the rows in a file, after keeping them if there is none yet.

    Args:
        path: the absolute path of the file.
        origin: what the rows must have been kept of.
        keep: returns the rows, ascending; called only if they are not there.
        waiting: is told when another process keeps them just now.

    Raises:
        StateMismatch: the file holds rows of another dataset or function.
        CorruptState: the file or its description is not what was written.
        InvalidArgument: the file holds something else.
    """
    if kept := _opened(path, origin):
        return kept
    with locked(f"{path}.lock", waiting=waiting):
        if kept := _opened(path, origin):
            return kept
        _remove_torn(path)
        return _written(path, origin, keep())


def _opened(path: str, origin: Origin) -> KeptRows | None:
    # The rows before their description, which is there first.
    if not os.path.lexists(path):
        return None
    sidecar = _sidecar(path)
    if lines := _differences(sidecar, origin):
        message = (
            f"{path!r} holds rows that were kept of something else:\n"
            + "\n".join(lines)
            + "\nName another file with save=, or remove this one to filter again"
        )
        raise StateMismatch(message)
    kept = KeptRows(path, sidecar.count, sidecar.rows, named=True)
    kept.check()
    return kept


def _sidecar(path: str) -> _Sidecar:
    try:
        with open(f"{path}.json", "rb") as file:
            sidecar = msgspec.json.decode(file.read(), type=_Sidecar)
    except FileNotFoundError:
        message = (
            f"{path!r} is there, and {path + '.json'!r}, which would say what rows it holds, is not: it was "
            f"not kept by filter(). Name another file with save=, or remove this one if nobody needs it"
        )
        raise InvalidArgument(message) from None
    except ValueError as error:
        message = f"{path + '.json'!r} cannot be read ({error}): remove it and {path!r} to filter again"
        raise CorruptState(message) from error
    if sidecar.seekable_kept != _SCHEMA:
        message = (
            f"{path + '.json'!r} has version {sidecar.seekable_kept}, and this seekable knows {_SCHEMA}: use "
            f"the version that wrote it, or remove it and {path!r} to filter again"
        )
        raise CorruptState(message)
    return sidecar


def _differences(was: _Sidecar, now: Origin) -> list[str]:
    lines = []
    if was.dataset != now.dataset:
        lines.append(
            f"the dataset was {was.dataset} of {was.records:,} records, "
            f"is {now.dataset} of {now.records:,} records"
        )
    if was.function != now.function:
        lines.append(f"the function was {_called(was.function)}, is {_called(now.function)}")
    elif was.code != now.code:
        line = f"the code of {_called(now.function)} was {was.code}, is {now.code}"
        if was.python != now.python:
            line += (
                f" (by Python {was.python} then and {now.python} now, whose code differs even where nothing "
                f"was changed: version= stands for the code in both)"
            )
        lines.append(line)
    return lines


def _called(function: dict[str, Any]) -> str:
    return ", ".join([str(function["name"]), *(f"{k} {v!r}" for k, v in function.items() if k != "name")])


def _written(path: str, origin: Origin, arrays: Iterable[Int64s]) -> KeptRows:
    parts = Digested(arrays)

    def rows_then_description() -> Iterator[memoryview]:
        yield from parts
        # The rows are all written, and get their name when this returns.
        sidecar = _Sidecar(
            _SCHEMA,
            origin.dataset,
            origin.records,
            origin.function,
            origin.code,
            origin.python,
            parts.count,
            parts.digest,
        )
        write_atomically(f"{path}.json", msgspec.json.format(msgspec.json.encode(sidecar)) + b"\n")

    write_atomically(path, rows_then_description())
    return KeptRows(path, parts.count, parts.digest, named=True)


def _remove_torn(path: str) -> None:
    """Remove what killed processes left; nobody else is writing while the lock is held."""
    folder, name = os.path.split(path)
    torn = re.compile(rf"{re.escape(name)}(\.json)?\.[0-9a-f]{{16}}{re.escape(TEMPORARY_SUFFIX)}", re.DOTALL)
    for other in os.listdir(folder):
        if torn.fullmatch(other):
            os.unlink(os.path.join(folder, other))
