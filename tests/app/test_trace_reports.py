"""Reports of a step-through, as HTML and as PDF: all that is owed is said, nothing in them runs or is fetched."""

import io
import re
import uuid
from dataclasses import replace

import pypdf
import pytest

from app.host.services import Services
from app.store import StoredCohort
from app.ui import fonts, labels, posterior_words
from app.ui.posterior_words import most_believed
from app.ui.step_through.stored_events import SETTINGS, Rules
from app.ui.traces import exchange, exports, loading, report, report_pdf
from l2m_core.acquire.stopping import Stopping
from l2m_core.answering.release import UNTOLD
from l2m_core.cohort import Cohort
from l2m_core.council.council import Recipe
from l2m_core.schema import Feature, Outcome, Schema
from tests.app.conftest import small_frame
from tests.app.elements import Elements
from tests.app.recorded import changing_their_mind, keep, memory_of
from tests.app.stepping import outcome_cohort

HOSTILE = "<script>alert(1)</script> ![x](http://example.invalid/p.png) \"'&amp; =1+1"


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
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "p",
        "strong",
        "dl",
        "dt",
        "dd",
        "code",
        "table",
        "colgroup",
        "col",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "svg",
        "line",
        "text",
        "circle",
        "polyline",
    }
    assert elements.addresses == [] and elements.handlers == []
    assert "default-src 'none'" in page and "url(" not in page and "@import" not in page
    assert HOSTILE in "".join(elements.words), "the name is shown as it is written"


def test_the_reports_carry_fingerprints_banner_steps_missing_inputs_and_limits(loaded: loading.LoadedTrace) -> None:
    told = "".join(Elements(exports.to_html(loaded)).words)
    printed = text_of_pdf(exports.to_pdf(loaded))
    record = loaded.record
    wanted = [
        record.step_through.model_fingerprint,
        record.step_through.cohort_hash,
        record.step_through.head_hash,
        "torch",
        "Research use only",
        "not a medical device",
        "Bed 4",
        "instead of",
        "drawn already",
        "undone by step 3",
        "<0.5 mmol/L",
        "What is not known",
        "scan",
        "not measured",
        "It is not benefit to the patient",
        "Beyond a detection limit",
        "clear enough",
    ]
    for words in wanted:
        assert squeezed(words) in squeezed(told), words
        assert squeezed(words) in squeezed(printed), words
    percent = f"{loaded.trace.steps[-1].posterior['yes']:.0%}"
    assert f"died: {percent}" in told and f"died: {percent}" in printed


