"""The step-through page: every action is stored first and shown next."""

import re
import time
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.host.services import Services
from app.store import StoredCohort
from app.ui import inputs, labels, state
from app.ui.step_through import actions, ranking, step_answers, suggestion
from l2m_core.cohort import Cohort
from l2m_core.memory import CohortMemory
from l2m_core.step_through import verdict
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.words import percent, percents
from tests.app.conftest import PATIENCE, check, press, small_frame, texts
from tests.app.stepping import NAMES, begin, enter, kinds, recorded, set_rule, step_id, turn_to, verdict_line


@pytest.fixture
def app(shared_services: Services, owner: str, ward: StoredCohort) -> AppTest:
    return begin(ward)


def test_a_result_is_stored_and_moves_the_answer(owner: str, app: AppTest) -> None:
    before = app.metric[0].value
    app = enter(app, "lactate", 3.6)
    event = recorded(owner, app).events[-1]
    assert event.kind == "observe" and dict(event.values) == {"lactate": 3.6}
    page = texts(app)
    assert "3.6 mmol/L" in page and "▲ high" in page and "1 test · cost 12" in page
    view = step_answers.load(owner, step_id(app)).view
    assert app.metric[0].value == f"{view.step.posterior['yes']:.0%}" and len(before) > 0


def test_the_numbers_on_the_page_are_those_of_the_core(owner: str, app: AppTest, shared_services: Services) -> None:
    app = enter(app, "lactate", 3.6)
    stored = recorded(owner, app)
    cohort = shared_services.cohort(owner, stored.cohort)
    memory = shared_services.model(owner).condition(cohort, council=False)
    patient = memory.start({"age": 71.0}).observe("lactate", 3.6)
    view = step_answers.load(owner, step_id(app)).view
    assert np.allclose(view.step.posterior["yes"], patient.posterior[1], atol=1e-6)
    preview = view.preview("sodium")
    after = patient.observe("sodium", float(preview.value[1])).posterior[1]
    assert np.isclose(preview["p(yes)"][1], after, atol=1e-6), "the preview is not what entering the value gives"


def test_of_a_category_with_many_levels_each_that_is_tried_has_its_own_chance(
    owner: str, shared_services: Services
) -> None:
    """Not that of all those which it stands for: none of twenty levels that are equally frequent is 20% likely."""
    organism = [f"organism {row % 20:02d}" for row in range(80)]
    frame = small_frame()[["age", "died"]].assign(organism=organism)
    schema = {"features": [{"name": "organism", "role": "acquirable"}, {"name": "age", "role": "baseline"}]}
    app = begin(shared_services.add_cohort(owner, Cohort.from_frame(frame, "died", schema=schema, name="cultures")))
    page = " ".join(str(html.proto.body) for html in app.get("html"))
    said = dict(re.findall(r"(organism \d\d) · <?(\d+)%", page))
    assert len(said) > 4 and max(map(int, said.values())) < 12
    assert f"{len(said)} of 20 levels are tried" in texts(app)


def test_where_no_result_is_foreseen_the_page_says_that_it_shows_the_first_levels(
    owner: str, shared_services: Services
) -> None:
    organism = [f"organism {row}" if row < 9 else None for row in range(80)]
    frame = small_frame()[["age", "died"]].assign(organism=organism)
    schema = {"features": [{"name": "organism", "role": "acquirable"}, {"name": "age", "role": "baseline"}]}
    app = begin(shared_services.add_cohort(owner, Cohort.from_frame(frame, "died", schema=schema, name="cultures")))
    assert "The first 8 of 9 levels." in texts(app)


