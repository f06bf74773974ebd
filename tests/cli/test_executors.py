"""``--executor``: the same results by what it names, and errors that say what it takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import run, run_fork
from tests.index.corpus import write

from seekable.cli.data_argument import FORMS

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
from concurrent.futures import Executor, Future, ThreadPoolExecutor

class Noted(ThreadPoolExecutor):
    def submit(self, *given):
        with open("requests", "a") as file:
            file.write(".")
        return super().submit(*given)

class Interrupted(Executor):
    def __init__(self):
        self.futures = []
    def submit(self, *given):
        if len(self.futures) == 2:
            raise KeyboardInterrupt
        self.futures.append(Future())
        return self.futures[-1]
    def shutdown(self, wait=True, *, cancel_futures=False):
        with open("end", "w") as file:
            print(wait, cancel_futures, [future.cancelled() for future in self.futures], file=file)

def threads():
    print("made")
    return Noted(2)

def interrupted():
    return Interrupted()

def number():
    return 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "mine.py", PROGRAM.encode())
    for number in range(3):
        lines = [json.dumps({"text": f"word {row} {number}", "ids": [row] * 5}) for row in range(200)]
        write(tmp_path / "corpus" / f"{number}.jsonl", "\n".join(lines).encode())
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("index", "corpus", "--key", "text"),
        ("verify", "corpus", "--deep", "--decode"),
        ("export", "corpus", "out", "--as", "jsonl"),
    ],
)
def test_the_answer_is_that_of_this_machine(folder: Path, command: tuple[str, ...]) -> None:
    def answer(*more: str) -> object:
        done = run(*command, "--json", *more, cwd=folder)
        assert not done.returncode, done.stderr
        document = json.loads(done.stdout)
        for given in (document, *document.get("datasets", ())):
            for changing in ("seconds", "files_indexed", "files_kept"):
                given.pop(changing, None)
        return document

    if command[0] == "verify":
        run("index", "corpus", cwd=folder)
    elsewhere = answer("--executor", "mine:threads")
    assert (folder / "requests").exists()
    assert answer() == elsewhere


def test_tokens_too(folder: Path) -> None:
    tokenizer = {
        "version": "1.0",
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"},
    }
    (folder / "t.json").write_text(json.dumps(tokenizer))
    command = "tokenize", "corpus", "--tokenizer", "t.json", "--eos", "0", "--to"
    for to, more in (("here", ()), ("there", ("--executor", "mine:threads"))):
        done = run(*command, to, *more, cwd=folder)
        assert not done.returncode, done.stderr
    parts = [(folder / to / "part-000000.bin").read_bytes() for to in ("here", "there")]
    assert parts[0] == parts[1]
    assert (folder / "requests").exists()


@pytest.mark.parametrize(
    "name",
    ["", "rays", "ray:", "ray://", "ray:head", "dask", "dask:1", "slurm", "slurm:0", "slurm:x", "a:b:c"],
)
def test_another_name_is_refused_with_those_that_there_are(folder: Path, name: str) -> None:
    done = run("index", "corpus", "--executor", name, cwd=folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert FORMS in done.stderr.decode()


def test_jobs_beside_an_executor_are_refused(folder: Path) -> None:
    done = run("index", "corpus", "--executor", "mine:threads", "--jobs", "2", cwd=folder)
    assert done.returncode == 2
    assert b"leave it out beside --executor mine:threads" in done.stderr
    assert not (folder / "requests").exists()


def test_a_function_must_return_an_executor(folder: Path) -> None:
    done = run("index", "corpus", "--executor", "mine:number", cwd=folder)
    assert (done.returncode, b"mine:number must return a concurrent.futures.Executor" in done.stderr) == (
        1,
        True,
    )
    missing = run("index", "corpus", "--executor", "mine:nothing", cwd=folder)
    assert missing.returncode == 4
    assert b"name a function that returns an executor" in missing.stderr


def test_an_interrupt_cancels_what_was_submitted(folder: Path) -> None:
    run("index", "corpus", cwd=folder)
    command = "export", "corpus", "out", "--as", "jsonl", "--rows-per-file", "10", "--executor"
    done = run(*command, "mine:interrupted", cwd=folder)
    assert (done.returncode, done.stdout) == (130, b"")
    assert b"the same command goes on from there" in done.stderr
    assert (folder / "end").read_text() == "False True [True, True]\n"


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("dask://127.0.0.1:1", "distributed")])
def test_a_missing_package_is_named(folder: Path, name: str, package: str) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None; "
        f"sys.argv[1:] = ['index', 'corpus', '--executor', {name!r}]; "
        f"from seekable.cli.main import main; main()"
    )
    done = run_fork(program=program, cwd=folder)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"pip install 'seekable[" in done.stderr
