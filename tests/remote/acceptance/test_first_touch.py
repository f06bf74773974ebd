"""How many requests the first batch, a single record and an open take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.remote.acceptance.corpus import Corpus

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.remote.proxy import Front
    from tests.remote.servers.nginx import Nginx


@pytest.fixture
def corpus(nginx: Nginx, front: Front, tmp_path: Path, forget: Callable[[], None]) -> Corpus:
    """Three indexed objects behind the proxy, of which nothing else is here."""
    made = Corpus.made(nginx.s3_bucket(), tmp_path, each=1000, size=4000).behind(front)
    made.open()
    forget()
    front.log(clear=True)
    return made


def opened(corpus: Corpus, *, refresh: bool = True) -> sk.Dataset:
    return sk.open(
        corpus.urls,
        index=sk.Index(folder=corpus.index_dir),
        storage=sk.Storage(options=corpus.bucket.options, refresh=refresh),
    )


def test_an_open_that_does_not_refresh_asks_nothing(corpus: Corpus, front: Front) -> None:
    assert len(opened(corpus, refresh=False)) == len(corpus.records)
    assert front.log() == []


def test_a_second_open_transfers_no_data(corpus: Corpus, front: Front) -> None:
    opened(corpus)
    assert not any(noted.method == "GET" for noted in front.log())
    assert len(front.log()) <= len(corpus.keys)


def test_a_cold_record_is_one_request(corpus: Corpus, front: Front) -> None:
    dataset = opened(corpus, refresh=False)
    assert dataset[1500] == corpus.records[1500]
    assert len(front.log()) == 1
