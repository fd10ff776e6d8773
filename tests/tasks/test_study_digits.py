"""The study's digit tasks: one of two digits, 20 named blocks of pixels, averaged."""

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.tasks.study_digits import BLOCKS, StudyDigitsConfig, StudyDigitsPrior

LABELS = torch.arange(600) % 10


def pictures() -> torch.Tensor:
    """Every pixel says which block it lies in and which digit is shown: 100 · row + 10 · column + digit / 10."""
    place = torch.arange(28) // 4
    return (100 * place[:, None] + 10 * place[None, :]) + LABELS[:, None, None] / 10


def test_features_are_the_means_of_the_study_s_blocks_in_its_order():
    prior = StudyDigitsPrior(StudyDigitsConfig(normalised=False), images=pictures(), labels=LABELS)
    batch = prior.sample(torch.Generator().manual_seed(0), 4, 50)
    assert batch.x.shape == (4, 50, 20) and len(BLOCKS) == len(set(BLOCKS)) == 20
    place = torch.tensor([100 * int(name[6]) + 10 * int(name[8]) for name in BLOCKS])
    assert torch.equal((batch.x - place + 0.01).floor(), torch.zeros(4, 50, 20))
    digit = ((batch.x - place) * 10).round().long()
    for task in range(4):
        shown = {k: set(digit[task][batch.y[task] == k].flatten().tolist()) for k in (0, 1)}
        assert len(shown[0]) == len(shown[1]) == 1 and shown[0] != shown[1], "the outcome is which of two digits"


def test_all_pairs_are_drawn_in_either_order_and_no_picture_twice():
    images = torch.arange(600.0)[:, None, None].expand(600, 7, 7)
    prior = StudyDigitsPrior(StudyDigitsConfig(normalised=False, digits=(2, 5)), images=images, labels=LABELS)
    batch = prior.sample(torch.Generator().manual_seed(0), 30, 60)
    number = batch.x[..., 0].long()
    assert all(len(set(task.tolist())) == 60 for task in number)
    first = {
        tuple(sorted({(int(n) % 10, int(k)) for n, k in zip(*task, strict=True)}))
        for task in zip(number, batch.y, strict=True)
    }
    assert first == {((2, 0), (5, 1)), ((2, 1), (5, 0))}


def test_features_are_normalised_over_the_task():
    prior = StudyDigitsPrior(images=torch.rand(600, 28, 28), labels=LABELS)
    x = prior.sample(torch.Generator().manual_seed(0), 3, 100).x
    assert x.mean(dim=1).abs().max() < 1e-5 and (x.std(dim=1, correction=0) - 1).abs().max() < 1e-4


@pytest.mark.parametrize("settings", [{"blocks": ("block_7_0",)}, {"digits": (3,)}, {"digits": (3, 12)}])
def test_impossible_settings_are_refused_by_name(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        StudyDigitsConfig(**settings)


def test_more_rows_than_two_digits_have_are_refused():
    prior = StudyDigitsPrior(images=torch.rand(600, 28, 28), labels=LABELS)
    with pytest.raises(ConfigError, match="120 pictures together, fewer than 200 rows"):
        prior.sample(torch.Generator().manual_seed(0), 2, 200)
