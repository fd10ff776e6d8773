"""Which rows, features and models a model of a table's own covariates is made from."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine

from train.study.evaluation.trial_runs import load_model
from train.study.experiments import own_covariates, planning
from train.study.experiments.experiment import Job, experiment_settings, version_of
from train.study.experiments.families import Family, cohort_of, draw
from train.study.experiments.models import with_module

WINE = Family("wine", source="cohort", data="wine", two_classes=True, pool=90, context=60, test_rows=28)


class Taught(Exception):
    """Carries the tasks that would have been learned from."""


@pytest.fixture
def stream(monkeypatch, tmp_path):
    def stop(module, loss, stream, *_):
        raise Taught(stream)

    monkeypatch.setattr(own_covariates, "teach", stop)
    settings = experiment_settings("own_covariates", "small", [f"folder={tmp_path}", "families=[]"])

    def asked_with(part):
        with pytest.raises(Taught) as caught:
            own_covariates.work(Job("", settings, part, tmp_path))
        return caught.value.args[0]

    return asked_with


@pytest.mark.parametrize(("model", "by_frequency"), [("general", True), ("l2m-syn-reduced", False)])
def test_what_is_taught_has_its_classes_coded_as_the_model_answers_them(model, by_frequency, monkeypatch, tmp_path):
    def stop(*learned, resume=False):
        raise Taught(next(one for one in learned if hasattr(one, "by_frequency") or hasattr(one, "prior")))

    monkeypatch.setattr(own_covariates, "teach", stop)
    monkeypatch.setattr(planning, "train_policy", stop)
    folder = [f"folder={tmp_path}", f"model={model}"]
    with pytest.raises(Taught) as caught:
        settings = experiment_settings("own_covariates", "small", [*folder, "families=[]"])
        own_covariates.work(Job("", settings, WINE, tmp_path))
    assert caught.value.args[0].by_frequency is by_frequency
    with pytest.raises(Taught) as caught:
        settings = experiment_settings("planning", "small", folder)
        planning.work(Job("", settings, (settings.families[0], "greedy"), tmp_path))
    assert caught.value.args[0].classes_by_frequency is by_frequency
    own = load_model(model)
    assert (
        with_module(own, own.release.module, "taught", policy="learned").release.inference.by_frequency is by_frequency
    )


def test_a_model_learns_from_the_pool_and_is_asked_about_other_rows(stream, tmp_path):
    learned = cohort_of(WINE, tmp_path, part="train")
    assert len(learned) == 90
    for index in range(3):
        trial = draw(WINE, index, tmp_path)
        asked = {row.tobytes() for row in np.concatenate([trial.context.x, trial.x])}
        assert not asked & {row.tobytes() for row in learned.x}
    episode = stream(WINE).episode(0)
    assert episode.tasks.x.shape[1:] == (90, load_wine().data.shape[1])  # no more rows than the pool has; every column


def test_its_outcomes_are_drawn_and_not_the_table_s(stream, tmp_path):
    tasks = stream(WINE).episode(0).tasks
    assert tasks.truth is not None and set(tasks.n_classes.tolist()) == {2}
    real = torch.tensor(cohort_of(WINE, tmp_path, part="train").y).double()
    # Two classes of about a third and two thirds; drawn ones differ from task to task.
    assert len({round(float(share), 2) for share in tasks.y.double().mean(1)} | {round(float(real.mean()), 2)}) > 2


def test_a_narrowed_table_has_the_same_features_in_both_parts(tmp_path):
    narrow = Family("b", source="cohort", data="breast_cancer", features=7, narrowed=True, pool=200)
    both = [cohort_of(narrow, tmp_path, part=part) for part in ("train", "test")]
    assert both[0].names == both[1].names and len(both[0].names) == 7
    assert [len(part) for part in both] == [200, 369]


def test_l2m_syn_goes_on_with_the_prior_that_it_comes_from(stream):
    tasks = stream(own_covariates.LONGER).episode(0).tasks
    assert tasks.x.shape[1] == 128 and tasks.truth is not None


def test_where_each_table_names_its_model_nothing_is_trained():
    study = experiment_settings("own_covariates", "study")
    assert all(family.model and family.pool for family in study.families)
    assert own_covariates.LONGER not in [job.part for job in own_covariates.jobs(study, None)]
    reduced = experiment_settings("own_covariates", "reduced")
    assert all(family.pool for family in reduced.families)
    assert own_covariates.jobs(reduced, None)[0].part == own_covariates.LONGER


def test_another_table_leaves_the_records_of_those_before_it(tmp_path):
    few = experiment_settings("own_covariates", "small")
    more = replace(few, families=(*few.families, WINE))
    marks = [{job.key: version_of(job) for job in own_covariates.jobs(settings, tmp_path)} for settings in (few, more)]
    changed = {key for key, version in marks[0].items() if marks[1][key] != version}
    assert changed == {own_covariates.LONGER}  # which is asked about every table
    assert set(marks[1]) == {*marks[0], "wine"}
