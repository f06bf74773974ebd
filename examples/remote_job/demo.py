"""Show the main job on a bucket: index, publish, train, kill -9, go on on another machine, and prove it.

    python -m examples.remote_job.demo [--output FOLDER]

The bucket is that of a server on this machine. A proxy before it makes each request wait for 30 ms, and
breaks some of them, as a cloud does. "Another machine" is another cache and another folder of indexes, both
empty. The work is done by train.py beside this file, the program to copy.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from examples.output_folder import announce, make_output
from tests.remote.proxy import Fault, Proxies
from tests.remote.servers.s3 import Moto

if TYPE_CHECKING:
    from tests.remote.proxy import Front
    from tests.remote.servers.bucket import Bucket

HERE = os.path.dirname(os.path.abspath(__file__))
MAIN_JOB = os.path.join(os.path.dirname(HERE), "main_job")
LATENCY = 0.03
FAULTS = {Fault(status=503, retry_after=0): 0.01, Fault(reset_after=20_000): 0.01}
"""The chance of each fault, for each request."""

SOURCES = ("passages-*.jsonl", "lines-*.txt")
KILL_AT = 260
"""Between two saved states."""


@dataclass(frozen=True)
class Machine:
    """A machine: a cache of objects and a folder of indexes of its own, in the folder of the demo."""

    output: str
    name: str
    bucket: Bucket

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its processes; the keys of the store are among them, as on a real machine."""
        options = self.bucket.options
        return {
            **os.environ,
            "SEEKABLE_REMOTE_DIR": os.path.join(self.output, self.name, "cache"),
            "SEEKABLE_INDEX_DIR": os.path.join(self.output, self.name, "indexes"),
            "AWS_ACCESS_KEY_ID": options["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": options["secret_access_key"],
            "AWS_REGION": options["region"],
            "AWS_ENDPOINT_URL": options["endpoint"],
        }

    def index(self) -> None:
        """Index both sources, and publish the indexes beside the data."""
        for source in SOURCES:
            command = [sys.executable, "-m", "seekable", "index", f"{self.bucket.url}/{source}", "--publish"]
            subprocess.run(command, check=True, env=self.environment)

    def train(self, run: str, ranks: int, *, kill_at: int | None = None) -> None:
        """Train as a group of processes; kill all of them, with SIGKILL, when they are at a batch."""
        addresses = [f"{self.bucket.url}/{source}" for source in SOURCES]
        states = f"--states={self.bucket.url}/states/{run}"
        folder = os.path.join(self.output, run)
        program = [sys.executable, os.path.join(HERE, "train.py")]
        command = [*program, folder, *addresses, states, f"--ranks={ranks}"]
        line = ""
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=self.environment
        ) as group:
            assert group.stdout is not None
            for line in group.stdout:
                if not line.startswith("batch "):
                    print(line, end="", flush=True)
                elif sys.stdout.isatty():
                    print(f"\r{line.strip()} ", end="", flush=True)
                if kill_at is not None and line.startswith(f"batch {kill_at} "):
                    os.killpg(group.pid, signal.SIGKILL)
                    print(f"\r{line.strip()}: all {ranks} ranks killed by SIGKILL")
                    break
        if group.returncode != (0 if kill_at is None else -signal.SIGKILL):
            sys.exit(f"the training ended with {group.returncode}: run the demo again")


def upload(data: str, bucket: Bucket) -> None:
    """Write the standard library as data, and put it into the bucket."""
    subprocess.run([sys.executable, os.path.join(MAIN_JOB, "standard_library.py"), data], check=True)
    for name in sorted(os.listdir(data)):
        with open(os.path.join(data, name), "rb") as file:
            bucket.upload({name: file.read()})
    shutil.rmtree(data)  # From here on, the data lies in the bucket alone.


def show_traffic(front: Front) -> None:
    """Print what the store was asked for since the last time."""
    exchanges = front.log(clear=True)
    faults = sum(exchange.fault is not None for exchange in exchanges)
    size = sum(exchange.sent for exchange in exchanges)
    print(
        f"the store had {len(exchanges):,} requests, of which {faults} failed, and sent {size / 1e6:,.1f} MB"
    )


def main() -> int:
    """Run all steps; return the exit code, which is that of the proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="demo-remote-output", help="where all is written (%(default)s)")
    output = parser.parse_args().output
    make_output(output)
    with ExitStack() as stack:
        announce("start a server that is S3, put Python's standard library into a bucket, as JSONL and text")
        store = Moto()
        stack.callback(store.stop)
        bucket = store.bucket()
        upload(os.path.join(output, "data"), bucket)
        front = stack.enter_context(Proxies()).before(store.address)
        front.always(Fault(latency=LATENCY))
        front.by_chance(1, FAULTS)
        print("each request waits for 30 ms; of a hundred one is reset in its body, and one refused with 503")
        first, second, third = (
            Machine(output, name, bucket.behind(front)) for name in ("machine-1", "machine-2", "machine-3")
        )
        announce("machine 1: index the bucket, and publish the index beside the data")
        first.index()
        show_traffic(front)
        announce("machine 1: shuffle, mix 70:30, train on 2 ranks, save states to the bucket; kill -9")
        first.train("interrupted", 2, kill_at=KILL_AT)
        show_traffic(front)
        announce("machine 2, without index, cache or states: go on on 3 ranks")
        second.train("interrupted", 3)
        show_traffic(front)
        announce("machine 3, for comparison: the same from the start on 1 rank, uninterrupted")
        third.train("uninterrupted", 1)
        show_traffic(front)
    announce("the proof, from the logs of all launches")
    runs = [os.path.join(output, run) for run in ("interrupted", "uninterrupted")]
    proof = subprocess.run([sys.executable, os.path.join(MAIN_JOB, "proof.py"), *runs], check=False)
    print(f"\nThe program to copy is {os.path.relpath(os.path.join(HERE, 'train.py'))}.")
    return proof.returncode


if __name__ == "__main__":
    sys.exit(main())
