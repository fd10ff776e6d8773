"""Patients: immutable step-throughs whose every action is an event."""

from __future__ import annotations

import copy
import csv
import io
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m
from l2m_core.cohort import UnseenLevelWarning
from l2m_core.errors import FeatureError, InputError
from l2m_core.step_through.events import Event
from l2m_core.step_through.patient import Patient
from tests.core.conftest import make_frame


@pytest.fixture
def patient(memory):
    return memory.start({"age": 71, "sex": "F"})


def test_the_posterior_is_asked_by_a_class_or_by_its_number(patient):
    now = patient.posterior
    assert now.classes == patient.memory.classes
    assert now[now.classes[1]] == now[1] and now.to_dict() == dict(zip(now.classes, now.tolist(), strict=True))
    assert all(name in repr(now) for name in now.classes)
    with pytest.raises(InputError, match="no class 'cured'"):
        now["cured"]


def test_the_posterior_is_an_array_as_before(patient):
    now = patient.posterior
    plain = np.asarray(now)
    assert isinstance(now, np.ndarray) and type(now[1]) is type(plain[1]) is type(now.sum())
    assert type(now - plain) is np.ndarray and type(np.log(now)) is np.ndarray
    assert now.argmax() == plain.argmax() and f"{now[1]:.3f}" == f"{plain[1]:.3f}"
    kept = pickle.loads(pickle.dumps(now))
    assert kept.classes == now.classes and np.array_equal(kept, plain) and now.copy().classes == now.classes


def test_what_python_prints_can_be_read_at_a_glance(patient):
    first, second = patient.memory.classes
    now = patient.posterior
    assert str(now) == f"{first}: {now[0]:.3g}, {second}: {now[1]:.3g}" and str(now[::-1]) == str(np.asarray(now)[::-1])
    after = patient.observe("lactate", 3.1)
    assert repr(after).startswith(
        f"Patient(3 of {len(after.memory.cohort.names)} features known, 1 measured, on Cohort("
    )
    assert "3.1" not in repr(after), "a value could find its way into a log"
    assert repr(after.trace).startswith("Trace(2 events, outcome ") and repr(patient.outlook("lactate")).endswith(
        " nats)"
    )


@pytest.mark.parametrize(
    "rearranged",
    [
        lambda now: now[::-1],
        lambda now: now[np.argsort(-now)],
        lambda now: np.roll(now, 1),
        lambda now: np.take(now, np.argsort(-now)),
        lambda now: np.sort(now),
        lambda now: np.partition(now, 1),
        lambda now: now[:1],
    ],
)
def test_probabilities_in_another_order_are_not_asked_by_a_class(patient, rearranged):
    now = patient.posterior
    other = rearranged(now)
    assert np.isin(other, now).all()
    with pytest.raises(InputError, match="no class"):
        other[now.classes[0]]
    assert now[now.classes[0]] == np.asarray(now)[0], "the one that was asked keeps its names"


def test_a_copy_of_the_posterior_keeps_the_names_of_its_classes(patient):
    now = patient.posterior
    for kept in (now.copy(), copy.copy(now), copy.deepcopy(now)):
        assert kept is not now and kept.to_dict() == now.to_dict()


def test_every_action_returns_a_new_patient_and_leaves_the_old_one(patient):
    later = patient.observe("lactate", 4.2)
    assert "lactate" not in patient.known
    assert later.known == {"age": 71, "sex": "F", "lactate": 4.2}
    assert not np.allclose(later.posterior, patient.posterior)


def test_a_value_is_encoded_once_and_stands_in_x_as_a_row_of_the_cohort_does(patient, memory):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UnseenLevelWarning)
        later = patient.observe("ct", "two shadows").observe("lactate", "4.2").correct("age", 70)
        assert later.posterior.sum() == pytest.approx(1)
    assert len(said) == 1, "once when it is entered, and never again"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLevelWarning)
        for one in (patient, later, later.undo(), later.correct("lactate", None), later.unavailable("ct")):
            np.testing.assert_array_equal(one.x, memory.cohort.encode(one.known))
            np.testing.assert_array_equal(one.x, Patient.replay(memory, one.events).x)


