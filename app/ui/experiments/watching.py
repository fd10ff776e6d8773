"""Shows one job: its progress, curves, log and actions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import streamlit as st

from app.host import services
from app.jobs import evidence_job, folders, releasing, study_jobs, training_job, training_run
from app.store import Job
from app.streamlit_contact.placeholders import placeholder
from app.ui import charts, downloads, labels, notices, state
from app.ui.charts import training_charts as drawings
from app.ui.experiments.starting import WATCHED, title
from app.ui.metrics import boxes, metric

SECTION = "experiments-watch"
BOX = "experiments-job-box"
STATES = {
    "queued": (":material/hourglass_empty:", "Waiting"),
    "running": (":material/play_circle:", "Running"),
    "done": (":material/check_circle:", "Finished"),
    "failed": (":material/error:", "Failed"),
    "cancelled": (":material/stop_circle:", "Stopped"),
    "crashed": (":material/error:", "Ended unexpectedly"),
}
USES = (
    ("Step through with it", ":material/footprint:", "views/step_through.py", "start-model"),
    ("Gather evidence on it", ":material/query_stats:", "views/evidence.py", "evidence-model"),
)
"""Label, icon, page, and the key of the box in which that page asks for a model."""
RATE_SECONDS = 60.0  # the newest part of the record that the rate is taken from
MOST_SHOWN = 300_000  # characters of a result


def jobs_of(owner: str) -> tuple[Job, ...]:
    """The owner's jobs of this page, newest first."""
    return tuple(job for job in services.get().store.jobs.list(owner) if job.kind != evidence_job.KIND)


def show(owner: str, jobs: tuple[Job, ...]) -> None:
    if not jobs:
        st.caption("No job has been started yet.")
        return
    by_id = {job.id: job for job in jobs}
    if st.session_state.get(WATCHED) not in by_id:
        st.session_state[WATCHED] = jobs[0].id

    def name(identifier: str) -> str:
        job = by_id[identifier]
        return f"{STATES[job.state][1]}: {labels.plain(title(job))}, {job.created_at:%d %b, %H:%M} UTC"

    # Its names hold states. A box that stays keeps the name that was chosen, so one with new names takes its place.
    key = f"{WATCHED}-{hash(tuple(map(name, by_id)))}"
    st.session_state[BOX] = key
    watched = list(by_id).index(st.session_state[WATCHED])
    placeholder(WATCHED, key).selectbox(
        "Job", list(by_id), index=watched, key=key, format_func=name, on_change=_watch, args=(key,)
    )
    notices.show_waiting(SECTION)
    job = by_id[str(st.session_state[WATCHED])]
    if job.active:
        _live(owner, job.id, job.state)
    else:
        _show(job)


def _watch(key: str) -> None:
    if st.session_state.get(BOX) == key and key in st.session_state:  # a box that was replaced says nothing any more
        st.session_state[WATCHED] = st.session_state[key]


@st.fragment(run_every="2s")
def _live(owner: str, job_id: str, shown_as: str) -> None:
    runner = services.get().runner
    runner.pump()
    job = runner.store.jobs.get(owner, job_id)
    if job.state != shown_as:
        st.rerun()  # what can be done with it has changed, and so has the list
    _show(job)


def _show(job: Job) -> None:
    icon, word = STATES[job.state]
    st.markdown(f"#### {icon} {word}: {labels.markdown(title(job))}", anchors=False)
    folder = services.get().runner.folder(job)
    if job.state in ("failed", "crashed"):
        notices.show("error", job.message)
    elif job.state in ("done", "cancelled"):
        st.markdown(labels.markdown(job.message))
    elif job.cancel_requested:
        trains = job.kind == training_job.KIND
        st.markdown(f"Stopping; {'the trainer writes a checkpoint first' if trains else 'what is finished is kept'}.")
    elif job.state == "queued":
        before = services.get().runner.jobs_before(job)
        st.markdown(f"{labels.counted(before, 'job')} ahead of it." if before else "Starting.")
    _actions(job, folder)
    if _is_erased(job, folder):
        st.caption("Its files were erased: its log, and what it had written of checkpoints and results.")
        _settings(job)
        return
    if job.kind == training_job.KIND:
        _training(job, folder / training_run.RUN)
    elif job.active and job.state == "running":
        st.progress(job.progress, text=labels.markdown(job.message or "Starting."))
    if job.kind in (study_jobs.EVALUATE, study_jobs.REPRODUCE) and job.state == "done":
        _results(job, folder / study_jobs.OUT)
    _log(folder)
    _settings(job)


def _is_erased(job: Job, folder: Path) -> bool:
    """A job that never began has no files either."""
    return not job.active and job.started_at is not None and not folder.is_dir()


def _settings(job: Job) -> None:
    if "yaml" in job.config:
        with st.expander("Settings", key=f"job-settings-{job.id}"):
            st.code(job.config["yaml"], language=None)


# -- actions -----------------------------------------------------------------------------------------------


def _actions(job: Job, folder: Path) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if job.active:
            st.button(
                "Stop",
                key="job-stop",
                icon=":material/stop_circle:",
                on_click=_stop,
                args=(job.id,),
                disabled=job.cancel_requested,
            )
        elif job.state != "done":
            st.button(
                "Resume",
                key="job-resume",
                icon=":material/play_arrow:",
                type="primary",
                on_click=_resume,
                args=(job.id,),
                help="Begins anew." if _is_erased(job, folder) else "Continues where it stopped.",
            )
            if job.kind == training_job.KIND and training_run.has_checkpoint(folder / training_run.RUN):
                st.button(
                    "Make a model from the checkpoint",
                    key="job-release",
                    icon=":material/deployed_code:",
                    on_click=_release,
                    args=(job.id,),
                )
        elif job.kind in (training_job.KIND, releasing.KIND):
            _offer_use(job)
        if not job.active and folder.is_dir():
            with st.popover("Erase its files", icon=":material/delete:"):
                st.write("Its log, checkpoints and results are deleted. Models made from it are kept.")
                st.button("Erase permanently", key="job-erase", type="primary", on_click=_erase, args=(job.id,))


