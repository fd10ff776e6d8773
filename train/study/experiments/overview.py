"""The page that says of each experiment whether the study's claim is seen, read from the experiments' own pages."""

from __future__ import annotations

import re
from pathlib import Path

from l2m_core.learn.checkpoints import write_text
from train.study.experiments.experiment import EXPERIMENTS, NO_WORDS, find

HEAD = """# Results

Each page was written by the command at its top. A verdict follows from a rule that was fixed before the experiment was run
and stands on the page, beside the study's own words: "seen" where the interval of the paired difference lies on the claim's
side of zero; "not seen" where it does not, and holds no difference worth seeing either; "not testable here" where it holds
both, where the data are missing, or where the model does not pass its gates (under the base rate; better with more features
known). Intervals are of Student's t over independent tasks, of real outcomes over tables (splits of one table are no more
than one), at a level corrected for all claims (pages from before `own_covariates` counted one claim fewer, so their intervals are
narrower by a hundredth; no verdict hangs on it); where a page says why, they are of the middle difference by signed ranks.
NAME-tasks.csv.gz has every task's scores. Pages of earlier runs say themselves how their intervals were made. Scale small means
fewer and smaller tasks than the study's, asked of the general model. Scale reduced asks the study's own models as one
processor core trains them; their configs (`train/configs/*_reduced*.yaml`) say what is unlike the study. Their greedy
policies had 6,000 to 61,500 steps (the study: 50,000): whether they choose better than chance is the first comparison of
acquisition by step, and weighs on every verdict about choices. For the study's own settings run `python -m train reproduce
NAME --scale study`.
"""


def write_overview(folder: Path) -> None:
    """README.md of the results folder: the experiments' verdicts, and links to all other pages."""
    lines = [HEAD, "| experiment | the study's words | verdict | why |", "| --- | --- | --- | --- |"]
    for name in EXPERIMENTS:
        module = find(name)
        status, reason = _verdict(folder / f"{name}.md", module.CLAIM)
        shown = f"[{module.TITLE}]({name}.md)" if status else module.TITLE
        lines.append(f"| {shown} | {module.CLAIM or 'none'} | {status or 'not run yet'} | {reason} |")
    others = [page for page in sorted(folder.glob("*.md")) if page.stem not in (*EXPERIMENTS, "README")]
    if others:
        lines += ["", "Also measured: " + ", ".join(f"[{_title(page)}]({page.name})" for page in others) + "."]
    write_text(folder / "README.md", "\n".join(lines) + "\n")


def _title(page: Path) -> str:
    with page.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip().replace("`", "") or page.stem


def _verdict(page: Path, claim: str) -> tuple[str, str]:
    """Of an earlier run that read the study otherwise, none."""
    if not page.is_file():
        return "", ""
    text = page.read_text(encoding="utf-8")
    if (claim or NO_WORDS) not in text:
        return "not judged", "The page is of an earlier run, which put the claim in other words and judged those."
    found = re.search(r"^\*\*Verdict: ([^*]+)\.\*\* (.*)$", text, re.MULTILINE)
    scale = re.search(r"--scale (\w+)", text)
    status = found.group(1) if found else ""
    return (f"{status} ({scale.group(1) if scale else 'small'})" if status else "", found.group(2) if found else "")
