"""An opponent that is installed and does not work."""

from __future__ import annotations

DISTRIBUTION = "numpy"


def convert(source: str, folder: str) -> None:  # noqa: ARG001 - as others have it
    raise OSError("no such processor")
