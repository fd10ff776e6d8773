"""The real suite's results as CSV and as a page that a person reads, losing cells included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import pandas as pd

from l2m_core.errors import ConfigError
from l2m_core.learn.checkpoints import write_text
from l2m_core.metrics import Interval
from train.study.evaluation.cells import LONG_CONTEXT
from train.study.evaluation.scores import SPREAD_SHARE
from train.study.evaluation.summary import (
    BASE_RATE,
    CELL,
    MODEL_ALONE,
    NEAR,
    WORSE,
    Summary,
    changes,
    errors,
    paired,
    summarise,
)
from train.study.evaluation.versions import is_same_code
from train.study.markdown import markdown_table


def publish(path: Path, page: str) -> None:
    """Writes a command's page and shows it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page)
    print(page)


CLASS_COLUMNS = [
    "information",
    "skill",
    "log_loss",
    "log_loss_end",
    "auroc",
    "auroc_end",
    "ece",
    "ece_by_chance",
    "brier",
    "fit_seconds",
    "query_seconds",
]
NUMBER_COLUMNS = [
    "information",
    "log_loss",
    "log_loss_end",
    "crps",
    "crps_end",
    "rmse",
    "rmse_end",
    "coverage_error",
    "fit_seconds",
    "query_seconds",
]


def write_report(
    folder: Path,
    name: str,
    records: Sequence[dict],
    lead: str,
    command: str,
    about: str,
    advice: str = "",
    skipped: Mapping[str, str] | None = None,
    beside: Path | None = None,
) -> str:
    """Writes NAME.csv and NAME.md; returns the page.

    advice: a section on the time to first advice; skipped: cohorts on which nothing is compared, and why; beside: an earlier
    model's table, to compare the lead with.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flat = pd.DataFrame([{k: v for k, v in r.items() if not isinstance(v, list)} for r in records])
    if not flat.empty:
        flat = flat.sort_values(["cohort", "context", "missing", "seed", "method"])
    write_text(folder / f"{name}.csv", flat.to_csv(index=False, float_format="%.6g"))
    page = make_page(records, lead, command, about, skipped)
    if beside is not None:
        page += f"\n## Beside {beside.name}\n\n{_beside(records, beside, lead)}\n"
    if advice:
        page += f"\n## From a CSV file to first advice\n\n{advice}\n"
    write_text(folder / f"{name}.md", page)
    return page


def make_page(
    records: Sequence[dict], lead: str, command: str, about: str, skipped: Mapping[str, str] | None = None
) -> str:
    parts = ["# Evaluation on real cohorts", "", f"`{command}` · {date.today().isoformat()} · {about}", "", PROTOCOL]
    if skipped:
        parts += ["", "Left out:", "", *(f"- {name}: {reason}." for name, reason in skipped.items())]
    short, long = ([r for r in records if (r["context"] >= LONG_CONTEXT) == is_long] for is_long in (False, True))
    found = _results(short, lead) + _results(long, lead, f", contexts of {LONG_CONTEXT:,} rows and more")
    parts += found or ["", f"No trial has been finished by {lead} and every other method yet."]
    marked = [(r["method"], r["code"]) for r in records if r.get("code")]
    changed = sorted({method for method, mark in set(marked) if not is_same_code(mark, method)})
    if changed:
        parts += ["", f"The code of {', '.join(changed)} has changed since some of these results (`--repeat-changed`)."]
    failed = errors(records)
    if len(failed):
        parts += ["", "## Failed runs", "", markdown_table(failed)]
    return "\n".join(parts) + "\n"


def _results(records: Sequence[dict], lead: str, which: str = "") -> list[str]:
    """Sections on the trials that every method finished; none where there is no such trial."""
    parts: list[str] = []
    classes = summarise([r for r in records if r.get("kind") != "continuous"], lead)
    if classes is not None:
        parts += ["", f"## Outcomes with classes{which}", "", _claims(classes, records)]
        parts += ["", _methods(classes, CLASS_COLUMNS), "", "### Cells", "", _cells(classes)]
        parts += ["", "### Losing cells", "", _losing(classes)]
    numbers = summarise([r for r in records if r.get("kind") == "continuous"], lead)
    if numbers is not None:
        parts += ["", f"## Continuous outcomes{which}", "", NUMBERS, "", _methods(numbers, NUMBER_COLUMNS)]
        parts += ["", "### Cells", "", _cells(numbers)]
    return parts


PROTOCOL = f"""Every method learns from the same context rows and decides about the same other rows, from the same
start: baseline features known, one acquirable feature asked for at a time, at most the budget; what a row lacks cannot
be asked for. `missing` is the share of recorded acquirable values that is hidden at random on top of what the table
lacks, in the context and in the rows decided about alike. A scores column without a suffix is the mean over budgets 0
to the last, `_end` is at the last. `log_loss` is in nats. For all methods alike, a share of {SPREAD_SHARE:g} of each
predicted distribution is spread evenly over the classes before scoring. `information` is the base rate's log loss
minus the method's, averaged over cells; `skill` is the share of the base rate's that it saves, averaged likewise.
`ece` pools all budgets of a trial, 15 equal-mass bins; `ece_by_chance` is
what the method would show if its probabilities were exactly right. Seconds are of one thread's processor time: `fit`
is training (for L2M, reading the context), `query` all predictions and rankings of a trial's rows.
Rows are sampled so that each stretch of them has the outcome's own distribution, and each class occurs in the context
where it can; a context too large for its table is replaced by one of 50 rows, or left out where it has {LONG_CONTEXT:,} or
more, and those are reported apart."""

NUMBERS = """`log_loss` is the negative log density (of a normal distribution for all methods but L2M, which predicts a
density over bins); it, CRPS and RMSE are in standard deviations of the context's outcome."""


