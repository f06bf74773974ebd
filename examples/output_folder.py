"""The folder that a demo writes, and the lines that it prints between its steps."""

from __future__ import annotations

import os
import shutil
import sys

MARK = "# made by the demo of seekable, which makes it anew each time\n*\n"
"""The .gitignore by which an output folder is known."""


def announce(title: str) -> None:
    """Say in one line what comes."""
    print(f"\n== {title}", flush=True)


def make_output(folder: str) -> None:
    """Make the output folder, without what an earlier demo left in it."""
    mark = os.path.join(folder, ".gitignore")
    if os.path.isdir(folder) and os.listdir(folder):
        try:
            with open(mark, encoding="utf-8") as file:
                is_ours = file.read() == MARK
        except OSError:
            is_ours = False
        if not is_ours:
            sys.exit(f"the output folder must be empty or an earlier demo's; {folder!r} holds other things")
        shutil.rmtree(folder)
    os.makedirs(folder, exist_ok=True)
    with open(mark, "w", encoding="utf-8") as file:
        file.write(MARK)
