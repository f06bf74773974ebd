"""Columns of other types, without loss: those that ``cast`` names, and those that several sources share.

A value that does not fit raises an error. Where one source lacks a column of another, it is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np

from seekable._cached import cached
from seekable._optional import optional
from seekable.errors import BadValue, CorruptState, WrongType
from seekable.nodes.columns.column_node import ColumnarNode, ColumnNode
from seekable.nodes.columns.names import checked_name, lacking
from seekable.nodes.columns.record_batches import batch_of_records, is_columnar, table_of, with_rows
from seekable.nodes.columns.unified_type import fitted_array, fitting, is_unchanged
from seekable.nodes.conditions import Bounds
from seekable.nodes.display import describe_place, listed
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from seekable._typing import Int64s
    from seekable.errors import SeekableError
    from seekable.nodes.columns.choose import Missing
    from seekable.nodes.conditions import Where
    from seekable.nodes.node import Node
    from seekable.nodes.saving import Loading, Saving
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["Cast", "UnifyColumns", "checked_targets", "target_of"]


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


_MISFITS = (ValueError, TypeError, OverflowError)


@final
@dataclass(frozen=True, eq=False, repr=False)
class UnifyColumns(ColumnarNode):
    """Each record with the given columns, in their order and types; a column that it lacks is None."""

    child: Node
    columns: tuple[tuple[str, Any], ...]
    """The columns of records, each with its Arrow type; None for a type that is not known."""
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "unify_columns"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the columns with their types."""
        return {"columns": [[name, None if kind is None else str(kind)] for name, kind in self.columns]}

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the child, and the names of the columns."""
        return f"unify_columns({children[0]}, [{listed([repr(name) for name, _ in self.columns])}])"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict of the columns.

        Raises:
            KeyError: the record has a column more than these.
            ValueError, TypeError, OverflowError: a value does not fit the type of its column.
        """
        if self.only is None and not self._types.keys() >= record.keys():
            raise KeyError
        made = {}
        for name, fit in self._taken:
            value = record.get(name)
            made[name] = value if value is None or fit is None else fit(value)
        return made

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error that names the column which is not known, or the value that does not fit."""
        if self.only is None and (more := [name for name in record if name not in self._types]):
            return BadValue(
                f'columns="union" found no column {listed([repr(name) for name in more])} in the records '
                f"that it looked at, and this record has it: name the columns of this source first, with "
                f'select_columns([...], missing="none")'
            )
        for name, fit in self._taken:
            value = record.get(name)
            if value is not None and fit is not None and (why := _misfit(fit, value)) is not None:
                return self._bad_value(name, value, why)
        return None

    def _bad_value(self, name: str, value: Any, why: object) -> BadValue:
        text = repr(value)
        short = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
        return BadValue(
            f"the column {name!r} is {self._types[name]} in all sources together, and a value does not fit: "
            f"{short}: {why}. Cast the column in its source first, with cast({{{name!r}: ...}})"
        )

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return those of the columns that the child may have."""
        return columns.intersection(self._types if self._below is None else self._below)

    def beneath(self, column: str) -> str | None:
        """Return the same name; None if the child lacks the column, or has other values there."""
        if self._below is None:
            return column
        there = self._below.get(column) is not None and self._types.get(column) is not None
        return column if there and is_unchanged(self._below[column], self._types[column]) else None

    def may_match(self, where: Where) -> Int64s:
        """Return the runs of the child; none if the columns that it lacks rule out all of its rows."""
        lacking = [name for name in self._types if self._below is not None and name not in self._below]
        nulls = Bounds(None, None, nulls=True, values=False)
        if not where.may_pass(dict.fromkeys(lacking, nulls)):
            return np.empty((0, 2), dtype=np.int64)
        return super().may_match(where)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns and their types."""
        return self._types

    def is_columnar(self, positions: Int64s) -> bool:
        """Return True if the child reads columns of Arrow."""
        return is_columnar(self.child.plan(positions))

    def without_child(self, positions: Int64s) -> list[Any] | None:
        """Return None: records are made of the child's."""
        return None

    def table(self, positions: Int64s) -> pa.RecordBatch:
        """Return some records as one record batch of the columns' types.

        Raises:
            BadValue: a value does not fit its column.
            InvalidArgument: a record is not a dict.
        """
        plan = self.child.plan(positions)
        if not is_columnar(plan):
            types = {name: self._types[name] for name, _ in self._taken}
            return batch_of_records(self.plan(positions).read(), types)
        batch = table_of(plan)
        there = {name: batch.column(name) for name in batch.schema.names}
        arrays = []
        for name, _ in self._taken:
            kind, array = self._types[name], there.get(name)
            if array is None:
                arrays.append(pa.nulls(len(batch), pa.null() if kind is None else kind))
            else:
                arrays.append(array if kind is None else self._fitted(name, array, kind, positions))
        return with_rows([name for name, _ in self._taken], arrays, len(batch))

    def _fitted(self, name: str, array: pa.Array, kind: pa.DataType, positions: Int64s) -> pa.Array:
        """Return a column in the common type.

        Raises:
            BadValue: a value does not fit; the error names its file and row.
        """
        try:
            return fitted_array(array, kind)
        except (*_MISFITS, pa.ArrowException):
            for row, position in enumerate(positions.tolist()):
                try:
                    fitted_array(array.slice(row, 1), kind)
                except (*_MISFITS, pa.ArrowException) as why:
                    bad = self._bad_value(name, array[row].as_py(), why)
                    raise BadValue(f"{describe_place(self.child, position)}: {self.kind}: {bad}") from why
            raise

    @cached
    def _types(self) -> dict[str, Any]:
        return dict(self.columns)

    @cached
    def _below(self) -> Mapping[str, Any] | None:
        """The columns that the child declares; None if only records show them."""
        return self.child.declared()

    @cached
    def _taken(self) -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
        """The columns of records, each with the function that makes its values fit, if they may not."""
        return tuple((name, self._fit(name, kind)) for name, kind in self.columns if self.looked_at(name))

    def _fit(self, name: str, kind: Any) -> Callable[[Any], Any] | None:
        source = None if self._below is None else self._below.get(name)
        if kind is None or (self._below is not None and name not in self._below):
            return None
        return None if source is not None and is_unchanged(source, kind) else fitting(kind)


def _misfit(fit: Callable[[Any], Any], value: Any) -> Exception | None:
    """Return the error of a function that makes a value fit; None if it raises none."""
    try:
        fit(value)
    except _MISFITS as error:
        return error
    return None
