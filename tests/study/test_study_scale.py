"""The scale "study" holds the study's own numbers, of the experiments and of the methods that they run."""

from dataclasses import fields

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.methods import make_method
from l2m_core.methods.networks import DuelingNetwork, Network
from l2m_core.tasks.registry import build_prior
from train.policy import PolicyJob
from train.study.evaluation.trial_runs import MethodChoice
from train.study.experiments import gradients
from train.study.experiments.comparison import ComparisonSettings, Run, method_runs, settings_of_method
from train.study.experiments.experiment import EXPERIMENTS, experiment_settings, find, version_of
from train.study.experiments.families import Family, draw, stand_ins


def test_the_study_scale_has_the_study_s_settings():
    context = experiment_settings("context_length", "study")
    assert context.lengths == (50, 100, 200, 500, 900) and context.missingness == (0.0, 0.5, 0.75, 1.0)
    planning = experiment_settings("planning", "study")
    assert planning.policy.temperature == 0.5 and planning.policy.samples == 4
    assert {f.name: f.tasks for f in planning.families} == {"bnn": 200, "bnn_plan": 200}
    assert experiment_settings("uncertainty", "study").steps == 10
    estimated = experiment_settings("gradients", "study")
    assert (estimated.reference, estimated.rows, estimated.steps, estimated.judged) == (1000, 500, 5, 0.5)
    assert (estimated.paths, estimated.ahead, estimated.reweighted) == (4, (1, 2), (64, 128))
    assert {family.tasks for family in estimated.families} == {50}
    assert sum(f.tasks for f in experiment_settings("runtimes", "study").families) == 50
    acquisition: ComparisonSettings = experiment_settings("acquisition", "study")
    assert acquisition.methods == ("l2m", "l2m_random", "gdfs", "dime", "dqn")
    assert {
        "gp_rbf",
        "gp_matern",
        "metabric",
        "miniboone",
        "digit_pairs",
        "hospital_long_stay",
        "hospital_death",
        "hospital_readmission",
    } == {f.name for f in acquisition.families}
    kernels = {f.name: f.settings.get("kernel", "rbf") for f in experiment_settings("uncertainty", "study").families}
    assert kernels["gp_rbf"] == "rbf" and kernels["gp_matern"] == "matern"


def test_small_and_study_differ_in_size_and_not_in_kind():
    for name in EXPERIMENTS:
        small, study = experiment_settings(name, "small"), experiment_settings(name, "study")
        assert type(small) is type(study)
        assert {f.name for f in fields(small)} == {f.name for f in fields(study)}
        assert sum(f.tasks for f in small.families) < sum(f.tasks for f in study.families)


def test_planning_freezes_the_backbone_and_gives_both_ways_the_same_budget():
    planning = experiment_settings("planning", "study")
    assert PolicyJob.__dataclass_fields__["backbone"].default == 0.0
    jobs = find("planning").jobs(planning, None)
    assert sorted({job.part[1] for job in jobs}) == ["greedy", "lookahead"]
    assert len({(job.part[0].budget, job.part[0].tasks) for job in jobs}) == 1


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "ablations"])
def test_the_methods_of_the_study_scale_have_the_study_s_hyperparameters(name):
    """Whatever the experiment; ablations train their own models."""
    settings = experiment_settings(name, "study")
    methods = {
        method: make_method(method, **settings_of_method(method, settings))
        for method in getattr(settings, "methods", ())
        if not MethodChoice(method).pretrained
    }
    for method in methods.values():
        assert method.hidden == 128 and method.dropout == 0
    for method in (methods[name] for name in ("gdfs", "dime", "dqn") if name in methods):
        predictor = method.pretraining
        assert (predictor.epochs, predictor.batch, predictor.patience) == (300, 64, None)
        assert method.predictor_share == 0, "the task-specific MLP is the predictor, and stays as it was trained"
        assert method.most_steps > 1000, "each trajectory terminates when all features are acquired"
    for method in (methods[name] for name in ("gdfs", "dime") if name in methods):
        assert (method.schedule.epochs, method.schedule.patience) == (50, None)
    if "gdfs" in methods:
        assert methods["gdfs"].temperatures == (0.5,) and methods["gdfs"].straight_through
    if "dime" in methods:
        assert list(methods["dime"].exploration) == [1.0]
    if "dqn" in methods:
        dqn = methods["dqn"]
        assert (dqn.discount, dqn.capacity, dqn.episodes, dqn.target_every) == (0.9, 10_000, 200, 4)
        assert dqn.replayed == 128 and not dqn.double and dqn.apart
        assert dqn.reward == "log likelihood" and dqn.first_epsilon > dqn.last_epsilon > 0
    for mlp in [methods.get("mlp_random"), make_method(getattr(settings, "other", "mlp_random"))]:
        if mlp is not None:
            assert (mlp.hidden, mlp.schedule.epochs, mlp.schedule.batch) == (128, 300, 64)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_drawn_tasks_are_the_study_s_own(name):
    """Its priors with ten features, values missing completely at random; L2M-Syn's tasks are wider, partly at random.
    `synthetic` is this project's, and says so."""
    for family in experiment_settings(name, "study").families:
        if family.source != "prior" or family.prior == "synthetic":
            continue
        prior = build_prior(family.prior, family.settings).config
        l2m_syn = getattr(prior, "covariates", "") == "gaussian"
        assert family.prior in ("gp", "study_bnn", "study_bnn_plan") and family.features == (20 if l2m_syn else 10)
        assert prior.baseline == ((0, 3) if l2m_syn else (0, 0))
        assert prior.missingness.mar_baseline == (0.5 if l2m_syn else 0) and prior.missingness.mcar > 0
        assert not prior.missingness.own_interval
        assert prior.missingness.mnar == prior.missingness.block == prior.missingness.mar_recorded == 0


