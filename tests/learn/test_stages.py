"""What is drawn follows from the seed and the step, and asks what it says."""

import threading

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.learn.draw_ahead import DrawAhead
from l2m_core.learn.held_out import SHAPES, draw_held_out, evaluate
from l2m_core.learn.stages import EpisodeStream, Stage, draw_known, seeded, stage_at
from l2m_core.tasks.registry import build_prior
from tests.learn.examples import STAGES, fresh_model, priors, stream


def test_a_step_draws_the_same_whatever_came_before():
    straight, jumping = stream(), stream()
    expected = [straight.episode(step) for step in range(14)]
    for step in (13, 2, 9, 8):
        found = jumping.episode(step)
        assert torch.equal(found.tasks.x, expected[step].tasks.x) and torch.equal(found.a, expected[step].a)
        assert found.seed == expected[step].seed


def test_what_is_drawn_ahead_is_what_would_have_been_drawn():
    here, ahead = (EpisodeStream(priors(), STAGES, 0, ahead=ahead) for ahead in (False, True))
    steps = [*range(20), 3, 400, 401, 7]  # over the end of a stage that ends within a pool, then back and forth
    for step in steps:
        expected, found = here.episode(step), ahead.episode(step)
        assert expected.seed == found.seed and expected.context == found.context
        assert torch.equal(expected.tasks.x, found.tasks.x) and torch.equal(expected.a, found.a)


def test_the_pool_that_follows_is_drawn_while_one_is_trained_on():
    bnn, drawn, is_drawn = priors()["classes"], [], threading.Semaphore(0)

    class Noted:
        def sample(self, generator, tasks, rows, features):
            batch = bnn.sample(generator, tasks, rows, features)
            drawn.append(float(batch.x.sum()))
            is_drawn.release()
            return batch

    ahead = EpisodeStream({"classes": Noted()}, STAGES, 0, ahead=True)
    ahead.episode(0)
    for _ in range(2):  # the pool of the first steps, and unasked the one after it
        assert is_drawn.acquire(timeout=60)
    ahead.episode(4)
    assert is_drawn.acquire(timeout=60) and len(drawn) == 3
    here = EpisodeStream({"classes": bnn}, STAGES, 0, ahead=False)
    for first, total in zip((0, 4), drawn, strict=False):
        pool = [here.episode(first + index).tasks.x for index in range(4)]
        assert float(torch.cat(pool).sum()) == pytest.approx(total, rel=1e-4)


def test_a_draw_ahead_that_fails_says_so_where_it_is_needed():
    def failing():
        raise ValueError("no such task")

    ahead: DrawAhead = DrawAhead("cpu", lambda drawn: [])
    ahead.start("next", failing)
    assert ahead.take("now", lambda: 1) == 1
    ahead.start("next", failing)
    with pytest.raises(ValueError, match="no such task"):
        ahead.take("next", failing)


def test_classes_may_be_coded_by_how_frequent_they_are_in_the_context():
    prior = {"classes": build_prior("synthetic", {"binary_share": 0.3})}
    stages = (Stage(steps=1, tasks=30, rows=(40,), features=(3,), continuous=0.0),)
    plain, coded = (EpisodeStream(prior, stages, 0, by_frequency=by).episode(0) for by in (False, True))
    assert torch.equal(plain.tasks.x, coded.tasks.x) and torch.equal(plain.a, coded.a)
    before, after = plain.tasks, coded.tasks
    for task, count in enumerate(before.n_classes.tolist()):
        counts = after.y[task, : coded.context].bincount(minlength=count)
        assert len(counts) == count and counts.tolist() == sorted(counts.tolist(), reverse=True)
        # One code for each class, and the truth goes with it.
        pairs = set(zip(before.y[task].tolist(), after.y[task].tolist(), strict=True))
        assert len(pairs) == len({old for old, _ in pairs}) == len({new for _, new in pairs})
        for old, new in pairs:
            told, known = after.truth.probabilities[task, :, new], before.truth.probabilities[task, :, old]
            assert torch.equal(told, known)
        assert after.truth.probabilities[task, :, count:].sum() == 0
    number = {"continuous": build_prior("bnn", {"outcome": "continuous"})}
    assert EpisodeStream(number, STAGES, 0, by_frequency=True).episode(0).tasks.continuous


