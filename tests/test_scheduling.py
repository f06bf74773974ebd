"""A process that crashes in a test loses that test alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

CRASHES = """
import os
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_number(number):
    if number in {crashes}:
        os._exit(1)
"""


def test_all_other_tests_run_once(tmp_path: Path) -> None:
    count, crashes = 9, (0, 1, 8)
    path = tmp_path / "test_crashes.py"
    path.write_text(CRASHES.format(count=count, crashes=crashes))
    command = ["-m", "pytest", "-p", "conftest", "-c", str(ROOT / "pyproject.toml"), "-n", "2"]
    done = subprocess.run(
        [sys.executable, *command, "--dist=loadgroup", "-p", "no:cacheprovider", "-rf", str(path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    failed = sorted(map(int, re.findall(r"^FAILED .*\[(\d+)\]", done.stdout, re.MULTILINE)))
    assert (done.returncode, failed) == (1, list(crashes)), done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert int(passed[1] if passed else 0) == count - len(crashes)
