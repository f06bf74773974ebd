"""``seekable kaldi copy``, ``to-parquet`` and ``from-jsonl``: tables copied, converted, made from lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from seekable.cli.shared_options import (
    PipesChoice,
    PipesOption,
    PrecisionOption,
    RspecifierArgument,
    Shown,
    TableOptions,
    argument,
    examples,
    option,
)
from seekable.errors import BadKey, CorruptRecord, InvalidArgument, MissingColumn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.cli.kaldi.named_tables import EntryCount
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.kaldi import Holder


COPY_EPILOG = examples(
    "kaldi copy scp:feats.scp ark,scp:copy.ark,copy.scp",
    "kaldi copy 'ark:gunzip -c ali.1.gz |' ark,t:- --holder int32-vector | head",
    "kaldi copy ark:feats.ark ark:small.ark --compress 2",
    "kaldi copy scp:feats.scp ark:part.ark --include keys.txt",
    "kaldi copy scp:feats.scp ark:cut.ark --segments segments --frame-shift 0.01",
    "kaldi copy final.mat - --text      one object, and no table",
)


def copy(  # noqa: PLR0913 - an argument for each of its options
    source: Annotated[
        str,
        argument(
            "RSPECIFIER", "The table to read, such as scp:feats.scp or ark:-; or the filename of one object."
        ),
    ],
    target: Annotated[
        str,
        argument("WSPECIFIER", "The table to write, such as ark,scp:a.ark,a.scp or ark,t:-; or a filename."),
    ],
    *,
    to_holder: Annotated[
        str | None,
        option(
            "--to-holder",
            "NAME",
            "The type of the objects that are written; the one that is read if left out.",
        ),
    ] = None,
    compress: Annotated[
        int | None,
        option(
            "--compress",
            "METHOD",
            "Write compressed matrices by one of Kaldi's methods; 1 chooses 2 or 3 by the number of rows.",
            least=1,
            most=7,
        ),
    ] = None,
    precision: PrecisionOption = None,
    include: Annotated[
        str | None,
        option("--include", "FILE", "Copy only the keys of this file: the first word of each line."),
    ] = None,
    exclude: Annotated[str | None, option("--exclude", "FILE", "Leave out the keys of this file.")] = None,
    segments: Annotated[
        str | None,
        option(
            "--segments",
            "FILE",
            "Write parts of objects, as lines KEY OLD-KEY START END say: rows, or seconds of waves.",
        ),
    ] = None,
    frame_shift: Annotated[
        float | None, option("--frame-shift", "SECONDS", "The time of a row; --segments has seconds then.")
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Write one object as text; of a table, the option t says that.")
    ] = False,
    atomic: Annotated[
        bool,
        typer.Option("--atomic", help="Give files their names at the end; after an error nothing is left."),
    ] = False,
    append: Annotated[bool, typer.Option("--append", help="Write after the entries that are there.")] = False,
    table: TableOptions,
    shown: Shown,
) -> None:
    """Copy a table of Kaldi, and convert its objects.

    It stands in pipes as Kaldi's own commands do. A torn entry, an unreadable file and a failed command are
    errors, after the entries before them were written. Commands of the two specifiers run.
    """
    from seekable.cli.kaldi.named_tables import chosen_holder, print_outcome
    from seekable.cli.kaldi.table_passes import CopyJob, copy_object, copy_table, is_table
    from seekable.viewer.facts.json_documents import json_safe

    found = chosen_holder(table.holder, source, table.pipes.value)
    job = CopyJob(
        source,
        target,
        holder=found,
        to_holder=_target_holder(found, to_holder, compress),
        options=_given(precision=precision, method=compress),
        pipes=table.pipes.value,
    )
    if is_table(source, target):
        _refuse("a table", {"--text": text})
        done = copy_table(
            job,
            include=include,
            exclude=exclude,
            segments=segments,
            frame_shift=frame_shift,
            files=_given(atomic=atomic or None, append=append or None),
            shown=not shown.quiet,
        )
    else:
        given = {"--include": include, "--exclude": exclude, "--segments": segments, "--append": append}
        _refuse("one object", given)
        done = copy_object(job, text=text, atomic=atomic)
    print_outcome(
        {"copied": done.copied, "read": done.read, "holder": job.to_holder, "target": json_safe(target)},
        done.in_words(job.to_holder),
        as_json=shown.as_json,
        quiet=shown.quiet,
        on_stdout=done.is_on_stdout,
    )


def _target_holder(holder: str, to_holder: str | None, compress: int | None) -> str:
    if compress is None:
        return holder if to_holder is None else to_holder
    if to_holder not in {None, "compressed-matrix"}:
        raise typer.BadParameter(f"--compress writes compressed matrices, and --to-holder is {to_holder}")
    return "compressed-matrix"


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _refuse(what: str, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value:
            raise typer.BadParameter(f"{name} has no meaning for {what}")


TO_PARQUET_EPILOG = examples(
    "kaldi to-parquet scp:feats.scp feats.parquet",
    "kaldi to-parquet ark:feats.ark feats.parquet --flat",
    "kaldi to-parquet 'ark:gunzip -c ali.1.gz |' ali.parquet --holder int32-vector",
)

_ROW_GROUP_ROWS = 1 << 16
"""The most rows of a row group, which also ends at 64 MiB."""

FROM_JSONL_EPILOG = examples(
    "kaldi from-jsonl vectors.jsonl ark,scp:v.ark,v.scp --key id --value vector --holder vector",
    "kaldi from-jsonl - ark,t:text --key utt --value words --holder token-vector < words.jsonl",
    "kaldi from-jsonl --holder matrix feats.jsonl.gz ark:feats.ark",
)


def to_parquet(
    rspecifier: RspecifierArgument,
    out: Annotated[str, argument("OUT", "The file to write: *.parquet.")],
    *,
    flat: Annotated[
        bool, typer.Option("--flat", help="Matrices as one list, with their shape in a column beside it.")
    ] = False,
    compression: Annotated[
        str, typer.Option("--compression", metavar="NAME", help="zstd, snappy, gzip, brotli, lz4 or none.")
    ] = "zstd",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    table: TableOptions,
    shown: Shown,
) -> None:
    """Write a table as a Parquet file, with the columns key and value.

    The types of the columns are those of the objects: a matrix is a list of its rows, a posterior a list of
    frames. The file appears whole or not at all. Memory is bounded, however long the table is.
    """
    from seekable.cli.kaldi.named_tables import as_rspecifier, chosen_holder, counted, print_outcome
    from seekable.kaldi import SequentialReader, find_holder
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.json_documents import json_safe

    _check(out, overwrite=overwrite)
    rspecifier = as_rspecifier(rspecifier)
    found = find_holder(chosen_holder(table.holder, rspecifier, table.pipes.value))
    with (
        counted("Wrote", shown=not shown.quiet) as entries,
        SequentialReader(rspecifier, found, pipes=table.pipes.value) as reader,
    ):
        size = _write(reader, found, out, entries, compression, flat=flat)
    print_outcome(
        {"path": json_safe(out), "rows": entries.done, "bytes": size},
        f"{entries.in_words()} to {out} ({bytes_in_words(size)})",
        as_json=shown.as_json,
        quiet=shown.quiet,
    )


def _check(out: str, *, overwrite: bool) -> None:
    from seekable.storage.paths import exists

    if exists(out) and not overwrite:
        raise InvalidArgument(f"{out!r} is there already: name another file, or replace it with --overwrite")


def _write(
    reader: Any, holder: Holder, out: str, entries: EntryCount, compression: str, *, flat: bool
) -> int:
    """Write the entries of a reader; return the size of the file in bytes."""
    from seekable.cli.kaldi.object_forms import table_columns
    from seekable.formats.tables.parquet_writer import parquet
    from seekable.writing.target import write_whole

    columns = table_columns(holder, flat=flat)
    form = parquet(
        schema=columns.schema,
        compression=None if compression == "none" else compression,
        row_group_rows=_ROW_GROUP_ROWS,
    ).of_one_file(out)

    def pairs() -> Any:
        for pair in reader:
            yield pair
            entries.count()
        reader.close()  # A failed command is an error before the file appears.

    def write(file: BinaryIO, _: Sequence[BinaryIO]) -> None:
        form.write(file, columns.batches(pairs()), first=0)

    return write_whole(out, write, form=form, named=lambda _: "an entry")


def _field(name: str) -> Any:
    return typer.Option(f"--{name}", metavar="FIELD", help=f"The field of a line that is the {name}.")


def from_jsonl(  # noqa: PLR0913 - an argument for each of its options
    source: Annotated[str, argument("IN", "The JSON lines: a file, or - for stdin.")],
    wspecifier: Annotated[
        str, argument("WSPECIFIER", "The table to write, such as ark,scp:a.ark,a.scp or ark,t:-.")
    ],
    *,
    holder: Annotated[
        str,
        option(
            "--holder",
            "NAME",
            "The type of the objects: matrix, vector, int32-vector, token, posterior, wave and so on.",
        ),
    ],
    key: Annotated[str, _field("key")] = "key",
    value: Annotated[str, _field("value")] = "value",
    precision: PrecisionOption = None,
    atomic: Annotated[
        bool, typer.Option("--atomic", help="Give files their names at the end; after an error none is left.")
    ] = False,
    pipes: PipesOption = PipesChoice.SPECIFIER,
    shown: Shown,
) -> None:
    """Write a table from JSON lines, with one field of each as the key and another one as the object.

    Objects have the form in which `seekable kaldi head --json` prints them: a matrix is a list of rows, a
    posterior a list of frames. A number is a key too. Compressed files are read.
    """
    from seekable.cli.kaldi.named_tables import counted, is_on_stdout, print_outcome, writing
    from seekable.cli.kaldi.object_forms import from_json
    from seekable.kaldi import Writer
    from seekable.viewer.facts.json_documents import json_safe

    options: dict[str, Any] = {} if precision is None else {"precision": precision}
    on_stdout = is_on_stdout(wspecifier)
    with (
        counted("Wrote", shown=not shown.quiet, on_stdout=on_stdout) as entries,
        Writer(wspecifier, holder, pipes=pipes.value, atomic=atomic, **options) as writer,
    ):
        for number, document in _documents(source, pipes.value):
            with writing(holder, f"this is line {number:,} of {source!r}"):
                name = _key(_value(document, key))
                writer.write(name, from_json(_value(document, value), holder))
            entries.count()
    print_outcome(
        {"entries": entries.done, "holder": holder, "target": json_safe(wspecifier)},
        f"{entries.in_words()} ({holder})",
        as_json=shown.as_json,
        quiet=shown.quiet,
        on_stdout=on_stdout,
    )


def _documents(source: str, pipes: Pipes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the content of each line that is not blank."""
    from seekable.kaldi import open_rx

    offset = 0
    with open_rx(source, header=False, pipes=pipes) as file:
        for number, line in enumerate(file, 1):
            if not line.isspace():
                yield number, _decoded(line, source, number, offset)
            offset += len(line)


def _decoded(line: bytes, source: str, number: int, offset: int) -> Any:
    """Return the content of a line of JSON, also with NaN and Infinity, which only Python takes."""
    import json

    import msgspec

    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            raise CorruptRecord(
                source, number - 1, offset=offset, length=len(line.rstrip()), preview=line, cause=error
            ) from None


def _value(document: Any, field: str) -> Any:
    if not isinstance(document, dict) or field not in document:
        found = f"the fields {sorted(document)}" if isinstance(document, dict) else type(document).__name__
        raise MissingColumn(f"a line must be an object with the field {field!r} (got {found[:200]})")
    return document[field]


def _key(value: Any) -> str:
    """Return a key as text; an integer is one too."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadKey(f"a key must be text without white space, or an integer (got {value!r})")
    return str(value)
