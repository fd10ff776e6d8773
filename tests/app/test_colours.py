"""The colours of charts, as people see them whose eyes lack one kind of cone, or all of them."""

import itertools
import tomllib

import numpy as np
import pytest

from app.ui import charts
from app.ui.belief_curve import PAPER_COLOURS
from app.ui.charts.cividis import BRIGHT, CIVIDIS, PALETTE
from tests.prerequisites import REPOSITORY

THEME = tomllib.loads((REPOSITORY / "app" / ".streamlit" / "config.toml").read_text("utf-8"))["theme"]

# Linear RGB as it appears with the cone missing (Machado, Oliveira, Fernandes 2009, severity 1.0).
SIGHT = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(colour: str, sight: str) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(np.asarray(SIGHT[sight]) @ linear(colour), 0, 1) / WHITE
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    brightness = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (brightness[1] + 0.05) / (brightness[0] + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_accent_comparison_and_warning_stay_apart(theme: str, sight: str) -> None:
    first_three = THEME[theme]["chartCategoricalColors"][:3]
    apart = [np.linalg.norm(lab(a, sight) - lab(b, sight)) for a, b in itertools.combinations(first_three, 2)]
    assert min(apart) > 10, dict(zip(itertools.combinations(first_three, 2), apart, strict=True))


@pytest.mark.parametrize("sight", SIGHT)
def test_the_sequential_scale_grows_brighter_for_everyone(sight: str) -> None:
    brightness = [lab(colour, sight)[0] for colour in THEME["chartSequentialColors"]]
    assert np.all(np.diff(brightness) > 2)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marks_stand_out_from_the_background(theme: str) -> None:
    for colour in THEME[theme]["chartCategoricalColors"]:
        assert contrast(colour, THEME[theme]["backgroundColor"]) >= 3


@pytest.mark.parametrize("number", range(3, len(charts.SIGNS)))
def test_the_lines_of_a_history_take_the_colours_of_the_theme(number: int) -> None:
    style = (REPOSITORY / "app" / "ui" / "page.css").read_text("utf-8")
    light, dark = (THEME[theme]["chartCategoricalColors"][number] for theme in ("light", "dark"))
    assert f".s{number} {{\n    color: light-dark({light}, {dark});" in style
    assert contrast(PAPER_COLOURS[number], "#ffffff") >= 3


@pytest.mark.parametrize("number, name", list(enumerate(["accent", "neutral", "attention"])))
def test_charts_without_plotly_take_the_colours_of_those_with_it(number: int, name: str) -> None:
    style = (REPOSITORY / "app" / "ui" / "page.css").read_text("utf-8")
    light, dark = (THEME[theme]["chartCategoricalColors"][number] for theme in ("light", "dark"))
    assert f"--{name}: light-dark({light}, {dark});" in style


def test_the_heat_map_takes_the_sequential_scale_of_the_theme() -> None:
    assert list(CIVIDIS) == THEME["chartSequentialColors"]
    for colour in PALETTE:  # signs on it can be read
        shade = PALETTE.index(colour) / (len(PALETTE) - 1)
        assert contrast("#10181c" if shade > BRIGHT else "#ffffff", colour) >= 3


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("background", ["backgroundColor", "secondaryBackgroundColor"])
def test_captions_can_be_read_on_both_backgrounds(theme: str, background: str) -> None:
    """They are drawn in the text's colour at 60%."""
    text, behind = THEME[theme]["textColor"], THEME[theme][background]
    mixed = [round(0.6 * int(text[i : i + 2], 16) + 0.4 * int(behind[i : i + 2], 16)) for i in (1, 3, 5)]
    assert contrast("#" + "".join(f"{part:02x}" for part in mixed), behind) >= 4.5
