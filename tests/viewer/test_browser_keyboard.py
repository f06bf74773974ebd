"""The keyboard alone in a real browser: each question is answered within four actions from the first page.

An action is a key, or a text that is written into a box and sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.thrift import sample

from seekable.viewer.app import identity_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.viewer.server import Server

MOST_ACTIONS = 4


@dataclass(frozen=True)
class Question:
    """A question of a user, the keys that answer it, and what the page then shows."""

    asks: str
    actions: tuple[str, ...]
    """Single keys, and texts for a box."""

    address: str
    """The beginning of the address, below the link."""

    shows: str
    """A selector of what answers it."""


QUESTIONS = (
    Question(
        "1 what is odd in the batch of a step and a rank",
        ("g", "train step 7 rank 1", "o"),
        "p/train/step/7?rank=1&by=odd",
        "th:has-text('compressed size')",
    ),
    Question("2 is my data sane, at random", ("r",), "d/corpus/rows?order=sample", "tbody tr >> nth=49"),
    Question("2 one row at random", ("g", "corpus", "r"), "d/corpus/row/", ".record"),
    Question("3 a row", ("g", "corpus 1,7"), "d/corpus/row/17", ".record >> text=k17"),
    Question(
        "3 a file and its line", ("g", "corpus/part-1.jsonl:5"), "d/corpus/row/105", ".record >> text=k105"
    ),
    Question("3 a key", ("g", "corpus key:k205"), "d/corpus/row/205", ".record >> text=k205"),
    Question("4 when a row comes", ("g", "corpus 17"), "d/corpus/row/17", ".training a:has-text('rank')"),
    Question("5 the mixture", ("g", "train", "3"), "p/train/mixture", "main tr:has-text('web')"),
    Question("6 lengths", ("g", "corpus"), "d/corpus/", "text=/p50 [0-9]/"),
    Question(
        "7 keys, types and where they are missing", ("g", "corpus", "3"), "d/corpus/stats", "text=meta.lang"
    ),
    Question(
        "8 padding", ("g", "train", "4"), "p/train/padding", "main tr:has-text('rank'), main dl:has-text('%')"
    ),
    Question(
        "8 padding of data that is not packed",
        ("g", "train padding"),
        "p/train/padding",
        "main dl:has-text('padding')",
    ),
    Question(
        "8 padding of data without a run",
        ("g", "corpus padding"),
        "d/corpus/padding",
        "main tr:has-text('shuffled')",
    ),
    Question(
        "8 a packed sequence", ("g", "packed sequence 3"), "p/packed/sequence/3", ".tokens >> text=committee"
    ),
    Question(
        "7 the rows with a value",
        ("g", "corpus rows meta.lang == de"),
        "d/corpus/rows?where=",
        "text=100 rows meet the filter",
    ),
    Question("9 where a text is", ("g", "corpus", "/", "committee"), "d/corpus/search?q=", "main mark"),
    Question(
        "10 two states",
        ("g", "checkpoints", "3"),
        "s/checkpoints/5...15",
        "text=/position was [0-9]+, is [0-9]+/",
    ),
    Question(
        "10 two pipelines",
        ("g", "compare train other"),
        "compare",
        "text=first position with another record",
    ),
    Question(
        "11 the record of an error message",
        ("g", "part-2.jsonl: record 31 at byte 99 (7 bytes) cannot be decoded"),
        "d/corpus/row/231",
        ".record",
    ),
    Question("12 hear an utterance", ("g", "sounds 1", " "), "d/sounds/row/1", "audio"),
    Question(
        "12 a conversation as it is written",
        ("g", "corpus 17", "m"),
        "d/corpus/row/17?text=raw",
        ".record dt:has-text('messages')",
    ),
    Question("13 files by their bytes and health", ("g", "corpus", "4"), "d/corpus/files", "text=as indexed"),
    Question("14 duplicates", ("g", "corpus", "6"), "d/corpus/duplicates", "button:focus"),
    Question(
        "14 duplicates by a field",
        ("g", "corpus duplicates meta.lang", "Enter"),
        "d/corpus/duplicates",
        "text=/values of meta.lang/",
    ),
    Question("1 the losses of runs at a step", ("g", "train loss"), "p/train/loss", ".plot img"),
    Question("15 the link of what is shown", ("g", "corpus 17", "c"), "d/corpus/row/17", "text=Copied"),
)


def do(page: Any, actions: tuple[str, ...]) -> None:
    """Press keys and write texts, each after the page of the one before."""
    for action in actions:
        if action == "Enter":
            page.wait_for_function("document.activeElement.matches('button')")
            with page.expect_navigation():
                page.keyboard.press("Enter")
        elif len(action) > 1:
            page.keyboard.type(action)
            with page.expect_navigation():
                page.keyboard.press("Enter")
        else:
            before = page.url
            page.keyboard.press("Space" if action == " " else action)
            if action in "r123456789o[]bm/":
                page.wait_for_url(lambda url, before=before: url != before)
            elif action == "g":
                page.wait_for_function("document.activeElement.matches('input')")
        page.wait_for_load_state()


@pytest.fixture(scope="module")
def keyed(browser: Any, viewer: Server) -> Iterator[Any]:
    """One page for all questions; it has no mouse."""
    context = browser.new_context(base_url=viewer.url, reduced_motion="reduce")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(5000)
    yield page
    context.close()


@pytest.mark.parametrize("question", sample(QUESTIONS, of=3), ids=lambda question: question.asks)
def test_a_question_is_answered_by_the_keyboard_within_four_actions(
    keyed: Any, viewer: Server, question: Question
) -> None:
    assert len(question.actions) <= MOST_ACTIONS
    keyed.goto(viewer.url)
    do(keyed, question.actions)
    assert keyed.url.startswith(viewer.url + question.address)
    keyed.locator(question.shows).first.wait_for()


def test_keys_move_between_pages_and_within_lists(keyed: Any, viewer: Server) -> None:
    keyed.goto(viewer.url + "d/corpus/rows?at=50")
    for key in "jjk":
        keyed.keyboard.press(key)
    assert keyed.locator(".selected th").inner_text() == "50"
    keyed.keyboard.press("j")
    do(keyed, ("]",))
    assert keyed.url.endswith("rows?at=100")
    do(keyed, ("[",))
    for key in "jj":
        keyed.keyboard.press(key)
    with keyed.expect_navigation():
        keyed.keyboard.press("Enter")
    assert keyed.url.endswith("d/corpus/row/51")
    do(keyed, ("]",))
    assert keyed.url.endswith("d/corpus/row/52")
    do(keyed, ("2", "1", "b"))
    assert keyed.url.endswith("d/corpus/rows?at=50")
    do(keyed, ("b",))
    assert keyed.url == viewer.url


def test_keys_open_and_wrap_texts(keyed: Any, viewer: Server) -> None:
    keyed.goto(viewer.url + "d/corpus/row/17")
    count = keyed.locator("main details").count()
    assert count
    closed = "[...document.querySelectorAll('main details')].filter((each) => !each.open).length"
    seen = set()
    for _ in range(2):
        keyed.keyboard.press("e")
        seen.add(keyed.evaluate(closed))
    assert seen == {0, count}
    keyed.keyboard.press("w")
    assert keyed.evaluate("document.documentElement.classList.contains('wrapped')")


def test_keys_play_and_wind_audio(keyed: Any, viewer: Server) -> None:
    keyed.goto(viewer.url + "d/sounds/row/1")
    audio = keyed.locator("audio").first
    keyed.keyboard.press("Space")
    audio.evaluate("(each) => new Promise((done) => each.addEventListener('timeupdate', done, {once: true}))")
    assert audio.evaluate("(each) => each.paused") is False
    keyed.keyboard.press("Space")
    assert audio.evaluate("(each) => each.paused") is True
    keyed.evaluate("document.querySelector('audio').currentTime = 10")
    for key in "..,":
        keyed.keyboard.press(key)
    assert audio.evaluate("(each) => each.currentTime") == 11


def test_keys_with_others_and_in_fields_are_the_browsers(keyed: Any, viewer: Server) -> None:
    keyed.goto(viewer.url + "d/corpus/row/17")
    address = keyed.url
    for key in ("Control+b", "Alt+r", "Meta+1"):
        keyed.keyboard.press(key)
    keyed.keyboard.press("g")
    keyed.keyboard.type("rb]2c?")
    assert keyed.locator("#go").input_value() == "rb]2c?"
    assert keyed.url == address
    assert not keyed.locator("#keys").is_visible()
    keyed.keyboard.press("Escape")
    assert keyed.evaluate("document.activeElement.id") != "go"


def test_single_keys_are_switched_off_and_on_by_the_keyboard(keyed: Any, viewer: Server) -> None:
    keyed.goto(viewer.url + "d/corpus/row/17")
    keyed.keyboard.press("?")
    keyed.locator("#keys").wait_for()
    listed = keyed.locator("#keys kbd").all_inner_texts()
    assert {"j k", "[ ]", "r", "o", "1 to 9", "b", ", .", "space", "c", "?"} <= set(listed)
    keyed.focus("#keys-on")
    keyed.keyboard.press("Space")
    keyed.keyboard.press("Escape")
    for _ in range(2):
        for key in "gr]b?2c":
            keyed.keyboard.press(key)
        assert keyed.url == viewer.url + "d/corpus/row/17"
        assert keyed.evaluate("document.activeElement.id") != "go"
        assert not keyed.locator("#keys").is_visible()
        keyed.reload()
    keyed.focus("#keys-open")
    keyed.keyboard.press("Enter")
    keyed.focus("#keys-on")
    keyed.keyboard.press("Space")
    keyed.keyboard.press("Escape")
    keyed.focus("main")
    do(keyed, ("]",))
    assert keyed.url.endswith("d/corpus/row/18")


def test_a_copied_link_has_the_fingerprint(keyed: Any, viewer: Server) -> None:
    for address in ("d/corpus/row/3?view=file&is=00000000-3", "p/train/step/4"):
        keyed.goto(viewer.url + address)
        keyed.keyboard.press("c")
        keyed.wait_for_selector("text=Copied")
        copied = keyed.evaluate("navigator.clipboard.readText()")
        kind, name = address.split("/")[:2]
        identity = identity_of(viewer.opened, kind, name)
        mark = "&" if "?" in address else "?"
        assert copied == viewer.url + address.partition("&is")[0] + f"{mark}is={identity}"
        keyed.goto(copied)
        assert keyed.locator(".changed").count() == 0
