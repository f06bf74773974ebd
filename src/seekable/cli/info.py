"""``seekable info``: the files, records and lengths of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from seekable.cli.shared_options import DataOptions, PathArgument, Shown, examples, option

if TYPE_CHECKING:
    from seekable.cli.data_argument import DataArgument

EPILOG = examples(
    "info corpus.jsonl",
    "info --json 'corpus/*.jsonl' | jq .records",
    "info tokens/ --length 4096        and what packing at 4,096 would waste",
    "info ids.parquet --length 2048 --key input_ids",
    "info tokens:train.bin --set dtype=uint16 --set eos=50256",
)


_LENGTH = 2048


def info(
    path: PathArgument,
    *,
    length: Annotated[
        int | None,
        option(
            "--length -L",
            "N",
            "Say what packing tokens into samples of N gives; of data of tokens 2,048 if left out.",
            least=1,
        ),
    ] = None,
    key: Annotated[
        str | None, option("--key", "NAME", "Of --length, the column of the token ids in other data.")
    ] = None,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Print the number of records, and their lengths.

    New and changed files are indexed first. Lengths are in bytes and include the ends of lines; no data is
    read for them. Of a pipeline file the nodes are printed; its functions are not needed. Of tokens, also the
    documents and tokens, the tokenizer of a store, a histogram of lengths, and what both methods of
    Dataset.pack give are printed: the samples, and the tail and the documents that are cut, or the padding.
    Lists of token ids in other data are read once for it. Of data in a store, also the published index and
    the bytes of the data on this disk.
    """
    from seekable.cli.data_argument import DataArgument
    from seekable.cli.output import write_document, write_facts
    from seekable.dataset.pipeline.pipeline_file import is_pipeline_file
    from seekable.viewer.facts.data_survey import data_survey, refuse_length
    from seekable.viewer.facts.json_documents import json_safe

    argument = DataArgument(path, data, shown)
    if is_pipeline_file(path):
        argument.refuse_options()
        refuse_length(length, path)
        found = _pipeline_survey(argument)
    else:
        found = data_survey(
            argument.open_data(),
            path=path,
            files_indexed=argument.watch.files_indexed,
            refresh=argument.refresh,
            length=length,
            key=key,
        )
    if "packing" in found:
        found["packing"]["python"] = json_safe(_call(argument, found["packing"]["length"], key))
    if shown.as_json:
        write_document(found)
    elif "nodes" in found:
        _print_pipeline(found)
    else:
        write_facts(_in_words(found))
        _print_histogram(found)


def _call(argument: DataArgument, length: int, key: str | None) -> str:
    """Return the call that packs the data in Python."""
    column = "" if key is None else f", key={key!r}"
    return f"{argument.expression}.pack({length}, seed=0{column})"


def _print_histogram(found: dict[str, Any]) -> None:
    from seekable.cli.output import write_line, write_table
    from seekable.viewer.facts.token_contents import histogram_rows

    if found.get("histogram"):
        write_line("")
        write_table(["length", "documents", "%", "tokens", "%"], histogram_rows(found))


def _pipeline_survey(argument: DataArgument) -> dict[str, Any]:
    from seekable.dataset.pipeline.pipeline_file import needed_names
    from seekable.nodes.display import explained
    from seekable.viewer.facts.json_documents import json_safe

    functions, sequences = needed_names(argument.path)
    node = argument.order()
    return {
        "path": json_safe(argument.path),
        "pipeline": json_safe(node.expression()),
        "records": node.size,
        "steady": node.steady,
        "lanes": node.lanes,
        "fingerprint": node.fingerprint,
        "functions": functions,
        "sequences": sequences,
        "nodes": [json_safe(line) for line in explained(node)],
    }


def _print_pipeline(found: dict[str, Any]) -> None:
    from seekable.cli.output import write_facts, write_line

    size = found["records"]
    facts = {
        "path": found["path"],
        "records": "endless" if size is None else f"{size:,}",
        "order": "the same in each epoch" if found["steady"] else "another one in each epoch",
        "lanes": f"{found['lanes']:,}",
        "fingerprint": found["fingerprint"],
    }
    for key in ("functions", "sequences"):
        if found[key]:
            facts[key] = ", ".join(found[key])
    write_facts(facts)
    write_line("")
    for line in found["nodes"]:
        write_line(line)


def _in_words(found: dict[str, Any]) -> dict[str, str]:
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.data_survey import compression_in_words, stores_in_words
    from seekable.viewer.facts.json_documents import in_words
    from seekable.viewer.facts.token_contents import packing_in_words

    index, compression = found["index"], found["compression"]
    state = (
        "up to date" if index["was_up_to_date"] else f"{in_words(index['files_indexed'], 'file')} indexed now"
    )
    return {
        "path": found["path"],
        "format": found["format"],
        "files": f"{found['files']:,}",
        **({} if "documents" in found else {"records": f"{found['records']:,}"}),
        "bytes": f"{found['bytes']:,} ({bytes_in_words(found['bytes'])})",
        **_content_in_words(found),
        **(packing_in_words(found) if "packing" in found else {}),
        **({} if compression is None else {"compression": compression_in_words(compression)}),
        "index": f"{index['folder']} ({bytes_in_words(index['bytes'])}), {state}{_others_in_words(index)}",
        **(stores_in_words(found["stores"]) if "stores" in found else {}),
    }


def _others_in_words(index: dict[str, Any]) -> str:
    """Return the note on files whose offsets another tool found, empty if there are none."""
    from seekable.viewer.facts.json_documents import in_words

    count = index.get("from_other_indexes", 0)
    return f"; the offsets of {in_words(count, 'file')} came from another index" if count else ""


def _content_in_words(found: dict[str, Any]) -> dict[str, str]:
    if "documents" in found:
        from seekable.viewer.facts.token_contents import token_contents_in_words

        return token_contents_in_words(found)
    if "fields" in found and "record_bytes" not in found:
        fields = found["fields"].items()
        return {name: f"{own['format']}, {own['bytes']:,} bytes" for name, own in fields}
    if "columns" in found:
        columns = ", ".join(f"{name} ({kind})" for name, kind in found["columns"].items())
        return {"columns": columns or "none", "groups of rows": f"{found['groups']:,}"}
    lengths = found["record_bytes"]
    if lengths is None:
        return {"record bytes": "no record"}
    shown = ", ".join(f"{name} {lengths[name]:,}" for name in ("min", "p50", "p95", "p99", "max"))
    return {"record bytes": f"mean {lengths['mean']:,.1f}, {shown}", **_fields_in_words(found)}


def _fields_in_words(found: dict[str, Any]) -> dict[str, str]:
    from seekable.storage.memory import bytes_in_words

    fields = found.get("fields", {})
    texts = [
        f"{name} ({field['members']:,}, {bytes_in_words(field['bytes'])})" for name, field in fields.items()
    ]
    return {"fields": ", ".join(texts) or "none"} if "fields" in found else {}
