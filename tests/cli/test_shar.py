"""The commands on a folder of Shar."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import output as raw_output
from tests.cli.command import run
from tests.formats.shar.shar_folders import pairs, recording, write_shar, write_tar

if TYPE_CHECKING:
    from pathlib import Path


def output(*arguments: str) -> str:
    return raw_output(*arguments).decode()


@pytest.fixture
def shar(tmp_path: Path) -> Path:
    write_shar(tmp_path / "shar", [3, 2])
    return tmp_path / "shar"


def test_index_counts_the_cuts_and_the_files_of_all_fields(shar: Path) -> None:
    for asked in (str(shar), f"shar:{shar}"):
        assert f"{asked}: 5 records in 6 files, " in output("index", asked)
    found = json.loads(output("index", "--json", str(shar)))["datasets"][0]
    assert (found["files"], found["records"]) == (6, 5)


def test_info_shows_the_fields(shar: Path) -> None:
    found = json.loads(output("info", "--json", str(shar)))
    assert (found["format"], found["records"], found["files"]) == ("shar", 5, 6)
    assert {name: (own["format"], own["files"]) for name, own in found["fields"].items()} == {
        "cuts": ("jsonl", 2),
        "lang": ("jsonl", 2),
        "recording": ("tar", 2),
    }
    assert found["bytes"] == sum(own["bytes"] for own in found["fields"].values())
    assert "recording  tar, " in output("info", str(shar))


def test_head_and_get_print_payloads_short(shar: Path) -> None:
    long = bytes(range(20)) * 10
    write_tar(shar / "recording.000001.tar", pairs((f"utt-{n}", "wav", long, recording(n)) for n in (3, 4)))
    first, *_ = output("head", "-n", "1", str(shar)).splitlines()
    assert json.loads(first)["recording"]["data"] == "<13 bytes: b'payload utt-0'>"
    (last,) = output("get", str(shar), "4").splitlines()
    assert json.loads(last)["recording"]["data"] == f"<200 bytes: {long[:16]!r}...>"


def test_verify_looks_at_every_file_and_compares_the_fields_with_the_cuts(shar: Path) -> None:
    output("index", str(shar))
    assert "good: 15 records in 6 files" in output("verify", "--deep", "--decode", str(shar))
    write_tar(shar / "recording.000001.tar", pairs([("utt-3", "wav", b"x", recording(3))]))
    changed = run("verify", str(shar))
    assert changed.returncode == 3
    assert "recording.000001.tar: changed" in changed.stdout.decode()
    output("index", str(shar / "recording.000001.tar"), "--format", "tar-pairs")
    assert "has 1 records of the field 'recording'" in run("verify", str(shar)).stdout.decode()
    write_tar(shar / "recording.000001.tar", pairs((f"utt-{n}", "wav", b"x", recording(n)) for n in (4, 3)))
    output("index", str(shar))
    assert "'utt-4'" in run("verify", "--decode", str(shar)).stdout.decode()
