"""The arguments and options that commands share, and how their --help pages are laid out."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

PathArgument = Annotated[
    str,
    typer.Argument(metavar="PATH", help="A file, a folder, or a quoted glob.", show_default=False),
]

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="jsonl, csv, parquet, ark-matrix and so on; by the suffix if left out.",
        show_default=False,
    ),
]

IndexDirOption = Annotated[
    str | None,
    typer.Option(
        "--index-dir",
        metavar="FOLDER",
        help="Keep indexes here instead of beside the data; also SEEKABLE_INDEX_DIR.",
        show_default=False,
    ),
]

AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="FOLDER",
        help="Lists of files may also name files below it; may be given several times.",
        show_default=False,
    ),
]

JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        help="Processes that index; one to a processor if left out.",
        show_default=False,
    ),
]

ExecutorOption = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Work on a cluster: ray, ray://HOST:PORT, ray:HOST:PORT, dask://HOST:PORT, slurm:N, or what "
        "module:function returns.",
        show_default=False,
    ),
]

TokenTypeOption = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="NAME",
        help="Of files of tokens that do not say it, the type of a token: uint16, uint32 and so on.",
        show_default=False,
    ),
]

EosIdOption = Annotated[
    int | None,
    typer.Option(
        "--eos",
        metavar="ID",
        min=0,
        help="Of files of tokens without an index, the last token of a document.",
        show_default=False,
    ),
]

BosIdOption = Annotated[
    int | None,
    typer.Option(
        "--bos",
        metavar="ID",
        min=0,
        help="The first token of a document, as --eos is the last.",
        show_default=False,
    ),
]

RefreshOption = Annotated[
    bool,
    typer.Option(
        "--refresh/--no-refresh",
        help="List the store, or take the list that was kept, without a request.",
        show_default=False,
    ),
]

NoProgressOption = Annotated[bool, typer.Option("--no-progress", help="Draw no progress bar.")]

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but what was asked for.")]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; errors too, on stderr.")]

_KEEP_LINES = "\b"
"""The sign for typer to keep the lines of a paragraph as they are."""


def paragraph(title: str, *lines: str) -> str:
    """Return a paragraph of a --help page, each line on a line of its own."""
    return "\n".join([_KEEP_LINES, f"{title}:", *(f"  {line}" for line in lines)])


def examples(*commands: str) -> str:
    """Return the paragraph of examples that ends the --help page of a command."""
    return paragraph("Examples", *(f"seekable {command}" for command in commands))


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
