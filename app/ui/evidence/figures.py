"""The evidence: first in sentences, then in charts, each with its numbers."""

from __future__ import annotations

import json

import pandas as pd
import streamlit as st

from app.store import StoredCohort, StoredEvidence
from app.streamlit_contact.placeholders import Block
from app.ui import charts, downloads, labels, notices
from app.ui.charts import evidence_charts as drawings
from app.ui.metrics import metric
from l2m_core.evidence import Evidence
from l2m_core.evidence.fixed_order import FEWEST_RECORDED
from l2m_core.evidence.sentences import LABELS, Sentence

ICONS = {
    "good": ":green[:material/check_circle:]",
    "open": ":gray[:material/help:]",
    "bad": ":red[:material/warning:]",
    "note": ":gray[:material/info:]",
}
SAYS = {"good": "Shown", "open": "Undecided", "bad": "Beware", "note": "Note"}


def show(stored: StoredCohort, kept: StoredEvidence, evidence: Evidence) -> None:
    _metrics(evidence)
    with st.container(border=True, gap="small"):
        for sentence in evidence.summary():
            _say(sentence)
    unit = "nats"
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Log loss by number of tests", anchor=False)
        st.caption("Lower is better. The same model predicts in every order. Bars: 95% intervals over patients.")
        charts.draw(drawings.by_tests(evidence.curves, "log loss", unit, evidence.base.value), "evidence-loss")
    with right:
        _scores(evidence)
    left, right = st.columns(2, gap="large")
    with left:
        _calibration(evidence)
    with right:
        st.subheader("Cost against log loss", anchor=False)
        st.caption("Lower is better, further left is cheaper. Costs are those of the schema; a panel is paid once.")
        charts.draw(drawings.by_cost(evidence.curves, unit), "evidence-cost")
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Which tests the model's order takes, and when", anchor=False)
        st.caption("Share of the patients for whom each test is taken at each step.")
        charts.draw(drawings.choices(evidence), "evidence-choices")
    with right:
        st.subheader("Was the test recorded?", anchor=False)
        st.caption("A test that was not recorded cannot be judged: the next best recorded one was taken instead.")
        charts.draw(drawings.wishes(evidence.wishes, evidence.rows), "evidence-wishes")
    _details(stored, kept, evidence)


def _metrics(evidence: Evidence) -> None:
    curve, end = evidence.curve, evidence.calibration[-1]
    score = "auroc" if evidence.kind != "continuous" else "crps"
    unit = evidence.unit if score == "crps" else ""
    first, last = curve.scores[score][0], curve.scores[score][-1]
    tests = f"after up to {labels.counted(evidence.budget, 'test')}"
    with st.grid(4, gap="small"):
        _metric("Rows predicted", f"{evidence.asked:,}", f"of {evidence.rows:,}, in {evidence.folds} folds")
        _metric(
            f"Log loss {tests}",
            f"{curve.loss[-1].value:.3f}",
            f"{curve.loss[0].value:.3f} before any; base rate {evidence.base.value:.3f}",
        )
        known = last.value == last.value
        _metric(
            f"{drawings.NAMES[score]} {tests}",
            labels.with_unit(f"{last.value:.3g}" if known else "—", unit),
            f"{first.value:.3g} before any; {last.low:.3g} to {last.high:.3g}" if known else "one class only",
        )
        _metric("Calibration error", f"{100 * end.error:.1f} points", f"{100 * end.by_chance:.1f} by chance alone")


def _metric(label: str, value: str, detail: str) -> None:
    metric(label, labels.plain(value), labels.markdown(detail))


def _say(sentence: Sentence) -> None:
    st.markdown(f"{ICONS[sentence.verdict]} **{SAYS[sentence.verdict]}.** {labels.markdown(sentence.text)}")


def _head(title: str) -> Block:
    """A heading with room for a control beside it, or below it in a narrow window."""
    head = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small")
    head.subheader(title, anchor=False, width="content")
    return head


