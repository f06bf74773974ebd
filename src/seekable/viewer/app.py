"""The application: an address, its page, and the same facts as JSON, CSV or lines of JSON."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as WebRoute

from seekable.errors import InvalidArgument, KeyNotFound
from seekable.storage.memory import bytes_in_words
from seekable.viewer.error_page import error_page
from seekable.viewer.facts.documents import SCHEMA
from seekable.viewer.identity import identity_of
from seekable.viewer.opened import StillOpening
from seekable.viewer.page import Asked, Page, Redirect, Svg, Table
from seekable.viewer.render import file_name, one_line, record_html, text_html
from seekable.viewer.routes import ROUTES, STATIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from seekable.viewer.opened import Opened
    from seekable.viewer.routes import Route

_OVERVIEW = re.compile(r"/[dps]/[^/]+")
_SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


class _Number(Convertor[int]):
    """Numbers in addresses: so long that no product with a batch is beyond 64 bits."""

    regex = "[0-9]{1,15}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", _Number())


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
        self._templates.globals.update(opened=opened, opened_step=self._step)
        filters: dict[str, Callable[..., Any]] = {
            "number": lambda value: f"{value:,}",
            "size": bytes_in_words,
            "text": text_html,
            "line": one_line,
            "file_name": file_name,
            "record": record_html,
            "part": lambda text: quote(str(text), safe=""),
        }
        self._templates.filters.update(filters)

    def of(self, route: Route) -> Callable[[Request], Response]:
        """Return the function that answers requests for a route, in a thread."""

        def answer(request: Request) -> Response:
            query, byte_range = dict(request.query_params), request.headers.get("range")
            asked = Asked(dict(request.path_params), query, byte_range)
            try:
                return self._response(route.page(self._opened, asked), request, asked)
            except StillOpening as waiting:
                made: Page | Redirect = Redirect(f"opening/{waiting.name}")
            except Exception as error:  # noqa: BLE001 - functions of the user run in some pages and raise anything
                made = error_page(error, self._opened, *_names(request))
            return self._response(made, request, asked)

        return answer

    def _step(self, name: str) -> int:
        """Return the next step of a pipeline, for a link; 0 of a stream without batches."""
        return getattr(self._opened.pipeline(name).pipeline, "step", 0)

    def missing(self, request: Request) -> Response:
        """Answer a request for an address that no route has; lead on from one without its last slash."""
        path = request.url.path
        made: Page | Redirect = error_page(KeyNotFound(f"there is no page {path!r}"), self._opened)
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
            made = error_page(error, self._opened)
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
            with_query=lambda **changes: _with_query(asked.query, changes),
            **more,
            **made.shown,
        )
        return Response(
            body.encode("utf-8", "backslashreplace"),
            status_code=made.status,
            media_type="text/html; charset=utf-8",
        )


def _names(request: Request) -> tuple[str, str]:
    """Return the kind and the name of what an address is about: ``d`` and a dataset, ``p`` and a pipeline."""
    kind, _, rest = request.url.path.removeprefix("/").partition("/")
    return kind, rest.partition("/")[0]


def _with_query(query: Mapping[str, str], changes: Mapping[str, Any]) -> str:
    """Return a query with some parameters changed; those that become None are left out.

    If none is left it is empty, and stands behind an address: alone it would be a link to the same query.
    """
    merged = {**{key: value for key, value in query.items() if key not in ("as", "is")}, **changes}
    left = urlencode({key: value for key, value in merged.items() if value is not None})
    return left and f"?{left}"


def _json(document: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(document, order="sorted") + b"\n"
    except (UnicodeEncodeError, msgspec.ValidationError, TypeError, RecursionError):
        # A lone surrogate, which JSON can hold as an escape alone.
        return json.dumps(document, sort_keys=True, default=str).encode() + b"\n"


def _lines(table: Table) -> bytes:
    return b"".join(_json(dict(zip(table.header, row, strict=True))) for row in table.rows)


_TABLES: dict[str, tuple[Callable[[Table], bytes], str]] = {
    "csv": (Table.as_csv, "text/csv; charset=utf-8"),
    "jsonl": (_lines, "application/jsonl"),
}


def _static(text: bytes, kind: str) -> Callable[[Request], Response]:
    def answer(_: Request) -> Response:
        return Response(text, media_type=kind, headers={"Cache-Control": "max-age=3600"})

    return answer
