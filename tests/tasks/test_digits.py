"""Digit tasks: pictures, blocks of pixels as actions, questions."""

import numpy as np
import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.tasks.digits import DigitsConfig, DigitsPrior
from l2m_core.tasks.missingness import Missingness

WHOLE = Missingness.only("none")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def plain() -> tuple[np.ndarray, np.ndarray]:
    """Pictures of one brightness, which names the digit: what a picture shows can be read off it."""
    labels = np.arange(600) % 10
    return np.repeat((labels * 25).astype(np.uint8), 28 * 28).reshape(600, 28, 28), labels


def read(batch, side: str) -> torch.Tensor:
    """(B, N) the digit shown on the left or right of a pair of 14 × 14 pictures."""
    picture = batch.x.view(*batch.x.shape[:2], 14, 28)
    half = picture[..., :14] if side == "left" else picture[..., 14:]
    assert torch.equal(half.amin(dim=(2, 3)), half.amax(dim=(2, 3)))
    return (half[:, :, 0, 0] * 255 / 25).round().long()


def answers(plain, question: str):
    config = DigitsConfig(questions=(question,), missingness=WHOLE)
    return DigitsPrior(config, images=plain[0], labels=plain[1]).sample(seeded(), 12, 60)


def test_a_pair_has_twenty_blocks_and_none_straddles_both_digits(plain):
    prior = DigitsPrior(images=plain[0], labels=plain[1])
    picture = prior.groups.view(14, 28)
    assert prior.groups.unique().tolist() == list(range(20)) and prior.features == 14 * 28
    assert not set(picture[:, :14].flatten().tolist()) & set(picture[:, 14:].flatten().tolist())


def test_blocks_are_missing_as_wholes(plain):
    prior = DigitsPrior(images=plain[0], labels=plain[1])
    r = prior.sample(seeded(), 6, 100).r
    for block in range(20):
        pixels = r[:, :, prior.groups == block]
        assert (pixels == pixels[..., :1]).all()
    assert 0.4 < r.float().mean() < 1


@pytest.mark.parametrize("side", ["left", "right"])
def test_which_digit_is_asked_as_codes_of_the_digits_in_use(plain, side):
    batch = answers(plain, side)
    shown = read(batch, side)
    for digit, y, n_classes in zip(shown, batch.y, batch.n_classes, strict=True):
        pairs = sorted(set(zip(digit.tolist(), y.tolist(), strict=True)))
        assert len({d for d, _ in pairs}) == len({k for _, k in pairs}) == len(pairs) <= int(n_classes)
        assert [k for _, k in pairs] == sorted(k for _, k in pairs), "codes follow the order of the digits"


def test_larger_and_parity_compare_both_sides(plain):
    for question, compare in (("larger", lambda a, b: a > b), ("same_parity", lambda a, b: a % 2 == b % 2)):
        batch = answers(plain, question)
        assert torch.equal(batch.y, compare(read(batch, "left"), read(batch, "right")).long())
        assert (batch.n_classes == 2).all()


def test_digits_can_be_held_out(plain):
    config = DigitsConfig(digits=(1, 4, 7), used=(2, 3), missingness=WHOLE)
    batch = DigitsPrior(config, images=plain[0], labels=plain[1]).sample(seeded(), 20, 30)
    shown = torch.cat((read(batch, "left"), read(batch, "right")), dim=1)
    assert set(shown.flatten().tolist()) == {1, 4, 7}
    assert {len(set(task.tolist())) for task in shown} == {2, 3}


def test_single_pictures_tell_two_digits_apart(plain):
    config = DigitsConfig(layout="single", used=(2, 2), blocks=(4, 5), pool=1, missingness=WHOLE)
    prior = DigitsPrior(config, images=plain[0], labels=plain[1])
    batch = prior.sample(seeded(), 10, 80)
    assert prior.features == 28 * 28 and len(prior.groups.unique()) == 20
    shown = (batch.x[..., 0] * 255 / 25).round()
    assert (batch.n_classes == 2).all()
    assert all(len(task.unique()) == 2 for task in shown)
    assert torch.equal(batch.y, (shown == shown.amax(dim=1, keepdim=True)).long())


def test_no_picture_comes_twice_in_a_task():
    images = np.random.default_rng(0).random((300, 8, 8)).astype(np.float32)
    config = DigitsConfig(layout="single", pool=1, blocks=(2, 2))
    batch = DigitsPrior(config, images=images, labels=np.arange(300) % 10).sample(seeded(), 5, 50)
    assert all(len(task.unique(dim=0)) == 50 for task in batch.x)


def test_real_digits_make_tasks(shared_data):
    file = np.load(shared_data / "mnist_6000.npz")
    prior = DigitsPrior(images=file["images"], labels=file["labels"])
    batch = prior.sample(seeded(), 3, 200, prior.features)
    assert batch.x.shape == (3, 200, 392) and 0 <= batch.x.min() and 0.5 < batch.x.max() <= 1


def test_impossible_requests_are_refused_by_name(plain):
    prior = DigitsPrior(DigitsConfig(used=(2, 2)), images=plain[0], labels=plain[1])
    with pytest.raises(ConfigError, match="392"):
        prior.sample(seeded(), 2, 10, 20)
    with pytest.raises(ConfigError, match="fewer than 200 rows"):
        prior.sample(seeded(), 2, 200)
    with pytest.raises(ConfigError, match="600 labels"):
        DigitsPrior(images=plain[0][:5], labels=plain[1])
    for settings, name in (
        ({"questions": ("sum",)}, "questions"),
        ({"digits": (3, 11)}, "digits"),
        ({"used": (2, 11)}, "used"),
        ({"blocks": (0, 5)}, "blocks"),
        ({"layout": "triple"}, "layout"),
    ):
        with pytest.raises(ConfigError, match=name):
            DigitsConfig(**settings)
