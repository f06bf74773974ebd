"""Writers and readers of tokens that lie in a folder of their own: Megatron-core, LitData, datatrove."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "apart" / "tokens"


def add_to_path() -> None:
    """Make them importable; what is installed in the environment itself comes first."""
    assert FOLDER.is_dir(), f"{FOLDER} is missing: run `make nightly`, which installs them there"
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
