"""``seekable pack``: what packing documents of tokens into samples gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.options import (
    AllowOption,
    BosIdOption,
    EosIdOption,
    ExecutorOption,
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
    from seekable.cli.data_argument import Opening
    from seekable.cli.pack_options import PackArguments
    from seekable.dataset.dataset import Dataset

EPILOG = examples(
    "pack tokens/ -L 2048",
    "pack tokens/ -L 2048 --method best_fit --explain",
    "pack tokens/ -L 2048 --seed 7 --head 3       the pieces of the first samples",
    "pack megatron:data/text_document -L 4096 --json | jq .samples",
    "pack ids.parquet -L 2048 --key input_ids",
)

_MEANINGS = {
    "documents": "in an epoch",
    "tokens": "of all documents",
    "samples": "in an epoch",
    "sentinels": "tokens that fill-in-the-middle adds",
    "places": "of documents in the order of Megatron",
    "tail": "tokens in no sample of an epoch",
    "padding": "places of samples that no token fills",
    "long_documents": "longer than a sample: cut, truncated or dropped",
    "lost_tokens": "in no sample of any epoch",
    "patterns": "distinct contents of samples, as lengths of pieces",
    "classes": "of equal length, within which documents, or pieces, change places",
    "unmoved_documents": "have none of equal length to change places with",
    "unmoved_pieces": "have none of equal length to change places with",
    "unmoved_tokens": "in these",
}
"""The meaning of each fact of a packing."""

_MOST_COUNTED = 1024


def pack(  # noqa: PLR0913 - an argument for each of its options
    path: PathArgument,
    *,
    length: Annotated[
        int,
        typer.Option("--length", "-L", metavar="N", min=1, help="Tokens of a sample.", show_default=False),
    ],
    method: MethodOption = None,
    seed: SeedOption = None,
    order: OrderOption = None,
    most: MostOption = None,
    long: LongOption = None,
    next_token: NextTokenOption = False,
    samples: Annotated[
        int | None,
        typer.Option("--samples", metavar="N", min=1, help="Of the order megatron.", show_default=False),
    ] = None,
    key: KeyOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say all that is known of the packing.")] = False,
    head: Annotated[
        int, typer.Option("--head", metavar="N", min=0, help="Print the pieces of the first N samples.")
    ] = 0,
    format_name: FormatOption = None,
    dtype: TokenTypeOption = None,
    eos: EosIdOption = None,
    bos: BosIdOption = None,
    index_dir: IndexDirOption = None,
    allow: AllowOption = None,
    refresh: RefreshOption = True,
    jobs: JobsOption = None,
    executor: ExecutorOption = None,
    no_progress: NoProgressOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say what packing tokens into samples gives.

    That is the number of samples, of their pieces, and the padding or the tail that is left out. Nothing but
    the index is written: samples are computed when they are read, in Python by the call that is
    printed. Lengths come from the index of tokens; lists of ids in other data are read once. The other
    options are those of Dataset.pack.
    """
    from seekable.cli.data_argument import Opening
    from seekable.cli.executors import executor_of
    from seekable.cli.pack_options import PackArguments

    asked = PackArguments(
        length,
        {
            "seed": seed,
            "method": method,
            "order": order,
            "most": most,
            "long": long,
            "next_token": next_token,
            "samples": samples,
            "key": key,
        },
    )
    with executor_of(executor, jobs=jobs) as cluster:
        opening = Opening(
            path,
            format=format_name,
            index_dir=index_dir,
            allow=allow,
            jobs=jobs,
            executor=cluster,
            progress=not no_progress,
            quiet=quiet,
            dtype=dtype,
            eos=eos,
            bos=bos,
            refresh=refresh,
        )
        documents = opening.dataset()
        try:
            packed = asked.packed(documents, jobs=jobs, executor=cluster, progress=opening.watch)
        finally:
            opening.watch.close()
    _print(opening, asked, packed, explain=explain, head=head, as_json=as_json)


def _print(
    opening: Opening, asked: PackArguments, packed: Dataset, *, explain: bool, head: int, as_json: bool
) -> None:
    from seekable.cli.output import write_document, write_facts, write_line
    from seekable.cli.sample_pieces import samples_with_pieces, write_samples

    found = _survey(opening, asked, packed)
    rows = range(min(head, found["samples"]))
    if as_json:
        write_document({**found, **({"head": list(samples_with_pieces(packed, rows, None))} if head else {})})
        return
    write_facts(_in_words(found))
    if explain:
        write_line("")
        write_facts(_facts_in_words(found["facts"]))
        write_line("")
        for line in found["nodes"]:
            write_line(line)
    if rows:
        write_line("")
        write_samples(packed, rows, None, as_json=False)


def _survey(opening: Opening, asked: PackArguments, packed: Dataset) -> dict[str, Any]:
    import numpy as np

    from seekable.nodes.display import explained
    from seekable.packing.nodes.packed_node import PackedNode
    from seekable.viewer.facts.documents import json_safe

    node = packed.node
    assert isinstance(node, PackedNode)
    rows = np.arange(min(node.size, _MOST_COUNTED))
    bounds = node.packing.pieces(rows, np.zeros_like(rows)).bounds
    facts, lengths = node.packing.facts(), node.documents.lengths
    return {
        "path": json_safe(opening.path),
        "length": asked.length,
        **node.cut.described(),
        "documents": lengths.size,
        "tokens": int(lengths.sum()),
        "samples": node.size,
        "pieces_per_sample": int(bounds[-1]) / rows.size,
        "tail": facts.get("tail", 0),
        "padding": facts.get("padding", 0),
        "facts": facts,
        "python": json_safe(asked.call(opening.expression)),
        "nodes": [json_safe(line) for line in explained(node)],
    }


def _in_words(found: dict[str, Any]) -> dict[str, str]:
    from seekable.viewer.facts.token_contents import percent

    places = found["samples"] * (found["length"] + found["extra"])
    full = f"{found['length'] + found['extra']:,} tokens"
    facts = {
        "path": found["path"],
        "documents": f"{found['documents']:,}",
        "tokens": f"{found['tokens']:,}",
        "samples": f"{found['samples']:,} of {full} in an epoch",
        "pieces": f"{found['pieces_per_sample']:,.1f} in a sample",
    }
    if found["method"] == "best_fit":
        facts["padding"] = (
            f"{found['padding']:,} of {places:,} places ({percent(found['padding'], places)} %)"
        )
    else:
        left = percent(found["tail"], found["tokens"])
        facts["tail"] = f"{found['tail']:,} tokens ({left} %) in no sample of an epoch"
    return {**facts, "in Python": found["python"]}


def _facts_in_words(facts: dict[str, Any]) -> dict[str, str]:
    return {
        name.replace("_", " "): f"{fact:,} {_MEANINGS.get(name, '')}".rstrip()
        if not isinstance(fact, str)
        else fact
        for name, fact in facts.items()
    }
