"""What leaves as a file and comes back: complete, escaped, verified, refused in words."""

import csv
import io
import json
import sqlite3
from dataclasses import replace

import pytest

from app.catalogue import DEFAULT_MODEL
from app.host.services import Services
from app.store import NotFound, StoredCohort
from app.ui.traces import checks, exchange, exports, loading
from l2m_core.errors import InputError
from l2m_core.schema import Feature, Outcome, Schema
from l2m_core.step_through.events import Event
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.trace import Trace
from tests.app.conftest import small_cohort
from tests.app.elements import Elements
from tests.app.recorded import keep, memory_of


def file_of(loaded: loading.LoadedTrace, **changes) -> bytes:
    return json.dumps({**json.loads(exchange.to_json(loaded)), **changes}).encode()


# -- JSON -----------------------------------------------------------------------------------------------------------


def test_the_json_of_a_step_through_replays_to_the_same_posteriors(loaded: loading.LoadedTrace) -> None:
    incoming = exchange.read_file(exchange.to_json(loaded).encode())
    assert incoming.trace.events == loaded.events and incoming.label == "Bed 4"
    assert max(incoming.trace.differences(loaded.conditioned.memory)) == 0.0
    assert isinstance(incoming.trace.replay(loaded.conditioned.memory), Patient)


def test_what_is_exported_was_believed_then(loaded: loading.LoadedTrace) -> None:
    assert [dict(step.posterior) for step in loaded.trace.steps] == list(loaded.record.believed)


def test_an_imported_trace_goes_on_where_the_cohort_is_shared(
    loaded, shared_services: Services, owner: str, ward: StoredCohort, someone_else: str
) -> None:
    incoming = exchange.read_file(exchange.to_json(loaded).encode())
    with pytest.raises(InputError, match=f"needs the cohort 'ward'.*{ward.content_hash[:16]}.*not among yours"):
        exchange.import_trace(someone_else, incoming)
    shared_services.store.cohorts.share(owner, ward.id)
    try:
        imported = exchange.import_trace(someone_else, incoming)
        assert imported.exact and "replays to the same posteriors" in imported.sentence
        copy = loading.load(someone_else, imported.step_through.id)
        assert copy.events == loaded.events and copy.record.believed == loaded.record.believed
        assert imported.step_through.status == "finished", "it was stopped, and is so after the import"
        again = exchange.import_trace(someone_else, incoming)
        assert again.step_through.id == copy.record.id and "already" in again.sentence
    finally:
        shared_services.store.cohorts.share(owner, ward.id, shared=False)


def test_importing_ones_own_export_opens_the_original(loaded, owner: str) -> None:
    imported = exchange.import_trace(owner, exchange.read_file(exchange.to_json(loaded).encode()))
    assert imported.step_through.id == loaded.record.id


def test_a_trace_that_a_script_wrote_can_be_imported(shared_services: Services, owner: str, ward: StoredCohort) -> None:
    patient = memory_of(shared_services, owner, ward).start({"age": 50.0}).observe("lactate", 2.2)
    imported = exchange.import_trace(owner, exchange.read_file(patient.trace.to_json().encode()))
    assert "without a chain" in imported.sentence and imported.step_through.title == "Imported trace"
    assert loading.load(owner, imported.step_through.id).events == patient.events


def test_a_model_that_is_not_here_is_named(
    loaded, owner: str, ward: StoredCohort, shared_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    incoming = exchange.read_file(exchange.to_json(loaded).encode())
    monkeypatch.setattr(shared_services, "model_of", lambda owner, fingerprint: None)
    newcomer = f"{owner}-without-the-model"
    shared_services.store.cohorts.share(owner, ward.id)
    try:
        with pytest.raises(InputError, match="model 'general'.*not installed here.*here: 'general' with fingerprint"):
            exchange.import_trace(newcomer, incoming)
    finally:
        shared_services.store.cohorts.share(owner, ward.id, shared=False)


def change_posterior(plain: dict) -> None:
    plain["steps"][1]["posterior"]["yes"] += 0.01


def change_value(plain: dict) -> None:
    plain["steps"][0]["event"]["values"]["age"] = 17.0


def change_chained_value(plain: dict) -> None:
    plain["chain"]["events"][0]["payload"]["values"]["age"] = 17.0


def cut_chain(plain: dict) -> None:
    del plain["chain"]["events"][-1]


def swap_cohort(plain: dict) -> None:
    plain["cohort"]["hash"] = "0" * 64


def number_as_label(plain: dict) -> None:
    plain["label"] = 4


def no_steps(plain: dict) -> None:
    plain["steps"] = []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_posterior, "posterior of the trace is not the one in its chain"),
        (change_value, "not the events of its chain"),
        (change_chained_value, "changed after it was exported: link 0 was altered"),
        (cut_chain, "cut off at the end"),
        (swap_cohort, "different cohorts or models"),
        (number_as_label, "The label must be text"),
        (no_steps, "has 0 steps"),
    ],
)
def test_a_file_that_was_changed_is_refused_with_what_is_wrong(loaded, change, words: str) -> None:
    plain = json.loads(exchange.to_json(loaded))
    change(plain)
    with pytest.raises(InputError, match=words):
        exchange.read_file(json.dumps(plain).encode())


