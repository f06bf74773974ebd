"""A format as a value: what ``sk.open(format=)`` takes besides a name."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.registry import format_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Format", "Hive", "check_partitions"]

Hive = Literal["hive"]
"""Folders ``year=2024/lang=de/`` are columns."""

_WILD = frozenset("*?[{")
_NOT_OF_RECORDS = frozenset({"partitions", "suffix"})
"""The options that say which sources go together, and not how records are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The options that one format alone knows; a frozen value that checks itself.

    The formats are ``Jsonl``, ``Text``, ``Csv``, ``Tables``, ``Tar``, ``Kaldi`` and ``Tokens``.
    """

    names: ClassVar[tuple[str, ...]]
    """The names of the formats that have these options. The first one is that of a file whose own name does
    not decide it."""

    @property
    def record_options(self) -> Mapping[str, Any]:
        """The options that say how the records of one source are read, by name."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in _NOT_OF_RECORDS
        }

    def name_for(self, source: object) -> str | None:
        """Return the name of the format of a source; None where its files decide.

        They do where the source is a folder or a glob, or has a suffix of one of these formats.
        """
        first = source[0] if isinstance(source, list | tuple) and source else source
        if not isinstance(first, str | os.PathLike):
            return None
        text = os.fsdecode(first)
        base = os.path.basename(text)
        suffix = os.path.splitext(base)[1]
        if not suffix or not _WILD.isdisjoint(suffix) or os.path.isdir(text):
            return None
        try:
            found = format_of(base).name
        except UnsupportedFormat:
            return self.names[0]
        return None if found in self.names else self.names[0]

    def check(self, name: str, shown: str) -> None:
        """Check that the files of a source are of a format that has these options.

        Args:
            name: the name of the format of the files.
            shown: the source as the user named it.

        Raises:
            InvalidArgument: they are of another one.
        """
        if name not in self.names and name.partition("-")[0] not in self.names:
            message = (
                f"format={type(self).__name__}(...) is for {', '.join(self.names)}, and {shown} is {name}: "
                f"leave it out, or name the files"
            )
            raise InvalidArgument(message)


def check_partitions(partitions: object) -> None:
    """Check the option of all formats whose records are dicts.

    Raises:
        InvalidArgument: it is another word than ``"hive"``.
    """
    if partitions not in (None, "hive"):
        message = f'partitions must be "hive", or left out (got {partitions!r})'
        raise InvalidArgument(message)
