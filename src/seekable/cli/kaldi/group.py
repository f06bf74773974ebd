"""The group ``seekable kaldi``, whose commands are imported when one of them, or their list, is needed."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer
from typer.core import TyperGroup

from seekable.cli.addresses import takes_addresses
from seekable.cli.options import examples

__all__ = ["app"]

EPILOG = examples("kaldi validate data/train", "kaldi COMMAND --help")


@cache
def _loaded() -> TyperGroup:
    from typer.main import get_group

    from seekable.cli.kaldi import copy, from_jsonl, head, index, shapes, to_parquet, validate

    commands = typer.Typer(rich_markup_mode=None)
    commands.command(epilog=copy.EPILOG)(takes_addresses(copy.copy))
    commands.command(epilog=head.EPILOG)(takes_addresses(head.head))
    commands.command(epilog=shapes.EPILOG)(takes_addresses(shapes.shapes))
    commands.command(epilog=index.EPILOG)(takes_addresses(index.index))
    commands.command(epilog=validate.EPILOG)(takes_addresses(validate.validate))
    commands.command("to-parquet", epilog=to_parquet.EPILOG)(takes_addresses(to_parquet.to_parquet))
    commands.command("from-jsonl", epilog=from_jsonl.EPILOG)(takes_addresses(from_jsonl.from_jsonl))
    return get_group(commands)


class _TableCommands(TyperGroup):
    """The commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        return _loaded().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _loaded().get_command(ctx, cmd_name)


app = typer.Typer(cls=_TableCommands, no_args_is_help=True, rich_markup_mode=None)


@app.callback(epilog=EPILOG)
def _kaldi() -> None:
    """Copy, show, check and convert tables of Kaldi.

    RSPECIFIER and WSPECIFIER are Kaldi's own: ark: or scp:, options, and extended filenames such as - and
    'gunzip -c a.gz |'. Commands on the command line run; those inside script files only with --pipes allow.
    """
