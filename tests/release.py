"""Build what is published, and check it: ``make release``.

A release is a clean tree at the tag of its version. The wheel and the source archive are built twice from it,
with the time of the commit in place of the clock, and must have the same bytes. They are put into ``dist``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from seekable import __version__

ROOT = Path(__file__).resolve().parent.parent


def git(*arguments: str) -> str:
    """Return what a command of git prints."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def reasons() -> list[str]:
    """Return why this tree cannot be released."""
    found = []
    if git("status", "--porcelain"):
        found.append("files differ from the last commit: `git status` names them")
    if f"v{__version__}" not in git("tag", "--points-at", "HEAD").split():
        found.append(f"the last commit has no tag v{__version__}: `git tag -a v{__version__}`")
    if f"## [{__version__}] - unreleased" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        found.append(f"CHANGELOG.md says that {__version__} is unreleased: write the date")
    return found


def build(folder: Path) -> dict[str, bytes]:
    """Build the wheel and the source archive; return the bytes of each by name."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct")}
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def main() -> int:
    """Check, build and check again; return 1 if something keeps this tree from a release."""
    if found := reasons():
        sys.stdout.write("".join(f"{reason}\n" for reason in found))
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        one, two = build(Path(temporary, "one")), build(Path(temporary, "two"))
    if one != two:
        sys.stdout.write(f"two builds differ: {', '.join(sorted(one))}\n")
        return 1
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    (ROOT / "dist").mkdir()
    for name, content in one.items():
        (ROOT / "dist" / name).write_bytes(content)
    built = [str(ROOT / "dist" / name) for name in one]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *built], check=True)
    wheels = [name for name in built if name.endswith(".whl")]
    subprocess.run([sys.executable, "-m", "check_wheel_contents", *wheels], check=True)
    sys.stdout.write("".join(f"{name}\n" for name in built))
    return 0


if __name__ == "__main__":
    sys.exit(main())
