"""``seekable kaldi head``: the first entries of a table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from seekable.cli.kaldi.table_options import (
    HolderOption,
    PipesChoice,
    PipesOption,
    PrecisionOption,
    RspecifierArgument,
)
from seekable.cli.options import JsonOption, examples

EPILOG = examples(
    "kaldi head scp:feats.scp -n 1",
    "kaldi head ark:ali.ark --holder int32-vector --json | jq -c .value",
    "kaldi head 'ark:gunzip -c post.1.gz |' --holder posterior",
)


def head(
    rspecifier: RspecifierArgument,
    *,
    holder: HolderOption = None,
    count: Annotated[int, typer.Option("-n", metavar="N", min=0, help="How many entries.")] = 5,
    precision: PrecisionOption = None,
    pipes: PipesOption = PipesChoice.SPECIFIER,
    as_json: JsonOption = False,
) -> None:
    """Print the first entries of a table, as a text archive has them.

    Types without a text form, such as waves, are printed as JSON behind the key. With --json, each entry is a
    document that `seekable kaldi from-jsonl` reads back; numbers have all their digits there.
    """
    from seekable.cli.kaldi.holder_choice import chosen_holder
    from seekable.cli.kaldi.targets import as_rspecifier
    from seekable.kaldi import SequentialReader, find_holder

    rspecifier = as_rspecifier(rspecifier)
    options = {} if precision is None else {"precision": precision}
    found = find_holder(chosen_holder(holder, rspecifier, pipes.value), **options)
    with SequentialReader(rspecifier, found, pipes=pipes.value) as reader:
        for number in range(count):
            if number:
                reader.next()
            if reader.done:
                break
            _print(reader.key, reader.value, found, as_json=as_json)


def _print(key: str, value: Any, holder: Any, *, as_json: bool) -> None:
    from seekable.cli.kaldi.json_values import to_json
    from seekable.cli.output import write, write_document

    if as_json:
        write_document({"key": key, "value": to_json(value)})
    else:
        write(key.encode("utf-8", "surrogateescape") + b" " + _text(value, holder))


def _text(value: Any, holder: Any) -> bytes:
    """Return the text form of an object with a line end; JSON, if it has none."""
    import io

    from seekable.cli.kaldi.json_values import to_json
    from seekable.errors import InvalidArgument
    from seekable.formats.lines.jsonl_writer import json_text

    file = io.BytesIO()
    try:
        holder.write(file, value, binary=False)
    except InvalidArgument:
        return json_text(to_json(value)) + b"\n"
    text = file.getvalue()
    return text if text.endswith(b"\n") else text + b"\n"
