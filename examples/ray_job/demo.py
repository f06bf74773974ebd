"""Show a cluster of Ray that loses a node, gets it back and loses its driver, and a run that loses no record.

    python -m examples.ray_job.demo [--output FOLDER]

The nodes are groups of processes of this machine. The work is done by the programs beside this one:
prepare.py, train.py (the one to copy) and proof.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from examples.output_folder import announce, make_output
from examples.ray_job import train
from examples.ray_job.proof import Launch, read_launches
from tests.integrations.ray_cluster import ENVIRONMENT, RayCluster

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = os.path.dirname(os.path.abspath(__file__))
KILL_NODE_AT, RETURN_AT, KILL_DRIVER_AT = 25, 45, 65
"""Batches in mid-epoch, and between two checkpoints."""

PATIENCE = 120
"""Seconds to wait for the cluster, before the demo gives up."""


class Training:
    """A run of train.py, which can be held at a batch, and its driver."""

    def __init__(self, output: str, tokens: str, address: str) -> None:
        self._run, self._tokens, self._address = os.path.join(output, "run"), tokens, address
        self._said = os.path.join(output, "driver.log")
        os.makedirs(self._run)

    def start(self) -> None:
        """Start the driver."""
        command = [sys.executable, os.path.join(HERE, "train.py"), self._run, self._tokens]
        with open(self._said, "a", encoding="utf-8") as said:
            self._driver = subprocess.Popen(
                [*command, "--address", self._address], stdout=said, stderr=subprocess.STDOUT
            )

    def hold(self, step: int) -> None:
        """Let the workers wait after a batch."""
        with open(self._gate(step), "w", encoding="utf-8"):
            pass

    def let_go(self, step: int) -> None:
        """Let the workers go on."""
        os.remove(self._gate(step))

    def wait_for(self, step: int, ranks: int) -> None:
        """Wait until so many workers have trained on a batch, and Ray has kept the checkpoint before it."""
        self._wait(lambda: self._is_at(step, ranks) and self._kept() == step - step % train.REPORT_EVERY)

    def wait_for_launch(self, number: int, ranks: int) -> None:
        """Wait until a launch has so many workers."""
        self._wait(lambda: len(self._launches()) >= number and len(self._launches()[-1].ranks) == ranks)

    def kill(self) -> None:
        """Kill the driver by SIGKILL."""
        self._driver.kill()
        self._driver.wait()

    def finish(self) -> None:
        """Wait for the end."""
        if self._driver.wait(PATIENCE):
            self._give_up()

    def _launches(self) -> list[Launch]:
        return read_launches(self._run)

    def _is_at(self, step: int, ranks: int) -> bool:
        launches = self._launches()
        return bool(launches) and len(launches[-1].ranks) == ranks and launches[-1].ends_at == step

    def _kept(self) -> int | None:
        path = os.path.join(self._run, train.NAME, "checkpoint_manager_snapshot.json")
        with suppress(FileNotFoundError, ValueError), open(path, encoding="utf-8") as file:
            return int(json.load(file)["latest_checkpoint_result"]["metrics"]["step"])
        return None

    def _gate(self, step: int) -> str:
        return os.path.join(self._run, f"gate-{step}")

    def _wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end or self._driver.poll() is not None:
                self._give_up()
            time.sleep(0.05)

    def _give_up(self) -> None:
        self._driver.kill()
        with open(self._said, encoding="utf-8") as file:
            sys.exit("".join(file.readlines()[-20:]) + "the training did not go on: run the demo again")


def train_and_kill(cluster: RayCluster, training: Training) -> None:
    """Train to the end, through the loss of a node, its return, and the loss of the driver."""
    announce("train on 4 workers, two on each node, and kill a node in mid-epoch by SIGKILL")
    for step in (KILL_NODE_AT, RETURN_AT, KILL_DRIVER_AT):
        training.hold(step)
    training.start()
    training.wait_for(KILL_NODE_AT, ranks=4)
    cluster.kill_node(cluster.nodes[0])
    print(f"batch {KILL_NODE_AT}: node 1 killed, with two of the four workers")
    training.let_go(KILL_NODE_AT)
    training.wait_for(RETURN_AT, ranks=2)
    print(f"batch {RETURN_AT}: two workers have come so far on the node that is left; a new node starts")
    cluster.add_node()
    training.wait_for_launch(3, ranks=4)
    training.let_go(RETURN_AT)
    training.wait_for(KILL_DRIVER_AT, ranks=4)
    announce("kill the driver by SIGKILL, and start it again")
    training.kill()
    print(f"batch {KILL_DRIVER_AT}: driver killed; Ray ends the four workers with it")
    training.let_go(KILL_DRIVER_AT)
    training.start()
    training.finish()


def main() -> int:
    """Run all steps; return the exit code, which is that of the proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="demo-ray-output", help="where all is written (%(default)s)")
    output = os.path.abspath(parser.parse_args().output)
    make_output(output)
    data, tokens = os.path.join(output, "data"), os.path.join(output, "tokens")
    announce("write code and prose of Python's standard library, and train a tokenizer on them")
    corpus = os.path.join(os.path.dirname(HERE), "tokens_job", "corpus.py")
    subprocess.run([sys.executable, corpus, data], check=True)
    announce("start a cluster of Ray with 3 nodes; index and tokenise the corpus on them")
    os.environ |= ENVIRONMENT
    with RayCluster(nodes=3, num_cpus=2) as cluster:
        prepare = [sys.executable, os.path.join(HERE, "prepare.py"), data, tokens]
        subprocess.run([*prepare, "--address", cluster.address], check=True)
        cluster.kill_node(cluster.nodes[-1])  # The training has two.
        train_and_kill(cluster, Training(output, tokens, cluster.address))
    announce("the proof, from the logs of all workers")
    proof = [sys.executable, "-m", "examples.ray_job.proof", os.path.join(output, "run"), tokens]
    proved = subprocess.run(proof, check=False)
    print(f"\nThe program to copy is {os.path.relpath(os.path.join(HERE, 'train.py'))}.")
    return proved.returncode


if __name__ == "__main__":
    sys.exit(main())
