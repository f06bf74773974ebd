"""``seekable pack``: what packing documents of tokens into samples gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.shared_options import DataOptions, ExecutorOption, PathArgument, examples, option
from seekable.nodes.node import node_of

if TYPE_CHECKING:
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
"""What each fact of a packing means."""

_MOST_COUNTED = 1024

_OF_PACKING = ("method", "order", "samples", "most", "long")
"""The options that are fields of ``sk.Packing``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingOptions:
    """The options that are arguments of ``Dataset.pack``."""

    seed: Annotated[int | None, option("--seed", "SEED", "Which order: 0 to 2**64 - 1; 0 if left out.")] = (
        None
    )
    method: Annotated[
        str | None,
        option(
            "--method",
            "NAME",
            "concat: documents end to end, cut; best_fit: none cut that fits, padded. Else concat.",
        ),
    ] = None
    order: Annotated[
        str | None,
        option(
            "--order",
            "NAME",
            "Of concat: table, exchange or megatron; by the number of documents if left out.",
        ),
    ] = None
    most: Annotated[
        int | None, option("--most", "N", "Of best_fit, the most documents in a sample.", least=1)
    ] = None
    long: Annotated[
        str | None,
        option(
            "--long",
            "NAME",
            "Of best_fit, split, truncate or drop documents longer than a sample; else split.",
        ),
    ] = None
    next_token: Annotated[bool, typer.Option("--next-token", help="One token more, for labels.")] = False
    samples: Annotated[int | None, option("--samples", "N", "Of the order megatron.", least=1)] = None
    key: Annotated[
        str | None, option("--key", "NAME", "The column of the token ids in records; tokens if left out.")
    ] = None

    @property
    def _given(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The keyword arguments that were given: those of the call, and those of ``sk.Packing``."""
        given = {name: value for name, value in asdict(self).items() if value not in (None, False)}
        filled = {name: given.pop(name) for name in _OF_PACKING if name in given}
        return {"seed": 0, **given}, filled

    def packed(self, documents: Dataset, length: int, **execution: Any) -> Dataset:
        """Return the samples of documents.

        Args:
            documents: the documents.
            length: the tokens of a sample.
            execution: ``jobs``, ``executor`` and ``progress`` of the call.

        Raises:
            InvalidArgument: an argument breaks a rule.
        """
        from seekable.packing.packing_options import Packing

        others, filled = self._given
        return documents.pack(length, method=Packing(**filled), **others, **execution)

    def call(self, documents: str, length: int) -> str:
        """Return the Python expression that makes the same samples, given that of the documents."""
        others, filled = self._given
        method = _keywords(filled)
        if filled and list(filled) != ["method"]:
            method = f"method=sk.Packing({method})"
        return f"{documents}.pack({', '.join(filter(None, (str(length), _keywords(others), method)))})"


def _keywords(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def pack(
    path: PathArgument,
    *,
    length: Annotated[int, option("--length -L", "N", "Tokens of a sample.", least=1)],
    packing: PackingOptions,
    explain: Annotated[bool, typer.Option("--explain", help="Say all that is known of the packing.")] = False,
    head: Annotated[
        int, typer.Option("--head", metavar="N", min=0, help="Print the pieces of the first N samples.")
    ] = 0,
    executor: ExecutorOption = None,
    data: DataOptions,
) -> None:
    """Say what packing tokens into samples gives.

    That is the number of samples, of their pieces, and the padding or the tail that is left out. Nothing but
    the index is written: samples are computed when they are read, in Python by the call that is
    printed. Lengths come from the index of tokens; lists of ids in other data are read once. The other
    options are those of Dataset.pack.
    """
    from seekable.cli.data_argument import DataArgument, executor_of
    from seekable.nodes.display import explained
    from seekable.viewer.facts.json_documents import json_safe

    with executor_of(executor, jobs=data.jobs) as cluster:
        argument = DataArgument(path, data, executor=cluster)
        documents = argument.dataset()
        try:
            packed = packing.packed(
                documents, length, jobs=data.jobs, executor=cluster, progress=argument.watch
            )
        finally:
            argument.watch.close()
    found = {
        "path": json_safe(path),
        "length": length,
        **_survey(packed),
        "python": json_safe(packing.call(argument.expression, length)),
        "nodes": [json_safe(line) for line in explained(node_of(packed))],
    }
    _print(found, packed, explain=explain, head=head, as_json=data.as_json)


def _print(found: dict[str, Any], packed: Dataset, *, explain: bool, head: int, as_json: bool) -> None:
    from seekable.cli.output import write_document, write_facts, write_line
    from seekable.cli.token_texts import samples_with_pieces, write_samples

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


def _survey(packed: Dataset) -> dict[str, Any]:
    import numpy as np

    from seekable.packing.nodes.packed_node import PackedNode

    node = node_of(packed)
    assert isinstance(node, PackedNode)
    rows = np.arange(min(node.size, _MOST_COUNTED))
    bounds = node.packing.pieces(rows, np.zeros_like(rows)).bounds
    facts, lengths = node.packing.facts(), node.documents.lengths
    return {
        **node.cut.described(),
        "documents": lengths.size,
        "tokens": int(lengths.sum()),
        "samples": node.size,
        "pieces_per_sample": int(bounds[-1]) / rows.size,
        "tail": facts.get("tail", 0),
        "padding": facts.get("padding", 0),
        "facts": facts,
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
