"""Fuzzes for a while: ``make fuzz``, ``make fuzz ARGS="--seconds 600 --only jsonl"``.

Each case is made of one number. A case that fails is printed as the command that repeats it, and its files
are kept. Exits 1 if one failed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from tests.fuzz.targets import TARGETS  # noqa: E402 - a script is given its own folder, not the root


def main() -> int:
    """Run cases until the time is over, and return the exit status."""
    options = _parser().parse_args()
    names = options.only or list(TARGETS)
    case = random.SystemRandom().randrange(2**48) if options.case is None else options.case
    end = time.monotonic() + options.seconds
    done = 0
    while True:
        for name in names:
            if not run(name, case):
                return 1
            done += 1
        if options.case is not None or time.monotonic() > end:
            break
        case += 1
    sys.stdout.write(f"{done:,} cases of {', '.join(names)}: none failed\n")
    return 0


def run(name: str, case: int) -> bool:
    """Run one case, and tell whether it passed."""
    folder = Path(tempfile.mkdtemp(prefix="seekable-fuzz-"))
    try:
        TARGETS[name](folder, random.Random(f"{name} {case}"))
    except Exception:  # noqa: BLE001 - whatever it is, it is what was looked for
        traceback.print_exc()
        again = f'make fuzz ARGS="--only {name} --case {case}"'
        sys.stdout.write(f"failed; its files are in {folder}\nagain: {again}\n")
        return False
    shutil.rmtree(folder)
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__, add_help=True)
    parser.add_argument("--seconds", type=float, default=60, help="for how long (60)")
    parser.add_argument("--only", nargs="+", choices=list(TARGETS), help="what to fuzz (everything)")
    parser.add_argument("--case", type=int, help="the one case to run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
