"""``seekable kaldi head`` and ``shapes``: the entries of a table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from seekable.cli.shared_options import (
    PrecisionOption,
    RspecifierArgument,
    Shown,
    TableOptions,
    examples,
)
from seekable.errors import InvalidArgument

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
