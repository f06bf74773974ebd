"""The base of sources over indexed files: what each answers without its records, against its records."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
import seekable.kaldi as kd
from seekable.index.digest import key_hash
from seekable.nodes.conditions import Bounds, checked_where

if TYPE_CHECKING:
    from pathlib import Path

KEYS = ["a", "b", "c"]


def archive_of_samples(folder: Path) -> sk.Dataset:
    with tarfile.open(folder / "a.tar", "w") as archive:
        for key in KEYS:
            member = tarfile.TarInfo(f"{key}.txt")
            member.size = 2
            archive.addfile(member, io.BytesIO(b"hi"))
    return sk.open(folder / "a.tar", columns=["txt"])


def archive_of_vectors(folder: Path) -> sk.Dataset:
    with kd.Writer(f"ark:{folder}/a.ark", "vector") as writer:
        for key in KEYS:
            writer.write(key, np.zeros(2, np.float32))
    return sk.open(f"ark:{folder}/a.ark")


@pytest.mark.parametrize("made", [archive_of_samples, archive_of_vectors])
def test_keys_of_a_source_are_known_without_its_records(made: Any, tmp_path: Path) -> None:
    leaf: Any = made(tmp_path)._node
    own, rows = leaf.own_keys(), np.arange(len(KEYS))
    hashes, there = own.hashes(rows)
    assert (hashes.tolist(), there.all()) == ([key_hash(key) for key in KEYS], True)
    assert [own.key_at(row) for row in rows.tolist()] == KEYS
    assert own.alone(leaf.keys).fetch(rows) == KEYS


def test_whole_files_are_ruled_out_by_what_is_known_of_them(tmp_path: Path) -> None:
    for name in "abcd":
        tmp_path.joinpath(f"{name}.jsonl").write_text('{"n": 1}\n' * 3)
    leaf: Any = sk.open(tmp_path)._node
    known = [{"year": Bounds(year, year, nulls=False, values=True)} for year in (2021, 2024, 2024, 2020)]
    assert leaf.may_match_knowing(checked_where([("year", ">=", 2021)]), known).tolist() == [[0, 9]]
    assert leaf.may_match_knowing(checked_where([("year", "==", 2024)]), known).tolist() == [[3, 9]]
    assert leaf.may_match_knowing(checked_where([("n", "==", 7)]), known).tolist() == [[0, 12]]
    assert leaf.may_match_knowing(checked_where([("year", "<", 2020)]), known).tolist() == []


def test_bad_rows_are_named_by_file_with_the_first_of_each(tmp_path: Path) -> None:
    for name, lines in (("a", '{"n": 1}\n'), ("b", '{"n": 1}\n{\n[\n')):
        tmp_path.joinpath(f"{name}.jsonl").write_text(lines)
    leaf: Any = sk.open(tmp_path)._node
    ((path, (error, count)),) = leaf.bad_rows(0, leaf.size).items()
    assert (path, error.row, count) == (str(tmp_path / "b.jsonl"), 1, 2)
    assert (leaf.own_keys(), leaf.problems(), leaf.beside(), leaf.decodes_itself) == (None, (), (), True)
