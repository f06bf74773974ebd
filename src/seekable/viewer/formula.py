r"""LaTeX formulas as MathML: the small part that models write much.

Fractions, roots, indices, powers, Greek letters, signs, names of functions, words and rows of matrices are
known. A formula with anything else is shown as it was written, so that nothing is lost or made up.
"""

# ruff: noqa: RUF001 - signs of mathematics look like others

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup

from seekable.viewer.unseen import text_html

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["formula_html"]

_DEEPEST = 24
_TOKEN = re.compile(r"\\([A-Za-z]+|.)|([0-9]+(?:[.,][0-9]+)*)|(\s+)|(.)", re.DOTALL)


def _split(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _signs(names: str, signs: str) -> dict[str, str]:
    return dict(zip(names.split(), signs, strict=True))


_LETTERS = {
    **_signs("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu", "αβγδϵζηθικλμν"),
    **_signs("xi pi rho sigma tau upsilon phi chi psi omega varepsilon vartheta varphi", "ξπρστυϕχψωεϑφ"),
    **_signs("Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega", "ΓΔΘΛΞΠΣΦΨΩ"),
    **_signs("ell hbar infty partial nabla emptyset varnothing", "ℓℏ∞∂∇∅∅"),
}
_SIGNS = {
    **_signs("cdot times div pm mp le leq ge geq ne neq approx equiv", "⋅×÷±∓≤≤≥≥≠≠≈≡"),
    **_signs("sim simeq cong propto in notin ni subset subseteq supset supseteq", "∼≃≅∝∈∉∋⊂⊆⊃⊇"),
    **_signs("cup cap setminus land wedge lor vee neg lnot forall exists to", "∪∩∖∧∧∨∨¬¬∀∃→"),
    **_signs("rightarrow leftarrow gets Rightarrow Leftarrow implies iff mapsto", "→←←⇒⇐⟹⟺↦"),
    **_signs("Leftrightarrow leftrightarrow sum prod int oint ldots dots cdots vdots", "⇔↔∑∏∫∮……⋯⋮"),
    **_signs("circ star ast oplus otimes mid parallel perp angle degree prime", "∘⋆∗⊕⊗∣∥⊥∠°′"),
    **_signs("therefore because ll gg langle rangle lfloor rfloor lceil rceil bullet", "∴∵≪≫⟨⟩⌊⌋⌈⌉∙"),
    **{sign: sign for sign in "{}%$&#_"},
    "|": "‖",
}
_SPACES = _split(", ; : ! > quad qquad") | {" ", "\n"}
_FUNCTIONS = _split(
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim max min sup inf det dim "
    "ker gcd deg arg Pr mod"
)
_WORDS = _split("text textbf textit mathrm mathbf mathit mathsf mathtt operatorname mbox textrm")
_NOTHING = _split("left right big Big bigg Bigg displaystyle textstyle limits nolimits")
_OVER = {"hat": "^", "bar": "‾", "overline": "‾", "vec": "→", "tilde": "~", "dot": "˙", "ddot": "¨"}
_ROWS = _split("matrix pmatrix bmatrix vmatrix cases aligned align align* array gathered")
_MARKS = {"pmatrix": "()", "bmatrix": "[]", "vmatrix": "||", "cases": "{"}
_LETTER, _SIGN = Markup("<mi>{}</mi>"), Markup("<mo>{}</mo>")
_SIMPLE = {
    **{name: _LETTER.format(letter) for name, letter in _LETTERS.items()},
    **{name: _SIGN.format(sign) for name, sign in _SIGNS.items()},
    **{name: _LETTER.format(name) for name in _FUNCTIONS},
    **dict.fromkeys(_SPACES, Markup("<mspace></mspace>")),
}
"""What commands without arguments make."""

_WITH_ONE = {
    "sqrt": Markup("<msqrt>{}</msqrt>"),
    "boxed": Markup('<mrow class="boxed">{}</mrow>'),
    **{name: Markup("<mover>{{}}<mo>{}</mo></mover>").format(sign) for name, sign in _OVER.items()},
    **dict.fromkeys(_split("mathbb mathcal boldsymbol bm mathfrak"), Markup('<mrow class="wide">{}</mrow>')),
}
"""What commands make of their one argument."""

_WITH_TWO = {
    **dict.fromkeys(_split("frac dfrac tfrac"), Markup("<mfrac>{}{}</mfrac>")),
    "binom": Markup('<mrow><mo>(</mo><mfrac linethickness="0">{}{}</mfrac><mo>)</mo></mrow>'),
}


def formula_html(formula: str, *, written: str, is_block: bool) -> Markup:
    r"""Return a formula as MathML, or as it was written where it has something that is not known.

    Args:
        formula: what stands between the marks.
        written: the formula with its marks.
        is_block: True for one in a line of its own.

    Example:
        >>> str(formula_html(r"x^2", written="$x^2$", is_block=False))
        '<math><msup><mi>x</mi><mn>2</mn></msup></math>'
        >>> str(formula_html(r"\foo", written=r"$\foo$", is_block=False))
        '<code class="formula">$\\foo$</code>'
    """
    try:
        inside = _Formula(formula).all()
    except _NotKnown:
        return Markup('<code class="formula">{}</code>').format(text_html(written))
    block = Markup(' display="block"') if is_block else Markup("")
    return Markup("<math{}>{}</math>").format(block, inside)


class _NotKnown(Exception):
    """The formula has something that is not known."""


class _Formula:
    """Reads a formula from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        for found in _TOKEN.finditer(text):
            kind = ("command", "number", "space", "sign")[(found.lastindex or 1) - 1]
            if kind != "space" or self._tokens:
                self._tokens.append((kind, found[found.lastindex or 1]))
        self._at = 0

    def all(self) -> Markup:
        return _row(self._items(until=None, depth=0))

    def _peek(self) -> tuple[str, str] | None:
        while self._at < len(self._tokens) and self._tokens[self._at][0] == "space":
            self._at += 1
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        if token is None:
            raise _NotKnown
        self._at += 1
        return token

    def _items(self, *, until: tuple[str, str] | None, depth: int) -> list[Markup]:
        """Return the parts up to a token, or to the end."""
        out: list[Markup] = []
        while (token := self._peek()) != until:
            if token is None or token in (("sign", "}"), ("sign", "&"), ("command", "\\")):
                raise _NotKnown
            out.append(self._with_scripts(depth))
        return out

    def _with_scripts(self, depth: int) -> Markup:
        """Return a part with the index and the power that follow it."""
        base = self._part(depth)
        below: Markup | None = None
        powers: list[Markup] = []
        while (token := self._peek()) in (("sign", "_"), ("sign", "^"), ("sign", "'")):
            self._at += 1
            if token == ("sign", "'"):
                powers.append(Markup("<mo>′</mo>"))
            elif token == ("sign", "^"):
                powers.append(self._part(depth))
            elif below is None:
                below = self._part(depth)
            else:
                raise _NotKnown
        above = _row(powers) if powers else None
        if below is not None and above is not None:
            return Markup("<msubsup>{}{}{}</msubsup>").format(base, below, above)
        if below is not None:
            return Markup("<msub>{}{}</msub>").format(base, below)
        return base if above is None else Markup("<msup>{}{}</msup>").format(base, above)

    def _part(self, depth: int) -> Markup:
        """Return a letter, a number, a sign, a group, or what a command makes."""
        if depth > _DEEPEST:
            raise _NotKnown
        kind, value = self._next()
        if kind == "number":
            return Markup("<mn>{}</mn>").format(value)
        if kind == "command":
            return self._command(value, depth)
        if value == "{":
            inside = _row(self._items(until=("sign", "}"), depth=depth + 1))
            self._at += 1
            return inside
        if value in "_^}&$#%~":
            raise _NotKnown
        return (_LETTER if value.isalpha() else _SIGN).format(text_html(value))

    def _command(self, name: str, depth: int) -> Markup:  # noqa: PLR0911 - a case for each kind
        """Return what a command makes of the arguments that follow it."""
        if name in _SIMPLE:
            return _SIMPLE[name]
        if name in _WITH_TWO:
            return _WITH_TWO[name].format(self._part(depth + 1), self._part(depth + 1))
        if name == "sqrt" and self._peek() == ("sign", "["):
            return self._root(depth)
        if name in _WITH_ONE:
            return _WITH_ONE[name].format(self._part(depth + 1))
        if name in _WORDS:
            return Markup("<mtext>{}</mtext>").format(text_html(self._braced()))
        if name in _NOTHING:
            self._at += self._peek() == ("sign", ".")
            return Markup("<mrow></mrow>")
        if name == "begin":
            return self._rows(depth)
        raise _NotKnown

    def _root(self, depth: int) -> Markup:
        """Return a root whose degree stands between brackets."""
        self._at += 1
        degree = _row(self._items(until=("sign", "]"), depth=depth + 1))
        self._at += 1
        return Markup("<mroot>{}{}</mroot>").format(self._part(depth + 1), degree)

    def _braced(self) -> str:
        """Return the words between braces."""
        if self._next() != ("sign", "{"):
            raise _NotKnown
        words = ""
        while self._at < len(self._tokens):
            kind, value = self._tokens[self._at]
            self._at += 1
            if (kind, value) == ("sign", "}"):
                return words
            if kind == "command" or value == "{":
                raise _NotKnown
            words += value
        raise _NotKnown

    def _rows(self, depth: int) -> Markup:
        """Return rows and columns, up to the end of their environment."""
        name = self._braced()
        if name not in _ROWS or depth > _DEEPEST:
            raise _NotKnown
        if name == "array":
            self._braced()
        rows: list[list[list[Markup]]] = [[[]]]
        while (token := self._peek()) != ("command", "end"):
            if token is None:
                raise _NotKnown
            if token == ("command", "\\"):
                rows.append([[]])
            elif token == ("sign", "&"):
                rows[-1].append([])
            else:
                rows[-1][-1].append(self._with_scripts(depth + 1))
                continue
            self._at += 1
        self._at += 1
        if self._braced() != name:
            raise _NotKnown
        table = Markup("<mtable>{}</mtable>").format(Markup("").join(map(_table_row, rows)))
        marks = [Markup("<mo>{}</mo>").format(mark) for mark in _MARKS.get(name, "")]
        return Markup("<mrow>{}{}{}</mrow>").format(
            Markup("").join(marks[:1]), table, Markup("").join(marks[1:])
        )


def _table_row(cells: Sequence[list[Markup]]) -> Markup:
    cell = Markup("<mtd>{}</mtd>")
    return Markup("<mtr>{}</mtr>").format(Markup("").join(cell.format(_row(each)) for each in cells))


def _row(items: Sequence[Markup]) -> Markup:
    return items[0] if len(items) == 1 else Markup("<mrow>{}</mrow>").format(Markup("").join(items))
