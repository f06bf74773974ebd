"""Conversations as HTML: every shape, words as a small Markdown, formulas; whatever the words are."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.formats.tokens.chats.conversations import turns_of
from seekable.viewer.conversation import conversation_html, last_words
from seekable.viewer.markdown import markdown_html

EMPTY = {"br", "hr"}
KNOWN = EMPTY | {
    *("p", "strong", "em", "s", "code", "pre", "span", "ul", "ol", "li", "blockquote", "div"),
    *("table", "thead", "tbody", "tr", "th", "td", "math", "mrow", "mi", "mn", "mo", "mtext", "mspace"),
    *("mfrac", "msup", "msub", "msubsup", "msqrt", "mroot", "mover", "mtable", "mtr", "mtd"),
}


class Checked(HTMLParser):
    """Reads HTML; each element that is opened is known, and closed in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in KNOWN
        assert {name for name, _ in attrs} <= {
            *(
                "class",
                "title",
                "start",
                "scope",
                "role",
                "aria-label",
                "tabindex",
                "display",
                "linethickness",
            )
        }
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


PIECES = st.sampled_from(
    [
        *(
            "a",
            "1",
            " ",
            "  ",
            "\n",
            "\n\n",
            "*",
            "**",
            "_",
            "~~",
            "`",
            "```",
            "$",
            "$$",
            "#",
            "- ",
            "1. ",
            "> ",
            "|",
            "|-|",
        ),
        *(
            "\\(",
            "\\)",
            "\\[",
            "\\]",
            "[",
            "](",
            ")",
            "!",
            "<b>",
            "&amp;",
            "\\frac",
            "{",
            "}",
            "^",
            "_",
            "&",
            "\\\\",
            "\u202e",
        ),
        *(
            "\\sqrt",
            "\\text",
            "\\begin{matrix}",
            "\\end{matrix}",
            "\\left",
            ".",
            "\\boxed",
            "\\hat",
            "\\alpha",
        ),
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_words_become_elements_that_are_known_and_closed(text: str) -> None:
    page = Checked()
    page.feed(str(markdown_html(text)))
    page.close()
    assert page.open == []
    # Marks may go, and a number that begins a line is one; letters never do.
    words = re.sub(r"\\[a-z]+(\{matrix\})?|<b>|&amp;|\u202e", "", text)
    assert page.text.count("a") >= words.count("a")


@pytest.mark.parametrize(
    ("words", "html"),
    [
        ("a\nb", "<p>a<br>b</p>"),
        ("# A #\nb", '<p class="heading">A</p><p>b</p>'),
        ("***", "<hr>"),
        ("- a\n  - b\n\n- c", "<ul><li><p>a</p><ul><li>b</li></ul></li><li><p>c</p></li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("> a\n> b", "<blockquote><p>a<br>b</p></blockquote>"),
        ("```py\n*x* <\n", '<pre class="code"><span class="type">py</span><code>*x* &lt;\n</code></pre>'),
        ("snake_case_name $5 and $6 &amp;", "<p>snake_case_name $5 and $6 &amp;amp;</p>"),
        ("~~a~~ **b *c***", "<p><s>a</s> <strong>b <em>c</em></strong></p>"),
        (r"\*a\*", "<p>*a*</p>"),
        ("[a](b)", '<p>a <code class="address">b</code></p>'),
        ("![](d)", '<p><span class="type">image: </span><code class="address">d</code></p>'),
        (r"$\frac{1}{n}$", "<p><math><mfrac><mn>1</mn><mi>n</mi></mfrac></math></p>"),
        (r"$x_i^2$", "<p><math><msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup></math></p>"),
        (r"\(\foo{1}\)", r'<p><code class="formula">\(\foo{1}\)</code></p>'),
        (r"$\frac{1}$", r'<p><code class="formula">$\frac{1}$</code></p>'),
        ("<http://a.example>", "<p>&lt;http://a.example&gt;</p>"),
        ("[a]: http://a.example", "<p>[a]: http://a.example</p>"),
        ("[a](javascript:b)", "<p>[a](javascript:b)</p>"),
        (">" * 100 + "deep", '<p class="text">' + "&gt;" * 100 + "deep</p>"),
    ],
)
def test_words(words: str, html: str) -> None:
    assert str(markdown_html(words)) == html


def shown(record: Any) -> str:
    found = conversation_html(record)
    assert found is not None
    return unescape(re.sub("<[^>]*>", " ", str(found)))


def test_each_shape_is_a_conversation() -> None:
    calls = [{"id": "c7", "function": {"name": "add", "arguments": '{"left": 30}'}}]
    messages = [
        {"role": "system", "content": "be brief"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "30 + **12**?"}, {"type": "image", "path": "x.png"}],
        },
        {"role": "assistant", "content": "<think>so</think>", "tool_calls": calls, "weight": 0},
        {"role": "tool", "content": '{"sum": 42}', "tool_call_id": "c7"},
        {"role": "assistant", "content": "42", "reasoning_content": "easy", "train": True},
    ]
    tools = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
    text = shown({"messages": messages, "tools": tools, "source": "web"})
    for words in ("1 tool: add", "be brief", "12", "image", "reasoning, 2 characters", "add", "left", "30"):
        assert words in text
    for words in (
        "weight 0, not in the loss",
        "sum",
        "42",
        "c7",
        "easy",
        "train true",
        "Other fields",
        "web",
    ):
        assert words in text
    assert str(conversation_html({"messages": messages})).count(" outside") == 1
    assert last_words(turns_of({"messages": messages})[0]) == ("assistant", "42")
    human = {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "ho"}]}
    assert re.findall(r"<b>(\w+)</b>", str(conversation_html(human))) == ["user", "assistant"]
    alpaca = {"instruction": "say", "input": "it", "output": "it", "id": 5}
    assert re.findall(r"<b>(\w+)</b>", str(conversation_html(alpaca))) == ["user", "assistant"]


