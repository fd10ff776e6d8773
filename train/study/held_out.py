"""`python -m train held_out`: log loss of one or more models on the held-out synthetic tasks of a training run.

All models answer the same tasks, so that a difference between two of them is one between pairs. With `--gains` it is
the gain heads that are compared: how far each is off the gain that its own model's answers give. With `--crps` it is the CRPS of
continuous outcomes, which a single surprise does not rule as it rules their log loss. With `--expected` losses
are those that the truth expects instead of those of the outcomes drawn, which are noisier: the prior's own probabilities, or of a
prior whose best answers are known (additive, discriminant) what the context tells.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from torch import Tensor, nn

from l2m_core.answering.devices import for_training
from l2m_core.cli import at_least, program, purpose
from l2m_core.errors import ConfigError
from l2m_core.learn.held_out import HeldOut, crps_of, draw_held_out, gain_errors_of, losses_of
from l2m_core.settings import build_settings, read_settings
from train.initial_model import load_initial_model
from train.priors import PriorChoice, priors_of
from train.study.markdown import markdown_table

# Name → fewest and most classes of a task.
CLASSES = {"2": (2, 2), "3–5": (3, 5), "6–10": (6, 10)}
BASE_RATE = "base rate"
LEAST = "least possible"
DEFAULT = "general"
Score = Callable[[nn.Module, HeldOut], Tensor]  # (tasks,) of a model on a set


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    device = for_training(given.device)
    priors = priors_of(PriorChoice(given.prior) if given.prior else prior_of(given.config))
    by_frequency = given.classes_by_frequency or is_by_frequency(given.config)
    held_out = draw_held_out(priors, device, given.pools, by_frequency=by_frequency)
    models = list(dict.fromkeys(given.model or [DEFAULT]))
    if given.gains:
        print(scores_page(task_scores(models, held_out, gain_errors_of, device), GAINS_HEAD))
    elif given.crps:
        continuous = [group for group in held_out if group.episodes[0].tasks.continuous]
        if not continuous:
            raise ConfigError("--crps: the prior draws no continuous outcomes.")
        print(scores_page(task_scores(models, continuous, crps_of, device), CRPS_HEAD))
    else:
        print(page(task_losses(models, held_out, device, given.expected)))
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("train", "held_out"), description=purpose(__doc__))
    parser.add_argument(
        "--model",
        nargs="+",
        action="extend",
        metavar="NAME_OR_FOLDER",
        help="released models, folders of models, folders of runs, or single checkpoints (general)",
    )
    parser.add_argument("--pools", type=at_least(1), default=2, help="batches of tasks of each shape")
    drawn_from = parser.add_mutually_exclusive_group()
    drawn_from.add_argument("--config", type=Path, help="a job's settings: the tasks are drawn from its prior")
    drawn_from.add_argument("--prior", help="the tasks are drawn from this prior, as it is by default (synthetic)")
    parser.add_argument(
        "--classes-by-frequency",
        action="store_true",
        help="code classes from the most to the least frequent, as --config may say too",
    )
    scores = parser.add_mutually_exclusive_group()
    scores.add_argument(
        "--gains", action="store_true", help="compare the gain heads with the gains that each model's own answers give"
    )
    scores.add_argument("--crps", action="store_true", help="compare the CRPS of continuous outcomes")
    scores.add_argument(
        "--expected", action="store_true", help="score by what the truth expects, not by the outcomes drawn"
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:N or auto (default: %(default)s)")
    given = parser.parse_args(arguments)
    return given


def prior_of(config: Path | None) -> PriorChoice:
    if config is None:
        return PriorChoice()
    settings = read_settings(config)
    if "stages" not in settings:
        raise ConfigError(f"{config} is no job that draws tasks: it has no stages.")
    return build_settings(PriorChoice, settings.get("prior") or {}, "config.prior")


def is_by_frequency(config: Path | None) -> bool:
    """Whether a job codes classes from the most to the least frequent."""
    return config is not None and read_settings(config).get("classes_by_frequency") is True


def task_losses(
    models: Sequence[str], held_out: Sequence[HeldOut], device: str = "cpu", expected: bool = False
) -> pd.DataFrame:
    """One row per task: its shape, its number of classes (0: continuous), the base rate's log loss and each model's.

    expected: as of `losses_of`; a column more says how low any answer can be expected to be.
    """
    found: dict[str, pd.DataFrame] = {}
    for name in models:
        model = load_initial_model(name, device, "--model").eval()
        for group in held_out:
            _check_classes(name, model, group)
            losses = losses_of(model, group, expected)
            if group.name not in found:
                columns = {"shape": group.name, "classes": losses.classes.numpy(), BASE_RATE: losses.base_rate.cpu()}
                if expected:
                    columns[LEAST] = losses.least.numpy()
                found[group.name] = pd.DataFrame(columns)
            found[group.name][name] = losses.model.cpu().numpy()
    return pd.concat(list(found.values()), ignore_index=True)


def task_scores(models: Sequence[str], held_out: Sequence[HeldOut], score: Score, device: str = "cpu") -> pd.DataFrame:
    """One row per task: its shape, and each model's score. score: of a model and a set, of each of its tasks in order."""
    parts = {group.name: pd.DataFrame({"shape": [group.name] * group.n_tasks}) for group in held_out}
    for name in models:
        model = load_initial_model(name, device, "--model").eval()
        for group in held_out:
            _check_classes(name, model, group)
            parts[group.name][name] = score(model, group).cpu().numpy()
    return pd.concat(list(parts.values()), ignore_index=True)


