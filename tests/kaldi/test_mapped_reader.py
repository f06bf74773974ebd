"""Tables read by keys that a map translates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import seekable as sk
from seekable.kaldi import MappedReader

if TYPE_CHECKING:
    from pathlib import Path


def test_keys_are_translated(tmp_path: Path) -> None:
    (tmp_path / "spk").write_bytes(b"s1 1\ns2 2\n")
    (tmp_path / "map").write_bytes(b"u1 s2\nu2 s1\nu3 s2\nu4 s3\n")
    with MappedReader(f"ark:{tmp_path}/spk", f"ark:{tmp_path}/map", "int32") as reader:
        assert [reader[key] for key in ("u1", "u2", "u3")] == [2, 1, 2]
        assert "u1" in reader
        assert "u4" not in reader
        for use in (reader.__contains__, reader.__getitem__):
            with pytest.raises(sk.KeyNotFound, match="the map"):
                use("u5")


def test_without_a_map_it_is_a_plain_reader(tmp_path: Path) -> None:
    (tmp_path / "spk").write_bytes(b"s1 1\ns2 2\n")
    with MappedReader(f"ark:{tmp_path}/spk", "", "int32") as reader:
        assert "u" not in reader
        assert reader["s2"] == 2
