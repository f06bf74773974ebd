"""Specifiers: the tables of Kaldi's own tests, a model, and kaldi_native_io as an oracle."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.formats.kaldi.files.specifiers import is_specifier
from seekable.kaldi import Rspecifier, Wspecifier, parse_rspecifier, parse_wspecifier

if TYPE_CHECKING:
    from pathlib import Path

W_VALID = {
    "b,ark:|foo": Wspecifier("ark", "|foo", None),
    "t,ark:|foo": Wspecifier("ark", "|foo", None, binary=False),
    "t,scp:a b c d": Wspecifier("scp", None, "a b c d", binary=False),
    "t,ark,scp:a b,c,d": Wspecifier("both", "a b", "c,d", binary=False),
    "b,ark,scp:,": Wspecifier("both", "", ""),
    "f,b,ark,scp:,": Wspecifier("both", "", "", flush=True),
    "nf,b,ark,scp:,": Wspecifier("both", "", ""),
    "ark,scp,t,f:data/my.ark,|gzip -c > data/my.scp.gz": Wspecifier(
        "both", "data/my.ark", "|gzip -c > data/my.scp.gz", binary=False, flush=True
    ),
    "ark,t:| gzip -c > /some/dir/foo.ark.gz": Wspecifier(
        "ark", "| gzip -c > /some/dir/foo.ark.gz", None, binary=False
    ),
    "scp,p:x": Wspecifier("scp", None, "x", permissive=True),
    "ark:": Wspecifier("ark", "", None),
    "t b ark:x:3": Wspecifier("ark", "x:3", None),
    "f,nf,ark:x": Wspecifier("ark", "x", None),
}

W_INVALID = {
    "": "it is empty",
    " t,ark:boo": "an option is empty",
    "t,ark:boo ": "ends with white space",
    "ark:boo\n": "ends with white space",
    "scp,ark:a,b": "in this order (got scp,ark)",
    "ark,ark:a": "(got ark,ark)",
    "ark,scp,scp:a,b": "(got ark,scp,scp)",
    "ark,scp:a": "two filenames",
    "ark,o:a": "'o' is not an option",
    "t:a": "neither ark nor scp",
    "ark": "it has no ':'",
    "ark,:a": "an option is empty",
    "ark,T:a": "'T' is not an option",
}

R_VALID = {
    "ark:foo|": Rspecifier("ark", "foo|"),
    "b,ark:foo|": Rspecifier("ark", "foo|"),
    "ark,b:foo|": Rspecifier("ark", "foo|"),
    "scp,b:foo|": Rspecifier("scp", "foo|"),
    "scp,o:foo|": Rspecifier("scp", "foo|", once=True),
    "scp,no:foo|": Rspecifier("scp", "foo|"),
    "s,scp,no:foo|": Rspecifier("scp", "foo|", sorted=True),
    "scp:foo|": Rspecifier("scp", "foo|"),
    "scp:": Rspecifier("scp", ""),
    "b,scp:a": Rspecifier("scp", "a"),
    "t,scp:a": Rspecifier("scp", "a"),
    "b,ark:a": Rspecifier("ark", "a"),
    "t,ark:a": Rspecifier("ark", "a"),
    "ark,s,cs:-": Rspecifier("ark", "-", sorted=True, called_sorted=True),
    "scp,p:data/my.scp": Rspecifier("scp", "data/my.scp", permissive=True),
    "ark,bg:a": Rspecifier("ark", "a", background=True),
    "s ark:x": Rspecifier("ark", "x", sorted=True),
    "ark: cat x |": Rspecifier("ark", " cat x |"),
    "o,no,p,np,s,ns,cs,ncs,ark:x": Rspecifier("ark", "x"),
    "no,o,np,p,ns,s,ncs,cs,ark:x": Rspecifier(
        "ark", "x", once=True, permissive=True, sorted=True, called_sorted=True
    ),
    "ark:a:b": Rspecifier("ark", "a:b"),
}

R_INVALID = {
    "": "it is empty",
    "scp": "it has no ':'",
    "ark": "it has no ':'",
    "scp,scp,b:foo|": "(got scp and scp)",
    "ark,scp,b:foo|": "(got ark and scp)",
    "ark:foo ": "ends with white space",
    "ark, s:x": "an option is empty",
    "ark,,s:x": "an option is empty",
    ":x": "an option is empty",
    "o:x": "neither ark nor scp",
    "ark,f:x": "'f' is not an option",
    "s3://bucket/a": "'s3' is not an option",
}


@pytest.mark.parametrize(("specifier", "parts"), W_VALID.items(), ids=repr)
def test_wspecifiers_of_kaldi(specifier: str, parts: Wspecifier) -> None:
    assert parse_wspecifier(specifier) == parts


@pytest.mark.parametrize(("specifier", "reason"), W_INVALID.items(), ids=repr)
def test_what_is_no_wspecifier_is_refused_with_the_reason(specifier: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        parse_wspecifier(specifier)
    assert isinstance(caught.value, sk.errors.InvalidArgument)
    assert repr(specifier) in str(caught.value)


@pytest.mark.parametrize(("specifier", "parts"), R_VALID.items(), ids=repr)
def test_rspecifiers_of_kaldi(specifier: str, parts: Rspecifier) -> None:
    assert parse_rspecifier(specifier) == parts


@pytest.mark.parametrize(("specifier", "reason"), R_INVALID.items(), ids=repr)
def test_what_is_no_rspecifier_is_refused_with_the_reason(specifier: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        parse_rspecifier(specifier)
    assert isinstance(caught.value, sk.errors.InvalidArgument)


@pytest.mark.parametrize("parse", [parse_rspecifier, parse_wspecifier])
@pytest.mark.parametrize("value", [None, b"ark:a", 3, ["ark:a"]])
def test_a_specifier_is_a_str(parse: Any, value: Any) -> None:
    with pytest.raises(TypeError, match="specifier must be a str"):
        parse(value)


def test_the_parts_are_frozen() -> None:
    with pytest.raises(AttributeError):
        parse_rspecifier("ark:a").kind = "scp"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        parse_wspecifier("ark:a").binary = False  # type: ignore[misc]


ITEMS = ("ark", "scp", "o", "no", "p", "np", "s", "ns", "cs", "ncs", "bg", "b", "t", "f", "nf", "", "x")
SPECIFIERS = st.tuples(
    st.lists(st.sampled_from(ITEMS), max_size=5),
    st.sampled_from([",", " "]),
    st.sampled_from([":", ""]),
    st.sampled_from(["", "a", "a,b", " a", "a ", ":", "b:1", "a\t"]),
).map(lambda parts: parts[1].join(parts[0]) + parts[2] + parts[3])


def classify(specifier: str, options: set[str], pairs: set[tuple[str, ...]]) -> str:
    """The rules of Kaldi, once more, in the shortest form: the kind, or an empty text."""
    before, colon, after = specifier.partition(":")
    items = before.replace(",", " ").split(" ")
    kinds = tuple(item for item in items if item in {"ark", "scp"})
    known = all(item in options | {"ark", "scp"} for item in items)
    whole = bool(colon) and not specifier[-1].isspace() and (len(kinds) < 2 or "," in after)
    return ",".join(kinds) if known and whole and kinds in pairs else ""


@given(SPECIFIERS)
def test_specifiers_agree_with_a_model(specifier: str) -> None:
    expected = classify(specifier, set(ITEMS[2:13]), {("ark",), ("scp",)})
    assert kind_of(parse_rspecifier, specifier) == expected
    pairs: set[tuple[str, ...]] = {("ark",), ("scp",), ("ark", "scp")}
    expected = classify(specifier, {"b", "t", "f", "nf", "p"}, pairs)
    assert kind_of(parse_wspecifier, specifier) == expected.replace("ark,scp", "both")


def kind_of(parse: Any, specifier: str) -> str:
    try:
        return str(parse(specifier).kind)
    except sk.errors.InvalidArgument:
        return ""


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    assert is_specifier(text) == bool(kind_of(parse_rspecifier, text) or kind_of(parse_wspecifier, text))


def test_kaldi_native_io_takes_the_same_rspecifiers(tmp_path: Path) -> None:
    kn = pytest.importorskip("kaldi_native_io")
    (tmp_path / "archive").write_bytes(b"utt1 5 \n")
    (tmp_path / "value").write_bytes(b"5 \n")
    (tmp_path / "script").write_bytes(f"utt1 {tmp_path}/value\n".encode())

    @given(st.lists(st.sampled_from(ITEMS), max_size=4), st.sampled_from([",", " "]))
    def check(items: list[str], separator: str) -> None:
        specifier = f"{separator.join(items)}:{tmp_path}/{'script' if 'scp' in items else 'archive'}"
        try:
            kn._kaldi_native_io._SequentialInt32Reader(specifier).close()
            taken = True
        except (RuntimeError, ValueError):
            taken = False
        assert taken == bool(kind_of(parse_rspecifier, specifier))

    check()


def test_kaldi_native_io_takes_the_same_wspecifiers(tmp_path: Path) -> None:
    kn = pytest.importorskip("kaldi_native_io")

    @given(
        items=st.lists(st.sampled_from(ITEMS), max_size=4),
        separator=st.sampled_from([",", " "]),
        both=st.booleans(),
    )
    def check(items: list[str], separator: str, *, both: bool) -> None:
        (tmp_path / "script").write_bytes(f"utt1 {tmp_path}/value\n".encode())
        names = f"{tmp_path}/archive,{tmp_path}/new" if both else f"{tmp_path}/script"
        specifier = f"{separator.join(items)}:{names}"
        kind = kind_of(parse_wspecifier, specifier)
        if kind in {"ark", "scp"} and both:
            return  # Both names with the comma between them are one name, in a folder that is not there.
        try:
            kn._kaldi_native_io._Int32Writer(specifier).close()
            taken = True
        except (RuntimeError, ValueError):
            taken = False
        assert taken == bool(kind)

    check()