def _claims(summary: Summary, records: Sequence[dict]) -> str:
    lead, cells = summary.lead, len(summary.cells)
    lowest = int((summary.cells["behind"] <= NEAR).sum())
    worse = summary.worse_than_base_rate
    named = "; ".join(f"{c.cohort} {c.context} {c.missing:g}" for c in worse.itertuples())
    lines = [
        f"- {summary.trials} trials (cell × seed) in {cells} cells were finished by every method"
        + (f"; {summary.left_out} are not finished by all yet and are left out." if summary.left_out else "."),
        *_information(summary, records),
        f"- {lead} is lowest, or within {NEAR:.1%} of the lowest, on **{lowest} of {cells}** cells ({summary.share_lowest:.0%}); "
        f"the same model's other forms are not counted; were they rivals too: {summary.lowest_of_all}.",
        *_differences(summary),
        f"- Worse than the base rate by more than {WORSE:.0%}: {len(worse)} cells{': ' + named if named else ''}.",
    ]
    saved = paired([r for r in records if r.get("kind") != "continuous"], lead, f"{lead}_random")
    if saved is not None:
        lines.append(f"- Default policy against random order, log loss saved: {_over(saved)}.")
    if "ece" in summary.methods:
        row = summary.methods.loc[lead]
        lines.append(f"- Mean ECE of {lead}: {row['ece']:.4f} (by chance alone: {row['ece_by_chance']:.4f}).")
    return "\n".join(lines)


def _information(summary: Summary, records: Sequence[dict]) -> list[str]:
    """Over the base rate; nothing where it was not among the methods."""
    if "information" not in summary.methods:
        return []
    lead, information = summary.lead, summary.information
    lines = [f"- Information over the base rate, {lead}: {information[lead]:.4f} nats."]
    best = summary.best_task_specific
    if best is not None:
        lines.append(
            f"- Against the best task-specific acquisition method ({best}, {information[best]:.4f}): "
            f"**{summary.ratio:.2f} times**. Who knew the lowest method of each cell beforehand, {lead} among them, would "
            f"come to {summary.hindsight:.2f} times, and to a skill of {summary.hindsight_skill:.4f}."
        )
    lines += _binary_alone(records, lead)
    above = [name for name in information.index if information[name] > information[lead]]
    return [*lines, f"- Methods with more information than {lead}: {', '.join(above) or 'none'}."]


