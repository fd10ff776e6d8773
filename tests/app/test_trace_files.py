"""What leaves as a file and comes back: complete, escaped, verified, refused in words."""

import csv
import io
import json
import re
import sqlite3
import uuid
from html.parser import HTMLParser

import numpy as np
import pypdf
import pytest

from app.store import NotFound, StoredCohort
from app.ui import identity, labels, services
from app.ui.services import Services
from app.ui.steps.belief import most_believed
from app.ui.steps.record import SETTINGS, Settings
from app.ui.traces import answers, checks, exchange, exports, loading, report, report_pdf
from l2m_core.acquire.stopping import Stopping
from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from l2m_core.events import Event
from l2m_core.schema import Feature, Outcome, Schema
from l2m_core.session import Patient
from l2m_core.trace import Trace
from tests.app.conftest import small_cohort, small_frame
from tests.app.recorded import changing_their_mind, eventful, keep, memory_of
from tests.app.stepping import outcome_cohort

HOSTILE = "<script>alert(1)</script> ![x](http://example.invalid/p.png) \"'&amp; =1+1"


@pytest.fixture
def loaded(shared_services: Services, owner: str, ward: StoredCohort) -> loading.LoadedTrace:
    patient = eventful(memory_of(shared_services, owner, ward))
    return loading.load(owner, keep(shared_services, owner, ward, patient).id)


@pytest.fixture
def someone_else() -> str:
    return identity.browser_owner(np.random.default_rng().bytes(16).hex())


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
        exchange.bring(someone_else, incoming)
    shared_services.store.cohorts.share(owner, ward.id)
    try:
        brought = exchange.bring(someone_else, incoming)
        assert brought.exact and "replays to the same posteriors" in brought.sentence
        copy = loading.load(someone_else, brought.step_through.id)
        assert copy.events == loaded.events and copy.record.believed == loaded.record.believed
        assert brought.step_through.status == "finished", "it was stopped, and is so after the import"
        again = exchange.bring(someone_else, incoming)
        assert again.step_through.id == copy.record.id and "already" in again.sentence
    finally:
        shared_services.store.cohorts.share(owner, ward.id, shared=False)


def test_importing_ones_own_export_opens_the_original(loaded, owner: str) -> None:
    brought = exchange.bring(owner, exchange.read_file(exchange.to_json(loaded).encode()))
    assert brought.step_through.id == loaded.record.id


def test_a_trace_that_a_script_wrote_can_be_imported(shared_services: Services, owner: str, ward: StoredCohort) -> None:
    patient = memory_of(shared_services, owner, ward).start({"age": 50.0}).observe("lactate", 2.2)
    brought = exchange.bring(owner, exchange.read_file(patient.trace.to_json().encode()))
    assert "without a chain" in brought.sentence and brought.step_through.title == "Imported trace"
    assert loading.load(owner, brought.step_through.id).events == patient.events


def test_a_model_that_is_not_here_is_named(loaded, owner: str, someone_else: str, shared_services, monkeypatch) -> None:
    incoming = exchange.read_file(exchange.to_json(loaded).encode())
    monkeypatch.setattr(exchange, "_known", lambda owner, incoming: None)
    monkeypatch.setattr(shared_services, "model_of", lambda owner, fingerprint: None)
    with pytest.raises(InputError, match="model 'general'.*not installed here.*here: 'general' with fingerprint"):
        exchange.bring(owner, incoming)


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
        exchange.bring(owner, exchange.read_file(json.dumps(plain).encode()))


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


@pytest.mark.parametrize("start", ["=1+1", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_reason_runs_as_a_formula(shared_services: Services, owner: str, ward: StoredCohort, start: str) -> None:
    patient = memory_of(shared_services, owner, ward).start({}).observe("lactate", 3.0, reason=start)
    kept = loading.load(owner, keep(shared_services, owner, ward, patient).id)
    rows = list(csv.DictReader(io.StringIO(exports.to_csv(kept).removeprefix("\ufeff"), newline="")))
    assert rows[1]["reason"] == "'" + start


# -- reports --------------------------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """The tags and the addresses of a page, as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes) -> None:
        self.tags.add(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "action", "data", "srcset")]
        self.handlers += [name for name, _ in attributes if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def text_of_pdf(data: bytes) -> str:
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)


def squeezed(text: str) -> str:
    """Without blanks, which line breaks move about."""
    return re.sub(r"\s", "", text)


@pytest.fixture
def hostile(shared_services: Services, owner: str) -> loading.LoadedTrace:
    """Every text that a person can choose is an attack."""
    frame = small_frame().rename(columns={"lactate": HOSTILE})
    frame["died"] = frame["died"].map({"yes": f"yes {HOSTILE}", "no": "no"})
    cohort = Cohort.from_frame(frame, outcome="died", name=f"ward {HOSTILE}")
    stored = shared_services.add_cohort(owner, cohort)
    memory = memory_of(shared_services, owner, stored)
    patient = memory.start({"age": 71.0}).observe(HOSTILE, 3.6, reason=HOSTILE).declined("scan", reason=HOSTILE)
    return loading.load(owner, keep(shared_services, owner, stored, patient, title=HOSTILE).id)


def test_nothing_in_the_html_report_is_markup_or_fetched(hostile: loading.LoadedTrace) -> None:
    page = exports.to_html(hostile)
    elements = Elements(page)
    assert elements.tags <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "strong", "dl", "dt", "dd", "code", "table",
        "colgroup", "col", "thead", "tbody", "tr", "th", "td", "ul", "li", "svg", "line", "text", "circle", "polyline",
    }  # fmt: skip
    assert elements.addresses == [] and elements.handlers == []
    assert "default-src 'none'" in page and "url(" not in page and "@import" not in page
    assert HOSTILE in "".join(elements.words), "the name is shown as it is written"


