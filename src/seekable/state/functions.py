"""How a function enters a fingerprint: by name, never by its code.

A changed function under the same name is the same pipeline to a state; ``version=`` is there to say that it
is not.
"""

from __future__ import annotations

import functools
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["describe_function", "module_name"]

_NAMED = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    type,
)


def describe_function(fn: Callable[..., Any], version: str | int | None) -> dict[str, Any]:
    """Return what a fingerprint knows of a function: its qualified name and its version.

    ``__main__`` counts as the script's name without suffix, so that a script that is imported, or run from a
    notebook's export, is the same pipeline. A ``functools.partial`` is its function and its
    arguments.

    Raises:
        WrongType: ``fn`` cannot be called.
        InvalidArgument: it has no name of its own (an object with ``__call__``, a method of one, a partial
            with arguments that are not JSON) and no version was given.

    Example:
        >>> describe_function(str.upper, None)
        {'name': 'builtins.str.upper'}
        >>> describe_function(functools.partial(int, base=2), "2")
        {'name': 'builtins.int', 'arguments': [[], {'base': 2}], 'version': '2'}
    """
    if not callable(fn):
        message = f"a function is needed (got {fn!r} of type {type(fn).__name__})"
        raise WrongType(message)
    if version is not None and not isinstance(version, str | int):
        message = f"version must be a string or an integer (got {version!r} of type {type(version).__name__})"
        raise WrongType(message)
    described = _named(fn, version)
    if version is not None:
        described["version"] = version
    return described


def _named(fn: Callable[..., Any], version: str | int | None) -> dict[str, Any]:
    if isinstance(fn, functools.partial):
        described = _named(fn.func, version)
        arguments = [list(fn.args), dict(sorted(fn.keywords.items()))]
        if _is_json(arguments):
            return {**described, "arguments": arguments}
    elif isinstance(fn, types.MethodType) and isinstance(fn.__self__, type):
        return {"name": f"{module_name(fn.__self__)}.{fn.__self__.__qualname__}.{fn.__name__}"}
    elif isinstance(fn, types.BuiltinFunctionType) and not _is_plain(fn):
        pass
    elif isinstance(fn, types.MethodDescriptorType | types.WrapperDescriptorType):
        return {"name": f"{fn.__objclass__.__module__}.{fn.__qualname__}"}
    elif isinstance(fn, _NAMED):
        return {"name": f"{module_name(fn)}.{fn.__qualname__}"}
    if version is None:
        message = (
            f"{fn!r} has no name that says what it does, so a state could not tell it from another: give "
            f"version= (any string or number, to be changed with its behaviour), or use a plain function"
        )
        raise InvalidArgument(message)
    return {"name": f"{module_name(type(fn))}.{type(fn).__qualname__}"}


def _is_plain(fn: types.BuiltinFunctionType) -> bool:
    """Tell a function of a C module from a method bound to some object."""
    return fn.__self__ is None or isinstance(fn.__self__, types.ModuleType | type)


def _is_json(value: object) -> bool:
    try:
        return bool(msgspec.json.encode(value))
    except TypeError:
        return False


def module_name(fn: Any) -> str:
    """Return the module that something was defined in; the script's name without suffix for ``__main__``."""
    module = getattr(fn, "__module__", None) or "builtins"
    # In processes that multiprocessing spawned the script has the second name.
    if module not in ("__main__", "__mp_main__"):
        return str(module)
    script = getattr(sys.modules["__main__"], "__file__", None)
    return Path(script).stem if script else "__main__"
