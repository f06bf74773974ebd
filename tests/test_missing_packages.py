"""Each optional package that is missing is named in one line, with the command that installs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.missing_packages import MODULES, ways, write_inputs

import seekable as sk

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
NO_EXTRA = {"boto3"}
"""Asked for only where they are installed, or where they are loaded already."""

HEAVY = {"torch", "lhotse", "ray", "gigatoken"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each way to ask says, in one process that finds no optional package."""
    folder = tmp_path_factory.mktemp("missing")
    write_inputs(folder)
    command = [sys.executable, "-m", "tests.missing_packages", str(folder)]
    environment = {**os.environ, "SEEKABLE_INDEX_DIR": str(folder / "indexes")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, str] = json.loads(done.stdout)
    return said


def test_each_missing_package_is_one_line_with_its_command(answers: dict[str, str]) -> None:
    wrong = {
        name: text
        for name, text in answers.items()
        if f"pip install 'seekable[{name.partition(':')[0]}]'" not in text
        or "\n" in text
        or not re.search(r"\bneeds? |\bneeded|not installed", text)
    }
    assert wrong == {}


def test_each_extra_is_asked_for(answers: dict[str, str]) -> None:
    assert {name.partition(":")[0] for name in answers} == set(EXTRAS) - {"all"} == set(MODULES)


def test_an_extra_installs_what_is_asked_for_by_it() -> None:
    """Reads all calls of ``optional``, and all commands in messages."""
    checked = set()
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for name, extra in re.findall(
            r"^[^>\n]* = optional\(\"([\w.]+)\", extra=\"(\w+)\"\)", text, re.MULTILINE
        ):
            package = name.partition(".")[0]
            if package not in NO_EXTRA:
                assert package in MODULES[extra], f"{path}: {name}"
                checked.add(package)
        for extra in re.findall(r"seekable\[(\w+)\]", text):
            assert extra in EXTRAS, path
    assert len(checked) >= 15


def test_all_brings_all_but_what_is_large_or_has_conflicts() -> None:
    (line,) = EXTRAS["all"]
    assert set(re.findall(r"\w+", line)) - {"seekable"} == set(EXTRAS) - {"all"} - HEAVY


def test_what_a_checkout_needs_is_no_extra() -> None:
    groups = PROJECT["dependency-groups"]
    assert set(groups) == {"test", "dev", "frameworks"}
    assert not set(groups) & set(EXTRAS)
    assert {"include-group": "test"} in groups["dev"]


def test_the_page_of_the_installation_has_each_extra() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(EXTRAS)


def test_the_ways_to_ask_have_an_answer_where_the_packages_are(tmp_path: Path) -> None:
    """Here their inputs open, or are refused for what is in them."""
    write_inputs(tmp_path)
    ask = ways(sk, tmp_path)
    assert ask["parquet: schema"]()
    with pytest.raises(sk.SeekableError) as raised:
        ask["parquet: open"]()
    assert not isinstance(raised.value, sk.MissingDependency)
