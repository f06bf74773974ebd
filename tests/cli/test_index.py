from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.command import Corpus, documents, output, run, write_corpus

from seekable.cli.output import BuildWatch
from seekable.parallel.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_each_path_is_a_dataset_of_its_own(corpus: Corpus) -> None:
    folder = corpus.folder.parent
    write_corpus(folder / "other", files=1, rows=3)
    (told,) = documents("index", "corpus/*.jsonl", "other", cwd=folder)
    first, second = told["datasets"]
    assert (first["path"], first["files"], first["records"]) == ("corpus/*.jsonl", 3, 120)
    assert first["bytes"] == sum(path.stat().st_size for path in corpus.folder.glob("*.jsonl"))
    assert first["index_folder"] == str(corpus.folder / ".seekable")
    assert first["seconds"] > 0
    assert (second["path"], second["files"], second["records"]) == ("other", 1, 3)


def test_only_what_is_new_is_indexed(corpus: Corpus) -> None:
    indexed = []
    for _ in range(2):
        (told,) = documents("index", corpus.folder)
        indexed.append(told["datasets"][0]["files_indexed"])
    assert indexed == [3, 0]


def test_people_are_told_in_a_line(corpus: Corpus) -> None:
    printed = output("index", "corpus", cwd=corpus.folder.parent).decode()
    assert printed.startswith("corpus: 120 records in 3 files, ")
    assert printed.endswith(f"; index in {corpus.folder / '.seekable'}\n")
    assert printed.count("\n") == 1


def test_quiet_says_nothing(corpus: Corpus) -> None:
    assert output("index", corpus.folder, "-q") == b""
    assert (corpus.folder / ".seekable" / "catalog.json").exists()


def test_index_dir_keeps_the_data_folder_clean(corpus: Corpus, tmp_path: Path) -> None:
    (told,) = documents("index", corpus.folder, "--index", f"folder={tmp_path}/indexes")
    assert told["datasets"][0]["index_folder"].startswith(str(tmp_path / "indexes"))
    assert not (corpus.folder / ".seekable").exists()
    (again,) = documents("info", corpus.folder, "--index", f"folder={tmp_path}/indexes")
    assert again["index"]["was_up_to_date"]


def test_jobs_and_no_progress_change_nothing_that_is_printed(corpus: Corpus) -> None:
    (told,) = documents("index", corpus.folder, "--jobs", "2", "--quiet")
    assert told["datasets"][0]["records"] == 120


def test_names_that_are_no_utf8_are_printed_as_their_bytes(tmp_path: Path) -> None:
    name = os.path.join(os.fsencode(tmp_path), b"a\xff.jsonl")
    try:
        with open(name, "wb") as file:
            file.write(b"{}\n")
    except OSError:
        pytest.skip("a file system that has only names of UTF-8")
    assert output("index", os.fsdecode(name)).startswith(name + b": 1 record in 1 file, 3 bytes; ")
    (told,) = documents("index", os.fsdecode(name))
    assert told["datasets"][0]["path"].endswith("a\\xff.jsonl")


NOTICE = Progress(0, 1, 0, 1, 0, notice="goes elsewhere")


@pytest.mark.parametrize(("shown", "told"), [(True, "seekable: goes elsewhere\n"), (False, "")])
def test_a_notice_is_told_once_unless_quiet(
    capsys: pytest.CaptureFixture[str], *, shown: bool, told: str
) -> None:
    watch = BuildWatch(shown=shown)
    watch(NOTICE)
    watch(Progress(1, 1, 1, 1, 1))
    assert capsys.readouterr() == ("", told)
    assert watch.files_indexed == 1


AS_NOBODY = """
import os, sys
from seekable.cli.main import main
sys.argv = ["seekable", "head", "-n", "1", sys.argv[1]]
try:
    main()  # once before, because the interpreter's own files may be readable for root alone
except SystemExit:
    os.chmod(sys.argv[-1], 0o555)
    __import__("shutil").rmtree(os.path.join(sys.argv[-1], ".seekable"))
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    main()
"""


@pytest.fixture
def folder_of_all() -> Iterator[Path]:
    """Return a folder that any user may read; the next pytest that starts closes the folders of this one."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_an_index_that_goes_elsewhere_is_told_on_stderr(folder_of_all: Path) -> None:
    folder = folder_of_all
    corpus = write_corpus(folder / "data", files=1, rows=2)
    cache = folder / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, corpus.folder],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        check=False,
    )
    corpus.folder.chmod(0o755)
    assert (done.returncode, done.stdout) == (0, 2 * (corpus.lines[0] + b"\n"))
    assert done.stderr.startswith(f"seekable: '{corpus.folder}' cannot be written: ".encode())
    assert list(cache.rglob("catalog.json"))


def test_the_same_command_again_costs_no_scan_after_an_error(corpus: Corpus) -> None:
    assert run("index", corpus.folder, "no/such").returncode == 4
    assert documents("info", corpus.folder)[0]["index"]["was_up_to_date"]


def test_keys_are_kept_when_they_are_asked_for(corpus: Corpus) -> None:
    (told,) = documents("index", corpus.folder, "--key", "id")
    assert (told["datasets"][0]["key"], told["datasets"][0]["keys"]) == ("id", 120)
    assert told["datasets"][0]["files_indexed"] == 3
    (without,) = documents("index", corpus.folder)
    assert "key" not in without["datasets"][0]


def test_keys_that_are_not_unique_are_told_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "x"}\n{"id": "y"}\n{"id": "x"}\n')
    done = run("index", tmp_path, "--key", "id", "-q")
    assert done.returncode == 0
    assert done.stdout == b""
    first, second = done.stderr.decode().splitlines()
    assert first == "seekable: 2 records share 1 of the keys 'id' with others:"
    assert second.endswith("a.jsonl row 2")


def test_a_record_without_its_key_is_an_error_that_names_it(corpus: Corpus) -> None:
    done = run("index", corpus.folder, "--key", "name")
    assert done.returncode == 1
    assert b"shard-0.jsonl: record 0 at byte 0 has no field 'name'" in done.stderr


def test_pages_are_found_ahead(tmp_path: Path) -> None:
    table = pa.table({"id": range(1000), "text": [f"row {row}" for row in range(1000)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=300)
    output("index", ".", cwd=tmp_path)
    assert not list((tmp_path / ".seekable").glob("pages-*.bin"))
    output("index", "--pages", ".", cwd=tmp_path)
    (pages,) = (tmp_path / ".seekable").glob("pages-*.bin")
    before = pages.stat().st_mtime_ns
    (found,) = documents("get", ".", "777", cwd=tmp_path)
    assert found["record"] == {"id": 777, "text": "row 777"}
    assert pages.stat().st_mtime_ns == before


def test_rows_of_tables_are_printed_as_json(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "made": [dt.date(2026, 1, 2), None], "raw": [b"ab", None]})
    pq.write_table(table, tmp_path / "a.parquet")
    lines = output("head", "a.parquet", cwd=tmp_path).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": 1, "made": "2026-01-02", "raw": "YWI="},
        {"id": 2, "made": None, "raw": None},
    ]
    (found,) = documents("info", "a.parquet", cwd=tmp_path)
    assert (found["columns"], found["groups"]) == ({"id": "int64", "made": "date32[day]", "raw": "binary"}, 1)
    assert b"id (int64)" in output("info", "a.parquet", cwd=tmp_path)
