"""The arguments and options that commands share, and how their --help pages are laid out.

Options that belong together are a group: a dataclass, whose fields are the options. A parameter with a group
as its annotation stands for all options of the group (`command`).
"""

from __future__ import annotations

import functools
import inspect
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from seekable.cli.exits import EXIT_CODES
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def argument(metavar: str, help_text: str) -> Any:
    """Return what typer needs to know of an argument."""
    return typer.Argument(metavar=metavar, help=help_text, show_default=False)


def option(
    names: str, metavar: str, help_text: str, *, least: float | None = None, most: float | None = None
) -> Any:
    """Return what typer needs to know of an option with a value.

    Args:
        names: the option, and after a space its short form.
        metavar: the word for the value.
        help_text: the line of ``--help``.
        least: the least value.
        most: the greatest value.
    """
    return typer.Option(
        *names.split(), metavar=metavar, help=help_text, min=least, max=most, show_default=False
    )


PathArgument = Annotated[str, argument("PATH", "A file, a folder, or a quoted glob.")]

_MANY = "; may be given several times."

IndexOption = Annotated[
    list[str] | None,
    option(
        "--index",
        "NAME=VALUE",
        "Of sk.Index: folder (not beside the data; also SEEKABLE_INDEX_DIR), allow, sampled or most_bytes"
        + _MANY,
    ),
]

JobsOption = Annotated[
    int | None,
    option("--jobs", "N", "Processes of this machine; more than one where that pays, if left out.", least=1),
]

ExecutorOption = Annotated[
    str | None,
    option(
        "--executor",
        "NAME",
        "Work on a cluster: ray, ray://HOST:PORT, ray:HOST:PORT, dask://HOST:PORT, slurm:N, or what "
        "module:function returns.",
    ),
]

