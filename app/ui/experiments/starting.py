"""The form that starts a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.host import services
from app.jobs import folders, releasing, study_jobs, templates, trainer, training_job, training_run
from app.store import Job
from app.ui import labels, notices, state

SECTION = "experiments-start"
TABS = "experiments-tabs"
WATCHED = "experiments-job"
FRESH = "fresh weights"


@dataclass(frozen=True)
class Task:
    """A job that can be started. kind: of the job in the queue."""

    name: str
    kind: str
    icon: str
    about: str


TASKS = {
    "predictor": Task(
        "Pretrain a predictor",
        training_job.KIND,
        ":material/model_training:",
        "Learns to predict any cohort from tasks drawn from a prior.",
    ),
    "gain": Task(
        "Teach the gain head",
        training_job.KIND,
        ":material/leaderboard:",
        "Learns how much each test is expected to tell, in nats; the predictor is not changed.",
    ),
    "policy": Task("Teach the policy head", training_job.KIND, ":material/route:", "Learns which test to take next."),
    "finetune": Task(
        "Fine-tune on a cohort", training_job.KIND, ":material/tune:", "Adapts a model to one of your cohorts."
    ),
    study_jobs.EVALUATE: Task(
        "Evaluate a model", study_jobs.EVALUATE, ":material/speed:", "Policies side by side on the same rows."
    ),
    study_jobs.REPRODUCE: Task(
        "Reproduce an experiment",
        study_jobs.REPRODUCE,
        ":material/science:",
        "One of the study's experiments: a table, a figure and a verdict.",
    ),
}


def show(owner: str) -> None:
    chosen = str(st.selectbox("What to do", list(TASKS), key="start-task", format_func=lambda name: TASKS[name].name))
    st.caption(TASKS[chosen].about)
    left, right = st.columns([1, 1.7], gap="large")
    with left:
        _ask_fields(owner, chosen)
    with right:
        _ask_settings(chosen)
    notices.show_waiting(SECTION)
    st.button("Start", key="start-job", type="primary", icon=":material/play_arrow:", on_click=_start, args=(chosen,))
    waiting = len(services.get().store.jobs.active())
    if waiting:
        at_once = services.get().settings.jobs_at_once
        st.caption(f"{labels.counted(waiting, 'job')} waiting or running on this installation; {at_once} at a time.")


# -- what is asked --------------------------------------------------------------------------------------------------


def _ask_fields(owner: str, chosen: str) -> None:
    """The fields beside the settings."""
    if chosen == study_jobs.EVALUATE:
        st.selectbox(
            "Model", list(services.get().model_names(owner)), key="start-evaluate-model", format_func=labels.plain
        )
    elif chosen == study_jobs.REPRODUCE:
        st.selectbox(
            "Experiment",
            study_jobs.experiments(),
            key="start-experiment",
            format_func=lambda name: name.replace("_", " "),
        )
        st.segmented_control(
            "Scale",
            ["small", "study"],
            default="small",
            key="start-scale",
            required=True,
            help="small: minutes; study: as in the study, hours to days",
        )
    else:
        choices = [*([FRESH] if chosen == "predictor" else []), *starts(owner)]
        st.selectbox("Start from", choices, key=f"start-from-{chosen}", format_func=labels.plain)
        if chosen == "finetune":
            cohorts = {cohort.id: cohort for cohort in services.get().store.cohorts.list(owner)}
            st.selectbox(
                "Cohort",
                list(cohorts),
                key="start-cohort-of-job",
                index=0 if cohorts else None,
                format_func=lambda i: f"{labels.plain(cohorts[i].name)}, version {cohorts[i].version}",
                placeholder="Open a cohort first",
            )
        st.text_input(
            "Name of the model",
            _free_name(owner, chosen),
            key=f"start-name-{chosen}",
            max_chars=releasing.LONGEST_NAME,
            help="It can be chosen under this name when the job is done.",
        )


def _ask_settings(chosen: str) -> None:
    if chosen in trainer.DECIDED:
        offered = {template.name: template.text for template in templates.of(chosen)}
        text = offered[str(st.selectbox("Config", list(offered), key=f"start-config-{chosen}"))]
    elif chosen == study_jobs.EVALUATE:
        text = study_jobs.TEMPLATE
    else:
        text = "# Settings that replace the scale's, one `name: value` per line.\n"
    st.text_area(
        "Settings (YAML)",
        text,
        key=_settings_key(chosen),
        height=300,
        help="Checked by the trainer before anything starts."
        if chosen in trainer.DECIDED
        else "The trainer checks them when the job begins.",
    )


def _settings_key(chosen: str) -> str:
    """Each config has its own text area, so that switching between configs loses nothing."""
    about = st.session_state.get("start-experiment" if chosen == study_jobs.REPRODUCE else f"start-config-{chosen}", "")
    return f"start-yaml-{chosen}-{about}"


def starts(owner: str) -> dict[str, dict[str, str]]:
    """Label → starting point: models, and earlier training jobs that have a checkpoint."""
    known: dict[str, dict[str, str]] = {}
    for name in services.get().model_names(owner):
        known[f"model {name}"] = {"from": training_job.FROM_MODEL, "name": name}
    for job in services.get().store.jobs.list(owner, training_job.KIND):
        folder = folders.folder_of(services.get().settings.jobs_dir, job.id) / training_run.RUN
        if job.config["job"] != "finetune" and training_run.has_checkpoint(folder):
            label = f"checkpoint of {title(job)}, {job.created_at:%d %b, %H:%M} UTC"
            if label in known:  # begun in the same minute
                label += f", {job.id[:8]}"
            known[label] = {"from": training_job.FROM_JOB, "name": job.id}
    return known


def _free_name(owner: str, chosen: str) -> str:
    base = {"predictor": "my predictor", "gain": "my gain", "policy": "my policy", "finetune": "my fine-tuned"}[chosen]
    return releasing.unique(base, services.get().model_names(owner))


# -- what was entered -----------------------------------------------------------------------------------------------


def entered(owner: str, chosen: str) -> dict[str, Any]:
    """The job's config, from the widgets at the press, which may be newer than the page drawn last."""
    now = st.session_state
    text = {"yaml": str(now.get(_settings_key(chosen)) or "")}
    if chosen == study_jobs.EVALUATE:
        return {"model": now["start-evaluate-model"], **text}
    if chosen == study_jobs.REPRODUCE:
        return {"experiment": now["start-experiment"], "scale": now.get("start-scale") or "small", **text}
    start = starts(owner).get(str(now.get(f"start-from-{chosen}")))
    cohort = {"cohort": now.get("start-cohort-of-job")} if chosen == "finetune" else {}
    return {"job": chosen, "init": start, **cohort, "name": now.get(f"start-name-{chosen}"), **text}


