"""The group ``seekable kaldi``, whose commands are imported late."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer
from typer.core import TyperGroup

from seekable.cli.addresses import takes_addresses
from seekable.cli.options import examples

_EPILOG = examples("kaldi validate data/train", "kaldi COMMAND --help")


@cache
def _loaded() -> TyperGroup:
    from typer.main import get_group

    from seekable.cli.kaldi import conversions, copy, entries, validate

    commands = typer.Typer(rich_markup_mode=None)
    commands.command(epilog=copy.EPILOG)(takes_addresses(copy.copy))
    commands.command(epilog=entries.HEAD_EPILOG)(takes_addresses(entries.head))
    commands.command(epilog=entries.SHAPES_EPILOG)(takes_addresses(entries.shapes))
    commands.command(epilog=entries.INDEX_EPILOG)(takes_addresses(entries.index))
    commands.command(epilog=validate.EPILOG)(takes_addresses(validate.validate))
    commands.command(epilog=conversions.TO_PARQUET_EPILOG)(takes_addresses(conversions.to_parquet))
    commands.command(epilog=conversions.FROM_JSONL_EPILOG)(takes_addresses(conversions.from_jsonl))
    return get_group(commands)


class _TableCommands(TyperGroup):
    """The commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        return _loaded().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _loaded().get_command(ctx, cmd_name)


app = typer.Typer(cls=_TableCommands, no_args_is_help=True, rich_markup_mode=None)


@app.callback(epilog=_EPILOG)
def _kaldi() -> None:
    """Copy, show, check and convert tables of Kaldi.

    RSPECIFIER and WSPECIFIER are Kaldi's own: ark: or scp:, options, and extended filenames such as - and
    'gunzip -c a.gz |'. Commands on the command line run; those inside script files only with --pipes allow.
    """
