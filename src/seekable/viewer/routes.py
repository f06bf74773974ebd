"""The one list of addresses: each with the function that makes its page, and an example that tests open."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from seekable.viewer.pages import dataset, files, home, job, media, pipeline, row, rows, run, sequence, step

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
    Route("go", home.go, "go?to=corpus+5"),
    Route("d/{name}/", dataset.dataset, "d/corpus/"),
    Route("d/{name}/rows", rows.rows, "d/corpus/rows?at=3&n=5"),
    Route("d/{name}/lengths", dataset.lengths_page, "d/corpus/lengths"),
    Route("d/{name}/lengths.svg", dataset.lengths_chart, "d/corpus/lengths.svg"),
    Route("d/{name}/count-lengths", dataset.count_lengths, "", changes=True),
    Route("d/{name}/stats", dataset.stats, "d/corpus/stats"),
    Route("d/{name}/read-stats", dataset.read_stats, "", changes=True),
    Route("d/{name}/field", dataset.field_page, "d/corpus/field?key=meta.lang"),
    Route("d/{name}/field.svg", dataset.field_chart, "d/corpus/field.svg?key=text"),
    Route("d/{name}/duplicates", rows.duplicates_page, "d/corpus/duplicates"),
    Route("d/{name}/find-duplicates", rows.find_duplicates, "", changes=True),
    Route("d/{name}/search", rows.search, "d/corpus/search?q=committee"),
    Route("d/{name}/search-all", rows.search_everything, "", changes=True),
    Route("d/{name}/row/{row:number}", row.row, "d/corpus/row/3"),
    Route("d/{name}/row/-{back:number}", home.from_end, "d/corpus/row/-1"),
    Route("d/{name}/random", home.at_random, "d/corpus/random"),
    Route("d/{name}/value/{row:number}", row.value, "d/corpus/value/3?at=text"),
    Route("d/{name}/key/{key:path}", home.by_key, "d/corpus/key/k3"),
    Route("d/{name}/key", home.by_key, "d/corpus/key?key=k3"),
    Route("d/{name}/wave/{row:number}.svg", media.wave_picture, "d/sounds/wave/0.svg?at=audio.bytes"),
    Route("d/{name}/wave/{row:number}", media.wave, "d/sounds/wave/0?at=audio.bytes"),
    Route("media/d/{name}/{row:number}/{place:path}", media.media, "media/d/sounds/0/audio.bytes"),
    Route("media/d/{name}/{row:number}", media.media, "media/d/sounds/0?at=image"),
    Route("d/{name}/health", files.health, "d/corpus/health"),
    Route("d/{name}/verify", files.verify, "", changes=True),
    Route("d/{name}/reopen", job.reopen, "", changes=True),
    Route("opening/{name}", job.opening, "opening/growing"),
    Route("job/{job}", job.job, "job/1"),
    Route("job/{job}/stop", job.stop, "", changes=True),
    Route("d/{name}/at/{file:path}/{row:number}", home.by_place, "d/corpus/at/part-0.jsonl/2"),
    Route("d/{name}/at", home.by_place, "d/corpus/at?file=part-0.jsonl&row=2"),
    Route("d/{name}/files", files.files, "d/corpus/files?sort=bytes"),
    Route("d/{name}/files.svg", files.files_chart, "d/corpus/files.svg"),
    Route("d/{name}/file/{file:number}", files.file, "d/corpus/file/1"),
    Route("p/{name}/", pipeline.pipeline, "p/train/"),
    Route("p/{name}/step/{step:number}", step.step, "p/train/step/7?rank=1&by=odd"),
    Route("p/{name}/step/{step:number}/around", step.search_around, "", changes=True),
    Route("p/{name}/position/{position:number}", step.position, "p/train/position/17"),
    Route("p/{name}/sequence/{position:number}", sequence.sequence, "p/packed/sequence/3"),
    Route("p/{name}/when", step.when, "p/train/when?file=part-0.jsonl&row=3"),
    Route("p/{name}/mixture", run.mixture_page, "p/train/mixture?from=0&to=20"),
    Route("p/{name}/mixture.svg", run.mixture_chart, "p/train/mixture.svg?from=0&to=20"),
    Route("p/{name}/padding", run.padding_page, "p/train/padding?from=0&to=20"),
    Route("p/{name}/padding.svg", run.padding_chart, "p/train/padding.svg?from=0&to=20"),
    Route("p/{name}/padding/read", run.read_padding, "", changes=True),
    Route("p/{name}/loss", run.loss_page, "p/train/loss"),
    Route("p/{name}/loss.svg", run.loss_chart, "p/train/loss.svg?theme=dark"),
    Route("p/{name}/replay/{step:number}", sequence.replay_page, "p/even/replay/3"),
    Route("p/{name}/replay/{step:number}/start", sequence.start_replay, "", changes=True),
    Route(
        "p/{name}/replay/{step:number}/sequence/{record:number}",
        sequence.replayed_sequence,
        "p/even/replay/3/sequence/0",
    ),
    Route("compare", pipeline.compare, "compare?a=train&b=other&step=3"),
    Route("s/{name}/", pipeline.states, "s/checkpoints/"),
    Route("s/{name}/{step:number}", pipeline.state, "s/checkpoints/5"),
    Route("s/{name}/{old:number}...{new:number}", pipeline.compared, "s/checkpoints/5...15"),
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
