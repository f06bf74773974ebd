"""The options of the commands that pack documents into samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from seekable.dataset.dataset import Dataset

__all__ = [
    "KeyOption",
    "LongOption",
    "MethodOption",
    "MostOption",
    "NextTokenOption",
    "OrderOption",
    "PackArguments",
    "SeedOption",
]

MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="concat: documents end to end, cut; best_fit: none cut that fits, padded. Else concat.",
        show_default=False,
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="SEED", help="Which order: 0 to 2**64 - 1; 0 if left out.", show_default=False
    ),
]
OrderOption = Annotated[
    str | None,
    typer.Option(
        "--order",
        metavar="NAME",
        help="Of concat: table, exchange or megatron; by the number of documents if left out.",
        show_default=False,
    ),
]
MostOption = Annotated[
    int | None,
    typer.Option(
        "--most", metavar="N", min=1, help="Of best_fit, the most documents in a sample.", show_default=False
    ),
]
LongOption = Annotated[
    str | None,
    typer.Option(
        "--long",
        metavar="NAME",
        help="Of best_fit, split, truncate or drop documents longer than a sample; else split.",
        show_default=False,
    ),
]
NextTokenOption = Annotated[bool, typer.Option("--next-token", help="One token more, for labels.")]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="NAME",
        help="The column of the token ids in records; tokens if left out.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class PackArguments:
    """The arguments of ``Dataset.pack``, as options give them."""

    length: int
    given: dict[str, Any]
    """The other arguments by name; None, or False, for those that were left out."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of the call: those that were given, and the seed."""
        given = {name: value for name, value in self.given.items() if value not in (None, False)}
        return {"seed": 0, **given}

    def packed(self, documents: Dataset, **execution: Any) -> Dataset:
        """Return the samples of documents.

        Args:
            documents: the documents.
            execution: ``jobs``, ``executor`` and ``progress`` of the call.

        Raises:
            InvalidArgument: an argument breaks a rule.
        """
        return documents.pack(self.length, **self.arguments, **execution)

    def call(self, documents: str) -> str:
        """Return the expression that makes the same samples in Python, of the expression of the documents."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{documents}.pack({self.length}, {arguments})"
