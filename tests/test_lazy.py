"""Modules that are imported when they are first used."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

from seekable._lazy import imported, lazy
from seekable.errors import MissingDependency

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a module that counts how often it is executed, and return its name."""
    name = "loaded_lazily"
    (tmp_path / f"{name}.py").write_text(
        "import builtins\nbuiltins.executed = getattr(builtins, 'executed', 0) + 1\nvalue = [1, 2]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr("builtins.executed", 0, raising=False)
    return name


def test_the_first_attribute_imports(module: str) -> None:
    proxy = lazy(module)
    assert module not in sys.modules
    assert proxy.value == [1, 2]
    assert proxy.value is sys.modules[module].value


def test_an_attribute_is_that_of_the_module_now(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = lazy(module)
    assert proxy.value == [1, 2]
    monkeypatch.setattr(sys.modules[module], "value", 3)
    assert proxy.value == 3


def test_threads_that_come_together_import_once(module: str) -> None:
    proxy = lazy(module)
    found: list[list[int]] = []
    together = threading.Barrier(8)

    def read() -> None:
        together.wait()
        found.append(proxy.value)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[1, 2]] * 8
    assert lazy("builtins").executed == 1


def test_what_is_missing_is_named(module: str) -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = lazy(module).no_such_thing
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        _ = lazy("no_such_package.module").value


@pytest.mark.parametrize(
    ("module", "part"),
    [
        ("seekable.no_such_room.module", "seekable.no_such_room"),
        ("seekable.formats.no_such_subject.module", "seekable.formats.no_such_subject"),
    ],
)
def test_a_part_of_seekable_that_is_not_installed_is_named(module: str, part: str) -> None:
    message = f"needs {part}, which is not installed"
    with pytest.raises(MissingDependency, match=message):
        _ = lazy(module).value
    with pytest.raises(MissingDependency, match=message):
        imported(f"{module}:value")
