"""What two descriptions of pipelines differ in, in words."""

from __future__ import annotations

from typing import Any

import pytest

from seekable.state.descriptions import difference

SOURCE = {"kind": "sequence", "length": 3}


def files(*entries: tuple[str, int]) -> dict[str, Any]:
    return {"kind": "files", "files": [{"name": name, "size": size} for name, size in entries]}


def shuffle(seed: int, below: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"kind": "shuffle", "seed": seed, "of": [below or SOURCE]}


def both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "concat", "of": [one, other]}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (shuffle(1), shuffle(1), ""),
        (shuffle(1), shuffle(2), "shuffle: seed was 1, is 2"),
        (shuffle(1), shuffle(1, {**SOURCE, "length": 4}), "shuffle > sequence: length was 3, is 4"),
        (shuffle(1, {**SOURCE, "version": 1}), shuffle(1), "shuffle > sequence: version was 1, is not given"),
        (
            shuffle(1),
            shuffle(1, {**SOURCE, "version": 1}),
            "shuffle > sequence: version was not given, is 1",
        ),
        (shuffle(1), SOURCE, "was shuffle, is sequence"),
        (shuffle(1), {"kind": "map", "of": [SOURCE]}, "was shuffle, is map"),
        (both(SOURCE, shuffle(1)), both(SOURCE, shuffle(2)), "concat[1] > shuffle: seed was 1, is 2"),
        (both(SOURCE, SOURCE), {"kind": "concat", "of": [SOURCE]}, "concat: had 2 sources, has 1"),
        (files(("a", 1)), files(("a", 2)), "files: file 'a': size was 1, is 2"),
        (files(("a", 1), ("b", 1)), files(("a", 1)), "files: file 'b' is gone"),
        (files(("a", 1)), files(("a", 1), ("b", 1)), "files: file 'b' is new"),
        (files(("a", 1), ("b", 2)), files(("b", 2), ("a", 1)), "files: the same files in another order"),
    ],
)
def test_one_difference_is_one_line(old: dict[str, Any], new: dict[str, Any], said: str) -> None:
    got = difference(old, new)
    assert got == said or (said.startswith("was") and got.endswith(said) and "\n" not in got)


def test_several_differences_are_several_lines() -> None:
    lines = difference(shuffle(1), shuffle(2, {**SOURCE, "length": 4})).splitlines()
    assert lines == ["shuffle: seed was 1, is 2", "shuffle > sequence: length was 3, is 4"]


def test_many_differences_are_counted() -> None:
    old = files(*((f"{i:02}", 1) for i in range(30)))
    new = files(*((f"{i:02}", 2) for i in range(30)))
    lines = difference(old, new).splitlines()
    assert len(lines) == 9
    assert lines[-1] == "and 22 more"


def test_files_are_named_in_one_order_everywhere() -> None:
    """Sets of names have another order in each process."""
    old = files(*((f"{i:02}", 1) for i in range(5)))
    new = files(*((f"{i:02}", 2) for i in range(5)))
    assert [line.split("'")[1] for line in difference(old, new).splitlines()] == [f"{i:02}" for i in range(5)]
