"""Nodes that give columns other names, in all files or in some, or add a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable._arguments import repeated
from seekable._cached import cached
from seekable.errors import BadValue, InvalidArgument, WrongType
from seekable.nodes.columns.column_node import ByFile, ColumnNode, InGroups, OneByOne
from seekable.nodes.columns.names import checked_name, lacking
from seekable.nodes.graph import file_matches
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.errors import SeekableError
    from seekable.nodes.columns.choose import Missing
    from seekable.nodes.columns.column_node import Making
    from seekable.nodes.node import Node

__all__ = ["Alias", "Computed", "MapColumns", "Rename", "checked_renames"]


def checked_renames(what: str, names: object) -> tuple[tuple[str, str], ...]:
    """Return the pairs of old and new names of columns.

    Args:
        what: the call that takes the names, for messages.
        names: the argument of the user.

    Raises:
        WrongType: ``names`` is not a dict of strings.
        InvalidArgument: two columns would have the same new name.
    """
    if not isinstance(names, Mapping):
        message = f'{what} takes a dict of old and new names, {{"old": "new"}} (got {names!r})'
        raise WrongType(message)
    pairs = tuple((checked_name(what, old), checked_name(what, new)) for old, new in names.items())
    if twice := repeated(new for _, new in pairs):
        message = f"{what} would give several columns the name {twice[0]!r}"
        raise InvalidArgument(message)
    return pairs


def _collision(record: dict[str, Any], names: Mapping[str, str]) -> str:
    both = [(old, new) for old, new in names.items() if old in record and new in record and new not in names]
    old, new = both[0]
    return (
        f"{old!r} cannot be called {new!r}, because there is such a column too: drop or rename that one first"
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class Rename(ColumnNode):
    """Each record with some columns under other names, at the same places."""

    child: Node
    names: tuple[tuple[str, str], ...]
    missing: Missing
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "rename"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the old and new names, and the rule for records that lack one."""
        return {"columns": dict(sorted(self.names)), "missing": self.missing}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        missing = "" if self.missing == "error" else f", missing={self.missing!r}"
        return f"{children[0]}.rename({dict(self.names)!r}{missing})"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict of the values under their new names, in the order of the record.

        Raises:
            KeyError: the record lacks a column, and ``missing`` is ``"error"``.
            BadValue: the record has a column of a new name already.
        """
        news = self._new_names
        made = {news.get(name, name): value for name, value in record.items()}
        if len(made) != len(record):
            raise BadValue(_collision(record, news))
        if self._taken.issubset(record):
            return made
        if self.missing == "error":
            raise KeyError
        for old in [old for old in self._new_names if old in self._taken and old not in record]:
            if made.setdefault(self._new_names[old]) is not None:
                raise BadValue(_collision({**record, old: None}, self._new_names))
        return made

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error that names the missing columns, or the two of one name."""
        return error if isinstance(error, BadValue) else lacking(record, sorted(self._taken))

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the old names, and the new ones, so that a clash with an existing column is found."""
        return frozenset(self._old_names.get(column, column) for column in columns) | (
            columns - self._new_names.keys()
        )

    def beneath(self, column: str) -> str | None:
        """Return the old name of a column; None if only its new name is in the child."""
        if column in self._old_names:
            return self._old_names[column]
        return None if column in self._new_names else column

    def declared_over(self, below: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of the child under their new names."""
        return {self._new_names.get(name, name): kind for name, kind in below.items()}

    @cached
    def _new_names(self) -> dict[str, str]:
        return dict(self.names)

    @cached
    def _old_names(self) -> dict[str, str]:
        return {new: old for old, new in self.names}

    @cached
    def _taken(self) -> frozenset[str]:
        return frozenset(old for old, new in self.names if self.looked_at(new))


@final
@dataclass(frozen=True, eq=False, repr=False)
class MapColumns(ColumnNode):
    """Each record with some columns renamed, by the file that it comes from.

    The first pattern that matches a file decides its names; other files keep theirs.
    """

    child: Node
    files: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    missing: Missing
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "map_columns"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the names by pattern, and the rule for records that lack one."""
        files = [[pattern, dict(sorted(names))] for pattern, names in self.files]
        return {"patterns": files, "missing": self.missing}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        files = {pattern: dict(names) for pattern, names in self.files}
        missing = "" if self.missing == "error" else f", missing={self.missing!r}"
        return f"{children[0]}.rename({files!r}{missing})"

    def saved_form(self, children: Sequence[str]) -> str:
        """Return the same with the word ``map_columns``."""
        return f"{children[0]}.map_columns{self.shown(['']).removeprefix('.rename')}"

    @property
    def making(self) -> Making:
        """Each record is made by itself, from its place too."""
        return ByFile(self.made)

    def made(self, record: dict[str, Any], path: str, name: str, row: int) -> dict[str, Any]:
        """Return a dict of the values under the new names for the file.

        Raises:
            MissingColumn: the record lacks a column, and ``missing`` is ``"error"``.
            BadValue: two values would have the same name.
        """
        names = self._names_of(path, name)
        made = self._renamed(record, names)
        if self.missing == "none":
            for new in self._new_names:
                if self.looked_at(new):
                    made.setdefault(new)
            return made
        error = lacking(record, [old for old, new in names.items() if self.looked_at(new)])
        if error is not None:
            raise error
        return made

    def _renamed(self, record: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
        # Records of tables have the columns of all files, and None in those that their own file lacks: such a
        # None gives way to a value under the same name, and goes where another file's name has been replaced.
        lenient, touched = self.missing == "none", self._touched
        if not lenient and not names:
            return dict(record)
        made: dict[str, Any] = {}
        for old, value in record.items():
            new = names.get(old, old)
            if value is None and (new in made or (lenient and old in self._old_names and old not in names)):
                continue
            if new in made and made[new] is not None and new in touched:
                raise BadValue(_collision(record, names))
            made[new] = value
        return made

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error as it is: it names the columns."""
        return error if isinstance(error, BadValue | KeyError) else None  # type: ignore[return-value]

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the columns, and the names that any file has for them."""
        return columns.union(old for _, names in self.files for old, new in names if new in columns)

    def beneath(self, column: str) -> str | None:
        """Return the same name; None if a file has another name for the column."""
        return None if column in self._touched else column

    def declared_over(self, below: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of the child; renamed columns have unknown types."""
        kinds = {name: None if name in self._touched else kind for name, kind in below.items()}
        return {**kinds, **dict.fromkeys(self._new_names)}

    @cached
    def _old_names(self) -> frozenset[str]:
        return frozenset(old for _, names in self.files for old, _ in names)

    @cached
    def _new_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(new for _, names in self.files for _, new in names))

    @cached
    def _touched(self) -> frozenset[str]:
        return self._old_names.union(self._new_names)

    def _names_of(self, path: str, name: str) -> dict[str, str]:
        known = self._of_files
        if path not in known:
            meant = (names for pattern, names in self.files if file_matches(pattern, path=path, name=name))
            known[path] = dict(next(meant, ()))
        return known[path]

    @cached
    def _of_files(self) -> dict[str, dict[str, str]]:
        return {}


