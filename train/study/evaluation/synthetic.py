"""The synthetic suite: policies of one model on held-out tasks, where the truth is known."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from l2m_core.acquire.rollout import Rollout
from l2m_core.errors import ConfigError, RangeWarning
from l2m_core.learn.checkpoints import write_text
from l2m_core.metrics import paired_interval
from train.engines import fan_out
from train.study.evaluation.cells import Trial
from train.study.evaluation.exact import ExactTask, draw_exact
from train.study.evaluation.scores import informative_share, score
from train.study.evaluation.trial_runs import (
    MethodChoice,
    check_methods,
    could_be_had,
    load_model,
    refuse_if_all_failed,
    run_trial,
    scored,
)
from train.study.experiments.families import Family, draw
from train.study.markdown import markdown_table
from train.study.resumable_table import ResumableTable

SYNTHETIC_METHODS = ("l2m", "l2m_gain", "l2m_learned", "l2m_monte_carlo", "l2m_random")
EXACT = "exact"
FAMILIES = {
    "held_out_small": Family("held_out_small", prior="synthetic", features=5, context=80, test_rows=40),
    "held_out_middle": Family("held_out_middle", prior="synthetic", features=12, context=160, test_rows=40),
    "held_out_wide": Family("held_out_wide", prior="synthetic", features=24, context=160, test_rows=40),
    "held_out_continuous": Family(
        "held_out_continuous",
        prior="synthetic",
        settings={"outcome": "continuous"},
        features=12,
        context=160,
        test_rows=40,
    ),
    # Features that explain a few hundredths of the outcome: an order that is followed too trustingly is worse than none.
    "held_out_weak": Family(
        "held_out_weak",
        prior="synthetic",
        settings={"least_gain": 0.0, "temperature": [0.2, 0.7], "noiseless_share": 0.0, "max_classes": 2},
        features=12,
        context=100,
        test_rows=100,
    ),
    "bnn_plan": Family("bnn_plan", prior="bnn_plan", features=10, context=160, test_rows=40),
}
"""Their seeds follow from their names, which no training uses. Beside them, "exact": tasks with known information."""
KEYS = ("family", "task", "method", "model", "budget")


@dataclass(frozen=True)
class SyntheticJob:
    family: str
    task: int
    methods: tuple[str, ...]
    model: str
    fingerprint: str
    budget: int
    heads: tuple[tuple[str, str], ...] = ()
    """Names and folders of further models, whose learned policies are compared as `l2m_learned NAME`."""

    @property
    def method_models(self) -> list[tuple[str, str]]:
        """Each method with the fingerprint of the model that it asks."""
        own = [(method, self.fingerprint) for method in self.methods]
        return own + [(head_method(name), load_model(folder).fingerprint) for name, folder in self.heads]


def head_method(name: str) -> str:
    return f"l2m_learned {name}"


def read_heads(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    heads = tuple(tuple(text.split("=", 1)) for text in given)
    for head in heads:
        if len(head) != 2 or not all(head):
            raise ConfigError(
                f"--heads {head[0]!r} must read NAME=FOLDER, for example greedy=runs/policy_greedy/model."
            )
    return heads  # type: ignore[return-value]


def evaluate_synthetic(given: argparse.Namespace, command: str) -> str:
    methods = check_methods(given.methods or SYNTHETIC_METHODS)
    fingerprint = load_model(given.model).fingerprint
    table, heads = ResumableTable(given.partial / "synthetic.jsonl", KEYS), read_heads(given.heads)
    wanted = [
        SyntheticJob(family, task, methods, given.model, fingerprint, given.budget, heads)
        for task in range(given.tasks)
        for family in (*FAMILIES, EXACT)
    ]
    if not given.report_only:
        jobs = [job for job in wanted if not all(table.has(_identity(job, *asked)) for asked in job.method_models)]
        for _, records in fan_out(run_synthetic, jobs, engine=given.engine, workers=given.workers):
            table.append(records)
    wanted_tasks = {(job.family, job.task) for job in wanted}
    compared = set(wanted[0].method_models)
    records = [
        r
        for r in table.records.values()
        if (r["family"], r["task"]) in wanted_tasks
        and r["budget"] == given.budget
        and (r["method"], r["model"]) in compared
    ]
    about = f"model {Path(given.model).name} ({fingerprint[:12]})"
    page = write_synthetic(given.out, records, methods[0], command, about)
    refuse_if_all_failed(records, given.out / "synthetic.md")
    return page


def run_synthetic(job: SyntheticJob) -> list[dict]:
    exact = draw_exact(job.task) if job.family == EXACT else None
    trial = exact.trial if exact is not None else draw(FAMILIES[job.family], job.task, Path())
    records = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        asked = {"budget": job.budget, "seed": job.task}
        method_runs = run_trial(trial, [MethodChoice(m) for m in job.methods], model=job.model, **asked)
        for name, folder in job.heads:
            (method_run,) = run_trial(trial, [MethodChoice("l2m_learned")], model=folder, **asked)
            method_runs.append(replace(method_run, method=head_method(name)))
    for method_run, method_model in zip(method_runs, job.method_models, strict=True):
        record = {**_identity(job, *method_model), "kind": trial.context.kind}
        record |= scored(method_run, lambda rollout: _scores(rollout, trial, exact))
        records.append(record if "error" in record else {**record, "query_seconds": method_run.query_seconds})
    return records


def _scores(rollout: Rollout, trial: Trial, exact: ExactTask | None) -> dict:
    scores = score(rollout, trial.y, trial.context)
    if trial.informative is not None:
        scores |= informative_share(rollout, trial.informative, could_be_had(trial))
    return scores if exact is None else scores | {"regret": exact.regret(rollout)}


def write_synthetic(folder: Path, records: Sequence[dict], lead: str, command: str, about: str) -> str:
    """synthetic.csv and synthetic.md; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    good = [_flat(r) for r in records if not r.get("error")]
    frame = pd.DataFrame(good)
    write_text(folder / "synthetic.csv", frame.to_csv(index=False, float_format="%.6g"))
    parts = [
        "# Policies on held-out synthetic tasks",
        "",
        f"`{command}` · {date.today().isoformat()} · {about}",
        "",
        ABOUT,
    ]
    if frame.empty:
        parts += ["", "No task has been finished yet."]
    else:
        scores = ["log_loss", "precision_mid", "recall_mid", "recall_mean", "regret", "query_seconds"]
        scores = [s for s in scores if s in frame]
        means = frame.groupby(["family", "method"], sort=False)[scores].mean()
        means["tasks"] = frame.groupby(["family", "method"], sort=False).size()
        parts += [
            "",
            markdown_table(means.reset_index()),
            "",
            f"## {lead} against the others",
            "",
            _against(frame, lead),
        ]
    page = "\n".join(parts) + "\n"
    write_text(folder / "synthetic.md", page)
    return page


