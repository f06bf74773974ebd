"""What docs/from/mosaicml-streaming.md says of Streaming holds for the version that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.frameworks(name="streaming")

ROOT = Path(__file__).parents[2]
PROGRAM = """
from tests.docs.peers import unknown_names
assert unknown_names("mosaicml-streaming") == {"not there": [], "not in the table": []}
from streaming import MDSWriter, StreamingDataLoader, StreamingDataset
from streaming.base.batching import generate_work
from streaming.base.world import World


def write(folder, count):
    with MDSWriter(out=folder, columns={"id": "int"}, size_limit=1000) as writer:
        for number in range(count):
            writer.write({"id": number})


def opened(folder, batch_size=10):
    given = {"batch_size": batch_size, "num_canonical_nodes": 1}
    return StreamingDataset(local=folder, shuffle=True, shuffle_seed=7, **given)


def loader(folder):
    return StreamingDataLoader(opened(folder), batch_size=10)


def ids(batches):
    return [number for batch in batches for number in batch["id"].tolist()]


write("mds", 300)
write("fewer", 200)
first = loader("mds")
run = iter(first)
before = ids(next(run) for _ in range(12))
state = first.state_dict()
after = ids(run)
assert sorted(before + after) == list(range(300))

# A state loads over other shards.
other = loader("fewer")
other.load_state_dict(state)
assert len(ids(other)) == 200 - 120

# An earlier state has no effect on a dataset that is in its next epoch: the next epoch comes, whole.
first.load_state_dict(state)
again = ids(first)
assert sorted(again) == list(range(300)) and again[:180] != after

# One order for any number of ranks; the order of an epoch is an array with a number for each sample.
def global_batches(ranks):
    dataset = opened("mds", batch_size=10 // ranks)
    dataset.shuffle_block_size = 4000
    work = generate_work("random", dataset, World(1, ranks, 1, 0), 0, 0)
    assert work.dtype == "int64" and work.size == 300
    of_rank = work[0, :, 0]
    return [sorted(of_rank[:, number].ravel().tolist()) for number in range(of_rank.shape[1])]

assert global_batches(1) == global_batches(2) == global_batches(5)
"""


def test_what_the_page_says_of_streaming(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], cwd=tmp_path, env=environment, check=True)
