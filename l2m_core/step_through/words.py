"""Numbers and sentences in words, the same wherever a belief is said: on a page, in a report, to another program."""

from __future__ import annotations

RESEARCH_ONLY = "Research use only: decision support to think with, not a medical device. It ranks options; you decide."


def as_sentence(text: str) -> str:
    """With a capital letter in front; the others, as those of units and names, as they are."""
    return text[:1].upper() + text[1:]


def number(value: float) -> str:
    """Up to four significant digits and what lies before the point, thousands kept apart."""
    if value != value:
        return "—"
    return _whole(value) if abs(value) >= 1000 else f"{value:.4g}"


def predicted(value: float) -> str:
    """Of an outcome that is a number: three significant digits, and what lies before the point; no cohort can tell more."""
    return number(float(f"{value:.3g}")) if abs(value) < 100 else _whole(value)


def _whole(value: float) -> str:
    """Of a number beyond ten million, the seven digits that 32 bits hold: 1,561,190,000 is not 1,561,190,016."""
    return f"{float(f'{value:.7g}') if abs(value) >= 1e7 else value:,.0f}"


def percent(probability: float) -> str:
    if 0 < probability < 0.005:
        return "<1%"
    if 0.995 < probability < 1:
        return ">99%"
    return f"{probability:.0%}"


def percents(low: float, high: float) -> str:
    """A range: '65–83%', '1% – >99%', or one number where both ends are the same."""
    first, last = percent(low), percent(high)
    if first == last:
        return last
    return span(first, last) if _is_signed(first, last) else span(first.removesuffix("%"), last)


def span(first: str, last: str) -> str:
    """From one number to another: '3.5–5.1'; '-2 – 2', since a sign beside the dash would be lost in it."""
    return f"{first} – {last}" if _is_signed(first, last) else f"{first}–{last}"


def _is_signed(*numbers: str) -> bool:
    return not all(number[:1].isdigit() for number in numbers)


def points(change: float) -> str:
    """A change of a probability, without its sign, in percentage points."""
    count = round(100 * abs(change))
    return counted(count, "point") if count else "less than 1 point"


def average_in_words(expected: str, now: str) -> str:
    """That a preview's results, each as often as it is likely, do not average to the belief now."""
    return f"Weighted by how likely they are, these results come to {expected}, not {now}: read them as rough."


def counted(count: int, noun: str) -> str:
    """'1 test', '2 tests'."""
    return f"{count:,} {noun}{'' if abs(count) == 1 else 's'}"


def with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text
