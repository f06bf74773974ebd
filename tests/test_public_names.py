"""The public names: sorted, each there, each shown."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import seekable
from seekable import errors, kaldi


def test_names_are_sorted_and_unique() -> None:
    assert list(seekable.__all__) == sorted(set(seekable.__all__))


AT_THE_TOP = {
    "CorruptRecord",
    "DataNotFound",
    "IndexStale",
    "MissingDependency",
    "SeekableError",
    "StateMismatch",
}
"""The errors that a user's program catches most; the others are ``sk.errors.NAME``."""


def test_every_error_is_a_public_name_of_errors() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, seekable.SeekableError | Warning)
    }
    assert defined == set(errors.__all__)
    assert defined & set(seekable.__all__) == AT_THE_TOP
    assert all(getattr(seekable, name) is getattr(errors, name) for name in AT_THE_TOP)


def test_there_are_few_names_at_the_top() -> None:
    assert len(seekable.__all__) <= 46


def test_an_error_that_is_not_at_the_top_says_where_it_is() -> None:
    with pytest.raises(AttributeError, match=r"it is sk\.errors\.OutOfRange"):
        getattr(seekable, "OutOfRange")  # noqa: B009 - types know that it is not there


ALL_MODULES = """
import importlib, pkgutil, sys
for name in ("torch", "ray", "transformers", "lhotse", "dask", "megatron"):  # they take half a minute
    sys.modules[name] = None
import seekable
homes, imported = vars(seekable)["_HOMES"], 0
for module in pkgutil.walk_packages(seekable.__path__, "seekable.", onerror=print):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            assert module.name.startswith("seekable.integrations."), module.name
        else:
            imported += 1
for name in seekable.__all__:
    if name not in {"__version__", *vars(seekable)["_PACKAGES"]}:
        home = importlib.import_module(f"seekable.{homes.get(name, 'errors')}")
        assert getattr(seekable, name) is getattr(home, name), name
print(imported)
"""


def test_no_module_takes_the_place_of_a_public_name() -> None:
    """A module `seekable.view` would, once it is imported: Python sets it on the package."""
    done = subprocess.run([sys.executable, "-c", ALL_MODULES], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert int(done.stdout) > 500


@pytest.mark.parametrize("name", seekable.__all__)
def test_a_name_can_be_imported(name: str) -> None:
    assert getattr(seekable, name) is not None


def test_dir_shows_the_names() -> None:
    assert set(seekable.__all__) <= set(dir(seekable))


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "no_such_name"
    with pytest.raises(AttributeError, match=name):
        getattr(seekable, name)


def test_star_imports_exactly_the_names() -> None:
    code = (
        "from seekable import *; import seekable; "
        "names = {name for name in globals() if not name.startswith('__')} - {'seekable'}; "
        "print(sorted(names ^ {name for name in seekable.__all__ if not name.startswith('__')}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_names_of_kaldi_are_sorted_and_there() -> None:
    assert list(kaldi.__all__) == sorted(set(kaldi.__all__))
    assert dir(kaldi) == kaldi.__all__
    assert all(getattr(kaldi, name) is not None for name in kaldi.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(kaldi, "no_such_name")  # noqa: B009 - types know that it is not there


def test_type_checkers_see_the_formats_that_there_are() -> None:
    tree = ast.parse(Path(seekable.formats.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {
        each.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    assert sorted(homes) == sorted(seekable.formats.__all__)
    for name, home in homes.items():
        assert getattr(importlib.import_module(str(home)), name) is getattr(seekable.formats, name)


def test_a_loader_has_few_names() -> None:
    parameters = list(inspect.signature(seekable.Loader).parameters)
    assert len(parameters) <= 15
    assert len([name for name in dir(seekable.Loader) if not name.startswith("_")]) <= 26


VALUES = {"seekable.Simulation", "seekable.formats.Card"}
"""What users read, and do not make."""


def test_no_function_has_many_parameters() -> None:
    """Options that few calls need stand together in a value; a loader has one more than others."""
    megatron = importlib.import_module("seekable.integrations.megatron")
    many = {}
    for module in (seekable, seekable.formats, kaldi, seekable.testing, megatron):
        for name in module.__all__:
            whole, value = f"{module.__name__}.{name}", getattr(module, name)
            own = vars(value).items() if inspect.isclass(value) else ()
            inherited = [each for base in getattr(value, "__mro__", ())[1:] for each in vars(base).items()]
            methods = {f"{whole}.{method}": code for method, code in (*inherited, *own) if method[0] != "_"}
            for called, code in {whole: value, **methods}.items():
                if callable(code) and (count := _parameters(code)) > 12 and called not in VALUES:
                    many[called] = count
    # Besides chat=True, which is the one word for conversations.
    assert many == {"seekable.Loader": 15, "seekable.tokenize": 13}


def _parameters(code: object) -> int:
    try:
        names = inspect.signature(code).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):  # a class of C
        return 0
    return len([name for name in names if name != "self"])
