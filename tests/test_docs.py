"""What README.md and the pages under docs/ show is run, page by page, as a reader would.

The blocks of a page run in their order, in one namespace, in a temporary folder. It is empty for the first
pages, and holds `corpus/` and `notes.txt` for the others, as the first block of the tutorial makes them:

- `python` blocks are run; one that has `>>>` prompts is held to the output it shows.
- In `console` blocks each `$ seekable ...` is run, in this process where it needs no shell. It must exit with
  the code of the `|| test $? -eq N` that follows, or with 0; its output is compared if the block shows any
  (`...` stands for anything). Other commands are shown only.

Only the languages listed below are allowed, so that no block of code escapes.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import run
from tests.frameworks import FRAMEWORKS

from seekable.formats.kaldi.holders import registry

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

ROOT = Path(__file__).resolve().parent.parent
AS_SHOWN = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
SHOWN_ONLY = frozenset({"json", "mermaid", "text", "toml"})
CODE_DIRECTIVES = frozenset(
    {"{code}", "{code-block}", "{code-cell}", "{doctest}", "{sourcecode}", "{testcode}"}
)
OPTIONS = doctest.ELLIPSIS
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    info: str
    """What follows the fence: the language."""

    line: int
    """The number of its first line of text, from 1."""

    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """One `$` line of a console block, and the output shown under it."""

    line: int
    command: str
    output: str


def blocks_of(page: str) -> list[Block]:
    """Return the outermost fenced blocks of a page.

    Raises:
        ValueError: a fence is not closed, or a block's language is none of those allowed.
    """
    found: list[Block] = []
    lines = iter(enumerate(page.splitlines(), start=1))
    for number, line in lines:
        if not (opening := FENCE.match(line)):
            continue
        indent, info = len(opening["indent"]), opening["info"].strip()
        body: list[str] = []
        for _, inner in lines:
            if is_closing(inner, opening["fence"]):
                break
            body.append(inner[min(indent, len(inner) - len(inner.lstrip(" "))) :])
        else:
            raise ValueError(f"line {number}: the block is never closed")
        check_info(info, number)
        found.append(Block(info, number + 1, "".join(f"{line}\n" for line in body)))
    return found


def is_closing(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and not stripped.strip(fence[0])


def check_info(info: str, line: int) -> None:
    is_directive = info.startswith("{") and info.split(maxsplit=1)[0] not in CODE_DIRECTIVES
    if info not in {"python", "console"} | SHOWN_ONLY and not is_directive:
        allowed = ", ".join(["python", "console", *sorted(SHOWN_ONLY)])
        raise ValueError(
            f"line {line}: a block is one of {allowed} or a directive that is no code, got {info!r}"
        )


def commands_of(block: Block) -> list[Command]:
    """Split a console block at its `$` prompts; a command goes on after a backslash at a line's end."""
    found: list[Command] = []
    lines = iter(enumerate(block.text.splitlines(), start=block.line))
    for number, line in lines:
        if line.startswith("$ "):
            command = line.removeprefix("$ ")
            while command.endswith("\\"):
                command = command[:-1] + next(lines)[1]
            found.append(Command(number, command, ""))
        elif found:
            last = found.pop()
            found.append(Command(last.line, last.command, f"{last.output}{line}\n"))
        elif line.strip():
            raise ValueError(f"line {number}: a console block starts with a `$ command`, got {line!r}")
    return found


def run_python(block: Block, namespace: dict[str, object], page: str) -> None:
    if ">>> " in block.text:
        case = doctest.DocTestParser().get_doctest(block.text, {}, page, page, block.line - 1)
        case.globs = namespace
        doctest.DebugRunner(optionflags=OPTIONS).run(case, clear_globs=False)
        return
    # Blank lines in front make a traceback name the page's own lines.
    exec(compile("\n" * (block.line - 1) + block.text, page, "exec", dont_inherit=True), namespace)


def run_command(command: Command, folder: Path, page: str) -> None:
    words = shlex.split(command.command)
    if words[:1] != ["seekable"]:
        return
    expected = 0
    if words[-5:-1] == ["||", "test", "$?", "-eq"]:
        expected = int(words[-1])
        words = words[:-5]
    is_alone = not {"|", "||", "&&", ">", "<"}.intersection(words)
    done = run(*words[1:], cwd=folder, more=AS_SHOWN) if is_alone else run_in_shell(command.command, folder)
    place = f"{page}:{command.line}: $ {command.command}"
    assert done.returncode == expected, f"{place}\nexited with {done.returncode}: {done.stderr.decode()}"
    want, got = without_trailing_space(command.output), without_trailing_space(done.stdout.decode())
    if want:
        assert doctest.OutputChecker().check_output(want, got, OPTIONS), (
            f"{place}\nwant:\n{want}\ngot:\n{got}"
        )