def _start(chosen: str) -> None:
    if state.is_echo("start job"):
        return
    with notices.refusals(SECTION):
        owner, kind = state.owner(), TASKS[chosen].kind
        config = entered(owner, chosen)
        if kind == training_job.KIND:
            config |= _checked(owner, config)
        elif kind == study_jobs.EVALUATE:
            study_jobs.options(config["yaml"])
        else:
            study_jobs.overrides(config["yaml"])
        job = services.get().runner.submit(owner, kind, config)
        state.acted("start job")
        # The page switches to the new job.
        st.session_state[WATCHED] = job.id
        st.session_state[TABS] = "Jobs"


def _checked(owner: str, config: Mapping[str, Any]) -> dict[str, Any]:
    here = services.get()
    if not here.runner.may_train(owner):
        return {}  # refused, in words, by the queue
    name = releasing.check_name(str(config["name"] or ""), here.model_names(owner))
    decided = training_job.decided(here, owner, config, here.settings.jobs_dir / "new")
    found = trainer.check(config["job"], config["yaml"], decided, here.settings)
    return {"name": name, "checked": {"settings": found.settings, "outcomes": list(found.outcomes)}}


def title(job: Job) -> str:
    if job.kind == training_job.KIND:
        return f"{TASKS[job.config['job']].name.lower()} ‘{job.config['name']}’"
    if job.kind == releasing.KIND:
        return f"make model ‘{job.config['name']}’"
    return f"{TASKS[job.kind].name.lower()} ({study_jobs.describe(job.config)})"
