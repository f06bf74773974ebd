"""Modules that are imported when they are first used, and are named at the top of a module all the same.

Most runs never need some modules: to open a JSONL file loads no code for Parquet, streams or the Hub. A
module that may need one names it once, beside its other imports::

    if TYPE_CHECKING:
        from seekable.stream import source
    else:
        source = lazy("seekable.stream.from_dataset")

and writes ``source.FromDataset(...)``. Type checkers read the first branch. For the rules of imports between
modules (``tests/test_architecture.py``) a call of ``lazy`` or ``imported`` with a literal is an import.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from seekable.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

__all__ = ["imported", "imported_module", "lazy", "missing_part_named", "public_names"]


class _LazyModule:
    """A module proxy. The first attribute that is read imports the module."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        """Return an attribute of the imported module, as it is at the time of the call."""
        if self._module is None:
            self._module = imported_module(self._name)
        return getattr(self._module, attribute)


def lazy(name: str) -> Any:
    """Return a proxy of a module, which imports the module on the first read of an attribute.

    Threads may share a proxy: the lock of Python's import system lets one of them import, and the others
    wait. Attributes are looked up in the module on each read (about 0.1 us), never copied. Assigning to an
    attribute of the proxy does not change the module.

    Args:
        name: the absolute, dotted name of the module.

    Raises:
        ImportError: on the first read of an attribute, if there is no such module; of a module of seekable it
            is a MissingDependency.

    Example:
        >>> colorsys = lazy("colorsys")
        >>> colorsys.rgb_to_hsv(0, 0, 1)
        (0.6666666666666666, 1.0, 1)
    """
    return _LazyModule(name)


def imported_module(name: str) -> ModuleType:
    """Import a module, and return it.

    Raises:
        MissingDependency: it needs a part of seekable that is not installed; the message names the part.
        ImportError: it cannot be imported for another reason.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise _named_part(error) from error


@contextmanager
def missing_part_named() -> Iterator[None]:
    """Turn the error for a module of seekable that is not there into one that names its part.

    Raises:
        MissingDependency: it needs a part of seekable that is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise _named_part(error) from error


def _named_part(error: ModuleNotFoundError) -> ImportError:
    """Return the error that names the part of seekable that is not there; the same one for other modules."""
    package, *below = (error.name or "").split(".")
    if package != "seekable":
        return error
    part = ".".join([package, *below[: 2 if below[:1] == ["formats"] else 1]])
    return MissingDependency(
        f"this needs {part}, which is not installed, though it is a part of seekable: "
        f"pip install --force-reinstall seekable"
    )


def imported(home: str) -> Any:
    """Return what ``module:name`` names; the module is imported.

    Raises:
        MissingDependency: it needs a part of seekable that is not installed; the message names the part.

    Example:
        >>> imported("colorsys:rgb_to_hsv")(0, 0, 1)
        (0.6666666666666666, 1.0, 1)
    """
    module, _, name = home.partition(":")
    return getattr(imported_module(module), name)


def public_names(package: str, homes: Mapping[str, str], *, below: str) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package, which loads each public name from the module that defines it.

    Args:
        package: the name of the package.
        homes: by public name, the module that defines it.
        below: the package that has these modules.
    """

    def load(name: str) -> object:
        if name not in homes:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        value: object = imported(f"{below}.{homes[name]}:{name}")
        setattr(sys.modules[package], name, value)
        return value

    return load
