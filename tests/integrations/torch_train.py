"""A training run over torch's DataLoader that logs its records, saves its states, and may be killed.

The arguments: the data, the folder of the states, the log, the number of workers, and the step after which
to die; 0 for none.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from tests.integrations.torch_samplers import sampled

import seekable as sk


def train(data: str, states: str, log: str, workers: int, die_after: int) -> None:
    sampler, loader = sampled(sk.open(data).shuffle(seed=1), num_workers=workers)
    sk.load_state(states, sampler)
    with open(log, "a", encoding="utf-8") as file:
        while sampler.epoch < 2:
            for batch in sampler.counting(loader):
                file.write(json.dumps([record["id"] for record in batch]) + "\n")
                file.flush()
                sk.save_state(states, sampler)
                if sampler.step == die_after:
                    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    data, states, log, workers, die_after = sys.argv[1:]
    train(data, states, log, int(workers), int(die_after))
