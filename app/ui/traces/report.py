"""What a printable report says of a step-through; how it looks is for `report_html` and `report_pdf`.

Only plain text and numbers: nothing in here is markup, so each of the two escapes everything in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from app.ui import charts, inputs, labels
from app.ui.notices import RESEARCH_ONLY
from app.ui.step_through import wording
from app.ui.step_through.belief import most_believed
from app.ui.traces import answers
from app.ui.traces.loading import LoadedTrace
from l2m_core.step_through.events import Event, fold

MOST_LINES = 5  # classes in the chart; a table has them all
# Of the lines, with the signs of `charts`: the theme's on white, since a report is for paper.
COLOURS = ("#0b6b7d", "#7b8a92", "#b4540a", "#5b4b8a", "#2f7d4f", "#8c3b52", "#4a5a63", "#a0832a", "#356a9c", "#6b6b6b")
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
class Line:
    """A number after each event. kind: of its sign and colour, where it is one of several."""

    name: str
    values: tuple[float, ...]
    kind: int = 0

    @property
    def sign(self) -> str:
        return charts.SIGNS[self.kind % len(charts.SIGNS)]

    @property
    def colour(self) -> str:
        return COLOURS[self.kind % len(COLOURS)]


@dataclass(frozen=True)
class Curve:
    """How what is believed moved: its name, a line for each number, what was learned at each event, and the axis."""

    name: str
    lines: tuple[Line, ...]
    learned: tuple[str, ...]
    low: float
    high: float
    percent: bool

    def tick(self, value: float) -> str:
        return labels.percent(value) if self.percent else labels.number(value)

    def places(self, line: Line) -> tuple[tuple[float, float], ...]:
        """Each point as shares of the width and of the height, from the lower left."""
        span = (self.high - self.low) or 1.0
        last = max(1, len(line.values) - 1)
        return tuple((number / last, (value - self.low) / span) for number, value in enumerate(line.values))

    @property
    def moves(self) -> str:
        """In words, for those who cannot see it."""
        return "; ".join(
            f"{line.name}: from {self.tick(line.values[0])} to {self.tick(line.values[-1])}" for line in self.lines
        )


@dataclass(frozen=True)
class Report:
    title: str
    banner: str
    answer: str
    facts: tuple[tuple[str, str], ...]
    curve: Curve | None
    grids: tuple[Grid, ...]
    limits: tuple[str, ...]
    fingerprints: tuple[tuple[str, str], ...]


def make(loaded: LoadedTrace, now: datetime | None = None) -> Report:
    record, trace, outcome = loaded.record, loaded.trace, loaded.schema.outcome
    state = fold(loaded.events)
    began, ended = loaded.events[0].at, loaded.events[-1].at
    tests = len(state.acquired)
    facts = (
        ("Cohort", f"{record.cohort.name}, version {record.cohort.version}"),
        ("Outcome", labels.with_unit(outcome.name, f"({outcome.unit})" if outcome.unit else "")),
        ("Model", trace.model or "not installed where this report was made"),
        ("Recorded", f"{moment_text(began)} to {moment_text(ended)} UTC"),
        ("State", "stopped" if state.stopped else "not stopped"),
        ("Tests", f"{tests} {'test' if tests == 1 else 'tests'}, cost {trace.steps[-1].spent:g}"),
        ("Report made", f"{now or datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"),
    )
    grids = (_classes(loaded), _steps(loaded), _known(loaded), _missing(loaded))
    return Report(
        loaded.label,
        RESEARCH_ONLY,
        answers.sentence(outcome, trace.steps[-1].posterior),
        facts,
        curve(loaded),
        tuple(grid for grid in grids if grid.rows),
        _limits(loaded),
        _fingerprints(loaded),
    )


def moment_text(at: str) -> str:
    """A recorded moment in UTC, to the second."""
    moment = datetime.fromisoformat(at)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def curve(loaded: LoadedTrace) -> Curve | None:
    """The leading number after each event that counts; of several classes, all that were ever likely."""
    outcome = loaded.schema.outcome
    steps = loaded.counting
    if not all(step.posterior for step in steps):
        return None
    learned = tuple(wording.learned(step.event) for step in steps)
    if outcome.kind == "multiclass":
        shown = most_believed(outcome, [step.posterior for step in steps], MOST_LINES)
        lines = tuple(
            Line(labels.plain(name), tuple(step.posterior[name] for step in steps), outcome.classes.index(name))
            for name in shown
        )
        return Curve(f"Probability of {labels.plain(outcome.name)}", lines, learned, 0.0, 1.0, True)
    key = answers.leading(outcome, steps[-1].posterior)
    name, values = answers.name_of(outcome, key), tuple(step.posterior[key] for step in steps)
    percent = outcome.kind != "continuous"
    low, high = (0.0, 1.0) if percent else _roomy(values)
    return Curve(name, (Line(name, values),), learned, low, high, percent)


def _roomy(values: tuple[float, ...]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.2 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _classes(loaded: LoadedTrace) -> Grid:
    """All classes, likeliest first. Two of them need no table: the answer says it."""
    outcome, steps = loaded.schema.outcome, loaded.trace.steps
    began, ended = steps[0].posterior, steps[-1].posterior
    rows = []
    if outcome.kind == "multiclass" and ended:
        for name in sorted(ended, key=lambda name: -ended[name]):
            start = answers.number(outcome, began, name)
            rows.append((labels.plain(name), start, answers.number(outcome, ended, name)))
    return Grid(
        "All classes", (labels.plain(outcome.name), "At the start", "At the end"), tuple(rows), (64, 18, 18), (1, 2)
    )


def _steps(loaded: LoadedTrace) -> Grid:
    outcome = loaded.schema.outcome
    several = outcome.kind == "multiclass"
    undone = loaded.undone_by
    moments = [moment_text(event.at) for event in loaded.events]
    if len({moment[:10] for moment in moments}) == 1:
        moments = [moment[11:] for moment in moments]  # the one day stands above
    rows = []
    for number, (step, regret) in enumerate(zip(loaded.trace.steps, loaded.trace.regrets, strict=True)):
        what = wording.event(loaded.schema, step.event)
        if number in undone:
            what += f" (undone by step {undone[number]})"
        rows.append(
            (
                str(number),
                moments[number],
                what,
                _suggested(step.event),
                regret_text(regret),
                answers.short(outcome, step.posterior),
                f"{step.spent:g}",
            )
        )
    return Grid(
        "Step by step",
        (
            "Step",
            "Time (UTC)",
            "What happened",
            "Suggested",
            "Regret (nats)",
            labels.short(answers.column(outcome), 40),
            "Cost",
        ),
        tuple(rows),
        (7, 11, 28, 15, 9, 22, 8) if several else (7, 11, 34, 17, 10, 13, 8),
        (0, 4, 6) if several else (0, 4, 5, 6),
        "Regret: the expected gain of the suggested test minus that of the one done instead; 0 where the suggestion was "
        "followed, empty where nothing was measured.",
    )


def _suggested(event: Event) -> str:
    return labels.plain(event.suggested) if event.suggested else ""


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
            flag = inputs.reference_flag(feature, state.values[name])
            cost = f"{feature.cost:g}" if name in measured else ""
            rows.append((labels.plain(name), value, flag, inputs.reference_text(feature), cost))
    return Grid("What is known", ("Feature", "Value", "", "Reference", "Cost"), tuple(rows), (34, 26, 10, 22, 8), (4,))


def _missing(loaded: LoadedTrace) -> Grid:
    """Inputs that the answer was given without."""
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
        rows.append((labels.plain(name), why, gain, f"{feature.cost:g}", str(support.get(name, ""))))
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
        "Answers hold for patients like those in the cohort, treated as they were. The model was not trained on it.",
        "Expected gain is how much less surprised one would be by the outcome, in nats of log loss. It is not benefit to "
        "the patient.",
        "If a test was ordered in the cohort because of something that is not in the table, what it seems to tell can be "
        "biased.",
        "Costs, ranges and stopping rules are those stated in the schema and by the user.",
    )


def _fingerprints(loaded: LoadedTrace) -> tuple[tuple[str, str], ...]:
    record = loaded.record
    events = f"{record.length} event{'s' if record.length != 1 else ''}"
    changes = len(record.rules_set)
    of_rules = f", {changes} of them of the rules for ranking and stopping" if changes else ""
    software = ", ".join(f"{name} {version}" for name, version in loaded.trace.versions.items())
    return (
        ("Model", record.step_through.model_fingerprint),
        ("Cohort", record.step_through.cohort_hash),
        ("Software", software),
        ("Step-through", record.id),
        ("Chain of events", f"{events}{of_rules}, head {record.step_through.head_hash}"),
    )