def _scores(evidence: Evidence) -> None:
    scores = list(evidence.curve.scores)
    score = scores[0]
    if len(scores) > 1:
        head = _head(f"{drawings.NAMES[str(st.session_state.get('evidence-score') or score)]} by number of tests")
        picked = head.segmented_control(
            "Score",
            scores,
            default=scores[0],
            key="evidence-score",
            required=True,
            format_func=drawings.NAMES.__getitem__,
            label_visibility="collapsed",
        )
        score = str(picked or scores[0])
    else:
        st.subheader(f"{drawings.NAMES[score]} by number of tests", anchor=False)
    st.caption(
        "How well patients with and without the outcome are told apart: 0.5 by chance, 1 at best."
        if score == "auroc"
        else "Error of the prediction in the outcome's own unit: lower is better."
    )
    charts.draw(drawings.by_tests(evidence.curves, score, evidence.unit if score != "auroc" else ""), "evidence-scores")


def _calibration(evidence: Evidence) -> None:
    head = _head("Calibration")
    moments = {0: "before any", evidence.budget: f"after up to {evidence.budget}"}
    picked = head.segmented_control(
        "Tests",
        list(moments),
        default=evidence.budget,
        key=f"evidence-moment-{evidence.budget}",
        required=True,
        format_func=moments.__getitem__,
        label_visibility="collapsed",
    )
    found = evidence.calibration[evidence.budget if picked is None else int(picked)]
    st.caption(
        f"On the dotted line, what is predicted is what happens. Off by {100 * found.error:.1f} percentage points on "
        f"average; {100 * found.by_chance:.1f} by chance alone."
    )
    charts.draw(drawings.calibration(found, evidence), "evidence-calibration")


def _details(stored: StoredCohort, kept: StoredEvidence, evidence: Evidence) -> None:
    with st.expander("Differences between the orders, and the fixed orders"):
        st.caption(
            "Log loss of the model's order minus the other's, row by row, with 95% intervals: below 0 is better."
        )
        st.dataframe(
            _differences(evidence),
            hide_index=True,
            key="evidence-differences",
            alt="Differences in log loss between the model's order and the others, by number of tests",
        )
        st.caption(
            "The best fixed order was chosen for each fold on its context rows, never on the rows predicted. A test that "
            f"fewer than {FEWEST_RECORDED} of those rows have cannot be judged, and comes last."
        )
        orders = pd.DataFrame(
            {
                "fold": range(1, len(evidence.fixed_orders) + 1),
                "best fixed order": [" → ".join(order) for order in evidence.fixed_orders],
                "could not be judged": [", ".join(names) or "none" for names in evidence.unjudged],
            }
        )
        st.dataframe(orders, hide_index=True, key="evidence-orders", alt="The best fixed order of each fold")
    with st.container(horizontal=True, vertical_alignment="center"):
        name = downloads.file_name(stored.name, "evidence", ending="json")
        downloads.button(
            "Figures as JSON",
            lambda: json.dumps(evidence.to_data(), indent=1),
            name,
            "application/json",
            "evidence-json",
        )
        downloads.button(
            "Summary as text", evidence.text, name.removesuffix("json") + "txt", "text/plain", "evidence-text"
        )
        st.caption(
            f"Gathered {kept.created_at:%d %b %Y, %H:%M} UTC · cohort {kept.cohort_hash[:12]}… · model "
            f"{kept.model_fingerprint[:12]}… · {notices.RESEARCH_SHORT}"
        )


def _differences(evidence: Evidence) -> pd.DataFrame:
    table = pd.DataFrame({"tests": ["all, averaged", *map(str, range(evidence.budget + 1))]})
    for difference in evidence.differences:
        each = [difference.overall, *difference.by_step]
        table[f"against {LABELS[difference.order]}"] = [
            f"{e.value:+.3f} ({e.low:+.3f} to {e.high:+.3f})".replace("-", "−") for e in each
        ]
    return table
