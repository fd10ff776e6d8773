"""Tables as Markdown, for pages of results."""

from __future__ import annotations

import pandas as pd


def markdown_table(frame: pd.DataFrame) -> str:
    """Markdown, with four decimals."""

    def text(value) -> str:
        if isinstance(value, float):
            return f"{value:.4f}" if value != int(value if value == value else 0) or abs(value) < 1 else f"{value:g}"
        return str(value).replace("|", "\\|").replace("\n", " ")

    lines = ["| " + " | ".join(map(str, frame.columns)) + " |", "|" + " --- |" * len(frame.columns)]
    lines += ["| " + " | ".join(text(v) for v in row) + " |" for row in frame.itertuples(index=False)]
    return "\n".join(lines)
