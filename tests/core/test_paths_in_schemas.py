"""A text of a schema file is a text, also where it reads like a place on the computer or on the net."""

from __future__ import annotations

from dataclasses import fields

import pytest
import yaml

from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from l2m_core.schema import Feature, Outcome, Schema
from tests.core.conftest import make_frame
from tests.core.opened import outside, watched

PLACES = [
    "../../etc/passwd",
    "/etc/passwd",
    "~/.ssh/id_rsa",
    "file:///etc/passwd",
    "http://127.0.0.1:9/x",
    "..\\..\\windows\\win.ini",
    "\\\\server\\share\\x",
    "/dev/zero",
    "passwd\0.yaml",
    "$HOME/x",
    "C:\\x",
]
SETTINGS = [("features", f.name) for f in fields(Feature)] + [("outcome", f.name) for f in fields(Outcome)]


def schema_with(part: str, setting: str, place: object) -> str:
    feature = {"name": "lactate", **({setting: place} if part == "features" else {})}
    outcome = {"name": "died", **({setting: place} if part == "outcome" else {})}
    return yaml.safe_dump({"outcome": outcome, "features": [feature]})


@pytest.mark.parametrize(("part", "setting"), SETTINGS)
def test_a_place_in_a_schema_is_refused_or_a_mere_text(part: str, setting: str) -> None:
    frame = make_frame()
    for place in PLACES:
        for value in (place, [place, "other"]):
            text = schema_with(part, setting, value)
            with watched() as found:
                try:
                    schema = Schema.from_yaml(text)
                    assert Schema.from_yaml(schema.to_yaml()) == schema
                    Cohort.from_frame(frame, schema=text)
                except InputError as refusal:
                    assert str(refusal) and "Traceback" not in str(refusal)
            assert outside(found) == []


def test_a_schema_that_is_nothing_but_a_place_is_not_opened_by_whoever_reads_texts() -> None:
    for place in PLACES:
        with watched() as found, pytest.raises(InputError):
            Schema.from_yaml(place)
        assert found == []


def test_what_touches_a_file_elsewhere_is_noticed(tmp_path) -> None:
    with watched() as found:
        (tmp_path / "a").write_text("")
        (tmp_path / "b").mkdir()
    assert [kind for kind, _ in outside(found)] == ["open", "os.mkdir"]
    assert outside(found, tmp_path) == []
