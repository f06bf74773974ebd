"""Show a training on conversations: a chat template, packed samples, answers in the loss, kill -9.

    python -m examples.chats_job.demo [--output FOLDER]

The work is done by the programs beside this one, each of which can be run alone: conversations.py, train.py
(the one to copy) and proof.py.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys

from examples.tokens_job.demo import announce, make_output

import seekable as sk

KILL_AT = 13
"""Between two saved states."""


def program(name: str, *arguments: str) -> list[str]:
    """Return the command line of one of the programs beside this one."""
    return [sys.executable, "-m", f"examples.chats_job.{name}", *arguments]


def tokenize(data: str) -> str:
    """Write the token store of all conversations, and return its folder."""
    # A conversation of more tokens than a sample has would be cut: whole turns are left out instead.
    chat = sk.Chat(os.path.join(data, "model"), mask="weight", most_tokens=256)
    tokens = os.path.join(data, "tokens")
    sk.tokenize(os.path.join(data, "chats.jsonl"), to=tokens, tokenizer=chat, progress=False)
    with open(os.path.join(tokens, "tokens.json"), encoding="utf-8") as file:
        document = json.load(file)
    print(f"{document['tokens']:,} tokens, of which {document['trained']:,} are in the loss")
    return tokens


def train(run: str, tokens: str, ranks: int, steps: int, *, kill_at: int | None = None) -> None:
    """Train as a group of processes; kill all of them, with SIGKILL, when they are at a step."""
    command = program("train", run, tokens, f"--ranks={ranks}", f"--steps={steps}")
    line = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as group:
        assert group.stdout is not None
        for line in group.stdout:
            if not line.startswith("step "):
                print(line, end="", flush=True)
            if kill_at is not None and line.startswith(f"step {kill_at} "):
                os.killpg(group.pid, signal.SIGKILL)
                print(f"{line.strip()}: all {ranks} ranks killed by SIGKILL")
                break
        else:
            print(line.strip())
    if group.returncode != (0 if kill_at is None else -signal.SIGKILL):
        sys.exit(f"the training ended with {group.returncode}: run the demo again")


def main() -> int:
    """Run all steps; return the exit code, which is that of the proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="demo-chat-output", help="where all is written (%(default)s)")
    args = parser.parse_args()
    data, interrupted, uninterrupted = make_output(args.output, ("data", "interrupted", "uninterrupted"))
    announce("make conversations, a tokenizer and a chat template")
    subprocess.run(program("conversations", data), check=True)
    announce("tokenise them by the template, with a mask of the answers that are right")
    tokens = tokenize(data)
    steps = (
        5 * len(sk.open(tokens).pack(256, seed=7, method="best_fit", labels="within")) // 24
    )  # Two epochs and a half.
    announce("pack samples of 256 tokens, train on 3 ranks; kill -9")
    train(interrupted, tokens, 3, steps, kill_at=KILL_AT)
    announce("resume on 2 ranks")
    train(interrupted, tokens, 2, steps)
    announce("for comparison: on 1 rank, uninterrupted")
    train(uninterrupted, tokens, 1, steps)
    announce("the proof, from the logs of all launches")
    proof = subprocess.run(program("proof", tokens, interrupted, uninterrupted), check=False)
    print("\nThe program to copy is examples/chats_job/train.py.")
    return proof.returncode


if __name__ == "__main__":
    sys.exit(main())
