"""The application: all addresses, the function that makes each page, and answers as HTML, JSON and CSV."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib import resources
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as WebRoute

from seekable.dataset.dataset import Dataset
from seekable.errors import (
    AccessDenied,
    AmbiguousKey,
    BadValue,
    CorruptRecord,
    CorruptState,
    DataNotFound,
    IndexStale,
    InvalidArgument,
    KeyNotFound,
    OutOfRange,
    SeekableError,
    WrongType,
)
from seekable.nodes.bases import leaves_of
from seekable.nodes.node import node_of
from seekable.storage.memory import bytes_in_words
from seekable.viewer.facts.data_survey import files_of
from seekable.viewer.facts.json_documents import SCHEMA, json_safe
from seekable.viewer.facts.named_sources import data_of
from seekable.viewer.opened import StillOpening
from seekable.viewer.page import Asked, Page, PageRows, Redirect, Svg, query_with
from seekable.viewer.pages import (
    dataset_pages,
    files_pages,
    home,
    job,
    loss,
    media_pages,
    pipeline,
    row,
    rows,
    run,
    search_pages,
    sequence,
    step,
)
from seekable.viewer.pages.files_pages import changed_files
from seekable.viewer.render import file_name, one_line, record_html
from seekable.viewer.unseen import text_html

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request

    from seekable.nodes.node import Node
    from seekable.viewer.opened import Opened


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
    Route("d/{name}/", dataset_pages.dataset, "d/corpus/"),
    Route("d/{name}/rows", rows.rows, "d/corpus/rows?where=meta.lang+%3D%3D+de&sort=-length(text)&n=5"),
    Route("d/{name}/filter-again", rows.filter_again, "", changes=True),
    Route("d/{name}/lengths", dataset_pages.lengths_page, "d/corpus/lengths"),
    Route("d/{name}/lengths.svg", dataset_pages.lengths_chart, "d/corpus/lengths.svg"),
    Route("d/{name}/count-lengths", dataset_pages.count_lengths, "", changes=True),
    Route("d/{name}/stats", dataset_pages.stats, "d/corpus/stats"),
    Route("d/{name}/read-stats", dataset_pages.read_stats, "", changes=True),
    Route("d/{name}/field", dataset_pages.field_page, "d/corpus/field?key=meta.lang"),
    Route("d/{name}/field.svg", dataset_pages.field_chart, "d/corpus/field.svg?key=text"),
    Route("d/{name}/padding", run.data_padding_page, "d/corpus/padding"),
    Route("d/{name}/padding/read", run.read_data_padding, "", changes=True),
    Route("d/{name}/duplicates", search_pages.duplicates_page, "d/corpus/duplicates"),
    Route("d/{name}/find-duplicates", search_pages.find_duplicates, "", changes=True),
    Route("d/{name}/search", search_pages.search, "d/corpus/search?q=committee"),
    Route("d/{name}/search-again", search_pages.search_again, "", changes=True),
    Route("d/{name}/search-all", search_pages.search_everything, "", changes=True),
    Route("d/{name}/row/{row:number}", row.row, "d/corpus/row/3"),
    Route("d/{name}/row/-{back:number}", home.from_end, "d/corpus/row/-1"),
    Route("d/{name}/random", home.at_random, "d/corpus/random"),
    Route("d/{name}/value/{row:number}", row.value, "d/corpus/value/3?at=text"),
    Route("d/{name}/key/{key:path}", home.by_key, "d/corpus/key/k3"),
    Route("d/{name}/key", home.by_key, "d/corpus/key?key=k3"),
    Route("d/{name}/wave/{row:number}.svg", media_pages.wave_picture, "d/sounds/wave/0.svg?at=audio.bytes"),
    Route("d/{name}/wave/{row:number}", media_pages.wave, "d/sounds/wave/0?at=audio.bytes"),
    Route("media/d/{name}/{row:number}/{place:path}", media_pages.media, "media/d/sounds/0/audio.bytes"),
    Route("media/d/{name}/{row:number}", media_pages.media, "media/d/sounds/0?at=image"),
    Route("d/{name}/health", files_pages.health, "d/corpus/health"),
    Route("d/{name}/verify", files_pages.verify, "", changes=True),
    Route("d/{name}/reopen", job.reopen, "", changes=True),
    Route("opening/{name}", job.opening, "opening/growing"),
    Route("job/{job}", job.job, "job/1"),
    Route("job/{job}/stop", job.stop, "", changes=True),
    Route("d/{name}/at/{file:path}/{row:number}", home.by_place, "d/corpus/at/part-0.jsonl/2"),
    Route("d/{name}/at", home.by_place, "d/corpus/at?file=part-0.jsonl&row=2"),
    Route("d/{name}/files", files_pages.files, "d/corpus/files?sort=bytes"),
    Route("d/{name}/files.svg", files_pages.files_chart, "d/corpus/files.svg"),
    Route("d/{name}/file/{file:number}", files_pages.file, "d/corpus/file/1"),
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
    Route("p/{name}/loss", loss.loss_page, "p/train/loss?with=even&at=61"),
    Route("p/{name}/loss.svg", loss.loss_chart, "p/train/loss.svg?theme=dark"),
    Route("p/{name}/replay/{step:number}", sequence.replay_page, "p/even/replay/3"),
    Route("p/{name}/replay/{step:number}/start", sequence.start_replay, "", changes=True),
    Route(
        "p/{name}/replay/{step:number}/sequence/{record:number}",
        sequence.replayed_sequence,
        "p/even/replay/3/sequence/0",
    ),
    Route("compare", pipeline.compare, "compare?a=train&b=other&step=3"),
    Route("s/{name}/", pipeline.states, "s/checkpoints/"),
    Route("s/{name}/compare", pipeline.chosen_states, "s/checkpoints/compare?old=15&new=5"),
    Route("s/{name}/{step:number}", pipeline.state, "s/checkpoints/5"),
    Route("s/{name}/{old:number}...{new:number}", pipeline.compared, "s/checkpoints/5...15"),
)

STATIC = tuple(
    (name, resources.files("seekable.viewer").joinpath("static", name).read_bytes(), kind)
    for name, kind in (
        ("view.css", "text/css"),
        ("view.js", "text/javascript"),
        ("plot.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    )
)
"""The style, the script and the icon of all pages: their names, contents and types."""


_LETTERS = 50
"""The letters of all names that fit beside the box, in a line of 1,280 pixels."""

_ALL = 8
"""The letters of a link to all names of a kind."""

_LONGEST = 16
"""The letters of a name after which it is cut."""

_OVERVIEW = re.compile(r"/[dps]/[^/]+")
_SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_DIGITS = 8
_IDENTITY = re.compile(r"([0-9a-f]{8})(?:-(\d{1,18}|endless))?(?:-(\d{1,18}))?", re.ASCII)

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (KeyNotFound, 404),
    (AmbiguousKey, 404),
    (DataNotFound, 404),
    (OutOfRange, 404),
    (InvalidArgument, 400),
    (WrongType, 400),
    (IndexStale, 409),
    (CorruptRecord, 422),
    (AccessDenied, 403),
    (BadValue, 422),
    (CorruptState, 422),
    (OverflowError, 400),
)
_HEADINGS = {
    404: "Not found",
    400: "That cannot be read",
    409: "The data has changed",
    422: "A corrupt record",
}


class _NumberConvertor(Convertor[int]):
    """Numbers in addresses, short enough that a product with a batch fits 64 bits."""

    regex = "[0-9]{1,15}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", _NumberConvertor())


def make_app(opened: Opened) -> Starlette:
    """Return the application that shows what is open, without the guard."""
    answers = _Answers(opened)
    routes = [
        WebRoute(f"/{route.path}", answers.of(route), methods=["POST" if route.changes else "GET"])
        for route in ROUTES
    ]
    static = [WebRoute(f"/{name}", _static(text, kind), methods=["GET"]) for name, text, kind in STATIC]
    return Starlette(routes=[*static, *routes, WebRoute("/{rest:path}", answers.missing, methods=["GET"])])


class _Answers:
    """Turns pages into answers to requests."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._templates = Environment(
            loader=PackageLoader("seekable.viewer", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(
            opened=opened, opened_step=self._step, navigation=partial(navigation, opened)
        )
        filters: dict[str, Callable[..., Any]] = {
            "number": lambda value: f"{value:,}",
            "sizes": _sizes,
            "size": bytes_in_words,
            "text": text_html,
            "line": one_line,
            "file_name": file_name,
            "record": record_html,
            "written": lambda value: json.dumps(value, ensure_ascii=False),
            "part": lambda text: quote(str(text), safe=""),
        }
        self._templates.filters.update(filters)

    def of(self, route: Route) -> Callable[[Request], Response]:
        """Return the function that answers requests for a route, in a thread."""

        def answer(request: Request) -> Response:
            query, byte_range = dict(request.query_params), request.headers.get("range")
            address = request.url.path.removeprefix("/") + query_with(query, {})
            asked = Asked(dict(request.path_params), query, byte_range, address)
            try:
                return self._response(route.page(self._opened, asked), request, asked)
            except StillOpening as waiting:
                made: Page | Redirect = Redirect(f"opening/{waiting.name}")
            except Exception as error:  # noqa: BLE001 - functions of the user run in some pages and raise anything
                made = _error_page(error, self._opened, *_names(request))
            return self._response(made, request, asked)

        return answer

    def _step(self, name: str) -> int:
        """Return the next step of a pipeline, for a link; 0 for a stream without batches."""
        return getattr(self._opened.pipeline(name).pipeline, "step", 0)

    def missing(self, request: Request) -> Response:
        """Answer a request for an address that no route has; lead on from one without its last slash."""
        path = request.url.path
        made: Page | Redirect = _error_page(KeyNotFound(f"there is no page {path!r}"), self._opened)
        if _OVERVIEW.fullmatch(path):
            made = Redirect(f"{path.removeprefix('/')}/")
        return self._response(made, request, Asked({}, dict(request.query_params)))

    def _response(self, made: Any, request: Request, asked: Asked) -> Response:
        up = "../" * (request.url.path.count("/") - 1)
        if isinstance(made, Response):
            return made
        if isinstance(made, Redirect):
            to = up + made.to if up or made.to else "./"
            if "as" in asked.query:
                to += f"{'&' if '?' in to else '?'}{urlencode({'as': asked.query['as']})}"
            return RedirectResponse(to, status_code=303)
        if isinstance(made, Svg):
            return Response(
                made.text, media_type="image/svg+xml", headers={"Content-Security-Policy": _SVG_POLICY}
            )
        wanted, identity = asked.query.get("as", "html"), identity_of(self._opened, *_names(request))
        changed = None if identity is None else identity.changed_since(asked.query.get("is", ""))
        if wanted == "json":
            facts = {} if made.facts is None else made.facts()
            more = {} if changed is None else {"changed": changed}
            body = _json({"schema": SCHEMA, **made.document, **facts, **more})
            return Response(body, status_code=made.status, media_type="application/json")
        if wanted in _TABLES and made.table is not None:
            make, kind = _TABLES[wanted]
            return Response(make(made.table), media_type=kind)
        if wanted != "html" and made.status == HTTPStatus.OK:
            has = "json, csv and jsonl" if made.table is not None else "json"
            error = InvalidArgument(f"this page is there as {has} (asked for: as={wanted[:40]})")
            made = _error_page(error, self._opened)
        return self._page(made, request, asked, {"up": up or "./", "identity": identity, "changed": changed})

    def _page(self, made: Page, request: Request, asked: Asked, more: Mapping[str, Any]) -> Response:
        template = self._templates.get_template(f"{made.template}.html")
        path = request.url.path.removeprefix("/")
        kind, named = _names(request)
        body = template.render(
            page=made,
            doc=made.document,
            here=path.rpartition("/")[2],
            kind=kind,
            named=named,
            query=asked.query,
            with_query=lambda **changes: query_with(asked.query, changes),
            **more,
            **made.shown,
        )
        return Response(
            body.encode("utf-8", "backslashreplace"),
            status_code=made.status,
            media_type="text/html; charset=utf-8",
        )


@dataclass(frozen=True, slots=True)
class NavigationGroup:
    """The names of one kind."""

    kind: str
    """The first part of their addresses."""

    word: str
    """The kind, for people."""

    names: tuple[str, ...]
    """Those that are shown."""

    more: str
    """Leads to all of them on the first page; empty if all are shown."""

    anchor: str


def navigation(opened: Opened, kind: str, named: str) -> list[NavigationGroup]:
    """Return the groups that are not empty, with the names that fit in a line: first that of the page.

    Args:
        opened: what is open.
        kind: the kind of what the page shows: "d", "p" or "s".
        named: its name.
    """
    groups = (
        ("d", "data", list(opened.datasets), "datasets"),
        ("p", "pipelines", list(opened.pipelines), "pipelines"),
        ("s", "states", list(opened.states), "states"),
    )
    fitting = _fitting({letter: names for letter, _, names, _ in groups}, (kind, named))
    found = []
    for letter, word, names, anchor in groups:
        shown = tuple(name for name in names if (letter, name) in fitting)
        more = f"all {len(names)}" if len(shown) < len(names) else ""
        if names:
            found.append(NavigationGroup(letter, word, shown, more, anchor))
    return found


def _fitting(groups: Mapping[str, Sequence[str]], first: tuple[str, str]) -> set[tuple[str, str]]:
    """Return the kinds and names that fit in a line: ``first``, then one of each kind in turn.

    Example:
        >>> sorted(_fitting({"d": [f"source-{n}" for n in range(9)], "p": ["train"]}, ("d", "source-8")))
        [('d', 'source-0'), ('d', 'source-1'), ('d', 'source-8'), ('p', 'train')]
    """
    turns = zip_longest(*([(kind, name) for name in names] for kind, names in groups.items()))
    waiting = [each for turn in turns for each in turn if each is not None]
    letters = {each: min(len(each[1]), _LONGEST) + 2 for each in waiting}
    room = _LETTERS
    if sum(letters.values()) > room:
        room -= sum(_ALL for names in groups.values() if len(names) > 1)
    shown = {first} & letters.keys()
    room -= sum(letters[each] for each in shown)
    for each in waiting:
        room -= letters[each] * (each not in shown)
        if room < 0:
            break
        shown.add(each)
    return shown


def _names(request: Request) -> tuple[str, str]:
    """Return the kind and the name that an address begins with: ``d`` and a dataset, ``p`` and a pipeline."""
    kind, _, rest = request.url.path.removeprefix("/").partition("/")
    return kind, rest.partition("/")[0]


def _json(document: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(document, order="sorted") + b"\n"
    except (UnicodeEncodeError, msgspec.ValidationError, TypeError, RecursionError):
        # A lone surrogate, which JSON can hold as an escape alone.
        return json.dumps(document, sort_keys=True, default=str).encode() + b"\n"


def _lines(table: PageRows) -> bytes:
    return b"".join(_json(dict(zip(table.header, row, strict=True))) for row in table.rows)


_TABLES: dict[str, tuple[Callable[[PageRows], bytes], str]] = {
    "csv": (PageRows.as_csv, "text/csv; charset=utf-8"),
    "jsonl": (_lines, "application/jsonl"),
}


def _static(text: bytes, kind: str) -> Callable[[Request], Response]:
    def answer(_: Request) -> Response:
        return Response(text, media_type=kind, headers={"Cache-Control": "max-age=3600"})

    return answer


@dataclass(frozen=True, slots=True)
class LinkIdentity:
    """The identity of data, or of a pipeline's order, in the parameter ``is`` of links."""

    digits: str
    """The first eight hexadecimal digits of the fingerprint."""

    rows: int | None
    """Records of an epoch; None if they are endless, or if a link does not say them."""

    files: int | None

    def __str__(self) -> str:
        """Return the identity as links have it."""
        rows = "endless" if self.rows is None else self.rows
        return f"{self.digits}-{rows}" + ("" if self.files is None else f"-{self.files}")

    def changed_since(self, text: str) -> str | None:
        """Return how this differs from the identity in a link, in words; None if it is the same.

        Args:
            text: the parameter ``is`` of the link; any text that is not an identity counts as the same.

        Example:
            >>> LinkIdentity("9f3c0a1b", 301, 3).changed_since("77aa01cd-300-3")
            '300 rows are now 301'
            >>> LinkIdentity("9f3c0a1b", 301, 3).changed_since("9f3c0a1b")
        """
        found = _IDENTITY.fullmatch(text)
        if found is None or found[1] == self.digits:
            return None
        rows, files = (int(each) if each and each.isdigit() else None for each in (found[2], found[3]))
        parts = [
            f"{old:,} {unit} are now {new:,}"
            for unit, old, new in (("rows", rows, self.rows), ("files", files, self.files))
            if old is not None and new is not None and old != new
        ]
        if parts:
            return ", ".join(parts)
        if found[2] is None:
            return "the link does not say how many rows and files there were"
        return "as many rows and files as before, with another content or in another order"


def identity_of(opened: Opened, kind: str, name: str) -> LinkIdentity | None:
    """Return the identity of a dataset (``d``) or a pipeline (``p``); None if it is not open, or has none."""
    root = opened.root_of(kind, name)
    if root is None or isinstance(root, Dataset):
        return None if root is None else _of_node(node_of(root))
    return LinkIdentity(_digits(root.fingerprint), None, None)


def _of_node(node: Node) -> LinkIdentity | None:
    leaves = [leaf for leaf in map(data_of, leaves_of(node)) if leaf is not None]
    try:
        files = sum(len(each) for each in files_of(leaves)) if leaves else None
        return LinkIdentity(_digits(node.fingerprint), node.size, files)
    except SeekableError:
        return None


def _digits(fingerprint: str) -> str:
    return fingerprint.rpartition(":")[2][:_DIGITS]


def _error_page(error: Exception, opened: Opened, kind: str = "", name: str = "") -> Page:
    """Return the page of an error: what was asked for, why it cannot be shown, and what helps.

    Args:
        error: what the page of the address raised.
        opened: what is open.
        kind: the kind of what the address names: ``d`` for a dataset, ``p`` for a pipeline.
        name: its name.
    """
    status = next((code for kind_of, code in _STATUS if isinstance(error, kind_of)), 500)
    document: dict[str, Any] = {
        "error": json_safe(
            str(error) if isinstance(error, SeekableError) else f"{type(error).__name__}: {error}"
        ),
        "kind": type(error).__name__,
        "status": status,
    }
    shown: dict[str, Any] = {"last": None, "reopens": None, "of": f"{kind}/{name}"}
    dataset = opened.datasets.get(name) if kind == "d" else None
    if isinstance(error, IndexStale):
        document["files"] = changed_files(_sources(opened, kind, name))
        shown["reopens"] = name if name in opened.openers else None
    elif isinstance(error, OutOfRange) and dataset is not None and (size := node_of(dataset).size):
        shown["last"] = size - 1
    heading = "A corrupt state" if isinstance(error, CorruptState) else _HEADINGS.get(status, "An error")
    return Page("error", heading, document, shown, status=status)


def _sources(opened: Opened, kind: str, name: str) -> list[Any]:
    """Return the sources of data of a dataset or a pipeline."""
    root = opened.root_of(kind, name)
    leaves = leaves_of(node_of(root)) if isinstance(root, Dataset) else ()
    return [source for source in map(data_of, leaves) if source is not None]


def _sizes(batch: int | list[tuple[int, int]]) -> str:
    """Return the records of a batch in words; those that follow the step with their steps.

    Example:
        >>> _sizes(4096), _sizes([(0, 256), (1000, 512)])
        ('4,096', '256, from step 1,000 on 512')
    """
    (_, first), *others = [(0, batch)] if isinstance(batch, int) else batch
    return ", ".join([f"{first:,}", *(f"from step {step:,} on {size:,}" for step, size in others)])
