"""``seekable head``: the first records."""

from __future__ import annotations

from typing import Annotated

import typer

from seekable.cli.options import (
    AllowOption,
    BosIdOption,
    EosIdOption,
    FormatOption,
    IndexDirOption,
    JobsOption,
    JsonOption,
    NoProgressOption,
    PathArgument,
    QuietOption,
    RefreshOption,
    TokenTypeOption,
    examples,
)

EPILOG = examples(
    "head corpus.jsonl",
    "head -n 100 corpus/ | jq -r .text",
    "head --json 'logs/*.txt'",
)


def head(  # noqa: PLR0913 - an argument for each of its options
    path: PathArgument,
    *,
    count: Annotated[int, typer.Option("-n", metavar="N", min=0, help="How many records.")] = 5,
    format_name: FormatOption = None,
    dtype: TokenTypeOption = None,
    eos: EosIdOption = None,
    bos: BosIdOption = None,
    index_dir: IndexDirOption = None,
    allow: AllowOption = None,
    refresh: RefreshOption = True,
    jobs: JobsOption = None,
    no_progress: NoProgressOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print the first records, as they are in the file.

    Each is followed by a newline; rows of tables are printed as JSON. With --json, each is a document that
    also says where the record lies.
    """
    from seekable.cli.data_argument import Opening
    from seekable.cli.records import write_records

    opening = Opening(
        path,
        format=format_name,
        index_dir=index_dir,
        allow=allow,
        jobs=jobs,
        progress=not no_progress,
        quiet=quiet,
        dtype=dtype,
        eos=eos,
        bos=bos,
        refresh=refresh,
    )
    records = opening.open()
    write_records(
        records, range(count if records.size is None else min(count, records.size)), as_json=as_json
    )
