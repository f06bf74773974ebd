"""``make test``: which tests it runs, in which processes, and what becomes of those that hang."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests import minimum, run, seconds
from tests.frameworks import FRAMEWORKS, framework_of
from tests.rooms import SUBJECTS, with_importers

ROOT = Path(__file__).resolve().parent.parent

HANGS = """
import threading

def test_before():
    pass

def test_that_hangs():
    threading.Event().wait()

def test_after():
    pass
"""


CRASHES = """
import os

def test_that_ends_its_process():
    os._exit(3)
"""


def outside(folder: Path) -> list[str]:
    """Return the arguments for tests in a folder outside the project, with what holds for its own."""
    settings = ["-p", "conftest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)]
    return [*settings, "-p", "no:cacheprovider", str(folder)]


def test_what_hangs_or_crashes_is_named_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("crashes", CRASHES), ("hangs", HANGS)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text(text, encoding="utf-8")
    jobs = [run.Job(name, tuple(outside(tmp_path / name))) for name in ("crashes", "hangs")]
    assert run.run_all(jobs, at_once=2, pytest_arguments=["--timeout", "1"]) == 1
    printed = capsys.readouterr().out
    assert "crashes ended with status 3, before its tests did" in printed
    assert re.search("^FAILED .*::test_that_hangs", printed, re.MULTILINE), printed
    assert "threading.Event().wait()" in printed
    assert "1 failed, 2 passed" in printed
    assert printed.endswith("failed: crashes, hangs\n2 passed, 2 failed, 0 skipped\n")


def test_files_are_shown_as_they_end_and_the_rest_at_the_end() -> None:
    lines = [
        "== starts\n",
        "tests/a.py ..F\n",
        "tests/b.py .\n",
        "== FAILURES\n",
        "tests/a.py:3: Error\n",
        "= 1\n",
    ]
    shown: list[str] = []
    assert run.held_back(lines, shown.append) == [lines[0], *lines[3:]]
    assert shown == lines[1:3]


def test_what_shares_a_server_shares_a_process_and_processes_end_together() -> None:
    files = ["tests/a.py", "tests/b.py", "tests/remote/c.py", "tests/remote/d.py", "tests/e.py"]
    long = {"tests/a.py": 9.0, "tests/e.py": 5.0}
    assert run.shares(files, 2, long) == [
        ["tests/a.py"],
        ["tests/b.py", "tests/e.py", "tests/remote/c.py", "tests/remote/d.py"],
    ]
    for count in (1, 2, 3, 9):
        parts = run.shares(files, count, long)
        assert sorted(file for part in parts for file in part) == sorted(files)
        assert all(parts)


def test_of_many_tests_a_rest_is_left_to_the_process_that_ends_first() -> None:
    long = {f"tests/{number}.py": 1.0 for number in range(200)}
    assert [len(part) for part in run.shares([*long], 2, long)] == [90, 90, 20]
    assert [len(part) for part in run.shares([*long], 1, long)] == [200]


def test_all_files_are_run_by_make_test_and_by_make_nightly() -> None:
    everything = run.test_files(["tests"])
    assert "tests/test_run.py" in everything
    arguments = [argument for job in run.nightly_jobs() for argument in job.arguments]
    targets = run.test_files([argument for argument in arguments if argument.startswith("tests/")])
    assert targets == everything


def test_make_test_imports_no_file_of_a_framework() -> None:
    everything = run.test_files(["tests"])
    left = run.without_marked(everything)
    apart = {
        "tests/integrations/test_torch.py",
        "tests/docs/test_from_lhotse.py",
        "tests/examples/test_main_job.py",
    }
    assert apart < {*everything} - {*left}
    assert {"tests/integrations/test_slurm.py", "tests/test_run.py"} & {*left} == {"tests/test_run.py"}
    assert len(left) > 9 / 10 * len(everything)


def test_a_room_is_tested_with_those_that_import_it() -> None:
    assert with_importers("cli") == ["cli"]
    assert with_importers("loader")[0] == "loader"
    assert set(with_importers("loader")) == {"loader", *SUBJECTS}
    assert {"tests/loader", "tests/cli", "tests/test_docs.py"} <= set(run.targets_of_room("loader"))
    assert not {"tests/order", "tests/stream"} & set(run.targets_of_room("loader"))
    with pytest.raises(ValueError, match="there is no room 'loaders'"):
        with_importers("loaders")


def test_changes_choose_the_rooms_that_they_can_harm() -> None:
    assert run.targets_of_changes(["src/seekable/cli/main.py"]) == sorted(run.targets_of_room("cli"))
    assert run.targets_of_changes(["tests/order/test_keys.py", "LICENSE"]) == ["tests/order"]
    assert run.targets_of_changes(["docs/index.md"]) == ["tests/docs", "tests/test_docs.py"]
    for path in ("conftest.py", "tests/thrift.py", "src/seekable/_lazy.py"):
        assert run.targets_of_changes([path]) == ["tests"]


def test_the_oldest_versions_are_those_of_the_project() -> None:
    found = minimum.constraints((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "numpy==2.0" in found
    assert not any(line.startswith("pytest") for line in found)
    with pytest.raises(ValueError, match="has no lowest version"):
        minimum.constraints("[project]\ndependencies = ['numpy']\noptional-dependencies = {}")


def test_a_room_over_its_budget_is_named() -> None:
    noted = {
        seconds.COLLECTION: 8.0,
        "tests/order/test_keys.py::test_one[1]": 4.0,
        "tests/order/test_keys.py::test_one[2]": 5.0,
        "tests/test_docs.py::test_two": 1.5,
    }
    rooms, files, tests = seconds.totals(noted)
    assert rooms == {"collection": 8.0, "order": 9.0, "house": 1.5}
    assert files == {"tests/order/test_keys.py": 9.0, "tests/test_docs.py": 1.5}
    assert tests["tests/order/test_keys.py::test_one"] == 9.0
    assert seconds.over_budget(rooms, {"collection": 10, "order": 8}) == [
        "order takes 9.0 units of 8",
        "house takes 1.5 units of 0",
    ]


TREES = {
    path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "tests").rglob("test_*.py"))
}
PACKAGES = {*FRAMEWORKS, "distributed", "torchdata"} - {"dask", "slurm", "lance", "streaming", "webdataset"}


def imported_at_once(tree: ast.Module) -> set[str]:
    """Return the dotted names that a module imports when it is imported itself, not those for types."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
    return found


def needs_framework(name: str) -> bool:
    """Return True for a framework, and for a module of ours that imports one when it is imported."""
    if name.partition(".")[0] in PACKAGES:
        return True
    path = ROOT / "src" / name.replace(".", "/")
    path = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    if not name.startswith("seekable.integrations.") or not path.exists():
        return False
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tried = [node for body in tree.body if isinstance(body, ast.Try) for node in body.body]
    return any(map(needs_framework, imported_at_once(ast.Module([*tree.body, *tried], []))))


def test_tests_without_a_framework_can_be_collected_where_none_is_installed() -> None:
    wrong = {
        str(path.relative_to(ROOT)): sorted(filter(needs_framework, imported_at_once(tree)))
        for path, tree in TREES.items()
        if framework_of(path) is None and any(map(needs_framework, imported_at_once(tree)))
    }
    assert wrong == {}
