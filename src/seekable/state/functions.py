"""Functions of users, as descriptions and digests compare them.

A fingerprint has a function by name and ``version=``, never by its code: a changed function under the same
name is the same pipeline to a state.

Where results of a function are kept in a file for later runs, a *code digest* stands for it: of its code, and
of the values that the code was made with. Line numbers, file names, names of local variables and the
docstring do not enter, and neither does what the function finds by name when it runs: globals, and functions
that it calls. Byte code is that of one minor version of Python, and so is the digest.
"""

from __future__ import annotations

import enum
import functools
import os
import re
import sys
import types
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import msgspec
import xxhash

from seekable._arguments import checked_version
from seekable._lazy import lazy
from seekable._typing import Value
from seekable.errors import InvalidArgument, WrongType
from seekable.state.canonical import canonical_json, fingerprint_of

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Iterable
else:
    pathlib = lazy("pathlib")


_NAMED = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    type,
)


class NamedFunction(Value, frozen=True):
    """A function that is described by a name other than its own.

    Example:
        >>> describe_function(NamedFunction(str.upper, "prepare.upper"), None)
        {'name': 'prepare.upper'}
    """

    fn: Callable[..., Any]
    name: str

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return the result of the function that is wrapped."""
        return self.fn(*arguments, **named)


class DescribedFunction(ABC):
    """A function that says itself what decides its results, such as an object with options."""

    __slots__ = ()

    @property
    @abstractmethod
    def description(self) -> dict[str, Any]:
        """The description, JSON-safe: under "name" its name, and all that decides its results."""

    @property
    @abstractmethod
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The functions of the user that it calls, whose code may change under the same name."""

    @abstractmethod
    def __call__(self, record: Any) -> Any:
        """Return the result for a record."""


def describe_function(fn: Callable[..., Any], version: str | int | None) -> dict[str, Any]:
    """Return the description of a function that enters fingerprints: its qualified name and its version.

    ``__main__`` counts as the script's name without suffix, so that a script that is imported, or run from a
    notebook's export, is the same pipeline. A ``functools.partial`` is its function and its
    arguments, and a `DescribedFunction` says itself what it is.

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
    checked_version(version)
    described = dict(fn.description) if isinstance(fn, DescribedFunction) else _named(fn, version)
    if version is not None:
        described["version"] = version
    return described


def _named(fn: Callable[..., Any], version: str | int | None) -> dict[str, Any]:
    if isinstance(fn, NamedFunction):
        return {**_named(fn.fn, version), "name": fn.name}
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
    """Return True for a function of a C module or class, False for a method bound to some object."""
    return fn.__self__ is None or isinstance(fn.__self__, types.ModuleType | type)


def _is_json(value: object) -> bool:
    try:
        return bool(msgspec.json.encode(value))
    except TypeError:
        return False


def module_name(fn: Any) -> str:
    """Return the module in which a function or a class was defined; for ``__main__`` the script's stem."""
    module = getattr(fn, "__module__", None) or "builtins"
    # In processes that multiprocessing spawned the script has the second name.
    if module not in ("__main__", "__mp_main__"):
        return str(module)
    script = getattr(sys.modules["__main__"], "__file__", None)
    return pathlib.Path(script).stem if script else "__main__"


_SIMPLE = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


def python_version() -> str:
    """Return the minor version of Python, which digests of code depend on, such as ``"3.12"``."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def code_digest(fn: Callable[..., Any]) -> str:
    """Return the digest of a function's code, constants, defaults and closure.

    A ``functools.partial`` counts as its function and its arguments; a class, and a function that is written
    in C, as its name.

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


def code_digests(functions: Iterable[Callable[..., Any]]) -> dict[str, str | None]:
    """Return the digest of the code of each function, by its qualified name.

    Several functions of one name, as lambdas may be, have one digest. It is None where the code depends on a
    value that cannot be compared.

    Example:
        >>> list(code_digests([str.upper]))
        ['builtins.str.upper']
    """
    found: dict[str, list[str | None]] = {}
    for fn in functions:
        name = _name_of(fn)
        found.setdefault(name, []).append(_digest_or_none(fn))
    return {
        name: None if None in digests else fingerprint_of(digests) if len(digests) > 1 else digests[0]
        for name, digests in found.items()
    }


def _name_of(fn: Callable[..., Any]) -> str:
    if isinstance(fn, NamedFunction):
        return fn.name
    return f"{module_name(fn)}.{getattr(fn, '__qualname__', type(fn).__qualname__)}"


def _digest_or_none(fn: Callable[..., Any]) -> str | None:
    try:
        return code_digest(fn)
    except InvalidArgument:
        return None


class _Incomparable(Exception):
    """A value without a digest."""


def _function(fn: Any, around: tuple[Any, ...]) -> list[Any]:
    if any(fn is other for other in around):
        return ["recursion", around[::-1].index(fn)]
    around = (*around, fn)
    if isinstance(fn, NamedFunction):
        return _function(fn.fn, around)
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
    if isinstance(fn, (*_NAMED_TYPES, types.BuiltinFunctionType, DescribedFunction)):
        return _value(fn, around)
    raise _Incomparable(_shown(fn))


def _described(fn: DescribedFunction, around: tuple[Any, ...]) -> list[Any]:
    called = [_function(each, around) for each in fn.functions]
    return ["described", canonical_json(fn.description).decode("latin-1"), called]


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


_NAMED_TYPES = (type, types.MethodDescriptorType, types.WrapperDescriptorType)

_FUNCTIONS = (functools.partial, types.MethodType, types.FunctionType)

_KINDS: tuple[tuple[Any, Callable[[Any, tuple[Any, ...]], list[Any]]], ...] = (
    (enum.Enum, lambda value, _: ["enum", _name(type(value)), value.name]),
    ((tuple, list), _items),
    ((set, frozenset, dict), _unordered),
    (slice, lambda value, around: ["slice", _items((value.start, value.stop, value.step), around)]),
    (re.Pattern, lambda value, around: ["pattern", _value(value.pattern, around), value.flags]),
    (os.PathLike, lambda value, around: ["path", _value(os.fspath(value), around)]),
    (types.ModuleType, lambda value, _: ["module", value.__name__]),
    (DescribedFunction, _described),
    (_NAMED_TYPES, lambda value, _: ["named", _name(value)]),
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
