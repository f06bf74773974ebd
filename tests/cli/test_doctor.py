from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import Corpus, documents, output, run, run_fork
from tests.cli.warm import COMMAND

import seekable
from seekable.cli.data_checks import data_findings
from seekable.cli.machine_checks import can_be_written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def findings(*arguments: str | Path) -> dict[str, dict[str, Any]]:
    (told,) = documents("doctor", *arguments)
    assert told["worst"] in ("ok", "warn")
    return {finding["name"]: finding for finding in told["findings"]}


LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({0}, {0})); "


def doctor(
    more: Mapping[str, str], *, descriptors: int | None = None
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run it with another environment, or with fewer open files."""
    limit = "" if descriptors is None else LIMIT.format(descriptors)
    done = run_fork("doctor", "--json", program=limit + COMMAND, more=more)
    assert done.stderr == b""
    return done.returncode, {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}


def test_versions_limits_processes_and_the_cache_are_told() -> None:
    found = findings()
    assert found["seekable"]["value"] == seekable.__version__
    assert {finding["group"] for finding in found.values()} == {"versions", "limits", "processes", "cache"}
    for name in ("numpy", "msgspec", "open files", "processors", "memory", "fork", "cache folder"):
        assert found[name]["value"]
    assert "numpy" in found
    assert not {"pytest", "ruff"} & found.keys()


def test_an_extra_that_is_missing_comes_with_its_command() -> None:
    extras = {name: one for name, one in findings().items() if name.endswith("]")}
    assert extras
    for name, one in extras.items():
        extra = name.partition("[")[2]
        assert one["level"] == "ok"
        assert one["value"][0].isdigit() or one["value"].endswith(f"pip install 'seekable[{extra}' brings it")


def test_people_read_it_by_groups_and_quiet_tells_only_what_is_not_ok() -> None:
    text = output("doctor").decode()
    assert [line for line in text.splitlines() if not line.startswith(" ")] == [
        "versions",
        "limits",
        "processes",
        "cache",
    ]
    assert "  ok  " not in output("doctor", "-q").decode()


@pytest.mark.parametrize(
    ("descriptors", "level", "code"), [(100, "bad", 1), (900, "warn", 0), (1024, "ok", 0)]
)
def test_too_few_open_files(descriptors: int, level: str, code: int) -> None:
    got, found = doctor({}, descriptors=descriptors)
    assert (got, found["open files"]["level"]) == (code, level)
    assert bool(found["open files"]["advice"]) == (level != "ok")


def test_what_the_environment_says(tmp_path: Path) -> None:
    code, found = doctor(
        {"RANK": "1", "WORLD_SIZE": "8", "SEEKABLE_INDEX_DIR": str(tmp_path / "deep" / "er")}
    )
    assert code == 0
    assert found["ranks"]["value"] == "RANK=1, WORLD_SIZE=8"
    assert found["SEEKABLE_INDEX_DIR"]["level"] == "ok"
    assert not (tmp_path / "deep").exists()
    (tmp_path / "file").touch()
    below = str(tmp_path / "file" / "below")
    code, found = doctor({"SEEKABLE_CACHE_BYTES": "much", "SEEKABLE_INDEX_DIR": below})
    assert code == 1
    assert (found["memory"]["level"], found["SEEKABLE_INDEX_DIR"]["level"]) == ("bad", "bad")


def test_the_cache_is_measured(tmp_path: Path) -> None:
    (tmp_path / "seekable" / "a").mkdir(parents=True)
    (tmp_path / "seekable" / "a" / "b").write_bytes(bytes(1500))
    _, found = doctor({"XDG_CACHE_HOME": str(tmp_path)})
    assert found["cache folder"]["value"] == f"{tmp_path / 'seekable'}, 1.5 kB of indexes"


def test_where_data_and_its_index_lie(corpus: Corpus) -> None:
    before = findings(corpus.folder)
    assert before["files"]["value"].startswith(f"{corpus.folder}: 3 file(s), ")
    assert before["index"]["value"] == f"{corpus.folder / '.seekable'} is not there yet"
    assert not (corpus.folder / ".seekable").exists()
    output("index", corpus.folder)
    assert findings(corpus.folder)["index"]["value"] == str(corpus.folder / ".seekable")
    (corpus.folder / ".seekable" / "catalog.json").write_bytes(b"{}")
    assert "is damaged" in findings(corpus.folder)["index"]["value"]
    assert run("doctor", corpus.folder / "nothing").returncode == 4


def test_an_index_that_goes_elsewhere(corpus: Corpus, tmp_path: Path) -> None:
    found = {one.name: one for one in data_findings(str(corpus.folder), index_dir=str(tmp_path / "indexes"))}
    assert found["index"].value.startswith(str(tmp_path / "indexes"))
    below = str(corpus.folder / "shard-0.jsonl" / "below")
    found = {one.name: one for one in data_findings(str(corpus.folder), index_dir=below)}
    assert (found["index"].level, "--index folder=" in found["index"].advice) == ("bad", True)


def test_files_from_the_future(corpus: Corpus) -> None:
    os.utime(corpus.folder / "shard-0.jsonl", (4e9, 4e9))
    assert findings(corpus.folder)["files"]["level"] == "warn"


def test_a_file_is_no_folder_to_write_into(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not can_be_written(str(tmp_path / "file" / "below"))
    assert can_be_written(str(tmp_path / "not" / "yet"))
