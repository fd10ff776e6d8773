"""The evidence: first in sentences, then in charts, each with its numbers."""

from __future__ import annotations

import json
from functools import partial

import pandas as pd
import streamlit as st

from app.store import StoredCohort, StoredEvidence
from app.streamlit_contact.placeholders import Block
from app.ui import charts, downloads, labels, notices
from app.ui.charts import evidence_charts as drawings
from app.ui.evidence import standalone
from app.ui.metrics import boxes, metric
from l2m_core.evidence import Evidence
from l2m_core.evidence.fixed_order import FEWEST_RECORDED
from l2m_core.evidence.sentences import (
    LABELS,
    Sentence,
    after_tests,
    at_threshold,
    formula,
    grade_in_words,
    what_of_groups,
)

ICONS = {
    "good": ":green[:material/check_circle:]",
    "open": ":gray[:material/help:]",
    "bad": ":red[:material/warning:]",
    "note": ":gray[:material/info:]",
}
RECALIBRATED = -1  # the moment of the calibration chart that is no number of tests


def show(stored: StoredCohort, kept: StoredEvidence, evidence: Evidence) -> None:
    _grade(evidence)
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
        _head_to_head(evidence)
    with right:
        _decisions(evidence)
    left, right = st.columns(2, gap="large")
    with left:
        _calibration(evidence)
    with right:
        _groups(evidence)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Cost against log loss", anchor=False)
        st.caption("Lower is better, further left is cheaper. Costs are those of the schema; a panel is paid once.")
        charts.draw(drawings.by_cost(evidence.curves, unit), "evidence-cost")
    with right:
        st.subheader("Which tests the model's order takes, and when", anchor=False)
        st.caption("Share of the patients for whom each test is taken at each step.")
        charts.draw(drawings.choices(evidence), "evidence-choices")
    st.subheader("Was the test recorded?", anchor=False)
    st.caption("A test that was not recorded cannot be judged: the next best recorded one was taken instead.")
    charts.draw(drawings.wishes(evidence.wishes, evidence.rows), "evidence-wishes")
    _details(stored, kept, evidence)


def _grade(evidence: Evidence) -> None:
    found = evidence.grade
    severity = {"strong": "success", "fair": "info"}.get(found.word, "warning")
    notices.show(severity, grade_in_words(found))


def _metrics(evidence: Evidence) -> None:
    curve, end = evidence.shown_voice, evidence.calibration[-1]
    score = "auroc" if evidence.kind != "continuous" else "crps"
    unit = evidence.unit if score == "crps" else ""
    first, last = curve.scores[score][0], curve.scores[score][-1]
    tests = after_tests(evidence)
    with boxes():
        _metric("Rows predicted", f"{evidence.asked:,}", f"of {evidence.rows:,}, in {evidence.folds} folds")
        _metric(
            f"Log loss {tests}",
            f"{curve.loss[-1].value:.3f}",
            f"{curve.loss[0].value:.3f} before any; base rate {evidence.base.value:.3f}",
        )
        known = last.value == last.value
        value, low, high, before = map(labels.predicted, (last.value, last.low, last.high, first.value))
        _metric(
            f"{drawings.NAMES[score]} {tests}",
            labels.with_unit(value, unit) if known else "—",
            f"{low} to {high}; {before} before any" if known else "one class only",
        )
        _metric("Calibration error", f"{100 * end.error:.1f} points", f"{100 * end.by_chance:.1f} by chance alone")


def _metric(label: str, value: str, detail: str) -> None:
    metric(label, labels.plain(value), labels.markdown(detail))


def _say(sentence: Sentence) -> None:
    st.markdown(f"{ICONS[sentence.verdict]} **{standalone.SAYS[sentence.verdict]}.** {labels.markdown(sentence.text)}")


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
    of_fold = "" if evidence.areas_pooled else " of the same fold"
    if score != "auroc":
        st.caption("Error of the prediction in the outcome's own unit: lower is better.")
    elif evidence.kind == "binary":
        st.caption(f"How well patients{of_fold} with and without the outcome are told apart: 0.5 by chance, 1 at best.")
    else:
        st.caption(
            f"How well patients of a class are told apart from all others{of_fold}, averaged over the classes: "
            "0.5 by chance, 1 at best."
        )
    charts.draw(drawings.by_tests(evidence.curves, score, evidence.unit if score != "auroc" else ""), "evidence-scores")


def _head_to_head(evidence: Evidence) -> None:
    st.subheader("Head to head", anchor=False)
    if len(evidence.voices) < 2:
        st.caption("Nothing was heard beside the general model: see the settings.")
        return
    st.caption(
        "Log loss of each predictor, all fitted to the same rows and knowing the same of each patient, in the model's "
        "order, which is the council's where one is heard. Lower is better."
    )
    charts.draw(drawings.by_voice(evidence), "evidence-voices")


