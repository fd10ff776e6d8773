"""Which of a column's distinct texts are numbers, and under which decimal sign."""

from __future__ import annotations

from dataclasses import dataclass

from l2m_core.tables.cell_parsing import (
    MISSING_AMONG_NUMBERS,
    is_disguised,
    is_limit,
    parse_both,
    without_limit_sign,
)
from l2m_core.tables.decimal_signs import first_in_doubt


@dataclass(frozen=True)
class ParsedTexts:
    """What a column's distinct texts are, by their index, under the decimal sign that reads most of them as numbers."""

    values: list[float | None]
    values_otherwise: list[float | None]  # under the other sign
    plain: list[int]  # numbers
    limits: list[int]  # numbers below or above what can be measured
    absent: list[int]  # words that mean "not measured" among numbers
    words: list[int]  # all others
    evidence: str | None  # of the decimal sign, as in Reading
    in_doubt: int | None  # the first text that could be two numbers
    disguised: list[int]  # no numbers, though they look like some
    prefers_comma: bool

    @property
    def numbers(self) -> list[int]:
        return self.plain + self.limits

    @classmethod
    def of(cls, texts: list[str], decimal: str | None) -> ParsedTexts:
        limits = {i for i, text in enumerate(texts) if is_limit(text)}
        bare = [without_limit_sign(text) if i in limits else text for i, text in enumerate(texts)]
        pairs = [parse_both(text) for text in bare]
        point, comma = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        prefers_comma = decimal == "," or (decimal is None and _how_many(comma) > _how_many(point))
        values, otherwise = (comma, point) if prefers_comma else (point, comma)
        in_doubt = first_in_doubt(bare, pairs) if decimal is None else None
        evidence = "either" if in_doubt is not None else None
        if evidence is None and decimal is None and any(point != comma for point, comma in pairs):
            evidence = "," if prefers_comma else "."
        words = [i for i, value in enumerate(values) if value is None]
        absent = [i for i in words if texts[i].casefold() in MISSING_AMONG_NUMBERS]
        return cls(
            values,
            otherwise if decimal is None else [None] * len(texts),
            plain=[i for i, value in enumerate(values) if value is not None and i not in limits],
            limits=sorted(i for i in limits if values[i] is not None),
            absent=absent,
            words=[i for i in words if texts[i].casefold() not in MISSING_AMONG_NUMBERS],
            evidence=evidence,
            in_doubt=in_doubt,
            disguised=[i for i in words if is_disguised(texts[i])],
            prefers_comma=prefers_comma,
        )


def _how_many(values) -> int:
    return sum(value is not None for value in values)