def _differences(summary: Summary) -> list[str]:
    """From the best of the other methods, and from the model alone, where each is there."""
    lines = []
    if (best := summary.best_rival) is not None:
        lines.append(
            f"- Lower than {best}, the lowest of the other methods over all cells ({summary.cells[best].mean():.4f}), by "
            f"{_over(summary.lower_than(best))}."
        )
    beyond = summary.skill_beyond(MODEL_ALONE) if summary.lead != MODEL_ALONE else None
    if beyond is not None:
        lines.append(f"- Skill beyond {MODEL_ALONE}: {_over(beyond)}.")
    return lines


def _over(found: tuple[Interval, Interval]) -> str:
    cells, cohorts = found
    return f"{cells} over cells, {cohorts} over cohorts (95%, Student's t)"


def _binary_alone(records: Sequence[dict], lead: str) -> list[str]:
    """Outcomes with many classes have more to know, and weigh more in a mean of nats."""
    binary = summarise([r for r in records if r.get("kind") == "binary"], lead)
    if binary is None or binary.best_task_specific is None or "information" not in binary.methods:
        return []
    best, base = binary.best_task_specific, binary.methods.loc[BASE_RATE, "log_loss"]
    return [
        f"- Binary cells alone ({len(binary.cells)}): base rate {base:.4f}, {best} "
        f"{base - binary.information[best]:.4f}, {lead} {base - binary.information[lead]:.4f}: {binary.ratio:.2f} times."
    ]


def _beside(records: Sequence[dict], beside: Path, lead: str) -> str:
    """What changed since an earlier model, over the trials of outcomes with classes that both tables have."""
    found = changes(records, read_table_of_records(beside), lead)
    if not found:
        return f"No trial of it has {lead} and the base rate, as here."
    rows = [
        {
            lead: change.score,
            "before": change.before,
            "now": change.now,
            "more, over cells": str(change.over_cells),
            "more, over cohorts": str(change.over_cohorts),
            "trials": change.trials,
            "left out": change.left_out,
        }
        for change in found
    ]
    words = (
        "Means over cells, each of the seeds that both tables have finished; `left out`: trials (cell × seed) that only one of "
        "the two has."
    )
    return f"{words}\n\n{markdown_table(pd.DataFrame(rows))}"


def read_table_of_records(path: Path) -> list[dict]:
    """The records of a table that `write_report` wrote, each with what it has: an empty cell is no text of an error."""
    unlike = f"{path.name} is no table of trials; --beside takes a real.csv that this command wrote."
    try:
        table = pd.read_csv(path)
    except ValueError as error:  # an empty file, or no CSV
        raise ConfigError(unlike) from error
    if not {*CELL, "seed", "method"} <= {*table.columns}:
        raise ConfigError(unlike)
    rows = table.to_dict("records")
    return [{str(name): value for name, value in row.items() if not pd.isna(value)} for row in rows]


def _methods(summary: Summary, columns: Sequence[str]) -> str:
    shown = summary.methods[[c for c in columns if c in summary.methods]]
    return markdown_table(shown.reset_index())


def _cells(summary: Summary) -> str:
    return markdown_table(summary.cells.drop(columns=["behind"]))


def _losing(summary: Summary) -> str:
    losing = summary.losing
    if losing.empty:
        return f"None: on every cell {summary.lead} is lowest or within {NEAR:.1%} of the lowest."
    rows = [
        {
            "cohort": cell["cohort"],
            "context": cell["context"],
            "missing": cell["missing"],
            summary.lead: cell[summary.lead],
            "lowest": f"{cell['lowest']} {cell[cell['lowest']]:.4f}",
            "behind": f"{cell['behind']:.1%}",
            "base_rate": cell.get("base_rate", float("nan")),
        }
        for _, cell in losing.iterrows()
    ]
    return markdown_table(pd.DataFrame(rows))
