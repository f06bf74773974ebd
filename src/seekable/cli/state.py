"""``seekable state``: shows saved states, and the difference of two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.addresses import takes_addresses
from seekable.cli.exits import ExitCode
from seekable.cli.options import JsonOption, examples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.loader.checkpoint_files import Generation, Saved
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


def _path(metavar: str) -> Any:
    return typer.Argument(metavar=metavar, help="A folder, a state or a description.", show_default=False)


@app.callback(epilog=EPILOG)
def _state() -> None:
    """Show saved states, and the differences of two of them.

    A state is a file or a folder that sk.save_state wrote into, of which the newest complete state counts.
    """


@app.command(epilog=SHOW_EPILOG)
@takes_addresses
def show(path: Annotated[str, _path("PATH")], *, as_json: JsonOption = False) -> None:
    """Show the progress of a saved run, and its pipeline.

    Of a checkpoint of another trainer, with resume_state, it shows the row at which each source goes on.
    """
    from seekable.cli.output import write_document
    from seekable.loader.checkpoint_files import generations_in, read_saved
    from seekable.remote.output_files import output_path

    if (offsets := _row_offsets(path)) is not None:
        _write_row_offsets(path, offsets, as_json=as_json)
        return
    generations = generations_in(output_path(path))
    saved = read_saved(path)
    found = _as_json(path, saved, generations)
    if as_json:
        write_document(found)
    else:
        _tell(found, saved)


@app.command(epilog=DIFF_EPILOG)
@takes_addresses
def diff(
    old: Annotated[str, _path("A")], new: Annotated[str, _path("B")], *, as_json: JsonOption = False
) -> None:
    """Show the differences of two states.

    The exit code is 0 where they are the same and 3 where they are not.
    """
    from seekable.cli.output import write_document, write_line
    from seekable.loader.checkpoint_files import read_saved

    was, now = read_saved(old), read_saved(new)
    pipeline, place = _pipeline_differences(was, now), _place_differences(was, now)
    same = not pipeline and not place
    if as_json:
        write_document({"same": same, "same_pipeline": not pipeline, "differences": [*pipeline, *place]})
    else:
        for line in [*pipeline, *place]:
            write_line(line)
    if not same:
        raise typer.Exit(ExitCode.MISMATCH)


def _row_offsets(path: str) -> list[RowOffset] | None:
    """Return the row of each source in a checkpoint with ``resume_state``; None for any other path."""
    from seekable.loader.checkpoint_files import read_json
    from seekable.remote.paths import is_file
    from seekable.resume.row_offsets import offsets_in

    document = read_json(path) if is_file(path) else {}
    is_one = "seekable" not in document and document.get("resume_state") is not None
    return offsets_in(document) if is_one else None


def _write_row_offsets(path: str, offsets: list[RowOffset], *, as_json: bool) -> None:
    from seekable.cli.output import json_safe, write_document, write_facts

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


def _pipeline_differences(was: Saved, now: Saved) -> list[str]:
    from seekable.state.descriptions import difference

    if was.fingerprint == now.fingerprint:
        return []
    if was.description is None or now.description is None:
        without = was if was.description is None else now
        why = f"beside {without.path} there is no description to say in what"
        return [f"fingerprint was {was.fingerprint}, is {now.fingerprint}; {why}"]
    return difference(was.description, now.description, most=None).splitlines()


def _place_differences(was: Saved, now: Saved) -> list[str]:
    if was.state is None or now.state is None:
        return []
    before, after = (state.document() for state in (was.state, now.state))
    names = [*before, *(name for name in after if name not in before)]
    return [
        f"{name} was {before.get(name)}, is {after.get(name)}" if name != "lanes" else "the lanes differ"
        for name in names
        if name != "fingerprint" and before.get(name) != after.get(name)
    ]


def _as_json(path: str, saved: Saved, generations: list[Generation]) -> dict[str, Any]:
    from seekable.cli.output import json_safe

    return {
        "path": json_safe(path),
        "fingerprint": saved.fingerprint,
        **(_run(saved) if saved.state else {}),
        "generations": [
            {
                "step": generation.step,
                "ranks": generation.ranks,
                "present": len(generation.names),
                "complete": generation.complete,
            }
            for generation in generations
        ],
        "sources": _sources(saved),
        **_progress_of(saved),
    }


def _progress_of(saved: Saved) -> dict[str, Any]:
    """Return the progress of each source, or why it is not known."""
    from seekable.cli.output import json_safe
    from seekable.errors import SeekableError
    from seekable.loader.checkpoint_files import whole_description
    from seekable.resume.report import report_saved
    from seekable.state.descriptions import Description
    from seekable.state.document import RunState

    if saved.state is None or saved.description is None:
        return {}
    try:
        # The order of a dataset depends on all weights of a schedule, also on those still to come.
        is_dataset = isinstance(saved.state, RunState)
        tree = whole_description(saved) if is_dataset else saved.description
        noted = [source.get("spec") for source in (saved.noted or {}).get("sources", [])]
        found = report_saved(Description(tree), saved.state, noted)
    except SeekableError as error:
        return {"progress": None, "progress_unknown": str(error)}
    # "source" and "row" are "name" and "row_offset", as they were called first.
    return {
        "progress": [
            {
                **source.document(),
                "source": json_safe(source.name),
                "percent": source.percent,
                "shard": None if source.shard is None else json_safe(source.shard),
                "row": source.row_offset,
            }
            for source in found
        ]
    }


def _run(saved: Saved) -> dict[str, Any]:
    from seekable.state.stream_document import StreamState

    state = saved.state
    assert state is not None
    if isinstance(state, StreamState):
        waiting = sum(len(stage.get("buffer", [])) for stages in state.lanes.values() for stage in stages)
        return {"step": state.step, "slot": state.slot, "lanes": state.of, "waiting": waiting}
    size, why = _size(saved)
    run: dict[str, Any] = {"step": state.step, "epoch": state.epoch, "position": state.position}
    if state.began is not None:
        run["began"] = state.began
    if not size:
        return {**run, "records": None, "unknown": why}
    data_epoch, row = divmod(state.position, size)
    return {**run, "records": size, "data_epoch": data_epoch, "row": row, "percent": 100 * row / size}


def _size(saved: Saved) -> tuple[int | None, str]:
    """Return the number of records of an epoch, or why it is not known."""
    from seekable.errors import SeekableError
    from seekable.resume.from_description import rebuild, rebuild_loosely

    if saved.description is None:
        return None, "there is no description of the pipeline beside the state"
    try:
        make = rebuild_loosely if _is_packed(saved.description) else rebuild
        size = make(saved.description).size
    except SeekableError as error:
        return None, str(error)
    return size, "an epoch has no record" if size == 0 else "the data has no end"


def _is_packed(description: Mapping[str, Any]) -> bool:
    """Return True if packed samples are in a description, which has their number beside their order."""
    below = description.get("of", ())
    return description["kind"] in ("pack", "windows") or any(map(_is_packed, below))


def _sources(saved: Saved) -> list[dict[str, Any]] | None:
    from seekable.resume.from_description import described_sources

    if saved.description is None:
        return None
    noted = (saved.noted or {}).get("sources", [])
    sources = []
    for number, source in enumerate(described_sources(saved.description)):
        files = source.get("files", [])
        runs = noted[number].get("runs", []) if number < len(noted) else []
        sources.append(
            {
                "kind": source["kind"],
                "files": len(files),
                "records": source.get("length", sum(file["records"] for file in files)),
                "bytes": sum(file["size"] for file in files),
                "roots": list(dict.fromkeys(run["root"] for run in runs)),
            }
        )
    return sources


def _tell(found: dict[str, Any], saved: Saved) -> None:
    from seekable.cli.output import in_words, write_facts, write_line
    from seekable.state.descriptions import outline

    facts = {"path": found["path"]}
    if "step" in found:
        facts["step"] = f"{found['step']:,}"
    if "lanes" in found:
        facts |= {name: f"{found[name]:,}" for name in ("slot", "lanes", "waiting")}
    elif "step" in found:
        facts |= {"epoch": f"{found['epoch']:,}", "position": _position(found)}
    facts["fingerprint"] = found["fingerprint"]
    for generation in found["generations"]:
        of = in_words(generation["ranks"], "rank")
        whole = "complete" if generation["complete"] else f"not complete: {generation['present']} of them"
        facts[f"at step {generation['step']:,}"] = f"{of}, {whole}"
    roots = dict.fromkeys(root for source in found["sources"] or [] for root in source["roots"] if root)
    if roots:
        facts["data"] = ", ".join(roots)
    for source in found.get("progress") or []:
        facts[f"source {source['source']}".rstrip()] = _progress(source)
    write_facts(facts)
    if saved.description is not None:
        write_line("")
        for line in outline(saved.description):
            write_line(line)


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
