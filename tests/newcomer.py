"""What a newcomer does, timed: install the built wheel, and run the first pages.

``make newcomer`` runs it. The wheel is built twice and must have the same bytes. It goes into a new
environment without any extra. There the blocks of each page run in their order, in an empty folder; a block
with prompts is held to its output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from tests.test_docs import blocks_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/quickstart.md", "docs/tutorial.md")
RUN = """
import doctest, json, sys
page, blocks = json.load(sys.stdin)
namespace = {"__name__": "__main__"}
for line, text in blocks:
    if ">>> " in text:
        case = doctest.DocTestParser().get_doctest(text, {}, page, page, line - 1)
        case.globs = namespace
        doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(case, clear_globs=False)
    else:
        exec(compile("\\n" * (line - 1) + text, page, "exec"), namespace)
import seekable
assert "site-packages" in seekable.__file__, seekable.__file__
"""


def build(folder: Path) -> Path:
    """Build the wheel into a folder; return its path."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1764547200"})
    (wheel,) = folder.glob("*.whl")
    return wheel


def run_page(python: Path, page: str, folder: Path) -> float:
    """Run the Python blocks of a page in an empty folder; return the seconds."""
    blocks = [
        (block.line, block.text)
        for block in blocks_of((ROOT / page).read_text(encoding="utf-8"))
        if block.info == "python"
    ]
    folder.mkdir()
    started = time.monotonic()
    subprocess.run([python, "-c", RUN], input=json.dumps([page, blocks]).encode(), cwd=folder, check=True)
    return time.monotonic() - started


def main() -> int:
    """Build, install, run the pages; print the seconds of each. Return 1 if two builds differ."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel, again = build(folder / "one"), build(folder / "two")
        if wheel.read_bytes() != again.read_bytes():
            sys.stdout.write("two builds of the wheel differ\n")
            return 1
        sys.stdout.write(f"{wheel.name}: {wheel.stat().st_size:,} bytes, the same in two builds\n")
        started = time.monotonic()
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", wheel], check=True)
        sys.stdout.write(f"installed in {time.monotonic() - started:.1f} s\n")
        for number, page in enumerate(PAGES):
            sys.stdout.write(f"{page}: {run_page(python, page, folder / str(number)):.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
