"""Whatever the encoder and the kind of outcome, every face of a model says what its module says."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import l2m_core as l2m
from l2m_core import metrics
from l2m_core.acquire.rollout import roll_out
from l2m_core.answering.predictive import Predictive
from l2m_core.answering.release import Release, load_release, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.evidence import Evidence, EvidenceSettings, ask_fold, make_plan, summarise
from l2m_core.memory import L2M, CohortMemory
from l2m_core.methods.l2m import L2MMethod
from l2m_core.model.density import Density, Gaussian, predictive
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import Context, ModelConfig

FEATURES = 4
LEVELS = (0.05, 0.3, 0.5, 0.9)
SMALL = {"layers": 1, "width": 16, "heads": 2, "feedforward": 16, "max_classes": 3, "bins": 12}
KINDS = ("binary", "multiclass", "continuous")
CASES = [
    *[(encoder, kind, True) for encoder in ("cells", "rows") for kind in KINDS],
    ("rows", "continuous", False),
]
CONTINUOUS = [case for case in CASES if case[1] == "continuous"]


def name_of(case: tuple[str, str, bool]) -> str:
    encoder, kind, standardise = case
    return f"{encoder}-{kind}" if standardise else f"{encoder}-{kind}-unscaled"


@dataclass(frozen=True)
class Case:
    kind: str
    release: Release
    cohort: l2m.Cohort
    memory: CohortMemory


def make_cohort(kind: str) -> l2m.Cohort:
    generator = np.random.default_rng(3)
    x = generator.normal(size=(60, FEATURES)).astype(np.float32)
    signal = x[:, 0] + 0.3 * generator.normal(size=60)
    x[generator.random(x.shape) < 0.15] = np.nan
    y = {"binary": signal > 0, "multiclass": np.digitize(signal, [-0.5, 0.5]), "continuous": 20 + 5 * signal}[kind]
    return l2m.Cohort.from_arrays(x, y.astype(np.float32 if kind == "continuous" else np.int64), kind=kind)


@pytest.fixture(scope="module", params=CASES, ids=name_of)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A tiny untrained model with weights drawn at random, released and loaded, that has read a cohort."""
    encoder, kind, standardise = request.param
    of_rows = {"features": FEATURES + 1, "outcome": "continuous" if kind == "continuous" else "classes"}
    config = ModelConfig(encoder=encoder, standardise=standardise, **SMALL, **(of_rows if encoder == "rows" else {}))
    torch.manual_seed(0)
    module = build_model(config)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_model(folder, module, config, TrainedRange(), AnswerSettings(), {})
    release = load_release(folder)
    cohort = make_cohort(kind)
    return Case(kind, release, cohort, L2M(release).condition(cohort))


def partly_known(rows: int = 7) -> np.ndarray:
    generator = np.random.default_rng(4)
    x = generator.normal(size=(rows, FEATURES)).astype(np.float32)
    x[generator.random(x.shape) < 0.5] = np.nan
    return x


def by_the_module(
    case: Case, x: np.ndarray, cohort: l2m.Cohort | None = None
) -> tuple[torch.Tensor | Density | Gaussian, np.ndarray]:
    """The prediction and the gains (n, d), by nothing but the module: probabilities (n, K) or a distribution.

    cohort: the context, if it is not the case's own."""
    cohort = cohort or case.cohort
    context = Context(
        torch.from_numpy(np.nan_to_num(cohort.x))[None],
        torch.from_numpy(cohort.r.copy())[None],
        torch.from_numpy(cohort.y.copy())[None],
        None if case.kind == "continuous" else torch.tensor([cohort.n_classes]),
        torch.zeros(1, FEATURES, dtype=torch.bool),
    )
    with torch.no_grad():
        memory = case.release.module.condition(context)  # type: ignore[operator]
        output = case.release.module.query(  # type: ignore[operator]
            memory, torch.from_numpy(np.nan_to_num(x))[None], torch.from_numpy(~np.isnan(x))[None]
        )
    if case.kind == "continuous":
        return predictive(output, memory), output.gain[0].numpy()
    return output.prediction[0].double().softmax(-1)[:, : cohort.n_classes], output.gain[0].numpy()


