"""What the operating system is told to fetch is what is read, and not what lies between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import seekable as sk
from seekable.storage.mapped import MappedFile

if TYPE_CHECKING:
    from pathlib import Path

COUNT, IMAGE = 20, 20_000


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges that are announced, in their order."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(MappedFile, "advise", lambda _, start, end: found.append((start, end)))
    return found


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Samples of an image, 20 kB, and a small JSON text."""
    records = [{"__key__": f"{row}", "jpg": bytes(IMAGE), "json": {"row": row}} for row in range(COUNT)]
    sk.from_sequence(records).write_tar(tmp_path / "samples")
    return tmp_path / "samples"


def test_one_small_field_costs_its_own_bytes(samples: Path, announced: list[tuple[int, int]]) -> None:
    ds = sk.open(samples, columns=["json"])
    ds[list(range(COUNT))]
    assert len(announced) == COUNT
    assert all(0 < end - start < 20 for start, end in announced)


def test_whole_samples_are_announced_as_one_range(samples: Path, announced: list[tuple[int, int]]) -> None:
    ds = sk.open(samples)
    ds[list(range(COUNT))]
    assert len(announced) == 1
