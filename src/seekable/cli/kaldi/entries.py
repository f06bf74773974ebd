"""``seekable kaldi head``, ``shapes`` and ``validate``: the entries of a table, shown and checked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.exits import ExitCode
from seekable.cli.shared_options import (
    PrecisionOption,
    RspecifierArgument,
    Shown,
    TableOptions,
    argument,
    examples,
    option,
)
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from seekable.cli.kaldi.table_passes import TableCheck
    from seekable.kaldi import Repair


HEAD_EPILOG = examples(
    "kaldi head scp:feats.scp -n 1",
    "kaldi head ark:ali.ark --holder int32-vector --json | jq -c .value",
    "kaldi head 'ark:gunzip -c post.1.gz |' --holder posterior",
)
SHAPES_EPILOG = examples(
    "kaldi shapes scp:feats.scp > utt2shape",
    "kaldi shapes scp:feats.scp | cut -d ' ' -f 1,2 > utt2num_frames",
    "kaldi shapes scp:wav.scp | cut -d ' ' -f 1,4 > utt2dur",
    "kaldi shapes ark:ali.ark --holder int32-vector --json | jq -c .shape",
)


def head(
    rspecifier: RspecifierArgument,
    *,
    count: Annotated[int, typer.Option("-n", metavar="N", min=0, help="How many entries.")] = 5,
    precision: PrecisionOption = None,
    table: TableOptions,
    shown: Shown,
) -> None:
    """Print the first entries of a table, as a text archive has them.

    Types without a text form, such as waves, are printed as JSON after the key. With --json, each entry is a
    document that `seekable kaldi from-jsonl` reads back; numbers have all their digits there.
    """
    from seekable.cli.kaldi.named_tables import as_rspecifier, chosen_holder
    from seekable.kaldi import SequentialReader, find_holder

    rspecifier = as_rspecifier(rspecifier)
    options = {} if precision is None else {"precision": precision}
    found = find_holder(chosen_holder(table.holder, rspecifier, table.pipes.value), **options)
    with SequentialReader(rspecifier, found, pipes=table.pipes.value) as reader:
        for number in range(count):
            if number:
                reader.next()
            if reader.done:
                break
            _print(reader.key, reader.value, found, as_json=shown.as_json)


def _print(key: str, value: Any, holder: Any, *, as_json: bool) -> None:
    from seekable.cli.kaldi.object_forms import to_json
    from seekable.cli.output import write, write_document
    from seekable.formats.kaldi.basic_types import encoded

    if as_json:
        write_document({"key": key, "value": to_json(value)})
    else:
        write(encoded(key) + b" " + _text(value, holder))


def _text(value: Any, holder: Any) -> bytes:
    """Return the text form of an object with a line end; JSON, if it has none."""
    import io

    from seekable.cli.kaldi.object_forms import to_json
    from seekable.formats.lines.jsonl_writer import json_text

    file = io.BytesIO()
    try:
        holder.write(file, value, binary=False)
    except InvalidArgument:
        return json_text(to_json(value)) + b"\n"
    text = file.getvalue()
    return text if text.endswith(b"\n") else text + b"\n"


def shapes(
    rspecifier: RspecifierArgument,
    *,
    table: TableOptions,
    shown: Shown,
) -> None:
    """Print the key and the shape of each object of a table.

    Shapes come from headers where objects have them, and no values are decoded then. A matrix has rows and
    columns; a wave has channels and samples, followed by its seconds.
    """
    from seekable.cli.kaldi.named_tables import as_rspecifier, chosen_holder
    from seekable.cli.kaldi.object_forms import ShapeHolder
    from seekable.cli.output import write_document, write_line
    from seekable.kaldi import SequentialReader, find_holder
    from seekable.viewer.facts.json_documents import json_safe

    rspecifier = as_rspecifier(rspecifier)
    shape = ShapeHolder(find_holder(chosen_holder(table.holder, rspecifier, table.pipes.value)))
    with SequentialReader(rspecifier, shape, pipes=table.pipes.value) as reader:
        for key, found in reader:
            if shown.as_json:
                write_document({"key": json_safe(key), **found.fields()})
            else:
                write_line(" ".join([key, *map(str, found.numbers())]))


VALIDATE_EPILOG = examples(
    "kaldi validate data/train                            a data directory",
    "kaldi validate feats.scp",
    "kaldi validate 'ark:gunzip -c ali.1.gz |' --holder int32-vector --no-sort",
    "kaldi validate feats.ark --repair    cut a torn last entry",
)

_MOST_SHOWN = 20


def validate(
    path: Annotated[str, argument("PATH", "A data directory, an .ark or .scp file, or an rspecifier.")],
    *,
    no_sort: Annotated[
        bool, typer.Option("--no-sort", help="Accept the keys of a table in any order.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Cut a torn last entry off an archive, then check it.")
    ] = False,
    script: Annotated[
        str | None,
        option("--script", "FILE", "The script of offsets of the archive, which --repair makes fit."),
    ] = None,
    table: TableOptions,
    shown: Shown,
) -> None:
    """Check a table, or a data directory.

    Each object of a table is read; keys must be sorted and occur once. A data directory is checked as
    utils/validate_data_dir.sh does. The exit code is 3 where something is wrong.
    """
    from seekable.cli.kaldi.named_tables import as_rspecifier, looks_like_a_table
    from seekable.storage.paths import is_folder

    if script is not None and not repair:
        raise typer.BadParameter("--script is for --repair", param_hint="--script")
    if repair:
        _repair(path, table.holder, script, quiet=shown.quiet or shown.as_json)
    folder = path if os.path.isdir(path) else path.removeprefix("kaldi:")
    if folder != path or (not looks_like_a_table(path) and is_folder(path)):
        found = _checked_directory(folder)
    else:
        rspecifier = as_rspecifier(path)
        check = _checked_table(
            rspecifier, table.holder, is_sorted=not no_sort, pipes=table.pipes.value, shown=not shown.quiet
        )
        found = _of_table(rspecifier, check)
    _print_check(path, found, as_json=shown.as_json, quiet=shown.quiet)
    if not found["good"]:
        raise typer.Exit(ExitCode.MISMATCH)


def _checked_directory(path: str) -> dict[str, Any]:
    """Return the document about a data directory."""
    from seekable.kaldi import validate_directory
    from seekable.viewer.facts.json_documents import json_safe

    problems = [
        {
            "kind": each.level,
            "path": json_safe(each.path),
            "line": each.line,
            "key": None,
            "message": json_safe(each.message),
        }
        for each in validate_directory(path)
    ]
    good = not any(each["kind"] == "error" for each in problems)
    return {"good": good, "problems": problems, "problem_count": len(problems)}


def _checked_table(
    rspecifier: str, holder: str | None, *, is_sorted: bool, pipes: Any, shown: bool
) -> TableCheck:
    from seekable.cli.kaldi.named_tables import chosen_holder, counted
    from seekable.cli.kaldi.table_passes import check_table
    from seekable.kaldi import find_holder

    with counted("Checked", shown=shown) as entries:
        return check_table(
            rspecifier,
            find_holder(chosen_holder(holder, rspecifier, pipes)),
            is_sorted=is_sorted,
            pipes=pipes,
            count=entries.count,
        )


def _of_table(rspecifier: str, check: TableCheck) -> dict[str, Any]:
    """Return the document about a table."""
    from seekable.viewer.facts.json_documents import json_safe

    problems = [
        {
            "kind": each.kind,
            "path": json_safe(rspecifier),
            "line": None,
            "key": None if each.key is None else json_safe(each.key),
            "message": json_safe(each.message),
        }
        for each in check.problems
    ]
    return {
        "good": not problems,
        "entries": check.entries,
        "problems": problems,
        "problem_count": check.problem_count,
    }


def _repair(path: str, holder: str | None, script: str | None, *, quiet: bool) -> None:
    """Cut a torn last entry off an archive, and say so on stderr."""
    from seekable.cli.kaldi.named_tables import as_rspecifier, chosen_holder
    from seekable.cli.output import tell
    from seekable.kaldi import parse_rspecifier
    from seekable.kaldi import repair as cut

    rspecifier = as_rspecifier(path)
    specifier = parse_rspecifier(rspecifier)
    if specifier.kind != "ark" or os.path.isdir(path):
        raise typer.BadParameter("--repair cuts archives; name one", param_hint="--repair")
    done = cut(specifier.rxfilename, chosen_holder(holder, rspecifier, "refuse"), script=script)
    if not quiet:
        tell(_repair_in_words(done))


def _repair_in_words(done: Repair) -> str:
    if not done.changed:
        return f"{done.path}: not torn, nothing was cut"
    return f"{done.path}: cut {done.bytes_cut:,} bytes of a torn entry; {done.entries:,} entries are kept"


def _print_check(path: str, found: dict[str, Any], *, as_json: bool, quiet: bool) -> None:
    from seekable.cli.kaldi.named_tables import entries_in_words
    from seekable.cli.output import write_document, write_line
    from seekable.viewer.facts.json_documents import in_words, json_safe

    if as_json:
        write_document({"path": json_safe(path), **found})
        return
    problems, count = found["problems"], found["problem_count"]
    for each in problems[:_MOST_SHOWN]:
        line = "" if each["line"] is None else f", line {each['line']:,}"
        write_line(f"{each['path']}{line}: {each['kind']}: {each['message']}")
    if count > _MOST_SHOWN:
        write_line(f"and {count - _MOST_SHOWN:,} more; --json lists more of them")
    if not quiet:
        verdict = "good" if found["good"] else "bad"
        counts = [in_words(count, "problem")] if problems else []
        if "entries" in found:
            counts.append(entries_in_words(found["entries"], found["entries"]))
        write_line(": ".join([f"{path}: {verdict}", ", ".join(counts)]) if counts else f"{path}: {verdict}")