def losses_by_the_module(case: Case, x: np.ndarray, y: np.ndarray, cohort: l2m.Cohort | None = None) -> np.ndarray:
    expected, _ = by_the_module(case, x, cohort)
    if isinstance(expected, torch.Tensor):
        return -np.log(expected.numpy()[np.arange(len(y)), y])
    return -expected.log_prob(torch.from_numpy(y.copy())[None])[0].numpy()


def check_agreement(case: Case, x: np.ndarray, prediction: np.ndarray | Predictive) -> None:
    expected, _ = by_the_module(case, x)
    if isinstance(expected, torch.Tensor):
        assert isinstance(prediction, np.ndarray)
        np.testing.assert_allclose(prediction, expected.numpy(), atol=1e-6)
        return
    assert isinstance(prediction, Predictive)
    np.testing.assert_allclose(prediction.mean, expected.mean[0].clip(*prediction.reach), rtol=1e-5)
    np.testing.assert_allclose(prediction.std, expected.std[0], rtol=1e-5)
    for level in LEVELS:
        within = expected.quantile(level)[0].clip(*prediction.reach)
        np.testing.assert_allclose(prediction.quantile(level), within, rtol=1e-5)
    y = np.linspace(5, 40, len(x)).astype(np.float32)
    np.testing.assert_allclose(prediction.log_prob(y), expected.log_prob(torch.from_numpy(y)[None])[0], rtol=1e-4)


def test_many_patients_are_predicted_as_by_the_module(case: Case) -> None:
    x = partly_known()
    check_agreement(case, x, case.memory.predict(x))
    many = partly_known(100)  # too many for the cache
    check_agreement(case, many, case.memory.predict(many))


def test_gains_are_those_of_the_module(case: Case) -> None:
    x = partly_known()
    _, gains = by_the_module(case, x)
    np.testing.assert_allclose(case.memory.rank(x).to_numpy(), np.where(np.isnan(x), gains, np.nan), atol=1e-6)


def test_one_patient_is_believed_as_by_the_module(case: Case) -> None:
    patient = case.memory.start({"x0": 1.2}).observe("x2", -0.4)
    posterior = patient.posterior
    check_agreement(case, patient.x, posterior[None] if isinstance(posterior, np.ndarray) else posterior)
    assert np.isfinite(patient.preview("x1").iloc[:, 2:].to_numpy(dtype=float)).all()
    assert all(np.isfinite(driver.change) for driver in patient.driving)


@pytest.mark.parametrize("case", CONTINUOUS, indirect=True, ids=name_of)
def test_a_distribution_s_pdf_rows_and_entropy_agree_with_its_log_density(case: Case) -> None:
    prediction = case.memory.predict(partly_known())
    assert isinstance(prediction, Predictive) and len(prediction) == 7
    grid = np.linspace(-200, 250, 30_001)
    pdf = prediction.pdf(grid).astype(np.float64)
    step = grid[1] - grid[0]
    np.testing.assert_allclose(pdf.sum(1) * step, 1, atol=2e-3)
    np.testing.assert_allclose((pdf * grid).sum(1) * step, prediction.mean, rtol=0.02, atol=0.05)
    at_25 = np.exp(prediction.log_prob([25.0] * 7))
    np.testing.assert_allclose(prediction.pdf(np.array([18.0, 25.0]))[:, 1], at_25, rtol=1e-5)
    assert prediction.row(3).mean == prediction.mean[3] and len(prediction.row(3)) == 1
    if isinstance(prediction.distribution, Gaussian):
        # In the unit of the standardised outcome: of the outcome itself, less the logarithm of its scale.
        own = -(pdf * np.log(np.maximum(pdf, 1e-300))).sum(1) * step
        scale = float(prediction.distribution.scale)
        np.testing.assert_allclose(prediction.entropy(), own - np.log(scale), atol=2e-3)


def test_the_log_loss_of_a_roll_out_is_that_of_the_module_s_predictions(case: Case) -> None:
    x, y = case.cohort.x[:9], case.cohort.y[:9]
    rollout = roll_out(case.memory, x, budget=2, y=y)
    assert rollout.losses is not None
    shown = np.where(rollout.known, x, np.nan).astype(np.float32)
    np.testing.assert_allclose(rollout.losses[:, -1], losses_by_the_module(case, shown, y), rtol=1e-4, atol=1e-5)


