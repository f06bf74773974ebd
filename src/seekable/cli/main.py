"""The command ``seekable`` with all its subcommands."""

from __future__ import annotations

import functools
import sys
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from seekable._version import __version__
from seekable.cli import (
    bench,
    cache,
    doctor,
    export,
    get,
    index,
    info,
    plan,
    plot,
    recompress,
    simulate,
    state,
    tokenize,
    verify,
    view,
)
from seekable.cli.exits import EXIT_CODES, INSTEAD_OF_COMMANDS, errors_told, tell_wrong_usage
from seekable.cli.shared_options import Command, command, examples, paragraph

if TYPE_CHECKING:
    from collections.abc import Callable

EPILOG = "\n\n".join(
    [
        examples("index 'corpus/*.jsonl'", "get corpus.jsonl 5 | jq .text", "COMMAND --help"),
        paragraph("Exit codes", *EXIT_CODES.splitlines()),
    ]
)


def _answer(ctx: Any, name: str) -> None:
    if (instead := INSTEAD_OF_COMMANDS.get(name)) and not ctx.resilient_parsing:
        ctx.fail(f"There is no command {name!r}: {instead}.")


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        # Not around app(): typer itself handles interrupts and broken pipes there.
        with errors_told(sys.argv[1:], self):
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Answer a command that is no more, or that is called otherwise, with what does the same."""
        _answer(ctx, args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, by what they are about."""
        names = self.list_commands(ctx)
        width = formatter.width - 6 - max(map(len, names))
        for title, group in _GROUPS.items():
            found = [(name, self.get_command(ctx, name)) for name in names if name in group]
            with formatter.section(title):
                formatter.write_dl([(name, each.get_short_help_str(width)) for name, each in found if each])


# Without markup typer does not import rich, which would double the time of --help.
app = typer.Typer(
    name="seekable",
    cls=_Commands,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# A negative row number looks like an unknown option.
_ROWS = {"ignore_unknown_options": True}


def _add(function: Callable[..., None], epilog: str, **more: Any) -> None:
    app.command(epilog=epilog, cls=Command, **more)(command(function))


_add(index.index, index.EPILOG)
_add(info.info, info.EPILOG)
_add(verify.verify, verify.EPILOG)
_add(export.export, export.EPILOG)
_add(recompress.recompress, recompress.EPILOG)
_add(tokenize.tokenize, tokenize.EPILOG)
_add(bench.bench, bench.EPILOG)
_add(plan.plan, plan.EPILOG)
_add(simulate.simulate, simulate.EPILOG)
app.add_typer(state.app, name="state")
_add(get.get, get.GET_EPILOG, context_settings=_ROWS)
_add(get.head, get.HEAD_EPILOG)
_add(get.sample, get.SAMPLE_EPILOG)
_add(view.view, view.EPILOG)
_add(plot.plot, plot.EPILOG)
_GROUPS = {
    "Data": {"index", "info", "verify", "export", "recompress", "tokenize", "kaldi"},
    "A run": {"bench", "plan", "simulate", "state"},
    "Look": {"get", "head", "sample", "view", "plot"},
    "This machine": {"cache", "doctor"},
}


@functools.cache
def _kaldi_group() -> TyperGroup:
    """Return the commands of ``seekable kaldi``, which are imported late."""
    from typer.main import get_group

    from seekable.cli.kaldi import conversions, entries

    commands = typer.Typer(rich_markup_mode=None)
    for function, epilog in (
        (conversions.copy, conversions.COPY_EPILOG),
        (entries.head, entries.HEAD_EPILOG),
        (entries.shapes, entries.SHAPES_EPILOG),
        (entries.validate, entries.VALIDATE_EPILOG),
        (conversions.to_parquet, conversions.TO_PARQUET_EPILOG),
        (conversions.from_jsonl, conversions.FROM_JSONL_EPILOG),
    ):
        commands.command(epilog=epilog, cls=Command)(command(function))
    return get_group(commands)


class _KaldiCommands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return _kaldi_group().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _kaldi_group().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        _answer(ctx, f"kaldi {args[0]}")
        return super().resolve_command(ctx, args)


_kaldi = typer.Typer(cls=_KaldiCommands, no_args_is_help=True, rich_markup_mode=None)


@_kaldi.callback(epilog=examples("kaldi validate data/train", "kaldi COMMAND --help"))
def _tables() -> None:
    """Copy, show, check and convert tables of Kaldi.

    RSPECIFIER and WSPECIFIER are Kaldi's own: ark: or scp:, options, and extended filenames such as - and
    'gunzip -c a.gz |'. Commands on the command line run; those inside script files only with --pipes allow.
    """


app.add_typer(_kaldi, name="kaldi")
app.add_typer(cache.app, name="cache")
_add(doctor.doctor, doctor.EPILOG)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer hands it over so
    if asked:
        typer.echo(f"seekable {__version__}")
        raise typer.Exit


@app.callback()
def _seekable(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Any record of the data you already have, in constant time.

    Records are found by an index, which is made when it is first needed and kept in a folder .seekable
    beside the data. Data goes to stdout, everything else to stderr.
    """


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print the text of a warning without its place in the source code."""
    from seekable.cli.output import tell

    tell(str(message))


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    arguments = sys.argv[1:]
    warnings.showwarning = _show_warning
    try:
        code = app(arguments, prog_name="seekable", standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - raised again unless it is about wrong usage
        code = tell_wrong_usage(arguments, error)
    sys.exit(code)
