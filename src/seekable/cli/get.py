"""``seekable get``: some records by their numbers."""

from __future__ import annotations

from typing import Annotated

import typer

from seekable.cli.options import (
    FormatOption,
    IndexDirOption,
    JobsOption,
    JsonOption,
    NoProgressOption,
    PathArgument,
    QuietOption,
    examples,
)

EPILOG = examples(
    "get corpus.jsonl 5 | jq .text",
    "get corpus.jsonl 0 -1             the first and the last",
    "get --json 'corpus/*.jsonl' 70000 | jq .location",
)


def get(  # noqa: PLR0913 - an argument for each of its options
    path: PathArgument,
    rows: Annotated[
        list[str],
        typer.Argument(
            metavar="ROW", help="Numbers of records, from 0; from the end if negative.", show_default=False
        ),
    ],
    *,
    format_name: FormatOption = None,
    index_dir: IndexDirOption = None,
    jobs: JobsOption = None,
    no_progress: NoProgressOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print records, in the order asked, as they are in the file.

    Each is followed by a newline; rows of tables are printed as JSON. With --json, each is a document that
    also says where the record lies.
    """
    from seekable.cli.data_argument import Opening
    from seekable.cli.records import write_records
    from seekable.dataset.dataset import Dataset

    numbers = [_number(row) for row in rows]
    opening = Opening(
        path, format=format_name, index_dir=index_dir, jobs=jobs, progress=not no_progress, quiet=quiet
    )
    records = opening.open()
    Dataset(records).locate(numbers)  # Before anything is printed, all rows are known to be there.
    size = records.size
    write_records(records, [number if size is None else number % size for number in numbers], as_json=as_json)


def _number(row: str) -> int:
    try:
        return int(row)
    except ValueError:
        # A row that counts from the end looks like an option, so unknown options come here as rows.
        what = "no such option, and no row" if row.startswith("-") else "not the number of a row"
        raise typer.BadParameter(f"{what}: {row!r}; a row is an integer", param_hint="ROW") from None
