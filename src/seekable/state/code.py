"""A digest of what a function does: its code, and the values that the code was made with.

It stands for the function where results of it are kept in a file for later runs. Line numbers, file names,
names of local variables and the function's docstring do not enter. Byte code is that of one minor version of
Python, so the digest is, too.

What the function finds by name when it runs does not enter either: globals, and functions that it calls.
"""

from __future__ import annotations

import enum
import functools
import os
import re
import sys
import types
from typing import TYPE_CHECKING, Any

import xxhash

from seekable.errors import InvalidArgument
from seekable.state.canonical import canonical_json, fingerprint_of
from seekable.state.functions import module_name

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["code_digest", "python_version"]

_SIMPLE = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


def python_version() -> str:
    """Return the minor version of Python, which digests of code depend on, such as ``"3.12"``."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def code_digest(fn: Callable[..., Any]) -> str:
    """Return the digest of a function's code, constants, defaults and closure.

    A ``functools.partial`` is its function and its arguments; what is written in C, and a class, is its name.

    Raises:
        InvalidArgument: the function depends on a value that cannot be compared with that of another run,
            such as an object in its closure.

    Example:
        >>> def above(limit):
        ...     return lambda number: number > limit
        >>> code_digest(above(3)) == code_digest(above(3)), code_digest(above(3)) == code_digest(above(4))
        (True, False)
    """
    try:
        return fingerprint_of(_function(fn, ()))
    except (_Incomparable, RecursionError) as error:
        what = "a value that holds itself" if isinstance(error, RecursionError) else str(error)
        while isinstance(fn, functools.partial):
            fn = fn.func
        message = (
            f"{_name(fn)} depends on {what}, which cannot be compared with that of another run: give "
            f"version= (any string or number, to be changed with what the function does)"
        )
        raise InvalidArgument(message) from None


class _Incomparable(Exception):
    """A value without a digest."""


def _function(fn: Any, around: tuple[Any, ...]) -> list[Any]:
    if any(fn is other for other in around):
        return ["recursion", around[::-1].index(fn)]
    around = (*around, fn)
    if isinstance(fn, functools.partial):
        return ["partial", _function(fn.func, around), _value(fn.args, around), _value(fn.keywords, around)]
    if isinstance(fn, types.MethodType):
        return ["method", _value(fn.__self__, around), _function(fn.__func__, around)]
    if isinstance(fn, types.FunctionType):
        return [
            "function",
            _code(fn.__code__, docstring=fn.__doc__),
            _value(fn.__defaults__, around),
            _value(fn.__kwdefaults__, around),
            [
                _cell(name, cell, around)
                for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
            ],
        ]
    if isinstance(fn, (*_NAMED, types.BuiltinFunctionType)):
        return _value(fn, around)
    raise _Incomparable(_shown(fn))


def _code(code: types.CodeType, *, docstring: str | None = None) -> list[Any]:
    constants = [
        None if docstring is not None and place == 0 and constant == docstring else _constant(constant)
        for place, constant in enumerate(code.co_consts)
    ]
    counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    names = [list(code.co_names), list(code.co_freevars), list(code.co_cellvars)]
    return ["code", code.co_code.hex(), code.co_exceptiontable.hex(), constants, counts, names]


def _constant(constant: Any) -> list[Any]:
    return _code(constant) if isinstance(constant, types.CodeType) else _value(constant, ())


def _cell(name: str, cell: types.CellType, around: tuple[Any, ...]) -> list[Any]:
    try:
        contents = cell.cell_contents
    except ValueError:
        return ["empty"]
    try:
        return _value(contents, around)
    except _Incomparable as error:
        raise _Incomparable(f"{name!r} in its closure ({error})") from None


def _value(value: Any, around: tuple[Any, ...]) -> list[Any]:
    if type(value) in _SIMPLE:
        return [type(value).__name__, repr(value)]
    for kinds, describe in _KINDS:
        if isinstance(value, kinds):
            return describe(value, around)
    return _buffer(value)


def _items(value: Any, around: tuple[Any, ...]) -> list[Any]:
    return [_name(type(value)), [_value(item, around) for item in value]]


def _unordered(value: Any, around: tuple[Any, ...]) -> list[Any]:
    items = value.items() if isinstance(value, dict) else value
    return [_name(type(value)), sorted([_value(item, around) for item in items], key=canonical_json)]


def _built_in(value: types.BuiltinFunctionType, around: tuple[Any, ...]) -> list[Any]:
    is_plain = value.__self__ is None or isinstance(value.__self__, types.ModuleType)
    return ["named", _name(value), *([] if is_plain else _value(value.__self__, around))]


_NAMED = (type, types.MethodDescriptorType, types.WrapperDescriptorType)
_FUNCTIONS = (functools.partial, types.MethodType, types.FunctionType)
_KINDS: tuple[tuple[Any, Callable[[Any, tuple[Any, ...]], list[Any]]], ...] = (
    (enum.Enum, lambda value, _: ["enum", _name(type(value)), value.name]),
    ((tuple, list), _items),
    ((set, frozenset, dict), _unordered),
    (slice, lambda value, around: ["slice", _items((value.start, value.stop, value.step), around)]),
    (re.Pattern, lambda value, around: ["pattern", _value(value.pattern, around), value.flags]),
    (os.PathLike, lambda value, around: ["path", _value(os.fspath(value), around)]),
    (types.ModuleType, lambda value, _: ["module", value.__name__]),
    (_NAMED, lambda value, _: ["named", _name(value)]),
    (types.BuiltinFunctionType, _built_in),
    (_FUNCTIONS, _function),
)


def _buffer(value: Any) -> list[Any]:
    """Describe an array by its bytes, if it is one."""
    try:
        view = memoryview(value)
    except TypeError:
        raise _Incomparable(_shown(value)) from None
    if "O" in view.format or view.shape is None:
        raise _Incomparable(_shown(value))
    return [
        "buffer",
        _name(type(value)),
        view.format,
        list(view.shape),
        xxhash.xxh3_128_hexdigest(view.tobytes()),
    ]


def _name(named: Any) -> str:
    qualified = getattr(named, "__qualname__", None) or type(named).__qualname__
    return f"{module_name(named)}.{qualified}"


def _shown(value: Any) -> str:
    return f"an object of type {_name(type(value))}"
