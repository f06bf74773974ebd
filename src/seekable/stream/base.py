"""The public face of every stream."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from seekable._cached import cached
from seekable.dataset.base import Dataset
from seekable.dataset.show import listed
from seekable.state.canonical import fingerprint_of
from seekable.stream.contract import Stage
from seekable.stream.fluent import StreamFluent
from seekable.stream.iterator import StreamIterator
from seekable.stream.rebuild import as_token, located, rebuilt

__all__ = ["Stream"]


class Stream(Stage, StreamFluent):
    """A sequence of items whose order may depend on what they are; it resumes exactly after each.

    A stream is an immutable description: ``iter(stream)`` begins at its first item, and an iterator holds the
    only cursor. Each item has a token, which says where it came from: ``stream[token]`` is that item again.

    Example:
        >>> import seekable as sk
        >>> stream = sk.from_sequence(range(10)).stream(epochs=1).filter(lambda number: number % 3 == 0)
        >>> iterator = iter(stream)
        >>> next(iterator), next(iterator), iterator.token, stream[iterator.token]
        (0, 3, 3, 3)
        >>> again = iter(stream)
        >>> again.load_state_dict(iterator.state_dict())
        >>> list(again)
        [6, 9]
    """

    def __iter__(self) -> StreamIterator:
        """Begin at the first item; each iterator is its own."""
        return StreamIterator(self)

    def __getitem__(self, token: Any) -> Any:
        """Return the item of a token, as an iterator's ``token`` named it, or JSON made of it.

        Raises:
            BadToken: there is no such item (a KeyError).
        """
        return rebuilt(self, [as_token(token)])[0]

    def locate(self, token: Any) -> list[Any]:
        """Return where the records lie that the item of a token was made of: a ``Location`` each.

        Raises:
            BadToken: there is no such item (a KeyError).
        """
        return located(self, as_token(token))

    @cached
    def fingerprint(self) -> str:
        """The digest of everything that decides the stream's items and their order."""
        return fingerprint_of(self.describe())

    def describe(self) -> dict[str, Any]:
        """Return, JSON-safe, all that decides items and order."""
        below = [source.describe() for source in self.inputs if isinstance(source, Stream)]
        below += [dataset.describe(None) for dataset in self.datasets]
        return {"kind": self.kind, "lanes": self.lanes, **self.arguments(), "of": below}

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """The datasets that this stage itself reads."""
        held: list[Any] = [getattr(self, field.name) for field in fields(self)] if is_dataclass(self) else []
        return tuple(value for value in held if isinstance(value, Dataset))

    def explain(self) -> str:
        """Return the stream as a tree: each stage with its arguments."""
        return "\n".join(_lines(self, ""))

    def __repr__(self) -> str:
        """Show the lanes and the expression that makes the stream."""
        lanes = "" if self.lanes == 1 else f", {self.lanes} lanes"
        end = "endless" if self.endless else "ends"
        return f"<Stream, {end}{lanes}: {_expression(self)}>"


def _expression(stage: Stage) -> str:
    return stage.shown([_expression(source) for source in stage.inputs])


def _lines(stage: Stage, indent: str) -> list[str]:
    arguments = listed([f"{key}={value!r:.60}" for key, value in stage.arguments().items()])
    lines = [f"{indent}{stage.kind}({arguments})"]
    for source in stage.inputs:
        lines += _lines(source, f"{indent}  ")
    return lines