def test_undo_brings_back_the_same_answer_and_keeps_the_record(patient):
    undone = patient.observe("lactate", 4.2).undo()
    np.testing.assert_array_equal(undone.posterior, patient.posterior)
    assert [event.kind for event in undone.events] == ["start", "observe", "undo"]


def test_undo_twice_takes_back_two_and_the_start_stays(patient):
    undone = patient.observe("lactate", 4.2).observe("sodium", 141).undo().undo()
    assert undone.known == patient.known
    with pytest.raises(InputError, match="nothing to undo"):
        undone.undo()


@pytest.mark.parametrize("action", ["unavailable", "declined", "pending"])
def test_what_cannot_be_had_is_never_suggested(patient, action):
    without = getattr(patient, action)(patient.suggestion)
    assert without.suggestion != patient.suggestion
    row = without.ranking.set_index("feature").loc[patient.suggestion]
    assert row.status == action
    assert row.score == -np.inf


def test_a_result_that_arrives_after_all_is_recorded(patient):
    arrived = patient.pending("lactate").observe("lactate", 2.0)
    assert arrived.state.statuses == {}
    assert arrived.known["lactate"] == 2.0


def test_when_nothing_is_left_there_is_no_suggestion(patient):
    done = patient.observe({"lactate": 2.0, "sodium": 140, "potassium": 4.0, "ct": "mass"})
    assert done.suggestion is None
    assert done.advice == "No test is left to ask for."


def test_a_panel_is_one_action_and_is_paid_once(patient):
    after = patient.observe({"sodium": 140, "potassium": 4.0})
    assert after.steps == 1
    assert after.spent == 5.0
    assert patient.observe("sodium", 140).spent == 5.0, "of a panel that came in part, as in a roll-out"


def test_tests_of_one_event_that_are_no_panel_are_each_paid(patient):
    together = patient.observe({"lactate": 2.0, "sodium": 140, "potassium": 4.0, "ct": "mass"})
    assert together.spent == 12.0 + 5.0 + 200.0
    assert together.steps == 1
    assert together.trace.steps[-1].spent == together.spent


def test_what_was_asked_of_a_patient_costs_what_a_roll_out_pays(memory):
    row = {"age": 71, "sex": "F", "lactate": 2.0, "sodium": 140, "ct": "mass"}
    asked = {name: row[name] for name in ("lactate", "sodium", "ct")}
    (paid,) = memory.acquire(row, budget=4).cost[:, -1]
    assert memory.start({"age": 71, "sex": "F"}).observe(asked).spent == paid


def test_correcting_adds_an_event_and_keeps_the_old_value_in_the_record(patient):
    corrected = patient.observe("lactate", 42.0).correct("lactate", 4.2, reason="typing error")
    assert corrected.known["lactate"] == 4.2
    assert [event.values.get("lactate") for event in corrected.events] == [None, 42.0, 4.2]
    assert corrected.steps == 1


def test_a_detection_limit_is_kept_beside_its_value(patient):
    after = patient.observe("lactate", 0.3, limits={"lactate": "below"})
    assert after.state.limits == {"lactate": "below"}
    assert patient.observe("lactate", 0.3, limit="below").state.limits == {"lactate": "below"}  # as of correct


@pytest.mark.parametrize(
    "without",
    [
        lambda p: p.unavailable("lactate"),
        lambda p: p.declined("lactate"),
        lambda p: p.pending("lactate"),
        lambda p: p.correct("lactate", None),
        lambda p: p.correct("lactate", None, limit="above"),
        lambda p: p.undo(),
    ],
)
def test_a_detection_limit_goes_with_its_value(patient, without):
    state = without(patient.observe("lactate", 0.3, limits={"lactate": "below"})).state
    assert "lactate" not in state.values and state.limits == {}


