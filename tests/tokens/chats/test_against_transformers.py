"""The tokens and masks of conversations are those of transformers, for ten templates."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tokens.chats.families import CHATS, TEMPLATES, chat_tokenizer, saved

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.frameworks(name="transformers")


def oracle(template: str) -> Any:
    import transformers

    made: Any = transformers.PreTrainedTokenizerFast
    return made(tokenizer_object=chat_tokenizer(), bos_token="<s>", eos_token="</s>", chat_template=template)


def theirs(tokenizer: Any, record: dict[str, Any], **variables: Any) -> tuple[list[int], list[int]] | str:
    try:
        made = tokenizer.apply_chat_template(
            record["messages"],
            tools=record.get("tools"),
            return_assistant_tokens_mask=True,
            return_dict=True,
            **variables,
        )
    except Exception as error:  # noqa: BLE001 - a template may refuse in any way
        return str(error)
    return list(made["input_ids"]), list(made["assistant_masks"])


def ours(chat: sk.Chat, record: dict[str, Any]) -> tuple[list[int], list[int]] | str:
    try:
        made = chat(record)
    except sk.errors.BadValue as error:
        return str(error)
    return made["tokens"].tolist(), made["loss_mask"].tolist()


def compare(chat: sk.Chat, tokenizer: Any, record: dict[str, Any], **variables: Any) -> int:
    """Compare both, and return the number of tokens in the loss; 0 if both refuse."""
    expected, found = theirs(tokenizer, record, **variables), ours(chat, record)
    if isinstance(expected, str):
        assert isinstance(found, str)
        return 0
    assert found == expected
    return sum(expected[1])


@pytest.mark.parametrize("family", TEMPLATES)
def test_ten_families(family: str, tmp_path: Path) -> None:
    tokenizer, trained = oracle(TEMPLATES[family]), 0
    for given_tokenizer in (saved(tmp_path, TEMPLATES[family]), tokenizer):
        chat = sk.Chat(given_tokenizer, now=dt.datetime.now())  # noqa: DTZ005 - as theirs
        trained += sum(compare(chat, tokenizer, record) for record in CHATS.values())
    assert trained > 50


def test_variables() -> None:
    variables: dict[str, Any] = {
        "date_string": "26 Jul 2024",
        "bos_token": "<|im_start|>",
        "extra": [1, {"a": None}],
    }
    template = TEMPLATES["llama-3"] + "{{ extra }}{{ extra[1].a is none }}"
    chat, tokenizer = sk.Chat(oracle(template), variables=variables), oracle(template)
    assert compare(chat, tokenizer, CHATS["with a system"], **variables)


TEXT = st.text(alphabet=st.sampled_from("ab \n\té東🎉<|>/s[]INT_\u0301"), max_size=12)


@settings(max_examples=60)
@given(
    family=st.sampled_from(list(TEMPLATES)),
    system=st.none() | TEXT,
    texts=st.lists(TEXT, min_size=1, max_size=6),
    reasoning=st.none() | TEXT,
)
def test_any_texts(family: str, system: str | None, texts: list[str], reasoning: str | None) -> None:
    roles = ("user", "assistant")
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system is not None else []
    messages += [{"role": roles[turn % 2], "content": text} for turn, text in enumerate(texts)]
    if reasoning is not None:
        messages[-1]["reasoning"] = reasoning
    tokenizer = oracle(TEMPLATES[family])
    compare(sk.Chat(tokenizer, now=dt.datetime.now()), tokenizer, {"messages": messages})  # noqa: DTZ005


ODD = """
{% for m in messages %}{% generation %}{{ m.content[0] }}{% endgeneration %}{{ m.content[1:] }}{% endfor %}
{% for m in messages %}{{ m.content[:1] }}{% generation %}{% endgeneration %}{{ m.content[1:] }}{% endfor %}
{% generation %}{% endgeneration %}{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}
{% generation %}{% for m in messages %}{{ m.content }}{% if loop.index > 2 %}{% break %}{% endif %}{% endfor %}{% endgeneration %}
{{ messages | map(attribute='content') | join('; ') | upper }}{{ messages | length }}{{ 7 // 2 ** 2 % 3 }}
{{ messages | tojson(indent=2) }}{{ [messages[0].content] * 2 }}{{ ('a', 1) ~ {'b': [none, true]} }}
{% macro f(x) %}<{{ x }}>{{ caller() if caller }}{% endmacro %}{% call f('é') %}é{% endcall %}{{ f(2) }}
{% set ns = namespace(n=0) %}{% for m in messages recursive %}{% set ns.n = ns.n + loop.index %}{% else %}none{% endfor %}{{ ns.n }}
{% set x %}{{ messages[0].content }}!{% endset %}{{ x.format(1) }}{{ '%s-%d' % (x, 3) }}{{ '{:>4}'.format(x) }}
{{ dict(a=1).items() | list }}{{ messages[-1].content.replace('a', 'b') | replace('b', 'c') | indent(2) | center(30) }}
{{ undefined_thing }}{{ messages[0].nothing is defined }}{{ messages[0].get('content', 1) }}
{% raw %}{% for %}{% endraw %}
""".strip().splitlines()  # noqa: E501 - each template is one line


@pytest.mark.parametrize("template", ODD)
def test_odd_templates(template: str) -> None:
    """Tokens that cross the borders of spans, empty spans, and what the sandbox counts."""
    tokenizer = oracle(template + "{% generation %}.{% endgeneration %}")
    chat = sk.Chat(tokenizer)
    for record in CHATS.values():
        compare(chat, tokenizer, record)
    assert any(isinstance(theirs(tokenizer, record), tuple) for record in CHATS.values())


def test_tokens_that_cross_a_border() -> None:
    """The characters of one token are in and out of the loss: it counts as in, as theirs does."""
    template = "{% for m in messages %}a{% generation %} {% endgeneration %}dict{% endfor %}"
    made = sk.Chat(oracle(template))({"messages": [{"role": "user", "content": ""}]})
    assert np.flatnonzero(made["loss_mask"]).size == 1
    assert compare(sk.Chat(oracle(template)), oracle(template), CHATS["two turns"])
