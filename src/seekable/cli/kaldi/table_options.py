"""The arguments and options that the commands for tables of Kaldi share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

RspecifierArgument = Annotated[
    str,
    typer.Argument(
        metavar="RSPECIFIER", help="The table to read, such as scp:feats.scp or ark:-.", show_default=False
    ),
]

HolderOption = Annotated[
    str | None,
    typer.Option(
        "--holder",
        metavar="NAME",
        help="The type of the objects: matrix, vector, int32-vector, token, posterior, wave and so on; found "
        "from the first ones in a file or standard input if left out, where these tell it.",
        show_default=False,
    ),
]


class PipesChoice(StrEnum):
    """The commands that may run: none, those on the command line, or also those inside script files."""

    REFUSE = "refuse"
    SPECIFIER = "specifier"
    ALLOW = "allow"


PipesOption = Annotated[
    PipesChoice,
    typer.Option(
        "--pipes",
        help="Run no commands, those of the specifiers given here, or also those inside script files.",
    ),
]

PrecisionOption = Annotated[
    int | None,
    typer.Option(
        "--precision",
        metavar="DIGITS",
        min=1,
        max=17,
        help="Digits of numbers in text: 9 for floats and 17 for doubles read back exactly; 7 if left out.",
        show_default=False,
    ),
]
