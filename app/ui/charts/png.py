"""A chart's SVG file as PNG, for where only pixels can be put in."""

from __future__ import annotations

from app.ui import fonts

ZOOM = 3  # pixels for each of the SVG's: 2,160 across, which is sharp in print over the width of a page


def from_svg(svg: str) -> bytes:
    """Letters that the font lacks (Chinese, say) are empty boxes; the SVG has them."""
    import resvg_py

    return resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=ZOOM,
        skip_system_fonts=True,  # the same picture on every server, with fonts or without
        font_files=[str(fonts.REGULAR)],
        font_family=fonts.NAME,
        sans_serif_family=fonts.NAME,
    )
