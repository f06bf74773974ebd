"""How functions enter a fingerprint."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HERE = __name__


def plain(record: Any) -> Any:
    return record


class Thing:
    def __call__(self, record: Any) -> Any:
        return record

    def method(self, record: Any) -> Any:
        return record

    @classmethod
    def of_class(cls, record: Any) -> Any:
        return record

    @staticmethod
    def static(record: Any) -> Any:
        return record


@pytest.mark.parametrize(
    ("fn", "described"),
    [
        (plain, {"name": f"{HERE}.plain"}),
        (Thing.of_class, {"name": f"{HERE}.Thing.of_class"}),
        (Thing.static, {"name": f"{HERE}.Thing.static"}),
        (Thing, {"name": f"{HERE}.Thing"}),
        (str.upper, {"name": "builtins.str.upper"}),
        (int, {"name": "builtins.int"}),
        (abs, {"name": "builtins.abs"}),
        (math.sqrt, {"name": "math.sqrt"}),
        (functools.partial(plain), {"name": f"{HERE}.plain", "arguments": [[], {}]}),
        (
            functools.partial(pow, 2, mod=5),
            {"name": "builtins.pow", "arguments": [[2], {"mod": 5}]},
        ),
        (
            functools.partial(functools.partial(pow, 2), 3),
            {"name": "builtins.pow", "arguments": [[2, 3], {}]},
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else type(value).__name__,
)
def test_what_has_a_name_enters_by_it(fn: Callable[..., Any], described: dict[str, Any]) -> None:
    assert describe_function(fn, None) == described
    assert describe_function(fn, "2") == {**described, "version": "2"}


@pytest.mark.parametrize(
    "fn",
    [
        Thing(),
        Thing().method,
        "abc".count,
        [].append,
        functools.partial(plain, Thing()),
        functools.partial(Thing()),
        np.sqrt,
    ],
    ids=[
        "object",
        "method",
        "method of a str",
        "method of a list",
        "partial with an object",
        "partial of one",
        "ufunc",
    ],
)
def test_what_has_no_name_needs_a_version(fn: Callable[..., Any]) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="version="):
        describe_function(fn, None)
    assert describe_function(fn, 3)["version"] == 3


@pytest.mark.parametrize("fn", [None, 3, "abs"])
def test_what_cannot_be_called_is_refused(fn: Any) -> None:
    with pytest.raises(TypeError, match="a function is needed"):
        describe_function(fn, None)


def test_two_functions_of_one_name_are_told_apart_by_version_only() -> None:
    one, other = (lambda record: record), (lambda record: -record)
    assert describe_function(one, None) == describe_function(other, None)
    assert describe_function(one, 1) != describe_function(other, 2)


SCRIPT = """
import multiprocessing
import seekable as sk

class Items(list):
    pass

def clean(record):
    return record

def show():
    dataset = sk.from_sequence(Items([1])).map(clean)
    print(dataset, dataset.fingerprint, flush=True)

if __name__ != "__mp_main__":
    show()
if __name__ == "__main__":
    spawned = multiprocessing.get_context("spawn").Process(target=show)
    spawned.start()
    spawned.join()
"""


def test_a_script_is_the_same_run_imported_and_in_a_spawned_process(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    run, imported = (
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.splitlines()
        for command in ([sys.executable, "train.py"], [sys.executable, "-c", "import train"])
    )
    assert run == imported * 2
    assert "from_sequence(<train.Items of 1>).map(train.clean)" in run[0]
