"""A program that waits for a store ends when it is told to, at once and without noise."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest
from tests.remote.acceptance.corpus import Corpus
from tests.remote.acceptance.program import Program
from tests.remote.proxy import Fault
from tests.thrift import some

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.proxy import Front
    from tests.remote.servers.nginx import Nginx

PROMISED_SECONDS = 1.0

READS = {
    "workers": "list(sk.Loader(dataset, batch_size=4, workers=2))",
    "record": "dataset[5]",
    "rows": "dataset[[5, 150, 290]]",
    "epoch": "list(dataset.shuffle(seed=1))",
    "loader": "list(sk.Loader(dataset.shuffle(seed=1), batch_size=4))",
    "threads": "list(sk.Loader(dataset, batch_size=4, workers=sk.Workers(2, type='thread')))",
}


@pytest.fixture
def corpus(nginx: Nginx, front: Front, tmp_path: Path) -> Corpus:
    """Three indexed objects behind the proxy."""
    made = Corpus.made(nginx.s3_bucket(), tmp_path).behind(front)
    made.open()
    return made


def interrupted(what: str, corpus: Corpus, front: Front, cache: Path) -> None:
    code = f"""
        dataset = opened()
        say("open")
        wait()
        try:
            {what}
        except KeyboardInterrupt:
            say(time.monotonic())
    """
    with Program(code, corpus.arguments(), SEEKABLE_REMOTE_DIR=str(cache)) as program:
        assert program.line() == "open"
        noted = len(front.log())
        front.always(Fault(hang=True))
        program.go()
        front.wait(noted + 1)
        sent = time.monotonic()
        program.send(signal.SIGINT)
        answered = float(program.line())
        assert answered - sent < PROMISED_SECONDS
        assert program.end()[0::2] == (0, "")


def test_ctrl_c_ends_a_read_that_hangs(corpus: Corpus, front: Front, tmp_path: Path) -> None:
    interrupted(READS["epoch"], corpus, front, tmp_path / "cache")


@pytest.mark.exhaustive
@pytest.mark.parametrize("what", list(READS.values())[: some(6)], ids=list(READS)[: some(6)])
def test_ctrl_c_ends_any_read_that_hangs(what: str, corpus: Corpus, front: Front, tmp_path: Path) -> None:
    interrupted(what, corpus, front, tmp_path / "cache")


@pytest.mark.exhaustive
def test_ctrl_c_ends_an_open_that_hangs(nginx: Nginx, front: Front, tmp_path: Path) -> None:
    corpus = Corpus.made(nginx.s3_bucket(), tmp_path).behind(front)
    front.always(Fault(hang=True))
    code = """
        say("begun")
        try:
            opened()
        except KeyboardInterrupt:
            say(time.monotonic())
    """
    with Program(code, corpus.arguments(), SEEKABLE_REMOTE_DIR=str(tmp_path / "cache")) as program:
        assert program.line() == "begun"
        front.wait(1)
        sent = time.monotonic()
        program.send(signal.SIGINT)
        assert float(program.line()) - sent < PROMISED_SECONDS
        assert program.end()[0::2] == (0, "")


@pytest.mark.exhaustive
def test_an_interpreter_ends_with_requests_in_flight(nginx: Nginx, front: Front, tmp_path: Path) -> None:
    corpus = Corpus.made(nginx.s3_bucket(), tmp_path, objects=40, each=10).behind(front)
    corpus.open()
    with Program(
        """
        import threading
        dataset = opened()
        say("open")
        wait()
        for row in range(0, 400, 10):
            threading.Thread(target=dataset.__getitem__, args=(row,), daemon=True).start()
        wait()
        """,
        corpus.arguments(),
        SEEKABLE_REMOTE_DIR=str(tmp_path / "cache"),
    ) as program:
        assert program.line() == "open"
        noted = len(front.log())
        front.always(Fault(hang=True))
        program.go()
        front.wait(noted + 20)
        sent = time.monotonic()
        program.go()
        assert program.end() == (0, "", "")
        assert time.monotonic() - sent < 2
