"""Files as spreadsheets, hospital systems and people of different countries export them, and what their cells mean."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

ROWS = 24
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252")
SEPARATORS = (",", ";", "\t", "|")
LOCALES = (  # decimal sign, thousands separator
    (".", ""),
    (".", ","),
    (".", "'"),
    (",", ""),
    (",", "."),
    (",", "\u00a0"),
)
SHAPES = (
    "plain",
    "quoted everything",
    "line breaks in cells",
    "carriage returns",
    "sep= line",
    "blank lines at the end",
    "totals without an outcome",
    "totals with an outcome",
    "a note below",
    "a title above",
    "two header rows",
    "the header once more",
)
READABLE = SHAPES[:7]  # the others hold rows that are no patients
NAMES = ("gr\u00f6\u00dfe", "leukocytes", "crp", "ward", "died")
WARDS = ("Chirurgie", "Innere \u201eB\u201c", "K\u00fcche; 2", "step, down")


@dataclass(frozen=True)
class ExportedFile:
    encoding: str
    separator: str
    decimal: str
    thousands: str
    shape: str
    data: bytes
    numbers: dict[str, np.ndarray]
    """Column → (ROWS,) numbers."""
    wards: tuple[str, ...]
    died: np.ndarray

    @property
    def outcome(self) -> str:
        """The outcome that a person would choose among the names that are read."""
        return "Ausgang" if self.shape == "two header rows" else "died"

    def __str__(self) -> str:
        return f"{self.encoding} {self.separator!r} {self.decimal!r} {self.thousands!r} {self.shape}"


def exported_files() -> Iterator[ExportedFile]:
    """One file for each encoding, separator and locale, in three of the shapes each: 432 files."""
    for number, (encoding, separator, (decimal, thousands)) in enumerate(product(ENCODINGS, SEPARATORS, LOCALES)):
        for turn in range(3):
            shape = SHAPES[(5 * number + 4 * turn) % len(SHAPES)]
            yield _file(np.random.default_rng(3 * number + turn), encoding, separator, decimal, thousands, shape)


def _file(rng, encoding, separator, decimal, thousands, shape) -> ExportedFile:
    numbers = {
        NAMES[0]: np.round(rng.uniform(140, 200, ROWS), 1),
        NAMES[1]: np.round(rng.uniform(900, 25_000, ROWS), int(rng.choice([0, 2]))),
        NAMES[2]: np.where(rng.random(ROWS) < 0.2, np.nan, np.round(rng.uniform(0, 300, ROWS), 2)),
    }
    breaks = "\n" if shape == "line breaks in cells" else " "
    wards = tuple(WARDS[i].replace(" ", breaks) for i in np.r_[np.arange(4), rng.integers(0, 4, ROWS - 4)])
    died = np.r_[0, 1, rng.integers(0, 2, ROWS - 2)]
    places = [1, 2 if np.any(numbers[NAMES[1]] % 1) else 0, 2]
    cells = [
        [_written(value, digits, decimal, thousands) for value in numbers[name]]
        for name, digits in zip(numbers, places, strict=True)
    ]
    body = [list(row) for row in zip(*cells, wards, map(str, died), strict=True)]
    data = _shaped(body, separator, decimal, thousands, shape).encode(encoding, "strict")
    bom = {"utf-16-le": b"", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    return ExportedFile(encoding, separator, decimal, thousands, shape, bom + data, numbers, wards, died)


def _written(value, digits, decimal, thousands) -> str:
    text = "" if np.isnan(value) else f"{value:,.{digits}f}"
    return text.replace(",", "\0").replace(".", decimal).replace("\0", thousands)


def _shaped(body, separator, decimal, thousands, shape) -> str:
    rows = [list(NAMES), *body]
    total = [_written(1234.5, 1, decimal, thousands)] * 3
    after = {
        "totals without an outcome": [[*total, "Mean", ""]],
        "totals with an outcome": [[*total, "Mean", "0"]],
        "a note below": [["Quelle: Klinik, 2024"]],
        "the header once more": [list(NAMES)],
        "blank lines at the end": [[], []],
    }
    before = {
        "a title above": [["Labor, Station 4"]],
        "two header rows": [["Labor", "", "", "Ort", "Ausgang"]],
    }
    buffer = io.StringIO(newline="")
    end = "\r" if shape == "carriage returns" else "\r\n"
    quoting = csv.QUOTE_ALL if shape == "quoted everything" else csv.QUOTE_MINIMAL
    writer = csv.writer(buffer, delimiter=separator, quoting=quoting, lineterminator=end)
    writer.writerows([*before.get(shape, ()), *rows, *after.get(shape, ())])
    return f"sep={separator}{end}" * (shape == "sep= line") + buffer.getvalue()
