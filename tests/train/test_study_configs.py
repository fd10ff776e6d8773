"""Each study config against the paper's own numbers: a table typed from its text and appendix, not from the configs."""

from pathlib import Path

import pytest

from l2m_core.errors import ConfigError, ModelFileError
from l2m_core.settings import build_settings, read_settings, to_plain
from l2m_core.tasks.registry import PRIORS
from train.__main__ import settings_of
from train.study.experiments.experiment import EXPERIMENTS, experiment_settings, models_of
from train.study.experiments.study_models import check_models

CONFIGS = Path(__file__).resolve().parents[2] / "train" / "configs"

# Appendix, "Experimental setup across datasets", and "Datasets": sequence length, missingness, classes, features, training rows.
# None: the paper states none for this family.
PAPER = {
    "gp": {"rows": 500, "missingness": "mcar", "classes": None, "features": 10, "pool": None},
    "miniboone": {"rows": 1000, "missingness": "mcar", "classes": 2, "features": 10, "pool": 5000},
    "mnist": {"rows": 1000, "missingness": "mcar", "classes": 2, "features": 20, "pool": 30_000},
    "metabric": {"rows": 500, "missingness": "mcar", "classes": 6, "features": 11, "pool": 1000},
    "mimic": {"rows": 1000, "missingness": "mar_baseline", "classes": 2, "features": 20, "pool": 5000},
    "bnn": {"rows": None, "missingness": None, "classes": 2, "features": None, "pool": None},
    "bnn_plan": {"rows": None, "missingness": None, "classes": 2, "features": None, "pool": None},
    "l2m_syn": {"rows": None, "missingness": None, "classes": 2, "features": None, "pool": None},
}
STEPS = {name: 50_000 if name == "mnist" else 100_000 for name in PAPER}
POLICIES = {
    f"{name}_study_policy{end}": (name, end.removeprefix("_") or "greedy")
    for name in PAPER
    for end in (("_greedy", "_lookahead") if name == "bnn_plan" else ("",))
}


def job_of(stem: str, kind: str):
    return build_settings(settings_of(kind), read_settings(CONFIGS / f"{stem}.yaml"))


def prior_settings(job):
    """The whole settings of the job's prior, defaults included."""
    return build_settings(PRIORS[job.prior.name].config, job.prior.settings)


def test_there_is_a_study_config_of_each_family_and_no_other():
    found = {path.stem for path in CONFIGS.glob("*_study*.yaml") if not path.stem.startswith("release")}
    assert found == {f"{name}_study" for name in PAPER} | set(POLICIES)


@pytest.mark.parametrize("name", PAPER)
def test_a_predictor_is_trained_as_the_paper_says(name):
    """Its table of hyperparameters, and the text beside it."""
    job = job_of(f"{name}_study", "predictor")
    model = job.model
    assert (model.encoder, model.feedforward, model.width, model.layers, model.heads) == ("rows", 512, 256, 6, 4)
    assert model.embedder_depth == 4
    loop = job.loop
    assert (loop.lr, loop.warmup, loop.beta2, loop.decay) == (1e-4, 500, 0.999, "linear")
    assert not loop.muon and loop.weight_decay == 0 and loop.clip == 0 and loop.evaluate_every == 500
    (stage,) = job.stages
    assert stage.steps == STEPS[name] and stage.tasks == 8 and stage.cells == 0 and stage.lr == (1.0, 0.0)


@pytest.mark.parametrize("name", [name for name in PAPER if PAPER[name]["rows"]])
def test_a_family_s_tasks_are_the_paper_s(name):
    paper, job = PAPER[name], job_of(f"{name}_study", "predictor")
    assert job.stages[0].rows == (paper["rows"],) and job.stages[0].features == (paper["features"],)
    assert job.model.outcome == ("classes" if paper["classes"] else "continuous")
    assert paper["classes"] is None or job.model.max_classes == paper["classes"]
    missingness = prior_settings(job).missingness
    weights = {k: getattr(missingness, k) for k in ("none", "mcar", "mar_baseline", "mar_recorded", "block", "mnar")}
    assert [name for name, weight in weights.items() if weight > 0] == [paper["missingness"]]
    assert missingness.panels == 0 and missingness.baseline_rate == 0 and missingness.outcome == 0
    if paper["missingness"] == "mcar":
        assert missingness.rate == (0.0, 0.5) and missingness.complete == 0 and not missingness.own_interval
    else:
        assert missingness.maximum == 0.5
    assert (job.prior.data.pool if job.prior.data else None) == paper["pool"]


def test_gp_tasks_have_the_appendix_s_kernel():
    gp = prior_settings(job_of("gp_study", "predictor"))
    assert (gp.kernel, gp.length_scale, gp.output_scale, gp.noise) == ("rbf", (0.1, 5.0), (0.5, 2.0), 2e-2)


