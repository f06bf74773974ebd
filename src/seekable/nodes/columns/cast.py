"""Casting of columns to other types without loss: a value that does not fit raises an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np

from seekable._cached import cached
from seekable._optional import optional
from seekable.errors import BadValue, CorruptState, WrongType
from seekable.nodes.columns.column_node import ColumnNode
from seekable.nodes.columns.names import checked_name, lacking
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from seekable.errors import SeekableError
    from seekable.nodes.columns.choose import Missing
    from seekable.nodes.node import Node
    from seekable.nodes.saving import Loading, Saving
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["Cast", "checked_targets", "target_of"]

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
class CastTarget:
    """A type that values are cast to.

    Example:
        >>> target_of("int").cast("12"), target_of("float32").cast(1), target_of(bool).cast("false")
        (12, np.float32(1.0), False)
    """

    way: Literal["python", "numpy", "arrow", "function"]
    to: Any
    described: Any
    """The target in descriptions, JSON-safe."""

    def as_json(self, into: Saving) -> Any:
        """Return the target for a pipeline file."""
        if self.way == "function":
            version = self.described.get("version")
            return {**into.function(self.to), **({} if version is None else {"version": version})}
        if self.way == "arrow":
            return into.value(self.to, "cast()")
        return {self.way: self.to.__name__ if self.way == "python" else self.to.str}

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> CastTarget:
        """Return the target that `as_json` wrote.

        Raises:
            CorruptState: it wrote no such thing.
        """
        said = given.checked(value, dict[str, Any], where)
        if "function" in said:
            version = given.checked(said.get("version"), str | int | None, f"{where}.version")
            return target_of(given.function({"function": said["function"]}, where), version)
        try:
            if "arrow" in said:
                return target_of(given.value(said, where))
            if "numpy" in said:
                return target_of(np.dtype(given.checked(said["numpy"], str, where)))
            return target_of(given.checked(said.get("python"), str, where))
        except (TypeError, LookupError) as error:
            message = f"{where}: no type that values are cast to ({error})"
            raise CorruptState(message) from None

    @property
    def name(self) -> str:
        """The name of the target in messages."""
        return (
            str(self.to) if self.way in ("numpy", "arrow") else getattr(self.to, "__qualname__", str(self.to))
        )

    def cast(self, value: Any) -> Any:
        """Return a value of the target type; for NumPy a scalar, or an array for a list of numbers.

        Raises:
            ValueError: the value does not fit, or would lose a fraction or digits.
            TypeError: values of this type cannot be cast to the target.
            OverflowError: the value is too large for the target.
        """
        if self.way == "python":
            return _PYTHON[self.to](value)
        if self.way == "numpy":
            return _numpy(value, self.to)
        return _arrow(value, self.to) if self.way == "arrow" else self.to(value)


def target_of(to: object, version: str | int | None = None) -> CastTarget:
    """Return the target type for a type that a user names.

    Args:
        to: int, float, str or bool, or the name of one; a NumPy dtype or its name; a ``pyarrow.DataType``;
            or a function of a value.
        version: stands for the code of a function.

    Raises:
        WrongType: ``to`` is none of these.
    """
    if isinstance(to, str) and to in _NAMES:
        to = _NAMES[to]
    if isinstance(to, type) and to in _PYTHON:
        return CastTarget("python", to, to.__name__)
    if type(to).__module__.partition(".")[0] == "pyarrow" and hasattr(to, "to_pandas_dtype"):
        return CastTarget("arrow", to, f"arrow {to}")
    if isinstance(to, str | np.dtype) or (isinstance(to, type) and issubclass(to, np.generic)):
        try:
            dtype = np.dtype(to)
        except TypeError:
            message = (
                f"there is no type {to!r}: a column is cast to int, float, str or bool, to a dtype of NumPy "
                f"or a type of pyarrow"
            )
            raise WrongType(message) from None
        return CastTarget("numpy", dtype, f"numpy {dtype.str}")
    if callable(to):
        return CastTarget("function", to, describe_function(to, version))
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
    """Check that casting changed no more than the last digits of floats.

    Raises:
        OverflowError: a finite float became infinite.
        ValueError: a number changed.
    """
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


def checked_targets(types: object, version: str | int | None) -> tuple[tuple[str, CastTarget], ...]:
    """Return the pairs of a column and its target type.

    Args:
        types: the dict of columns and types that the user gives.
        version: stands for the code of functions among the types.

    Raises:
        WrongType: ``types`` is not a dict, a column is not a string, or a type is none that values are cast
            to.
    """
    if not isinstance(types, Mapping):
        message = f'cast() takes a dict of columns and types, {{"n": int}} (got {types!r})'
        raise WrongType(message)
    return tuple((checked_name("cast()", name), target_of(to, version)) for name, to in types.items())


@final
@dataclass(frozen=True, eq=False, repr=False)
class Cast(ColumnNode):
    """Each record with the values of some columns as another type; None stays None."""

    child: Node
    targets: tuple[tuple[str, CastTarget], ...]
    missing: Missing
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "cast"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the types by column, and the rule for records that lack one."""
        types = {name: target.described for name, target in sorted(self.targets, key=lambda pair: pair[0])}
        return {"columns": types, "missing": self.missing}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        types = ", ".join(f"{name!r}: {target.name}" for name, target in self.targets)
        missing = "" if self.missing == "error" else f", missing={self.missing!r}"
        return f"{children[0]}.cast({{{types}}}{missing})"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict with the values of the target types.

        Raises:
            KeyError: the record lacks a column, and ``missing`` is ``"error"``.
            ValueError, TypeError, OverflowError: a value does not fit; see `CastTarget.cast`.
        """
        made = dict(record)
        for name, target in self._taken:
            value = made.get(name) if self.missing == "none" else made[name]
            made[name] = None if value is None else target.cast(value)
        return made

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error that names the column and the value."""
        if self.missing == "error" and (lacks := lacking(record, [name for name, _ in self._taken])):
            return lacks
        for name, target in self._taken:
            value = record.get(name)
            if value is None or target.way == "function":
                continue
            try:
                target.cast(value)
            except (ValueError, TypeError, OverflowError) as why:
                return BadValue(
                    f"the column {name!r} has {_short(value)}, which cannot be cast to {target.name}: {why}. "
                    f"Mend it, or say by a function what it shall be: cast({{{name!r}: fn}})"
                )
        return None

    def beneath(self, column: str) -> str | None:
        """Return the same name; None if the values of the column are cast."""
        return None if any(column == name for name, _ in self.targets) else column

    def declared_over(self, below: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of the child, with the target types."""
        types = {name: target.to if target.way == "arrow" else None for name, target in self.targets}
        return {**below, **types}

    @cached
    def _taken(self) -> tuple[tuple[str, CastTarget], ...]:
        return tuple(pair for pair in self.targets if self.looked_at(pair[0]))


_MOST_CHARACTERS = 80


def _short(value: object) -> str:
    text = repr(value)
    shown = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
    return f"{shown} ({type(value).__name__})"