def test_without_its_chain_a_changed_posterior_is_still_found(loaded, owner: str) -> None:
    plain = json.loads(exchange.to_json(loaded))
    del plain["chain"]
    change_posterior(plain)
    with pytest.raises(InputError, match="does not replay.*The file was changed"):
        exchange.import_trace(owner, exchange.read_file(json.dumps(plain).encode()))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (b"", "not valid JSON"),
        (b"[1, 2]", "not a trace"),
        (b"[" * 200_000, "not valid JSON"),
        (b" " * (exchange.LARGEST + 1), "at most 5 MB"),
        (b'{"kind": "learning-to-measure trace", "format": 7}', "format 7"),
    ],
)
def test_what_is_no_trace_is_refused_in_words(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        exchange.read_file(data)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 400])
@pytest.mark.parametrize("place", ["posterior", "gains", "spent", "value", "length", "label", "payload", "beside"])
def test_a_number_that_is_none_is_refused_in_words(loaded, number: str, place: str) -> None:
    plain = json.loads(exchange.to_json(loaded))
    step, payload = plain["steps"][0], plain["chain"]["events"][0]["payload"]
    where = {
        "posterior": (step["posterior"], "yes"),
        "gains": (step["gains"], "scan"),
        "spent": (step, "spent"),
        "value": (step["event"]["values"], "age"),
        "length": (plain["chain"]["head"], "length"),
        "label": (plain, "label"),
        "payload": (payload, "more"),
        "beside": (plain, "beside"),
    }
    holder, name = where[place]
    holder[name] = "NUMBER"
    data = json.dumps(plain).replace('"NUMBER"', number).encode()
    with pytest.raises(InputError, match=f"holds the number {number:.20}; every number must be finite.*Export"):
        exchange.read_file(data)


@pytest.mark.parametrize("place", ["label", "reason", "posterior", "model", "versions", "beside"])
def test_half_a_character_is_refused_in_words(loaded, place: str) -> None:
    plain = json.loads(exchange.to_json(loaded))
    del plain["chain"]
    step = plain["steps"][0]
    half = "x\ud83d"
    change = {
        "label": lambda: plain.update(label=half),
        "reason": lambda: step["event"].update(reason=half),
        "posterior": lambda: step["posterior"].update({half: 0.5}),
        "model": lambda: plain["model"].update(name=half),
        "versions": lambda: plain["versions"].update({half: "1"}),
        "beside": lambda: plain.update({half: 1}),
    }
    change[place]()
    with pytest.raises(InputError, match="half of a surrogate pair, which is no text"):
        exchange.read_file(json.dumps(plain).encode())


@pytest.mark.parametrize("levels", [61, 200, 900, 100_000])
def test_endless_nesting_is_refused_in_words(loaded, levels: int) -> None:
    text = exchange.to_json(loaded)
    for name in ("payload", "versions"):
        nested = "[" * levels + "]" * levels
        data = text.replace(f'"{name}": {{', f'"{name}": {{"more": {nested},', 1).encode()
        with pytest.raises(InputError, match="nested more than 60 levels deep|not valid JSON"):
            exchange.read_file(data)


