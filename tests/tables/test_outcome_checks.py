"""Nothing gives an outcome another kind, a class more or a patient more before a person said that it is meant."""

import csv
import io

import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, OutcomeError
from l2m_core.tables.lookalikes import is_slip

ROWS = 40
NAMES = [f"{letter}{i}" for i in range(ROWS) for letter in "p"]
AGES = [str(40 + 7 * i % 31) for i in range(ROWS)]
SEXES = ["F", "M"] * (ROWS // 2)
CODED = [str(int(i % 3 == 0)) for i in range(ROWS)]
WORDS = ["dead" if i % 3 == 0 else "alive" for i in range(ROWS)]


def ward(outcome, names=NAMES, sexes=SEXES, ages=AGES, **options) -> Cohort:
    buffer = io.StringIO()
    rows = zip(names, ages, sexes, outcome, strict=True)
    csv.writer(buffer).writerows([("patient", "age", "sex", "died"), *rows])
    return Cohort.from_csv(buffer.getvalue().encode(), "died", **options)


def having(cells, row: int, value: str) -> list[str]:
    return [value if i == row else cell for i, cell in enumerate(cells)]


def refused(words, *columns, **options) -> str:
    with pytest.raises(OutcomeError) as refusal:
        ward(*columns, **options)
    message = str(refusal.value)
    assert [word for word in (*words, "state its kind") if word not in message] == [], message
    return message


@pytest.mark.parametrize("label", ["Mean", "TOTAL", "n", "Sum:", "Average", "average ", "Mittelwert"])
@pytest.mark.parametrize("row", [0, 2, ROWS - 1, ROWS - 2])
def test_a_row_of_totals_is_no_patient(label, row):
    words = (f"Row {row + 2}", "totals or means", "'patient'", label.strip(), "Remove the row")
    refused(words, having(CODED, row, "0.33"), having(NAMES, row, label))
    refused(words, WORDS, having(NAMES, row, label))


def test_a_row_of_totals_without_an_outcome_is_left_out_as_before():
    cohort = ward(having(CODED, ROWS - 1, ""), having(NAMES, ROWS - 1, "Mean"))
    assert len(cohort) == ROWS - 1 and cohort.kind == "binary"


def test_levels_that_are_called_like_totals_are_levels():
    assert ward(CODED, sexes=["n", "y"] * (ROWS // 2)).kind == "binary"
    assert ward(CODED, sexes=["y"] * (ROWS - 1) + ["n"]).kind == "binary"
    assert ward(CODED, sexes=["mean", "median"] * (ROWS // 2)).kind == "binary"


def test_a_mean_never_makes_zero_and_one_a_quantity():
    words = ("'died'", "0 and 1", "0.33 in row 41", "missing=['0.33']")
    refused(words, having(CODED, ROWS - 1, "0.33"))
    meant = ward(having(CODED, ROWS - 1, "0.33"), schema="outcome: {kind: continuous}")
    assert meant.kind == "continuous" and any("0.33 in row 41" in warning for warning in meant.warnings)
    assert ward(having(CODED, ROWS - 1, "0.33"), missing=["0.33"]).kind == "binary"


@pytest.mark.parametrize(("value", "rows"), [("9", [4]), ("2", [4, 7]), ("99", list(range(0, 30, 2))), ("-1", [3])])
def test_zero_and_one_with_a_single_other_value_are_asked_about(value, rows):
    outcome = [value if i in rows else cell for i, cell in enumerate(CODED)]
    refused(("'died'", "0 and 1", f"{value} in row", str(rows[0] + 2), f"missing=['{value}']"), outcome)
    assert ward(outcome, missing=[value]).kind == "binary"
    assert ward(outcome, schema="outcome: {kind: multiclass}").n_classes == 3


def test_a_repeated_header_is_neither_a_class_nor_a_patient():
    wards = ["icu", "home"] * (ROWS // 2)
    for rows in ([20], [0, 20]):
        columns = [wards, SEXES, WORDS, NAMES]
        repeated = [
            [name if i in rows else cell for i, cell in enumerate(cells)]
            for name, cells in zip(("age", "sex", "died", "patient"), columns, strict=True)
        ]
        refused(("the header", str(rows[-1] + 2), "Remove"), repeated[2], repeated[3], repeated[1], repeated[0])


def test_a_class_that_is_called_like_the_outcome_is_a_class():
    cohort = ward(["died" if i % 3 else "alive" for i in range(ROWS)])
    assert set(cohort.classes) == {"died", "alive"}


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["yes", "no", "No", "1", "Yes"], ("mixes", "'1'", "'yes'")),
        (["yes", "no", "no", "y"], ("mixes", "'yes' (first in row 2)", "'y' (first in row 5)")),
        (["neg", "negative", "positive"], ("mixes", "'neg'", "'negative'")),
        (["dead", "alive", "died"], ("mixes", "'dead'", "'died'")),
        (["dead", "alive", "0", "survivor"], ("mixes", "'alive'", "'survivor'")),
    ],
)
def test_mixed_codings_are_asked_about(cells, words):
    outcome = (cells * ROWS)[:ROWS]
    refused(words, outcome)
    meant = ward(outcome, schema="outcome: {kind: multiclass}")
    assert meant.n_classes == len(set(map(str.casefold, cells))) or meant.n_classes == len(set(cells))
    with pytest.raises(CohortError, match="different values; at most two classes are possible. .*mixes"):
        ward(outcome, schema="outcome: {kind: binary}")


def test_numbers_with_some_words_are_refused_with_the_row():
    with pytest.raises(CohortError, match="'died', row 6: 'maybe' is not a number.*kind: multiclass"):
        ward((["0", "1", "0", "1", "maybe"] * ROWS)[:ROWS])
    with pytest.raises(CohortError, match=r"'0' \(first in row 2\).*'Yes' \(first in row 4\)"):
        ward((["0", "1", "Yes", "No"] * ROWS)[:ROWS])


@pytest.mark.parametrize(
    ("slip", "of"),
    [
        ("ded", "dead"),
        ("Dead", "dead"),
        ("dead\u200b", "dead"),
        ("d\u0435ad", "dead"),
        ("aliev", "alive"),
        ("alivve", "alive"),
    ],
)
def test_a_slip_of_the_key_is_no_class(slip, of):
    outcome = [slip if i in (3, 9) else cell for i, cell in enumerate(WORDS)]
    message = refused(("'died'", "row"), outcome)
    assert slip in message or ascii(slip) in message
    assert of in message
    assert ward(outcome, schema="outcome: {kind: multiclass}").n_classes == 3
    assert len(ward(outcome, missing=[slip])) == ROWS - 2


def test_two_classes_that_look_the_same_are_asked_about():
    refused(("'died'", "nearly the same"), ["Dead", "dead"] * (ROWS // 2))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("LumA", "LumB"),
        ("grade I", "grade II"),
        ("typical", "atypical"),
        ("stage1", "stage2"),
        ("male", "female"),
        ("type a", "type b"),
        ("mild", "wild"),
        ("ab", "b"),
    ],
)
def test_names_that_differ_on_purpose_are_no_slips(a, b):
    assert not is_slip(a, b) and not is_slip(b, a)
    cohort = ward([(a, b, "unlike both")[i % 3] for i in range(ROWS)])
    assert cohort.n_classes == 3


@pytest.mark.parametrize("outcome", [having(WORDS, 7, "transferred"), [*(["1", "2", "3"] * 13), "7"]])
def test_a_class_of_one_row_is_asked_about(outcome):
    text, row = next((text, i + 2) for i, text in enumerate(outcome) if outcome.count(text) == 1)
    refused(("'died'", f"'{text}' in row {row} alone"), outcome)
    assert text in ward(outcome, schema="outcome: {kind: multiclass}").classes


def test_stated_classes_say_what_is_meant():
    outcome = having(WORDS, 7, "transferred")
    stated = {"outcome": {"name": "died", "kind": "multiclass", "classes": ["alive", "dead", "transferred"]}}
    assert ward(outcome, schema=stated).n_classes == 3
    stated["outcome"]["classes"] = ["alive", "dead"]
    with pytest.raises(CohortError, match="'transferred' in row 9, which is not one of its stated classes"):
        ward(outcome, schema=stated)


def test_ordinary_outcomes_are_read_without_a_word():
    for outcome in (
        CODED,
        WORDS,
        [str(i % 3) for i in range(ROWS)],
        [f"{i}.5" for i in range(ROWS)],
        ["no", "mild", "severe", "mild"] * 10,
        ["died", "alive", "moved", "died"] * 10,
    ):
        cohort = ward(outcome)
        assert [warning for warning in cohort.warnings if "'died'" in warning and "whole numbers" not in warning] == []


def test_two_classes_of_several_spellings_are_a_binary_outcome():
    cohort = ward([("Yes", "no", "yes", "NO")[i % 4] for i in range(ROWS)])
    assert cohort.kind == "binary"
    assert [text.casefold() for text in cohort.classes] == ["no", "yes"]


def test_one_class_of_several_spellings_is_no_outcome():
    with pytest.raises(CohortError, match="one and the same value in all rows, however it is spelled"):
        ward(["Yes", "yes"] * (ROWS // 2))


def test_a_remedy_names_kinds_that_an_outcome_can_have():
    rounded = ward([str(i * 10**20) for i in range(ROWS)])
    assert any("If they are codes, state kind: multiclass" in warning for warning in rounded.warnings)
    padded = ward([("001", "002", "003")[i % 3] for i in range(ROWS)])
    assert any("If it is a number, state kind: continuous" in warning for warning in padded.warnings)
    stated = ward([("001", "002", "003")[i % 3] for i in range(ROWS)], schema="outcome: {kind: continuous}")
    assert stated.kind == "continuous" and stated.y.max() == 3
