"""``seekable kaldi copy``: tables and single objects, copied and converted."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from seekable.cli.shared_options import PrecisionOption, Shown, TableOptions, argument, examples, option

EPILOG = examples(
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
