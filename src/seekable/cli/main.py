"""The command ``seekable`` with all its subcommands."""

from __future__ import annotations

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
    head,
    index,
    info,
    pack,
    plan,
    plot,
    recompress,
    sample,
    simulate,
    state,
    tokenize,
    verify,
    view,
)
from seekable.cli.addresses import takes_addresses
from seekable.cli.exits import EXIT_CODES, errors_told, tell_wrong_usage
from seekable.cli.kaldi import group as kaldi
from seekable.cli.options import examples, paragraph

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
app.command(epilog=index.EPILOG)(takes_addresses(index.index))
app.command(epilog=info.EPILOG)(takes_addresses(info.info))
# A negative row number looks like an unknown option.
app.command(epilog=get.EPILOG, context_settings={"ignore_unknown_options": True})(takes_addresses(get.get))
app.command(epilog=head.EPILOG)(takes_addresses(head.head))
app.command(epilog=sample.EPILOG)(takes_addresses(sample.sample))
app.command(epilog=verify.EPILOG)(takes_addresses(verify.verify))
app.command(epilog=recompress.EPILOG)(takes_addresses(recompress.recompress))
app.command(epilog=export.EPILOG)(takes_addresses(export.export))
app.command(epilog=tokenize.EPILOG)(takes_addresses(tokenize.tokenize))
app.command(epilog=pack.EPILOG)(takes_addresses(pack.pack))
app.command(epilog=plan.EPILOG)(takes_addresses(plan.plan))
app.command(epilog=simulate.EPILOG)(takes_addresses(simulate.simulate))
app.command(epilog=view.EPILOG)(takes_addresses(view.view))
app.command(epilog=plot.EPILOG)(takes_addresses(plot.plot))
app.add_typer(state.app, name="state")
app.add_typer(kaldi.app, name="kaldi")
app.add_typer(cache.app, name="cache")
app.command(epilog=doctor.EPILOG)(takes_addresses(doctor.doctor))


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
