"""Train on a Ray cluster, on as many workers as there is room for, and resume exactly after any failure.

    python train.py RUN TOKENS --address HOST:PORT

RUN is the folder of the run, which all nodes see: Ray's checkpoints, and a log of each rank of each launch of
the workers. Start the same command again after the driver died, and it goes on from the newest checkpoint.
TOKENS is the folder of a token store.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import tempfile
import threading
import time
import zlib
from typing import Any

import numpy as np
import ray
from ray.train import CheckpointConfig, FailureConfig, RunConfig, collective
from ray.train.v2.api.config import ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

import seekable as sk
from seekable.integrations.ray import check_world_sizes, loader, report, restore

BATCH = 24
"""Documents of a step, over all ranks: 2, 3 and 4 divide it."""

EPOCHS = 3
REPORT_EVERY = 10
NAME = "bigrams"
"""The name of the run: Ray keeps its checkpoints in a folder of this name."""

VOCABULARY = 512

SETTINGS = {
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",  # workers are looked after so often; a report takes as long
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "2",  # wait so long for a node that is gone
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",  # a process for nodes that are given notice
}
"""Ray Train's defaults, 2 and 60 seconds, make a recovery take minutes."""


def pipeline(tokens: str) -> sk.Dataset:
    """Return pairs of a document's tokens and its number, in an order of each epoch's own."""
    documents = sk.open(tokens)
    return sk.zip([documents, sk.from_sequence(range(len(documents)))]).shuffle(seed=1)


class Bigrams:
    """How often each token followed each other one: each worker counts its own share of the batches."""

    def __init__(self) -> None:
        self.counts = np.zeros((VOCABULARY, VOCABULARY), dtype=np.int64)

    def learn(self, documents: list[Any]) -> None:
        """Count the pairs of tokens of some documents."""
        for tokens in documents:
            np.add.at(self.counts, (tokens[:-1], tokens[1:]), 1)


def save(batches: sk.Loader, model: Bigrams) -> None:
    """Report a checkpoint: the counts of each worker, and the state of the loader."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, f"counts-{batches.rank}.npy"), model.counts)
        report(batches, {"step": batches.step}, folder=folder)


def load(batches: sk.Loader, model: Bigrams) -> None:
    """Go on from the newest checkpoint, written by any number of workers; rank 0 takes over all counts."""
    if not restore(batches) or batches.rank:
        return
    with ray.train.get_checkpoint().as_directory() as folder:
        for path in glob.glob(glob.escape(folder) + "/counts-*.npy"):
            model.counts += np.load(path)


class Log:
    """A line of JSON for each batch that this rank got: who gets what is proved from these alone."""

    def __init__(self, run: str, batches: sk.Loader) -> None:
        names = glob.glob("log-*-*.jsonl", root_dir=run)
        launch = 1 + max((int(name.split("-")[1]) for name in names), default=0)
        launch = collective.broadcast_from_rank_zero(launch)
        path = os.path.join(run, f"log-{launch}-{batches.rank}.jsonl")
        self._file = open(path, "x", encoding="utf-8")  # noqa: SIM115 - open until the worker ends
        self._write(ranks=batches.world_size, begins_at=batches.step)

    def note(self, step: int, batch: list[tuple[Any, int]]) -> None:
        """Log what was delivered: the number of each document, and a checksum of its tokens."""
        rows = [(number, zlib.crc32(document["tokens"].tobytes())) for document, number in batch]
        self._write(step=step, rows=rows)

    def _write(self, **entry: Any) -> None:
        print(json.dumps(entry), file=self._file, flush=True)


def wait_at(gate: str, step: int) -> None:
    """Wait while the file of the gate names this step: there the demo kills."""
    while os.path.exists(f"{gate}-{step}"):
        time.sleep(0.02)


def train(given: dict[str, str]) -> None:
    """Train as one of several workers; Ray calls it anew on each worker after a failure."""
    batches = loader(pipeline(given["tokens"]), global_batch_size=BATCH, epochs=EPOCHS, collate=list)
    model = Bigrams()
    load(batches, model)
    log = Log(given["run"], batches)
    for batch in batches:
        step = batches.step
        model.learn([document["tokens"] for document, _ in batch])
        log.note(step, batch)
        collective.barrier()  # as the sum of gradients would do
        wait_at(os.path.join(given["run"], "gate"), step)
        if step % REPORT_EVERY == 0 or step == len(batches):
            save(batches, model)


class Room:
    """The room that Ray reserves for runs: by itself it looks for lost and new nodes every 20 seconds only.

    It also keeps the room of a driver that was killed for three minutes, and a new driver would wait for it.
    """

    NAME = "AutoscalingCoordinator"

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        """Drop all reservations, as runs that are alive reserve again by themselves; then watch."""
        with contextlib.suppress(ValueError):  # There is none before the first run.
            ray.kill(ray.get_actor(self.NAME, namespace=self.NAME), no_restart=False)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        """Look at the nodes each second."""
        while not self._ended.wait(1):
            with contextlib.suppress(ValueError, ray.exceptions.RayError):
                coordinator = ray.get_actor(self.NAME, namespace=self.NAME)
                ray.get(coordinator.get_reserved_resources.remote("", recompute=True), timeout=5)


def main() -> None:
    """Read the command line, and train to the end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="the folder of the run, made where it is not there")
    parser.add_argument("tokens", help="the folder of a token store")
    parser.add_argument("--address", help="the address of the cluster")
    args = parser.parse_args()
    run, tokens = os.path.abspath(args.run), os.path.abspath(args.tokens)
    os.makedirs(run, exist_ok=True)
    os.environ.update(SETTINGS)
    ray.init(args.address, log_to_driver=False)
    scaling = ScalingConfig(num_workers=(2, 4), elastic_resize_monitor_interval_s=1)
    check_world_sizes(scaling, global_batch_size=BATCH, data=pipeline(tokens))
    trainer = DataParallelTrainer(
        train,
        train_loop_config={"run": run, "tokens": tokens},
        scaling_config=scaling,
        run_config=RunConfig(
            name=NAME,
            storage_path=run,
            failure_config=FailureConfig(max_failures=5),
            checkpoint_config=CheckpointConfig(num_to_keep=2),
        ),
    )
    with Room():
        trainer.fit()


if __name__ == "__main__":
    main()
