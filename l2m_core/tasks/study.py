"""The study's own priors of classification tasks: study_bnn and study_bnn_plan, as its appendix describes them.

They stand beside `bnn` and `bnn_plan`, which differ: there each cluster has a network of its own, scores are brought to
unit variance, and interacting pairs lie in clusters. Here one network serves all rows, whose inputs are masked by the
features that the row's cluster reads. With `covariates: gaussian` study_bnn is the prior of the study's L2M-Syn.

Where the appendix gives no number, the ranges are those of the study's published code (importance, scale, temperature, the
class biases, at least one informative feature and at most all). Neither states how BNN-Plan's pairs are drawn, nor the
covariates of fully synthetic tasks beyond "multivariate Gaussian distributions with randomly sampled means and
covariances": what is chosen for them stands at the settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from l2m_core.tasks.batch import TaskBatch, Truth
from l2m_core.tasks.bnn import check_interactions, interactions, nearest_centre, of_cluster
from l2m_core.tasks.checks import check_choice, check_number, check_range
from l2m_core.tasks.draws import integers, log_uniform, normal, standardise, subset, uniform
from l2m_core.tasks.missingness import Missingness
from l2m_core.tasks.outcomes import draw_classes
from l2m_core.tasks.recorded import as_recorded


def study_missingness() -> Missingness:
    """MCAR: "missingness rates vary by feature", each at most 0.5; drawn uniformly."""
    return Missingness.only("mcar", rate=(0.0, 0.5), own_interval=False, complete=0.0)


@dataclass(frozen=True)
class StudyBNNConfig:
    """Ranges of the study_bnn prior. All are uniform."""

    classes: tuple[int, int] = (2, 2)
    """Range of the number of classes; (2, 2) makes every task binary."""
    prevalence: tuple[float, float] = (0.05, 0.95)
    """Range of the prevalence of a binary outcome; a bias shift matches it."""
    concentration: tuple[float, float] = (0.2, 2.0)
    """Range of the concentration of the Dirichlet distribution that a multi-class task's biases are the logarithms of."""
    temperature: tuple[float, float] = (0.5, 1.5)
    """Range of the temperature that logits are divided by."""
    clusters: tuple[int, int] = (1, 3)
    """Range of the number of clusters; their centres are standard normal."""
    informative: tuple[int, int] = (1, 1_000_000)
    """Range of the number of features that a cluster reads, cut to the task's features before it is drawn from."""
    hidden: int = 8
    """Width of the hidden layer."""
    importance: tuple[float, float] = (1.0, 10.0)
    """Range of a feature's importance weight."""
    scale: tuple[float, float] = (0.1, 1.5)
    """Range of a layer's scale factor."""
    covariates: str = "normal"
    """"normal": independent standard normals; "gaussian": a multivariate normal of random mean and covariance, as for
    L2M-Syn: Σ = A Aᵀ / d and μ of standard normal entries."""
    normalised: bool = True
    """Whether features are given with mean 0 and variance 1 over the task's rows, as the study trains; their cluster and
    label are drawn from such values either way."""
    baseline: tuple[int, int] = (0, 0)
    """Range of the number of baseline features; at least one feature stays acquirable."""
    missingness: Missingness = field(default_factory=study_missingness)
    """How values come to be missing."""

    def __post_init__(self) -> None:
        check_range(self, "classes", 2, 1000)
        check_range(self, "prevalence", 1e-4, 1 - 1e-4)
        for name in ("concentration", "temperature", "importance", "scale"):
            check_range(self, name, 1e-4, 1e4)
        check_range(self, "clusters", 1, 100)
        check_range(self, "informative", 1, 1_000_000)
        check_number(self, "hidden", 1, 4096)
        check_choice(self, "covariates", ("normal", "gaussian"))
        check_choice(self, "normalised", (True, False))
        check_range(self, "baseline", 0, 1_000_000)


