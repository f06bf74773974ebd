"""A digest of what a function does: the same in every process, another where it does something else."""

from __future__ import annotations

import enum
import functools
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from seekable.errors import InvalidArgument
from seekable.state.functions import code_digest, python_version

if TYPE_CHECKING:
    from collections.abc import Callable


def made(source: str, **closure: Any) -> Callable[..., Any]:
    """Return the function `f` of a source text, made anew."""
    names = dict(closure)
    exec(compile(textwrap.dedent(source), "somewhere.py", "exec"), names)
    f: Callable[..., Any] = names["f"]
    return f


def closed_over(value: Any) -> Callable[[Any], bool]:
    return lambda record: record == value


SAME = {
    "made twice": ("def f(x): return x > 3", "def f(x): return x > 3"),
    "other lines": ("def f(x): return x > 3", "\n\n\n# A comment.\ndef f(x):\n\n    return x > 3"),
    "another docstring": ('def f(x):\n    "One."\n    return x', 'def f(x):\n    "Two."\n    return x'),
    "a local variable of another name": ("def f(x):\n y = x\n return y", "def f(x):\n z = x\n return z"),
    "sets in another order": (
        "def f(x): return x in {'a', 'b', 'c'}",
        "def f(x): return x in {'c', 'b', 'a'}",
    ),
}

OTHER = {
    "another constant": ("def f(x): return x > 3", "def f(x): return x > 4"),
    "a constant of another type": ("def f(x): return x == 1", "def f(x): return x == 1.0"),
    "True and 1": ("def f(x): return x == 1", "def f(x): return x == True"),
    "minus zero": ("def f(x): return x * 0.0", "def f(x): return x * -0.0"),
    "another operation": ("def f(x): return x > 3", "def f(x): return x < 3"),
    "another name": ("def f(x): return x.a", "def f(x): return x.b"),
    "another global": ("def f(x): return g(x)", "def f(x): return h(x)"),
    "another default": ("def f(x, y=1): return x", "def f(x, y=2): return x"),
    "another keyword default": ("def f(x, *, y=1): return x", "def f(x, *, y=2): return x"),
    "an inner constant": ("def f(x): return (lambda: 1)()", "def f(x): return (lambda: 2)()"),
    "another exception": (
        "def f(x):\n try: return g(x)\n except KeyError: pass",
        "def f(x):\n try: return g(x)\n except ValueError: pass",
    ),
    "a set of others": ("def f(x): return x in {'a', 'b'}", "def f(x): return x in {'a', 'c'}"),
    "a generator": ("def f(x): return x", "def f(x): yield x"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_what_does_the_same_has_one_digest(one: str, other: str) -> None:
    assert code_digest(made(one)) == code_digest(made(other))


@pytest.mark.parametrize(("one", "other"), OTHER.values(), ids=OTHER)
def test_what_does_something_else_has_another_digest(one: str, other: str) -> None:
    assert code_digest(made(one)) != code_digest(made(other))


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


VALUES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "int": (lambda: 10**30, lambda: 10**30 + 1),
    "float": (lambda: 0.1, lambda: 0.2),
    "str": (lambda: "\ud800", lambda: "x"),
    "bytes": (lambda: b"\xff", lambda: b"\xfe"),
    "list": (lambda: [1, [2, None]], lambda: [1, [2, False]]),
    "tuple or list": (lambda: (1, 2), lambda: [1, 2]),
    "dict": (lambda: {"a": 1, "b": 2}, lambda: {"a": 1, "b": 3}),
    "set": (lambda: {"a", "b", "c"}, lambda: {"a", "b"}),
    "array": (lambda: np.arange(4), lambda: np.arange(4) + 1),
    "array of another shape": (lambda: np.zeros((2, 3)), lambda: np.zeros((3, 2))),
    "array of another type": (lambda: np.zeros(2, np.int32), lambda: np.zeros(4, np.int16)),
    "scalar": (lambda: np.float32(1), lambda: np.float64(1)),
    "enum": (lambda: Colour.RED, lambda: Colour.BLUE),
    "pattern": (lambda: re.compile("a+"), lambda: re.compile("a+", re.IGNORECASE)),
    "path": (lambda: Path("a"), lambda: Path("b")),
    "class": (lambda: int, lambda: float),
    "function": (lambda: closed_over(1), lambda: closed_over(2)),
    "builtin": (lambda: len, lambda: sum),
    "bound": (lambda: {"a"}.__contains__, lambda: {"b"}.__contains__),
    "module": (lambda: re, lambda: sys),
    "partial": (lambda: functools.partial(int, base=2), lambda: functools.partial(int, base=3)),
    "slice": (lambda: slice(1), lambda: slice(2)),
}


@pytest.mark.parametrize(("value", "other"), VALUES.values(), ids=VALUES)
def test_values_in_closures_defaults_and_partials_count(
    value: Callable[[], Any], other: Callable[[], Any]
) -> None:
    def with_default(given: Any) -> Callable[..., Any]:
        def f(record: Any, wanted: Any = given) -> bool:
            return bool(record == wanted)

        return f

    for wrap in (closed_over, with_default, lambda given: functools.partial(closed_over, given)):
        assert code_digest(wrap(value())) == code_digest(wrap(value()))
        assert code_digest(wrap(value())) != code_digest(wrap(other()))


def test_a_dict_has_one_digest_in_any_order() -> None:
    assert code_digest(closed_over({"a": 1, "b": 2})) == code_digest(closed_over({"b": 2, "a": 1}))


def test_functions_may_call_themselves() -> None:
    def down(limit: int) -> Callable[[int], int]:
        def f(number: int) -> int:
            return f(number - 1) if number > limit else number

        return f

    assert code_digest(down(3)) == code_digest(down(3))
    assert code_digest(down(3)) != code_digest(down(4))


def test_what_is_not_python_is_its_name() -> None:
    assert code_digest(str.isdigit) == code_digest(str.isdigit)
    assert len({code_digest(fn) for fn in (str.isdigit, str.isalpha, bool, len)}) == 4


class Threshold:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def passes(self, record: int) -> bool:
        return record > self.limit

    def __call__(self, record: int) -> bool:
        return self.passes(record)


def held_by_itself() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (closed_over(Threshold(1)), r"'value' in its closure \(an object of type .*Threshold\)"),
        (Threshold(1), "an object of type .*Threshold"),
        (Threshold(1).passes, "an object of type .*Threshold"),
        (functools.partial(closed_over, object()), "an object of type builtins.object"),
        (closed_over(np.array([object()])), ".*an object of type numpy.ndarray"),
        (closed_over(held_by_itself()), "a value that holds itself"),
    ],
)
def test_what_cannot_be_compared_is_refused(fn: Callable[..., Any], what: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"depends on {what}.*give version="):
        code_digest(fn)


SCRIPT = """
import functools, re
from seekable.state.functions import code_digest
names = {"one", "two", "three", "four"}
pattern = re.compile("x")
def limit(at):
    wanted = frozenset(names)
    def f(record, more=("a", 1.5), *, table={"x": 1, "y": [2]}):
        return record in {"u", "v", "w", "x"} and record in wanted and at < 3 and pattern
    return f
print(code_digest(functools.partial(limit(2), more=len)))
"""


def test_all_processes_agree() -> None:
    digests = {
        subprocess.run(
            [sys.executable, *options, "-c", SCRIPT],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, options in [("1", []), ("2", []), ("3", ["-X", "importtime"])]
    }
    assert len(digests) == 1


def test_the_version_of_python_is_minor() -> None:
    assert python_version() == ".".join(map(str, sys.version_info[:2]))
