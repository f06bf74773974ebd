"""A run over Grain's DataLoader that ends early: `grain_train.py DATA STATE BATCHES`.

It goes on at the state, if there is one, prints the ids of as many batches, and saves the state.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import grain
from absl import flags

import seekable as sk


def main(data: str, state: Path, batches: int) -> None:
    # What absl.app.run does in a program.
    flags.FLAGS.mark_as_parsed()
    source = sk.open(f"{data}/*.jsonl").shuffle(seed=1).map(lambda record: {"id": record["id"]}).repeat(2)
    loader = grain.DataLoader(
        data_source=source,
        sampler=grain.samplers.IndexSampler(num_records=len(source), num_epochs=1),
        operations=[grain.transforms.Batch(batch_size=8)],
        worker_count=2,
    )
    run = iter(loader)
    if state.exists():
        run.set_state(state.read_bytes())
    for batch in itertools.islice(run, batches):
        sys.stdout.write(json.dumps(batch["id"].tolist()) + "\n")
    state.write_bytes(run.get_state())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
