"""``seekable plot``: the charts of the viewer as SVG, CSV or JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated

import typer

from seekable.cli.shared_options import DataOptions, RunOptions, Shown, argument, examples, option
from seekable.errors import InvalidArgument

EPILOG = examples(
    "plot lengths corpus/ -o lengths.svg",
    "plot mixture checkpoints/ --from 0 --to 100000 --in bytes > mixture.svg",
    "plot files corpus/ --csv | head",
    "plot loss train.jsonl:step,loss --theme dark -o loss.svg",
    "plot schedule train:make_loader -o weights.svg",
)


class Kind(StrEnum):
    """The kinds of charts that can be plotted."""

    LENGTHS = "lengths"
    MIXTURE = "mixture"
    FILES = "files"
    PADDING = "padding"
    LOSS = "loss"
    SCHEDULE = "schedule"


class Unit(StrEnum):
    """The units in which a mixture is counted."""

    RECORDS = "records"
    BYTES = "bytes"
    TOKENS = "tokens"


class Theme(StrEnum):
    """The colours of a chart."""

    AUTO = "auto"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotOptions:
    """The options that say what a chart shows."""

    start: Annotated[int | None, option("--from", "STEP", "The first step; else 0.", least=0)] = None
    stop: Annotated[
        int | None,
        option("--to", "STEP", "The step after the last; else the end of the first epoch.", least=1),
    ] = None
    unit: Annotated[
        Unit | None, typer.Option("--in", help="What a mixture is counted in.", show_default=False)
    ] = None
    text_key: Annotated[str | None, option("--text-key", "NAME", "The field that counts as text.")] = None
    tokenizer: Annotated[str | None, option("--tokenizer", "FILE", "Count tokens with this file.")] = None


def plot(  # noqa: PLR0913 - an argument for each of its own options
    kind: Annotated[Kind, typer.Argument(help="What is plotted.", show_default=False)],
    target: Annotated[
        str,
        argument(
            "TARGET",
            "Of lengths and files, data: PATH or module:function. Of loss, FILE[:STEP,LOSS]. Of the others, "
            "as of plan: a saved state, a folder of them, a pipeline file, or module:function.",
        ),
    ],
    *,
    output: Annotated[str | None, option("--output -o", "FILE", "Write here instead of to stdout.")] = None,
    theme: Annotated[
        Theme, typer.Option("--theme", help="The colours; auto follows the reader's.")
    ] = Theme.AUTO,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the numbers that are drawn, as CSV.")] = False,
    options: PlotOptions,
    run: RunOptions,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Draw a chart of data or of a run, as the viewer shows it.

    An SVG is printed; --csv prints the numbers that it draws, --json the facts. lengths: the records of data
    by their length. files: the bytes of each file. mixture: what each source is planned to give, and gives,
    by step. schedule: the weights of a mixture, by step. padding: the share of padding in each step, by the
    index, or by the texts of the records with --tokenizer or --text-key. loss: a log of losses, with a dot at
    each spike.
    """
    from seekable.cli.output import write_line
    from seekable.cli.view_targets import Plot
    from seekable.viewer.facts.json_documents import document

    if as_csv and shown.as_json:
        raise InvalidArgument("--csv and --json are two forms of the same numbers: give one of them")
    figure = Plot(target=target, run=run, data=data, shown=shown, **asdict(options)).figure(kind.value)
    if shown.as_json:
        made = document(figure.document)
    else:
        made = figure.table.as_csv() if as_csv else figure.draw(theme.value).encode()
    if output is None:
        write_line(made.decode("utf-8", "surrogateescape").removesuffix("\n"))
    else:
        with open(output, "wb") as file:
            file.write(made)