@pytest.mark.parametrize("name", ["bnn", "bnn_plan", "l2m_syn", "metabric", "miniboone", "mimic"])
def test_labels_come_from_the_appendix_s_network(name):
    job = job_of(f"{name}_study", "predictor")
    settings = prior_settings(job)
    labels = settings.study if job.prior.name == "semi_synthetic" else settings
    assert labels.hidden == 8 and labels.prevalence == (0.05, 0.95)
    assert labels.clusters == ((1, 1) if name == "bnn_plan" else (1, 3))
    assert settings.normalised, "feature values are normalised within the task's sequence"
    assert job.prior.name != "semi_synthetic" or settings.labels == "study"


@pytest.mark.parametrize("stem", POLICIES)
def test_a_policy_is_trained_as_the_paper_says(stem):
    """ "For the policy …", and of the planning experiments: temperature 0.5, N_MC = 4, encoder and predictor frozen."""
    name, objective = POLICIES[stem]
    job, predictor = job_of(stem, "policy"), job_of(f"{name}_study", "predictor")
    assert job.init == predictor.folder and job.fresh_head and job.prior == predictor.prior
    assert job.loop.lr == 1e-4 and job.loop.beta2 == 0.999 and job.stages[0].lr == (1.0, 1.0)
    assert job.stages[0].steps == 50_000 and job.stages[0].tasks == 8 and job.stages[0].rows == predictor.stages[0].rows
    policy = job.policy
    assert policy.estimator == "gumbel" and policy.every_context and policy.objective == objective
    if name == "bnn_plan":
        assert (policy.temperature, policy.samples, job.backbone, policy.ahead) == (0.5, 4, 0.0, 1)
    else:
        assert policy.temperature == 0.1 and job.backbone * job.loop.lr == pytest.approx(1e-5)


def releases():
    return {path.stem: job_of(path.stem, "release") for path in CONFIGS.glob("release_*_study*.yaml")}


def test_every_policy_of_the_study_has_a_release_as_wide_and_long_as_its_training():
    made = releases().values()
    assert sorted(Path(job.run).name for job in made) == sorted(POLICIES)
    assert len({job.folder for job in made}) == len(made)
    for job in made:
        name, _ = POLICIES[Path(job.run).name]
        predictor = job_of(f"{name}_study", "predictor")
        assert job.curves == (predictor.folder,)
        assert job.trained.features == predictor.model.features
        assert job.trained.context_rows == predictor.stages[0].rows[0]
        assert job.trained.classes == predictor.model.max_classes or predictor.model.outcome == "continuous"
        kind = "continuous" if predictor.model.outcome == "continuous" else "binary"
        assert job.trained.outcomes == ("multiclass",) * (name == "metabric") or job.trained.outcomes == (kind,)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_at_the_study_s_scale_asks_the_study_s_models_about_tasks_as_long_as_theirs(name):
    """Or trains its own; never the general model."""
    trained = {job.folder: job.trained for job in releases().values()}
    settings = experiment_settings(name, "study")
    assert set(models_of(to_plain(settings))) <= set(trained)
    if not hasattr(settings, "model"):
        assert name in ("headroom", "ablations")
        return
    for family in settings.families:
        own = trained[family.model or settings.model]
        assert family.context <= own.context_rows
        if family.source in ("prior", "semi_synthetic"):
            assert family.features <= own.features
        pool = job_of(predictor_of(family.model or settings.model), "predictor").prior.data
        assert family.pool == (pool.pool if pool else family.pool), "tasks keep to rows that the model never saw"


def predictor_of(folder: str) -> str:
    return next(Path(job.curves[0]).name for job in releases().values() if job.folder == folder)


def test_a_model_of_the_study_that_is_not_there_is_asked_for_with_the_commands_that_make_it():
    with pytest.raises(ConfigError) as refused:
        check_models(["general", "runs/models/bnn-plan-study-lookahead"])
    words = str(refused.value)
    for command in (
        "python -m train predictor --config train/configs/bnn_plan_study.yaml",
        "python -m train policy --config train/configs/bnn_plan_study_policy_lookahead.yaml",
        "python -m train release --config train/configs/release_bnn_plan_study_lookahead.yaml",
    ):
        assert command in words
        assert (CONFIGS / command.split("/")[-1]).is_file()
    assert words.index("predictor --config") < words.index("policy --config") < words.index("release --config")
    with pytest.raises(ModelFileError, match="no model 'nowhere'"):
        check_models(["nowhere"])


@pytest.mark.parametrize("stem", sorted([f"{name}_study" for name in PAPER] + list(POLICIES)))
def test_a_study_config_says_what_it_changes_and_what_the_study_leaves_open(stem):
    head = (CONFIGS / f"{stem}.yaml").read_text().split("folder:")[0]
    assert "# As in the study:" in head and "# Unlike it:" in head and "# Not stated there:" in head
