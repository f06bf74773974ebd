"""Batches become global arrays of JAX, over the devices of one process and of several."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.loader.flat import batches_of

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterable

RANKS = Path(__file__).with_name("jax_ranks.py")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for shard in range(3):
        lines = [json.dumps({"id": shard * 35 + row}) + "\n" for row in range(35)]
        (folder / f"{shard}.jsonl").write_text("".join(lines))
    return folder


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("localhost", 0))
        return int(asked.getsockname()[1])


def steps_of(data: Path, states: Path, *, processes: int, steps: int) -> list[list[dict[str, Any]]]:
    """Return what each process printed."""
    port = free_port()
    around = {name: value for name, value in os.environ.items() if name not in {"RANK", "WORLD_SIZE"}}
    running = [
        subprocess.Popen(
            [sys.executable, RANKS, *map(str, (data, states, steps, process, processes, port))],
            env={**around, "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for process in range(processes)
    ]
    said = [process.communicate(timeout=120)[0].splitlines() for process in running]
    assert [process.returncode for process in running] == [0] * processes
    # Gloo tells on stdout that it is connected.
    return [[json.loads(line) for line in lines if line.startswith("{")] for lines in said]


def parts(batch: list[int], *, count: int) -> list[list[int]]:
    """Cut into equal runs."""
    length = len(batch) // count
    return [batch[at : at + length] for at in range(0, len(batch), length)]


def check(said: list[list[dict[str, Any]]], batches: Iterable[list[int]]) -> None:
    for batch, *steps in zip(batches, *said, strict=True):
        processes = len(steps)
        # JAX puts the shares of the processes one after the other, and we deal records out in turn.
        rows = [record for rank in range(processes) for record in batch[rank::processes]]
        for step, here in zip(steps, parts(rows, count=processes), strict=True):
            assert step["ids"] == rows
            assert sorted(step["ids"]) == sorted(batch)
            assert step["here"] == parts(here, count=2)
            assert step["shape"] == [16, 3]
            assert step["total"] == 3 * sum(batch)
            assert step["traced"] == 1


def test_global_arrays_hold_the_global_batches_on_any_number_of_processes(data: Path, tmp_path: Path) -> None:
    dataset = sk.open(str(data)).shuffle(seed=1).map(lambda record: record["id"])
    batches = batches_of(dataset, 16, end="drop")
    states = tmp_path / "states"
    check(steps_of(data, states, processes=2, steps=4), batches[:4])
    check(steps_of(data, states, processes=1, steps=100), batches[4:])
