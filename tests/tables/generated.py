"""Tables that nobody would write by hand, and what each of their cells may come to mean."""

import csv
import io
import math

import numpy as np
from hypothesis import strategies as st

from l2m_core.cohort import Cohort

MISSING = {"", "na", "n/a", "n.a.", "nan", "<na>", "null", "?", "-", "--", "\u2013", "\u2014", ".", "#n/a", "#null!"}
WEAKLY_MISSING = {"none", "missing", "unknown", "not done", "not measured", "not available", "nil", "n.d.", "nd"}

SAME = ({"yes", "y", "true", "1"}, {"no", "0"}, {"f", "female"})

whole = st.integers(-10_000, 10_000).map(str)
decimal = st.decimals(-1000, 1000, places=3).map(lambda value: f"{value:f}")
scientific = st.floats(-1e30, 1e30).map(repr)
comma = st.tuples(st.integers(0, 1000), st.integers(0, 999)).map(lambda pair: f"{pair[0]},{pair[1]}")
missing = st.sampled_from(["", "NA", "?", "-", "n/a", "NaN", ".", " "])
words = st.sampled_from(
    [
        "yes",
        "no",
        "Yes",
        "Y",
        "TRUE",
        "1",
        "F",
        "M",
        "female",
        "NA",
        "EU",
        "AS",
        "low",
        "high",
        "none",
        "unknown",
        "V57",
        "E11",
        "K",
        "k",
        "+",
        "007",
    ]
)
odd = st.sampled_from(
    [
        "<5",
        ">100",
        "1e999",
        "inf",
        "-1e39",
        "1 234",
        "12 mg",
        "2020-01-01",
        "1.2.3",
        "5%",
        "120/80",
        "\u2212 3",
        "1_000",
        "0x1f",
        "TRUE",
        "1e5",
        "+3",
        "\u00bd",
        "=1+1",
        "#REF!",
        "a\nb",
        'q"q',
        "x;y",
        "10\u00b3",
        "5\u2460",
        "\u00b1",
        "(+)",
        "1.100",
        "1,100",
        "250.10",
        "e\u0301",
        "\u00e9",
        '="5.3"',
        "'5.3",
        '"5.3"',
        "5\u00b73",
        "5\u066b3",
        "5.3\u200b",
        "5.3-",
        "80\uff05",
        "Mar-20",
        "2021-01",
        "1e-50",
        "1600000000",
    ]
)
free = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)

columns = st.sampled_from(
    [
        [whole, missing],
        [decimal, missing],
        [whole, decimal],
        [scientific, missing],
        [comma, whole, missing],
        [words, missing],
        [words],
        [whole, words],
        [decimal, odd],
        [odd],
        [free],
        [free, whole],
        [st.sampled_from(["0", "1"]), missing],
    ]
)
outcomes = st.sampled_from(
    [["0", "1"], ["no", "yes"], ["a", "b", "c"], ["0", "1", ""], ["1.5", "2.5", "3.25", "4"], ["dead", "alive", "NA"]]
)


@st.composite
def tables(draw, cells=columns, most_columns=4):
    """Column names and rows of texts; the last column is the outcome 'y'."""
    count = draw(st.integers(10, 30))
    kinds = draw(st.lists(cells, min_size=1, max_size=most_columns))
    pools = [draw(st.lists(st.one_of(*kind), min_size=1, max_size=8)) for kind in kinds] + [draw(outcomes)]
    rng = np.random.default_rng(draw(st.integers(0, 1000)))  # a few distinct cells, arranged at random: quick to draw
    drawn = [[pool[i] for i in rng.integers(0, len(pool), count)] for pool in pools]
    names = [f"c{i}" for i in range(len(kinds))] + ["y"]
    return names, [list(row) for row in zip(*drawn, strict=True)]


def written(names, rows, delimiter=",") -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    return buffer.getvalue().encode()


def meanings(cell: str) -> set[float]:
    """Every number that a cell could honestly mean, as 32-bit floats."""
    plain = cell.strip().replace("\u2212", "-").replace(" ", "").replace("\u00a0", "").replace("\u200b", "")
    plain = plain.removeprefix("=").strip("'\"").replace("\u00b7", ".").replace("\u066b", ".")
    found = set()
    for candidate in (plain, plain.replace(",", "."), plain.replace(",", ""), plain.replace(".", "").replace(",", ".")):
        try:
            if "_" not in candidate and abs(float(candidate)) < 3e38:
                found.add(float(np.float32(float(candidate))))
        except ValueError:
            continue
    return found


def is_faithful(cohort: Cohort, name: str, cell: str, value: float) -> bool:
    """Whether what stands in x is what stands in the cell, or is announced by a warning."""
    feature, text = cohort.feature(name), cell.strip()
    announced = any(f"'{name}'" in warning for warning in cohort.warnings)
    if math.isnan(value):
        return text.casefold() in MISSING or (text.casefold() in WEAKLY_MISSING and announced)
    if feature.kind == "number":
        return value in meanings(cell)
    if value == len(feature.levels):
        return announced
    level = feature.levels[int(value)]
    same_number = bool(meanings(level) & meanings(cell))  # '0' for 0.000, where all cells are numbers
    same_word = level.casefold() == text.casefold() or any({level.casefold(), text.casefold()} <= each for each in SAME)
    return level == text or same_number or (same_word and announced)


def unfaithful_cells(cohort: Cohort, names, rows) -> list[tuple[str, str, float]]:
    """Cells whose meaning changed without a word, over all used columns and all rows that were kept."""
    kept = cohort.source_rows if cohort.source_rows is not None else range(len(rows))
    return [
        (name, rows[row][names.index(name)], float(cohort.x[i, j]))
        for j, name in enumerate(cohort.names)
        for i, row in enumerate(kept)
        if not is_faithful(cohort, name, rows[row][names.index(name)], float(cohort.x[i, j]))
    ]