def test_a_value_that_is_not_known_at_the_start_has_no_detection_limit(memory):
    assert memory.start({"lactate": None}, limits={"lactate": "below"}).state.limits == {}


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda p: p.observe("lactat", 3.0), "lactat"),
        (lambda p: p.observe("lactate", "much"), "lactate"),
        (lambda p: p.observe("lactate", float("inf")), "lactate"),
        (lambda p: p.observe("lactate", None), "lactate"),
        (lambda p: p.observe("age", 70), "already known"),
        (lambda p: p.correct("lactate", 3.0), "no value to correct"),
        (lambda p: p.unavailable("liver"), "liver"),
        (lambda p: p.observe("lactate", 3.0, limits={"lactate": "under"}), "below"),
        (lambda p: p.observe("lactate", 3.0, limit="under"), "below"),
        (lambda p: p.observe({"lactate": 3.0}, limit="below"), "A limit is of one feature.*limits="),
    ],
)
def test_bad_input_is_refused_by_name_and_changes_nothing(patient, action, words):
    before = patient.events
    with pytest.raises(FeatureError, match=words):
        action(patient)
    assert patient.events == before


def test_a_preview_is_the_posterior_after_that_result(patient):
    table = patient.preview("ct")
    assert list(table.result) == ["clear", "mass", "shadow"]
    after = patient.observe("ct", "mass").posterior
    np.testing.assert_allclose(table.loc[1, ["p(no)", "p(yes)"]].to_numpy(float), after, atol=1e-6)


def test_a_preview_of_a_number_shows_recorded_values(patient, cohort):
    table = patient.preview("lactate")
    assert len(table) == 7 and table.chance.sum() == pytest.approx(1, abs=1e-5)
    column = cohort.x[:, cohort.names.index("lactate")]
    for text in table.value:
        assert np.isclose(column, float(text), rtol=1e-6).any()


def test_drivers_name_the_value_that_moves_the_answer_most(patient):
    later = patient.observe({"lactate": 9.0, "sodium": 140})
    moved = {}
    for name in later.known:
        without = later.memory.predict({other: value for other, value in later.known.items() if other != name})[0]
        moved[name] = 0.5 * np.abs(without - later.posterior).sum()
    table = later.drivers()
    assert list(table.feature) == sorted(moved, key=lambda name: moved[name], reverse=True)
    np.testing.assert_allclose(table.change, [moved[name] for name in table.feature], atol=1e-5)


def test_support_counts_recorded_rows_overall_and_near(patient, cohort):
    row = patient.ranking.set_index("feature").loc["lactate"]
    assert row.support == cohort.r[:, cohort.names.index("lactate")].sum()
    assert 0 < row.support_near <= row.support


def test_bands_hold_the_value_and_stability_sums_to_one(patient, memory):
    resampled = memory.resampled(3)
    band = patient.band(resampled)
    assert ((band.low <= band.value) & (band.value <= band.high)).all()
    assert patient.stability(resampled).sum() == pytest.approx(1.0)


def test_a_band_of_nothing_and_a_level_that_is_none_are_refused_in_words(patient, memory):
    with pytest.raises(InputError, match="no resampled cohorts"):
        patient.band([])
    with pytest.raises(InputError, match="level is 2; it must lie strictly between 0 and 1"):
        patient.band([memory], level=2)
    with pytest.raises(InputError, match="Levels must lie strictly between 0 and 1"):
        patient.expect("lactate", "a")


@pytest.mark.parametrize("level", [1, 0, True, None, np.float32(1.5)])
def test_one_level_that_is_none_is_refused_in_words_too(patient, level):
    with pytest.raises(InputError, match="Levels must lie strictly between 0 and 1"):
        patient.expect("lactate", level)


def test_one_level_may_be_a_number_of_any_kind(patient):
    assert patient.expect("lactate", np.float32(0.5)).tolist() == patient.expect("lactate", [0.5]).tolist()


def test_nothing_is_expected_of_a_result_that_is_known(patient):
    assert patient.foresees("lactate")
    later = patient.observe("lactate", 4.2)
    assert not later.foresees("lactate")
    with pytest.raises(InputError, match=r"'lactate' is known \(4.2\)"):
        later.expect("lactate")
    again = later.correct("lactate", None)
    assert again.expect("lactate").tolist() == patient.expect("lactate").tolist()


