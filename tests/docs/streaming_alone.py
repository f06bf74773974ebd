"""MosaicML Streaming in a process of its own: its folder and its import."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.opponents.streaming import imported

if TYPE_CHECKING:
    from types import ModuleType

FOLDER = Path(sys.prefix) / "apart" / "streaming"


def streaming() -> ModuleType:
    """Return MosaicML Streaming, imported from the folder that `make nightly` installs it into."""
    assert FOLDER.is_dir(), f"{FOLDER} is missing: run `make nightly`, which installs Streaming there"
    sys.path.append(str(FOLDER))
    return imported()