def _decisions(evidence: Evidence) -> None:
    head = _head("Acting from a threshold on")
    if not evidence.decisions_at:
        st.caption("A continuous outcome has no probability to act on.")
        return
    curve = evidence.decisions_at[0]
    if len(evidence.decisions_at) > 1:
        names = [each.outcome for each in evidence.decisions_at]
        chosen = head.selectbox(
            "Outcome", names, key="evidence-acted-on", format_func=labels.plain, label_visibility="collapsed"
        )
        curve = evidence.decisions_at[names.index(str(chosen))]
    threshold = head.number_input(
        "Threshold (%)",
        1,
        99,
        _first_threshold(evidence, curve.outcome),
        key=f"evidence-threshold-{labels.plain(curve.outcome)}",
        help="The probability from which on you would act. At 20%, one missed patient counts as much as four needless acts.",
    )
    share = (threshold or 50) / 100
    _say(at_threshold(curve, share, evidence.shown_voice.label(evidence.kind)))
    charts.draw(drawings.decision_curve(curve, evidence, share), "evidence-decisions")


def _first_threshold(evidence: Evidence, outcome: str) -> int:
    """A whole percent near the outcome's share."""
    return min(99, max(1, round(100 * standalone.share_of(evidence, outcome))))


def _groups(evidence: Evidence) -> None:
    st.subheader("Calibration in groups of patients", anchor=False)
    if not evidence.groups:
        st.caption(
            "None were judged: nothing that is known at the start makes groups of enough patients, or an earlier version "
            "gathered this evidence."
        )
        return
    st.caption(
        f"By what is known at the start, numbers in thirds: {labels.markdown(what_of_groups(evidence))} "
        f"{after_tests(evidence)}, and what was observed. ⚠ marks groups whose interval, corrected for their number, "
        f"leaves the prediction out. {standalone.LEFT_OUT}"
    )
    is_share = evidence.kind != "continuous"
    table = pd.DataFrame(
        {
            "": ["⚠" if group.is_off else "" for group in evidence.groups],
            "feature": [group.feature for group in evidence.groups],
            "group": [group.group for group in evidence.groups],
            "rows": [group.rows for group in evidence.groups],
            "predicted": [group.predicted for group in evidence.groups],
            "observed": [group.observed for group in evidence.groups],
            "low": [group.low for group in evidence.groups],
            "high": [group.high for group in evidence.groups],
        }
    )
    whole = table[["predicted", "observed"]].abs().max(axis=None) >= 100  # as sentences tell such numbers
    look = st.column_config.NumberColumn(format="percent" if is_share else "%.0f" if whole else "%.3g")
    st.dataframe(
        table,
        hide_index=True,
        key="evidence-groups",
        height=min(320, 38 + 35 * len(table)),
        alt="Predicted and observed outcomes in groups of patients",
        column_config=dict.fromkeys(("predicted", "observed", "low", "high"), look),
    )


def _calibration(evidence: Evidence) -> None:
    head = _head("Calibration")
    moments = {0: "before any", evidence.budget: f"after up to {evidence.budget}"}
    if evidence.recalibrated is not None:
        moments[RECALIBRATED] = "recalibrated"
    picked = head.segmented_control(
        "Tests",
        list(moments),
        default=evidence.budget,
        key=f"evidence-moment-{evidence.budget}",
        required=True,
        format_func=moments.__getitem__,
        label_visibility="collapsed",
    )
    recalibrated = evidence.recalibrated if picked == RECALIBRATED else None
    moment = evidence.budget if picked is None or recalibrated is not None else int(picked)
    found = evidence.calibration[moment] if recalibrated is None else recalibrated.calibration
    st.caption(
        f"On the dotted line, what is predicted is what happens. Off by {100 * found.error:.1f} percentage points on "
        f"average; {100 * found.by_chance:.1f} by chance alone."
        + (
            ""
            if recalibrated is None
            else f" Each fold by what happened in the others; from all: {_formula(evidence)}."
        )
    )
    charts.draw(drawings.calibration(found, evidence), "evidence-calibration")


def _formula(evidence: Evidence) -> str:
    found = evidence.recalibrated
    return "" if found is None else labels.markdown(formula(evidence, found))


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
        name, act = downloads.file_name(stored.name, "evidence", ending="json"), ("evidence exported", stored.id)
        downloads.button(
            "Figures as JSON",
            lambda: json.dumps(evidence.to_data(), indent=1),
            name,
            "application/json",
            "evidence-json",
            act,
        )
        text_name = name.removesuffix("json") + "txt"
        downloads.button("Summary as text", evidence.text, text_name, "text/plain", "evidence-text", act)
        page_name = name.removesuffix("json") + "html"
        make = partial(standalone.to_html, stored, kept, evidence)
        downloads.button("Page that stands alone", make, page_name, "text/html", "evidence-html", act)
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
