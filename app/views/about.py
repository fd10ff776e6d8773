"""About: limits, intended use, data protection, versions, licence."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import streamlit as st

import l2m_core
from app.host import services
from app.ui import labels, notices, state

PACKAGES = ("torch", "numpy", "pandas", "streamlit", "plotly", "sqlalchemy")


def show() -> None:
    st.title("About", anchor=False)
    notices.research_banner()
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("What it is for", anchor=False)
        st.markdown(
            "Learning to Measure reads a *cohort*, a table of earlier patients with holes in it and an outcome, and "
            "answers at every step: what to believe now, which test is expected to tell most about the outcome, and when "
            "to stop. One model, pretrained on synthetic tasks, reads your table as context; its weights stay as they are, "
            "and fine-tuning makes another model. Models that are fitted to your table's own rows are heard beside it, as "
            "far as they foresee rows left out.\n\n"
            "It is meant for **research and teaching**: to study the order of tests, to think a case through, to compare "
            "with how it was done. It ranks options and shows what each rests on. It never decides."
        )
        st.subheader("What it is not for", anchor=False)
        st.markdown(
            "- Care of patients, triage under time pressure, or any use as a medical device. It has not been evaluated "
            "for care.\n"
            "- Images, signals or free text. It reads single values.\n"
            "- Cohorts unlike your patients. Answers hold for patients like those in the table, treated as they were."
        )
        st.subheader("Limits to keep in mind", anchor=False)
        st.markdown(
            "- **Rarely measured tests.** A suggestion rests on the rows in which the test was done; the line below it "
            "says how many, overall and near this patient.\n"
            "- **Why values are missing.** If a test was ordered because of something not in the table, what it seems to "
            "tell can be biased. The Cohort page warns where measuring itself tells about the outcome.\n"
            "- **Gain** is the expected drop in log loss, in nats: how much less surprised one would be by the outcome. It "
            "is not benefit to the patient.\n"
            "- **Costs, turnaround and stopping rules** are yours to state. They were no part of the study that the "
            "method comes from, which took every test to cost the same and a fixed number of tests.\n"
            "- **The uncertainty band** says how far the answer moves when the cohort's rows are drawn again. It does not "
            "cover a wrong model, or a cohort that is unlike your patients."
        )
        st.subheader("Data protection", anchor=False)
        st.markdown(
            "Tables and step-throughs stay in this installation's database; nothing is sent anywhere, and no usage is "
            "reported. What you store is seen by this browser (or your sign-in) only, unless you share a cohort or a model. "
            "Addresses hold opaque ids, logs hold no values. Leave names and record numbers out of what you upload and of "
            "labels; deleting a cohort erases its data. A model that was fine-tuned on it carries traces of its patients: "
            "delete that too."
        )
    with right:
        st.subheader("Models", anchor=False)
        with notices.shown_refusals():
            owner = state.owner()
            for name in services.get().model_names(owner):
                with st.expander(labels.markdown(name)):
                    with notices.shown_refusals():
                        _model(owner, name)
        st.subheader("Versions", anchor=False)
        rows = {"learning-to-measure": l2m_core.__version__, "python": platform.python_version()}
        st.table({**rows, **{name: _version(name) for name in PACKAGES}}, border="horizontal", alt="Versions in use")
        st.caption("Licence: Apache-2.0")


def _model(owner: str, name: str) -> None:
    model = services.get().model(owner, name)
    st.caption(f"Fingerprint `{model.fingerprint[:16]}…`")
    st.markdown(model.release.trained.sentence)
    if model.card:
        st.markdown(labels.card(model.card))
    else:
        st.caption("This model comes without a card.")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


show()
