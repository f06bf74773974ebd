"""Fuzzes for a while: ``make fuzz``, ``make fuzz ARGS="--seconds 600 --only jsonl"``.

Cases of bytes and of pipelines are each made of one number, which counts up from a seed. Then the properties
of the tests draw new examples from the same seed. What fails is printed with the command that repeats it, and
the files of a case are kept. Exits 1 if something failed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from tests.fuzz.targets import TARGETS  # noqa: E402 - a script is given its own folder, not the root

PROPERTIES = "properties"


def main() -> int:
    """Run cases until the time is over, then the properties, and return the exit status."""
    options = _parser().parse_args()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    sys.stdout.write(f'seed {seed}: make fuzz ARGS="--seed {seed}" repeats it\n')
    sys.stdout.flush()
    targets = [name for name in options.only or TARGETS if name != PROPERTIES]
    if targets and not run_for(options.seconds, targets, seed):
        return 1
    if options.only and PROPERTIES not in options.only:
        return 0
    return check_properties(seed, options.examples)


def run_for(seconds: float, names: list[str], seed: int) -> bool:
    """Run cases from a seed on, one of each target at the least, and tell whether all passed."""
    end = time.monotonic() + seconds
    for case in itertools.count(seed):
        if not all(run(name, case) for name in names):
            return False
        if time.monotonic() > end:
            break
    sys.stdout.write(f"{(case - seed + 1) * len(names):,} cases of {', '.join(names)}: none failed\n")
    sys.stdout.flush()
    return True


def check_properties(seed: int, examples: int) -> int:
    """Run the tests that draw examples, with others than ``make test`` draws; return pytest's exit status."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis and not frameworks"]
    command += ["--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}", "src", "tests"]
    environment = {**os.environ, "SEEKABLE_FUZZ_EXAMPLES": str(examples)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def run(name: str, case: int) -> bool:
    """Run one case, and tell whether it passed."""
    folder = Path(tempfile.mkdtemp(prefix="seekable-fuzz-"))
    try:
        TARGETS[name](folder, random.Random(f"{name} {case}"))
    except Exception:  # noqa: BLE001 - whatever it is, it is what was looked for
        traceback.print_exc()
        again = f'make fuzz ARGS="--seconds 0 --only {name} --seed {case}"'
        sys.stdout.write(f"failed; its files are in {folder}\nagain: {again}\n")
        return False
    shutil.rmtree(folder)
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__, add_help=True)
    parser.add_argument("--seconds", type=float, default=60, help="how long cases are run (60)")
    parser.add_argument("--only", nargs="+", choices=[*TARGETS, PROPERTIES], help="what to fuzz (everything)")
    parser.add_argument("--seed", type=int, help="where to begin (drawn, and printed)")
    parser.add_argument("--examples", type=int, default=100, help="examples of each property (100)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
