"""Fingerprints of datasets of tokens in folders of other tools, whose digests hold the repr of a class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.formats.tokens.folder_writers import write_forager, write_litdata, write_mds

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def litdata(folder: Path) -> None:
    """Write two chunks."""
    write_litdata(
        folder, [[np.arange(3, dtype="<u2"), np.arange(2, dtype="<u2")], [np.arange(4, dtype="<u2")]]
    )


def mds(folder: Path) -> None:
    """Write two shards."""
    shards = [[{"tokens": np.arange(3, dtype="<u2")}], [{"tokens": np.arange(5, dtype="<u2")}]]
    write_mds(folder, {"tokens": "ndarray:uint16"}, shards)


def forager(folder: Path) -> None:
    """Write two samples of two arrays."""
    sample = {"tokens": np.arange(4, dtype="<u2"), "loss_mask": np.zeros(4, dtype="|u1")}
    write_forager(folder, {"a.bin": [sample, sample]}, with_schema=True)


@pytest.mark.parametrize(
    ("write", "fingerprint"),
    [
        (litdata, "xxh3:19d0816a1e89f1aa690c1a136aac805b"),
        (mds, "xxh3:3f5be3815ffd63057b51fd9b30b31e62"),
        (forager, "xxh3:be632f3430c7198427e17dfeec961e82"),
    ],
)
def test_the_fingerprint_of_a_folder_stays(
    write: Callable[[Path], None], fingerprint: str, tmp_path: Path
) -> None:
    write(tmp_path / "data")
    assert sk.open(tmp_path / "data").fingerprint == fingerprint