FormatOption = Annotated[
    str | None,
    option("--format", "NAME", "jsonl, csv, parquet, ark-matrix and so on; by the suffix if left out."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The options that every command has."""

    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing but what was asked for, and draw no bar.")
    ] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; errors too, on stderr.")] = False
    storage: Annotated[
        list[str] | None,
        option(
            "--storage",
            "NAME=VALUE",
            "Of stores: region, endpoint and so on; or refresh, cache or pin of sk.Storage" + _MANY,
        ),
    ] = None


EVERYWHERE = frozenset(("help", *(each.name for each in fields(Shown))))
"""The names of the options of every command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """The options that say how data is opened: they stand for ``format=`` and ``index=`` of ``sk.open``."""

    format: FormatOption = None
    set: Annotated[
        list[str] | None,
        option(
            "--set",
            "NAME=VALUE",
            "Of the format: delimiter, dtype, eos, partitions, holder and so on, as of sk.formats" + _MANY,
        ),
    ] = None
    index: IndexOption = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options that say which batches a saved pipeline, or the dataset of a function, makes."""

    world_size: Annotated[
        int | None, option("--world-size", "N", "How many ranks there are; else 1.", least=1)
    ] = None
    batch_size: Annotated[
        int | None, option("--batch-size", "N", "Records in a batch of one rank.", least=1)
    ] = None
    global_batch_size: Annotated[
        str | None,
        option(
            "--global-batch-size",
            "N",
            "Records in a batch over all ranks; 0:256,1000:512 where step 1,000 and later have 512.",
        ),
    ] = None
    epochs: Annotated[int | None, option("--epochs", "N", "Epochs of a run; else 1.", least=1)] = None
    state: Annotated[str | None, option("--state", "PATH", "A state to load into the function's loader.")] = (
        None
    )
    root: Annotated[
        list[str] | None,
        option(
            "--root", "FOLDER", "Where the files of a saved pipeline are now; may be given several times."
        ),
    ] = None

    @property
    def of_loader(self) -> dict[str, Any]:
        """The arguments of ``Loader`` by name; None for those that were left out."""
        return {
            "batch_size": self.batch_size,
            "global_batch_size": _sizes(self.global_batch_size),
            "world_size": self.world_size,
            "epochs": self.epochs,
        }

    @property
    def place(self) -> dict[str, Any]:
        """The state to load, and the folders of the files: arguments of ``pipeline_of``."""
        return {"state": self.state, "roots": self.root or []}


def _sizes(text: str | None) -> int | list[tuple[int, int]] | None:
    """Return the records of a batch, or pairs of a step and the records from there on.

    Raises:
        InvalidArgument: the text is neither a number nor such pairs.

    Example:
        >>> _sizes("256"), _sizes("0:256,1000:512")
        (256, [(0, 256), (1000, 512)])
    """
    if text is None:
        return None
    numbers = [part.split(":") for part in text.split(",")]
    if all(number.strip().isdecimal() for pair in numbers for number in pair):
        if len(numbers) == 1 and len(numbers[0]) == 1:
            return int(text)
        if all(len(pair) == 2 for pair in numbers):  # noqa: PLR2004 - a pair
            return [(int(step), int(size)) for step, size in numbers]
    raise InvalidArgument(
        f"--global-batch-size takes a number, or STEP:NUMBER pairs such as 0:256,1000:512 (got {text!r:.100})"
    )


_KEEP_LINES = "\b"
"""The sign for typer to keep the lines of a paragraph as they are."""


def paragraph(title: str, *lines: str) -> str:
    """Return a paragraph of a --help page, each line on a line of its own."""
    return "\n".join([_KEEP_LINES, f"{title}:", *(f"  {line}" for line in lines)])


def examples(*commands: str) -> str:
    """Return the paragraph of examples that ends the --help page of a command."""
    return paragraph("Examples", *(f"seekable {command}" for command in commands))


RspecifierArgument = Annotated[
    str, argument("RSPECIFIER", "The table to read, such as scp:feats.scp or ark:-.")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The options that say how a table of Kaldi is read."""

    holder: Annotated[
        str | None,
        option(
            "--holder",
            "NAME",
            "The type of the objects: matrix, vector, int32-vector, token, posterior, wave and so on; found "
            "from the first ones in a file or standard input if left out, where these tell it.",
        ),
    ] = None
    pipes: PipesOption = PipesChoice.SPECIFIER


PrecisionOption = Annotated[
    int | None,
    option(
        "--precision",
        "DIGITS",
        "Digits of numbers in text: 9 for floats and 17 for doubles read back exactly; 7 if left out.",
        least=1,
        most=17,
    ),
]


class Command(TyperCommand):
    """A command that has the options of every command, as click gives each ``--help``.

    Its --help page ends with them, examples and exit codes.
    """

    def __init__(self, name: str | None, *, params: list[Any] | None = None, **more: Any) -> None:
        """Take what typer made of a function; ``params`` lack the options that every command has."""
        given = params or []
        super().__init__(name, params=[each for each in given if each.name not in EVERYWHERE], **more)
        self._everywhere = [each for each in given if each.name in EVERYWHERE]

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options that are parsed, completed and helped with."""
        own = super().get_params(ctx)
        return [*own[: len(self.params)], *self._everywhere, *own[len(self.params) :]]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options that the command has for itself, and the others."""
        parts: dict[str, list[Any]] = {"Arguments": [], "Options": [], "Options of every command": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                own = "Arguments" if parameter.param_type_name == "argument" else "Options"
                parts["Options of every command" if parameter.name in EVERYWHERE else own].append(record)
        for title, records in parts.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, and below them the exit codes."""
        super().format_epilog(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_text("; ".join(" ".join(line.split()) for line in EXIT_CODES.splitlines()))


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with each option of its groups as typer takes it; each has one parameter `Shown`.

    Stores are reached as ``--storage`` says, also those that the function meets by their addresses alone.
    """
    whole = inspect.signature(function, eval_str=True)
    groups = {name: kind for name, each in whole.parameters.items() if (kind := _group(each.annotation))}
    parameters: list[inspect.Parameter] = []
    for name, parameter in whole.parameters.items():
        parameters += _options_of(groups[name]) if name in groups else [parameter]
    opens = DataOptions in groups.values()

    @functools.wraps(function)
    def run(**arguments: Any) -> None:
        for name, kind in groups.items():
            arguments[name] = kind(**{each.name: arguments.pop(each.name) for each in _options_of(kind)})
        with _reached(arguments["shown"].storage, opens=opens):
            function(**arguments)

    run.__signature__ = whole.replace(parameters=parameters)  # type: ignore[attr-defined]  # inspect reads it
    return run


@contextmanager
def _reached(texts: list[str] | None, *, opens: bool) -> Iterator[None]:
    """Inside of the block, reach stores as ``--storage`` says."""
    if not texts:
        yield
        return
    from seekable.cli.named_values import options_of_stores
    from seekable.remote.mounts import default_options

    given = options_of_stores(texts, opens=opens)
    if not given:
        yield
        return
    with default_options(given) as options:
        yield
    if not options.are_used:
        typer.echo("seekable: --storage has no effect: the command has met no address", err=True)


def _group(annotation: Any) -> type[Any] | None:
    """Return the group that an annotation names; None if it names none."""
    kind = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    return kind if isinstance(kind, type) and is_dataclass(kind) else None


def _options_of(kind: type[Any]) -> list[inspect.Parameter]:
    """Return the options of a group."""
    hints, empty = get_type_hints(kind, include_extras=True), inspect.Parameter.empty
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(kind)
    ]