def _offer_use(job: Job) -> None:
    """Both pages open with the model that the job made; nothing is offered once it is deleted."""
    made = (job.result or {}).get("fingerprint")
    stored = services.get().stored_models(job.owner)
    name = next((name for name, model in stored.items() if model.fingerprint == made), None)
    if name is None:
        return
    for label, icon, page, key in USES:
        st.button(
            label, key=f"job-use-{key}", icon=icon, on_click=_use, args=(page, key, name, job.config.get("cohort"))
        )


def _use(page: str, key: str, model: str, cohort_id: str | None) -> None:
    """key: of the box in which the page asks for a model. cohort_id: the cohort that the model was fine-tuned on."""
    st.session_state[key] = model
    if cohort_id in {cohort.id for cohort in services.get().store.cohorts.list(state.owner())}:
        state.open_id(state.COHORT, cohort_id)
    state.open_id(state.STEP_THROUGH, None)  # else the one that is open would go on, with its own model
    st.switch_page(page)


def _stop(job_id: str) -> None:
    with notices.refusals(SECTION):
        services.get().runner.stop(state.owner(), job_id)


def _resume(job_id: str) -> None:
    if state.is_echo("resume job"):
        return
    with notices.refusals(SECTION):
        services.get().runner.resume(state.owner(), job_id)
        state.acted("resume job")


def _erase(job_id: str) -> None:
    with notices.refusals(SECTION):
        services.get().runner.erase(state.owner(), job_id)
        state.notify("success", "Its files are erased.", SECTION)


def _release(job_id: str) -> None:
    if state.is_echo("release job"):
        return
    with notices.refusals(SECTION):
        owner, here = state.owner(), services.get()
        of = here.store.jobs.get(owner, job_id)
        name = releasing.unique(of.config["name"], here.model_names(owner))
        made = here.runner.submit(owner, releasing.KIND, {"of": job_id, "name": name})
        state.acted("release job")
        st.session_state[WATCHED] = made.id


# -- progress --------------------------------------------------------------------------------------------------


def _training(job: Job, run: Path) -> None:
    settings = job.config["checked"]["settings"]
    steps = training_job.trainer.Checked(settings, ()).steps
    entries = training_run.read_log(run)
    step = training_run.last_step(run)
    rate = rate_of(entries)
    if job.state == "running":
        st.progress(min(1.0, step / max(1, steps)), text=f"Step {step:,} of {steps:,}")
    with boxes():
        metric("Steps", f"{step:,}", f"of {steps:,}")
        metric("Rate", f"{rate:.3g}" if rate else "—", "steps per second")
        left = (steps - step) / rate if rate and job.state == "running" else None
        metric("Time left", duration(left), f"{duration(seconds_of(entries))} so far")
        loss = next((entry["loss"] for entry in reversed(entries) if "loss" in entry), None)
        metric("Training loss", "—" if loss is None else f"{loss:.4f}", "nats, last log line")
    if not entries:
        if job.state == "running":
            st.caption("The first numbers come after a few steps.")
        return
    left_side, right_side = st.columns(2, gap="large")
    with left_side:
        st.subheader("Training loss", anchor=False)
        charts.draw(drawings.training_loss(entries, steps), f"loss-{job.id}")
    with right_side:
        st.subheader("Held-out tasks", anchor=False)
        held_out = drawings.held_out_loss(entries, steps)
        if held_out is None:
            st.caption("Not evaluated yet.")
        else:
            charts.draw(held_out, f"held-out-{job.id}")


def rate_of(entries: list[dict[str, Any]]) -> float | None:
    """Steps per second over the newest part of the record."""
    timed = [(entry["step"], float(entry["seconds"])) for entry in entries if "seconds" in entry]
    if len(timed) < 2:
        return None
    step, now = timed[-1]
    earlier = next(((s, t) for s, t in timed if now - t <= RATE_SECONDS and s < step), timed[0])
    return (step - earlier[0]) / (now - earlier[1]) if now > earlier[1] and step > earlier[0] else None


def seconds_of(entries: list[dict[str, Any]]) -> float:
    return float(entries[-1].get("seconds", 0.0)) if entries else 0.0


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "—"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# -- log and results --------------------------------------------------------------------------------------------------


def _log(folder: Path) -> None:
    text = folders.tail(folder)
    with st.expander("Log", key=f"log-{folder.name}"):
        if text:
            st.code(text, language=None, height=240, wrap_lines=True)
            st.caption(f"The last lines, as of {datetime.now(UTC):%H:%M:%S} UTC.")
        else:
            st.caption("The log is empty.")


def _results(job: Job, out: Path) -> None:
    for name in (job.result or {}).get("files", []):
        path = out / name
        if not path.is_file() or path.resolve().parent != path.parent.resolve():
            continue
        if path.suffix == ".md":
            text = path.read_text(encoding="utf-8")[:MOST_SHOWN]
            st.markdown("\n".join(line for line in text.splitlines() if not line.startswith("![")))
        downloads.button(
            name,
            path.read_bytes,
            Path(name).name,
            "application/octet-stream",
            f"result-{job.id}-{name}",
            ("result exported", job.id),
        )
