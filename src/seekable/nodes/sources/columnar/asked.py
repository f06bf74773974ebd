"""What users ask of tables when they open them, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seekable._arguments import checked_count, checked_flag
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.sources.columnar.held import HELD
from seekable.nodes.sources.columnar.source import MOST_OPEN_FILES

__all__ = ["checked_for_tables", "refuse_for_lines"]


def checked_for_tables(
    *,
    decode: Any,
    columns: Sequence[str] | None,
    strict: bool,
    max_open_files: int,
) -> dict[str, Any]:
    """Return the arguments of a table source.

    Raises:
        InvalidArgument: one breaks a rule.
        WrongType: one is of another type.
    """
    if decode is not None and decode not in HELD:
        message = (
            f"decode must be one of {', '.join(map(repr, HELD))} for tables (got {decode!r}); a function of "
            f"records goes into ds.map"
        )
        raise InvalidArgument(message)
    return {
        "decode": decode or "python",
        "columns": None if columns is None else _checked_names(columns),
        "strict": checked_flag("strict", strict),
        "max_open_files": checked_count("max_open_files", max_open_files, least=1),
    }


def refuse_for_lines(name: str, *, columns: Any, strict: bool, max_open_files: int) -> None:
    """Refuse arguments that lines have no use for.

    Raises:
        InvalidArgument: one was given.
    """
    if columns is not None:
        message = (
            f"columns= is for tables (Parquet, Arrow), and this is {name}, where a line is read as a whole: "
            f"sk.open(...).select_columns({list(columns)!r})"
        )
        raise InvalidArgument(message)
    if strict or max_open_files != MOST_OPEN_FILES:
        given = "strict=" if strict else "max_open_files="
        message = f"{given} is for tables (Parquet, Arrow), and this is {name}"
        raise InvalidArgument(message)


def _checked_names(columns: Sequence[str]) -> tuple[str, ...]:
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        message = f"columns must be a list of names (got {columns!r})"
        raise WrongType(message)
    names = tuple(columns)
    wrong = [name for name in names if not isinstance(name, str) or names.count(name) > 1]
    if wrong:
        message = f"columns must be names, each once (got {wrong[0]!r} in {list(names)!r})"
        raise InvalidArgument(message)
    return names