@dataclass(frozen=True)
class StudyBNNPlanConfig(StudyBNNConfig):
    """Ranges of the study_bnn_plan prior: no clusters, and pairs of features that are informative only jointly.

    The study gives neither the number of pairs, nor the range of τ, nor the interactions' size against the main effect.
    These are such that looking two tests ahead gains something.
    """

    clusters: tuple[int, int] = (1, 1)
    """One: all rows read the same features."""
    informative: tuple[int, int] = (4, 8)
    """Range of the number of informative features."""
    interactions: tuple[int, int] = (1, 3)
    """Range of the number of pairs of informative features."""
    threshold: tuple[float, float] = (0.5, 1.0)
    """Range of τ: a pair adds w · x_i · x_j to the logit where x_i · x_j > τ, else nothing."""
    interaction_share: tuple[float, float] = (2.0, 4.0)
    """Range of the interactions' standard deviation against the main effect's, log-uniform."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_interactions(self)


class StudyBNNPrior:
    """study_bnn with a StudyBNNConfig, study_bnn_plan with a StudyBNNPlanConfig."""

    def __init__(self, config: StudyBNNConfig | None = None):
        self.config = config or StudyBNNConfig()

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        config = self.config
        x = _draw_covariates(generator, config.covariates, (tasks, rows, features))
        z = standardise(x)
        y, n_classes, truth = study_label(generator, z, config)
        x = z if config.normalised else x
        return as_recorded(generator, config, x, y, n_classes, truth)


class StudyBNNPlanPrior(StudyBNNPrior):
    def __init__(self, config: StudyBNNPlanConfig | None = None):
        super().__init__(config or StudyBNNPlanConfig())


def study_label(generator: torch.Generator, z: Tensor, config: StudyBNNConfig) -> tuple[Tensor, Tensor, Truth]:
    """z: (B, N, d) normalised covariates → y: (B, N), n_classes: (B,), and the truth: the appendix's steps 1 to 4."""
    B, N, d = z.shape
    most = config.clusters[1]
    cluster = nearest_centre(generator, z, integers(generator, (B,), *config.clusters), most, 1.0)
    fewest, largest = (min(end, d) for end in config.informative)
    informative = subset(generator, integers(generator, (B, most), fewest, largest), d)
    read = of_cluster(informative, cluster)  # (B, N, d)
    columns = 1 if config.classes[1] == 2 else config.classes[1]
    score = _network(generator, z * read, columns, config)
    if isinstance(config, StudyBNNPlanConfig):
        pairs = interactions(
            generator, z, cluster, informative, columns, count=config.interactions, threshold=config.threshold
        )
        share = log_uniform(generator, (B, 1, 1), *config.interaction_share)
        score = score + standardise(pairs) * share * score.std(dim=1, keepdim=True)
    score = score / uniform(generator, (B, 1, 1), *config.temperature)
    n_classes = integers(generator, (B,), *config.classes)
    logits = _class_logits(generator, score, n_classes, config)
    y, probabilities = draw_classes(generator, logits, n_classes, uniform(generator, (B,), *config.prevalence))
    return y, n_classes, Truth(probabilities=probabilities, informative=read)


def _draw_covariates(generator: torch.Generator, kind: str, shape: tuple[int, int, int]) -> Tensor:
    B, _, d = shape
    x = normal(generator, shape)
    if kind == "normal":
        return x
    # x A has the covariance Aᵀ A / d: a random one of full rank.
    mixing = normal(generator, (B, d, d)) / d**0.5
    return x @ mixing + normal(generator, (B, 1, d))


def _network(generator: torch.Generator, masked: Tensor, columns: int, config: StudyBNNConfig) -> Tensor:
    """masked: (B, N, d), 0 where the row's cluster does not read → (B, N, columns): tanh(x W₁ + b₁) W₂ + b₂."""
    B, _, d = masked.shape
    first, second = (uniform(generator, (B, 1, 1), *config.scale) for _ in range(2))
    importance = uniform(generator, (B, d, 1), *config.importance)
    inner = normal(generator, (B, d, config.hidden)) * importance * first
    hidden = torch.tanh(masked @ inner + normal(generator, (B, 1, config.hidden)) * first)
    outer = normal(generator, (B, config.hidden, columns)) * second
    return hidden @ outer + normal(generator, (B, 1, columns)) * second


def _class_logits(generator: torch.Generator, score: Tensor, n_classes: Tensor, config: StudyBNNConfig) -> Tensor:
    """(B, N, K) logits of a softmax. A binary task's first logit is 0, so that the softmax is the sigmoid."""
    if score.shape[2] == 1:
        return torch.cat((torch.zeros_like(score), score), dim=2)
    B, _, K = score.shape
    concentration = uniform(generator, (B, 1), *config.concentration).expand(B, K).contiguous()
    # Normalised gamma draws are a Dirichlet draw; a common factor is no matter to a softmax.
    bias = torch._standard_gamma(concentration, generator=generator).clamp_min(1e-8).log()
    several = score + bias.unsqueeze(1)
    binary = torch.where(torch.arange(K, device=score.device) == 1, score, 0.0)
    # The appendix passes the logits of every task through a sigmoid, and draws a class in proportion to what comes out.
    return torch.where((n_classes == 2)[:, None, None], binary, F.logsigmoid(several))
