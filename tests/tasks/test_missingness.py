"""Which values are recorded: rates, panels, and what the masks may depend on."""

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.tasks.missingness import MECHANISMS, Missingness, graft_missingness, sample_missingness

B, N, D, BASELINE = 6, 400, 9, 3


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_tasks(seed: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = seeded(seed)
    x = torch.randn(B, N, D, generator=generator)
    y = torch.randint(0, 3, (B, N), generator=generator)
    acquirable = torch.arange(D).expand(B, D) >= BASELINE
    return x, acquirable, y


def missing_rate(r: torch.Tensor) -> torch.Tensor:
    """(B, d) share of values that are not recorded."""
    return 1 - r.float().mean(dim=1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("panels", [0.0, 1.0])
def test_every_mechanism_gives_a_mask_that_the_seed_fixes(mechanism, panels):
    x, acquirable, y = make_tasks()
    config = Missingness.only(mechanism, panels=panels, baseline_rate=0.1)
    first, second = (sample_missingness(seeded(3), x, acquirable, config, y) for _ in range(2))
    other = sample_missingness(seeded(4), x, acquirable, config, y)
    assert first.shape == x.shape and first.dtype == torch.bool
    assert torch.equal(first, second) and not torch.equal(first, other)
    assert first.any(dim=1).all(), "every feature keeps a recorded value"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_baseline_features_are_recorded_unless_a_rate_says_otherwise(mechanism):
    x, acquirable, y = make_tasks()
    r = sample_missingness(seeded(), x, acquirable, Missingness.only(mechanism), y)
    assert r[:, :, :BASELINE].all()


def test_baseline_features_miss_at_most_at_their_rate():
    x, acquirable, _ = make_tasks()
    r = sample_missingness(seeded(), x, acquirable, Missingness.only("none", baseline_rate=0.2))
    rate = missing_rate(r)
    assert r[:, :, BASELINE:].all()
    assert 0 < rate[:, :BASELINE].mean() < 0.2 and rate.max() < 0.2 + 4 * (0.2 * 0.8 / N) ** 0.5


def test_mcar_rates_match():
    x, acquirable, _ = make_tasks()
    config = Missingness.only("mcar", rate=(0.3, 0.3), complete=0.0)
    rate = missing_rate(sample_missingness(seeded(), x, acquirable, config))[:, BASELINE:]
    assert torch.allclose(rate, torch.full_like(rate, 0.3), atol=4.5 * (0.21 / N) ** 0.5)


def test_mcar_rates_differ_between_features_within_the_range():
    x, acquirable, _ = make_tasks()
    config = Missingness.only("mcar", rate=(0.2, 0.8), complete=0.0)
    rate = missing_rate(sample_missingness(seeded(), x, acquirable, config))[:, BASELINE:]
    assert rate.min() > 0.1 and rate.max() < 0.9
    assert rate.std(dim=1).max() > 0.05


def test_a_share_of_features_is_complete():
    generator = seeded()
    x, acquirable = torch.randn(200, 50, 10, generator=generator), torch.ones(200, 10, dtype=torch.bool)
    config = Missingness.only("mcar", rate=(0.5, 0.5), complete=0.4)
    complete = sample_missingness(generator, x, acquirable, config).all(dim=1).float().mean()
    assert complete == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("mechanism", ["mar_baseline", "mar_recorded"])
@pytest.mark.parametrize("panels", [0.0, 1.0])
def test_mar_never_depends_on_what_is_not_recorded(mechanism, panels):
    """With the same random numbers, any other values in the unrecorded cells give the same mask: p(r | x) can only
    be a function of the recorded values."""
    x, acquirable, _ = make_tasks()
    config = Missingness.only(mechanism, panels=panels, baseline_rate=0.2)
    r = sample_missingness(seeded(5), x, acquirable, config)
    shuffled = x[:, torch.randperm(N, generator=seeded(6))]
    for unrecorded in (shuffled, torch.full_like(x, 1e6), torch.full_like(x, float("nan"))):
        again = sample_missingness(seeded(5), torch.where(r, x, unrecorded), acquirable, config)
        assert torch.equal(r, again)


@pytest.mark.parametrize("mechanism", ["mar_baseline", "mar_recorded"])
def test_mar_does_depend_on_what_is_recorded(mechanism):
    x, acquirable, _ = make_tasks()
    config = Missingness.only(mechanism)
    r = sample_missingness(seeded(5), x, acquirable, config)
    permuted = sample_missingness(seeded(5), x[:, torch.randperm(N, generator=seeded(6))], acquirable, config)
    assert (r != permuted).float().mean() > 0.05


def test_mar_on_other_recorded_features_works_without_baseline():
    x, _, _ = make_tasks()
    everything = torch.ones(B, D, dtype=torch.bool)
    config = Missingness.only("mar_recorded")
    r = sample_missingness(seeded(5), x, everything, config)
    permuted = sample_missingness(seeded(5), x[:, torch.randperm(N, generator=seeded(6))], everything, config)
    assert (r != permuted).float().mean() > 0.05


def test_mar_on_baseline_without_baseline_does_not_depend_on_values():
    x, _, _ = make_tasks()
    everything = torch.ones(B, D, dtype=torch.bool)
    config = Missingness.only("mar_baseline")
    r = sample_missingness(seeded(5), x, everything, config)
    assert torch.equal(r, sample_missingness(seeded(5), -3 * x, everything, config))


@pytest.mark.parametrize("mechanism", ["mar_baseline", "mar_recorded", "mnar", "outcome"])
def test_no_row_is_missing_with_more_than_the_maximum(mechanism):
    """A sharp mechanism drives some kinds of rows to the maximum; none may go beyond it."""
    generator = seeded()
    rows = 4000
    x = torch.randn(B, 1, D, generator=generator).repeat(1, rows, 1)
    x[:, ::2] = -x[:, ::2]  # two kinds of rows, so that each kind's rate can be counted
    y = torch.zeros(B, rows, dtype=torch.long)
    y[:, ::2] = 1
    acquirable = torch.arange(D).expand(B, D) >= BASELINE
    r = sample_missingness(generator, x, acquirable, Missingness.only(mechanism, strength=(50.0, 50.0)), y)
    rate = torch.stack((missing_rate(r[:, ::2]), missing_rate(r[:, 1::2])))[..., BASELINE:]
    assert rate.max() <= 0.5 + 4.5 * (0.25 / (rows / 2)) ** 0.5
    assert rate.max() > 0.4, "the sharp mechanism comes near its maximum"


def test_the_scale_sweeps_from_nothing_to_the_maximum():
    x, acquirable, _ = make_tasks()
    means = [
        missing_rate(sample_missingness(seeded(), x, acquirable, Missingness.only("mar_baseline", scale=scale)))[
            :, BASELINE:
        ].mean()
        for scale in (0.0, 0.5, 0.75, 1.0)
    ]
    assert means[0] == 0
    assert means[1] / means[3] == pytest.approx(0.5, abs=0.03) and means[2] / means[3] == pytest.approx(0.75, abs=0.03)


def test_mnar_depends_on_the_value_itself():
    x, acquirable, _ = make_tasks()
    r = sample_missingness(seeded(), x, acquirable, Missingness.only("mnar", strength=(4.0, 4.0)))
    recorded, absent = r[:, :, BASELINE:], ~r[:, :, BASELINE:]
    values = x[:, :, BASELINE:]
    gap = (values * recorded).sum(1) / recorded.sum(1) - (values * absent).sum(1) / absent.sum(1).clamp_min(1)
    assert gap.abs().mean() > 0.3


def test_outcome_missingness_differs_by_class_and_needs_y():
    x, acquirable, y = make_tasks()
    config = Missingness.only("outcome", strength=(4.0, 4.0))
    r = sample_missingness(seeded(), x, acquirable, config, y)[:, :, BASELINE:].float()
    by_class = torch.stack([(r * (y == k)[..., None]).sum(1) / (y == k).sum(1, keepdim=True) for k in range(3)])
    assert (by_class.amax(0) - by_class.amin(0)).mean() > 0.15
    with pytest.raises(ConfigError, match="pass y"):
        sample_missingness(seeded(), x, acquirable, config)


def test_a_panel_is_recorded_or_missing_as_one():
    x, acquirable, _ = make_tasks()
    config = Missingness.only("mcar", rate=(0.5, 0.5), complete=0.0, panels=1.0, panel_share=1.0, panel_size=(3, 3))
    r = sample_missingness(seeded(), x, acquirable, config)[:, :, BASELINE:]
    same = (r.unsqueeze(3) == r.unsqueeze(2)).all(dim=1)  # (B, d, d)
    partners = same.sum(dim=2) - 1
    assert (partners > 0).float().mean() > 0.5
    assert (partners < D - BASELINE - 1).any(), "a task has several panels"


def test_blocks_leave_heavy_gaps_that_say_nothing_about_values():
    x, acquirable, _ = make_tasks()
    config = Missingness.only("block", block_share=1.0, block_length=(0.3, 0.3), block_rate=0.0)
    r = sample_missingness(seeded(), x, acquirable, config)
    rate = missing_rate(r)[:, BASELINE:]
    assert torch.allclose(rate, torch.full_like(rate, 0.7), atol=0.12)
    assert torch.equal(r, sample_missingness(seeded(), -x, acquirable, config))


def test_tasks_of_a_batch_draw_their_mechanisms_by_weight():
    generator = seeded()
    x, acquirable = torch.randn(600, 30, 5, generator=generator), torch.ones(600, 5, dtype=torch.bool)
    config = Missingness(
        none=3.0, mcar=1.0, mar_baseline=0, mar_recorded=0, block=0, mnar=0, panels=0, rate=(0.5, 0.5), complete=0
    )
    complete = sample_missingness(generator, x, acquirable, config).flatten(1).all(dim=1).float().mean()
    assert complete == pytest.approx(0.75, abs=0.08)


def test_what_a_table_lacks_stays_missing_and_decides_nothing():
    x, acquirable, _ = make_tasks()
    had = torch.rand(B, N, D, generator=seeded(8)) > 0.3
    for mechanism in ("mar_baseline", "mar_recorded"):
        config = Missingness.only(mechanism, panels=1.0)
        r = sample_missingness(seeded(), x, acquirable, config, recorded=had)
        filled = sample_missingness(seeded(), torch.where(had, x, 99.0), acquirable, config, recorded=had)
        assert not (r & ~had).any() and torch.equal(r, filled)


def test_a_grafted_mask_consists_of_rows_of_the_pattern():
    x, acquirable, _ = make_tasks()
    pattern = torch.rand(20, D, generator=seeded(1)) < 0.6
    columns = torch.arange(D).flip(0).expand(B, D)
    r = graft_missingness(seeded(), x, pattern, torch.ones_like(acquirable), columns)
    known = {tuple(row) for row in pattern.flip(1).tolist()}
    assert all(tuple(row) in known for row in r.flatten(0, 1).tolist())
    assert graft_missingness(seeded(), x, pattern, acquirable, columns)[:, :, :BASELINE].all()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"mcar": -1.0}, "Missingness.mcar"),
        ({"maximum": 1.5}, "Missingness.maximum"),
        ({"rate": (0.5, 0.1)}, "Missingness.rate"),
        ({name: 0.0 for name in MECHANISMS}, "no mechanism"),
    ],
)
def test_impossible_settings_are_refused_by_name(settings, message):
    with pytest.raises(ConfigError, match=message):
        Missingness(**settings)
    with pytest.raises(ConfigError, match="unknown"):
        Missingness.only("mcra")