ABOUT = """`log_loss` is the mean over budgets (continuous outcomes: of the outcome in standard deviations of the
context's). `precision_mid` and `recall_mid` are of the features that the label mechanism reads, at half the budget;
`recall_mean` is over all budgets. `regret`, on the family `exact` (eight binary features, every combination counted),
is the true conditional mutual information of the best feature left minus that of the chosen one, in nats per step.
`l2m` picks by the gain head, `l2m_learned` by the released policy head, `l2m_learned NAME` by a policy head taught anew on
the same trunk, by `train/configs/policy_cpu.yaml`: "exact" by the mean gain over all open features, "greedy" and "lookahead"
by the log loss after one sampled pick, or two, with straight-through Gumbel-softmax. A method with fewer tasks than the others
is to be compared in the second table only, which is paired."""


def _flat(record: dict) -> dict:
    flat = {k: v for k, v in record.items() if not isinstance(v, list)}
    if record.get("recall"):
        middle = max(0, len(record["recall"]) // 2 - 1)
        flat |= {"precision_mid": record["precision"][middle], "recall_mid": record["recall"][middle]}
        flat["recall_mean"] = float(np.mean(record["recall"]))
    if record.get("regret"):
        flat["regret"] = float(np.mean(record["regret"]))
    return flat


def _against(frame: pd.DataFrame, lead: str) -> str:
    """Paired over tasks of all families."""
    rows = []
    for score_name in ("log_loss", "regret"):
        if score_name not in frame:
            continue
        wide = frame.pivot_table(index=["family", "task"], columns="method", values=score_name)
        for other in [m for m in wide.columns if m != lead and lead in wide]:
            difference = (wide[other] - wide[lead]).dropna().to_numpy()
            if len(difference) > 1:
                saved = str(paired_interval(difference))
                rows.append({"score": score_name, "other": other, "saved by " + lead: saved, "tasks": len(difference)})
    return markdown_table(pd.DataFrame(rows)) if rows else "Too few tasks to compare."


def _identity(job: SyntheticJob, method: str, fingerprint: str) -> dict:
    return {"family": job.family, "task": job.task, "method": method, "model": fingerprint, "budget": job.budget}
