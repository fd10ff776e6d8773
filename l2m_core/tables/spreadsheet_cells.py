"""Texts in CSV files that people open in spreadsheets: none of them begins a formula, whatever the separator is.

A file that was written with commas may be opened with `;` or tabs as separator. Then a text falls into pieces, and each
piece begins a cell. Quotes do not help: they hold only where a cell begins with one.
"""

from __future__ import annotations

import re

import pandas as pd

FORMULA_STARTS = ("=", "+", "-", "@", "\0")
SEPARATORS = re.compile(r"([;\t\r\n])")
NOT_SHOWN = " \xa0\"'"  # what spreadsheets may take off before they look for a formula


def plain_cell(text: str) -> str:
    """A text that no spreadsheet runs: an apostrophe stands before each piece that would begin a formula.

    >>> plain_cell("=1+1"), plain_cell("a; =1+1"), plain_cell("2.1; -1.5"), plain_cell("-0.5")
    ("'=1+1", "a; '=1+1", '2.1; -1.5', '-0.5')
    """
    first, *rest = SEPARATORS.split(text)
    safe = first if _is_number(text) else _plain_piece(first)
    for separator, piece in zip(rest[::2], rest[1::2], strict=True):
        # A later piece ends where the next separator stands, perhaps cells further on. So a number is safe there only
        # as a list has it, behind a blank: "2.1; -1.5".
        is_listed = separator == ";" and piece[:1] == " " and _is_number(piece)
        safe += separator + (piece if is_listed else _plain_piece(piece))
    return f"'{safe}" if text.startswith(("\t", "\r", "\n")) else safe


def plain_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with plain texts as names and as cells; numbers are untouched."""
    plain = frame.map(lambda cell: plain_cell(cell) if isinstance(cell, str) else cell)
    return plain.rename(columns=lambda name: plain_cell(str(name)))


def _plain_piece(piece: str) -> str:
    shown = piece.lstrip(NOT_SHOWN)
    begins = shown.startswith(FORMULA_STARTS) and not piece.lstrip(" \xa0").startswith("'")
    blanks = len(piece) - len(piece.lstrip(" \xa0"))
    return f"{piece[:blanks]}'{piece[blanks:]}" if begins else piece


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
