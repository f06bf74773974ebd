"""A chat template is a program of a stranger: it reaches nothing, and it ends."""
# ruff: noqa: E501 - templates are on one line

from __future__ import annotations

import datetime as dt
import threading
import time
from typing import Any

import pytest

import seekable as sk
from seekable.formats.tokens.chats.conversations import Rendered, UnfitChat
from seekable.formats.tokens.chats.sandbox import SandboxedTemplate

MESSAGES = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]


def rendered(template: str, *, seconds: float = 0.2, now: dt.date | None = None, **values: Any) -> Rendered:
    return SandboxedTemplate(template, "the template").render(
        {"messages": MESSAGES, **values}, seconds=seconds, now=now
    )


ENDLESS = [
    "{% set r = range(99999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{{ '' }}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% for a in range(9) recursive %}{% if loop.depth < 40 %}{{ loop(range(9)) }}{% endif %}{% endfor %}",
    "{% set r = range(9999) | list %}{% for a in r %}{% set x = r | sort | join %}{% endfor %}",
]


@pytest.mark.parametrize("template", ENDLESS)
def test_a_template_that_does_not_end_is_ended(template: str) -> None:
    begun = time.thread_time()
    with pytest.raises(UnfitChat, match=r"did not end within 0\.2 seconds of processor time"):
        rendered(template)
    assert time.thread_time() - begun < 30  # not a measure: without a bound it would take years


HUGE = [  # each in one step, or by doubling
    "{{ 'a' * 10 ** 10 }}",
    "{{ 10 ** 10 * ['a'] }}",
    "{{ 10 ** 100000 }}",
    "{{ 2 ** 10000 * 2 ** 10000 }}",
    "{% set ns = namespace(s='aaaa') %}{% for i in range(90) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "{% set ns = namespace(s='aaaa') %}{% for i in range(90) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "{% set ns = namespace(s='a') %}{% for i in range(90) %}{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}",
    "{% set ns = namespace(s='a') %}{% for i in range(90) %}{% set ns.s = '%s%s' % (ns.s, ns.s) %}{% endfor %}",
    "{% set ns = namespace(s='a') %}{% for i in range(90) %}{% set ns.s = '{0}{0}'.format(ns.s) %}{% endfor %}",
    "{% set ns = namespace(s=['a']) %}{% for i in range(90) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}",
    "{% set ns = namespace(s=('a',)) %}{% for i in range(90) %}{% set ns.s = (ns.s, ns.s) %}{% endfor %}",
    "{% set ns = namespace(s={}) %}{% for i in range(90) %}{% set ns.s = {'a': ns.s, 'b': ns.s} %}{% endfor %}",
    "{% set ns = namespace(s={}) %}{% for i in range(90) %}{% set ns.s = dict(a=ns.s, b=ns.s) %}{% endfor %}",
    "{{ ['a' * 10000000] * 1000 }}",
    "{{ (['a'] * 1000) | join('a' * 1000000) }}",
    "{{ ('a' * 1000000).join(['a'] * 1000) }}",
    "{{ 'a'.center(10 ** 10) }}{{ 'a'.zfill(10 ** 10) }}",
    "{{ 'a' | center(10 ** 10) }}",
    "{{ 'a' | indent(10 ** 10, true) }}",
    "{{ [1] | batch(10 ** 10, 0) | list }}",
    "{{ ('a,' * 4000000).replace(',', 'b' * 4000000) }}",
    "{{ ('a,' * 4000000) | replace(',', 'b' * 4000000) }}",
    "{{ ('a' * 4000000).translate({97: 'b' * 4000000}) }}",
    "{% for i in range(99999) %}{{ 'a' * 1000000 }}{% endfor %}",
    "{% set x %}{% for i in range(99999) %}{{ 'a' * 10000000 }}{% endfor %}{% endset %}",
    "{{ range(10 ** 9) | list }}",
]


@pytest.mark.parametrize("template", HUGE)
def test_a_template_that_makes_too_much_is_ended(template: str) -> None:
    with pytest.raises(UnfitChat, match=r"more than|Range too big"):
        rendered(template, seconds=20)


@pytest.mark.parametrize(
    "template",
    [
        "{{ '{:>1000000000}'.format(1) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '{:>{}}'.format(1, 1000000000) }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '{a:>1000000000}'.format_map({'a': 1}) }}",
        "{{ [1] | tojson(indent=1000000000) }}",
    ],
)
def test_wide_formats_are_refused(template: str) -> None:
    with pytest.raises(UnfitChat, match=r"width of more than 999,999|indents JSON"):
        rendered(template)


FORBIDDEN = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update(a=1) }}",
    "{{ cycler.__init__.__globals__.os.system('true') }}",
    "{{ namespace.__init__.__globals__['sys'] }}",
    "{{ ''.format.__self__.__class__.__base__ }}",
    "{{ '{0.__class__.__mro__}'.format('') }}",
    "{{ messages | map(attribute='__class__') | first }}{{ (messages | map(attribute='__class__') | first).x }}",
    "{% set ns = namespace(_x=1) %}",
    "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
    "{% include 'other' %}",
    "{% import 'os' as os %}",
    "{{ self.__init__.__globals__['os'] }}",
    "{{ dict.__call__.__globals__['os'] }}",
    "{{ raise_exception.__globals__['os'] }}",
    "{{ lipsum() }}",
    "{{ config.items() }}",
]


@pytest.mark.parametrize("template", FORBIDDEN)
def test_a_template_reaches_nothing(template: str) -> None:
    before = [dict(message) for message in MESSAGES]
    with pytest.raises(UnfitChat):
        rendered(template)
    assert before == MESSAGES


@pytest.mark.parametrize("name", ["random", "urlize", "pprint"])
def test_filters_that_are_left_out(name: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=f"No filter named '{name}'"):
        rendered(f"{{{{ messages | {name} }}}}")


def test_the_date_is_given() -> None:
    with pytest.raises(UnfitChat, match="give now="):
        rendered("{{ strftime_now('%d %b %Y') }}")
    assert rendered("{{ strftime_now('%d %b %Y') }}", now=dt.date(2024, 7, 26)).text == "26 Jul 2024"


def test_marks_whose_place_is_not_known_are_refused() -> None:
    for around in ("{% set x %}#{% endset %}b{{ x }}", "{% macro f() %}#{% endmacro %}b{{ 'c' ~ f() }}"):
        with pytest.raises(UnfitChat, match="inside a macro or a set block"):
            rendered(around.replace("#", "{% generation %}a{% endgeneration %}"))


def test_namespaces_that_hold_themselves_are_printed() -> None:
    assert rendered("{% set ns = namespace(a=1) %}{% set ns.a = ns %}{{ ns }}").text == "<Namespace>"


def test_the_reason_that_a_template_gives_is_shown() -> None:
    with pytest.raises(UnfitChat, match="the template refuses it: roles must alternate"):
        rendered("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(UnfitChat, match="the template fails with ZeroDivisionError"):
        rendered("{{ 1 / 0 }}")


def test_threads_render_at_once() -> None:
    template = "{% for i in range(200) %}{% generation %}{{ n }}{% endgeneration %}{% endfor %}"
    found: dict[int, Rendered] = {}

    def render(number: int) -> None:
        for _ in range(5):
            found[number] = rendered(template, seconds=20, n=number)

    threads = [threading.Thread(target=render, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, made in found.items():
        assert made.text == str(number) * 200
        assert made.spans == tuple((place, place + 1) for place in range(200))