def test_other_steps_and_seeds_draw_other_tasks():
    first = stream(0)
    drawn = [first.episode(0), first.episode(1), first.episode(4), stream(1).episode(0)]
    sums = {round(float(each.tasks.x.sum()), 4) for each in drawn}
    assert len(sums) == 4 and len({each.seed for each in drawn}) == 4


def test_stages_follow_one_another_and_the_last_never_ends():
    assert [stage_at(STAGES, step)[1] for step in (0, 8, 9, 10, 500)] == [0, 8, 0, 1, 491]
    assert stage_at(STAGES, 8)[0] == 0 and stage_at(STAGES, 9)[0] == 1


def test_only_recorded_values_are_known_in_the_asked_share():
    prior = priors()["classes"]
    batch = prior.sample(seeded("cpu", 1), 8, 200, 6)
    stage = Stage(steps=1, known=(0.7, 1.0), baseline_known=0.0)
    a = draw_known(seeded("cpu", 2), batch, 100, stage)
    r = batch.r[:, 100:]
    assert not (a & ~r).any()
    assert 0.75 < float((a.sum(-1) / r.sum(-1).clamp_min(1)).mean()) < 1.0
    nothing = draw_known(seeded("cpu", 2), batch, 100, Stage(steps=1, known=(0.0, 0.0), baseline_known=0.0))
    assert not nothing.any()


def test_baseline_features_are_known_where_the_stage_says_so():
    batch = priors()["classes"].sample(seeded("cpu", 3), 6, 60, 6)
    a = draw_known(seeded("cpu", 4), batch, 30, Stage(steps=1, known=(0.0, 0.0), baseline_known=1.0))
    assert torch.equal(a, batch.r[:, 30:] & ~batch.acquirable[:, None])


def test_steps_of_one_stage_cost_about_the_same_whatever_the_shape():
    stage = Stage(steps=1, cells=12_000)
    assert stage.tasks_for(100, 4) == 24 and stage.tasks_for(200, 59) == 1 and stage.tasks_for(5000, 99) == 1


@pytest.mark.parametrize("settings", [{"steps": -1}, {"rows": (4,)}, {"features": (0,)}, {"context": (1.0,)}])
def test_impossible_stages_are_refused(settings):
    with pytest.raises(ConfigError, match=f"stage.{next(iter(settings))}"):
        Stage(**{"steps": 1, **settings})


def test_held_out_tasks_are_fixed_and_an_untrained_model_is_not_under_their_base_rate():
    shapes = {
        "small": Stage(steps=1, tasks=3, rows=(40,), features=(3,), continuous=0.0),
        "continuous": Stage(steps=1, tasks=3, rows=(40,), features=(3,), continuous=1.0),
    }
    first, again = (draw_held_out(priors(), pools=2, shapes=shapes) for _ in range(2))
    assert [group.name for group in first] == ["small", "continuous"]
    assert torch.equal(first[1].episodes[1].tasks.x, again[1].episodes[1].tasks.x)
    report = evaluate(fresh_model(), first)
    assert report["small"] > report["small_base"] - 0.05
    assert 1.0 < report["continuous_base"] < 2.0


def test_shapes_of_a_kind_that_the_prior_lacks_are_left_out():
    only = {"continuous": priors()["continuous"]}
    assert [group.name for group in draw_held_out(only, pools=1)] == ["continuous"]
    assert set(SHAPES) > {"small", "continuous"}


def test_a_prior_of_one_kind_serves_every_stage():
    only = EpisodeStream({"continuous": priors()["continuous"]}, STAGES, 0)
    assert all(only.episode(step).tasks.continuous for step in (0, 4, 8))


def test_equal_stages_draw_tasks_of_their_own():
    """The same settings twice, as where a rate begins anew, are not the same lessons twice."""
    stage = Stage(steps=4, tasks=2, rows=(32,), features=(4,), continuous=0.0)
    drawn = [EpisodeStream(priors(), (stage, stage), seed=3).episode(step).tasks.x for step in (0, 4)]
    assert not torch.equal(*drawn)


@pytest.mark.parametrize(
    "told",
    [
        {"continuous": 2.0},
        {"continuous": float("nan")},
        {"baseline_known": -0.1},
        {"known": (0.6, 0.2)},
        {"known": (0.0, 1.5)},
        {"tasks": 0},
        {"cells": -1},
        {"context": (1.0,)},
    ],
    ids=str,
)
def test_a_stage_that_cannot_be_drawn_is_refused_by_its_setting(told):
    with pytest.raises(ConfigError, match=f"stage.{next(iter(told))}"):
        Stage(steps=1, **told)
