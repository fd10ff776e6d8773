"""Stochastic encodings for feature acquisition (SEFA; Norcliffe et al., 2025)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional

from l2m_core.errors import ConfigError
from l2m_core.methods.interface import register
from l2m_core.methods.masked import PredictorSettings, RankingNetworkMethod, Rows
from l2m_core.methods.networks import Network, uniform

ENCODER_HIDDEN = 20
LEAST_STD = 1e-3
ROWS_AT_ONCE = 64
"""Ranked together: each is asked about with every sample of its latents."""


@register("sefa")
class SEFA(RankingNetworkMethod):
    """Every feature has a latent of its own, stochastic as long as nothing is known of it; tests are ranked by how much the
    outcome hangs on their latents, over the many ways in which those may fall.

        z_j ~ N(μ_j(x_j a_j, a_j), σ_j²(x_j a_j, a_j)),     p(y | x⊙a) = E_z p(y | z)
        loss   = −log p(y | x⊙a) + β Σ_j KL(N(μ_j, σ_j²) ‖ N(0, 1))
        r_j    = Σ_c p(c | x⊙a) · E_z [ |∂p(c | z)/∂z_j| / Σ_k |∂p(c | z)/∂z_k| ]

    Nothing is trained for the order. Where the paper leaves room, or this project differs:

    - The sizes are in the middle of those that the authors' own settings try; they choose among nine by validation.
    - No normalisation over batches, since contexts are short. Training ends early by the loss of rows held out.
    - A panel's latents count as one. A category's levels share the latent of their feature.
    - The paper has classes only. Of a continuous outcome, r is of its mean.
    """

    def __init__(
        self,
        *,
        latents: int = 4,
        beta: float = 0.005,
        training_samples: int = 100,
        samples: int = 200,
        **predictor: Unpack[PredictorSettings],
    ):
        super().__init__(**predictor)
        if latents < 1 or beta < 0 or training_samples < 1 or samples < 1:
            raise ConfigError(
                f"SEFA has latents {latents}, beta {beta:g}, training_samples {training_samples} and samples {samples}; "
                "give at least 1 of each, and a beta of at least 0."
            )
        self.latents = latents
        """Of each feature."""
        self.beta = beta
        self.training_samples = training_samples
        self.samples = samples
        """Of the latents, for predictions and scores."""

    def _new_predictor(self) -> nn.Module:
        encoder = FeatureEncoder(
            torch.from_numpy(self.encoding.owner), self.encoding.n_features, self.latents, self.generator
        )
        decoder = self._network(self.head.outputs, inputs=self.encoding.n_features * self.latents)
        self.stochastic = LatentPredictor(encoder, decoder, self.training_samples, self.samples, self._mean_of)
        return self.stochastic

    def _mean_of(self, raw: Tensor) -> Tensor:
        """(S, n, outputs) of each sample → (n, outputs) of their mean: of classes the logarithm of mean probabilities."""
        return raw.mean(0) if self.continuous else raw.log_softmax(-1).exp().mean(0).clamp_min(1e-12).log()

    def _learn(self, rows: Rows, held: Rows) -> None:
        self._train_predictor(rows, held, self.pretraining)

    def _predictor_loss(self, inputs: Tensor, target: Tensor) -> Tensor:
        return super()._predictor_loss(inputs, target) + self.beta * self.stochastic.encoder.told(inputs).mean()

    def _scores(self, inputs: Tensor) -> Tensor:
        return torch.cat([inputs.new_zeros(0, self.n_actions), *map(self._scored, inputs.split(ROWS_AT_ONCE))])

    def _scored(self, inputs: Tensor) -> Tensor:
        """(n, D + d) → (n, actions)"""
        z = self.stochastic.sample(inputs).requires_grad_()  # (S, n, d, latents)
        action = torch.from_numpy(self.groups)
        scores = torch.zeros(len(inputs), self.n_actions)
        with torch.enable_grad():
            raw = self.stochastic.decoder(z.flatten(2))
            told = raw[..., :1] if self.continuous else raw.softmax(-1)  # (S, n, K)
            weight = torch.ones_like(told[0]) if self.continuous else told.mean(0).detach()
            for c in range(told.shape[-1]):
                gradient = torch.autograd.grad(told[..., c].sum(), z, retain_graph=True)[0]
                # (S, n, actions): the length of the gradient over all latents of an action's features.
                square = torch.zeros(*gradient.shape[:2], self.n_actions).index_add(2, action, (gradient**2).sum(-1))
                length = square.sqrt()
                share = length / length.sum(-1, keepdim=True).clamp_min(1e-8)
                scores += weight[:, c : c + 1] * share.mean(0)
        return scores


class FeatureEncoder(nn.Module):
    """Mean and spread of each feature's latents, from its own columns and whether it is known, and from nothing else."""

    own: Tensor

    def __init__(self, owner: Tensor, features: int, latents: int, generator: torch.Generator):
        super().__init__()
        self.features = features
        # Column → the feature it belongs to: its values' columns (D,), then its mask's (d,).
        feature = torch.cat([owner, torch.arange(features)])
        rows = torch.arange(features).repeat_interleave(ENCODER_HIDDEN)
        self.register_buffer("own", (rows[:, None] == feature).float())  # (d · hidden, D + d)
        self.first = uniform((len(rows), len(feature)), 2, generator)
        self.first_bias = uniform((len(rows),), 2, generator)
        self.second = uniform((features, ENCODER_HIDDEN, ENCODER_HIDDEN), ENCODER_HIDDEN, generator)
        self.second_bias = uniform((features, ENCODER_HIDDEN), ENCODER_HIDDEN, generator)
        self.last = uniform((features, ENCODER_HIDDEN, 2 * latents), ENCODER_HIDDEN, generator)
        self.last_bias = uniform((features, 2 * latents), ENCODER_HIDDEN, generator)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """(n, D + d) → mean and standard deviation, (n, d, latents) each"""
        hidden = (
            functional.linear(inputs, self.first * self.own, self.first_bias).relu().unflatten(1, (self.features, -1))
        )
        hidden = (torch.einsum("ndh,dhk->ndk", hidden, self.second) + self.second_bias).relu()
        mean, raw = (torch.einsum("ndh,dhk->ndk", hidden, self.last) + self.last_bias).chunk(2, dim=-1)
        return mean, functional.softplus(raw) + LEAST_STD

    def told(self, inputs: Tensor) -> Tensor:
        """(n,) KL(N(μ, σ²) ‖ N(0, 1)) of all latents, in nats: how much they tell of the row."""
        mean, std = self(inputs)
        return (0.5 * (std**2 + mean**2 - 1) - std.log()).sum((1, 2))


class LatentPredictor(nn.Module):
    """Averages what a network says of samples of the latents."""

    noise: Tensor

    def __init__(
        self,
        encoder: FeatureEncoder,
        decoder: Network,
        training_samples: int,
        samples: int,
        mean_of: Callable[[Tensor], Tensor],
    ):
        super().__init__()
        self.encoder, self.decoder, self.mean_of = encoder, decoder, mean_of
        self.training_samples = training_samples
        latents = encoder.last.shape[-1] // 2
        # The same noise for every row, so that a row's answer does not hang on who is asked about beside it.
        noise = torch.randn(samples, 1, encoder.features, latents, generator=decoder.generator)
        self.register_buffer("noise", noise)

    def forward(self, inputs: Tensor) -> Tensor:
        """(n, D + d) → (n, outputs)"""
        return self.mean_of(self.decoder(self.sample(inputs).flatten(2)))

    def sample(self, inputs: Tensor) -> Tensor:
        """(S, n, d, latents)"""
        mean, std = self.encoder(inputs)
        noise = self.noise
        if self.training:
            noise = torch.randn(self.training_samples, *mean.shape, generator=self.decoder.generator)
        return mean + std * noise
