"""Values as another type, without loss: what does not fit is an error and never another value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seekable._optional import optional
from seekable.errors import WrongType
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["Target", "target_of"]

_NAMES: dict[str, type] = {
    "int": int,
    "float": float,
    "double": float,
    "str": str,
    "string": str,
    "bool": bool,
}
_TRUE, _FALSE = frozenset({"true", "1"}), frozenset({"false", "0"})


@dataclass(frozen=True, slots=True)
class Target:
    """A type that values are cast to.

    Example:
        >>> target_of("int").cast("12"), target_of("float32").cast(1), target_of(bool).cast("false")
        (12, np.float32(1.0), False)
    """

    way: Literal["python", "numpy", "arrow", "function"]
    to: Any
    described: Any
    """The target in descriptions, JSON-safe."""

    @property
    def name(self) -> str:
        """The name of the target in messages."""
        return (
            str(self.to) if self.way in ("numpy", "arrow") else getattr(self.to, "__qualname__", str(self.to))
        )

    def cast(self, value: Any) -> Any:
        """Return a value as the target has it.

        Raises:
            ValueError: it does not fit, or would lose something.
            TypeError: there is no such value of the target.
            OverflowError: it is too large.
        """
        if self.way == "python":
            return _PYTHON[self.to](value)
        if self.way == "numpy":
            return _numpy(value, self.to)
        return _arrow(value, self.to) if self.way == "arrow" else self.to(value)


def target_of(to: object, version: str | int | None = None) -> Target:
    """Return what a user named as a type.

    Args:
        to: int, float, str or bool, or the name of one; a NumPy dtype or its name; a ``pyarrow.DataType``;
            or a function of a value.
        version: stands for the code of a function.

    Raises:
        WrongType: it is none of these.
    """
    if isinstance(to, str) and to in _NAMES:
        to = _NAMES[to]
    if isinstance(to, type) and to in _PYTHON:
        return Target("python", to, to.__name__)
    if type(to).__module__.partition(".")[0] == "pyarrow" and hasattr(to, "to_pandas_dtype"):
        return Target("arrow", to, f"arrow {to}")
    if isinstance(to, str | np.dtype) or (isinstance(to, type) and issubclass(to, np.generic)):
        try:
            dtype = np.dtype(to)
        except TypeError:
            message = (
                f"there is no type {to!r}: a column is cast to int, float, str or bool, to a dtype of NumPy "
                f"or a type of pyarrow"
            )
            raise WrongType(message) from None
        return Target("numpy", dtype, f"numpy {dtype.str}")
    if callable(to):
        return Target("function", to, describe_function(to, version))
    message = f"a column is cast to a type or by a function (got {to!r} of type {type(to).__name__})"
    raise WrongType(message)


def _int(value: Any) -> int:
    if isinstance(value, float | np.floating) and not float(value).is_integer():
        raise ValueError("it has a fraction")
    if isinstance(value, bytes | bytearray):
        raise TypeError("bytes are no number")
    return int(value)


def _float(value: Any) -> float:
    made = float(value)
    if isinstance(value, int) and int(made) != value:
        raise ValueError("a float does not hold all of its digits")
    return made


def _str(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple | dict | set | np.ndarray):
        raise TypeError(f"a {type(value).__name__} has no one text")
    return str(value)


def _bool(value: Any) -> bool:
    if isinstance(value, str):
        lower = value.strip().lower()
        if lower in _TRUE | _FALSE:
            return lower in _TRUE
    elif isinstance(value, bool | np.bool_ | int | float | np.number) and value in (0, 1):
        return bool(value)
    raise ValueError("it is none of true, false, 1 and 0")


_PYTHON: dict[Any, Callable[[Any], Any]] = {int: _int, float: _float, str: _str, bool: _bool}


def _numpy(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        array = np.asarray(value)
        if array.dtype == object:
            raise TypeError("it is not of one type and shape")
        with np.errstate(over="ignore", invalid="ignore"):
            made = array.astype(dtype)
        _check(array, made)
        return made
    if dtype.kind in "iu":
        return dtype.type(_int(value))
    if dtype.kind == "b":
        return dtype.type(_bool(value))
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            single = dtype.type(value)
        _check(np.asarray(float(value)), np.asarray(single))
        return single
    return dtype.type(_str(value)) if dtype.kind == "U" else np.asarray(value).astype(dtype)[()]


def _check(was: Any, now: Any) -> None:
    """Refuse what changed more than a float's last digits."""
    if was.dtype.kind not in "biuf" or now.dtype.kind not in "biuf":
        return
    if now.dtype.kind == "f":
        finite = np.isfinite(was) if was.dtype.kind == "f" else np.ones(was.shape, dtype=np.bool_)
        if not np.isfinite(now[finite]).all():
            raise OverflowError("it is too large")
    elif not np.array_equal(was, now):
        raise ValueError("it does not fit")


def _arrow(value: Any, to: Any) -> Any:
    try:
        return pa.array([value], type=None).cast(to)[0].as_py()
    except pa.ArrowNotImplementedError as error:
        raise TypeError(str(error)) from error
