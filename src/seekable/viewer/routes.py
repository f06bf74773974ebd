"""The one list of addresses: each with the function that makes its page, and an example that tests open."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from seekable.viewer.pages import (
    compare,
    dataset,
    duplicates,
    field,
    files,
    go,
    health,
    home,
    job,
    lengths,
    loss,
    media,
    mixture,
    odd,
    opening,
    padding,
    pipeline,
    position,
    reopen,
    replay,
    replayed_sequence,
    row,
    row_names,
    rows,
    search,
    sequence,
    states,
    stats,
    step,
    when,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


@dataclass(frozen=True, slots=True)
class Route:
    """An address below the token, and what answers it."""

    path: str
    """The path, with its parameters in braces."""

    page: Callable[[Opened, Asked], Any]
    """Returns a Page, a Redirect, an Svg or a response."""

    example: str
    """An address of the data that the tests of all pages open."""

    changes: bool = False
    """True if it is asked for by POST: it starts or stops a job."""


ROUTES = (
    Route("", home.home, ""),
    Route("go", go.go, "go?to=corpus+5"),
    Route("d/{name}/", dataset.dataset, "d/corpus/"),
    Route("d/{name}/rows", rows.rows, "d/corpus/rows?at=3&n=5"),
    Route("d/{name}/lengths", lengths.page, "d/corpus/lengths"),
    Route("d/{name}/lengths.svg", lengths.chart, "d/corpus/lengths.svg"),
    Route("d/{name}/count-lengths", lengths.count, "", changes=True),
    Route("d/{name}/stats", stats.stats, "d/corpus/stats"),
    Route("d/{name}/read-stats", stats.read, "", changes=True),
    Route("d/{name}/field", field.page, "d/corpus/field?key=meta.lang"),
    Route("d/{name}/field.svg", field.chart, "d/corpus/field.svg?key=text"),
    Route("d/{name}/duplicates", duplicates.page, "d/corpus/duplicates"),
    Route("d/{name}/find-duplicates", duplicates.find, "", changes=True),
    Route("d/{name}/search", search.search, "d/corpus/search?q=committee"),
    Route("d/{name}/search-all", search.search_everything, "", changes=True),
    Route("d/{name}/row/{row:number}", row.row, "d/corpus/row/3"),
    Route("d/{name}/row/-{back:number}", row_names.from_end, "d/corpus/row/-1"),
    Route("d/{name}/random", row_names.at_random, "d/corpus/random"),
    Route("d/{name}/value/{row:number}", row.value, "d/corpus/value/3?at=text"),
    Route("d/{name}/key/{key:path}", row_names.by_key, "d/corpus/key/k3"),
    Route("d/{name}/key", row_names.by_key, "d/corpus/key?key=k3"),
    Route("d/{name}/wave/{row:number}.svg", media.wave_picture, "d/sounds/wave/0.svg?at=audio.bytes"),
    Route("d/{name}/wave/{row:number}", media.wave, "d/sounds/wave/0?at=audio.bytes"),
    Route("media/d/{name}/{row:number}/{place:path}", media.media, "media/d/sounds/0/audio.bytes"),
    Route("media/d/{name}/{row:number}", media.media, "media/d/sounds/0?at=image"),
    Route("d/{name}/health", health.health, "d/corpus/health"),
    Route("d/{name}/verify", health.verify, "", changes=True),
    Route("d/{name}/reopen", reopen.reopen, "", changes=True),
    Route("opening/{name}", opening.opening, "opening/growing"),
    Route("job/{job}", job.job, "job/1"),
    Route("job/{job}/stop", job.stop, "", changes=True),
    Route("d/{name}/at/{file:path}/{row:number}", row_names.by_place, "d/corpus/at/part-0.jsonl/2"),
    Route("d/{name}/at", row_names.by_place, "d/corpus/at?file=part-0.jsonl&row=2"),
    Route("d/{name}/files", files.files, "d/corpus/files?sort=bytes"),
    Route("d/{name}/files.svg", files.chart, "d/corpus/files.svg"),
    Route("d/{name}/file/{file:number}", files.file, "d/corpus/file/1"),
    Route("p/{name}/", pipeline.pipeline, "p/train/"),
    Route("p/{name}/step/{step:number}", step.step, "p/train/step/7?rank=1&by=odd"),
    Route("p/{name}/step/{step:number}/around", odd.around, "", changes=True),
    Route("p/{name}/position/{position:number}", position.position, "p/train/position/17"),
    Route("p/{name}/sequence/{position:number}", sequence.sequence, "p/packed/sequence/3"),
    Route("p/{name}/when", when.when, "p/train/when?file=part-0.jsonl&row=3"),
    Route("p/{name}/mixture", mixture.page, "p/train/mixture?from=0&to=20"),
    Route("p/{name}/mixture.svg", mixture.chart, "p/train/mixture.svg?from=0&to=20"),
    Route("p/{name}/padding", padding.page, "p/train/padding?from=0&to=20"),
    Route("p/{name}/padding.svg", padding.chart, "p/train/padding.svg?from=0&to=20"),
    Route("p/{name}/padding/read", padding.read, "", changes=True),
    Route("p/{name}/loss", loss.page, "p/train/loss"),
    Route("p/{name}/loss.svg", loss.chart, "p/train/loss.svg?theme=dark"),
    Route("p/{name}/replay/{step:number}", replay.page, "p/even/replay/3"),
    Route("p/{name}/replay/{step:number}/start", replay.start, "", changes=True),
    Route(
        "p/{name}/replay/{step:number}/sequence/{record:number}",
        replayed_sequence.replayed_sequence,
        "p/even/replay/3/sequence/0",
    ),
    Route("compare", compare.compare, "compare?a=train&b=other&step=3"),
    Route("s/{name}/", states.states, "s/checkpoints/"),
    Route("s/{name}/{step:number}", states.state, "s/checkpoints/5"),
    Route("s/{name}/{old:number}...{new:number}", states.compared, "s/checkpoints/5...15"),
)

STATIC = tuple(
    (name, resources.files("seekable.viewer").joinpath("static", name).read_bytes(), kind)
    for name, kind in (
        ("view.css", "text/css"),
        ("view.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    )
)
"""The style, the script and the icon of all pages: their names, contents and types."""
