"""The arguments and options that commands share, and how their --help pages are laid out.

Options that belong together are a group: a dataclass, whose fields are the options. A parameter with a group
as its annotation stands for all options of the group (`command`).
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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

IndexDirOption = Annotated[
    str | None,
    option("--index-dir", "FOLDER", "Keep indexes here instead of beside the data; also SEEKABLE_INDEX_DIR."),
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

NoProgressOption = Annotated[bool, typer.Option("--no-progress", help="Draw no progress bar.")]

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but what was asked for.")]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; errors too, on stderr.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """The options that say how data is opened, and what is printed."""

    format_name: Annotated[
        str | None,
        option("--format", "NAME", "jsonl, csv, parquet, ark-matrix and so on; by the suffix if left out."),
    ] = None
    dtype: Annotated[
        str | None,
        option(
            "--dtype",
            "NAME",
            "Of files of tokens that do not say it, the type of a token: uint16, uint32 and so on.",
        ),
    ] = None
    eos: Annotated[
        int | None,
        option("--eos", "ID", "Of files of tokens without an index, the last token of a document.", least=0),
    ] = None
    bos: Annotated[
        int | None, option("--bos", "ID", "The first token of a document, as --eos is the last.", least=0)
    ] = None
    index_dir: IndexDirOption = None
    allow: Annotated[
        list[str] | None,
        option(
            "--allow", "FOLDER", "Lists of files may also name files below it; may be given several times."
        ),
    ] = None
    refresh: Annotated[
        bool,
        typer.Option(
            "--refresh/--no-refresh",
            help="List the store, or take the list that was kept, without a request.",
            show_default=False,
        ),
    ] = True
    jobs: Annotated[
        int | None, option("--jobs", "N", "Processes that index; one to a processor if left out.")
    ] = None
    no_progress: NoProgressOption = False
    quiet: QuietOption = False
    as_json: JsonOption = False


class End(StrEnum):
    """The last batch of a run: kept short, dropped, or padded."""

    SHORT = "short"
    DROP = "drop"
    PAD = "pad"


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
        int | None, option("--global-batch-size", "N", "Records in a batch over all ranks.", least=1)
    ] = None
    epochs: Annotated[int | None, option("--epochs", "N", "Epochs of a run; else 1.", least=1)] = None
    steps: Annotated[int | None, option("--steps", "N", "The most batches of a run.", least=1)] = None
    end: Annotated[
        End | None, typer.Option("--end", help="The last batch of a run; else short.", show_default=False)
    ] = None
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
            "global_batch_size": self.global_batch_size,
            "world_size": self.world_size,
            "epochs": self.epochs,
            "steps": self.steps,
            "end": None if self.end is None else self.end.value,
        }

    @property
    def place(self) -> dict[str, Any]:
        """The state to load, and the folders of the files: arguments of ``pipeline_of``."""
        return {"state": self.state, "roots": self.root or []}


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

HolderOption = Annotated[
    str | None,
    option(
        "--holder",
        "NAME",
        "The type of the objects: matrix, vector, int32-vector, token, posterior, wave and so on; found "
        "from the first ones in a file or standard input if left out, where these tell it.",
    ),
]


class PipesChoice(StrEnum):
    """The commands that may run: none, those on the command line, or also those inside script files."""

    REFUSE = "refuse"
    SPECIFIER = "specifier"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The options that say how a table of Kaldi is read, and what is printed."""

    holder: HolderOption = None
    pipes: Annotated[
        PipesChoice,
        typer.Option(
            "--pipes",
            help="Run no commands, those of the specifiers given here, or also those inside script files.",
        ),
    ] = PipesChoice.SPECIFIER
    no_progress: NoProgressOption = False
    quiet: QuietOption = False
    as_json: JsonOption = False

    @property
    def is_shown(self) -> bool:
        """True if progress is shown."""
        return not self.no_progress and not self.quiet


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


class Only:
    """Beside a group in an annotation: the options of the group that the command has."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def has(self, name: str) -> bool:
        """Return True if the command has an option of the group."""
        return name in self._names


class Without(Only):
    """Beside a group in an annotation: the options of the group that the command does not have."""

    def has(self, name: str) -> bool:
        """Return True if the command has an option of the group."""
        return name not in self._names


_STORAGE = "storage_option"

_STORAGE_OPTION = Annotated[
    list[str] | None,
    option(
        "--storage-option",
        "NAME=VALUE",
        "Of the stores of addresses: region, endpoint and so on; may be given several times. By default "
        "the environment decides.",
    ),
]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with each option of its groups, and with ``--storage-option``, as typer takes it.

    Addresses are read from stores that are reached as ``--storage-option`` says.
    """
    whole = inspect.signature(function, eval_str=True)
    groups = {each.name: _options_of(each.annotation) for each in whole.parameters.values()}
    parameters: list[inspect.Parameter] = []
    for parameter in whole.parameters.values():
        group = groups[parameter.name]
        parameters += [parameter] if group is None else group[1]
    parameters.append(_parameter(_STORAGE, None, _STORAGE_OPTION))

    @functools.wraps(function)
    def run(**arguments: Any) -> None:
        given = _parsed(arguments.pop(_STORAGE))
        for name, group in groups.items():
            if group is not None:
                arguments[name] = group[0](**{each.name: arguments.pop(each.name) for each in group[1]})
        if not given:
            function(**arguments)
            return
        from seekable.remote.mounts import default_options

        with default_options(given) as options:
            function(**arguments)
        if not options.are_used:
            typer.echo("seekable: --storage-option has no effect: the command has met no address", err=True)

    run.__signature__ = whole.replace(parameters=parameters)  # type: ignore[attr-defined]  # inspect reads it
    return run


def _options_of(annotation: Any) -> tuple[type[Any], list[inspect.Parameter]] | None:
    """Return the group that an annotation names, and its options; None if it names none."""
    kind, *more = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if not isinstance(kind, type) or not is_dataclass(kind):
        return None
    choices = [each for each in more if isinstance(each, Only)]
    return kind, [each for each in _all_options(kind) if all(choice.has(each.name) for choice in choices)]


@functools.cache
def _all_options(kind: type[Any]) -> list[inspect.Parameter]:
    hints, empty = get_type_hints(kind, include_extras=True), inspect.Parameter.empty
    return [
        _parameter(each.name, empty if each.default is MISSING else each.default, hints[each.name])
        for each in fields(kind)
    ]


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parsed(texts: Sequence[str] | None) -> dict[str, str]:
    """Return options by name.

    Raises:
        InvalidArgument: an option is not ``NAME=VALUE``, or the same one is given twice.

    Example:
        >>> _parsed(["region=eu-west-1", "endpoint=http://host:1/?a=b"])
        {'region': 'eu-west-1', 'endpoint': 'http://host:1/?a=b'}
    """
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals or name in found:
            from seekable.errors import InvalidArgument

            why = f"{name!r} is given twice" if name in found else f"it has {'no name' if equals else 'no ='}"
            raise InvalidArgument(f"--storage-option must be NAME=VALUE, each name once: {why}")
        found[name] = value
    return found
