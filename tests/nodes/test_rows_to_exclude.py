"""What names the records to leave out: places, keys, sources, datasets, files; and what is wrong with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
from seekable.nodes import rows_to_exclude
from seekable.nodes.rows_to_exclude import excluded_rows

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.state.excluded_rows import ExcludedRows


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders with a file of one name in each, and one with another name."""
    folder = tmp_path_factory.mktemp("corpus")
    for name, rows in (
        ("web/0.jsonl", range(10)),
        ("web/1.jsonl", range(10, 16)),
        ("code/0.jsonl", range(50, 55)),
    ):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f'{{"id": "r{row}", "n": {row}}}\n' for row in rows))
    return folder


@pytest.fixture(scope="module")
def web(corpus: Path) -> sk.Dataset:
    return sk.open(corpus / "web", key="id")


@pytest.fixture(scope="module")
def both(corpus: Path, web: sk.Dataset) -> sk.Dataset:
    code = sk.open(corpus / "code")
    return sk.mix({"web": web.shuffle(seed=1), "code": code.shuffle(seed=2)}, weights=[2, 1], seed=3)


def named(rows: ExcludedRows) -> dict[str, list[int]]:
    return {file.name: found.tolist() for file, found in rows}


def test_every_way_to_name_rows_is_the_same(web: sk.Dataset, corpus: Path, tmp_path: Path) -> None:
    expected = excluded_rows(web._node, [("0.jsonl", 3), ("0.jsonl", 7), ("1.jsonl", 2)])
    assert named(expected) == {"0.jsonl": [3, 7], "1.jsonl": [2]}
    listed = tmp_path / "gone.jsonl"
    rows = [("1.jsonl", 2), (str(corpus / "web/0.jsonl"), 7), ("0.jsonl", 3), ("0.jsonl", 3)]
    listed.write_text("\n".join(json.dumps({"path": path, "row": row, "why": "x"}) for path, row in rows))
    shuffled = web.shuffle(seed=9)
    ways: list[Any] = [
        [web.locate(3), web.locate(7), web.locate(12), web.locate(3)],
        (web.locate(row) for row in (12, 3, 7)),
        [web.locate(3), ("1.jsonl", 2), (corpus / "web/0.jsonl", np.int64(7))],
        ["r3", "r7", "r12", "r7"],
        web.select([3, 12, 7]),
        web.filter(where=[("n", "in", [3, 7, 12])]).shuffle(seed=2),
        [shuffled.locate(position) for position in range(16) if shuffled[position]["n"] in {3, 7, 12}],
        listed,
        str(listed),
        expected,
        [*web.batch(4).select([0]).locate(0)[3:], web.locate(7), web.locate(12)],
    ]
    for what in ways:
        assert excluded_rows(web._node, what) == expected
    assert named(excluded_rows(web._node, web.locate(3))) == {"0.jsonl": [3]}
    assert named(excluded_rows(web._node, sk.zip([web[:2], web[10:12]]))) == {
        "0.jsonl": [0, 1],
        "1.jsonl": [0, 1],
    }
    assert not len(excluded_rows(web._node, []))


def test_rows_of_named_sources_count_before_the_shuffle(both: sk.Dataset, web: sk.Dataset) -> None:
    found = excluded_rows(both._node, {"code": [0, -1], "web": np.array([11])})
    assert sorted((file.name, rows.tolist()) for file, rows in found) == [
        ("0.jsonl", [0, 4]),
        ("1.jsonl", [1]),
    ]
    kept = sk.mix({"a": web.filter(where=[("n", ">", 4)]).shuffle(seed=1), "b": web[:2]}, seed=1)
    assert named(excluded_rows(kept._node, {"a": [0]})) == {"0.jsonl": [5]}


