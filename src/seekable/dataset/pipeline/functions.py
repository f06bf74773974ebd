"""The functions and sequences of the user in a pipeline file: names, and what the caller gives for them."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument, WrongType
from seekable.state.canonical import plain_json
from seekable.state.functions import NamedFunction, describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Given", "Names", "described", "same_function", "stand_in"]


def described(fn: Callable[..., Any]) -> dict[str, Any]:
    """Return the name of a function, and the arguments of a partial, JSON-safe.

    Example:
        >>> described(str.upper)
        {'name': 'builtins.str.upper'}
    """
    description: dict[str, Any] = plain_json(describe_function(fn, "any"))
    del description["version"]
    return description


@dataclass(frozen=True, slots=True)
class Names:
    """The names of different objects; a name that several of them have is numbered."""

    _known: list[tuple[Any, str]] = field(default_factory=list)

    def of(self, thing: Any, wanted: str) -> str:
        """Return the name of an object, the same each time.

        Args:
            thing: a function or a sequence.
            wanted: the name that it has by itself.

        Example:
            >>> names = Names()
            >>> one, two = (lambda: 1), (lambda: 2)
            >>> names.of(one, "f"), names.of(two, "f"), names.of(one, "f")
            ('f', 'f#2', 'f')
        """
        for known, name in self._known:
            if known is thing or (isinstance(thing, types.MethodType) and known == thing):
                return name
        taken = {name for _, name in self._known}
        numbers = (f"{wanted}#{number}" for number in range(2, len(taken) + 3))
        name = next(name for name in (wanted, *numbers) if name not in taken)
        self._known.append((thing, name))
        return name


class Given:
    """The functions, or the sequences, that the caller of ``load_dataset`` gives for names of the file."""

    def __init__(self, argument: str, given: object) -> None:
        """Check the type of an argument.

        Args:
            argument: the name of the argument, for messages.
            given: the objects by name, or None.

        Raises:
            WrongType: ``given`` is no mapping of names.
        """
        given = {} if given is None else given
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            message = f"{argument} must be a dict of names and objects (got {given!r:.100})"
            raise WrongType(message)
        self.argument = argument
        self._given: dict[str, Any] = dict(given)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the names for which nothing is given, in their order.

        Raises:
            InvalidArgument: a shortened name stands for several names.
        """
        names = list(names)
        return [name for name in names if self._key(name, names) is None]

    def get(self, name: str, names: Sequence[str]) -> Any:
        """Return the object for a name: that of the whole name, or of its last part or parts."""
        key = self._key(name, names)
        assert key is not None
        return self._given[key]

    def _key(self, name: str, names: Sequence[str]) -> str | None:
        if name in self._given:
            return name
        for key in self._given:
            meant = [each for each in names if each.endswith(f".{key}")]
            if name in meant and key not in names:
                if len(meant) > 1:
                    whole = ", ".join(map(repr, meant))
                    message = f"{self.argument}: {key!r} may be any of {whole}: give the whole names"
                    raise InvalidArgument(message)
                return key
        return None


def stand_in(description: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function with the description of one that is not there; a call of it raises an error."""
    arguments, named = description.get("arguments", ((), {}))
    function = (
        functools.partial(_not_there, *arguments, **named) if "arguments" in description else _not_there
    )
    return NamedFunction(function, str(description["name"]))


def _not_there(*_: object, **__: object) -> None:
    message = "a pipeline file was loaded for its order alone, and a record of it is read"
    raise InvalidArgument(message)


def same_function(name: str, description: Mapping[str, Any], given: Any) -> Callable[..., Any]:
    """Return a function under the name that it has in the file, so that the fingerprint stays the same.

    Args:
        name: the name in the file.
        description: what `described` returned when the file was written.
        given: the function of the caller.

    Raises:
        WrongType: it cannot be called.
        InvalidArgument: it is a partial with other arguments.
    """
    found = described(given)
    if found.get("arguments") != description.get("arguments"):
        message = (
            f"functions[{name!r}] must be {_in_words(description)}, as it was when the pipeline was saved "
            f"(got {_in_words(found)})"
        )
        raise InvalidArgument(message)
    function: Callable[..., Any] = given
    return function if found == description else NamedFunction(function, str(description["name"]))


def _in_words(description: Mapping[str, Any]) -> str:
    if "arguments" not in description:
        return "a function that is no partial"
    arguments, named = description["arguments"]
    given = [*map(repr, arguments), *(f"{name}={value!r}" for name, value in named.items())]
    return f"functools.partial({', '.join(['...', *given])})"
