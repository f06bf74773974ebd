"""Hostile records in a real browser: nothing of them runs, loads, leads away or becomes an element."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from tests.thrift import sample
from tests.viewer.viewed import make_tokenizer

import seekable as sk
from seekable.viewer.opened import opened_of
from seekable.viewer.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PWN = "window.pwned=1"


def nested(depth: int) -> Any:
    value: Any = "the bottom"
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: dict[str, Any] = {
    "script": f"<script>{PWN}</script>",
    "closed script": f"</script></dd></dl></div></main><script>{PWN}</script>",
    "handlers": f'<img src=x onerror="{PWN}"><svg onload="{PWN}"><details open ontoggle="{PWN}">',
    "address": f'<a href="javascript:{PWN}">x</a> javascript:{PWN}',
    "base": '<base href="http://evil.example/">',
    "refresh": '<meta http-equiv="refresh" content="0;url=http://evil.example/">',
    "frame": f'<iframe srcdoc="<script>parent.{PWN}</script>"></iframe><object data="data:text/html,x">',
    "style": "<style>*{display:none!important}</style><link rel=stylesheet href=http://evil.example/x.css>",
    "comment": "<!-- <plaintext> <textarea> <title>",
    "template": "{{ 7 * 7 }} {% include 'base.html' %} ${pwned}",
    "quotes": "\" ' ` onfocus=" + PWN + ' autofocus x="',
    "bidi": "user\u202e\u2066gnp.exe\u2069 \u200b\ufeff",
    "control": "a\x00b\x1b[31mc\x7f\x85\u2028",
    "surrogate": "\ud800 and \udfff",
    "numbers": [float("nan"), float("inf"), -float("inf"), 10**30, -(10**400), 1e-320],
    "deep": nested(90),
    "many keys": {f"<b>key {number}</b>": number for number in range(10_000)},
    "many items": list(range(100_000)),
    "long": "<i>x</i>" * 125_000,
    "roles": [
        {
            "role": f"<script>{PWN}</script>",
            "content": [{"role": "user", "content": f"<script>{PWN}</script>"}],
        }
    ],
    "__proto__": {"constructor": PWN},
    "": {"": {"": f"<script>{PWN}</script>"}},
}
WORDS = " ".join(
    [
        *(
            HOSTILE[key]
            for key in ("script", "closed script", "handlers", "address", "frame", "style", "bidi")
        ),
        f"[x](javascript:{PWN}) ![x](http://evil.example/x.png) <http://evil.example/>",
        f"\n\n```<script>\n</code></pre><script>{PWN}</script>\n```\n",
        f"\n| a | <b> |\n|---|---|\n| <i> | {PWN} |",
        f"\n# <h1>\n> <q>\n- <li>\n1. $x^{{<script>{PWN}</script>}}$",
        "\\(\\text{<img src=x>}\\) $$\\href{x}{y}$$",
    ]
)
CALL = {"function": {"name": WORDS, "arguments": json.dumps({WORDS: WORDS})}, "id": WORDS}
CONVERSATIONS: tuple[dict[str, Any], ...] = (
    {
        "messages": [
            {"role": WORDS, "content": WORDS, "weight": WORDS, WORDS: WORDS},
            {
                "role": "user",
                "content": [{"type": "text", "text": WORDS}, {"type": WORDS, "image_url": WORDS}],
            },
            {"role": "assistant", "content": f"<think>{WORDS}</think>{WORDS}", "tool_calls": [CALL, WORDS]},
            {"role": "tool", "content": json.dumps([WORDS]), "reasoning_content": WORDS},
        ],
        "tools": [{"function": {"name": WORDS, "description": WORDS}}, WORDS],
        WORDS: WORDS,
    },
    {"conversations": [{"from": "human", "value": f"{WORDS} {turn}"} for turn in range(300)]},
    {"prompt": WORDS, "chosen": WORDS, "rejected": [{"role": "user", "content": WORDS}] * 2},
    {"prompt": WORDS, "chosen": WORDS, "rejected": WORDS + WORDS},
    {"instruction": WORDS, "input": WORDS, "output": WORDS, "history": [[WORDS, WORDS]]},
)
OURS = {
    "A",
    "AUDIO",
    "B",
    "BR",
    "CODE",
    "DD",
    "DETAILS",
    "DIV",
    "DL",
    "DT",
    "IMG",
    "MARK",
    "P",
    "SPAN",
    "SUMMARY",
    "VIDEO",
}
"""The elements that the viewer makes of a record."""

OF_WORDS = {
    *("BLOCKQUOTE", "EM", "HR", "LI", "OL", "PRE", "S", "SECTION", "STRONG", "UL"),
    *("TABLE", "TBODY", "TD", "TH", "THEAD", "TR"),
    *("math", "mfrac", "mi", "mn", "mo", "mrow", "mspace", "msub", "msubsup", "msup", "mtext"),
}
"""Those that it makes of the words of conversations too."""

FOUND = """(() => {
    const all = (what) => [...document.querySelectorAll(what)];
    const once = (values) => [...new Set(values)];
    return {
        pwned: window.pwned ?? null,
        base: document.baseURI,
        heading: document.querySelector("body > main > .head > h1").checkVisibility(),
        made: once(all(".record *").map((each) => each.tagName)),
        names: once(all("*").flatMap((each) => each.getAttributeNames())),
        links: once(all("[href],[src]").map((each) => each.href || each.src)),
    };
})()"""

NAMES = [
    *(f"d/hostile/row/{row}" for row in range(len(HOSTILE) + len(CONVERSATIONS))),
    f"d/hostile/row/{len(HOSTILE)}?text=raw",
    *(
        f"d/hostile/row/{row}?view={view}"
        for row, view in sample(itertools.product((0, 1, 12, 13), ("file", "bytes")), of=2)
    ),
    *(f"d/hostile/{page}" for page in ("", "rows", "rows?order=sample", "stats")),
    *(f"p/{page}" for page in ("run/step/0", "next/step/1?by=odd", "run/mixture?in=bytes&to=2")),
    *("d/other/row/0", "compare?a=run&b=next&step=1"),
    f"d/hostile/value/{list(HOSTILE).index('long')}?at=long",
    "d/hostile/row/0?view=%3Cscript%3E",
    "d/hostile/rows?keys=%3Cscript%3Ewindow.pwned%3D1%3C%2Fscript%3E",
    "d/hostile/rows?where=%3Cscript%3E&sort=%3Cscript%3E",
    "d/hostile/rows?where=script+is+not+missing&sort=-length(handlers)&keys=script,handlers,frame,style,numbers",
    "d/hostile/rows?where=" + quote("frame contains " + json.dumps(HOSTILE["frame"])) + "&order=sample",
    *(f"d/hostile/{page}?q=script%3E&key=" for page in ("search", "row/0", "row/1")),
    "d/hostile/search?q=%3C.*%3E&regex=1",
    "d/hostile/padding",
    "d/hostile/row/2?where=" + quote('handlers matches "<img.*>"') + "&sort=%3Cscript%3E",
    "d/hostile/field?key=handlers",
    "go?to=%3Cscript%3Ewindow.pwned%3D1%3C%2Fscript%3E",
    "d/%3Cscript%3E/",
    "no%3Cscript%3Ewindow.pwned%3D1%3C/script%3E",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A viewer of hostile records, each in a line of its own."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    records = [*({key: value} for key, value in HOSTILE.items()), *CONVERSATIONS]
    lines = list(map(json.dumps, records))
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    make_tokenizer(folder)
    data = sk.open(folder / "a.jsonl")
    (folder / "b.jsonl").write_text("\n".join(lines) + "\n")
    targets = {
        "hostile": data,
        "other": sk.open(folder / "b.jsonl"),
        "run": sk.Loader(data.shuffle(seed=1), batch_size=8, prefetch=0),
        "next": sk.Loader(data.shuffle(seed=2), batch_size=8, prefetch=0),
    }
    server = Server(opened_of(targets, tokenizer=str(folder / "tokenizer.json")), port=0)
    server.start()
    yield server
    server.close()


def test_nothing_of_a_hostile_record_does_anything(browser: Any, hostile: Server) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(10_000)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on(
        "console", lambda message: said.append(message.text) if "Content Security" in message.text else None
    )
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    for name in NAMES:
        answer = page.goto(hostile.url + name)
        is_wrong = "script" in name.lower() or "%3C" in name
        assert answer.status == 200 or (is_wrong and answer.status in (400, 404)), (name, answer.status)
        assert len(answer.body()) < 5_000_000, name
        found = page.evaluate(FOUND)
        assert page.url == found["base"] == hostile.url + name
        assert found["pwned"] is None, name
        assert found["heading"], name
        assert set(found["made"]) <= OURS | OF_WORDS, name
        assert [each for each in found["names"] if each.startswith("on")] == [], name
        assert [link for link in found["links"] if not link.startswith(hostile.url)] == [], name
    context.close()
    assert [url for url in asked if not url.startswith(hostile.url)] == []
    assert said == []


def test_what_is_not_shown_as_it_is_is_said(browser: Any, hostile: Server) -> None:
    context = browser.new_context(base_url=hostile.url)
    page = context.new_page()
    codes = []
    for key in ("bidi", "control", "surrogate"):
        page.goto(f"d/hostile/row/{list(HOSTILE).index(key)}")
        codes += page.evaluate("[...document.querySelectorAll('.record .esc')].map((each) => each.title)")
    assert {"U+202E", "U+2066", "U+2069", "U+200B", "U+FEFF"} <= set(codes)
    assert {"U+0000", "U+001B", "U+007F", "U+0085", "U+2028", "U+D800", "U+DFFF"} <= set(codes)
    for key, words in {
        "many keys": "10,000",
        "many items": "100,000",
        "long": "1,000,000 characters",
    }.items():
        page.goto(f"d/hostile/row/{list(HOSTILE).index(key)}")
        assert words in page.locator(".record").inner_text(), key
    context.close()
