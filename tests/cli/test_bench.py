"""Figures are there and make sense; how good they are is not for a test."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import Corpus, documents, output, run, write_corpus

from seekable.cli.excerpt import excerpt_of
from seekable.cli.floor import cached_share, find_newlines, read_all
from seekable.cli.race import race
from seekable.errors import InvalidArgument

NAMES = [
    "indexing, one process",
    "random, one by one",
    "random, 256 at a time",
    "epoch, shuffled",
    "epoch, window=16, lanes=8",
    "epoch, in file order",
]


def test_each_contest_has_a_ratio_and_nothing_is_left_behind(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (told,) = documents("bench", corpus.folder, "--seconds", "0")
    assert [result["name"] for result in told["results"]] == NAMES
    for result in told["results"]:
        assert result["rounds"] >= 3
        assert result["ratio"] > 0
        assert result["us_per_record"] > 0
        assert result["mb_per_s"] > 0
        assert result["records"] > 0
    assert (told["files"], told["of_files"], told["bytes"], told["decoded"]) == (3, 3, told["of_bytes"], True)
    assert not (corpus.folder / ".seekable").exists()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_people_read_a_table(corpus: Corpus) -> None:
    text = output("bench", corpus.folder, "--seconds", "0").decode()
    lines = text.splitlines()
    assert lines[0].startswith("path        ")
    assert [line.partition("  ")[0] for line in lines[-6:]] == NAMES


def test_records_that_cannot_be_decoded_are_left_as_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n' * 50 + b"nonsense\n")
    (told,) = documents("bench", tmp_path, "--seconds", "0")
    assert told["decoded"] is False
    assert b"left as bytes, because one cannot be decoded" in output("bench", tmp_path, "--seconds", "0")


def test_no_record_at_all(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    done = run("bench", tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"no record" in done.stderr


def test_an_excerpt_has_whole_files_up_to_a_size(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", files=9, rows=30)
    size = (corpus.folder / "shard-0.jsonl").stat().st_size
    with excerpt_of(str(corpus.folder), format_name=None, most_bytes=4 * size + size // 2) as excerpt:
        real = [os.path.realpath(path) for path in excerpt.paths]
        assert all(path.startswith(str(corpus.folder)) for path in real)
        assert len(set(real)) == len(real) == 4
        assert excerpt.bytes <= 4 * size + size // 2
        assert (excerpt.all_files, excerpt.all_bytes) == (
            9,
            sum(p.stat().st_size for p in corpus.folder.iterdir()),
        )
        folder = excerpt.folder
    assert not os.path.exists(folder)
    assert len(list(corpus.folder.iterdir())) == 9


@pytest.mark.parametrize("most_bytes", [1, 499, 500, 501, 2_500_123])
def test_of_a_file_that_is_too_large_the_first_lines_are_copied(tmp_path: Path, most_bytes: int) -> None:
    data = b"".join(b"%0499d\n" % row for row in range(6000))
    (tmp_path / "a.txt").write_bytes(data)
    wanted = data[: most_bytes // 500 * 500]
    if not wanted:
        with (
            pytest.raises(InvalidArgument, match=f"no record of .* ends within {most_bytes} bytes"),
            excerpt_of(str(tmp_path), format_name=None, most_bytes=most_bytes),
        ):
            pass
        return
    with excerpt_of(str(tmp_path), format_name=None, most_bytes=most_bytes) as excerpt:
        (path,) = excerpt.paths
        assert Path(path).read_bytes() == wanted


def test_the_floor_does_its_work(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(8, 13, size=3_000_000, dtype=np.uint8).tobytes()
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(data)
    paths = [str(tmp_path / name) for name in ("a", "b")]
    assert find_newlines(paths) == 2 * data.count(b"\n")
    assert read_all(paths) == 2 * len(data)
    share = cached_share(paths)
    assert share is None or 0 <= share <= 1
    (tmp_path / "empty").touch()
    assert cached_share([str(tmp_path / "empty")]) is None


def test_a_race_lets_both_do_the_job_equally_often() -> None:
    ran: list[str] = []
    result = race(
        "x",
        lambda: ran.append("ours"),
        lambda: ran.append("floor"),
        floor_name="y",
        records=1,
        size=1,
        budget_seconds=0,
    )
    assert result.rounds == 3
    assert ran == ["ours", "floor", "ours", "floor", "floor", "ours", "ours", "floor"]


def test_the_temporary_folder_is_ours(corpus: Corpus) -> None:
    with excerpt_of(str(corpus.folder), format_name="text", most_bytes=10**9) as excerpt:
        assert excerpt.folder.startswith(tempfile.gettempdir())
        assert excerpt.format.name == "text"