TRAINING = ("planning", "ablations", "zero_shot")


def test_what_trains_at_the_study_scale_trains_on_a_gpu_and_only_there():
    for name in EXPERIMENTS:
        devices = [getattr(experiment_settings(name, scale), "device", None) for scale in ("small", "study")]
        assert devices == (["cpu", "cuda"] if name in TRAINING else [None, None])


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is at hand")
@pytest.mark.parametrize("name", TRAINING)
def test_without_a_gpu_it_says_so_before_it_trains(name, tmp_path):
    family = "{name: bnn, features: 5, context: 40, test_rows: 12, tasks: 1}"
    given = ["device=cuda", f"families=[{family}]"] + ["folder=" + str(tmp_path / "f")] * (name != "zero_shot")
    job = find(name).jobs(experiment_settings(name, "small", given), tmp_path)[-1]
    with pytest.raises(ConfigError, match="no GPU is at hand; device=cpu"):
        find(name).work(job)
    assert not (tmp_path / "f").exists()


def test_planning_teaches_on_the_device_that_was_asked_for(monkeypatch, tmp_path):
    class Asked(Exception):
        pass

    def catch(job, resume):
        raise Asked(job.device)

    monkeypatch.setattr(find("planning"), "train_policy", catch)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    settings = experiment_settings("planning", "small", ["device=cuda:1", f"folder={tmp_path}"])
    with pytest.raises(Asked, match="cuda:1"):
        find("planning").work(find("planning").jobs(settings, tmp_path)[0])


def test_networks_have_two_hidden_layers_of_128():
    generator = torch.Generator().manual_seed(0)
    shapes = [tuple(weight.shape) for weight in Network(7, 3, generator).weights]
    assert shapes == [(128, 7), (128, 128), (3, 128)]
    # Dueling: one output more, the value.
    assert tuple(DuelingNetwork(7, 3, generator).weights[-1].shape) == (4, 128)


def test_the_ablations_have_the_study_s_backbone():
    backbone = experiment_settings("ablations", "study").backbone
    assert (backbone.layers, backbone.width, backbone.heads, backbone.feedforward) == (6, 256, 4, 512)


def test_digit_pairs_show_twenty_blocks_and_metabric_six_classes(tmp_path):
    families = {f.name: f for f in experiment_settings("acquisition", "study").families}
    pairs, metabric = families["digit_pairs"], families["metabric"]
    small = Family("p", source="digits", settings=pairs.settings, context=30, test_rows=10)
    assert len(set(draw(small, 0, tmp_path).context.groups)) == 20
    assert draw(metabric, 0, tmp_path).context.n_classes == 6


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_task_of_the_study_scale_can_be_drawn_from_stand_ins(name, tmp_path):
    for family in experiment_settings(name, "study").families:
        trial = draw(family, 0, tmp_path)
        assert len(trial.context) == family.context and len(trial.x) > 0
    assert not any("contexts of" in note for note in stand_ins(experiment_settings(name, "study").families, tmp_path))


@pytest.mark.shared_data
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_task_of_the_study_scale_can_be_drawn_from_the_real_tables(name, shared_data):
    for family in experiment_settings(name, "study").families:
        if family.source != "prior":
            assert len(draw(family, 0, shared_data).x) > 0


def test_records_with_holes_are_no_longer_than_a_real_table_gives(shared_data):
    family = Family("m", source="semi_synthetic", data="metabric", features=5, context=40)
    settings = gradients.GradientsSettings((family,), rows=2000, reweighted=(2,), reference=10, steps=2)
    found = gradients.with_holes(settings, family, shared_data, torch.Generator().manual_seed(0))
    kinds = ["pathwise, 1 step", "pathwise, 2 steps", "offline", "semi-offline"]
    assert [record["estimator"] for record in found] == kinds
    assert [record["samples"] for record in found] == [4, 4, 2, 2]


def test_settings_of_a_method_reach_it_and_mark_its_records_alone(tmp_path):
    given = ["methods=[l2m_random, gdfs, base_rate]", "families=[{name: bnn, tasks: 1}]"]
    plain = experiment_settings("acquisition", "small", given)
    changed = experiment_settings("acquisition", "small", [*given, "method_settings={gdfs: {hidden: 7}}"])
    before = {job.key: version_of(job) for job in find("acquisition").jobs(plain, tmp_path)}
    after = {job.key: version_of(job) for job in find("acquisition").jobs(changed, tmp_path)}
    assert [key for key in before if before[key] != after[key]] == ["bnn/0//gdfs"]
    trial = draw(Family("bnn", context=30, test_rows=10), 0, tmp_path)
    wrong = ComparisonSettings((), methods=("base_rate",), method_settings={"base_rate": {"depth": 3}})
    (failed,) = method_runs(Run(Family("bnn"), 0, ("base_rate",)), trial, wrong)
    assert "depth" in failed.error


def test_settings_of_a_method_that_is_not_run_are_refused():
    with pytest.raises(ConfigError, match="'dine'"):
        experiment_settings("acquisition", "study", ["method_settings={dine: {exploration: [1.0]}}"])
