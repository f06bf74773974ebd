"""What saved states say, and how two of them differ, as JSON documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import SeekableError
from seekable.loader.checkpoint_files import whole_description
from seekable.nodes.steer import changed
from seekable.resume.from_description import described_sources, rebuild, rebuild_loosely
from seekable.resume.report import report_saved
from seekable.state.descriptions import PipelineDescription, difference
from seekable.state.document import RunState, StreamState
from seekable.state.journal import Exclude, in_brief, journal_document
from seekable.viewer.facts.json_documents import in_words, json_safe
from seekable.viewer.facts.named_sources import source_counts, source_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.loader.checkpoint_files import Generation, Saved
    from seekable.nodes.node import Node
    from seekable.state.journal import Entry, Journal

_TOLD_APART = frozenset({"fingerprint", "check", "seekable", "journal"})
"""The fields of a state that no line of differences is about."""

_MOST_COUNTED = 10**7
"""The positions of an epoch that are followed to their sources one by one: about a second."""


def pipeline_differences(was: Saved, now: Saved) -> list[str]:
    """Return a line for each difference of two pipelines; none if they are the same."""
    if was.fingerprint == now.fingerprint:
        return []
    if was.description is None or now.description is None:
        without = was if was.description is None else now
        why = f"beside {without.path} there is no description to say in what"
        return [f"fingerprint was {was.fingerprint}, is {now.fingerprint}; {why}"]
    return difference(was.description, now.description, most=None).splitlines()


def place_differences(was: Saved, now: Saved) -> list[str]:
    """Return a line for each field in which the states of two runs differ."""
    if was.state is None or now.state is None:
        return []
    before, after = (state.document() for state in (was.state, now.state))
    names = [*before, *(name for name in after if name not in before)]
    lines = [
        f"{name} was {before.get(name)}, is {after.get(name)}" if name != "lanes" else "the lanes differ"
        for name in names
        if name not in _TOLD_APART and before.get(name) != after.get(name)
    ]
    return lines + journal_differences(saved_journal(was), saved_journal(now))


def journal_differences(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[str]:
    """Return a line for each fact of a journal that the other one lacks."""
    return [
        f"only in the {name} run, from step {each['at']:,}: {each['text']}"
        for name, one, other in (("old", old, new), ("new", new, old))
        for each in one
        if each not in other
    ]


def consumed_between(was: Saved, now: Saved) -> list[dict[str, Any]] | None:
    """Return the rows of each source that a pipeline took between two states; None if it is not known."""
    if was.fingerprint != now.fingerprint:
        return None
    first, last = (_progress_of(each) for each in (was, now))
    if "delivered" in first and "delivered" in last:
        both = zip(first["delivered"], last["delivered"], strict=True)
        return [{"source": new["source"], "rows": new["records"] - old["records"]} for old, new in both]
    before, after = first.get("progress"), last.get("progress")
    if not before or not after:
        return None
    pairs = [
        (new["source"], old["consumed"], new["consumed"]) for old, new in zip(before, after, strict=True)
    ]
    if any(None in (old, new) for _, old, new in pairs):
        return None
    return [{"source": source, "rows": new - old} for source, old, new in pairs]


def by_source(was: Saved, now: Saved) -> list[dict[str, Any]] | None:
    """Return how far each source was in two states, and what came between them; None if it is not known.

    Each source has ``old`` and ``new``, the rows that it gave up to each state, and the ``rows`` between them
    with their ``share`` of all rows between. They are None where a state does not say them, and where the
    pipelines differ, so that rows of one are not those of the other.
    """
    before, after = _taken(was), _taken(now)
    if not before and not after:
        return None
    names = [*after, *(name for name in before if name not in after)]
    is_same = was.fingerprint == now.fingerprint
    pairs = [(before.get(name), after.get(name)) for name in names]
    between = [new - old if is_same and old is not None and new is not None else None for old, new in pairs]
    total = sum(rows or 0 for rows in between)
    return [
        {
            "source": name,
            "old": old,
            "new": new,
            "rows": rows,
            "share": rows / total if total and rows is not None else None,
        }
        for name, (old, new), rows in zip(names, pairs, between, strict=True)
    ]


def _taken(saved: Saved) -> dict[str, int | None]:
    """Return the rows that each source gave up to a state, by its name; None where it is not known."""
    facts = _progress_of(saved)
    if "delivered" in facts:
        return {each["source"]: each["records"] for each in facts["delivered"]}
    return {each["source"]: each["consumed"] for each in facts.get("progress") or []}


def state_document(path: str, saved: Saved, generations: list[Generation]) -> dict[str, Any]:
    """Return what a saved state says of its run and its pipeline, JSON-safe.

    Args:
        path: what the user named it.
        saved: what was read there.
        generations: the states of other steps beside it.
    """
    return {
        "path": json_safe(path),
        "fingerprint": saved.fingerprint,
        **(_run(saved) if saved.state else {}),
        "generations": list(map(generation_document, generations)),
        "sources": _sources(saved),
        **_progress_of(saved),
        **_journal(saved),
    }


def _journal(saved: Saved) -> dict[str, Any]:
    """Return what was changed in the run, if anything was."""
    journal = saved_journal(saved)
    return {"journal": journal} if journal else {}


def saved_journal(saved: Saved) -> list[dict[str, Any]]:
    """Return what was changed in the run of a state, as ``journal_facts`` does."""
    return journal_facts(saved.state.journal, _names(saved)) if saved.state and saved.state.journal else []


def _names(saved: Saved) -> tuple[str, ...]:
    """Return the names of the sources of a saved run; none of a stream, and where they are not known."""
    if saved.description is None or not isinstance(saved.state, RunState):
        return ()
    try:
        return source_names(_rebuilt(saved.description))
    except SeekableError:
        return ()


def journal_facts(journal: Journal, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the entries of a journal, JSON-safe, each with a line that says it in words.

    Args:
        journal: the entries.
        names: those of the sources of the run, if they are known.

    Example:
        >>> from seekable.state.journal import Steer
        >>> steered = (Steer(1000, (9, 1), position=32000),)
        >>> journal_facts(steered)[0]["text"]
        'mixture 0 has the weights 9 : 1, from position 32,000 on'
        >>> journal_facts(steered, ["web", "code"])[0]["text"]
        'weights web 9 : code 1, from position 32,000 on'
    """
    return [
        {**brief, "text": _entry_in_words(entry, names)}
        for entry, brief in zip(journal, in_brief(journal_document(journal)), strict=True)
    ]


