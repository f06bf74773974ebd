"""What a table of the benchmarks was measured on: the date, the processor and the versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Setting"]

_LIBRARIES = (
    "numpy",
    "msgspec",
    "pyarrow",
    "lhotse",
    "grain",
    "litdata",
    "mosaicml-streaming",
    "data-forager",
    "datasets",
    "torch",
)
"""What is measured, or measured against, where it is installed."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The date and the machine of a table."""

    date: str
    cores: int
    processor: str
    system: str
    versions: Mapping[str, str]

    @classmethod
    def here(cls) -> Setting:
        """Return the setting of this process, today."""
        system = f"{platform.system()} {platform.release().partition('-')[0]}"
        return cls(f"{datetime.now(UTC):%Y-%m-%d}", os.cpu_count() or 0, _processor(), system, _versions())

    def in_words(self) -> str:
        """Return the setting as a line.

        Example:
            >>> Setting("2026-01-31", 2, "a processor", "Linux 6.1", {"Python": "3.11.7"}).in_words()
            '2026-01-31, 2 x a processor, Linux 6.1, Python 3.11.7'
        """
        versions = [f"{name} {version}" for name, version in self.versions.items()]
        return ", ".join([self.date, f"{self.cores} x {self.processor}", self.system, *versions])


def _processor() -> str:
    """Return the name of the processor; of its architecture where the system does not say it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            fields = (line.partition(":") for line in lines)
            return next(value.strip() for name, _, value in fields if name.strip() == "model name")
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    """Return the versions of Python, of seekable, and of the other libraries that are installed."""
    found = {"Python": platform.python_version()}
    for name in ("seekable", *_LIBRARIES):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
