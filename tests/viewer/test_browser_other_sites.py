"""A page of another site in a real browser, which holds the link of a viewer, gets nothing from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.viewer.serving import serving

if TYPE_CHECKING:
    from seekable.viewer.server import Server

HOSTILE = """<!doctype html><title>hostile</title>
<img id="image" src="{of}icon.svg"><img id="media" src="{of}media/d/sounds/0?at=image">
<script src="{of}view.js"></script>
<link rel="stylesheet" href="{of}view.css">
<form id="posts" method="post" action="{of}d/corpus/verify" target="_self"><input name="x"></form>
"""
TRIES = """async (of) => {
    const said = {};
    const ask = async (name, address, options) => {
        try {
            const answer = await fetch(address, options);
            said[name] = answer.type + " " + (await answer.text()).length;
        } catch (error) { said[name] = "refused"; }
    };
    await ask("fetch", of + "d/corpus/rows");
    await ask("json", of + "d/corpus/rows?as=json");
    await ask("no-cors", of + "d/corpus/rows", {mode: "no-cors"});
    await ask("post", of + "d/corpus/verify", {method: "POST", mode: "no-cors"});
    said.image = document.querySelector("#image").naturalWidth;
    said.media = document.querySelector("#media").naturalWidth;
    said.script = document.documentElement.classList.contains("js");
    said.style = getComputedStyle(document.body).marginTop === "0px";
    return said;
}"""


def test_a_hostile_page_gets_nothing_even_with_the_token(browser: Any, viewer: Server) -> None:
    page_of = HOSTILE.format(of=viewer.url).encode()
    before = len(viewer.opened.jobs.all())
    context = browser.new_context()
    with serving(lambda _: ("text/html; charset=utf-8", page_of)) as port:
        page = context.new_page()
        page.set_default_timeout(10_000)
        answers: dict[str, set[int]] = {}
        page.on(
            "response",
            lambda answer: answers.setdefault(answer.url, set()).add(answer.status),
        )
        # A name of this machine that is no name of the viewer's: another site for the browser.
        page.goto(f"http://hostile.localhost:{port}/")
        found = page.evaluate(TRIES, viewer.url)
        assert found == {
            "fetch": "refused",
            "json": "refused",
            "no-cors": "refused",
            "post": "refused",
            "image": 0,
            "media": 0,
            "script": False,
            "style": False,
        }
        page.evaluate("document.querySelector('#posts').submit()")
        page.wait_for_url(viewer.url + "d/corpus/verify")
        assert page.locator("h1").inner_text() == "403"
    asked = {url: statuses for url, statuses in answers.items() if url.startswith(viewer.url)}
    assert {frozenset(statuses) for statuses in asked.values()} == {frozenset({403})}, asked
    assert viewer.url + "d/corpus/verify" in asked
    context.close()
    assert len(viewer.opened.jobs.all()) == before
