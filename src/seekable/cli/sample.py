"""``seekable sample``: random records, the same ones each time."""

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
    "sample corpus.jsonl",
    "sample -n 1000 --seed 7 'corpus/*.jsonl' > sample.jsonl",
    "sample --json corpus/ | jq .location.path",
)


def sample(  # noqa: PLR0913 - an argument for each of its options
    path: PathArgument,
    *,
    count: Annotated[int, typer.Option("-n", metavar="N", min=0, help="How many records.")] = 20,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="Which sample: 0 to 2**64 - 1.")] = 0,
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
    """Print random records, none twice, as they are in the file.

    They are the first N of open(PATH).shuffle(seed=SEED): always the same ones, and those of a smaller
    sample come first in a larger one. Each is followed by a newline; rows of tables are printed as JSON.
    With --json, each is a document that also says where the record lies.
    """
    from seekable.cli.data_argument import Opening
    from seekable.cli.records import write_records
    from seekable.dataset.dataset import from_sequence
    from seekable.nodes.graph import known_size

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
    # A shuffle depends on seed and length alone, so that of the row numbers is that of the records.
    rows = from_sequence(range(known_size(records, "sample"))).shuffle(seed=seed)[:count]
    write_records(records, rows, as_json=as_json)