def run_in_shell(command: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    scripts = str(Path(sys.executable).parent)
    path = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, **AS_SHOWN, "PATH": path},
        capture_output=True,
        timeout=120,
        check=False,
    )


def without_trailing_space(text: str) -> str:
    stripped = "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n")
    return f"{stripped}\n" if stripped else ""


def run_page(text: str, folder: Path, page: str) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(text):
        if block.info == "python":
            run_python(block, namespace, page)
        elif block.info == "console":
            for command in commands_of(block):
                run_command(command, folder, page)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder that a newcomer is in."""
    monkeypatch.chdir(tmp_path)
    for name in ("SEEKABLE_REMOTE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / ".cache" / name.lower()))
    # A holder that a page registers is that page's alone.
    monkeypatch.setattr(registry, "_HOLDERS", dict(registry._HOLDERS))
    return tmp_path


@pytest.fixture
def folder(empty: Path) -> Path:
    """The folder that a reader of other pages is in: what the first block of the tutorial makes."""
    make_files()
    return empty


def make_files() -> None:
    """Make 300 JSON records in three shards, and 100 lines of notes, as the tutorial does."""
    block = blocks_of((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"))[0]
    run_python(block, {}, "docs/tutorial.md")


FROM_NOTHING = frozenset({"README.md", "docs/quickstart.md", "docs/tutorial.md"})
"""Pages that make their files themselves; tests/newcomer.py runs them with the built wheel."""

# Pages that run in a process of their own, and the code that comes first there. JAX, once it has run, objects
# to forks, and other tests fork. Forager configures the root logger. WebDataset and Lhotse leave files open.
# Streaming is imported from a folder of its own.
APART = {
    "docs/howto/other-frameworks.md": "",
    "docs/from/forager.md": "",
    "docs/from/lhotse.md": "",
    "docs/from/webdataset.md": "",
    "docs/from/mosaicml-streaming.md": "import tests.docs.streaming_alone as s; s.streaming()",
}
ALONE = """
import sys
from pathlib import Path
from tests.test_docs import run_page
exec(sys.argv[3])
run_page(Path(sys.argv[1]).read_text(encoding="utf-8"), Path.cwd(), sys.argv[2])
"""

WRITTEN = [
    page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts
]  # of which twins are made
PAGES = sorted([*ROOT.glob("README.md"), *WRITTEN])
# Slurm is no package: what its page imports is ours.
PACKAGES = "|".join(name for name in FRAMEWORKS if name != "slurm")
IMPORT = re.compile(rf"^(?:import|from) (?:seekable\.integrations\.)?({PACKAGES})\b", re.MULTILINE)


def case_of(page: Path) -> ParameterSet:
    """Return a page as a test case; one whose blocks import a framework is marked with the framework."""
    imported = {name for block in blocks_of(page.read_text("utf-8")) for name in IMPORT.findall(block.text)}
    if page.stem == "datasets":
        imported.add("torch")  # by datasets, where it streams
    # The others import torch too, so the one that is not torch tells the process.
    framework = min(imported - {"torch"} or imported, default=None)
    marks = [pytest.mark.frameworks(name=framework)] if framework else []
    return pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=marks)


@pytest.mark.filterwarnings(
    "ignore:The `srun` command is available:UserWarning",  # Lightning's word on a machine of a cluster
    "ignore:.*LeafSpec.* is deprecated:FutureWarning",  # of torch, which Lightning uses
    "ignore:Checkpoint directory .* is not empty:UserWarning",  # Lightning's word on every resumed run
    "ignore:__array_wrap__ must accept context:DeprecationWarning",  # Lhotse's filter banks, of NumPy 2
    r"ignore::DeprecationWarning:ray\.data\..*",  # of options that Ray Data sets itself
    "ignore:'set_vital' is deprecated:UserWarning",  # torchdata's StatefulDataLoader calls it
)
@pytest.mark.parametrize("page", [case_of(page) for page in PAGES])
def test_what_a_page_shows_is_true(
    page: Path, empty: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if (framework := request.node.get_closest_marker("frameworks")) and framework.kwargs["name"] == "ray":
        request.getfixturevalue("ray_cluster")  # What a page starts where there is none takes long.
    monkeypatch.setenv("SEEKABLE_REMOTE_DIR", f"{empty}.remote")
    name = page.relative_to(ROOT).as_posix()
    if name not in FROM_NOTHING:
        make_files()
    if name not in APART:
        run_page(page.read_text(encoding="utf-8"), empty, name)
        return
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", ALONE, str(page), name, APART[name]]
    subprocess.run(command, cwd=empty, env=environment, check=True)


def fenced(info: str, *lines: str) -> str:
    return "\n".join([f"```{info}", *lines, "```", ""])


def test_blocks_of_a_page_share_a_namespace_and_a_folder(folder: Path) -> None:
    page = (
        fenced("python", "count = 1")
        + "prose\n"
        + fenced("python", "from pathlib import Path", "Path('seen').write_text(str(count + 1))")
    )
    run_page(page, folder, "page.md")
    assert (folder / "seen").read_text() == "2"


def test_the_folder_holds_a_corpus_and_notes(folder: Path) -> None:
    shards = sorted((folder / "corpus").iterdir())
    ids = [json.loads(line)["id"] for shard in shards for line in shard.read_text().splitlines()]
    assert ids == list(range(300))
    assert len((folder / "notes.txt").read_text().splitlines()) == 100


def test_a_failing_block_names_the_line_of_the_page(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("prose\n\n" + fenced("python", "x = 1", "x / 0"), folder, "page.md")
    last = caught.traceback[-1]
    assert (Path(last.path).name, last.lineno + 1) == ("page.md", 5)


def test_prompts_are_held_to_their_output(folder: Path) -> None:
    run_page(fenced("python", ">>> 6 * 7", "42", ">>> 'a long word'", "'a ... word'"), folder, "page.md")
    with pytest.raises(doctest.DocTestFailure):
        run_page(fenced("python", ">>> 6 * 7", "43"), folder, "page.md")


@pytest.mark.parametrize(
    "info", ["", "py", "python no-run", "python {skip}", "pycon", "bash", "{code-block} python", "{testcode}"]
)
def test_no_block_escapes_by_its_language(info: str) -> None:
    with pytest.raises(ValueError, match="line 1: a block is one of"):
        blocks_of(fenced(info, "x = 1"))


def test_a_block_that_is_never_closed_is_refused() -> None:
    with pytest.raises(ValueError, match="line 2: the block is never closed"):
        blocks_of("prose\n```python\nx = 1\n")


def test_blocks_in_lists_and_in_longer_fences_are_read() -> None:
    page = "- item\n\n  ```python\n  if True:\n      x = 1\n  ```\n\n````text\n```python\n````\n"
    assert blocks_of(page) == [
        Block("python", 4, "if True:\n    x = 1\n"),
        Block("text", 9, "```python\n"),
    ]


def test_a_console_block_is_split_at_its_prompts() -> None:
    block = Block("console", 10, "$ seekable get a \\\n    5\none\ntwo\n$ make demo\n")
    assert commands_of(block) == [
        Command(10, "seekable get a     5", "one\ntwo\n"),
        Command(14, "make demo", ""),
    ]


def test_commands_are_run_and_their_output_is_compared(folder: Path) -> None:
    shown = ["$ seekable head notes.txt -n 2", "note 0", "no...", "$ seekable index corpus", "$ false"]
    run_page(fenced("console", *shown), folder, "page.md")
    with pytest.raises(AssertionError, match=r"page.md:2: \$ seekable head corpus"):
        run_page(fenced("console", "$ seekable head corpus", "another answer"), folder, "page.md")
    with pytest.raises(AssertionError, match="exited with 4"):
        run_page(fenced("console", "$ seekable head missing.txt"), folder, "page.md")


def test_a_command_may_fail_with_the_code_that_is_shown(folder: Path) -> None:
    run_page(fenced("console", "$ seekable head missing.txt || test $? -eq 4"), folder, "page.md")
    with pytest.raises(AssertionError, match="exited with 4"):
        run_page(fenced("console", "$ seekable head missing.txt || test $? -eq 3"), folder, "page.md")
    with pytest.raises(AssertionError, match="exited with 0"):
        run_page(fenced("console", "$ seekable head notes.txt || test $? -eq 4"), folder, "page.md")


def test_a_command_in_a_pipe_is_run_by_a_shell(folder: Path) -> None:
    run_page(fenced("console", "$ seekable head notes.txt -n 2 | wc -l", "2"), folder, "page.md")
