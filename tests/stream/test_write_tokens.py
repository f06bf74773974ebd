"""A stream as a token store: the documents are the items in the order of slots, however written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.dataset.test_write_tokens import contents, document, ids_of, store
from tests.killing import KILLED, Killer
from tests.thrift import wider
from tests.tokens.store_options import gathered

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seekable.writing.manifest import Written


def parts(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return none to two documents, the more the more tokens there are."""
    return [record] * (len(record["tokens"]) // 3)


def uneven(count: int, lanes: int) -> sk.Stream:
    """Return a stream in which items wait, and whose lanes end unevenly."""
    rows = sk.from_sequence(range(count), version="uneven").stream(lanes=lanes, epochs=1)
    return rows.map(document).flatten(parts).shuffle(buffer=5, seed=3)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 60])
def test_none_one_and_many_items(count: int, lanes: int, tmp_path: Path) -> None:
    stream = uneven(count, lanes)
    written = stream.write_tokens(
        tmp_path,
        eos=1,
        jobs=1,
        store=sk.formats.TokenStore(rows_per_file=10, align=["loss_mask"], idx=True, dtype="uint16"),
    )
    items = list(stream)
    assert ids_of(tmp_path) == [[*item["tokens"], 1] for item in items]
    facts = store(tmp_path)
    assert (facts["documents"], facts["source"]["rows"]) == (len(items), None)
    assert written.rows == len(items)
    for part in sorted(tmp_path.glob("*.sources")):
        runs = np.fromfile(part, [("file", "<u4"), ("count", "<u4"), ("row", "<u8")])
        assert set(runs["file"].tolist()) <= {2**32 - 1}
        assert runs["count"].sum() == part.with_suffix(".lengths").stat().st_size // 4


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_lanes_make_the_parts_of_a_dataset(jobs: int, tmp_path: Path) -> None:
    ds = sk.from_sequence(range(30)).map(document)
    options: dict[str, Any] = {"rows_per_file": 12, "align": {"loss_mask": "uint8"}, "dtype": "uint16"}
    ds.write_tokens(tmp_path / "wanted", jobs=1, **gathered(**options))
    ds.stream(lanes=3, epochs=1).write_tokens(tmp_path / "out", jobs=jobs, **gathered(**options))
    wanted, found = contents(tmp_path / "wanted"), contents(tmp_path / "out")
    same = [name for name in wanted if name.endswith((".bin", ".lengths", ".loss_mask"))]
    assert {name: wanted[name] for name in same} == {name: found[name] for name in same}


def test_an_item_that_is_no_document_is_named(tmp_path: Path) -> None:
    numbers = sk.from_sequence(range(30)).stream(lanes=3, epochs=1)
    stream = numbers.map(lambda number: {"tokens": [70_000 if number == 20 else 1]}, version=1)
    with pytest.raises(sk.errors.WrongType, match=r"with token .* as tokens: token 0 of it has the id 70000"):
        stream.write_tokens(tmp_path, jobs=1, store=sk.formats.TokenStore(dtype="uint16"))


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as killer:
        yield killer


def before(folder: Path) -> Written:
    return uneven(12, 2).write_tokens(folder, jobs=1, store=sk.formats.TokenStore(rows_per_file=4))


def overwrite(folder: Path, jobs: int = 1) -> Written:
    return uneven(30, 3).write_tokens(
        folder, eos=1, jobs=jobs, overwrite=True, store=sk.formats.TokenStore(rows_per_file=6)
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(("jobs", "step"), [(1, 1), (2, 6)])
def test_killed_at_any_file_operation_the_next_call_has_the_bytes(
    jobs: int, step: int, tmp_path: Path, killer: Killer
) -> None:
    overwrite(tmp_path / "wanted")
    step, codes = wider(step), list[int]()
    while not codes or codes[-1]:
        folder = tmp_path / str(len(codes))
        if len(codes) % 2:
            before(folder)
        codes.append(killer.kill_at(1 + len(codes) * step, folder, overwrite, folder, jobs))
        overwrite(folder)
        assert contents(folder) == contents(tmp_path / "wanted")
        assert not [path for path in folder.rglob("*") if path.name.endswith(".tmp")]
    assert codes.count(KILLED) * wider(1) >= 10
