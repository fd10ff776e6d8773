"""The traces page: what was recorded is found, replayed, compared, verified, renamed, taken in and gone on with."""

import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.host import identity
from app.host.services import Services
from app.store import StepThrough, StoredCohort
from app.ui import labels, posterior_words, state
from app.ui.step_through import belief, finish, step_answers
from app.ui.traces import exchange, listing, loading, replay, report
from l2m_core.cohort import Cohort
from tests.app.conftest import check, open_app, press, small_frame, texts
from tests.app.recorded import changing_their_mind, eventful, keep, memory_of
from tests.app.stepping import begin, enter, outcome_cohort, set_rule, step_id


@pytest.fixture
def kept(shared_services: Services, owner: str, ward: StoredCohort) -> StepThrough:
    return keep(shared_services, owner, ward, eventful(memory_of(shared_services, owner, ward)))


@pytest.fixture
def another(shared_services: Services, owner: str, ward: StoredCohort, kept: StepThrough) -> StepThrough:
    """Later than `kept`, and still running."""
    patient = (
        memory_of(shared_services, owner, ward).start({"age": 40.0}).observe("scan", "clear").observe("lactate", 1.0)
    )
    return keep(shared_services, owner, ward, patient, title="Night 7")


def open_trace(step_through: StepThrough) -> AppTest:
    return open_app("traces", trace=step_through.id)


def titles(app: AppTest) -> list[str]:
    return [button.label for button in app.button if button.key and button.key.startswith("open-")]


def turn(app: AppTest, tab: str) -> AppTest:
    app.session_state["trace-tabs"] = tab
    return check(app.run())


# -- the list -------------------------------------------------------------------------------------------------------


def test_without_a_step_through_the_way_to_one_is_shown(shared_services: Services, owner: str) -> None:
    page = texts(open_app("traces"))
    assert "No step-through is recorded yet" in page and "Research use only" in page


def test_the_list_shows_the_newest_first_and_what_was_believed(
    shared_services: Services, owner: str, kept: StepThrough, another: StepThrough
) -> None:
    app = open_app("traces")
    assert titles(app) == ["Night 7", "Bed 4"]
    page = texts(app)
    for step_through in (kept, another):
        believed = loading.load(owner, step_through.id).record.believed[-1]
        assert f"**{believed['yes']:.0%}** :small[died]" in page
    assert "ward, version 1" in page and "2 tests · cost 92" in page and "2 step-throughs, latest first" in page
    assert "A step-through is kept until you delete it, as a whole" in page


def test_the_list_needs_no_model(owner: str, kept: StepThrough, shared_services: Services, monkeypatch) -> None:
    monkeypatch.setattr(shared_services, "conditioned", lambda *given: pytest.fail("a model was asked"))
    assert titles(open_app("traces")) == ["Bed 4"]


def test_what_another_owner_recorded_is_not_listed_and_does_not_open(kept: StepThrough, monkeypatch) -> None:
    monkeypatch.setattr(state, "browser_of_cookie", lambda: "e" * 32)
    assert titles(open_app("traces")) == []
    app = open_trace(kept)
    assert "no such step-through of yours" in texts(app) and "trace" not in app.query_params


@pytest.mark.parametrize(
    ("key", "entered", "found"),
    [
        (listing.SEARCH, "NIGHT", ["Night 7"]),
        (listing.SEARCH, "ward 4", ["Bed 4"]),
        (listing.SEARCH, "nobody", []),
        (listing.STATE, "finished", []),
        (listing.COHORT, "ward", ["Night 7", "Bed 4"]),
    ],
)
def test_the_list_is_narrowed_by_words_state_and_cohort(
    owner: str, another: StepThrough, key: str, entered: str, found: list[str]
) -> None:
    app = open_app("traces")
    app.session_state[key] = entered
    app = check(app.run())
    assert titles(app) == found
    assert ("None of 2 step-throughs matches" in texts(app)) == (not found)


def test_the_filter_reads_days_as_they_are_shown() -> None:
    moment = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    step_through = StepThrough("", "", "", "", "", "Bed 4", "running", 1, 1, "", moment, moment)
    cohort = StoredCohort("", "", "ward", 1, "", "", False, 0, moment, None)
    day = date(2026, 3, 1)
    assert listing.Filter(first=day, last=day).admits(step_through, cohort)
    assert not listing.Filter(first=day + timedelta(1)).admits(step_through, cohort)
    assert not listing.Filter(last=day - timedelta(1)).admits(step_through, cohort)


