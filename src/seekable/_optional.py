"""Packages that only some users need, imported when they are first used.

A module that works with such a package names it once, beside its other imports::

    if TYPE_CHECKING:
        import pyarrow as pa
    else:
        pa = optional("pyarrow", extra="parquet")

and writes ``pa.schema(...)``. Type checkers read the first branch. Where the package is not installed, the
first use raises ``MissingDependency`` with the command that installs it.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from seekable.errors import MissingDependency

__all__ = ["is_installed", "optional"]


class _OptionalModule(ModuleType):
    """A proxy of a module. The first attribute that is read imports the module; later reads cost no more."""

    def __init__(self, name: str, extra: str) -> None:
        super().__init__(name)
        self._extra = extra

    def __getattr__(self, attribute: str) -> Any:
        """Return an attribute of the module, and keep it.

        Raises:
            MissingDependency: the package is not installed.
            AttributeError: ``inspect`` asks whether the module is a wrapped function; nothing is imported.
        """
        if attribute == "__wrapped__":
            raise AttributeError(attribute)
        name = self.__name__
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            package = name.partition(".")[0]
            message = f"this needs {package}, which is not installed: pip install 'seekable[{self._extra}]'"
            raise MissingDependency(message) from error
        value = getattr(module, attribute)
        self.__dict__[attribute] = value
        return value


def optional(name: str, *, extra: str) -> Any:
    """Return a proxy of a module of an optional package; threads may share it.

    The attributes of the module are taken to stay as they are: each is looked up once.

    Args:
        name: the dotted name of the module.
        extra: the extra of seekable that installs its package.

    Example:
        >>> json = optional("json", extra="all")
        >>> json.loads("[1]")
        [1]
        >>> optional("no_such_package", extra="all").anything
        Traceback (most recent call last):
        ...
        seekable.errors.MissingDependency: this needs no_such_package, which is not installed: ...
    """
    return _OptionalModule(name, extra)


def is_installed(name: str) -> bool:
    """Return True if a package can be imported; it is imported.

    Example:
        >>> is_installed("json"), is_installed("no_such_package")
        (True, False)
    """
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True