@pytest.mark.parametrize("off", [0.0, 0.05])
def test_where_results_do_not_average_to_the_belief_the_page_says_so(
    owner: str, ward: StoredCohort, monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    as_foreseen = Patient.preview

    def preview(self: Patient, name: str):
        table = as_foreseen(self, name)
        chance = table["chance"].to_numpy()
        now = float(self.posterior[1])
        return table.assign(**{"p(yes)": table["p(yes)"] + now + off - float(chance @ table["p(yes)"])})

    foreseen = Patient.outlook
    monkeypatch.setattr(Patient, "outlook", lambda *asked: replace(foreseen(*asked), is_balanced=not off))
    monkeypatch.setattr(Patient, "preview", preview)
    assert ("Weighted by how likely they are" in texts(begin(ward))) == bool(off)


def test_another_test_than_the_suggested_one_is_recorded_with_the_reason(owner: str, app: AppTest) -> None:
    suggested = step_answers.load(owner, step_id(app)).view.step.suggested
    other = "scan" if suggested != "scan" else "lactate"
    app = turn_to(app, other)
    app.text_input(key="step-reason").set_value("machine is free")
    app = enter(app, other, "dense" if other == "scan" else 2.0)
    event = recorded(owner, app).events[-1]
    assert (event.suggested, event.reason) == (suggested, "machine is free") and event.about == (other,)


def test_the_way_back_to_the_suggestion_is_there_only_when_one_has_left_it(owner: str, app: AppTest) -> None:
    suggested = step_answers.load(owner, step_id(app)).view.step.suggested
    app = turn_to(app, "scan" if suggested != "scan" else "lactate")
    assert [b for b in app.button if b.key == "to-suggestion"]
    app = turn_to(app, suggested)
    assert not [b for b in app.button if b.key == "to-suggestion"]


def test_a_box_of_an_earlier_step_turns_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit calls for it once more where a band came while it was replaced."""
    session = {suggestion.SELECT: "now", "now": "scan", "before": "lactate"}
    monkeypatch.setattr(suggestion.st, "session_state", session)
    suggestion.turn_to("before")
    assert actions.CHOSEN not in session
    suggestion.turn_to("now")
    assert session[actions.CHOSEN] == "scan"


def test_a_panel_is_one_step_and_paid_once(owner: str, app: AppTest) -> None:
    app = turn_to(app, "sodium")
    for name, value in (("sodium", 138.0), ("potassium", 4.4)):
        app.number_input(key=f"value-{step_id(app)}-{NAMES.index(name)}").set_value(value)
    app = press(app, "record-submit")
    event = recorded(owner, app).events[-1]
    assert dict(event.values) == {"sodium": 138.0, "potassium": 4.4}
    assert "1 test · cost 5" in texts(app)


def test_a_detection_limit_is_kept_as_one(owner: str, app: AppTest) -> None:
    app = turn_to(app, "lactate")
    assert [option.replace("\\", "") for option in app.get("segmented_control")[0].options] == ["=", "<", ">"]
    app.get("segmented_control")[0].set_value("below")
    app = enter(app, "lactate", 0.5)
    event = recorded(owner, app).events[-1]
    assert dict(event.limits) == {"lactate": "below"} and "<0.5 mmol/L" in texts(app)


def test_a_limit_that_many_of_the_cohort_lie_beyond_is_asked_about_once(owner: str, app: AppTest) -> None:
    app = turn_to(app, "lactate")
    app.get("segmented_control")[0].set_value("below")
    app = enter(app, "lactate", 4.0)
    assert "lactate <4 is used as 4, but" in texts(app) and "lie below it, half of them beyond" in texts(app)
    assert kinds(owner, app) == ["start"]
    app = press(app, "record-submit")
    event = recorded(owner, app).events[-1]
    assert dict(event.values) == {"lactate": 4.0} and dict(event.limits) == {"lactate": "below"}


def test_one_member_of_a_panel_may_lie_beyond_its_limit_of_detection(owner: str, app: AppTest) -> None:
    app = turn_to(app, "sodium")
    choices = app.get("segmented_control")
    assert [choice.label for choice in choices] == ["Result of sodium", "Result of potassium"]
    choices[1].set_value("above")
    for name, value in (("sodium", 138.0), ("potassium", 9.0)):
        app.number_input(key=f"value-{step_id(app)}-{NAMES.index(name)}").set_value(value)
    app = press(app, "record-submit")
    event = recorded(owner, app).events[-1]
    assert dict(event.values) == {"sodium": 138.0, "potassium": 9.0} and dict(event.limits) == {"potassium": "above"}
    assert ">9 mmol/L" in texts(app) and "138 mmol/L" in texts(app), "a limit is no unusual value to ask about"


def test_beside_a_limit_the_other_values_of_a_panel_are_still_looked_at(owner: str, app: AppTest) -> None:
    app = turn_to(app, "sodium")
    app.get("segmented_control")[1].set_value("below")
    for name, value in (("sodium", 1380.0), ("potassium", 1.0)):
        app.number_input(key=f"value-{step_id(app)}-{NAMES.index(name)}").set_value(value)
    app = press(app, "record-submit")
    assert "sodium = 1380 mmol/L is above every value" in texts(app) and "potassium = 1 " not in texts(app)
    assert kinds(owner, app) == ["start"]


def test_nothing_entered_is_said_and_nothing_stored(owner: str, app: AppTest) -> None:
    app = press(turn_to(app, "lactate"), "record-submit")
    assert "Enter a result first" in texts(app) and kinds(owner, app) == ["start"]


def test_a_value_unlike_all_of_the_cohort_is_asked_about_once(owner: str, app: AppTest) -> None:
    app = enter(app, "lactate", 38.0)
    assert "above every value in the cohort" in texts(app) and kinds(owner, app) == ["start"]
    key = f"value-{step_id(app)}-2"
    assert app.number_input(key=key).value == 38.0
    app = press(app, "record-submit")
    assert kinds(owner, app) == ["start", "observe"]


def test_the_warning_names_the_value_that_is_in_the_table() -> None:
    frame = small_frame()
    frame["lactate"] = frame["lactate"].clip(0.06, 15.9)
    frame.loc[0, "lactate"], frame.loc[1, "lactate"] = 0.06, 15.9
    frame["sodium"] = frame["sodium"].clip(130)
    cohort = Cohort.from_frame(frame, outcome="died", name="ward")
    lactate = cohort.feature("lactate")
    assert "(lowest: 0.06)" in str(inputs.unlike_the_cohort(cohort, lactate, 0.01))
    assert "(highest: 15.90)" in str(inputs.unlike_the_cohort(cohort, lactate, 99.0))
    for value in (0.06, 15.9):
        assert inputs.unlike_the_cohort(cohort, lactate, value) is None, "read back from 32 bits it is still the same"


def test_tiny_values_are_asked_about_by_their_own_size() -> None:
    frame = small_frame()
    frame["lactate"] *= 1e-9
    cohort = Cohort.from_frame(frame, outcome="died", name="ward")
    lactate = cohort.feature("lactate")
    low, high = inputs.recorded_range(cohort, "lactate")
    assert f"(highest: {high:.2g})" in str(inputs.unlike_the_cohort(cohort, lactate, 2 * high))
    assert inputs.unlike_the_cohort(cohort, lactate, -high) is not None
    assert inputs.unlike_the_cohort(cohort, lactate, low) is None


def test_a_number_between_the_grades_of_a_score_is_asked_about() -> None:
    frame = small_frame()
    frame["grade"] = np.arange(len(frame)) % 5 + 1
    cohort = Cohort.from_frame(
        frame, outcome="died", schema={"features": [{"name": "grade", "kind": "number"}]}, name="ward"
    )
    grade = cohort.feature("grade")
    assert grade.kind == "number"
    assert "only 5 different values, all of them whole" in str(inputs.unlike_the_cohort(cohort, grade, 2.3))
    assert inputs.unlike_the_cohort(cohort, grade, 3.0) is None
    assert inputs.unlike_the_cohort(cohort, cohort.feature("lactate"), 2.34567) is None


def test_the_first_line_says_what_to_do_and_what_that_could_change(owner: str, app: AppTest) -> None:
    view = step_answers.load(owner, step_id(app)).view
    after = view.preview(view.step.suggested)["p(yes)"]
    said = f"Measure {view.step.suggested}: it could move {percent(view.step.posterior['yes'])} to "
    assert f"{said}{percents(after.min(), after.max())}." in verdict_line(app)
    other = "scan" if view.step.suggested != "scan" else "lactate"
    assert said in verdict_line(turn_to(app, other)), "it is about the suggestion, whatever one looks at"


def test_where_no_test_tells_anything_the_page_says_so(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "Stop: nothing left is likely to move this by more than 100 points."
    assert sentence not in verdict_line(app)
    monkeypatch.setattr(verdict, "least_points_for", lambda cohort: 100.0)
    tests = tuple(replace(test, gain=0.0003) for test in step_answers.load(state.owner(), step_id(app)).patient.tests)
    monkeypatch.setattr(Patient, "tests", tests)
    app = enter(app, "lactate", 2.2)
    assert sentence in verdict_line(app)
    assert "gain **<0.001** nats" in texts(app) and "0.000 nats" not in texts(app)


def test_where_the_ranking_only_estimated_a_test_its_results_say_what_they_come_to(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "an estimate: the results above make it "
    patient = step_answers.load(state.owner(), step_id(app)).patient
    first, last = patient.tests[0], patient.tests[-1]
    assert said not in texts(turn_to(app, first.feature)), "what leads the ranking was computed from these results"
    monkeypatch.setattr(Patient, "tests", tuple(replace(test, gain=test.gain / 10) for test in patient.tests))
    app = turn_to(press(turn_to(app, last.feature), "mark-declined"), first.feature)
    made = f"{labels.gain(first.gain)} nats, {verdict.typical_move_in_words(patient, first.feature)}"
    assert f"gain **{labels.gain(first.gain / 10)}** nats · {said}{made} · " in texts(app)


def test_two_tests_that_tell_only_together_are_said_with_the_band(
    owner: str, app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentence = "lactate and scan together tell more: typically ±9 points, alone ±2 points."
    monkeypatch.setattr(step_answers, "told_together", lambda patient: sentence)
    app = enter(app, "sodium", 140.0)
    answers = step_answers.load(owner, step_id(app))
    assert sentence not in texts(app), "it is looked for in the background, with the band"
    until = time.monotonic() + PATIENCE
    while not all(answers.uncertainties()) and time.monotonic() < until:
        answers.begin_uncertainties()
        time.sleep(0.2)
    page = texts(app.run())
    assert f"draws). {sentence}" in page


def test_the_suggestion_comes_with_what_speaks_for_and_against_it(app: AppTest) -> None:
    page = texts(turn_to(app, "scan"))
    assert "**:material/add_circle: For:**" in page and "recorded in 80 of 80" in page
    assert "**:material/do_not_disturb_on: Against:**" in page and "dearer than most (80; others 5)" in page


def test_a_value_that_is_impossible_is_refused(owner: str, app: AppTest) -> None:
    app = press(enter(app, "lactate", 380.0), "record-submit")
    assert "outside the allowed range: 0 to 40 mmol/L" in texts(app) and kinds(owner, app) == ["start"]


@pytest.mark.parametrize("kind", ["unavailable", "declined", "pending"])
def test_what_cannot_be_had_is_not_suggested_again(owner: str, app: AppTest, kind: str) -> None:
    app = press(turn_to(app, "lactate"), f"mark-{kind}")
    assert kinds(owner, app) == ["start", kind] and f"lactate: {kind}" in texts(app)
    assert step_answers.load(owner, step_id(app)).view.step.suggested != "lactate"
    app = press(app, "status-2")
    app.number_input(key=f"value-{step_id(app)}-2").set_value(1.9)
    app = press(app, "record-submit")
    assert dict(recorded(owner, app).events[-1].values) == {"lactate": 1.9} and f"lactate: {kind}" not in texts(app)


def test_undo_takes_back_the_last_step_and_keeps_it_in_the_log(owner: str, app: AppTest) -> None:
    before = app.metric[0].value
    app = press(enter(app, "lactate", 3.6), "undo")
    assert kinds(owner, app) == ["start", "observe", "undo"] and app.metric[0].value == before
    app.session_state["step-log"] = True
    page = texts(check(app.run()))
    assert "Recorded · lactate 3.6 mmol/L" in page and "Undid the step before" in page
    assert app.button(key="undo").disabled


def test_a_correction_is_a_new_event_and_the_old_value_stays_visible(owner: str, app: AppTest) -> None:
    app = press(app, "edit-0")
    field = next(number for number in app.number_input if number.key and number.key.startswith("correct-"))
    assert field.value == 71.0
    field.set_value(61.0)
    app = press(app, "correct-save")
    assert kinds(owner, app) == ["start", "correct"] and "61 years" in texts(app)
    app.session_state["step-log"] = True
    assert "Began · age 71 years" in texts(check(app.run()))
    app = press(press(app, "edit-0"), "correct-take-back")
    assert "age" not in step_answers.load(owner, step_id(app)).patient.known


def test_a_correction_that_changes_nothing_is_not_recorded(owner: str, app: AppTest) -> None:
    app = press(press(app, "edit-0"), "correct-save")
    assert kinds(owner, app) == ["start"]
    assert not [number for number in app.number_input if number.key and number.key.startswith("correct-")]


def test_a_correction_keeps_a_result_below_its_limit_one(owner: str, app: AppTest) -> None:
    app = turn_to(app, "lactate")
    app.get("segmented_control")[0].set_value("below")
    app = enter(app, "lactate", 0.5)
    app = press(app, f"edit-{NAMES.index('lactate')}")
    correction = next(choice for choice in app.get("segmented_control") if choice.key.startswith("correct-limit"))
    assert correction.value == "below"
    next(number for number in app.number_input if number.key and number.key.startswith("correct-")).set_value(0.4)
    app = press(app, "correct-save")
    event = recorded(owner, app).events[-1]
    assert event.kind == "correct" and dict(event.limits) == {"lactate": "below"} and "<0.4 mmol/L" in texts(app)


def test_a_correction_unlike_all_of_the_cohort_is_asked_about_once(owner: str, app: AppTest) -> None:
    def save_17(app: AppTest) -> AppTest:
        field = next(number for number in app.number_input if number.key and number.key.startswith("correct-"))
        field.set_value(17.0)
        return press(app, "correct-save")

    app = save_17(press(app, "edit-0"))
    assert "age = 17 years is below every value in the cohort" in texts(app) and "Press Save again" in texts(app)
    app = save_17(press(press(app, "correct-cancel"), "edit-0"))
    assert kinds(owner, app) == ["start"], "what was cancelled is asked about anew"
    app = press(app, "correct-save")
    assert kinds(owner, app) == ["start", "correct"] and "17 years" in texts(app)


def test_stopping_ends_and_reopening_goes_on(owner: str, app: AppTest, shared_services: Services) -> None:
    app = press(app, "stop")
    assert shared_services.store.step_throughs.get(owner, step_id(app)).status == "finished"
    assert "Stopped." in verdict_line(app) and not [b for b in app.button if b.key == "record-submit"]
    app = press(app, "reopen")
    assert shared_services.store.step_throughs.get(owner, step_id(app)).status == "running"
    assert app.button(key="record-submit")


def test_who_stops_is_told_what_it_came_to_and_can_take_it_away(owner: str, app: AppTest) -> None:
    first = step_answers.load(owner, step_id(app)).posterior["yes"]
    app = press(enter(app, "lactate", 3.6), "mark-declined")
    declined = step_answers.load(owner, step_id(app)).patient.state.statuses
    app = press(app, "stop")
    now = step_answers.load(owner, step_id(app))
    page = texts(app)
    assert f"**Believed:** died {percent(now.posterior['yes'])}; {percent(first)} at the start." in page
    moved = round(100 * now.posterior["yes"]) - round(100 * first)
    assert f"**Measured:** lactate 3.6 mmol/L ({'+' if moved > 0 else '−'}{abs(moved)} point" in page
    assert declined and all(f"{name} declined" in page for name in declined)
    assert "**Spent:** 1 test, cost 12, in less than a minute." in page
    assert {button.key for button in app.get("download_button")} >= {
        f"finish-{kind}" for kind in ("pdf", "html", "csv", "json")
    }


def test_who_stops_is_told_what_was_corrected_and_what_that_changed(owner: str, app: AppTest) -> None:
    app = press(enter(app, "lactate", 3.6), f"edit-{NAMES.index('lactate')}")
    next(number for number in app.number_input if number.key and number.key.startswith("correct-")).set_value(1.2)
    app = press(app, "correct-save")
    before, after = (view.step.posterior["yes"] for view in step_answers.load(owner, step_id(app)).views[-2:])
    moved = round(100 * after) - round(100 * before)
    page = texts(press(press(press(app, "edit-0"), "correct-take-back"), "stop"))
    amount = f"{'+' if moved > 0 else '−'}{abs(moved)} points" if moved else ""
    assert f"**Corrected:** lactate 1.2 mmol/L ({amount}" in page and "; age taken back (" in page


def test_a_stop_against_the_advice_says_what_the_advice_was(app: AppTest) -> None:
    assert "**Why it ended:** It was stopped by hand. The advice then was to go on: Measure " in texts(
        press(app, "stop")
    )


def test_a_stop_that_was_advised_says_so_at_the_end(app: AppTest) -> None:
    app = press(enter(set_rule(app, "budget", 1), "lactate", 2.2), "stop")
    assert "**Why it ended:** Stopping was advised. The budget of 1 test is used." in texts(app)


def test_all_tests_can_be_searched_and_are_folded_where_they_are_many(app: AppTest, monkeypatch) -> None:
    monkeypatch.setattr(ranking, "FOLDED", 2)

    def names(app: AppTest) -> list[str]:
        (table,) = (
            str(html.proto.body)
            for html in app.get("html")
            if str(html.proto.body).startswith('<div class="l2m-ranking')
        )
        return [row.find("th").text.removesuffix(" ★") for row in ElementTree.fromstring(table).iter("tr")][1:]

    app = check(app.run())
    assert len(names(app)) == 2
    assert len(names(check(app.toggle(key=ranking.ALL).set_value(True).run()))) == 4
    assert names(check(app.text_input(key=ranking.FIND).set_value("Ium sod").run())) == ["sodium"]
    app = check(app.text_input(key=ranking.FIND).set_value("xyz").run())
    assert "No test's name holds “xyz”" in texts(app)


def test_columns_that_say_nothing_are_left_out(app: AppTest, owner: str) -> None:
    columns = ranking.ranking_columns(step_answers.load(owner, step_id(app)))
    assert "status" not in columns and columns["result in"].count("") == 3 and "—" not in columns["result in"]
    app = press(app, "mark-pending")
    columns = ranking.ranking_columns(step_answers.load(owner, step_id(app)))
    assert list(columns)[1] == "status" and columns["first"] == ["…"] * 4, "its place is kept for it"


def test_going_back_asks_the_model_nothing_that_it_has_answered(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    app = enter(app, "lactate", 2.3456)
    asked: list[int] = []
    query = CohortMemory.query
    monkeypatch.setattr(CohortMemory, "query", lambda self, x, *how: asked.append(len(x)) or query(self, x, *how))
    app = press(app, "undo")
    assert asked == []
    enter(app, "lactate", 2.3457)
    assert asked
