"""``seekable get``, ``head`` and ``sample``: print some records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.exits import other_word
from seekable.cli.shared_options import DataOptions, PathArgument, Shown, argument, examples, option
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.dataset.dataset import Dataset

GET_EPILOG = examples(
    "get corpus.jsonl 5 | jq .text",
    "get corpus.jsonl 0 -1             the first and the last",
    "get --json 'corpus/*.jsonl' 70000 | jq .location",
    "get tokens/ 123 --decode                            the text of a document",
    "get tokens/ 123 --sample 2048 --seed 7 --decode     the texts of a packed sample",
)

HEAD_EPILOG = examples(
    "head corpus.jsonl",
    "head -n 100 corpus/ | jq -r .text",
    "head --json 'logs/*.txt'",
)
SAMPLE_EPILOG = examples(
    "sample corpus.jsonl",
    "sample -n 1000 --seed 7 'corpus/*.jsonl' > sample.jsonl",
    "sample --json corpus/ | jq .location.path",
)


def get(  # noqa: PLR0913 - an argument for each of its own options
    path: PathArgument,
    rows: Annotated[list[str], argument("ROW", "Numbers of records, from 0; from the end if negative.")],
    *,
    decode: Annotated[
        bool, typer.Option("--decode", help="Of token ids, print the text, by the tokenizer of their store.")
    ] = False,
    tokenizer: Annotated[
        str | None, option("--tokenizer", "FILE", "Decode with this tokenizer.json, or tiktoken:NAME.")
    ] = None,
    key: Annotated[
        str | None, option("--key", "NAME", "The column of the token ids; tokens if left out.")
    ] = None,
    sample: Annotated[
        int | None,
        option("--sample", "N", "Print samples of N tokens that documents are packed into.", least=1),
    ] = None,
    seed: Annotated[
        int | None, option("--seed", "SEED", "Of --sample, which order: 0 to 2**64 - 1; else 0.")
    ] = None,
    method: Annotated[
        str | None, option("--method", "NAME", "Of --sample, concat or best_fit; else concat.")
    ] = None,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Print records, in the order asked, as they are in the file.

    Each is followed by a newline; rows of tables are printed as JSON. With --json, each is a document that
    also says where the record lies. With --decode, token ids are printed as their text, what a loss mask has
    in the loss between [[ and ]]. With --sample, the
    rows are samples of Dataset.pack, of epoch 0; decoded, each piece is below the document, and the record of
    the corpus, that it is of. Samples of any other packing are those of a file that Dataset.save wrote.
    """
    from seekable.cli.data_argument import DataArgument
    from seekable.nodes.node import node_of

    numbers = [_number(row) for row in rows]
    argument = DataArgument(path, data, shown)
    dataset = argument.dataset()
    packing = {"seed": seed, "method": method}
    if sample is None:
        _refuse(packing)
    else:
        dataset = _packed(dataset, sample, key=key, progress=argument.watch, **packing)
        argument.watch.close()
    dataset.locate(numbers)  # Before anything is printed, all rows are known to be there.
    size = node_of(dataset).size
    numbers = [number if size is None else number % size for number in numbers]
    if decode or tokenizer is not None:
        _write_decoded(dataset, numbers, tokenizer, key, as_json=shown.as_json)
    else:
        from seekable.cli.records import write_records

        write_records(node_of(dataset), numbers, as_json=shown.as_json)


def _packed(documents: Dataset, length: int, **arguments: Any) -> Dataset:
    given = {name: value for name, value in arguments.items() if value is not None}
    return documents.pack(length, **{"seed": 0, **given})


def _refuse(packing: dict[str, Any]) -> None:
    """Refuse options of packed samples where none are asked for.

    Raises:
        InvalidArgument: there is one.
    """
    for name in (name for name, value in packing.items() if value is not None):
        message = f"--{name} is for packed samples: say with --sample how many tokens these have"
        raise InvalidArgument(message)


def _write_decoded(
    dataset: Dataset,
    rows: Sequence[int],
    tokenizer: str | None,
    key: str | None,
    *,
    as_json: bool,
) -> None:
    from seekable.cli.token_texts import TokenDecoder, write_samples, write_texts
    from seekable.nodes.node import node_of
    from seekable.packing.nodes.packed_node import PackedNode

    decoder = TokenDecoder(tokenizer)
    if isinstance(node_of(dataset), PackedNode):
        write_samples(dataset, rows, decoder, as_json=as_json)
    else:
        write_texts(dataset, rows, decoder, key=key or "tokens", as_json=as_json)


def _number(row: str) -> int:
    try:
        return int(row)
    except ValueError:
        # A row that counts from the end looks like an option, so unknown options come here as rows.
        what = "no such option, and no row" if row.startswith("-") else "not the number of a row"
        instead = f" {other_word(row)}".rstrip()
        message = f"{what}: {row!r}; a row is an integer.{instead}"
        raise typer.BadParameter(message, param_hint="ROW") from None


def head(
    path: PathArgument,
    *,
    count: Annotated[int, typer.Option("-n", metavar="N", min=0, help="How many records.")] = 5,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Print the first records, as they are in the file.

    Each is followed by a newline; rows of tables are printed as JSON. With --json, each is a document that
    also says where the record lies.
    """
    from seekable.cli.data_argument import DataArgument
    from seekable.cli.records import write_records

    records = DataArgument(path, data, shown).open()
    rows = range(count if records.size is None else min(count, records.size))
    write_records(records, rows, as_json=shown.as_json)


def sample(
    path: PathArgument,
    *,
    count: Annotated[int, typer.Option("-n", metavar="N", min=0, help="How many records.")] = 20,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="Which sample: 0 to 2**64 - 1.")] = 0,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Print random records, none twice, as they are in the file.

    They are the first N of open(PATH).shuffle(seed=SEED): always the same ones, and those of a smaller
    sample come first in a larger one. Each is followed by a newline; rows of tables are printed as JSON.
    With --json, each is a document that also says where the record lies.
    """
    from seekable.cli.data_argument import DataArgument
    from seekable.cli.records import write_records
    from seekable.dataset.dataset import from_sequence
    from seekable.nodes.graph import known_size

    records = DataArgument(path, data, shown).open()
    # A shuffle depends on seed and length alone, so that of the row numbers is that of the records.
    rows = from_sequence(range(known_size(records, "sample"))).shuffle(seed=seed)[:count]
    write_records(records, rows, as_json=shown.as_json)
