"""What a killed process leaves in the cache on disk is right, or is fetched again."""

from __future__ import annotations

import hashlib
import json
import random
import signal
from typing import TYPE_CHECKING

import pytest
from tests.remote.acceptance.corpus import Corpus
from tests.remote.acceptance.program import Program, run
from tests.remote.proxy import Fault
from tests.thrift import some

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.proxy import Front
    from tests.remote.servers.nginx import Nginx

READ_ALL = """
import hashlib
digest = hashlib.sha256()
for record in opened():
    digest.update(json.dumps(record).encode())
say(digest.hexdigest())
"""

pytestmark = pytest.mark.exhaustive


def expected(corpus: Corpus) -> str:
    digest = hashlib.sha256()
    for record in corpus.records:
        digest.update(json.dumps(record).encode())
    return digest.hexdigest()


@pytest.fixture
def corpus(nginx: Nginx, front: Front, tmp_path: Path) -> Corpus:
    """Some megabytes in indexed objects, behind the proxy."""
    made = Corpus.made(nginx.s3_bucket(), tmp_path, objects=4, each=300, size=8000).behind(front)
    made.open()
    return made


@pytest.mark.parametrize("seed", range(some(4)))
def test_kills_while_the_cache_is_written_leave_it_good(
    seed: int, corpus: Corpus, front: Front, tmp_path: Path
) -> None:
    cache = {"SEEKABLE_REMOTE_DIR": str(tmp_path / "cache")}
    drawn = random.Random(seed)
    front.always(Fault(rate=20e6))
    for _ in range(3):
        noted = len(front.log())
        with Program("for record in opened().shuffle(seed=1): pass", corpus.arguments(), **cache) as program:
            front.wait(noted + 3 + drawn.randrange(6))
            program.send(signal.SIGKILL)
            program.end()
    front.calm()
    assert run(READ_ALL, corpus.arguments(), **cache).strip() == expected(corpus)


def test_damage_of_the_cache_is_fetched_again(corpus: Corpus, front: Front, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run(READ_ALL, corpus.arguments(), SEEKABLE_REMOTE_DIR=str(cache)).strip() == expected(corpus)
    drawn = random.Random(1)
    files = sorted(path for path in cache.rglob("*") if path.is_file() and path.stat().st_size > 100)
    for path in files:
        with path.open("r+b") as file:
            for _ in range(4):
                file.seek(drawn.randrange(path.stat().st_size - 16))
                file.write(drawn.randbytes(16))
    front.log(clear=True)
    assert run(READ_ALL, corpus.arguments(), SEEKABLE_REMOTE_DIR=str(cache)).strip() == expected(corpus)
    assert any(noted.method == "GET" for noted in front.log())
