"""Whether a column tells its decimal sign. Where it does not, a person is asked; one rule holds for both signs."""

from __future__ import annotations

from collections.abc import Sequence

from l2m_core.tables.cell_parsing import in_ascii
from l2m_core.tables.how_to_state import how_to_state

SIGNS = frozenset(".,")
Pair = tuple[float | None, float | None]  # the number of a text under a decimal point, and under a decimal comma


def first_in_doubt(texts: Sequence[str], pairs: Sequence[Pair]) -> int | None:
    """The first text that could be two numbers, such as 1.234 or 1,234, if no other text of its column decides.

    A text that can be read in one way only decides the part of each sign in it: 0.5 makes the point a decimal sign,
    1.234.567 a separator of thousands, 2.250,5 settles both. Other columns decide nothing: files hold both ways.
    """
    doubtful: list[int] = []
    decided: set[str] = set()
    for i, (point, comma) in enumerate(pairs):
        if point is None or comma is None:
            decided |= signs_in(texts[i]) if point != comma else set()
        elif point != comma:
            doubtful.append(i)
    return next((i for i in doubtful if not signs_in(texts[i]) <= decided), None)


def signs_in(text: str) -> frozenset[str]:
    return SIGNS.intersection(text if text.isascii() else in_ascii(text))


def question(cell: str) -> str:
    plain = cell if cell.isascii() else in_ascii(cell)
    return (
        f"'{cell}' could be {plain.replace(',', '').replace('.', '')} or {plain.replace(',', '.')}, and no cell of the "
        f"column tells which. State the decimal sign of the file ({how_to_state('decimal', '.', ',')})."
    )
