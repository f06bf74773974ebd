"""``seekable kaldi from-jsonl``: JSON lines as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.kaldi.table_options import PipesChoice, PipesOption, PrecisionOption
from seekable.cli.options import JsonOption, NoProgressOption, QuietOption, examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.formats.kaldi.files.pipes import Pipes

EPILOG = examples(
    "kaldi from-jsonl vectors.jsonl ark,scp:v.ark,v.scp --key id --value vector --holder vector",
    "kaldi from-jsonl - ark,t:text --key utt --value words --holder token-vector < words.jsonl",
    "kaldi from-jsonl --holder matrix feats.jsonl.gz ark:feats.ark",
)


def _field(name: str) -> Any:
    return typer.Option(f"--{name}", metavar="FIELD", help=f"The field of a line that is the {name}.")


def from_jsonl(  # noqa: PLR0913 - an argument for each of its options
    source: Annotated[
        str,
        typer.Argument(metavar="IN", help="The JSON lines: a file, or - for stdin.", show_default=False),
    ],
    wspecifier: Annotated[
        str,
        typer.Argument(
            metavar="WSPECIFIER",
            help="The table to write, such as ark,scp:a.ark,a.scp or ark,t:-.",
            show_default=False,
        ),
    ],
    *,
    holder: Annotated[
        str,
        typer.Option(
            "--holder",
            metavar="NAME",
            help="The type of the objects: matrix, vector, int32-vector, token, posterior, wave and so on.",
            show_default=False,
        ),
    ],
    key: Annotated[str, _field("key")] = "key",
    value: Annotated[str, _field("value")] = "value",
    precision: PrecisionOption = None,
    atomic: Annotated[
        bool, typer.Option("--atomic", help="Give files their names at the end; after an error none is left.")
    ] = False,
    pipes: PipesOption = PipesChoice.SPECIFIER,
    no_progress: NoProgressOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a table from JSON lines, with one field of each as the key and another one as the object.

    Objects have the form in which `seekable kaldi head --json` prints them: a matrix is a list of rows, a
    posterior a list of frames. A number is a key too. Compressed files are read.
    """
    from seekable.cli.kaldi.entry_count import counted, print_outcome, writing
    from seekable.cli.kaldi.json_values import from_json
    from seekable.cli.kaldi.targets import is_on_stdout
    from seekable.kaldi import Writer
    from seekable.viewer.facts.documents import json_safe

    options: dict[str, Any] = {} if precision is None else {"precision": precision}
    on_stdout = is_on_stdout(wspecifier)
    with (
        counted("Wrote", shown=not no_progress and not quiet, on_stdout=on_stdout) as entries,
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
        as_json=as_json,
        quiet=quiet,
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

    from seekable.errors import CorruptRecord

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
    from seekable.errors import MissingColumn

    if not isinstance(document, dict) or field not in document:
        found = f"the fields {sorted(document)}" if isinstance(document, dict) else type(document).__name__
        message = f"a line must be an object with the field {field!r} (got {found[:200]})"
        raise MissingColumn(message)
    return document[field]


def _key(value: Any) -> str:
    """Return a key as text; an integer is one too."""
    from seekable.errors import BadKey

    if isinstance(value, bool) or not isinstance(value, str | int):
        message = f"a key must be text without white space, or an integer (got {value!r})"
        raise BadKey(message)
    return str(value)
