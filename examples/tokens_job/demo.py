"""Show a training of a language model: tokenise, pack, mix, kill -9, other ranks, then another sample length.

    python demo.py [--output FOLDER]

The work is done by the programs beside this one, each of which can be run alone: corpus.py, train.py (the one
to copy) and proof.py.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = "# made by the demo of seekable, which makes it anew each time\n*\n"
"""The .gitignore by which an output folder is known."""

KILL_AT = 18
"""Between two saved states."""

CHANGE_AT = 30
"""The step from which on samples are shorter: both sources are in the middle of an epoch."""

STEPS = 52


def program(name: str, *arguments: str) -> list[str]:
    """Return the command line of one of the programs beside this one."""
    return [sys.executable, os.path.join(HERE, name), *arguments]


def announce(title: str) -> None:
    """Say in one line what comes."""
    print(f"\n== {title}", flush=True)


def make_output(folder: str, parts: tuple[str, ...]) -> list[str]:
    """Make the output folder without what an earlier demo left in it, and return the paths of its parts."""
    mark = os.path.join(folder, ".gitignore")
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        try:
            with open(mark, encoding="utf-8") as file:
                is_ours = file.read() == MARK
        except OSError:
            is_ours = False
        if not is_ours:
            sys.exit(f"the output folder must be empty or an earlier demo's; {folder!r} holds other things")
    with open(mark, "w", encoding="utf-8") as file:
        file.write(MARK)
    paths = [os.path.join(folder, part) for part in parts]
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
    return paths


def tokenize(data: str, name: str) -> None:
    """Tokenise one source by the command line."""
    tokenizer = os.path.join(data, "tokenizer.json")
    source, target = os.path.join(data, f"{name}.jsonl"), os.path.join(data, f"{name}-tokens")
    options = ["--tokenizer", tokenizer, "--column", "text", "--eos", "<|endoftext|>"]
    command = [sys.executable, "-m", "seekable", "tokenize", source, "--to", target, *options]
    subprocess.run(command, check=True)


def train(run: str, data: str, ranks: int, *options: str, kill_at: int | None = None) -> None:
    """Train as a group of processes; kill all of them, with SIGKILL, when they are at a step."""
    command = program("train.py", run, data, f"--ranks={ranks}", *options)
    line = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as group:
        assert group.stdout is not None
        for line in group.stdout:
            if not line.startswith("step "):
                print(line, end="", flush=True)
            elif sys.stdout.isatty():
                print(f"\r{line.strip()} ", end="", flush=True)
            if kill_at is not None and line.startswith(f"step {kill_at} "):
                os.killpg(group.pid, signal.SIGKILL)
                print(f"\r{line.strip()}: all {ranks} ranks killed by SIGKILL")
                break
        else:
            print(f"\r{line.strip()} ")
    if group.returncode != (0 if kill_at is None else -signal.SIGKILL):
        sys.exit(f"the training ended with {group.returncode}: run the demo again")


def main() -> int:
    """Run all steps; return the exit code, which is that of the proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="demo-tokens-output", help="where all is written (%(default)s)")
    args = parser.parse_args()
    data, interrupted, uninterrupted = make_output(args.output, ("data", "interrupted", "uninterrupted"))
    announce("write code and prose of Python's standard library, and train a tokenizer on them")
    subprocess.run(program("corpus.py", data), check=True)
    announce("tokenise both")
    for name in ("code", "prose"):
        tokenize(data, name)
    announce("pack samples of 256 tokens, mix them 70 to 30, train on 3 ranks; kill -9 in mid-epoch")
    train(interrupted, data, 3, f"--steps={CHANGE_AT}", kill_at=KILL_AT)
    announce("resume on 2 ranks")
    train(interrupted, data, 2, f"--steps={CHANGE_AT}")
    announce("go on with samples of 128 tokens, by rows: the begun epochs end in samples of 256")
    train(interrupted, data, 2, f"--steps={STEPS}", "--length=128", "--resume=rows")
    announce("for comparison: samples of 256 from the start on 1 rank, uninterrupted")
    train(uninterrupted, data, 1, f"--steps={CHANGE_AT}")
    announce("the proof, from the logs of all launches")
    proof = subprocess.run(program("proof.py", data, interrupted, uninterrupted), check=False)
    print(f"\nThe program to copy is {os.path.relpath(os.path.join(HERE, 'train.py'))}.")
    return proof.returncode


if __name__ == "__main__":
    sys.exit(main())