def test_the_reports_carry_fingerprints_banner_steps_missing_inputs_and_limits(loaded: loading.LoadedTrace) -> None:
    told = "".join(Elements(exports.to_html(loaded)).words)
    printed = text_of_pdf(exports.to_pdf(loaded))
    record = loaded.record
    wanted = [
        record.step_through.model_fingerprint, record.step_through.cohort_hash, record.step_through.head_hash, "torch",
        "Research use only", "not a medical device", "Bed 4", "instead of", "drawn already", "undone by step 3",
        "<0.5 mmol/L", "What is not known", "scan", "not measured", "It is not benefit to the patient",
        "Beyond a detection limit", "clear enough",
    ]  # fmt: skip
    for words in wanted:
        assert squeezed(words) in squeezed(told), words
        assert squeezed(words) in squeezed(printed), words
    percent = f"{loaded.trace.steps[-1].posterior['yes']:.0%}"
    assert f"died: {percent}" in told and f"died: {percent}" in printed


def test_the_pdf_writes_greek_accents_and_signs_and_owns_up_to_what_it_cannot(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    patient = memory_of(shared_services, owner, ward).start({}).observe("lactate", 3.0, reason="µmol/L ≤ Ωé Жуκλμ → 中文")
    kept = loading.load(owner, keep(shared_services, owner, ward, patient, title="Größe Ångström").id)
    printed = text_of_pdf(exports.to_pdf(kept))
    assert "Größe Ångström" in printed
    assert squeezed("µmol/L ≤ Ωé Жуκλμ → ��") in squeezed(printed)
    assert squeezed("2 characters that this PDF's font does not have") in squeezed(printed)


def test_a_pdf_has_no_script_link_or_embedded_file(hostile: loading.LoadedTrace) -> None:
    data = exports.to_pdf(hostile)
    assert not re.search(rb"/(JavaScript|JS|URI|Launch|EmbeddedFile|Annots|AA)\b", data)
    assert squeezed(HOSTILE) in squeezed(text_of_pdf(data))


def test_the_font_is_shipped_with_its_licence() -> None:
    assert "Permission is hereby granted" in (report_pdf.FONTS / "LICENSE.txt").read_text("utf-8")
    assert {ord(c) for c in "µéαΩЖ≤→✕●★…−�"} <= report_pdf.characters()


@pytest.mark.parametrize("kind", ["multiclass", "continuous"])
def test_other_outcomes_have_reports_as_well(shared_services: Services, owner: str, kind: str) -> None:
    stored = shared_services.add_cohort(owner, outcome_cohort(kind))
    patient = memory_of(shared_services, owner, stored).start({"age": 60.0}).observe("lactate", 3.1)
    kept = loading.load(owner, keep(shared_services, owner, stored, patient).id)
    told = "".join(Elements(exports.to_html(kept)).words)
    assert ("median" if kind == "continuous" else "of 100 patients") in told
    assert exports.to_pdf(kept).startswith(b"%PDF-")
    incoming = exchange.read_file(exchange.to_json(kept).encode())
    assert max(incoming.trace.differences(kept.conditioned.memory)) == 0.0


def test_a_report_of_several_classes_says_which_one_led_at_each_step(shared_services: Services, owner: str) -> None:
    stored = shared_services.add_cohort(owner, outcome_cohort("multiclass"))
    patient = changing_their_mind(memory_of(shared_services, owner, stored))
    kept = loading.load(owner, keep(shared_services, owner, stored, patient).id)
    outcome, believed = kept.schema.outcome, [step.posterior for step in kept.trace.steps]
    assert (max(believed[1], key=believed[1].get), max(believed[2], key=believed[2].get)) == ("medium", "long")
    made = report.make(kept)
    by_title = {grid.title: grid for grid in made.grids}
    steps, classes = by_title["Step by step"], by_title["All classes"]
    assert steps.head[5] == "stay, likeliest"
    assert [row[5] for row in steps.rows] == [answers.short(outcome, posterior) for posterior in believed]
    assert {line.name: line.values for line in made.curve.lines} == {
        name: tuple(posterior[name] for posterior in believed) for name in outcome.classes
    }
    assert len({line.sign for line in made.curve.lines}) == len({line.colour for line in made.curve.lines}) == 3
    ended = sorted(((value, name) for name, value in believed[-1].items()), reverse=True)
    assert [(row[0], row[2]) for row in classes.rows] == [(name, labels.percent(value)) for value, name in ended]
    for words in (squeezed("".join(Elements(exports.to_html(kept)).words)), squeezed(text_of_pdf(exports.to_pdf(kept)))):
        for line in made.curve.lines:
            assert f"{line.sign}{line.name}" in words
        assert all(squeezed("".join(row)) in words for row in classes.rows)
        assert all(squeezed(row[5]) in words for row in steps.rows)


def test_what_led_once_is_shown_though_it_is_nothing_now() -> None:
    outcome = Outcome("stay", kind="multiclass", classes=("a", "b", "c", "d"))
    posteriors = [{"a": 0.9, "b": 0.04, "c": 0.03, "d": 0.03}, {"a": 0.02, "b": 0.5, "c": 0.08, "d": 0.4}]
    assert most_believed(outcome, posteriors, 2) == ["a", "b"] and most_believed(outcome, posteriors[1:], 2) == ["b", "d"]
    assert most_believed(outcome, posteriors, 9) == ["a", "b", "c", "d"], "in their own order, not in that of now"


def test_a_name_without_blanks_and_a_long_table_fit_the_page(shared_services: Services, owner: str) -> None:
    long = "n" * 90
    frame = small_frame().rename(columns={"lactate": long})
    stored = shared_services.add_cohort(owner, Cohort.from_frame(frame, outcome="died", name="w" * 90))
    patient = memory_of(shared_services, owner, stored).start({"age": 60.0})
    for _ in range(30):
        patient = patient.declined(long, reason="r" * 120).undo()
    kept = loading.load(owner, keep(shared_services, owner, stored, patient, title="t" * 110).id)
    reader = pypdf.PdfReader(io.BytesIO(exports.to_pdf(kept)))
    assert len(reader.pages) > 2
    assert squeezed(long) in squeezed("".join(page.extract_text() for page in reader.pages))


def test_the_report_says_how_many_of_its_events_are_no_steps(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    kept = keep(shared_services, owner, ward, memory_of(shared_services, owner, ward).start({}))
    assert dict(report.make(loading.load(owner, kept.id)).fingerprints)["Chain of events"].startswith("1 event, head")
    settings = Settings(Stopping(budget=3)).to_payload()
    shared_services.store.step_throughs.append_event(owner, kept.id, str(uuid.uuid4()), 1, SETTINGS, settings)
    chain = dict(report.make(loading.load(owner, kept.id)).fingerprints)["Chain of events"]
    assert chain.startswith("2 events, 1 of them of the rules for ranking and stopping, head")


def test_times_are_said_in_utc() -> None:
    assert report.moment_text("2026-03-01T01:30:00+02:00") == "2026-02-28 23:30:00"
    assert report.moment_text("2026-03-01T01:30:00") == "2026-03-01 01:30:00"


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
    triggers = database.execute("select name, sql from sqlite_master where type = 'trigger' and tbl_name = 'events'").fetchall()
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
    other = "f" * 64
    monkeypatch.setattr(shared_services, "model_of", lambda owner, fingerprint: None)
    monkeypatch.setattr(checks.l2m, "load", lambda folder: type("Other", (), {"fingerprint": other})())
    gone = loading.load(owner, loaded.record.id)
    assert gone.conditioned is None and "not installed" in gone.absent
    assert [step.posterior for step in gone.trace.steps] == list(loaded.record.believed), "the record still speaks"
    found = checks.verify(owner, gone)
    assert results(found) == {"Record": "verified", "Cohort": "verified", "Model": "not checked", "Replay": "not checked"}
    assert "another version" in next(check.sentence for check in found if check.what == "Model")
    incoming = exchange.read_file(exchange.to_json(gone).encode())
    assert isinstance(incoming.trace.replay(loaded.conditioned.memory), Patient), "exported without the model, it replays"
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


# -- whose ----------------------------------------------------------------------------------------------------------


def test_what_is_another_owners_is_not_there(loaded: loading.LoadedTrace, someone_else: str) -> None:
    with pytest.raises(NotFound):
        loading.load(someone_else, loaded.record.id)


def test_a_file_names_no_owner(loaded: loading.LoadedTrace, owner: str) -> None:
    for make in (exchange.to_json, exports.to_csv, exports.to_html):
        assert owner not in make(loaded) and owner.removeprefix("browser-") not in make(loaded)


def test_the_core_reads_the_file_too(loaded: loading.LoadedTrace) -> None:
    assert Trace.from_json(exchange.to_json(loaded)).events == loaded.events
    assert services.DEFAULT_MODEL == loaded.trace.model and small_cohort().content_hash == loaded.trace.cohort_hash
