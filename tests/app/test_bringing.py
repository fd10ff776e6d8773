"""Patients who are pasted or uploaded: read for this cohort, listed, and begun one after the other."""

from __future__ import annotations

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from app.host.services import Services
from app.store import StoredCohort
from app.ui.step_through import bring
from l2m_core.cohort import Cohort
from tests.app.conftest import check, open_app, press, small_frame, texts
from tests.app.stepping import recorded


@pytest.fixture
def page(shared_services: Services, owner: str, ward: StoredCohort) -> AppTest:
    shared_services.conditioned(owner, ward, shared_services.model(owner))
    return open_app("step_through", cohort=ward.id)


def paste(page: AppTest, text: str) -> AppTest:
    page.text_area(key=bring.TEXT).set_value(text)
    return press(page, "bring-read")


def test_a_pasted_row_begins_a_step_through(page: AppTest, owner: str) -> None:
    page = paste(page, "age\tsex\tlactate\n71\tF\t<2,5\n")
    assert "1 patient read from a table" in texts(page) and "71 years" in texts(page)
    page = press(page, "bring-begin")
    (event,) = recorded(owner, page).events
    assert dict(event.values) == {"age": 71.0, "sex": "F", "lactate": 2.5} and event.limits == {"lactate": "below"}
    assert re.search(r"Row 2, brought \d\d \w+ \d\d:.?\d\d UTC", texts(page))


def test_a_patient_of_a_list_is_offered_to_be_continued_by_its_whole_label(page: AppTest) -> None:
    page = press(paste(page, "patient,test,result\nA,sex,F\nB,sex,M\n"), "bring-begin")
    page = press(page, "new-patient")
    (going_on,) = (button for button in page.button if str(button.key).startswith("go-on-"))
    assert re.search(r"brought \d\d \w+ \d\d:.?\d\d UTC", going_on.label)


def test_a_level_that_was_brought_in_another_spelling_stands_in_its_field_to_be_corrected(page: AppTest) -> None:
    page = press(paste(page, "age,sex,scan\n71,F,hazy\n"), "bring-begin")
    page = press(page, "edit-1")
    assert next(box for box in page.selectbox if str(box.key).startswith("correct-")).value == "f"
    page = press(press(page, "correct-cancel"), "edit-5")
    assert next(box for box in page.selectbox if str(box.key).startswith("correct-")).value is None


def test_a_patient_is_read_by_the_rules_that_were_stated_when_the_cohort_was_uploaded(
    shared_services: Services, owner: str
) -> None:
    frame = small_frame().astype({"sodium": object, "potassium": object})
    frame.loc[::5, "sodium"] = -9
    frame["potassium"] = [f"{value} mmol/l" for value in frame["potassium"]]
    cohort = Cohort.from_csv(frame.to_csv(index=False).encode(), "died", missing=["-9", "k.A."], units="drop")
    stored = shared_services.add_cohort(owner, cohort)
    shared_services.conditioned(owner, stored, shared_services.model(owner))
    page = paste(open_app("step_through", cohort=stored.id), "age,sodium,potassium,scan\n71,-9,4.1 mmol/l,k.A.\n")
    (event,) = recorded(owner, press(page, "bring-begin")).events
    assert dict(event.values) == {"age": 71.0, "potassium": 4.1}


def test_a_list_of_results_begins_a_step_through_and_what_is_in_doubt_is_told(page: AppTest, owner: str) -> None:
    page = paste(page, "test\tresult\tunit\nLactate\t2.5\tmmol/L\nage\t71\tmonths\n")
    assert "1 patient read from a list of results" in texts(page)
    assert "It is in months, but 'age' is in years. Nothing was converted" in texts(page)
    page = press(page, "bring-begin")
    (event,) = recorded(owner, page).events
    assert dict(event.values) == {"lactate": 2.5}


def test_several_patients_are_a_list_to_work_through(page: AppTest, owner: str) -> None:
    page = paste(page, json.dumps([{"age": 71}, {"age": 44, "sex": "m"}]))
    assert "2 patients read from JSON" in texts(page)
    page = press(page, "bring-begin")
    assert dict(recorded(owner, page).events[0].values) == {"age": 71}
    page = press(page, "new-patient")
    assert "2 patients read from JSON, 1 begun" in texts(page)
    assert page.selectbox(key=bring.CHOSEN).value == 1, "the next one is chosen"
    assert page.selectbox(key=bring.CHOSEN).options == ["✓ patient 1 · 1 value", "patient 2 · 2 values"]
    page = press(page, "bring-begin")
    assert dict(recorded(owner, page).events[0].values) == {"age": 44, "sex": "m"}


def test_a_file_is_read_and_what_is_not_used_is_told(page: AppTest) -> None:
    page.file_uploader(key=bring.FILE).upload("patient.csv", b"age,lactat,died\n720,3,yes\n")
    page = press(page, "bring-read")
    said = texts(page)
    assert "Not used (3)" in said and "Did you mean 'lactate'?" in said
    assert "'age' = 720 is outside the allowed range" in said and "Nothing is known of this patient" in said


def test_a_number_unlike_the_cohort_is_asked_about_before_it_begins(page: AppTest) -> None:
    assert "is below every value in the cohort" in texts(paste(page, "age\n5\n"))


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "nothing to read"), ("thickness,clumps\n5,3", "None of the columns is one of this cohort's"), ("{", "JSON")],
)
def test_what_cannot_be_read_is_refused_where_it_was_pasted(page: AppTest, text: str, words: str) -> None:
    page = paste(page, text)
    assert words in texts(page) and page.text_area(key=bring.TEXT).value == text


def test_a_text_and_a_file_are_not_chosen_between(page: AppTest) -> None:
    page.file_uploader(key=bring.FILE).upload("patient.csv", b"age\n71\n")
    assert "Keep one of them" in texts(paste(page, "age\n44"))


def test_patients_of_one_cohort_are_not_offered_for_another(
    page: AppTest, owner: str, shared_services: Services, ward: StoredCohort
) -> None:
    page = paste(page, "age\n71")
    other = shared_services.store.cohorts.get(owner, ward.id)
    page.session_state[bring.BROUGHT] = bring.Brought("another", page.session_state[bring.BROUGHT].incoming)
    page = check(page.run())
    assert other.id == ward.id and page.text_area(key=bring.TEXT) is not None
    assert not [button for button in page.button if button.key == "bring-begin"]


def test_names_and_values_are_shown_as_they_are_written(page: AppTest) -> None:
    page = paste(page, "age,![x](http://evil.example)\n71,1\n")
    shown = "\n".join(str(element.value) for element in page.info)
    assert "![x](http" not in shown and "evil" in shown


def test_others_can_be_brought_instead(page: AppTest) -> None:
    page = press(paste(page, "age\n71"), "bring-clear")
    assert page.text_area(key=bring.TEXT).value in ("", None)


def test_who_could_not_begin_is_not_marked_as_begun(
    page: AppTest, shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    page = paste(page, json.dumps([{"age": 71}, {"age": 44}]))
    page.session_state["start-model"] = "gone"
    page.button(key="bring-begin").click().run()
    assert "step" not in page.query_params and page.session_state[bring.BROUGHT].begun == frozenset()
