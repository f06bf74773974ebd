"""Loaders of other frameworks read addresses in worker processes, with credentials, and resume exactly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.remote.acceptance.corpus import Corpus
from tests.remote.acceptance.program import run

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.servers.bucket import Bucket

TORCH = """
import torch.utils.data
from seekable.integrations.torch import BatchSampler
dataset = opened().shuffle(seed=1)
if __name__ == "__main__":
    sampler = BatchSampler(dataset, batch_size=10)
    if given["state"]:
        sampler.load_state_dict(given["state"])
    loader = torch.utils.data.DataLoader(
        dataset, batch_sampler=sampler, num_workers=2, collate_fn=list, timeout=60,
        multiprocessing_context=given["method"],
    )
    batches = []
    for batch in sampler.counting(loader):
        batches.append([record["id"] for record in batch])
        if len(batches) == given["batches"]:
            break
    say(json.dumps([batches, sampler.state_dict()]))
"""

GRAIN = """
import grain
from absl import flags
flags.FLAGS.mark_as_parsed()
if __name__ == "__main__":
    source = opened().shuffle(seed=1).map(lambda record: {"id": record["id"]})
    loader = grain.DataLoader(
        data_source=source,
        sampler=grain.samplers.IndexSampler(num_records=len(source), num_epochs=1),
        operations=[grain.transforms.Batch(batch_size=10)],
        worker_count=2,
    )
    run = iter(loader)
    if given["state"]:
        run.set_state(given["state"].encode())
    batches = []
    for batch in run:
        batches.append(batch["id"].tolist())
        if len(batches) == given["batches"]:
            break
    say(json.dumps([batches, run.get_state().decode()]))
"""


@pytest.fixture
def corpus(bucket: Bucket, tmp_path: Path) -> Corpus:
    """Three indexed objects of a store that needs credentials."""
    made = Corpus.made(bucket, tmp_path)
    made.open()
    return made


def resumes(code: str, corpus: Corpus, tmp_path: Path, **given: object) -> list[list[int]]:
    """Return the batches of a run that stops after seven and goes on in another process without its cache."""
    first, state = json.loads(
        run(
            code,
            {**corpus.arguments(), **given, "state": None, "batches": 7},
            **corpus.credentials(),
            SEEKABLE_REMOTE_DIR=str(tmp_path / "cache"),
        )
    )
    rest, _ = json.loads(
        run(
            code,
            {**corpus.arguments(), **given, "state": state, "batches": None},
            **corpus.credentials(),
            SEEKABLE_REMOTE_DIR=str(tmp_path / "another-cache"),
        )
    )
    assert len(first) == 7
    batches: list[list[int]] = first + rest
    return batches


def expected(corpus: Corpus) -> list[int]:
    return [record["id"] for record in sk.from_sequence(corpus.records).shuffle(seed=1)]


@pytest.mark.frameworks(name="torch")
def test_a_loader_of_torch_resumes_over_a_store(corpus: Corpus, tmp_path: Path) -> None:
    batches = resumes(TORCH, corpus, tmp_path, method="fork")
    assert [number for batch in batches for number in batch] == expected(corpus)


@pytest.mark.frameworks(name="grain")
def test_a_loader_of_grain_resumes_over_a_store(corpus: Corpus, tmp_path: Path) -> None:
    batches = resumes(GRAIN, corpus, tmp_path)
    # Grain deals records out to its workers, and takes their batches in turns.
    assert sorted(number for batch in batches for number in batch) == sorted(expected(corpus))
