"""Cividis, as the theme has it for Plotly's charts: dark to bright for everyone's eyes."""

from __future__ import annotations

CIVIDIS = ("#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838")
SHADES = 64
BRIGHT = 0.55  # from this shade on, signs are dark


def colour_of(shade: float) -> str:
    """shade: from 0, dark, to 1, bright."""
    return PALETTE[round(shade * (SHADES - 1))]


def ink_on(shade: float) -> str:
    """The colour of a sign that can be read on this shade."""
    return "#10181c" if shade > BRIGHT else "#fff"


def _mixed(shade: float) -> str:
    """Between the two nearest colours of the theme."""
    position = shade * (len(CIVIDIS) - 1)
    low = min(int(position), len(CIVIDIS) - 2)
    one, other = ([int(CIVIDIS[i][j : j + 2], 16) for j in (1, 3, 5)] for i in (low, low + 1))
    return "#" + "".join(f"{round(a + (b - a) * (position - low)):02x}" for a, b in zip(one, other, strict=True))


PALETTE = [_mixed(number / (SHADES - 1)) for number in range(SHADES)]