def _entry_in_words(entry: Entry, names: Sequence[str]) -> str:
    if isinstance(entry, Exclude):
        places = "holes are in their places" if entry.fill == "hole" else "others come in their places"
        files = in_words(len(entry.rows.files), "file")
        return f"{in_words(len(entry.rows), 'row')} of {files} left out, {places}"
    since = "" if entry.position is None else f", from position {entry.position:,} on"
    # Each of what the top mixes is one source if they are as many; of others the names are not known.
    if not entry.mixture and len(names) == len(entry.weights):
        pairs = zip(map(json_safe, names), entry.weights, strict=True)
        return f"weights {' : '.join(f'{name} {weight}' for name, weight in pairs)}{since}"
    weights = " : ".join(map(str, entry.weights))
    return f"mixture {entry.mixture} has the weights {weights}{since}"


def generation_document(generation: Generation) -> dict[str, Any]:
    """Return which files of a state there are, JSON-safe."""
    return {
        "step": generation.step,
        "ranks": generation.ranks,
        "present": len(generation.names),
        "complete": generation.complete,
    }


def _progress_of(saved: Saved) -> dict[str, Any]:
    """Return the progress of each source, or why it is not known.

    Where a node above a mixture moves positions, the mixture has one progress without a name; the records
    that each source gave then stand beside it, as ``delivered``.
    """
    if saved.state is None or saved.description is None:
        return {}
    try:
        # The order of a dataset depends on all weights of a schedule, also on those still to come.
        is_dataset = isinstance(saved.state, RunState)
        tree = whole_description(saved) if is_dataset else saved.description
        noted = [source.get("spec") for source in (saved.noted or {}).get("sources", [])]
        found = report_saved(PipelineDescription(tree), saved.state, noted)
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
        ],
        **(_delivered(saved) if any(not source.name for source in found) else {}),
    }


def _delivered(saved: Saved) -> dict[str, Any]:
    """Return the records that each source gave; empty for one source, and where counting takes long."""
    if not isinstance(saved.state, RunState):
        return {}
    try:
        node = changed(_rebuilt(whole_description(saved)), saved.state.journal)
    except SeekableError:
        return {}
    names, position = source_names(node), saved.state.position
    if len(names) == 1 or position % (node.size or position + 1) > _MOST_COUNTED:
        return {}
    counts = source_counts(node, np.array([position])).tolist()[0]
    pairs = zip(names, counts, strict=True)
    return {"delivered": [{"source": json_safe(name), "records": count} for name, count in pairs]}


def _run(saved: Saved) -> dict[str, Any]:
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
    if saved.description is None:
        return None, "there is no description of the pipeline beside the state"
    try:
        size = _rebuilt(saved.description).size
    except SeekableError as error:
        return None, str(error)
    return size, "an epoch has no record" if size == 0 else "the data has no end"


def _rebuilt(description: Mapping[str, Any]) -> Node:
    return (rebuild_loosely if _is_packed(description) else rebuild)(description)


def _is_packed(description: Mapping[str, Any]) -> bool:
    """Return True if a description contains packed samples, whose number it has."""
    below = description.get("of", ())
    return description["kind"] in ("pack", "windows") or any(map(_is_packed, below))


def _sources(saved: Saved) -> list[dict[str, Any]] | None:
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
