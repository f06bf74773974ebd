"""The examples in docstrings show what is true, module by module.

The standard library's doctest runs them, each with the names of its module. Modules are imported by name: a
second copy of one would have other classes.
"""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.frameworks import framework_of

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

SOURCES = Path(__file__).resolve().parent.parent / "src"


def case_of(path: Path) -> ParameterSet:
    """Return a module as a test case, marked with the framework that it imports."""
    framework = framework_of(path)
    name = ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    return pytest.param(name, marks=[pytest.mark.frameworks(name=framework)] if framework else [])


WITH_EXAMPLES = [
    case_of(path) for path in sorted(SOURCES.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")
]


def failures_in(name: str) -> str:
    """Run all examples of a module, and return what doctest prints of those that fail.

    Raises:
        AssertionError: the module has no examples: a class or function that has some is not reached.
    """
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    examples = [case for case in doctest.DocTestFinder().find(importlib.import_module(name)) if case.examples]
    assert examples, f"doctest finds no example in {name}"
    for case in examples:
        runner.run(case, out=printed.append)
    return "".join(printed)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    failures = failures_in(name)
    assert not failures, failures


def test_a_wrong_example_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'def double(n):\n    """Return twice n.\n\n    >>> double(2)\n    {}\n    """\n    return 2 * n\n'
    monkeypatch.syspath_prepend(tmp_path)
    for name, result in (("right_example", "4"), ("wrong_example", "5")):
        (tmp_path / f"{name}.py").write_text(text.format(result), encoding="utf-8")
    assert failures_in("right_example") == ""
    assert "Expected:\n    5\nGot:\n    4\n" in failures_in("wrong_example")
