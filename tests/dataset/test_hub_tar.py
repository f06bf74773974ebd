"""Tar files on the Hub: samples over HTTP, and indexes of other tools beside them, which save transfers."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest
from tests.hub import Repo

from seekable.formats.shar.index_files import write_index
from seekable.storage.addresses import UNIT_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hub import Hub, Warm

SAMPLES, LARGE = 8, 1_500_000
CODE = """
ds = sk.open('hf:me/web:train')
found = [len(ds), [ds[row]['txt'] for row in (0, 5, 15)], ds.key('1/3')['txt']]
tell(found)
"""
FOUND = [2 * SAMPLES, ["0-0", "0-5", "1-7"], "1-3"]


def shard(number: int, size: int) -> bytes:
    """Return an archive whose samples have a large and a small member."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as file:
        for sample in range(SAMPLES):
            members = (("bin", bytes([sample]) * (size + sample)), ("txt", f"{number}-{sample}".encode()))
            for field, content in members:
                info = tarfile.TarInfo(f"{number}/{sample}.{field}")
                info.size = len(content)
                file.addfile(info, io.BytesIO(content))
    return sink.getvalue()


def index_of(data: bytes, folder: Path) -> bytes:
    """Return the index that Energon has of an archive."""
    (folder / "x.tar").write_bytes(data)
    write_index(str(folder / "x.tar"), "energon")
    return (folder / "x.tar.idx").read_bytes()


def served(hub: Hub, size: int) -> dict[str, bytes]:
    files = {f"train-0000{number}.tar": shard(number, size) for number in range(2)}
    hub.repos["me/web"] = Repo()
    hub.repos["me/web"].commit(files)
    return files


def test_an_index_of_another_tool_saves_most_of_the_transfer(
    hub: Hub, warm: Warm, env: dict[str, str], tmp_path: Path
) -> None:
    files = served(hub, LARGE)
    hub.repos["me/web"].commit(
        {**files, **{f"{name}.idx": index_of(data, tmp_path) for name, data in files.items()}}
    )
    counted = f"{CODE}report = fetcher.fetcher().report(); tell([found, report.requests, report.waits])"
    found, requests, waits = warm.run(counted, env)
    assert found == FOUND
    whole = sum(map(len, files.values()))
    # Headers lie at the start of a sample and behind its large member: in at most three blocks a sample.
    assert hub.bytes_sent < 3 * 2 * SAMPLES * UNIT_BYTES < whole
    # Whoever waits for each answer waits as often as there are requests.
    assert waits < requests // 2


@pytest.mark.exhaustive
def test_an_index_that_is_none_changes_nothing(hub: Hub, warm: Warm, env: dict[str, str]) -> None:
    files = served(hub, LARGE)
    wrong = (bytes(8 * (SAMPLES + 1)), b"no index")
    hub.repos["me/web"].commit(
        {**files, **{f"{name}.idx": index for name, index in zip(files, wrong, strict=True)}}
    )
    assert warm.run(CODE, env) == FOUND
    assert hub.bytes_sent > 0.9 * sum(map(len, files.values()))