def test_an_endless_chain_is_refused_before_it_is_walked(loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = json.loads(exchange.to_json(loaded))["chain"]
    monkeypatch.setattr(exchange, "import_chain", lambda chain: pytest.fail("it was walked"))
    with pytest.raises(InputError, match="chain has 3,001 events; at most 3,000 can be imported"):
        exchange.read_file(file_of(loaded, chain={**chain, "events": [{}] * 3001}))


def test_the_core_refuses_a_million_steps_and_texts_without_end(loaded) -> None:
    plain = json.loads(exchange.to_json(loaded))
    with pytest.raises(InputError, match="has 1,000,000 steps; at most 10,000 are read"):
        Trace.from_json(json.dumps({**plain, "steps": [0] * 1_000_000}))
    with pytest.raises(InputError, match="has 50,000,001 characters; at most 50,000,000 are read"):
        Trace.from_json(" " * 50_000_001)
    plain["steps"][0]["suggested"] = ["scan"]
    with pytest.raises(InputError, match="a suggestion is no name"):
        Trace.from_json(json.dumps(plain))


@pytest.mark.parametrize("chain", [7, [], {}, {"events": "x"}, "chain"])
def test_a_chain_that_is_none_is_refused_in_words(loaded, chain) -> None:
    with pytest.raises(InputError, match="no complete chain"):
        exchange.read_file(file_of(loaded, chain=chain))


def test_a_trace_of_ten_thousand_steps_is_refused_before_it_is_computed(loaded) -> None:
    step = json.loads(exchange.to_json(loaded))["steps"][0]
    with pytest.raises(InputError, match="has 1001 steps; from 1 to 1000"):
        exchange.read_file(file_of(loaded, steps=[step] * 1001, chain=None))


# -- CSV ------------------------------------------------------------------------------------------------------------


def test_the_csv_has_one_row_for_each_step_and_opens_in_a_spreadsheet(loaded: loading.LoadedTrace) -> None:
    text = exports.to_csv(loaded)
    assert text.encode().startswith(b"\xef\xbb\xbf"), "without the mark, spreadsheets misread µ and é"
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert [row["event"] for row in rows] == [event.kind for event in loaded.events]
    assert [float(row["posterior yes"]) for row in rows] == [step.posterior["yes"] for step in loaded.trace.steps]
    assert rows[5]["limits"] == "below" and rows[1]["reason"] == "drawn already"


def test_a_limit_in_the_csv_stands_where_its_value_stands(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    begun = memory_of(shared_services, owner, ward).start({})
    patient = begun.observe({"sodium": 131.0, "potassium": 2.5}, limits={"sodium": "below"})
    kept = loading.load(owner, keep(shared_services, owner, ward, patient).id)
    row = list(csv.DictReader(io.StringIO(exports.to_csv(kept).removeprefix("\ufeff"))))[1]
    assert (row["features"], row["values"], row["limits"]) == ("potassium; sodium", "2.5; 131.0", "; below")


@pytest.mark.parametrize("start", ["=1+1", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_reason_runs_as_a_formula(shared_services: Services, owner: str, ward: StoredCohort, start: str) -> None:
    patient = memory_of(shared_services, owner, ward).start({}).observe("lactate", 3.0, reason=start)
    kept = loading.load(owner, keep(shared_services, owner, ward, patient).id)
    rows = list(csv.DictReader(io.StringIO(exports.to_csv(kept).removeprefix("\ufeff"), newline="")))
    assert rows[1]["reason"].startswith("'") and rows[1]["reason"].replace("'", "") == start


# -- verifying ------------------------------------------------------------------------------------------------------


def results(found: tuple[checks.Check, ...]) -> dict[str, str]:
    return {check.what: check.result for check in found}


def test_all_that_was_recorded_is_verified(loaded: loading.LoadedTrace, owner: str) -> None:
    found = checks.verify(owner, loaded)
    assert set(results(found).values()) == {"verified"}
    sentences = " ".join(check.sentence for check in found)
    assert "All 7 stored events" in sentences and "7 of 7 recorded posteriors" in sentences
    assert "3 of 3 recorded suggestions" in sentences


def test_a_stored_event_that_was_changed_is_found(
    loaded: loading.LoadedTrace, owner: str, shared_services: Services
) -> None:
    database = sqlite3.connect(shared_services.settings.data_dir / "l2m.sqlite3")
    triggers = database.execute(
        "select name, sql from sqlite_master where type = 'trigger' and tbl_name = 'events'"
    ).fetchall()
    for name, _ in triggers:
        database.execute(f'drop trigger "{name}"')
    where = "where step_through_id = ? and sequence = 1"
    (before,) = database.execute(f"select payload from events {where}", (loaded.record.id,)).fetchone()
    change = f"update events set payload = ? {where}"
    database.execute(change, (before.replace("131.0", "139.0"), loaded.record.id))
    database.commit()
    try:
        found = results(checks.verify(owner, loading.load(owner, loaded.record.id)))
        assert found["Record"] == "failed" and found["Replay"] == "failed"
    finally:
        database.execute(change, (before, loaded.record.id))
        for _, statement in triggers:
            database.execute(statement)
        database.commit()
        database.close()


def test_without_the_model_it_is_said_what_was_not_checked(
    loaded: loading.LoadedTrace, owner: str, shared_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shared_services.model(owner)
    other = replace(model, release=replace(model.release, fingerprint="f" * 64))
    monkeypatch.setattr(shared_services, "model_of", lambda owner, fingerprint: None)
    monkeypatch.setattr(checks.l2m, "load", lambda folder, device: other)
    gone = loading.load(owner, loaded.record.id)
    assert gone.conditioned is None and "not installed" in gone.absent
    assert [step.posterior for step in gone.trace.steps] == list(loaded.record.believed), "the record still speaks"
    found = checks.verify(owner, gone)
    assert results(found) == {
        "Record": "verified",
        "Cohort": "verified",
        "Model": "not checked",
        "Replay": "not checked",
    }
    assert "another version" in next(check.sentence for check in found if check.what == "Model")
    incoming = exchange.read_file(exchange.to_json(gone).encode())
    assert isinstance(incoming.trace.replay(loaded.conditioned.memory), Patient), (
        "exported without the model, it replays"
    )
    assert "not installed" in "".join(Elements(exports.to_html(gone)).words)


def test_a_deleted_cohort_leaves_the_record(
    loaded: loading.LoadedTrace, owner: str, ward: StoredCohort, shared_services: Services
) -> None:
    shared_services.store.cohorts.delete(owner, ward.id)
    gone = loading.load(owner, loaded.record.id)
    assert gone.conditioned is None and "deleted" in gone.absent
    assert gone.trace.steps[-1].spent == loaded.trace.steps[-1].spent
    assert results(checks.verify(owner, gone))["Cohort"] == "not checked"


def test_what_was_spent_is_told_by_the_record_as_by_the_patient() -> None:
    salts = (Feature("sodium", cost=3, group="salts"), Feature("potassium", cost=5, group="salts"))
    schema = Schema((*salts, Feature("lactate", cost=12)), Outcome("died"))
    events = (Event("start"), Event("observe", {"sodium": 131.0, "lactate": 3.6}))
    assert loading.spent_after(events, schema) == 5 + 12, "a panel at its price, and a test beside it"


def test_an_earlier_export_shows_what_came_since_and_what_was_cut(
    shared_services: Services, owner: str, ward: StoredCohort, loaded: loading.LoadedTrace
) -> None:
    memory = memory_of(shared_services, owner, ward)
    patient = memory.start({"age": 71.0}).observe("lactate", 3.6)
    first = loading.load(owner, keep(shared_services, owner, ward, patient).id)
    incoming = exchange.read_file(exchange.to_json(first).encode())
    assert set(results(checks.against_file(first, incoming)).values()) == {"verified"}
    event = patient.declined("scan").events[-1]
    shared_services.store.step_throughs.append_event(owner, first.record.id, event.id, 2, event.kind, event.to_dict())
    later = loading.load(owner, first.record.id)
    found = checks.against_file(later, incoming)
    assert "1 came since" in found[0].sentence and set(results(found).values()) == {"verified"}
    newer = exchange.read_file(exchange.to_json(later).encode())
    assert checks.against_file(first, newer)[0].result == "failed"
    assert "another step-through" in checks.against_file(loaded, incoming)[0].sentence


def test_an_imported_record_is_held_against_the_file_that_it_came_from(
    shared_services: Services, owner: str, ward: StoredCohort, loaded: loading.LoadedTrace, someone_else: str
) -> None:
    incoming = exchange.read_file(exchange.to_json(loaded).encode())
    shared_services.store.cohorts.share(owner, ward.id)
    try:
        copy = loading.load(someone_else, exchange.import_trace(someone_else, incoming).step_through.id)
        found = checks.against_file(copy, incoming)
    finally:
        shared_services.store.cohorts.share(owner, ward.id, shared=False)
    assert set(results(found).values()) == {"verified"}
    assert "in another chain" in found[0].sentence


def test_a_file_without_a_chain_is_held_against_its_record_by_its_steps(
    shared_services: Services, owner: str, ward: StoredCohort, loaded: loading.LoadedTrace
) -> None:
    patient = memory_of(shared_services, owner, ward).start({"age": 50.0}).observe("lactate", 2.2)
    incoming = exchange.read_file(patient.trace.to_json().encode())
    imported = loading.load(owner, exchange.import_trace(owner, incoming).step_through.id)
    found = checks.against_file(imported, incoming)
    assert set(results(found).values()) == {"verified"} and "no chain" in found[0].sentence
    (other,) = checks.against_file(loaded, incoming)
    assert other.result == "failed" and "another step-through" not in other.sentence


# -- whose ----------------------------------------------------------------------------------------------------------


def test_what_is_another_owners_is_not_there(loaded: loading.LoadedTrace, someone_else: str) -> None:
    with pytest.raises(NotFound):
        loading.load(someone_else, loaded.record.id)


def test_a_file_names_no_owner(loaded: loading.LoadedTrace, owner: str) -> None:
    for make in (exchange.to_json, exports.to_csv, exports.to_html):
        assert owner not in make(loaded) and owner.removeprefix("browser-") not in make(loaded)


def test_the_core_reads_the_file_too(loaded: loading.LoadedTrace) -> None:
    assert Trace.from_json(exchange.to_json(loaded)).events == loaded.events
    assert DEFAULT_MODEL == loaded.trace.model and small_cohort().content_hash == loaded.trace.cohort_hash
