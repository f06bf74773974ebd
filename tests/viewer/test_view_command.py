"""``seekable view`` as a process: its link on stdout alone, nothing left behind, and 0 after Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest
from tests.thrift import sample

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-m", "seekable", "view", "corpus.jsonl", "--port", "0"]


def hear_interrupts() -> None:
    """Hear them also where the tests run in the background of a shell, which has them ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_right_after_the_link_ends_with_0_too(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"id": 1}\n')
    with subprocess.Popen(
        [*COMMAND, "--no-browser"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - a call of the system, and no lock
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert (process.returncode, b"interrupted" in said) == (0, False)


@pytest.mark.parametrize("options", sample([["--json"], ["--no-browser"]], of=2), ids=" ".join)
def test_the_command_prints_its_link_and_ends_with_0(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"id": 1}\n')
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SSH_")}
    environment["SEEKABLE_VIEW_TOKEN"] = "mine"
    with subprocess.Popen(
        [*COMMAND, *options],
        cwd=tmp_path,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - a call of the system, and no lock
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = json.loads(line)["url"] if "--json" in options else line.strip()
        assert url.endswith("/mine/")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url + "d/corpus/row/0?as=json", timeout=60) as answer:
            assert json.load(answer)["record"] == {"id": 1}
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=60)
    assert (process.returncode, rest, said) == (0, "", "")
    assert sorted(os.listdir(tmp_path)) == [".seekable", "corpus.jsonl"]