def test_a_pair_stands_side_by_side_and_what_both_begin_with_once() -> None:
    before = [{"role": "user", "content": "question?"}]
    pair = {
        "chosen": [*before, {"role": "assistant", "content": "good"}],
        "rejected": [*before, {"role": "assistant", "content": "bad"}],
    }
    for record in (pair, {"prompt": "question?", "chosen": "good", "rejected": "bad"}):
        page = str(conversation_html(record))
        assert page.count("question?") == 1
        assert re.findall('<section class="side" aria-label="(.*?)">', page) == ["chosen", "rejected"]
        assert page.index("good") < page.index('aria-label="rejected"') < page.index("bad")


def test_a_long_conversation_is_shown_as_far_as_a_page_goes() -> None:
    turns = [{"role": "user", "content": f"turn {number}"} for number in range(1200)]
    assert "turn 299" in shown({"messages": turns[:300]})
    assert "and 200 more turns" in shown({"messages": turns})
    wide = [{"role": "user", "content": "x " * 10_000} for _ in range(100)]
    page = str(conversation_html({"messages": wide}))
    assert len(page) < 1_000_000
    assert "first 8,000 of 20,000 characters" in page
    assert "more turns" in page
    assert conversation_html({"messages": [{"content": "no role"}]}) is None
    assert conversation_html([1]) is None


@pytest.mark.parametrize(
    "words", ["[" * 8000, "![[](" * 1600, r"\[" * 4000, "|a" * 500 + "\n" + "|-" * 500 + "\n|" * 3000]
)
def test_words_that_would_take_long_stand_as_they_were_written(words: str) -> None:
    html = str(markdown_html(words))
    assert html.startswith('<p class="text">')
    assert unescape(html.removeprefix('<p class="text">').removesuffix("</p>")) == words
    page = str(conversation_html({"messages": [{"role": "user", "content": words}] * 300}))
    assert len(page) < 1_000_000


def test_one_turn_of_very_much_is_cut_as_well() -> None:
    part, call = {"type": "text", "text": "x" * 5000}, {"function": {"name": "n" * 9000, "arguments": "{}"}}
    turn = {"role": "assistant", "content": [part] * 5000, "tool_calls": [call] * 5000}
    page = str(conversation_html({"messages": [turn], "tools": [call] * 5000}))
    assert len(page) < 1_000_000
    for words in ("more parts", "and 4,950 more calls", "5000 tools"):
        assert words in page
