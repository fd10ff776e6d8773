"""The page that says of each experiment whether the study's claim is seen, read from the experiments' own pages."""

from __future__ import annotations

import re
from pathlib import Path

from l2m_core.learn.checkpoints import write_text
from train.study.experiments.experiment import EXPERIMENTS, find

HEAD = """# Results

Each page was written by the command at its top. A verdict follows from a rule that was fixed before the experiment was
run and stands on the page: "seen" where, as a rule, the 95% bootstrap interval of the paired difference lies on the
claim's side of zero, "not seen" where it does not, "not testable here" where the data or the scale cannot say. Scale
small means fewer and smaller tasks than the study's. Two experiments, the uncertainty and the gradient estimators, were
given more tasks after a first run had left their verdict open, with the same rules; for its own settings run
`python -m train reproduce NAME --scale study`.

**Few pairs are a hint, no more.** Of few pairs such an interval is too narrow: where nothing differs, "seen" comes up for 10 in
100 sets of 4 pairs and for 6 in 100 of 10 pairs, instead of 2.5 (`tests/core/test_metrics.py`). And pairs are counted as
independent that are not quite: splits of one real table, contexts of one task.
"""


def write_overview(folder: Path) -> None:
    """README.md of the results folder: the experiments' verdicts, and links to all other pages."""
    lines = [HEAD, "| experiment | the study's claim | verdict | why |", "| --- | --- | --- | --- |"]
    for name in EXPERIMENTS:
        module = find(name)
        status, reason = _verdict(folder / f"{name}.md")
        shown = f"[{module.TITLE}]({name}.md)" if status else module.TITLE
        lines.append(f"| {shown} | {module.CLAIM} | {status or 'not run yet'} | {reason} |")
    others = [page for page in sorted(folder.glob("*.md")) if page.stem not in (*EXPERIMENTS, "README")]
    if others:
        lines += ["", "Also measured: " + ", ".join(f"[{_title(page)}]({page.name})" for page in others) + "."]
    write_text(folder / "README.md", "\n".join(lines) + "\n")


def _title(page: Path) -> str:
    with page.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip().replace("`", "") or page.stem


def _verdict(page: Path) -> tuple[str, str]:
    if not page.is_file():
        return "", ""
    text = page.read_text(encoding="utf-8")
    found = re.search(r"^\*\*Verdict: ([^*]+)\.\*\* (.*)$", text, re.MULTILINE)
    scale = re.search(r"--scale (\w+)", text)
    status = found.group(1) if found else ""
    return (f"{status} ({scale.group(1) if scale else 'small'})" if status else "", found.group(2) if found else "")
