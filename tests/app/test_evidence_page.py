"""The evidence page: gathered in the background, told in sentences, found again at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import l2m_core as l2m
from app.host.services import Services
from app.jobs.evidence_job import KIND, KeptFolds, kept_under
from app.jobs.runner import Runner
from app.store import Job, StoredCohort
from app.ui.evidence import gathering, standalone
from l2m_core.cohort import Cohort
from l2m_core.evidence import EvidenceSettings, ask_fold, gather, make_plan
from l2m_core.evidence.figures import PatientGroup
from l2m_core.schema import Feature
from tests.app.conftest import PATIENCE, check, open_app, press, small_cohort, small_frame, texts
from tests.app.elements import Elements
from tests.jobs.conftest import cohort_of, end_jobs

QUICK = EvidenceSettings(folds=2, budget=2, most_rows=12, draws=100)


@pytest.fixture(autouse=True)
def no_worker_is_left(shared_services: Services) -> Iterator[None]:
    yield
    end_jobs(shared_services)


@pytest.fixture(scope="module")
def gathered(shared_services: Services):
    """What the core finds, once for all tests that only show it."""
    return gather(shared_services.model("nobody"), small_cohort(), QUICK)


def keep(services: Services, owner: str, ward: StoredCohort, found, settings: EvidenceSettings = QUICK) -> None:
    model = services.model(owner).fingerprint
    services.store.evidence.put(owner, ward.content_hash, model, asdict(settings), found.to_data())


def only_job(services: Services, owner: str) -> Job:
    (job,) = services.store.jobs.list(owner, KIND)
    return job


def until_ended(app: AppTest, services: Services, owner: str) -> AppTest:
    """What the page does by itself every two seconds."""
    deadline = time.monotonic() + PATIENCE
    while only_job(services, owner).active:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return check(app.run())


def add_job(services: Services, owner: str, ward: StoredCohort) -> str:
    """A job that a worker has taken: this process, which does nothing with it."""
    config = {"cohort": ward.id, "model": "general", "settings": asdict(QUICK)}
    job = services.store.jobs.add(owner, KIND, config)
    claimed = services.store.jobs.claim(job.id)
    assert claimed is not None and claimed.claim is not None
    return claimed.claim


def test_without_a_cohort_the_way_to_one_is_shown(shared_services: Services, owner: str) -> None:
    assert "needs a cohort" in texts(open_app("evidence"))


def test_evidence_is_gathered_by_a_press_and_shown_at_once_ever_after(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    app = open_app("evidence", cohort=ward.id)
    assert "Can I trust it on my cohort?" in texts(app)
    for key, value in (("folds", 2), ("budget", 2), ("rows", 12)):
        app.number_input(key=f"evidence-{key}").set_value(value)
    with pytest.MonkeyPatch.context() as patch:
        # It waits in the queue until the page was looked at, however quick a worker would be.
        none_at_once = replace(shared_services.settings, jobs_at_once=0)
        patch.setattr(shared_services, "runner", Runner(shared_services.store, none_at_once))
        app = press(app, "evidence-start")
        assert app.button(key="evidence-stop") is not None
    shared_services.runner.pump()
    app = until_ended(app, shared_services, owner)
    assert only_job(shared_services, owner).state == "done", only_job(shared_services, owner).message
    page = texts(app)
    assert "On this cohort the model's order" in page and "12 of 80 rows were asked" in page
    assert len(app.get("plotly_chart")) == 8
    assert {metric.label for metric in app.metric} >= {
        "Rows predicted",
        "Log loss after up to 2 tests",
        "AUROC after up to 2 tests",
    }
    again = open_app("evidence", cohort=ward.id)
    assert texts(again) == page and again.button(key="evidence-start").label == "Gather again"
    assert "Traceback" not in page


def test_it_can_be_stopped_and_goes_on(shared_services: Services, owner: str) -> None:
    # So much work that it is still at it when the press arrives, however slow this process is.
    cohort = shared_services.add_cohort(owner, cohort_of(400, 12))
    app = press(open_app("evidence", cohort=cohort.id), "evidence-start")
    app = press(app, "evidence-stop")
    app = until_ended(app, shared_services, owner)
    assert only_job(shared_services, owner).state == "cancelled"
    app = press(app, "evidence-resume")
    assert only_job(shared_services, owner).active
    until_ended(press(app, "evidence-stop"), shared_services, owner)


def test_two_presses_start_one_job(shared_services: Services, owner: str, ward: StoredCohort) -> None:
    add_job(shared_services, owner, ward)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathering.notices.state, "owner", lambda: owner)
        gathering.start_gathering(ward.id, "general")
    assert len(shared_services.store.jobs.list(owner, KIND)) == 1


def test_progress_is_told_in_words(shared_services: Services, owner: str, ward: StoredCohort) -> None:
    claim = add_job(shared_services, owner, ward)
    job = only_job(shared_services, owner)
    shared_services.store.jobs.heartbeat(job.id, claim, 0.4, "Asking fold 2 of 5: 60 patients.")
    app = open_app("evidence", cohort=ward.id)
    shown = [str(element.text).replace("\\", "").replace("\u2060", "") for element in app.get("progress")]
    assert any("Asking fold 2 of 5" in text and "left" in text for text in shown)
    shared_services.store.jobs.finish(job.id, claim, "cancelled")


@pytest.mark.parametrize(("state", "words"), [("failed", "could not be gathered"), ("cancelled", "Stopped")])
def test_how_it_ended_is_a_sentence_with_a_way_on(
    shared_services: Services, owner: str, ward: StoredCohort, state, words: str
) -> None:
    claim = add_job(shared_services, owner, ward)
    shared_services.store.jobs.finish(
        only_job(shared_services, owner).id, claim, state, "Stopped, or its words: ![x](y)."
    )
    app = open_app("evidence", cohort=ward.id)
    assert words in texts(app) and "![x](y)" in texts(app)
    assert app.button(key="evidence-resume") is not None


def test_a_cohort_that_cannot_tell_is_refused_beside_the_button(shared_services: Services, owner: str) -> None:
    frame = small_frame()
    frame["died"] = ["yes"] * 2 + ["no"] * 78
    rare = shared_services.add_cohort(owner, Cohort.from_frame(frame, outcome="died", name="rare"))
    app = press(open_app("evidence", cohort=rare.id), "evidence-start")
    assert "have the outcome 'yes'" in texts(app)
    assert not shared_services.store.jobs.list(owner, KIND)


def test_the_newest_evidence_is_shown_and_earlier_ones_can_be_chosen(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    keep(shared_services, owner, ward, gathered, replace(QUICK, seed=1))
    keep(shared_services, owner, ward, replace(gathered, asked=11), QUICK)
    app = open_app("evidence", cohort=ward.id)
    assert app.metric[0].value == "11"
    app.selectbox(key="evidence-shown").set_value(1)
    assert check(app.run()).metric[0].value == "12"


def test_evidence_is_chosen_by_the_words_that_its_settings_have(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    keep(shared_services, owner, ward, gathered, QUICK)
    keep(shared_services, owner, ward, gathered, replace(QUICK, conventional=False))
    names = open_app("evidence", cohort=ward.id).selectbox(key="evidence-shown").options
    assert all("rows, by expected gain, seed 0" in name for name in names)
    assert [name.endswith(", without conventional models") for name in names] == [True, False]


def test_evidence_of_another_version_of_the_program_is_gathered_anew(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    model = shared_services.model(owner).fingerprint
    shared_services.store.evidence.put(owner, ward.content_hash, model, {"folds": 2}, {"format": 0})
    app = open_app("evidence", cohort=ward.id)
    assert app.button(key="evidence-start").label == "Gather evidence"


def test_a_fold_that_an_earlier_version_kept_is_asked_again(tmp_path: Path) -> None:
    """Its fixed order may be that of the columns."""
    cohort, keep = cohort_of(), KeptFolds(tmp_path, [])
    answers = ask_fold(l2m.load(), cohort, make_plan(cohort, QUICK), QUICK, 0)
    keep.write(0, answers)
    assert keep.read(0) is not None
    earlier = {name: array for name, array in answers.arrays().items() if name != "unjudged"}
    (kept,) = tmp_path.glob("*.npz")
    np.savez(kept, **earlier)  # type: ignore[arg-type]
    assert keep.read(0) is None


def test_what_could_not_be_judged_is_said_beside_the_fixed_orders(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    test = gathered.actions[0]
    keep(shared_services, owner, ward, replace(gathered, unjudged=((test,), ()), unfounded=0.5))
    app = open_app("evidence", cohort=ward.id)
    assert f"Too few rows to find a fixed order to compare with: 1 of {len(gathered.actions)} tests" in texts(app)
    table = next(frame.value for frame in app.dataframe if "could not be judged" in frame.value)
    assert table["could not be judged"].tolist() == [test, "none"]


def by_record(rows_of_a_patient: int) -> Cohort:
    """The same content, whoever the rows are of."""
    records = [f"record {row // rows_of_a_patient}" for row in range(80)]
    features = (*small_cohort().schema.features, Feature("record", role="ignored"))
    schema = replace(small_cohort().schema, features=features)
    return Cohort.from_frame(small_frame().assign(record=records), schema=schema, name="rows of patients")


def test_evidence_by_patients_is_of_the_table_that_tells_them_apart(
    shared_services: Services, owner: str, gathered
) -> None:
    pairs, fours = (shared_services.add_cohort(owner, by_record(count)) for count in (2, 4))
    assert pairs.content_hash == fours.content_hash
    model = shared_services.model(owner).fingerprint
    about = kept_under(by_record(2), replace(QUICK, patients="record"))
    shared_services.store.evidence.put(owner, pairs.content_hash, model, about, gathered.to_data())
    shown = [open_app("evidence", cohort=stored.id).button(key="evidence-start").label for stored in (pairs, fours)]
    assert shown == ["Gather again", "Gather evidence"]


def test_calibration_can_be_seen_before_and_after(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    keep(shared_services, owner, ward, gathered)
    app = open_app("evidence", cohort=ward.id)
    after = texts(app)
    picker = next(group for group in app.get("button_group") if str(group.key).startswith("evidence-moment"))
    picker.set_value(0)
    assert texts(check(app.run())) != after


def test_a_grade_comes_first_and_who_predicts_best_is_said(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    keep(shared_services, owner, ward, gathered)
    page = texts(open_app("evidence", cohort=ward.id))
    assert "For this cohort: not to be relied on. Only " in page and "Head to head, knowing the same" in page


def test_an_interval_stands_with_its_figure_and_an_order_with_whose_it_is(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    keep(shared_services, owner, ward, gathered)
    app = open_app("evidence", cohort=ward.id)
    auroc = next(metric for metric in app.metric if metric.label.startswith("AUROC"))
    assert auroc.delta.endswith("before any") and " to " in auroc.delta.split(";")[0]
    assert "in the model's order, which is the council's where one is heard" in texts(app)


def test_what_acting_from_a_threshold_on_brings_follows_the_threshold(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    keep(shared_services, owner, ward, gathered)
    app = open_app("evidence", cohort=ward.id)
    field = next(field for field in app.number_input if str(field.key).startswith("evidence-threshold"))
    assert field.min == 1 and field.max == 99
    field.set_value(25)
    assert "Whoever acts from 25% on for 'yes'" in texts(check(app.run()))


def test_recalibration_can_be_looked_at(shared_services: Services, owner: str, ward: StoredCohort, gathered) -> None:
    keep(shared_services, owner, ward, gathered)
    app = open_app("evidence", cohort=ward.id)
    picker = next(group for group in app.get("button_group") if str(group.key).startswith("evidence-moment"))
    picker.set_value(-1)
    assert "Each fold by what happened in the others; from all: log odds ×" in texts(check(app.run()))


def test_how_long_it_will_take_is_said_before_it_is_started(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    app = open_app("evidence", cohort=ward.id)
    deadline = time.monotonic() + PATIENCE
    while "by a quick trial on this machine" not in texts(app):
        assert time.monotonic() < deadline
        time.sleep(0.5)
        app = check(app.run())


def test_the_page_that_stands_alone_fetches_nothing_and_holds_the_figures(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    keep(shared_services, owner, ward, gathered)
    (kept,) = shared_services.store.evidence.list(owner, ward.content_hash)
    named = replace(ward, name="<b>ward</b> & others")
    page = standalone.to_html(named, kept, gathered)
    found = Elements(page)
    assert found.addresses == [] and found.handlers == [] and not found.tags & {"script", "img", "link", "b"}
    words = " ".join(found.words)
    assert "<b>ward</b> & others" in words and "research use only" in words.lower()
    for sentence in gathered.summary():
        assert sentence.text in words
    for voice in gathered.voices:
        assert voice.label("binary") in words and f"{voice.overall.value:.3f}" in words
    for told in (
        "Tests, at most 2",
        "Rows to predict, at most 12",
        "ranked tests by expected gain",
        "conventional models yes",
    ):
        assert told in words
    assert "each row is a different patient" in words
    assert page.count("<svg xmlns=") == 5 and "default-src 'none'" in page


def test_groups_stand_alone_in_the_words_of_the_sentences(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    keep(shared_services, owner, ward, gathered)
    (kept,) = shared_services.store.evidence.list(owner, ward.content_hash)
    groups = (PatientGroup("sex", "f", 60, 3456.2, 3111.7, 3001.0, 3222.0),)
    weights = replace(gathered, kind="continuous", unit="g", decisions_at=(), recalibrated=None, groups=groups)
    words = " ".join(Elements(standalone.to_html(ward, kept, with_crps(weights))).words)
    assert "3,456 g" in words and "3,112 g (3,001 g to 3,222 g)" in words and "e+03" not in words
    assert "Held against what was observed: the predicted mean of died after up to 2 tests." in words


def with_crps(found):
    scores = {"crps": found.curve.loss}
    curves = tuple(replace(curve, scores=scores) for curve in found.curves)
    return replace(found, curves=curves, voices=tuple(replace(voice, scores=scores) for voice in found.voices))


def test_what_tells_classes_apart_is_said_of_several_as_of_two(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    keep(shared_services, owner, ward, replace(gathered, kind="multiclass"))
    page = texts(open_app("evidence", cohort=ward.id))
    assert "told apart from all others of the same fold, averaged over the classes" in page
    assert "patients with and without the outcome" not in page


def test_that_earlier_evidence_compares_patients_of_all_folds_is_not_hidden(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    keep(shared_services, owner, ward, gathered)
    assert "patients of the same fold with and without the outcome are told apart" in texts(
        open_app("evidence", cohort=ward.id)
    )
    keep(shared_services, owner, ward, replace(gathered, areas_pooled=True))
    assert "patients with and without the outcome are told apart" in texts(open_app("evidence", cohort=ward.id))


def test_that_groups_of_few_rows_are_left_out_is_said(
    shared_services: Services, owner: str, ward: StoredCohort, gathered
) -> None:
    found = replace(gathered, groups=(PatientGroup("sex", "f", 60, 0.6, 0.5, 0.4, 0.7),))
    keep(shared_services, owner, ward, found)
    (kept,) = shared_services.store.evidence.list(owner, ward.content_hash)
    said = "Groups of fewer than 20 of the rows asked are left out."
    assert said in texts(open_app("evidence", cohort=ward.id))
    assert said in " ".join(Elements(standalone.to_html(ward, kept, found)).words)