def test_as_a_method_it_predicts_as_by_the_module(case: Case) -> None:
    method = L2MMethod(model=L2M(case.release)).fit(case.cohort)
    x = np.nan_to_num(case.cohort.x[:8])
    a = np.random.default_rng(5).random(x.shape) < 0.5
    check_agreement(case, np.where(a, x, np.nan).astype(np.float32), method.predict(x, a))


def test_a_trace_holds_what_was_believed_and_replays_to_it(case: Case) -> None:
    patient = case.memory.start({"x0": 0.7}).observe({"x1": 0.1}).unavailable("x3")
    trace = l2m.Trace.from_json(patient.trace.to_json())
    held = trace.steps[-1].posterior
    expected, _ = by_the_module(case, patient.x)
    if isinstance(expected, torch.Tensor):
        assert list(held.values()) == pytest.approx(expected[0].tolist(), abs=1e-6)
    else:
        lowest = expected.quantile(0.05).clip(*case.memory.outcome_reach)
        numbers = {"mean": expected.mean, "std": expected.std, "5% quantile": lowest}
        assert {name: held[name] for name in numbers} == pytest.approx(
            {name: float(number[0]) for name, number in numbers.items()}, rel=1e-5
        )
        assert held["5% quantile"] < held["50% quantile"] < held["95% quantile"]
    assert trace.replay(case.memory).known == patient.known
    assert trace.differences(case.memory) == (0.0, 0.0, 0.0)
    again = L2M(case.release).condition(case.cohort)
    assert max(trace.differences(again)) < 1e-5


def test_evidence_is_measured_on_the_module_s_predictions(case: Case) -> None:
    model, settings = L2M(case.release), EvidenceSettings(folds=2, budget=2, most_rows=12, draws=100)
    plan = make_plan(case.cohort, settings)
    answers = [ask_fold(model, case.cohort, plan, settings, fold) for fold in range(plan.folds)]
    for fold, answer in enumerate(answers):
        nothing = np.full((len(answer.rows), FEATURES), np.nan, np.float32)
        context = case.cohort.rows(plan.context(fold))
        expected = losses_by_the_module(case, nothing, case.cohort.y[answer.rows], context)
        np.testing.assert_allclose(answer.loss[0, :, 0], expected, rtol=1e-4, atol=1e-5)
    evidence = summarise(case.cohort, plan, settings, answers)
    before_any = np.concatenate([answer.loss[0, :, 0] for answer in answers]).mean()
    assert evidence.curve.loss[0].value == pytest.approx(before_any)
    assert Evidence.from_data(evidence.to_data()) == evidence


def test_bands_and_resamples_answer_with_the_same_kind_of_prediction(case: Case) -> None:
    patient = case.memory.start({"x0": 0.7})
    band = patient.band(case.memory.resampled(2))
    assert (band.low <= band.value).all() and (band.value <= band.high).all()
    assert len(band) == max(1, case.cohort.n_classes)


def test_the_regressor_and_the_classifier_predict_as_the_memory_does(case: Case, tmp_path) -> None:
    folder = tmp_path / "tiny"
    save_model(folder, case.release.module, case.release.config, TrainedRange(), AnswerSettings(), {})
    kind = l2m.L2MRegressor if case.kind == "continuous" else l2m.L2MClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = kind(str(folder)).fit(case.cohort.x, case.cohort.y)
    x = partly_known()
    check_agreement(case, x, fitted.predict_distribution(x) if case.kind == "continuous" else fitted.predict_proba(x))


def test_crps_of_a_normal_prediction_is_its_closed_form() -> None:
    raw = torch.tensor([[[0.3, 0.2], [-1.0, 1.5]]])
    prediction = Predictive.of(Gaussian(raw, torch.full((1, 1), 10.0), torch.full((1, 1), 2.0)))
    y = np.array([11.0, 5.0])
    mean, std = prediction.mean.astype(float), prediction.std.astype(float)
    z = torch.from_numpy((y - mean) / std)
    normal = torch.distributions.Normal(0.0, 1.0)
    closed = std * (z * (2 * normal.cdf(z) - 1) + 2 * normal.log_prob(z).exp() - np.pi**-0.5).numpy()
    assert metrics.row_crps(prediction, y, levels=2000) == pytest.approx(closed, rel=1e-2)
