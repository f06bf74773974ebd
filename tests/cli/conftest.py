from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.command import Corpus, write_corpus

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A folder of three shards."""
    return write_corpus(tmp_path / "corpus")