def test_the_pdf_writes_greek_accents_and_signs_and_owns_up_to_what_it_cannot(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    patient = (
        memory_of(shared_services, owner, ward).start({}).observe("lactate", 3.0, reason="µmol/L ≤ Ωé Жуκλμ → 中文")
    )
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
    assert "Permission is hereby granted" in (fonts.FOLDER / "LICENSE.txt").read_text("utf-8")
    assert {ord(c) for c in "µéαΩЖ≤→✕●★…−�"} <= report_pdf.characters()


@pytest.mark.parametrize("kind", ["multiclass", "continuous"])
def test_other_outcomes_have_reports_as_well(shared_services: Services, owner: str, kind: str) -> None:
    stored = shared_services.add_cohort(owner, outcome_cohort(kind))
    patient = memory_of(shared_services, owner, stored).start({"age": 60.0}).observe("lactate", 3.1)
    kept = loading.load(owner, keep(shared_services, owner, stored, patient).id)
    told = "".join(Elements(exports.to_html(kept)).words)
    assert ("mean" if kind == "continuous" else "of 100 patients") in told
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
    assert [row[5] for row in steps.rows] == [posterior_words.short(outcome, posterior) for posterior in believed]
    assert {line.name: line.values for line in made.curve.lines} == {
        name: tuple(posterior[name] for posterior in believed) for name in outcome.classes
    }
    assert len({line.sign for line in made.curve.lines}) == len({line.colour for line in made.curve.lines}) == 3
    ended = sorted(((value, name) for name, value in believed[-1].items()), reverse=True)
    assert [(row[0], row[2]) for row in classes.rows] == [(name, labels.percent(value)) for value, name in ended]
    for words in (
        squeezed("".join(Elements(exports.to_html(kept)).words)),
        squeezed(text_of_pdf(exports.to_pdf(kept))),
    ):
        for line in made.curve.lines:
            assert f"{line.sign}{line.name}" in words
        assert all(squeezed("".join(row)) in words for row in classes.rows)
        assert all(squeezed(row[5]) in words for row in steps.rows)


def test_what_led_once_is_shown_though_it_is_nothing_now() -> None:
    outcome = Outcome("stay", kind="multiclass", classes=("a", "b", "c", "d"))
    posteriors = [{"a": 0.9, "b": 0.04, "c": 0.03, "d": 0.03}, {"a": 0.02, "b": 0.5, "c": 0.08, "d": 0.4}]
    assert most_believed(outcome, posteriors, 2) == ["a", "b"] and most_believed(outcome, posteriors[1:], 2) == [
        "b",
        "d",
    ]
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


def test_a_long_number_stands_in_one_piece_in_the_pdf(shared_services: Services, owner: str) -> None:
    frame = small_frame()
    schema = Schema((*(Feature(name, cost=1234567.89) for name in ("lactate", "sodium")),), Outcome("died"))
    cohort = Cohort.from_frame(frame[["lactate", "sodium", "died"]], schema=schema)
    stored = shared_services.add_cohort(owner, cohort)
    patient = memory_of(shared_services, owner, stored).start({}).observe("lactate", 3.6)
    printed = text_of_pdf(exports.to_pdf(loading.load(owner, keep(shared_services, owner, stored, patient).id)))
    # In the facts, after the step, and of what is known and not known.
    assert printed.count("1234567.89") == 4, printed


def test_the_report_says_how_many_of_its_events_are_no_steps(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    kept = keep(shared_services, owner, ward, memory_of(shared_services, owner, ward).start({}))
    assert dict(report.make(loading.load(owner, kept.id)).fingerprints)["Chain of events"].startswith("1 event, head")
    settings = Rules(Stopping(budget=3)).to_payload()
    shared_services.store.step_throughs.append_event(owner, kept.id, str(uuid.uuid4()), 1, SETTINGS, settings)
    chain = dict(report.make(loading.load(owner, kept.id)).fingerprints)["Chain of events"]
    assert chain.startswith("2 events, 1 of them of the rules for ranking and stopping, head")


def test_costs_of_results_that_came_together_are_said_to_be_paid_once(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    start = memory_of(shared_services, owner, ward).start({"age": 71.0})
    notes = {}
    for patient in (start.observe("sodium", 131.0), start.observe({"sodium": 131.0, "potassium": 4.4})):
        made = report.make(loading.load(owner, keep(shared_services, owner, ward, patient).id))
        (known,) = (grid for grid in made.grids if grid.title == "What is known")
        assert dict(made.facts)["Tests"].endswith("cost 5")
        notes[tuple(row[4] for row in known.rows)] = known.note
    assert notes == {("", "5"): "", ("", "5", "5"): report.PAID_ONCE}


def test_times_are_said_in_utc() -> None:
    assert report.time_text("2026-03-01T01:30:00+02:00") == "2026-02-28 23:30:00"
    assert report.time_text("2026-03-01T01:30:00") == "2026-03-01 01:30:00"


@pytest.mark.parametrize(
    ("tuned", "council", "said"),
    [
        ("", None, "The model was not trained on it."),
        ("here", None, "The model was fine-tuned on it."),
        ("elsewhere", None, "The model was not trained on it."),
        (UNTOLD, None, "The model was fine-tuned, and does not say on which cohort."),
        ("", {"model": 0.6, "trees": 0.4}, "The model was not trained on it. It is heard with trees, fitted to it."),
        ("", {"model": 1.2}, "The model was not trained on it. Its answers are sharpened to this cohort."),
    ],
)
def test_a_report_says_what_its_answers_owe_to_the_cohort(
    shared_services: Services, owner: str, ward: StoredCohort, tuned: str, council: dict[str, float] | None, said: str
) -> None:
    memory = memory_of(shared_services, owner, ward)
    loaded = loading.load(owner, keep(shared_services, owner, ward, memory.start({"age": 71.0})).id)
    assert loaded.conditioned is not None
    release = replace(memory.release, tuned_on=ward.content_hash if tuned == "here" else tuned)
    record = replace(loaded.record, council=council and Recipe(council))
    conditioned = replace(loaded.conditioned, memory=replace(loaded.conditioned.memory, release=release))
    made = report.make(replace(loaded, record=record, conditioned=conditioned))
    assert any(limit.endswith(f"treated as they were. {said}") for limit in made.limits)
    heard = {"trees": "general with trees", "sharpened": "general sharpened to this cohort"}
    assert dict(made.facts)["Model"] == next((words for key, words in heard.items() if key in said), "general")


def test_a_report_says_nothing_of_a_model_that_is_gone(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    memory = memory_of(shared_services, owner, ward)
    loaded = loading.load(owner, keep(shared_services, owner, ward, memory.start({"age": 71.0})).id)
    limits = report.make(replace(loaded, conditioned=None, absent="The model is gone.")).limits
    assert not any("trained on" in limit for limit in limits)
