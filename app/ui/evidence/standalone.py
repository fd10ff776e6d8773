"""The evidence as one HTML file that needs nothing else: for a paper's appendix, or for who answers for its use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from app.store import StoredCohort, StoredEvidence
from app.ui import labels
from app.ui.charts import Chart
from app.ui.charts import evidence_charts as drawings
from app.ui.html_page import page, terms, text
from l2m_core.evidence import Evidence
from l2m_core.evidence.groups import FEWEST_ROWS
from l2m_core.evidence.sentences import LABELS, after_tests, formula, grade_in_words, value_of_group, what_of_groups
from l2m_core.step_through import words

LEFT_OUT = f"Groups of fewer than {FEWEST_ROWS} of the rows asked are left out."
SAYS = {"good": "Shown", "open": "Undecided", "bad": "Beware", "note": "Note"}


def to_html(stored: StoredCohort, kept: StoredEvidence, evidence: Evidence) -> str:
    title = f"Evidence: {stored.name}, version {stored.version}"
    said = [f"<li><strong>{SAYS[s.verdict]}.</strong> {text(s.text)}</li>" for s in evidence.summary()]
    body = [
        "<ul>",
        *said,
        "</ul>",
        *_by_order(evidence),
        *_head_to_head(evidence),
        *_calibration(evidence),
        *_decisions(evidence),
        *_groups(evidence),
        *_about(kept, evidence),
    ]
    answer = grade_in_words(evidence.grade)
    return page(title, title, words.RESEARCH_ONLY, answer, body, "svg { max-height: 26rem; }\n")


def _by_order(evidence: Evidence) -> list[str]:
    heads = ["tests", *(LABELS[curve.order] for curve in evidence.curves)]
    steps = range(evidence.budget + 1)
    rows = [[str(t), *(_estimate(curve.loss[t]) for curve in evidence.curves)] for t in steps]
    drawn = drawings.by_tests(evidence.curves, "log loss", "nats", evidence.base.value)
    return ["<h2>Log loss by number of tests, in each order</h2>", _picture(drawn), _table(heads, rows)]


def _head_to_head(evidence: Evidence) -> list[str]:
    if len(evidence.voices) < 2:
        return []
    rows = [
        [voice.label(evidence.kind), _estimate(voice.overall), *(_estimate(each[-1]) for each in voice.scores.values())]
        for voice in evidence.voices
    ]
    scores = [f"{name.upper()} {after_tests(evidence)}" for name in evidence.voices[0].scores]
    return [
        "<h2>Head to head: the same rows, the same known values</h2>",
        _picture(drawings.by_voice(evidence)),
        _table(["", "log loss, averaged over the tests", *scores], rows),
    ]


def _calibration(evidence: Evidence) -> list[str]:
    end, found = evidence.calibration[-1], evidence.recalibrated
    rows = [["as predicted", f"{100 * end.error:.1f}", f"{100 * end.by_chance:.1f}", ""]]
    drawn = [_picture(drawings.calibration(end, evidence))]
    if found is not None:
        after = found.calibration
        how = formula(evidence, found)
        rows.append(["recalibrated", f"{100 * after.error:.1f}", f"{100 * after.by_chance:.1f}", how])
        drawn += ["<h3>Recalibrated</h3>", _picture(drawings.calibration(after, evidence))]
    return [
        f"<h2>Calibration {after_tests(evidence)}</h2>",
        *drawn,
        _table(["", "off by, in points", "by chance", "how"], rows),
    ]


def _decisions(evidence: Evidence) -> list[str]:
    made = []
    for curve in evidence.decisions_at:
        title = f"Net benefit of acting on '{curve.outcome}' from a threshold on"
        marked = share_of(evidence, curve.outcome)
        made += [f"<h2>{text(title)}</h2>", _picture(drawings.decision_curve(curve, evidence, marked))]
    return made


def share_of(evidence: Evidence, outcome: str) -> float:
    """How often the outcome is. As a threshold: there, acting on everybody and on nobody are equally good."""
    return evidence.asked_by_class[evidence.classes.index(outcome)] / max(1, evidence.asked)


def _picture(chart: Chart) -> str:
    assert chart.picture is not None
    return chart.picture()


def _groups(evidence: Evidence) -> list[str]:
    if not evidence.groups:
        return []
    rows = []
    for group in evidence.groups:
        ends = (group.predicted, group.observed, group.low, group.high)
        predicted, observed, low, high = (value_of_group(end, evidence) for end in ends)
        rows.append([group.feature, group.group, f"{group.rows:,}", predicted, f"{observed} ({low} to {high})"])
    heads = ["feature", "group", "rows", "predicted", "observed"]
    note = f"Held against what was observed: {what_of_groups(evidence)} {after_tests(evidence)}. "
    note += "Intervals are so wide that well calibrated predictions lie outside any of them 5 times of 100. "
    note += LEFT_OUT
    return ["<h2>Calibration in groups of patients</h2>", _table(heads, rows), f'<p class="note">{text(note)}</p>']


def _about(kept: StoredEvidence, evidence: Evidence) -> list[str]:
    facts = [
        ("Gathered", f"{kept.created_at:%d %b %Y, %H:%M} UTC"),
        ("Rows asked", f"{evidence.asked:,} of {evidence.rows:,}, in {evidence.folds} folds"),
        ("Cohort's content", kept.cohort_hash),
        ("Model", kept.model_fingerprint),
        *_settings(kept.settings),
    ]
    return ["<h2>How it was gathered</h2>", terms(facts)]


def _settings(kept: Mapping[str, Any]) -> list[tuple[str, str]]:
    """As the form asks for them; what an earlier version did not keep is left out."""
    words: dict[str, tuple[str, Callable[[Any], str]]] = {
        "budget": ("Tests, at most", str),
        "most_rows": ("Rows to predict, at most", "{:,}".format),
        "policy": ("The model ranked tests by", lambda policy: labels.POLICIES.get(policy, policy)),
        "patients": ("Rows of one patient share", lambda column: column or "nothing: each row is a different patient"),
        "council": ("The council was heard", _yes_or_no),
        "conventional": ("Compared with conventional models", _yes_or_no),
        "draws": ("Bootstrap samples behind each interval", "{:,}".format),
        "seed": ("Seed", str),
    }
    return [(label, shown(kept[name])) for name, (label, shown) in words.items() if name in kept]


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in heads)
    body = "\n".join(f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _estimate(found) -> str:
    return f"{found.value:z.3f} ({found.low:z.3f} to {found.high:z.3f})"