def test_a_long_list_has_pages(
    shared_services: Services, owner: str, ward: StoredCohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ON_A_PAGE", 2)
    patient = memory_of(shared_services, owner, ward).start({})
    for number in range(5):
        keep(shared_services, owner, ward, patient, title=f"Bed {number}")
    app = open_app("traces")
    assert titles(app) == ["Bed 4", "Bed 3"]
    app.session_state[listing.PAGE] = 3
    assert titles(check(app.run())) == ["Bed 0"]
    app.session_state[listing.SEARCH] = "Bed 1"
    assert titles(check(app.run())) == ["Bed 1"], "a page that is no more would be empty"


def test_a_deleted_cohort_leaves_its_step_throughs_in_the_list(
    shared_services: Services, owner: str, ward: StoredCohort, kept: StepThrough
) -> None:
    shared_services.store.cohorts.delete(owner, ward.id)
    app = open_app("traces")
    assert titles(app) == ["Bed 4"] and "version 1, deleted" in texts(app)
    assert app.button(key=f"continue-{kept.id}").disabled
    page = texts(press(app, f"open-{kept.id}"))
    assert app.button(key="trace-continue").disabled
    assert "were deleted" in page and "What was recorded at the time is shown" in page and "Step 6 of 6" in page
    assert "model not installed" not in page, "only the cohort is gone"


# -- one of them ----------------------------------------------------------------------------------------------------


def test_a_trace_opens_at_its_end_and_goes_back_step_by_step(owner: str, kept: StepThrough) -> None:
    app = press(open_app("traces"), f"open-{kept.id}")
    loaded = loading.load(owner, kept.id)
    assert "Step 6 of 6" in texts(app) and "Stopped" in texts(app)
    assert texts(app).count("Expected gain, step by step") == 1
    for number in (5, 4):
        app = press(app, "replay-back")
        assert f"Step {number} of 6" in texts(app)
        assert app.metric[0].value == f"{loaded.trace.steps[number].posterior['yes']:.0%}"
    assert "131 mmol/L" in texts(app) and "Corrected" not in texts(app)
    app = press(app, "replay-next")
    assert "Step 5 of 6" in texts(app) and "<0.5 mmol/L" in texts(app)


def test_each_step_shows_what_the_page_showed_then(owner: str, kept: StepThrough) -> None:
    loaded = loading.load(owner, kept.id)
    for number, step in enumerate(loaded.trace.steps):
        present = loaded.at(number)
        assert present.view.step.posterior == step.posterior == loaded.record.believed[number]
        following = loaded.events[number + 1].suggested if number < 6 else None
        assert following in (None, present.view.step.suggested), "what the event says was suggested is what is shown"


def test_an_override_shows_the_suggestion_the_reason_and_the_regret(owner: str, kept: StepThrough) -> None:
    page = texts(check(open_trace(kept).select_slider[0].set_value(1).run()))
    loaded = loading.load(owner, kept.id)
    event = loaded.events[1]
    assert event.suggested not in event.values, "the example is no override any more"
    gains = loaded.trace.steps[0].gains
    assert f"Suggested then: **{event.suggested}** ({labels.gain(gains[event.suggested])} nats)" in page
    done = ", ".join(f"**{name}** ({labels.gain(gains[name])} nats)" for name in event.about)
    assert f"Done instead: {done}" in page and set(event.about) == {"sodium", "potassium"}
    assert "Step regret" in page and "drawn already" in page
    assert loaded.trace.regrets[1] == pytest.approx(gains[event.suggested] - max(gains["sodium"], gains["potassium"]))


def test_a_test_that_was_measured_although_the_advice_was_to_stop_was_not_followed(
    owner: str, ward: StoredCohort, kept: StepThrough
) -> None:
    app = begin(ward, age=71.0)
    name = str(loading.load(owner, step_id(app)).trace.steps[0].suggested)
    app = enter(set_rule(app, "budget", 0), name, "clear" if name == "scan" else 3.0)
    recorded = loading.load(owner, step_id(app))
    assert recorded.events[1].suggested == name and recorded.against_advice == {1}
    page = texts(open_app("traces", trace=recorded.record.id))
    assert f"The advice was to stop. First among the tests then: **{name}**" in page
    assert "It was measured although the advice was to stop." in page and "was followed" not in page
    assert replay.steps_table(recorded).suggested.tolist() == ["", f"stop, else {name}"]
    assert dict(report.make(recorded).facts)["Tests"].startswith(
        "1 test, 1 of them although the advice was to stop, cost"
    )
    side_by_side = texts(turn(open_app("traces", trace=recorded.record.id), "Compare"))
    assert "after 1 test, 1 of them although the advice was to stop" in side_by_side
    answers = recorded.at(1)
    assert answers is not None and "1 of them although the advice was to stop" in "".join(finish.summary(answers))


def test_what_was_advised_then_was_followed(owner: str, ward: StoredCohort) -> None:
    app = begin(ward, age=71.0)
    name = str(loading.load(owner, step_id(app)).trace.steps[0].suggested)
    app = enter(set_rule(app, "least_points", 0), name, "clear" if name == "scan" else 3.0)
    recorded = loading.load(owner, step_id(app))
    assert recorded.against_advice == frozenset()
    assert "The suggestion was followed." in texts(open_app("traces", trace=recorded.record.id))


def test_what_was_undone_later_says_so(owner: str, kept: StepThrough) -> None:
    page = texts(check(open_trace(kept).select_slider[0].set_value(2).run()))
    assert "Not available" in page and "Undone later, by step 3" in page and "broken" in page
    assert loading.load(owner, kept.id).undone_by == {2: 3}


def test_the_map_of_gains_gives_steps_their_own_numbers_where_others_were_undone(owner: str, kept: StepThrough) -> None:
    present = loading.load(owner, kept.id).at(6)
    assert present.numbers == [0, 1, 4, 5, 6], "2 was undone by 3"
    (head,) = re.findall('<span class="head"><span>step</span>(.*?)</span></span>', str(belief.gain_map(present).spec))
    assert re.findall(r"\d+", head) == ["0", "1", "4", "5", "6"]
    assert [title.split(" ")[0] for title in belief.gain_map(present).table.columns[1:]] == ["0", "1", "4", "5", "6"]


def test_all_steps_are_there_as_a_table(owner: str, kept: StepThrough) -> None:
    table = replay.steps_table(loading.load(owner, kept.id))
    assert table["step"].tolist() == list(range(7)) and table["undone"][2] == "by step 3"
    assert "<0.5" in table["what happened"][5] and table["cost"].tolist()[-1] == 17.0


def test_a_trace_of_one_event_needs_no_slider(shared_services: Services, owner: str, ward: StoredCohort) -> None:
    begun = keep(shared_services, owner, ward, memory_of(shared_services, owner, ward).start({}))
    page = texts(open_trace(begun))
    assert "Only the start is recorded" in page and "Nothing was known" in page


@pytest.mark.parametrize("kind", ["multiclass", "continuous"])
def test_other_outcomes_replay_and_compare_as_well(shared_services: Services, owner: str, kind: str, kept) -> None:
    stored = shared_services.add_cohort(owner, outcome_cohort(kind))
    memory = memory_of(shared_services, owner, stored)
    patients = [memory.start({"age": 60.0}).observe("lactate", value) for value in (3.1, 0.8)]
    first, _ = (
        keep(shared_services, owner, stored, patient, title=f"{kind} {i}") for i, patient in enumerate(patients)
    )
    app = open_trace(first)
    assert ("Likeliest" if kind == "multiclass" else "Mean") in texts(app)
    page = texts(turn(app, "Compare"))
    assert f"{kind} 0" in page and f"{kind} 1" in page and "different outcomes" not in page
    app.selectbox(key=f"compare-{first.id}").set_value(kept.id)
    assert "different outcomes" in texts(check(app.run()))


def test_of_several_classes_the_table_of_steps_names_the_one_that_led_then(
    shared_services: Services, owner: str
) -> None:
    stored = shared_services.add_cohort(owner, outcome_cohort("multiclass"))
    patient = changing_their_mind(memory_of(shared_services, owner, stored))
    loaded = loading.load(owner, keep(shared_services, owner, stored, patient).id)
    shown = replay.steps_table(loaded)["stay, likeliest"].tolist()
    assert shown == [posterior_words.short(loaded.schema.outcome, step.posterior) for step in loaded.trace.steps]
    assert shown[1].startswith("medium ") and shown[2].startswith("long ")


# -- comparing ------------------------------------------------------------------------------------------------------


def test_two_traces_stand_side_by_side(owner: str, kept: StepThrough, another: StepThrough) -> None:
    app = turn(open_trace(kept), "Compare")
    page = texts(app)
    assert "Bed 4" in page and "Night 7" in page
    assert "after 2 tests, cost **17**" in page and "after 2 tests, cost **92**" in page
    chart = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert [trace["name"] for trace in chart["data"]] == ["Bed 4", "Night 7"]
    mine = [step.posterior["yes"] for step in loading.load(owner, kept.id).counting]
    assert chart["data"][0]["y"] == pytest.approx(mine) and chart["data"][0]["x"] == [0, 1, 2, 2, 2]
    app.get("segmented_control")[0].set_value("cost")
    chart = json.loads(check(app.run()).get("plotly_chart")[0].proto.spec)
    assert chart["data"][1]["x"] == [0, 80, 92]


def test_one_alone_has_nothing_to_be_compared_with(owner: str, kept: StepThrough) -> None:
    assert "no other step-through yet" in texts(turn(open_trace(kept), "Compare"))


# -- verifying, renaming, going on ----------------------------------------------------------------------------------


def test_verifying_says_what_was_verified(owner: str, kept: StepThrough) -> None:
    page = texts(press(turn(open_trace(kept), "Verify"), "verify"))
    assert "All checks passed" in page
    for sentence in (
        "All 7 stored events",
        "read from the store again",
        "read from its files again",
        "7 of 7",
        "3 of 3",
    ):
        assert sentence in page


def test_without_its_model_a_trace_speaks_from_the_record(
    owner: str, kept: StepThrough, shared_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    believed = loading.load(owner, kept.id).record.believed[-1]["yes"]
    monkeypatch.setattr(shared_services, "model_of", lambda owner, fingerprint: None)
    app = open_trace(kept)
    page = texts(app)
    assert "not installed any more" in page and "What was recorded at the time is shown" in page
    assert f"died: {believed:.0%}" in page and "model not installed" in page


def test_without_its_cohort_a_trace_still_shows_what_was_known(
    shared_services: Services, owner: str, ward: StoredCohort, kept: StepThrough
) -> None:
    before = known_then(open_trace(kept))
    shared_services.store.cohorts.delete(owner, ward.id)
    assert known_then(open_trace(kept)) == before != []


def known_then(app: AppTest) -> list[str]:
    """The lines below 'Known then', each with a name and its value."""
    lines = [line.value for line in app.markdown]
    first = next((number for number, line in enumerate(lines) if "Known then" in line), len(lines))
    return list(takewhile(lambda line: line.startswith(":small[") and "] **" in line, lines[first + 1 :]))


def test_verifying_against_a_file_finds_another_record(owner: str, kept: StepThrough, another: StepThrough) -> None:
    app = turn(open_trace(kept), "Verify")
    own, other = (exchange.to_json(loading.load(owner, s.id)).encode() for s in (kept, another))
    uploader = app.get("file_uploader")[-1]
    app = check(uploader.upload("trace.json", own, "application/json").run())
    assert "begins with exactly the 7 events" in texts(app)
    app = check(app.get("file_uploader")[-1].set_value(("trace.json", other, "application/json")).run())
    assert "exported from another step-through" in texts(app)


def test_a_refused_file_is_told_of_beside_the_file(owner: str, kept: StepThrough) -> None:
    app = press(turn(open_trace(kept), "Verify"), "verify")
    app = check(app.get("file_uploader")[-1].upload("trace.json", b"{}", "application/json").run())
    beside = {column.subheader[0].value: column for column in app.columns if column.subheader}
    assert not beside["This record"].error and "All checks passed." in texts(beside["This record"])
    assert len(beside["Against an exported file"].error) == 1


def test_a_label_can_be_changed(owner: str, kept: StepThrough, shared_services: Services) -> None:
    app = open_trace(kept)
    app.text_input(key=f"trace-title-{kept.id}-{kept.version}").set_value("Bed 9")
    app = press(app, "trace-rename-save")
    assert shared_services.store.step_throughs.get(owner, kept.id).title == "Bed 9" and "Bed 9" in texts(app)
    assert shared_services.store.step_throughs.verify(owner, kept.id).intact


def test_a_trace_is_continued_on_the_step_through_page(owner: str, another: StepThrough, monkeypatch) -> None:
    went: list[str] = []
    monkeypatch.setattr(listing.st, "switch_page", went.append)  # works in a browser only; a journey goes there
    app = press(open_trace(another), "trace-continue")
    assert went == ["views/step_through.py"]
    app = check(app.switch_page(went[0]).run())
    assert "Record the panel" in texts(app) and "Night 7" in texts(app)
    assert step_answers.load(owner, another.id).patient.steps == 2


# -- taking in ------------------------------------------------------------------------------------------------------


def upload(app: AppTest, data: bytes, name: str = "trace.json") -> AppTest:
    return check(app.get("file_uploader")[0].upload(name, data, "application/json").run())


def test_a_trace_is_taken_in_by_another_browser_and_replays(
    shared_services: Services, owner: str, ward: StoredCohort, kept: StepThrough, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = loading.load(owner, kept.id)
    file = exchange.to_json(loaded).encode()
    browser = np.random.default_rng().bytes(16).hex()
    monkeypatch.setattr(state, "browser_of_cookie", lambda: browser)
    app = upload(open_app("traces"), file)
    assert "needs the cohort 'ward'" in texts(app) and titles(app) == []
    shared_services.store.cohorts.share(owner, ward.id)
    try:
        app = upload(open_app("traces"), file)
        assert "replays to the same posteriors" in texts(app) and "Step 6 of 6" in texts(app)
        (copy,) = shared_services.store.step_throughs.list(identity.browser_owner(browser))
        believed = loading.load(copy.owner, copy.id).trace
        assert [step.posterior for step in believed.steps] == [step.posterior for step in loaded.trace.steps]
    finally:
        shared_services.store.cohorts.share(owner, ward.id, shared=False)


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[1", b"a,b\n1,2"])
def test_a_file_that_is_no_trace_is_refused_and_the_page_goes_on(owner: str, kept: StepThrough, data: bytes) -> None:
    app = upload(open_app("traces"), data, "notes.json")
    assert any("notes" in error.value for error in app.error) and titles(app) == ["Bed 4"]


# -- names ----------------------------------------------------------------------------------------------------------


def test_hostile_names_are_shown_as_they_are_written(owner: str, shared_services: Services) -> None:
    hostile = "![x](http://example.invalid/p.png) $\\frac{1}{2}$ <b>:red[bold]</b>"
    frame = small_frame().rename(columns={"lactate": hostile, "died": f"died {hostile}"})
    cohort = Cohort.from_frame(frame, outcome=f"died {hostile}", name=f"ward {hostile}")
    stored = shared_services.add_cohort(owner, replace(cohort))
    patient = memory_of(shared_services, owner, stored).start({}).observe(hostile, 3.0, reason=hostile)
    patients = [patient, patient.declined("scan", reason=hostile)]
    first, _ = (keep(shared_services, owner, stored, patient, title=hostile) for patient in patients)
    pages = [open_app("traces"), open_trace(first)]
    pages += [turn(open_trace(first), "Compare"), press(turn(open_trace(first), "Verify"), "verify")]
    for app in pages:
        shown = [*app.markdown, *app.caption, *app.get("subheader"), *app.get("success"), *app.get("warning")]
        for text in [*(element.value for element in shown), *(button.label for button in app.button)]:
            assert "![x](http" not in text and "<b>" not in text.replace("\\<b", "")
        for table in app.get("table"):
            assert "![x](http" not in str(table.value.to_dict())


def test_a_file_that_is_no_trace_is_told_of_where_it_was_chosen(owner: str, shared_services: Services) -> None:
    app = open_app("traces")
    app = check(app.file_uploader(key="traces-import-0").upload("notes.json", b"{}").run())
    (imports,) = [block for block in app.get("popover") if block.get("file_uploader")]
    (refusal,) = imports.get("error")
    assert "notes.json" in refusal.value and len(app.error) == 1
