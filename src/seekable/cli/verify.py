"""``seekable verify``: compares files with their index."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.exits import ExitCode
from seekable.cli.shared_options import DataOptions, ExecutorOption, JobsOption, PathArgument, Shown, examples

if TYPE_CHECKING:
    from seekable.index.verification import Verification

EPILOG = examples(
    "verify corpus/                     size, time and both ends of each file",
    "verify --deep 'corpus/*.jsonl'     every byte and every offset",
    "verify --deep --decode corpus.jsonl",
    "verify --deep --executor ray /shared/corpus    on a cluster of Ray",
    "verify --deep --decode tokens/     and each id against the vocabulary of a token store",
    "verify --json corpus/ | jq -r '.problems[].path'",
)

_MOST_SHOWN = 20


def verify(
    path: PathArgument,
    *,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Read all of each file and compare it with the index (of tar, the headers)."
        ),
    ] = False,
    decode: Annotated[
        bool, typer.Option("--decode", help="Decode each record of the files that are good.")
    ] = False,
    jobs: JobsOption = None,
    executor: ExecutorOption = None,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Compare files with their index; nothing is written.

    Without --deep, size, modification time and the first and last 64 KiB of each file are compared, and all
    of the index is. A file that was rewritten in its middle, at the same size and time, is found by --deep
    only. The exit code is 3 where something is not as it was indexed. Of a pipeline file,
    the data files of all its sources are compared, after a check that they are those that it was saved with.
    Of tokens, the ends of documents are found again; of a token store --deep also compares all files with
    the digests in tokens.json, and --decode each id with the vocabulary.
    """
    from seekable.cli.data_argument import DataArgument, executor_of
    from seekable.cli.output import BuildWatch, write_document
    from seekable.dataset.pipeline.pipeline_file import is_pipeline_file
    from seekable.dataset.verify_data import verify as verify_data
    from seekable.dataset.verify_data import verify_sources
    from seekable.viewer.facts.json_documents import verification_document

    with closing(BuildWatch(shown=not shown.quiet)) as watch, executor_of(executor, jobs=jobs) as cluster:
        argument = DataArgument(path, data, shown)
        index = argument.index
        depth: dict[str, Any] = {"deep": deep, "decode": decode, "progress": watch}
        place: dict[str, Any] = {"index_dir": index.folder, "jobs": jobs, "executor": cluster}
        if is_pipeline_file(path):
            argument.refuse_options()
            found = verify_sources(argument.order(), **depth, **place)
        else:
            named: dict[str, Any] = {"format": argument.format, "allow": index.allow}
            found = verify_data(path, **named, **depth, **place)
    if shown.as_json:
        write_document(verification_document(path, found, deep=deep, decode=decode))
    else:
        _tell(path, found, deep=deep, decode=decode, quiet=shown.quiet)
    if found.problems:
        raise typer.Exit(ExitCode.MISMATCH)


def _tell(path: str, found: Verification, *, deep: bool, decode: bool, quiet: bool) -> None:
    from seekable.cli.output import printable, write_line
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.json_documents import in_words

    for problem in found.problems[:_MOST_SHOWN]:
        row = "" if problem.row is None else f", record {problem.row:,}"
        offset = "" if problem.offset is None else f", byte {problem.offset:,}"
        write_line(printable(f"{problem.path}{row}{offset}: {problem.kind}: {problem.message}"))
    if len(found.problems) > _MOST_SHOWN:
        write_line(f"and {len(found.problems) - _MOST_SHOWN:,} more; --json lists all")
    if quiet:
        return
    looked = (
        "every byte and every offset" if deep else "size, time and both ends of each file, all of the index"
    )
    if deep and found.unread:
        files = in_words(found.unread, "file")
        looked = f"every offset, and every byte but those of {files}, whose offsets came from another index"
    if deep and any(file.entry.format.partition("-")[0] == "tar" for file in found.indexed):
        looked = (
            "every header and every offset of the archives, and read every byte, of which no digest is kept"
        )
    looked += ", and each record decoded" * decode
    data = f"{in_words(found.records, 'record')} in {in_words(found.files, 'file')}"
    verdict = f"{in_words(len(found.problems), 'problem')} in" if found.problems else "good:"
    write_line(f"{path}: {verdict} {data}, {bytes_in_words(found.bytes)}; compared {looked}")
