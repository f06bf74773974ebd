"""The detection of holders: those that can read an object, by its first bytes."""

from __future__ import annotations

from seekable.formats.audio.wave_header import TAGS

__all__ = ["candidates_of"]

_TOKENS = {
    b"FM ": "matrix",
    b"DM ": "double-matrix",
    b"CM ": "matrix",
    b"CM2 ": "matrix",
    b"CM3 ": "matrix",
    b"FV ": "vector",
    b"DV ": "double-vector",
    b"SM ": "sparse-matrix",
    b"SV ": "sparse-vector",
    b"FP ": "packed-matrix",
    b"DP ": "double-packed-matrix",
    b"\x14\x11\x22\x20": "blob",
    b"\x93NUMPY": "numpy-array",
}
"""The holder of a binary object by the bytes behind the binary header."""

_SIZED = (
    *("int32", "float", "int32-vector", "int32-vector-vector", "int32-pair-vector", "float-pair-vector"),
    *("posterior", "gauss-posterior"),
)
"""Objects that begin with the size of a number, 4, so that their first bytes fit several holders."""

_LINES = ("token", "token-vector", "int32", "float", "bool", "int32-vector", "int32-vector-vector")
"""Objects that are a line of text."""


def candidates_of(head: bytes) -> tuple[str, ...]:
    r"""Return the names of the holders that an object can be of, by its first bytes; none if it is unknown.

    Example:
        >>> candidates_of(b"\0BFM \4"), candidates_of(b" [ 1 2 ]\n")
        (('matrix',), ('vector',))
        >>> candidates_of(b"\0B\4\3\0\0\0\4")[:2]
        ('int32', 'float')
    """
    if head.startswith((*TAGS, b"fLaC")):
        return ("wave",)
    if head.startswith(b"\0B"):
        return _of_binary(head[2:])
    if head[:1] == b"\0":
        return ()  # Such as features of HTK, which have no mark.
    return _of_text(head)


def _of_binary(head: bytes) -> tuple[str, ...]:
    for token, name in _TOKENS.items():
        if head.startswith(token):
            return (name,)
    if head[:1] == b"\4":
        return _SIZED
    if head[:1] in {b"T", b"F"}:
        return ("bool",)
    return {b"\10": ("int64", "double", "int64-vector"), b"\1": ("int8", "int8-vector")}.get(head[:1], ())


def _of_text(head: bytes) -> tuple[str, ...]:
    first, newline, rest = head.partition(b"\n")
    content = first.strip()
    if not content.startswith(b"["):
        return _LINES
    inner = content[1:].strip()
    if not inner:
        return ("matrix",) if newline and rest.strip() else ("matrix", "vector")
    if inner == b"]" or not (newline or inner.endswith(b"]")):  # It is empty, or it is longer than the bytes.
        return ("matrix", "vector", "posterior")
    if inner.count(b"[") or inner.count(b"]") > 1:
        return ("posterior",)
    # Vectors are written with a space before the bracket, posteriors without one.
    if inner.endswith(b"]") and not first.startswith(b" "):
        return ("vector", "matrix", "posterior")
    return ("vector",) if inner.endswith(b"]") else ("matrix",)
