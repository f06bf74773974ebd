"""What the tests of acceptance share."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from seekable.remote.fetching.fetcher import fetcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Let this process forget what it has fetched: nothing in memory, and an empty cache on disk."""
    numbers = itertools.count()

    def forget() -> None:
        fetcher().close()
        monkeypatch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path / f"empty-{next(numbers)}"))

    forget()
    yield forget
    fetcher().close()
