"""A training run that only logs what it is given: `train.py LOG FOLDER`, until it says "done"."""

from __future__ import annotations

import os
import sys

import seekable as sk


def main(log: str, folder: str) -> None:
    """Take two epochs, in as many lives as it takes."""
    dataset = sk.from_sequence(range(300)).shuffle(seed=11)
    loader = sk.Loader(dataset, batch_size=7, collate=list, prefetch=2)
    sk.load_state(folder, loader)
    with open(log, "a", encoding="utf-8") as file:
        while loader.epoch < 2:
            for batch in loader:
                file.write(f"{loader.step - 1} {batch}\n")
                file.flush()
                os.fsync(file.fileno())
                sk.save_state(folder, loader)
                sys.stdout.write("batch\n")
                sys.stdout.flush()
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