def test_a_value_beside_several_features_is_of_none(patient):
    with pytest.raises(FeatureError, match="The value 3 is of no feature"):
        patient.observe({"lactate": 4.2}, 3)


def test_bands_of_smaller_samples_are_as_wide_as_those_of_whole_cohorts(model):
    """An eighth of the rows scatters more, which the band allows for; by 1 / √rows it would be too narrow."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(480, 6)).astype(np.float32)
    y = np.where(x @ rng.normal(size=6) + rng.normal(size=480) > 0.5, "yes", "no")
    x[rng.random(x.shape) < 0.3] = np.nan
    memory = model.condition(l2m.Cohort.from_frame(pd.DataFrame(x, columns=list("abcdef")).assign(y=y), outcome="y"))
    whole, small = memory.resampled(6), memory.resampled(6, seed=1, rows=60)
    assert {len(sample.cohort) for sample in small} == {60}
    patients = [memory.start({"a": a, "b": b, "c": c}) for a in (-1, 0, 1) for b in (-1, 1) for c in (-1, 1)]
    bands, of_small = ([patient.band(samples) for patient in patients] for samples in (whole, small))
    width, width_of_small = (np.mean([band.high - band.low for band in some]) for some in (bands, of_small))
    assert 0.75 * width < width_of_small < 1.3 * width
    for band in of_small:
        assert ((0 <= band.low) & (band.low <= band.value) & (band.value <= band.high) & (band.high <= 1)).all()


def test_stopping_rules_give_their_reason(memory):
    by_count = memory.start({}, stopping=l2m.Stopping(budget=1)).observe("lactate", 3.0)
    assert "budget of 1" in by_count.advice
    by_cost = memory.start({}, stopping=l2m.Stopping(cost_budget=10)).observe("lactate", 3.0)
    assert "12 spent" in by_cost.advice
    by_gain = memory.start({}, stopping=l2m.Stopping(least_gain=5.0))
    assert "less than the threshold" in by_gain.advice
    by_confidence = memory.start({}, stopping=l2m.Stopping(confidence=0.5))
    assert "likeliest outcome" in by_confidence.advice
    assert memory.start({}).advice is None


def test_gains_are_those_that_the_policy_goes_by(memory):
    patient = memory.start({}, policy="monte carlo")
    tests = patient.tests
    assert [test.gain for test in tests] == [test.score for test in tests]
    assert patient.best_gain == tests[0].score != memory.start({}).best_gain


def test_gain_per_cost_prefers_the_cheaper_of_equals(memory):
    patient = memory.start({}, policy="gain per cost")
    table = patient.ranking
    np.testing.assert_allclose(table.score, table.gain / table.cost, rtol=1e-5)


def test_a_stopped_step_through_can_be_reopened(patient):
    stopped = patient.stop("enough")
    assert stopped.state.stopped
    assert not stopped.reopen().state.stopped


def test_a_trace_replays_to_the_same_posteriors_through_json(patient, memory):
    patient = patient.observe("lactate", 4.2).unavailable("ct", reason="broken").undo().correct("lactate", 2.4)
    trace = l2m.Trace.from_json(patient.trace.to_json())
    again = trace.replay(memory)
    np.testing.assert_array_equal(again.posterior, patient.posterior)
    assert again.events == patient.events
    assert list(again.ranking.feature) == list(patient.ranking.feature)


def test_a_trace_is_replayed_once_however_many_steps_it_has(patient, memory):
    trace = patient.observe("lactate", 4.2).unavailable("ct").observe("sodium", 141).trace
    replayed = []

    class Watched:
        release, cohort, device = memory.release, memory.cohort, memory.device

        def under(self, recipe):
            assert recipe is None  # the trace names no council
            return self

        def replay(self, events):
            replayed.append(len(events))
            return memory.replay(events)

    assert trace.differences(Watched()) == (0.0,) * 4 and replayed == [4]
    assert trace.replay(Watched()).known == patient.known | {"lactate": 4.2, "sodium": 141} and replayed == [4, 4]


def test_a_trace_of_another_cohort_is_refused(patient, model, cohort):
    other = model.condition(cohort.rows(np.arange(len(cohort) - 1)))
    with pytest.raises(InputError, match="another cohort"):
        patient.trace.replay(other)


def test_a_tampered_posterior_is_found(patient, memory):
    plain = json.loads(patient.trace.to_json())
    plain["steps"][0]["posterior"]["yes"] += 0.01
    with pytest.raises(InputError, match="Step 0"):
        l2m.Trace.from_json(json.dumps(plain)).replay(memory)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "learning-to-measure trace", "format": 9}'])
def test_a_file_that_is_no_trace_is_refused_in_words(text):
    with pytest.raises(InputError):
        l2m.Trace.from_json(text)


def test_a_trace_cut_in_half_is_refused(patient):
    plain = json.loads(patient.trace.to_json())
    del plain["steps"][0]["event"]["kind"]
    with pytest.raises(InputError, match="kind"):
        l2m.Trace.from_json(json.dumps(plain))


@pytest.mark.parametrize(
    "change",
    [
        {"at": "yesterday"},
        {"values": {"age": [71]}},
        {"values": [1]},
        {"reason": 3},
        {"features": "ct"},
        {"limits": [1]},
        {"suggested": 4},
        {"kind": "cure"},
        {"id": None},
        {"unheard": 1},
    ],
)
def test_an_event_changed_by_hand_is_refused_in_words(patient, change):
    plain = json.loads(patient.trace.to_json())
    plain["steps"][-1]["event"].update(change)
    with pytest.raises(InputError, match="changed by hand"):
        l2m.Trace.from_json(json.dumps(plain))


@pytest.mark.parametrize("text", ["[" * 100_000, "\x00", "{'a': 1}"])
def test_text_that_is_no_json_is_refused_in_words(text):
    with pytest.raises(InputError, match="not valid JSON"):
        l2m.Trace.from_json(text)


def test_a_whole_number_without_end_is_refused_in_words():
    with pytest.raises(InputError, match="every number must be finite"):
        l2m.Trace.from_json('{"kind": 1' + "0" * 5000 + "}")


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 10**400])
def test_a_posterior_that_is_no_number_never_replays(patient, memory, wrong):
    plain = json.loads(patient.trace.to_json())
    plain["steps"][-1]["posterior"][memory.classes[-1]] = wrong
    with pytest.raises(InputError):
        l2m.Trace.from_json(json.dumps(plain)).replay(memory)


def test_regret_is_the_gain_of_the_suggested_test_minus_that_of_the_chosen_one(memory):
    patient = memory.start({"age": 71})
    first, second = patient.trace.steps[0].gains, patient.suggestion
    other = next(name for name in first if name != second)
    value = memory.cohort.decode(other, float(np.nanmedian(memory.cohort.x[:, memory.cohort.names.index(other)])))
    followed = patient.observe(
        second, memory.cohort.decode(second, float(np.nanmedian(memory.cohort.x[:, memory.cohort.names.index(second)])))
    )
    assert followed.trace.regrets == (None, 0.0)
    overridden = patient.observe(other, value).unavailable(second).undo()
    assert overridden.trace.regrets == (None, pytest.approx(first[second] - first[other]), None, None)
    rows = list(csv.DictReader(io.StringIO(overridden.trace.to_csv())))
    assert float(rows[1]["regret"]) == overridden.trace.regrets[1] and rows[2]["regret"] == ""
    assert [row["undone_by"] for row in rows] == ["", "", "3", ""]


def test_csv_cells_never_run_as_formulas(memory):
    patient = memory.start({"age": 71}).observe("lactate", 3.0, reason='=HYPERLINK("http://x")')
    text = patient.trace.to_csv()
    assert "'=HYPERLINK" in text
    assert len(text.splitlines()) == 3


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_a_line_end_in_a_text_begins_no_row(memory, end):
    text = memory.start({}).observe("lactate", 3.0, reason=f"x{end}=1+1").trace.to_csv()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == 3 and f"x{end}'=1+1" in rows[2]


def test_a_continuous_outcome_steps_through_as_well(continuous_memory):
    patient = continuous_memory.start({"x1": 0.0}).observe("x0", 1.5)
    assert patient.posterior.mean.shape == (1,)
    assert patient.trace.replay(continuous_memory).known == patient.known
    assert patient.drivers().feature[0] == "x0"
    assert {"mean", "std"} <= set(patient.preview("x2").columns)


def test_replaying_events_checks_their_values(memory):
    with pytest.raises(FeatureError, match="lactat"):
        Patient.replay(memory, [l2m.Event("start"), l2m.Event("observe", {"lactat": 2})])
    with pytest.raises(InputError, match="start"):
        Patient.replay(memory, [l2m.Event("observe", {"lactate": 2})])


@pytest.fixture(scope="module")
def marked(model):
    """A model that has read a file with decimal commas and with -999 where nothing was recorded."""
    frame = make_frame().fillna({"lactate": -999.0, "ct": "-999"})
    content = frame.to_csv(index=False, sep=";", decimal=",").encode()
    options = {"baseline": ["age", "sex"], "missing": ["-999"], "censored": "limit"}
    return model.condition(l2m.Cohort.from_csv(content, "died", **options))


@pytest.mark.parametrize("value", [-999, -999.0, "-999", "-999,0"])
def test_a_marker_for_not_recorded_is_no_result(marked, value):
    patient = marked.start({"age": 71, "lactate": value})
    assert patient.known == {"age": 71}
    with pytest.raises(
        FeatureError, match="'lactate' = .*999.* stands for \"not measured\".*say that it is unavailable"
    ):
        patient.observe({"sodium": 140, "lactate": value})
    with pytest.raises(FeatureError, match="'lactate' = .*999.* or None to take it back"):
        patient.observe("lactate", 2.0).correct("lactate", value)
    with pytest.raises(FeatureError, match="'lactate' = .*999.* cannot have been recorded"):
        Patient.replay(marked, [*patient.events, Event("observe", {"lactate": value})])


def test_a_written_number_is_kept_as_the_number_that_it_was_read_as(marked):
    patient = marked.start({"age": "1.071"}).observe("lactate", "2,500").correct("lactate", "1,500")
    assert patient.known == {"age": 1071.0, "lactate": 1.5}
    plain = marked.model.condition(l2m.Cohort.from_frame(marked.cohort.frame(), schema=marked.cohort.schema))
    again = patient.trace.replay(plain)  # read from a store, a cohort has no texts to tell its rules by
    np.testing.assert_allclose(again.posterior, patient.posterior, atol=1e-6)
    with pytest.raises(FeatureError, match="'lactate' = '<0,5' is a detection limit"):
        marked.start({"lactate": "<0,5"})


def test_new_patients_are_read_by_the_cohort_s_rules_however_they_are_given(marked):
    unknown, known = marked.predict({"age": 71, "lactate": 2.5}), marked.predict({"age": 71.0})
    for ask in (marked.predict, marked.rank, lambda rows: marked.acquire(rows, budget=1).predictions[0]):
        texts, numbers = ask({"age": "71", "lactate": "2,500"}), ask({"age": 71, "lactate": 2.5})
        np.testing.assert_array_equal(np.asarray(texts), np.asarray(numbers))
        np.testing.assert_array_equal(np.asarray(ask({"age": 71, "lactate": -999})), np.asarray(ask({"age": 71})))
    array = np.full((1, len(marked.cohort.names)), np.nan)
    array[0, [marked.cohort.names.index(name) for name in ("age", "lactate")]] = 71, -999
    np.testing.assert_array_equal(marked.predict(array), known)
    assert not np.allclose(unknown, known)


def test_a_patient_is_answered_once_somebody_asked_of_the_same_values(memory):
    first, again = (memory.start({"age": 23, "sex": "M"}) for _ in range(2))
    assert not again.is_cached
    assert first.suggestion is not None
    assert again.is_cached and again.unavailable("lactate").is_cached
