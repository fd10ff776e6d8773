"""Which numbers a feature may hold: one rule for cells, arrays and values that a person enters."""

import numpy as np
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, FeatureError
from l2m_core.schema import Feature
from l2m_core.tables.allowed_numbers import LARGEST, is_outside, is_refused, is_too_large
from l2m_core.tables.column_reading import DEFAULT_RULES, ReadingRules
from l2m_core.tables.entered_values import encode_value, enter_value

PH = Feature("ph", minimum=6.5, maximum=8.0)


@pytest.mark.parametrize(
    ("number", "too_large", "outside"),
    [
        (7.4, False, False),
        (6.5, False, False),
        (8.0, False, False),
        (8.1, False, True),
        (-LARGEST, False, True),
        (1e39, True, True),
        (-np.inf, True, True),
        (np.nan, False, False),
    ],
)
def test_a_number_is_refused_beyond_32_bits_or_the_range(number: float, too_large: bool, outside: bool) -> None:
    assert (is_too_large(number), is_outside(number, PH)) == (too_large, outside)
    assert is_refused(number, PH) == (too_large or outside)
    assert is_refused(np.array([number]), PH).tolist() == [too_large or outside]
    assert is_refused(number, Feature("any")) == too_large


def test_a_number_beyond_32_bits_is_not_said_to_be_infinite() -> None:
    with pytest.raises(FeatureError, match=r"between -3\.4e38 and 3\.4e38; 1e\+39 is not"):
        encode_value(Feature("any"), 1e39, DEFAULT_RULES)


@pytest.mark.parametrize("number", [6.4, 8.1, 1e39])
def test_cells_and_entered_values_are_refused_alike(number: float) -> None:
    with pytest.raises(FeatureError):
        encode_value(PH, number, DEFAULT_RULES)
    rows = "".join(f"{7 + i / 100},{i % 2}\n" for i in range(20))
    schema = {"features": [{"name": "ph", "minimum": 6.5, "maximum": 8}]}
    with pytest.raises(CohortError, match="row 22"):
        Cohort.from_csv(f"ph,y\n{rows}{number},1\n".encode(), "y", schema=schema)


def test_an_entered_value_comes_with_what_is_recorded_and_its_code() -> None:
    sex = Feature("sex", kind="binary", levels=("F", "M"))
    assert enter_value(PH, " 7.4", DEFAULT_RULES) == (7.4, 7.4)
    assert enter_value(PH, np.float32(7.5), DEFAULT_RULES) == (7.5, 7.5)
    assert enter_value(sex, "m", DEFAULT_RULES) == ("m", 1)
    recorded, code = enter_value(PH, "n/a", DEFAULT_RULES)
    assert recorded is None and np.isnan(code)
    with pytest.raises(FeatureError, match="is a detection limit. Enter its number, and 'below' or 'above'"):
        enter_value(PH, "<7", ReadingRules(censored="limit"))
