"""The group of commands ``seekable kaldi``."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from seekable.cli.kaldi import copy, from_jsonl, head, index, shapes, to_parquet, validate
from seekable.cli.options import examples

__all__ = ["app"]

EPILOG = examples("kaldi validate data/train", "kaldi COMMAND --help")


class _TableCommands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        from seekable.errors import InvalidArgument, PipeRefused

        try:
            return super().invoke(ctx)
        except PipeRefused as error:
            error.add_note("on the command line that is --pipes allow")
            raise
        except InvalidArgument as error:
            if "holder=" in str(error):
                error.add_note("on the command line that is --holder NAME")
            raise


app = typer.Typer(cls=_TableCommands, no_args_is_help=True, rich_markup_mode=None)


@app.callback(epilog=EPILOG)
def _kaldi() -> None:
    """Copy, show, check and convert tables of Kaldi.

    RSPECIFIER and WSPECIFIER are Kaldi's own: ark: or scp:, options, and extended filenames such as - and
    'gunzip -c a.gz |'. Commands on the command line run; those inside script files only with --pipes allow.
    """


app.command(epilog=copy.EPILOG)(copy.copy)
app.command(epilog=head.EPILOG)(head.head)
app.command(epilog=shapes.EPILOG)(shapes.shapes)
app.command(epilog=index.EPILOG)(index.index)
app.command(epilog=validate.EPILOG)(validate.validate)
app.command("to-parquet", epilog=to_parquet.EPILOG)(to_parquet.to_parquet)
app.command("from-jsonl", epilog=from_jsonl.EPILOG)(from_jsonl.from_jsonl)
