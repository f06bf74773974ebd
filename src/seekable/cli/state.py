"""``seekable state``: shows saved states, and the difference of two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.exits import ExitCode
from seekable.cli.shared_options import Command, Shown, argument, command, examples

if TYPE_CHECKING:
    from seekable.loader.checkpoint_files import Saved
    from seekable.resume.row_offsets import RowOffset

EPILOG = examples("state show checkpoints/", "state diff old/ new/")

SHOW_EPILOG = examples(
    "state show checkpoints/                                the newest complete one",
    "state show checkpoints/state-000000000040-00000-of-00001.json",
    "state show --json checkpoints/ | jq .position",
)

DIFF_EPILOG = examples(
    "state diff monday/checkpoints tuesday/checkpoints",
    "state diff pipeline-1f0c.json pipeline-77ab.json       descriptions alone",
    "state diff a/ b/ || echo another pipeline, or another step",
)

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


_HELP = "A folder, a state or a description."


@app.callback(epilog=EPILOG)
def _state() -> None:
    """Show saved states, and the differences of two of them.

    A state is a file or a folder that sk.save_state wrote into, of which the newest complete state counts.
    """


@app.command(epilog=SHOW_EPILOG, cls=Command)
@command
def show(path: Annotated[str, argument("PATH", _HELP)], *, shown: Shown) -> None:
    """Show the progress of a saved run, and its pipeline.

    Of a checkpoint of another trainer, with resume_state, it shows the row at which each source goes on.
    """
    from seekable.cli.output import write_document
    from seekable.loader.checkpoint_files import generations_in, read_saved
    from seekable.storage.paths import output_path
    from seekable.viewer.facts.saved_state import state_document

    if (offsets := _row_offsets(path)) is not None:
        _write_row_offsets(path, offsets, as_json=shown.as_json)
        return
    generations = generations_in(output_path(path))
    saved = read_saved(path)
    found = state_document(path, saved, generations)
    if shown.as_json:
        write_document(found)
    else:
        _tell(found, saved)


@app.command(epilog=DIFF_EPILOG, cls=Command)
@command
def diff(
    old: Annotated[str, argument("A", _HELP)],
    new: Annotated[str, argument("B", _HELP)],
    *,
    shown: Shown,
) -> None:
    """Show the differences of two states.

    The exit code is 0 where they are the same and 3 where they are not.
    """
    from seekable.cli.output import write_document, write_line
    from seekable.loader.checkpoint_files import read_saved
    from seekable.viewer.facts.saved_state import pipeline_differences, place_differences

    was, now = read_saved(old), read_saved(new)
    pipeline, place = pipeline_differences(was, now), place_differences(was, now)
    same = not pipeline and not place
    if shown.as_json:
        write_document({"same": same, "same_pipeline": not pipeline, "differences": [*pipeline, *place]})
    else:
        for line in [*pipeline, *place]:
            write_line(line)
    if not same:
        raise typer.Exit(ExitCode.MISMATCH)


def _row_offsets(path: str) -> list[RowOffset] | None:
    """Return the row of each source in a checkpoint with ``resume_state``; None for any other path."""
    from seekable.loader.checkpoint_files import read_json
    from seekable.resume.row_offsets import offsets_in
    from seekable.storage.paths import is_file

    document = read_json(path) if is_file(path) else {}
    is_one = "seekable" not in document and document.get("resume_state") is not None
    return offsets_in(document) if is_one else None


def _write_row_offsets(path: str, offsets: list[RowOffset], *, as_json: bool) -> None:
    from seekable.cli.output import write_document, write_facts
    from seekable.viewer.facts.json_documents import json_safe

    if as_json:
        progress = [
            {"spec": json_safe(each.spec), "shard": json_safe(each.shard), "row_offset": each.row_offset}
            for each in offsets
        ]
        write_document({"path": json_safe(path), "progress": progress})
        return
    sources = {
        f"source {number}": f"next is row {each.row_offset:,} of {each.shard}; spec {each.spec}"
        for number, each in enumerate(offsets)
    }
    write_facts({"path": path, **sources})


def _tell(found: dict[str, Any], saved: Saved) -> None:
    from seekable.cli.output import write_facts, write_line
    from seekable.state.descriptions import outline
    from seekable.viewer.facts.json_documents import in_words

    facts = {"path": found["path"], **_place(found), "fingerprint": found["fingerprint"]}
    for generation in found["generations"]:
        of = in_words(generation["ranks"], "rank")
        whole = "complete" if generation["complete"] else f"not complete: {generation['present']} of them"
        facts[f"at step {generation['step']:,}"] = f"{of}, {whole}"
    roots = dict.fromkeys(root for source in found["sources"] or [] for root in source["roots"] if root)
    if roots:
        facts["data"] = ", ".join(roots)
    for entry in found.get("journal") or []:
        facts[f"from step {entry['at']:,}"] = entry["text"]
    for source in found.get("progress") or []:
        facts[f"source {source['source']}".rstrip()] = _progress(source)
    for each in found.get("delivered") or []:
        facts[f"from {each['source']}"] = in_words(each["records"], "record")
    write_facts(facts)
    if saved.description is not None:
        write_line("")
        for line in outline(saved.description):
            write_line(line)


def _place(found: dict[str, Any]) -> dict[str, str]:
    """Return where the run was; nothing for a description alone."""
    if "step" not in found:
        return {}
    step = f"{found['step']:,}"
    if "lanes" in found:
        return {"step": step, **{name: f"{found[name]:,}" for name in ("slot", "lanes", "waiting")}}
    return {"step": step, "epoch": f"{found['epoch']:,}", "position": _position(found)}


def _progress(source: dict[str, Any]) -> str:
    following = "" if source["shard"] is None else f"; next is row {source['row']:,} of {source['shard']}"
    waiting = f"; {source['in_flight']:,} in flight" if source["in_flight"] else ""
    opened = "" if source["spec"] is None else f"; spec {source['spec']}"
    of = "" if source["of"] is None else f" of {source['of']:,}"
    return (
        f"epoch {source['epoch']:,}, {source['percent']:.1f} % ({source['rows']:,}{of} rows)"
        f"{waiting}{following}{opened}"
    )


def _position(found: dict[str, Any]) -> str:
    if found["records"] is None:
        return f"{found['position']:,} ({found['unknown']})"
    return (
        f"{found['position']:,}: record {found['row']:,} of {found['records']:,} in epoch "
        f"{found['data_epoch']:,}, {found['percent']:.1f} %"
    )