def test_files_of_one_name_in_two_folders_are_told_apart(both: sk.Dataset, corpus: Path) -> None:
    clean = both.without([(corpus / "code/0.jsonl", row) for row in range(4)])
    seen = {record["n"] for epoch in range(30) for record in clean.epoch(epoch)}
    assert {number for number in seen if number >= 50} == {54}
    assert {number for number in seen if number < 50} == set(range(16))


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        (
            [("2.jsonl", 0)],
            sk.errors.DataNotFound,
            r"'2.jsonl' is no file of the dataset.*'0.jsonl', '1.jsonl'",
        ),
        ([("0.jsonl", 10)], sk.errors.OutOfRange, "'0.jsonl' has rows 0 to 9, and row 10 is to be left out"),
        ([("0.jsonl", -1)], sk.errors.OutOfRange, "'0.jsonl' has rows 0 to 9, and row -1"),
        ([("0.jsonl", 1 << 70)], sk.errors.OutOfRange, "below 2\\*\\*62"),
        ([("0.jsonl", 1.0)], sk.errors.WrongType, "the row of '0.jsonl' is an integer .*float"),
        ([("0.jsonl", True)], sk.errors.WrongType, "the row of '0.jsonl' is an integer .*bool"),
        (["r99", "r1"], sk.errors.KeyNotFound, "no record has the key 'r99' to leave out"),
        ([3.5], sk.errors.WrongType, r"named by Locations.*\(got 3.5 of type float\)"),
        (7.5, sk.errors.WrongType, "named by Locations.*got 7.5 of type float"),
        (None, sk.errors.WrongType, "named by Locations.*NoneType"),
        (b"gone.jsonl", sk.errors.WrongType, "named by Locations.*bytes"),
        ({"web": [1]}, sk.errors.InvalidArgument, r"names of a mixture's sources, \[\] \(got 'web'"),
        ("no/such/file.jsonl", sk.errors.DataNotFound, "there is no file 'no/such/file.jsonl' of rows"),
    ],
)
def test_what_is_wrong_is_named(web: sk.Dataset, what: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        web.without(what)


def test_what_is_wrong_in_mixtures_is_named(both: sk.Dataset, web: sk.Dataset) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"'0.jsonl' is the name of 2 files"):
        both.without([("0.jsonl", 1)])
    with pytest.raises(sk.errors.OutOfRange):
        both.without({"code": [5]})
    with pytest.raises(sk.errors.InvalidArgument, match=r"\(got 'wiki', which names none"):
        both.without({"wiki": [5]})
    apart = sk.mix({"a": sk.concat([web.shuffle(seed=1), web]), "b": web}, seed=1)
    with pytest.raises(sk.errors.InvalidArgument, match="the rows of 'a' have no numbers"):
        apart.without({"a": [0]})
    with pytest.raises(sk.errors.InvalidArgument, match="was opened with any"):
        sk.from_sequence("abc").without([1])
    with pytest.raises(sk.errors.EndlessDataset):
        web.without(sk.mix([web, web], weights=[1, 1], seed=1, stop="never"))


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("{no", sk.errors.UnsupportedFormat, "line 3 of .*gone.jsonl' is no JSON object with"),
        ('{"path": "0.jsonl"}', sk.errors.UnsupportedFormat, "line 3 .*`row`"),
        ('{"path": "0.jsonl", "row": 1.5}', sk.errors.UnsupportedFormat, "line 3 "),
        ('{"path": "0.jsonl", "row": 18446744073709551615}', sk.errors.SeekableError, "18446744073709551615"),
        ('{"path": "9.jsonl", "row": 1}', sk.errors.DataNotFound, "'9.jsonl' is no file"),
        ('{"path": "1.jsonl", "row": 6}', sk.errors.OutOfRange, "'1.jsonl' has rows 0 to 5, and row 6"),
    ],
)
def test_what_is_wrong_in_a_file_of_rows_is_named(
    web: sk.Dataset, line: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    listed = tmp_path / "gone.jsonl"
    listed.write_text(f'{{"path": "0.jsonl", "row": 1}}\n{{"path": "1.jsonl", "row": 5}}\n{line}\n')
    with pytest.raises(error, match=message):
        web.without(listed)


def test_a_file_is_read_in_parts(web: sk.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "gone.jsonl"
    rows = [("0.jsonl", 9), ("1.jsonl", 5), ("0.jsonl", 0), ("1.jsonl", 0)]
    text = "\n".join(json.dumps({"path": path, "row": row}) for path, row in rows)
    whole = None
    for end in ("", "\n", "\n\n"):
        listed.write_text(text + end)
        for size in (1, 30, 31, 62, 1000):
            monkeypatch.setattr(rows_to_exclude, "_READ", size)
            found = excluded_rows(web._node, listed)
            assert found == (whole or found)
            whole = found
    assert whole is not None
    assert named(whole) == {"0.jsonl": [0, 9], "1.jsonl": [0, 5]}
