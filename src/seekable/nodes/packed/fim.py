"""Fill-in-the-middle: the arguments of the rearrangement of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from seekable._arguments import checked_count, checked_fraction

__all__ = ["Fim"]


@dataclass(frozen=True, slots=True)
class Fim:
    """The share of documents that ``pack`` rearranges for fill-in-the-middle, and the tokens that mark them.

    A document is cut at two places into prefix, middle and suffix. In the order PSM it becomes the token
    ``prefix``, the prefix, the token ``suffix``, the suffix, the token ``middle``, the middle. In the order
    SPM it becomes the tokens ``prefix`` and ``suffix``, the suffix, the token ``middle``, the prefix, the
    middle. Each epoch other documents are rearranged, at other places.

    Args:
        rate: the share of documents, from 0 to 1.
        prefix: the id of the token before the prefix.
        suffix: the id of the token before the suffix.
        middle: the id of the token before the middle.
        spm: the share of the rearranged documents that have the order SPM, from 0 to 1.

    Raises:
        WrongType, InvalidArgument: an argument is no such number.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence([{"tokens": [5, 6, 7, 8]}])
        >>> sample = ds.pack(7, seed=1, fim=sk.Fim(rate=1, prefix=1, suffix=2, middle=3))[0]
        >>> sorted(sample["tokens"].tolist())
        [1, 2, 3, 5, 6, 7, 8]
    """

    rate: float
    prefix: int
    suffix: int
    middle: int
    spm: float = 0.5

    sentinels: ClassVar[tuple[str, ...]] = ("prefix", "suffix", "middle")
    """The names of the arguments that are tokens."""

    def __post_init__(self) -> None:
        """Check the arguments."""
        for name in ("rate", "spm"):
            object.__setattr__(self, name, float(checked_fraction(name, getattr(self, name))))
        for name in self.sentinels:
            object.__setattr__(self, name, checked_count(name, getattr(self, name), least=0))

    def described(self) -> dict[str, Any]:
        """Return the arguments, JSON-safe."""
        return {name: getattr(self, name) for name in ("rate", *self.sentinels, "spm")}
