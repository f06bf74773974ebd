"""A child process reads over the store, or says why not; it never hangs, and its parent lives on."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
from tests.remote.acceptance.corpus import Corpus
from tests.remote.acceptance.program import run
from tests.thrift import some

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.servers.bucket import Bucket

METHODS = ("fork", "forkserver", "spawn")
CASES = list(itertools.product(METHODS, (True, False), (None, 0)))
CACHED, MISSING, LATER = 5, 150, 290
"""Rows of three objects: one one on the disk, one that is not, and one for the parent at the end."""

MATRIX = """
import multiprocessing
from tests.remote.acceptance.children import read_rows

if __name__ == "__main__":
    dataset = sk.open(
        given["source"],
        index=sk.Index(folder=given["index_dir"]),
        storage=sk.Storage(options=given["storage_options"], refresh=given["used"]),
    )
    if given["used"]:
        dataset[given["cached"]]
    context = multiprocessing.get_context(given["method"])
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(target=read_rows, args=(dataset, [given["cached"], given["missing"]], writer))
    child.start()
    writer.close()
    answers = []
    try:
        while len(answers) < 2 and reader.poll(10):
            answers.append(reader.recv())
    except EOFError:
        pass
    child.join(10)
    say(json.dumps([answers, child.exitcode, dataset[given["later"]]["id"]]))
    child.kill()
"""

LOADERS = """
import torch.utils.data
dataset = opened().shuffle(seed=1)
before = dataset[0]
loader = torch.utils.data.DataLoader(
    dataset, batch_size=10, num_workers=2, collate_fn=list, timeout=60,
    multiprocessing_context=given["method"],
)
if __name__ == "__main__":
    batches = [[record["id"] for record in batch] for batch in loader]
    assert dataset[0] == before
    say(json.dumps(batches))
"""


@pytest.fixture
def corpus(bucket: Bucket, tmp_path: Path) -> Corpus:
    """Three indexed objects, the first of which the disk has."""
    made = Corpus.made(bucket, tmp_path)
    run("opened()[5]", made.arguments(), SEEKABLE_REMOTE_DIR=str(tmp_path / "cache"))
    return made


def children_hold(
    corpus: Corpus, cache: Path, *, method: str, used: bool, most_bytes: int | None = None
) -> None:
    given = {**corpus.arguments(), "method": method, "used": used}
    rows = {"cached": CACHED, "missing": MISSING, "later": LATER}
    variables = {} if most_bytes is None else {"SEEKABLE_REMOTE_BYTES": str(most_bytes)}
    variables |= {} if method == "fork" else corpus.credentials()
    answers, code, later = json.loads(
        run(MATRIX, {**given, **rows}, SEEKABLE_REMOTE_DIR=str(cache), **variables)
    )
    assert later == LATER
    assert code == 0
    if most_bytes == 0 and method == "fork" and used:
        assert all(
            answer == row or "forkserver" in str(answer)
            for answer, row in zip(answers, (5, 150), strict=True)
        )
    else:
        assert answers == [CACHED, MISSING]


def test_a_forked_child_of_a_parent_that_fetched_reads_on(corpus: Corpus, tmp_path: Path) -> None:
    children_hold(corpus, tmp_path / "cache", method="fork", used=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("method", "used", "most_bytes"), CASES[: some(len(CASES))])
def test_the_fork_matrix(
    method: str,
    used: bool,  # noqa: FBT001 - pytest names it
    most_bytes: int | None,
    corpus: Corpus,
    tmp_path: Path,
) -> None:
    children_hold(corpus, tmp_path / "cache", method=method, used=used, most_bytes=most_bytes)


@pytest.mark.frameworks(name="torch")
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_of_torch_read_over_the_store(method: str, corpus: Corpus, tmp_path: Path) -> None:
    given = {**corpus.arguments(), "method": method}
    variables = {} if method == "fork" else corpus.credentials()
    batches = json.loads(run(LOADERS, given, SEEKABLE_REMOTE_DIR=str(tmp_path / "cache"), **variables))
    ids = sorted(number for batch in batches for number in batch)
    assert ids == [record["id"] for record in corpus.records]
