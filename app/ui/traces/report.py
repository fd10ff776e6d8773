"""The content of a printable report; `report_html` and `report_pdf` draw it.

It holds plain text and numbers, no markup; each renderer escapes everything in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from app.ui import labels, posterior_words, wording
from app.ui.belief_curve import BeliefCurve, belief_curve
from app.ui.traces.loading import LoadedTrace
from l2m_core.answering.release import UNTOLD
from l2m_core.step_through.events import fold
from l2m_core.step_through.words import RESEARCH_ONLY

PAID_ONCE = "Cost: results of a panel that were recorded together were paid once."
MOST_LINES = 5  # classes in the chart; a table has them all
REASONS = {
    "unavailable": "not available",
    "declined": "declined",
    "pending": "pending",
}


@dataclass(frozen=True)
class Grid:
    """A table. widths: of its columns, relative; numeric: columns that are set to the right."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    widths: tuple[float, ...]
    numeric: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class StepRow:
    """One event as tables show it. undone_by: the number of the event that undid it."""

    number: int
    time: str
    what: str
    suggested: str
    regret: float | None
    answer: str
    spent: float
    undone_by: int | None


@dataclass(frozen=True)
class Report:
    title: str
    banner: str
    answer: str
    facts: tuple[tuple[str, str], ...]
    curve: BeliefCurve | None
    grids: tuple[Grid, ...]
    limits: tuple[str, ...]
    fingerprints: tuple[tuple[str, str], ...]


def make(loaded: LoadedTrace, now: datetime | None = None) -> Report:
    record, trace, outcome = loaded.record, loaded.trace, loaded.schema.outcome
    state = fold(loaded.events)
    began, ended = loaded.events[0].at, loaded.events[-1].at
    tests, against = len(state.acquired), wording.against_advice(loaded.tests_against_advice)
    facts = (
        ("Cohort", f"{record.cohort.name}, version {record.cohort.version}"),
        ("Outcome", labels.name_with_unit(outcome.name, outcome.unit)),
        ("Model", record.answering(trace.model) if trace.model else "not installed where this report was made"),
        ("Recorded", f"{time_text(began)} to {time_text(ended)} UTC"),
        ("State", "stopped" if state.stopped else "not stopped"),
        ("Tests", f"{labels.counted(tests, 'test')}{against}, cost {labels.entered_text(trace.steps[-1].spent)}"),
        ("Report made", f"{now or datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"),
    )
    grids = (_classes(loaded), _steps(loaded), _known(loaded), _missing(loaded))
    return Report(
        loaded.label,
        RESEARCH_ONLY,
        posterior_words.sentence(outcome, trace.steps[-1].posterior),
        facts,
        _curve(loaded),
        tuple(grid for grid in grids if grid.rows),
        _limits(loaded),
        _fingerprints(loaded),
    )


def time_text(at: str) -> str:
    """A recorded time in UTC, to the second."""
    time = datetime.fromisoformat(at)
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _curve(loaded: LoadedTrace) -> BeliefCurve | None:
    """After each event that counts; None where a prediction was not recorded."""
    steps = loaded.counting
    if not all(step.posterior for step in steps):
        return None
    events, posteriors = [step.event for step in steps], [step.posterior for step in steps]
    return belief_curve(loaded.schema.outcome, events, posteriors, MOST_LINES)


def _classes(loaded: LoadedTrace) -> Grid:
    """All classes, likeliest first. Two classes need no table: the sentence at the top says both."""
    outcome, steps = loaded.schema.outcome, loaded.trace.steps
    began, ended = steps[0].posterior, steps[-1].posterior
    rows = []
    if outcome.kind == "multiclass" and ended:
        for name in sorted(ended, key=lambda name: -ended[name]):
            start = posterior_words.number(outcome, began, name)
            rows.append((labels.plain(name), start, posterior_words.number(outcome, ended, name)))
    return Grid(
        "All classes", (labels.plain(outcome.name), "At the start", "At the end"), tuple(rows), (64, 18, 18), (1, 2)
    )


def step_rows(loaded: LoadedTrace) -> tuple[StepRow, ...]:
    undone, steps = loaded.undone_by, zip(loaded.trace.steps, loaded.trace.regrets, strict=True)
    return tuple(
        StepRow(
            number,
            time_text(step.event.at),
            wording.event(loaded.schema, step.event),
            suggested_in_words(step.event.suggested, number in loaded.against_advice),
            regret,
            posterior_words.short(loaded.schema.outcome, step.posterior),
            step.spent,
            undone.get(number),
        )
        for number, (step, regret) in enumerate(steps)
    )


def _steps(loaded: LoadedTrace) -> Grid:
    outcome = loaded.schema.outcome
    several = outcome.kind == "multiclass"
    rows = step_rows(loaded)
    first = len("2026-01-01 ") if len({row.time[:10] for row in rows}) == 1 else 0  # one day alone stands above
    cells = tuple(
        (
            str(row.number),
            row.time[first:],
            row.what if row.undone_by is None else f"{row.what} (undone by step {row.undone_by})",
            row.suggested,
            regret_text(row.regret),
            row.answer,
            labels.entered_text(row.spent),
        )
        for row in rows
    )
    return Grid(
        "Step by step",
        (
            "Step",
            "Time (UTC)",
            "What happened",
            "Suggested",
            "Regret (nats)",
            labels.short(posterior_words.column(outcome), 40),
            "Cost",
        ),
        cells,
        (7, 11, 28, 15, 9, 22, 8) if several else (7, 11, 34, 17, 10, 13, 8),
        (0, 4, 6) if several else (0, 4, 5, 6),
        "Regret: the expected gain of the suggested test minus that of the one done instead; 0 where the suggestion was "
        "followed, empty where nothing was measured.",
    )


