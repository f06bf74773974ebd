"""Prints the oldest versions that pyproject.toml allows, as constraints for pip: ``make minimum``."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_LOWEST = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?:\[[^]]*\])?>=(?P<version>[0-9.a-z]+)")


def constraints(project: str) -> list[str]:
    """Return a line for each requirement with a lowest version, of the core and of the extras.

    Args:
        project: the text of a pyproject.toml.

    Raises:
        ValueError: a requirement of the core has no lowest version.
    """
    table = tomllib.loads(project)["project"]
    extras = [line for some in table["optional-dependencies"].values() for line in some]
    found = set()
    for line in [*table["dependencies"], *extras]:
        if match := _LOWEST.match(line):
            found.add(f"{match['name']}=={match['version']}")
        elif not line.startswith("seekable["):
            raise ValueError(f"{line!r} in pyproject.toml has no lowest version: write 'name>=version'")
    return sorted(found)


if __name__ == "__main__":
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    sys.stdout.write("".join(f"{line}\n" for line in constraints(text)))
