"""Several items, or none, of each."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken
from seekable.state.functions import describe_function
from seekable.stream.failures import add_token
from seekable.stream.rebuild import as_token, rebuilt
from seekable.stream.shapes import OneInput
from seekable.stream.starving import LOOK_EVERY, Hunger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["Flatten"]

_PAIR = 2


@final
@dataclass(frozen=True, eq=False, repr=False)
class Flatten(OneInput):
    """The items of ``fn(item)``, or of the item itself; tokens are (token of the outer item, number)."""

    source: Stream
    fn: Callable[[Any], Iterable[Any]] | None
    version: str | int | None

    kind: ClassVar[str] = "flatten"
    holds: ClassVar[bool] = True
    splits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a function that has no name."""
        if self.fn is not None:
            describe_function(self.fn, self.version)

    def arguments(self) -> dict[str, Any]:
        """The function by name, if there is one."""
        return {"fn": None if self.fn is None else describe_function(self.fn, self.version)}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        name = "" if self.fn is None else describe_function(self.fn, self.version)["name"]
        return f"{inputs[0]}.flatten({name})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Go on in the outer item that was begun, then take others."""
        memory = flow.memory
        hunger, taken = Hunger(self, flow), 0
        for outer, item in itertools.chain(self._begun(flow), flow.inputs[0]):
            taken += 1
            done = memory.get("inner", 0)
            memory["outer"] = outer
            try:
                for inner, part in enumerate(self._parts(item)):
                    if inner >= done:
                        taken = 0
                        memory["inner"] = inner + 1
                        yield (outer, inner), part
            except Exception as error:
                add_token(error, self, outer)
                raise
            memory.clear()
            if taken and not taken % LOOK_EVERY:
                hunger.look(taken)

    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return the outer item."""
        if not isinstance(token, tuple) or len(token) != _PAIR or not isinstance(token[1], int):
            message = f"a token of {self!r} is a pair of an outer token and a number (got {token!r})"
            raise BadToken(message)
        return ((0, token[0]),)

    def held(self, memory: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:
        """Return the outer item that was begun."""
        return [(0, as_token(memory["outer"]))] if "inner" in memory else []

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return one of the parts of the outer item."""
        if token[1] >= 0:
            for part in itertools.islice(self._parts(items[0]), token[1], None):
                return part
        message = f"the outer item of token {token!r} has no item {token[1]}"
        raise BadToken(message)

    def _begun(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        if "inner" in flow.memory:
            outer = as_token(flow.memory["outer"])
            yield outer, rebuilt(self.source, [outer])[0]

    def _parts(self, item: Any) -> Iterable[Any]:
        return item if self.fn is None else self.fn(item)