def suggested_in_words(suggested: str | None, is_against_advice: bool) -> str:
    """The test that ranked first; before a result that came against the advice: 'stop, else albumin'."""
    name = labels.plain(suggested or "")
    return f"stop, else {name}" if is_against_advice and name else name


def regret_text(regret: float | None) -> str:
    if regret is None:
        return ""
    if 0 < abs(regret) < 0.0005:
        return "<0.001" if regret > 0 else ">−0.001"
    if regret == 0:
        return "0"
    return f"{regret:.3f}".replace("-", "−")


def _known(loaded: LoadedTrace) -> Grid:
    state, schema = fold(loaded.events), loaded.schema
    measured = {name for action in state.acquired for name in action}
    rows = []
    for name in schema.used:
        if name in state.values:
            feature = schema.feature(name)
            value = wording.value(schema, name, state.values[name], state.limits.get(name))
            flag = wording.reference_flag(feature, state.values[name])
            cost = labels.entered_text(feature.cost) if name in measured else ""
            rows.append((labels.plain(name), value, flag, wording.reference_text(feature), cost))
    # The costs of the table add up to more than the step-through cost where results came together.
    note = PAID_ONCE if any(len(action) > 1 for action in state.acquired) and any(row[4] for row in rows) else ""
    return Grid(
        "What is known", ("Feature", "Value", "", "Reference", "Cost"), tuple(rows), (34, 26, 10, 22, 8), (4,), note
    )


def _missing(loaded: LoadedTrace) -> Grid:
    """The inputs that the prediction was made without."""
    state, schema, gains = fold(loaded.events), loaded.schema, loaded.trace.steps[-1].gains
    support = {}
    if loaded.conditioned:
        cohort = loaded.conditioned.memory.cohort
        support = dict(zip(cohort.names, cohort.r.sum(axis=0).tolist(), strict=True))
    rows = []
    for name in sorted(schema.used, key=lambda name: -gains.get(name, -float("inf"))):
        if name in state.values:
            continue
        feature = schema.feature(name)
        why = REASONS.get(state.statuses.get(name, ""), "not measured" if feature.role == "acquirable" else "not given")
        gain = labels.gain(gains[name]) if name in gains else ""
        cost = labels.entered_text(feature.cost) if feature.role == "acquirable" else ""
        rows.append((labels.plain(name), why, gain, cost, str(support.get(name, ""))))
    return Grid(
        "What is not known",
        ("Feature", "Why", "Expected gain (nats)", "Cost", "Cohort rows with it"),
        tuple(rows),
        (38, 20, 18, 8, 16),
        (2, 3, 4),
    )


def _limits(loaded: LoadedTrace) -> tuple[str, ...]:
    state = fold(loaded.events)
    found = [loaded.absent] if loaded.absent else list(loaded.conditioned.memory.notes if loaded.conditioned else ())
    if state.limits:
        names = ", ".join(labels.plain(name) for name in state.limits)
        found.append(f"Beyond a detection limit, the limit itself was used as the value: {names}.")
    return (
        *found,
        f"Answers hold for patients like those in the cohort, treated as they were.{_of_training(loaded)}",
        "Expected gain is how much less surprised one would be by the outcome, in nats of log loss. It is not benefit to "
        "the patient.",
        "If a test was ordered in the cohort because of something that is not in the table, what it seems to tell can be "
        "biased.",
        "Costs, ranges and stopping rules are those stated in the schema and by the user.",
    )


def _of_training(loaded: LoadedTrace) -> str:
    """What the answers owe to the cohort's own outcomes; nothing where the model is not there to tell."""
    if loaded.conditioned is None:
        return ""
    tuned_on, council = loaded.conditioned.memory.release.tuned_on, loaded.record.council
    if tuned_on == UNTOLD:
        model = "The model was fine-tuned, and does not say on which cohort."
    else:
        model = f"The model was {'fine-tuned' if tuned_on == loaded.trace.cohort_hash else 'not trained'} on it."
    if council is None:
        return f" {model}"
    heard = (
        f"It is heard {council.in_brief}, fitted to it" if council.members else f"Its answers are {council.in_brief}"
    )
    return f" {model} {heard}."


def _fingerprints(loaded: LoadedTrace) -> tuple[tuple[str, str], ...]:
    record = loaded.record
    events = labels.counted(record.length, "event")
    changes = len(record.rules_set)
    of_rules = f", {changes} of them of the rules for ranking and stopping" if changes else ""
    software = ", ".join(f"{name} {version}" for name, version in loaded.trace.versions.items())
    return (
        ("Model", record.step_through.model_fingerprint),
        ("Cohort", record.step_through.cohort_hash),
        *([("Council", f"{record.council.in_words}, seed {record.council.seed}")] if record.council else []),
        ("Software", software),
        *([("Computed on", loaded.trace.device)] if loaded.conditioned else []),
        ("Step-through", record.id),
        ("Chain of events", f"{events}{of_rules}, head {record.step_through.head_hash}"),
    )
