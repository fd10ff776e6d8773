"""Configs that a job can begin with: those that come with the trainer, without what the page decides."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.jobs import trainer
from app.jobs.trainer import DECIDED

FINETUNE = """# Goes on training a model on one cohort. A part of the rows is never trained on: it decides when to stop.
finetune:
  steps: 300
  lr: 0.0001
  tasks: 4
  rows: 512
  held_out: 0.2
  evaluate_every: 20
  patience: 4
seed: 0
"""


@dataclass(frozen=True)
class Template:
    """name: of the config, for a select box; text: YAML to edit."""

    name: str
    text: str


def of(job: str) -> list[Template]:
    """The configs of a job, the small one first."""
    if job == "finetune":
        return [Template("fine-tuning", FINETUNE)]
    found = []
    for path in sorted((trainer.home() / "configs").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if _job_of(text) == job and not re.search(
            r"^  data:", text, re.MULTILINE
        ):  # files of the command line's computer
            found.append(Template(path.stem, without_decided(job, text)))
    return sorted(found, key=lambda template: (template.name != "smoke", template.name))


def without_decided(job: str, text: str) -> str:
    """The YAML text with its comments, less the top-level lines that the page decides and the commands in comments."""
    decided = re.compile(rf"^(?:{'|'.join(DECIDED[job])}):.*\n?", re.MULTILINE)
    return re.sub(r"^#\s+python -m train .*\n?", "", decided.sub("", text), flags=re.MULTILINE).strip() + "\n"


def _job_of(text: str) -> str:
    """By the settings that only one job has."""
    if re.search(r"^run:", text, re.MULTILINE):
        return "release"
    if re.search(r"^policy: *\{", text, re.MULTILINE):
        return "policy"
    if re.search(r"^(reveals|target):", text, re.MULTILINE):
        return "gain"
    return "predictor"