def _check_classes(name: str, model: nn.Module, group: HeldOut) -> None:
    counts = [int(e.tasks.n_classes.max()) for e in group.episodes if e.tasks.n_classes is not None]
    most = model.config.max_classes  # type: ignore[union-attr]
    if counts and max(counts) > most:
        raise ConfigError(
            f"Model {name} answers at most {most} classes, a held-out task of shape {group.name!r} has {max(counts)}. "
            f"Name a config whose prior draws fewer: --config FILE."
        )


def page(losses: pd.DataFrame) -> str:
    shapes = {str(name): part for name, part in losses.groupby("shape", sort=False)}
    classes = {name: losses[losses["classes"].between(*ends)] for name, ends in CLASSES.items()}
    parts = [
        HEAD + EXPECTED_HEAD * (LEAST in losses),
        markdown_table(summary("shape", shapes)),
        CLASSES_HEAD,
        markdown_table(summary("classes", classes)),
    ]
    return "\n\n".join(parts)


def scores_page(scores: pd.DataFrame, head: str) -> str:
    shapes = {str(name): part for name, part in scores.groupby("shape", sort=False)}
    rows = []
    for shape, part in [*shapes.items(), ("all", scores)]:
        first, *others = (name for name in part.columns if name != "shape")
        means = {name: part[name].mean() for name in (first, *others)}
        rows.append({"shape": shape, "tasks": len(part)} | means | _differences(part, first, others))
    return "\n\n".join([head, markdown_table(pd.DataFrame(rows))])


def summary(by: str, parts: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per part that has tasks: mean log losses, nats under the base rate, and differences from the first."""
    return pd.DataFrame([{by: name, **_means(part)} for name, part in parts.items() if len(part)])


def _means(part: pd.DataFrame) -> dict[str, object]:
    first, *others = (name for name in part.columns if name not in ("shape", "classes", BASE_RATE, LEAST))
    row: dict[str, object] = {"tasks": len(part)} | {
        name: part[name].mean() for name in (BASE_RATE, LEAST) if name in part
    }
    row |= {name: part[name].mean() for name in (first, *others)}
    row |= {f"{name}, under base rate": (part[BASE_RATE] - part[name]).mean() for name in (first, *others)}
    return row | _differences(part, first, others)


def _differences(part: pd.DataFrame, first: str, others: Sequence[str]) -> dict[str, object]:
    """Of each other model from the first, over the same tasks."""
    return {f"{name} − {first}": mean_and_error((part[name] - part[first]).to_numpy()) for name in others}


def mean_and_error(differences: np.ndarray) -> str:
    """Mean ± standard error, over tasks."""
    if len(differences) < 2:
        return f"{differences.mean():+.4f}"
    return f"{differences.mean():+.4f} ± {differences.std(ddof=1) / np.sqrt(len(differences)):.4f}"


HEAD = """Log loss in nats on held-out synthetic tasks, mean over tasks; of a continuous outcome in standard deviations of the
context's. A difference is ± its standard error over the same tasks; below zero the first-named model is better."""
EXPECTED_HEAD = """ Models' losses
are those that the truth expects, which can be no lower than "least possible"; of a prior whose best answers are known, the truth
is what the context tells one who knows the form of its tasks. The base rate's are of the outcomes drawn."""
CLASSES_HEAD = "By the task's number of classes, all shapes together:"
GAINS_HEAD = """Squared error of the gain head on a log scale, against the mutual information under the results that its model
foresees and the model's own answers to them; held-out synthetic tasks, mean over tasks, one open test for each patient. A
difference is ± its standard error over the same tasks; below zero the first-named model's head is further off."""
CRPS_HEAD = """CRPS of continuous outcomes, in standard deviations of the context's, on held-out synthetic tasks, mean over tasks.
A difference is ± its standard error over the same tasks; below zero the first-named model is better."""
