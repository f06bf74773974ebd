"""A store with faults: the records of local files come, or an error that says what failed and what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.remote.acceptance.corpus import Corpus
from tests.remote.acceptance.faults import LASTING, PASSING, QUICK
from tests.thrift import some

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.remote.proxy import Fault, Front
    from tests.remote.servers.nginx import Nginx


@pytest.fixture
def corpus(nginx: Nginx, front: Front, tmp_path: Path, forget: Callable[[], None]) -> Corpus:
    """Three indexed objects behind the proxy, of which nothing else is here."""
    made = Corpus.made(nginx.s3_bucket(), tmp_path).behind(front)
    made.open(**QUICK)
    forget()
    front.log(clear=True)
    return made


def read(dataset: sk.Dataset) -> list[object]:
    return list(dataset.shuffle(seed=3))


def expected(corpus: Corpus) -> list[object]:
    return list(sk.from_sequence(corpus.records).shuffle(seed=3))


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_what_fails_once_is_asked_for_again(fault: Fault, corpus: Corpus, front: Front) -> None:
    dataset = corpus.open(**QUICK)
    front.rule(fault, target="^GET .*part-")
    assert list(dataset) == list(corpus.records)
    assert [noted.fault for noted in front.log() if noted.fault] == [fault.encoded()["name"]]


@pytest.mark.parametrize(("fault", "error"), LASTING.values(), ids=LASTING)
def test_what_goes_on_failing_is_an_error_that_names_the_object(
    fault: Fault, error: type[Exception], corpus: Corpus, front: Front
) -> None:
    dataset = corpus.open(retries=1)
    front.rule(fault, target="^GET .*part-01", count=1000)
    with pytest.raises(error, match=re.escape(corpus.keys[1])) as raised:
        list(dataset)
    if error is sk.errors.Unreachable:
        assert re.search(r"\b2 tries\b", str(raised.value))
        assert re.search(r"bytes \d+ to \d+", str(raised.value))
    front.calm()
    assert read(dataset) == expected(corpus)


def schedule_holds(corpus: Corpus, front: Front, seed: int) -> None:
    """Read all records under faults of a seed: they are right, or an error of ours ends the reading."""
    front.by_chance(seed, dict.fromkeys(PASSING.values(), 0.04))
    try:
        assert read(corpus.open(**QUICK)) == expected(corpus)
    finally:
        front.calm()


def test_random_faults_change_no_record(corpus: Corpus, front: Front) -> None:
    schedule_holds(corpus, front, seed=0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1, 1 + some(12)))
def test_any_schedule_of_faults_changes_no_record(
    seed: int, nginx: Nginx, front: Front, tmp_path: Path, forget: Callable[[], None]
) -> None:
    forget()
    corpus = Corpus.made(nginx.s3_bucket(), tmp_path, objects=4, each=400, size=4000)
    schedule_holds(corpus.behind(front), front, seed)