@final
@dataclass(frozen=True, eq=False, repr=False)
class Alias(ColumnNode):
    """Each record with one more column, which has the values of another."""

    child: Node
    new: str
    old: str
    missing: Missing
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "alias"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return both names, and the rule for records that lack the old one."""
        return {"new": self.new, "old": self.old, "missing": self.missing}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        missing = "" if self.missing == "error" else f", missing={self.missing!r}"
        return f"{children[0]}.rename({{{self.old!r}: {self.new!r}}}, keep=True{missing})"

    def saved_form(self, children: Sequence[str]) -> str:
        """Return the same with the word ``alias``."""
        missing = "" if self.missing == "error" else f", missing={self.missing!r}"
        return f"{children[0]}.alias({self.new!r}, {self.old!r}{missing})"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict with the new column, if it is used.

        Raises:
            KeyError: the record lacks the old column, and ``missing`` is ``"error"``.
        """
        if not self.looked_at(self.new):
            return record
        return {**record, self.new: record.get(self.old) if self.missing == "none" else record[self.old]}

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error that names the missing column; None if the record has it."""
        return lacking(record, [self.old])

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the old name in place of the new one."""
        return columns - {self.new} | {self.old} if self.new in columns else columns

    def beneath(self, column: str) -> str | None:
        """Return the old name for the new one; other names are the same."""
        return self.old if column == self.new else column

    def declared_over(self, below: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of the child, and the new one with the type of the old one."""
        return {**below, self.new: below.get(self.old)}


@final
@dataclass(frozen=True, eq=False, repr=False)
class Computed(ColumnNode):
    """Each record with one more column, which a function makes of the record."""

    child: Node
    new: str
    fn: Callable[..., Any]
    most: int | None
    version: str | int | None
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "computed"

    def __post_init__(self) -> None:
        """Check that the function has a name.

        Raises:
            WrongType: the function cannot be called.
            InvalidArgument: the function has no name, and there is no version.
        """
        describe_function(self.fn, self.version)

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the column and the function, by name; the number of records in a call changes no value."""
        return {"new": self.new, "fn": describe_function(self.fn, self.version)}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        name = describe_function(self.fn, self.version)["name"]
        if self.most is None:
            return f"{children[0]}.map({name}, column={self.new!r})"
        return f"{children[0]}.map_batches({name}, size={self.most}, column={self.new!r})"

    def saved_form(self, children: Sequence[str]) -> str:
        """Return the same with the word ``alias``."""
        size = "" if self.most is None else f", size={self.most}"
        name = describe_function(self.fn, self.version)["name"]
        return f"{children[0]}.alias({self.new!r}, {name}{size})"

    @property
    def making(self) -> Making:
        """Records are made one by one, or in groups of ``most``; unchanged if the new column is not used."""
        if not self.looked_at(self.new):
            return OneByOne(_unchanged)
        return OneByOne(self._made) if self.most is None else InGroups(self._group, self.most)

    def _made(self, record: dict[str, Any]) -> dict[str, Any]:
        return {**record, self.new: self.fn(record)}

    def _group(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the records with the values that the function returns for all of them.

        Raises:
            WrongType: the function returns no list.
            InvalidArgument: the function returns more or fewer values than it gets records.
        """
        values = self.fn(records)
        name = describe_function(self.fn, self.version)["name"]
        if isinstance(values, str | bytes | dict) or not hasattr(values, "__len__"):
            message = f"{name} must return a list of values (got {type(values).__name__})"
            raise WrongType(message)
        if len(values) != len(records):
            given, got = len(records), len(values)
            message = f"{name} must return as many values as it is given records, {given} (got {got})"
            raise InvalidArgument(message)
        return [{**record, self.new: value} for record, value in zip(records, values, strict=True)]

    def needs(self, columns: frozenset[str]) -> frozenset[str] | None:
        """Return None, all columns, if the function is called; otherwise the same columns."""
        return None if self.new in columns else columns

    def beneath(self, column: str) -> str | None:
        """Return the same name; None for the new column."""
        return None if column == self.new else column

    def declared_over(self, below: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of the child, and the new one with an unknown type."""
        return {**below, self.new: None}


def _unchanged(record: dict[str, Any]) -> dict[str, Any]:
    return record
