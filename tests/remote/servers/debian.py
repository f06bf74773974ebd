"""Programs of Debian's packages, unpacked into the environment, in a second or two, without root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import filelock

if TYPE_CHECKING:
    from collections.abc import Sequence


def unpacked(name: str, packages: Sequence[str], program: str) -> str | None:
    """Return the folder of unpacked packages; None if they cannot be had.

    Args:
        name: the name of the folder.
        packages: the packages; some of them may be missing in a release.
        program: a program of one of them, as a path under the folder.
    """
    folder = os.path.join(sys.prefix, "apart", "servers", name)
    path = os.path.join(folder, program)
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with filelock.FileLock(folder + ".lock"):
            if not os.path.exists(path):
                _unpack(packages, folder, program)
    return folder if os.path.exists(path) else None


def _unpack(packages: Sequence[str], folder: str, program: str) -> None:
    """Unpack Debian's packages into a folder, if they can be had."""
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        return
    with tempfile.TemporaryDirectory() as downloads:
        for package in packages:
            subprocess.run(
                ["apt-get", "download", package],
                cwd=downloads,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
                check=False,
            )
        new = os.path.join(downloads, "new")
        for name in os.listdir(downloads):
            unpack = ["dpkg", "-x", os.path.join(downloads, name), new]
            subprocess.run(unpack, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if os.path.exists(os.path.join(new, program)):
            shutil.move(new, folder)
