"""`python -m train.study.experiments.rows_speed`: training rows per second of the rows encoder, in blocks and naively.

Naively: one dense mask over [context, targets, queries], built anew at every pass, and one whole pass for each way in
which the queries are known, as published code of this field does it. In blocks: `Rows.autoregress`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import torch
from torch import Tensor

from l2m_core.learn.losses import context_of, log_loss
from l2m_core.learn.precision import DTYPES
from l2m_core.learn.stages import Episode, EpisodeStream, Stage, random_orders
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import Context, Memory, ModelConfig, Output
from l2m_core.model.rows import Rows
from l2m_core.tasks.registry import build_prior


def dense_pass(model: Rows, context: Context, targets: Context, a: Tensor) -> tuple[Output, Memory]:
    """a: (B, T, d). The same answers as `autoregress`, by one sequence and one dense mask."""
    scale, shift, spread = model.fit(context)
    memory = Memory((), (), scale, context.n_classes, shift, spread)
    known = [model.embed_known(rows, scale, shift, spread) for rows in (context, targets)]
    tokens = torch.cat([*known, model._embed_query(memory, targets.x[:, None], a[:, None], None)], dim=-2)
    mask = dense_mask(context.y.shape[1], targets.y.shape[1]).to(tokens.device)
    for block in model.blocks:
        tokens = block.read(tokens, *block.remember(tokens), mask)
    return model.read_out(tokens[:, 0, -targets.y.shape[1] :], memory, a.shape[-1]), memory


def dense_mask(n: int, later: int) -> Tensor:
    """(n + 2T, n + 2T) bool, True where read: rows are context, targets, queries."""
    mask = torch.zeros(n + 2 * later, n + 2 * later, dtype=torch.bool)
    mask[:, :n] = True
    mask[n : n + later, n : n + later] = torch.ones(later, later, dtype=torch.bool).tril()
    mask[n + later :, n : n + later] = torch.ones(later, later, dtype=torch.bool).tril(-1)
    return mask


def naive_loss(model: Rows, episode: Episode, orders: int) -> Tensor:
    context, targets, ways = _parts(episode, orders)
    losses = []
    for a in ways.unbind(1):
        output, memory = dense_pass(model, context, targets, a)
        losses.append(log_loss(output, memory, targets.y).mean())
    return torch.stack(losses).mean()


def block_loss(model: Rows, episode: Episode, orders: int) -> Tensor:
    context, targets, ways = _parts(episode, orders)
    output, memory = model.autoregress(context, targets, ways)
    return log_loss(output, memory, targets.y.repeat(1, orders)).mean()


def _parts(episode: Episode, orders: int) -> tuple[Context, Context, Tensor]:
    tasks, n = episode.tasks, episode.context
    targets = Context(tasks.x[:, n:], tasks.r[:, n:], tasks.y[:, n:], tasks.n_classes, tasks.categorical)
    return context_of(tasks, n), targets, random_orders(episode, orders)


LOSSES = {"naive": naive_loss, "blocks": block_loss}


def set_up(
    tasks: int, rows: int, features: int, steps: int, device: str = "cpu", dtype: str = "bfloat16"
) -> tuple[Rows, list[Episode]]:
    """The study's model with fresh weights, and one episode more than `steps`, to warm up on."""
    torch.manual_seed(0)
    config = ModelConfig(
        encoder="rows",
        features=features,
        outcome="classes",
        max_classes=2,
        layers=6,
        width=256,
        heads=4,
        feedforward=512,
        standardise=False,
    )
    model = build_model(config).to(device, DTYPES[dtype])
    stage = Stage(steps=1, tasks=tasks, rows=(rows,), features=(features,), context=(0.1,))
    stream = EpisodeStream({"classes": build_prior("bnn")}, (stage,), 0, device, ahead=False)
    return model, [stream.episode(step) for step in range(steps + 1)]  # type: ignore[return-value]


def measure(model: Rows, episodes: list[Episode], orders: int) -> dict[str, float]:
    """Questions (a row, known in one way) trained on per second, forward and backward; both take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in LOSSES}
    for episode in episodes:
        for name, loss in LOSSES.items():
            began = _clock(episode)
            loss(model, episode, orders).backward()
            model.zero_grad()
            seconds[name].append(_clock(episode) - began)
    questions = orders * episodes[0].a.shape[0] * episodes[0].a.shape[1]
    # The first warms up; the middle one of the others is not moved by what else the machine does.
    return {name: questions / statistics.median(times[1:]) for name, times in seconds.items()}


def tokens_saved(episode: Episode, orders: int) -> float:
    """How many times as many tokens the naive way passes through the model: all that blocks can save in long layers."""
    n, later = episode.context, episode.tasks.y.shape[1] - episode.context
    return orders * (n + 2 * later) / (n + later + orders * later)


def _clock(episode: Episode) -> float:
    """Seconds of this process on a CPU (other work on the machine does not count), of the wall on a GPU."""
    if episode.a.is_cuda:
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--orders", type=int, default=4, help="ways in which each query is known")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="bfloat16", choices=DTYPES)
    given = parser.parse_args()
    torch.set_num_threads(1)
    model, episodes = set_up(given.tasks, given.rows, given.features, given.steps, given.device, given.dtype)
    speeds = measure(model, episodes, given.orders)
    print(json.dumps({**vars(given), **speeds, "ratio": speeds["blocks"] / speeds["naive"]}))


if __name__ == "__main__":
    main()
