"""Two ways to write a unit are one; two units are never one."""

import pytest

from l2m_core.patients.units import same_unit


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mmol/L", "mmol/l"),
        ("µmol/L", "umol/L"),
        ("μmol/L", "µmol/l"),
        ("10⁹/L", "10*9/L"),
        ("x10^9/L", "10*9/l"),
        ("K/uL", "10^3/µL"),
        ("G/l", "10^9/L"),
        ("T/L", "10*12/L"),
        ("mmHg", "mm[Hg]"),
        ("years", "a"),
        ("bpm", "/min"),
        ("{score}", ""),
        ("1", ""),
    ],
)
def test_the_same_unit_written_in_two_ways(one, other):
    assert same_unit(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mmol/L", "mol/L"),
        ("mg/dL", "mg/L"),
        ("mL/min", "mL/min/{1.73_m2}"),
        ("Cel", "[degF]"),
        ("lb", "L"),
        ("mol", "moL"),
        ("mg", "Mg"),
        ("10*9/L", "10*6/L"),
        ("G/L", "g/L"),
        ("mmol/L", ""),
    ],
)
def test_two_units(one, other):
    assert not same_unit(one, other)
