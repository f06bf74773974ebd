"""The command ``seekable`` with all its subcommands."""

from __future__ import annotations

import functools
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from seekable._version import __version__
from seekable.cli import (
    cache,
    doctor,
    export,
    get,
    index,
    info,
    pack,
    plan,
    plot,
    recompress,
    simulate,
    state,
    tokenize,
    verify,
    view,
)
from seekable.cli.exits import EXIT_CODES, errors_told, tell_wrong_usage
from seekable.cli.shared_options import command, examples, paragraph

EPILOG = "\n\n".join(
    [
        examples("index 'corpus/*.jsonl'", "get corpus.jsonl 5 | jq .text", "COMMAND --help"),
        paragraph("Exit codes", *EXIT_CODES.splitlines()),
    ]
)


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        # Not around app(): typer itself handles interrupts and broken pipes there.
        with errors_told(sys.argv[1:], self):
            return super().invoke(ctx)


# Without markup typer does not import rich, which would double the time of --help.
app = typer.Typer(
    name="seekable",
    cls=_Commands,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
# A negative row number looks like an unknown option.
_ROWS = {"ignore_unknown_options": True}

app.command(epilog=index.EPILOG)(command(index.index))
app.command(epilog=info.EPILOG)(command(info.info))
app.command(epilog=get.GET_EPILOG, context_settings=_ROWS)(command(get.get))
app.command(epilog=get.HEAD_EPILOG)(command(get.head))
app.command(epilog=get.SAMPLE_EPILOG)(command(get.sample))
app.command(epilog=verify.EPILOG)(command(verify.verify))
app.command(epilog=recompress.EPILOG)(command(recompress.recompress))
app.command(epilog=export.EPILOG)(command(export.export))
app.command(epilog=tokenize.EPILOG)(command(tokenize.tokenize))
app.command(epilog=pack.EPILOG)(command(pack.pack))
app.command(epilog=plan.EPILOG)(command(plan.plan))
app.command(epilog=simulate.EPILOG)(command(simulate.simulate))
app.command(epilog=view.EPILOG)(command(view.view))
app.command(epilog=plot.EPILOG)(command(plot.plot))
app.add_typer(state.app, name="state")


@functools.cache
def _kaldi_group() -> TyperGroup:
    """Return the commands of ``seekable kaldi``, which are imported late."""
    from typer.main import get_group

    from seekable.cli.kaldi import conversions, copy, entries, validate

    commands = typer.Typer(rich_markup_mode=None)
    commands.command(epilog=copy.EPILOG)(command(copy.copy))
    commands.command(epilog=entries.HEAD_EPILOG)(command(entries.head))
    commands.command(epilog=entries.SHAPES_EPILOG)(command(entries.shapes))
    commands.command(epilog=entries.INDEX_EPILOG)(command(entries.index))
    commands.command(epilog=validate.EPILOG)(command(validate.validate))
    commands.command(epilog=conversions.TO_PARQUET_EPILOG)(command(conversions.to_parquet))
    commands.command(epilog=conversions.FROM_JSONL_EPILOG)(command(conversions.from_jsonl))
    return get_group(commands)


class _KaldiCommands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return _kaldi_group().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _kaldi_group().get_command(ctx, cmd_name)


_kaldi = typer.Typer(cls=_KaldiCommands, no_args_is_help=True, rich_markup_mode=None)


@_kaldi.callback(epilog=examples("kaldi validate data/train", "kaldi COMMAND --help"))
def _tables() -> None:
    """Copy, show, check and convert tables of Kaldi.

    RSPECIFIER and WSPECIFIER are Kaldi's own: ark: or scp:, options, and extended filenames such as - and
    'gunzip -c a.gz |'. Commands on the command line run; those inside script files only with --pipes allow.
    """


app.add_typer(_kaldi, name="kaldi")
app.add_typer(cache.app, name="cache")
app.command(epilog=doctor.EPILOG)(command(doctor.doctor))


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
