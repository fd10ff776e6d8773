"""Which columns of numbers are probably codes: a 401.9 of a classification of diseases is no more than a 250.0.

As numbers they would be compared by size. Nothing is changed by such a guess: a person is asked, with the remedy. It rests on
words of the column's name, since values alone do not tell (a weight of 70.5 has as many digits as a code), and on values that
such codes can have. Numbers with leading zeros need no guess: they are read as codes.
"""

from __future__ import annotations

import numpy as np

from l2m_core.tables.column_reading import Reading
from l2m_core.tables.role_guesses import words_of_name

ADVICE = "These numbers look like codes, which have no order. Where they are, choose the kind category"
LARGEST_FLAG = 9  # of two different values below, such as 1 and 2, order says nothing
MOST_DECIMALS = 2
CODES = frozenset(
    "code codes icd icd9 icd10 icd9cm icd10cm atc drg cpt snomed loinc ndc opcs ops zip zipcode postcode postal plz "
    "id ids kode codigo codice".split()
)
"""What numbers stand for when they are codes of any length."""
DISEASES = frozenset("diagnosis diagnose diagnostic diag dx disease cause procedure".split())
LEAST_OF_DISEASE = 100
"""Codes of diseases are of three digits, or more; a number of diagnoses is smaller."""
KINDS = frozenset(
    "race ethnicity ethnic ethnie marital religion religious insurance payer occupation profession country region ward "
    "department specialty speciality disposition".split()
)
"""What has kinds and no size: whole numbers of it are codes."""
QUANTITIES = frozenset(
    "year yr age day time date month week hour minute number num nr n count amount duration since score total percent percentage "
    "share rate ratio cost mean median income status".split()
)
"""Words of what is counted or measured, whatever else the name says."""


def seem_codes(reading: Reading) -> bool:
    """Whether a column of numbers should be asked about."""
    if reading.numbers is None or not reading.distinct:
        return False
    words, values = frozenset(words_of_name(reading.name)), np.asarray(reading.values, dtype=np.float64)
    if len(values) < 3 and values.max() <= LARGEST_FLAG:
        return False
    if words & QUANTITIES or (values < 0).any() or _has_more_decimals(values):
        return False
    is_whole = bool((values == values.round()).all())
    if words & CODES:
        return True
    if words & DISEASES:
        return bool(np.median(values) >= LEAST_OF_DISEASE)
    return bool(words & KINDS) and is_whole


def _has_more_decimals(values: np.ndarray) -> bool:
    return bool((np.abs(values - values.round(MOST_DECIMALS)) > 1e-9).any())
