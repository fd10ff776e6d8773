"""Which numbers of a workbook are shown as dates, and as which; and which as percentages.

A cell holds a number of days; the format of its style, such as dd.mm.yyyy, makes a date, a time of day or a duration of it.
So does 0% of a 0.48 what reads 48%.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

LAST_DAY = 2_958_465  # the number of 9999-12-31
SECONDS = 86_400  # of a day

# Of a format: texts in quotes, characters behind a sign, and what stands in brackets, but for the time that has passed.
_NOT_OF_DATES = re.compile(r'"[^"]*"|[\\_*].|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_DATE_SIGNS = re.compile(r"[dmyhs]", re.IGNORECASE)
_PASSED = re.compile(r"\[[hms]+\]", re.IGNORECASE)
# How a number is shown: a date or a time of day, how much time has passed, or a percentage.
DATE, PASSED, PERCENT = "date", "passed", "percent"
BUILT_IN = {number: DATE for number in (*range(14, 23), *range(27, 37), 45, 47, *range(50, 59))} | {
    46: PASSED,
    9: PERCENT,
    10: PERCENT,
}


class Moment(str):
    """The text of a cell that shows a date or a time."""

    __slots__ = ()


class Percentage(float):
    """The number of a cell that shows a hundred times as much, and a sign of per cent."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{100 * self:.6g}%"


def shown_as(code: str) -> str | None:
    """What a format such as dd.mm.yyyy makes of a number: DATE, PASSED ([h]:mm), PERCENT (0%), or None (0.00)."""
    signs = _NOT_OF_DATES.sub("", code).partition(";")[0]
    if "%" in signs:
        return PERCENT
    if not _DATE_SIGNS.search(signs) or signs.lower() == "general":
        return None
    return PASSED if _PASSED.search(signs) else DATE


def moment(number: float, shown: str, from_1904: bool) -> Moment | None:
    """What a spreadsheet shows of a number of days; None where it shows none."""
    if not 0 <= number <= LAST_DAY:
        return None
    days, seconds = divmod(round(number * SECONDS), SECONDS)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if shown == PASSED:
        return Moment(f"{24 * days + seconds // 3600}{clock[2:]}")
    if days == 0:
        return Moment(clock)
    # Day 1 is the first of 1900; or the second of 1904. Day 60 is taken for a 29 February 1900, which there was not.
    start = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 31 if days < 60 else 30)
    date = f"{start + timedelta(days):%Y-%m-%d}"
    return Moment(f"{date} {clock}" if seconds else date)
