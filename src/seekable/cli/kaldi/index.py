"""``seekable kaldi index``: the index of tables, before they are read."""

from __future__ import annotations

from typing import Annotated

import typer

from seekable.cli.kaldi.table_options import HolderOption
from seekable.cli.options import (
    ExecutorOption,
    IndexDirOption,
    JobsOption,
    JsonOption,
    NoProgressOption,
    QuietOption,
    examples,
)

EPILOG = examples(
    "kaldi index scp:feats.scp",
    "kaldi index 'ark:feats.*.ark' --holder matrix",
    "kaldi index ali.ark --holder int32-vector",
)


def index(  # noqa: PLR0913 - an argument for each option
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Tables: .ark and .scp files, quoted globs of them, or rspecifiers.",
            show_default=False,
        ),
    ],
    *,
    holder: HolderOption = None,
    index_dir: IndexDirOption = None,
    jobs: JobsOption = None,
    executor: ExecutorOption = None,
    no_progress: NoProgressOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Index tables: only what is new or was changed.

    sk.open and random access find an entry by its key, or by its number, in the index. Archives are skipped
    through by the headers of their objects; of a script, the lines are indexed.
    """
    from seekable.cli.data_argument import Opening
    from seekable.cli.executors import executor_of
    from seekable.cli.index import indexed, indexed_in_words
    from seekable.cli.kaldi.targets import as_rspecifier
    from seekable.cli.output import write_document, write_line

    documents = []
    with executor_of(executor, jobs=jobs) as cluster:
        for path in paths:
            opening = Opening(
                as_rspecifier(path),
                format=None,
                holder=holder,
                index_dir=index_dir,
                jobs=jobs,
                executor=cluster,
                progress=not no_progress,
                quiet=quiet,
            )
            documents.append(indexed(opening))
            if not as_json and not quiet:
                write_line(indexed_in_words(path, documents[-1]))
    if as_json:
        write_document({"datasets": documents})
