"""Records of a step that are unusual among rows of the same source, or whose text comes again nearby."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import DataNotFound
from seekable.nodes.traits import calls_functions
from seekable.viewer.facts.odd import odd, usual
from seekable.viewer.facts.sources import as_in_files, sources_of
from seekable.viewer.page import Redirect

if TYPE_CHECKING:
    from collections.abc import Generator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.contract import Node
    from seekable.viewer.facts.odd import Oddness
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_AROUND = 10
_RARE = 98.0
"""The percentile from which on, and below 100 less it, a measure is a reason."""

_HIGH = {"bytes": "longer", "squeezes to": "repeats itself less", "letters": "more letters"}
_LOW = {"bytes": "shorter", "squeezes to": "repeats itself more", "letters": "fewer letters"}


def around(opened: Opened, asked: Asked) -> Redirect:
    """Start the search for the texts of a step in the steps around it, and return where it is shown."""
    number = int(asked.path["step"])
    records = opened.pipeline(asked.name).loader.plan(step=number).records
    positions = np.array([record.position for record in records], dtype=np.int64)
    key = (asked.name, number)
    job = opened.jobs.start("same texts", key, _work(opened, asked.name, positions))
    return Redirect(f"p/{asked.name}/step/{number}?by=odd&job={job.name}")


def oddness_of(opened: Opened, name: str, positions: Int64s) -> Oddness:
    """Return the oddness of a batch, with the texts that come twice in it.

    Raises:
        DataNotFound: the files of a source are not on this machine.
    """
    found: Oddness = next(_work(opened, name, positions, steps=0))
    return found


def can_rank(opened: Opened, name: str) -> bool:
    """Return True if records can be had as they are in the files: these are here, and no function runs."""
    try:
        return not calls_functions(records_of(opened, name))
    except DataNotFound:
        return False


def why(record: dict[str, Any]) -> list[str]:
    """Return what is unusual about a record of the document of ``Oddness``, in words.

    Example:
        >>> why({"measures": {"bytes": {"value": 9000.0, "percentile": 99.95}}})
        ['longer than 99.9 %']
    """
    reasons = []
    for name, measure in record["measures"].items():
        if measure is None:
            return ["cannot be read"]
        percentile = measure["percentile"]
        if percentile is None or name not in _HIGH:
            continue
        if percentile >= _RARE:
            reasons.append(f"{_HIGH[name]} than {_share(percentile)}")
        elif percentile <= 100 - _RARE:
            reasons.append(f"{_LOW[name]} than {_share(100 - percentile)}")
    return reasons


def _share(percent: float) -> str:
    return "all" if percent >= 100 else f"{int(percent * 10) / 10:g} %"  # noqa: PLR2004 - percent


def _work(opened: Opened, name: str, positions: Int64s, *, steps: int = _AROUND) -> Generator[Oddness]:
    node = records_of(opened, name)
    kept: dict[int, NDArray[np.float64]] = opened.kept.get(("usual", name), dict)
    sources = np.unique(sources_of(node, positions)).tolist()
    missing = [source for source in sources if source not in kept]
    if missing:
        kept.update(usual(node, missing, sample=opened.sample, text_key=opened.text_key))
    yield from odd(node, positions, kept, steps=steps, text_key=opened.text_key)


def records_of(opened: Opened, name: str) -> Node:
    """Return the order of a pipeline over records as in the files; its own node where they are grouped.

    Raises:
        DataNotFound: the files of a source are not on this machine.
    """
    return opened.kept.get(
        ("as in files", name), lambda: as_in_files(opened.pipeline(name).loader.dataset.node)
    )
