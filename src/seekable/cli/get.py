"""``seekable get``: some records by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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
from seekable.cli.pack_options import (
    KeyOption,
    LongOption,
    MethodOption,
    MostOption,
    NextTokenOption,
    OrderOption,
    SeedOption,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.cli.pack_options import PackArguments
    from seekable.dataset.dataset import Dataset

EPILOG = examples(
    "get corpus.jsonl 5 | jq .text",
    "get corpus.jsonl 0 -1             the first and the last",
    "get --json 'corpus/*.jsonl' 70000 | jq .location",
    "get tokens/ 123 --decode                            the text of a document",
    "get tokens/ 123 --pack 2048 --seed 7 --decode       the texts of a packed sample",
)

DecodeOption = Annotated[
    bool, typer.Option("--decode", help="Of token ids, print the text, by the tokenizer of their store.")
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="FILE",
        help="Decode with this tokenizer.json, or tiktoken:NAME.",
        show_default=False,
    ),
]
PackOption = Annotated[
    int | None,
    typer.Option(
        "--pack",
        metavar="N",
        min=1,
        help="Print samples of N tokens that the documents are packed into.",
        show_default=False,
    ),
]


def get(  # noqa: PLR0913 - an argument for each of its options
    path: PathArgument,
    rows: Annotated[
        list[str],
        typer.Argument(
            metavar="ROW", help="Numbers of records, from 0; from the end if negative.", show_default=False
        ),
    ],
    *,
    decode: DecodeOption = False,
    tokenizer: TokenizerOption = None,
    key: KeyOption = None,
    pack: PackOption = None,
    seed: SeedOption = None,
    method: MethodOption = None,
    order: OrderOption = None,
    most: MostOption = None,
    long: LongOption = None,
    next_token: NextTokenOption = False,
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
    """Print records, in the order asked, as they are in the file.

    Each is followed by a newline; rows of tables are printed as JSON. With --json, each is a document that
    also says where the record lies. With --decode, token ids are printed as their text. With --pack, the rows
    are samples of Dataset.pack, of epoch 0; decoded, each piece is below the document, and the record of the
    corpus, that it is of.
    """
    from seekable.cli.data_argument import Opening

    numbers = [_number(row) for row in rows]
    given: dict[str, Any] = {
        "seed": seed,
        "method": method,
        "order": order,
        "most": most,
        "long": long,
        "next_token": next_token,
    }
    asked = _asked(pack, given, key)
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
    dataset = opening.dataset()
    if asked is not None:
        dataset = asked.packed(dataset, jobs=jobs, progress=opening.watch)
        opening.watch.close()
    dataset.locate(numbers)  # Before anything is printed, all rows are known to be there.
    size = dataset.node.size
    numbers = [number if size is None else number % size for number in numbers]
    if decode or tokenizer is not None:
        _write_decoded(dataset, numbers, tokenizer, key, as_json=as_json)
    else:
        from seekable.cli.records import write_records

        write_records(dataset.node, numbers, as_json=as_json)


def _asked(length: int | None, given: dict[str, Any], key: str | None) -> PackArguments | None:
    """Return the arguments of packing; None if samples are not asked for.

    Raises:
        InvalidArgument: an option is for samples.
    """
    from seekable.cli.pack_options import PackArguments
    from seekable.errors import InvalidArgument

    if length is not None:
        return PackArguments(length, {**given, "key": key})
    for name, value in given.items():
        if value not in (None, False):
            option = f"--{name.replace('_', '-')}"
            message = f"{option} is for packed samples: say with --pack how many tokens these have"
            raise InvalidArgument(message)
    return None


def _write_decoded(
    dataset: Dataset,
    rows: Sequence[int],
    tokenizer: str | None,
    key: str | None,
    *,
    as_json: bool,
) -> None:
    from seekable.cli.sample_pieces import write_samples
    from seekable.cli.token_texts import Decoder, write_texts
    from seekable.packing.nodes.packed_node import PackedNode

    decoder = Decoder(tokenizer)
    if isinstance(dataset.node, PackedNode):
        write_samples(dataset, rows, decoder, as_json=as_json)
    else:
        write_texts(dataset, rows, decoder, key=key or "tokens", as_json=as_json)


def _number(row: str) -> int:
    try:
        return int(row)
    except ValueError:
        # A row that counts from the end looks like an option, so unknown options come here as rows.
        what = "no such option, and no row" if row.startswith("-") else "not the number of a row"
        raise typer.BadParameter(f"{what}: {row!r}; a row is an integer", param_hint="ROW") from None
