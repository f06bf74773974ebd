"""Typed parts of a document, and arrays with a value for each token that depend on the type of its part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from seekable._arguments import (
    checked_count,
    checked_flag,
    explains_fields,
)
from seekable.errors import WrongType
from seekable.state.functions import module_name

__all__ = [
    "AuxGenerator",
    "LossMask",
    "Part",
    "described_generator",
    "is_mask",
    "marks_left_out",
]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document: its ``text``, and its ``type``, such as "system", "prompt" or "response".

    Example:
        >>> Part("prompt", "2 + 2 =")
        Part(type='prompt', text='2 + 2 =')
    """

    type: str
    """The kind of text, such as "system", "prompt", "response"."""

    text: str


@runtime_checkable
class AuxGenerator(Protocol):
    """Makes one value for each token of a part; the generators of data-forager are such objects too."""

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        ...

    def generate(
        self, part_type: str, num_tokens: int, *, part_tokens: list[int] | None = None
    ) -> Sequence[int]:
        """Return ``num_tokens`` values, one for each token of a part."""
        ...

    def generate_for_eos(self) -> int:
        """Return the value of the token that ends a document."""
        ...


@explains_fields("sk.LossMask")
@dataclass(frozen=True, slots=True, kw_only=True)
class LossMask:
    """Makes a mask of the tokens that the loss is taken of: 1 = in the loss, 0 = left out.

    data-forager counts the other way round: its ``LossMaskGenerator`` gives 1 to tokens that are left out.

    Args:
        masked: the types of the parts that are left out of the loss.
        eos: True if the token that ends a document is in the loss.

    Raises:
        WrongType: ``masked`` is a string or holds something else than strings, or ``eos`` is not a bool.

    Example:
        >>> LossMask(masked=("prompt",)).generate("prompt", 2), LossMask().generate("response", 3)
        ([0, 0], [1, 1, 1])
    """

    masked: tuple[str, ...] = ("system", "prompt")
    eos: bool = True

    def __post_init__(self) -> None:
        """Check the types, and keep them as a tuple without repetitions."""
        is_many = isinstance(self.masked, Iterable) and not isinstance(self.masked, str)
        masked = tuple(self.masked) if is_many else ()
        if not is_many or not all(isinstance(kind, str) for kind in masked):
            message = f"masked must be a tuple of types of parts, such as ('prompt',) (got {self.masked!r})"
            raise WrongType(message)
        checked_flag("eos", self.eos)
        object.__setattr__(self, "masked", tuple(sorted(set(masked))))

    @property
    def dtype(self) -> np.dtype[np.uint8]:
        """The dtype of a mask, uint8."""
        return np.dtype(np.uint8)

    def generate(self, part_type: str, num_tokens: int, *, part_tokens: list[int] | None = None) -> list[int]:
        """Return the mask of a part: ``num_tokens`` ones, or zeros if its type is masked."""
        return [int(part_type not in self.masked)] * checked_count("num_tokens", num_tokens, least=0)

    def generate_for_eos(self) -> int:
        """Return 1 if the token that ends a document is in the loss, else 0."""
        return int(self.eos)


def described_generator(generator: AuxGenerator) -> dict[str, Any]:
    """Return the description of a generator, JSON-safe: its class, and its attributes as they are printed.

    Example:
        >>> described_generator(LossMask(masked=("prompt",)))
        {'class': 'seekable.formats.tokens.tokenizing.parts.LossMask', 'eos': 'True', 'masked': "['prompt']"}
    """
    if isinstance(generator, LossMask):
        attributes: dict[str, Any] = {"masked": generator.masked, "eos": generator.eos}
    else:
        attributes = dict(getattr(generator, "__dict__", {}))
    shown = {name: _shown(value) for name, value in sorted(attributes.items())}
    return {"class": f"{module_name(type(generator))}.{type(generator).__qualname__}", **shown}


def _shown(value: Any) -> str:
    """Return a value as text that is the same in every process."""
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_shown, value)))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return f"{module_name(type(value))}.{type(value).__qualname__}"


def is_mask(generator: AuxGenerator) -> bool:
    """Return True for a loss mask, of seekable or of data-forager."""
    return isinstance(generator, LossMask) or marks_left_out(generator)


def marks_left_out(generator: AuxGenerator) -> bool:
    """Return True for the loss mask of data-forager, in which 1 marks what is left out of the loss."""
    return any(
        base.__name__ == "LossMaskGenerator" and base.__module__.partition(".")[0] == "data_forager"
        for base in type(generator).__mro__
    )
