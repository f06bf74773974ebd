"""The commands of the group ``seekable kaldi``."""

from __future__ import annotations

import typer

from seekable.cli.kaldi import copy, from_jsonl, head, index, shapes, to_parquet, validate

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None)
app.command(epilog=copy.EPILOG)(copy.copy)
app.command(epilog=head.EPILOG)(head.head)
app.command(epilog=shapes.EPILOG)(shapes.shapes)
app.command(epilog=index.EPILOG)(index.index)
app.command(epilog=validate.EPILOG)(validate.validate)
app.command("to-parquet", epilog=to_parquet.EPILOG)(to_parquet.to_parquet)
app.command("from-jsonl", epilog=from_jsonl.EPILOG)(from_jsonl.from_jsonl)
