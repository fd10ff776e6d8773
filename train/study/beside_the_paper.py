"""`python -m train beside_the_paper`: the paper's tables and figures with its numbers beside this project's.

Runs nothing but the prevalences that `--data` asks for: everything of ours is read from the records in `--out`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go

from l2m_core.cli import program, purpose
from l2m_core.learn.checkpoints import write_text
from l2m_core.paths import folder_to_write
from train.study.beside.drawings import DRAWINGS, Drawing
from train.study.beside.published import Published, PublishedFigure, PublishedTable, read_published
from train.study.beside.records import NO_RECORD, Records, scale_line, to_make
from train.study.beside.tables import COMMAND, OURS, PREVALENCES, Ours, measure_prevalences
from train.study.experiments import figures
from train.study.experiments.datasets import check_data_folder
from train.study.experiments.experiment import EXPERIMENTS
from train.study.experiments.overview import write_overview
from train.study.markdown import markdown_table

NAME = "beside-the-paper"
TITLE = "Beside the paper"


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    if given.data is not None:
        check_data_folder(given.data)
        table = measure_prevalences(given.data)
        write_text(given.out / f"{PREVALENCES}.csv", table.to_csv(index=False, float_format="%.6g"))
    write_page(given.out)
    write_overview(given.out)
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("train", "beside_the_paper"), description=purpose(__doc__))
    parser.add_argument(
        "--out", type=folder_to_write, default=Path("docs/results"), help="folder of the records and of the page"
    )
    parser.add_argument("--data", type=Path, help="measure prevalences of the study's data sets in this folder anew")
    return parser.parse_args(arguments)


def write_page(folder: Path) -> None:
    """NAME.md, and all figures of ours in NAME.html."""
    published, records = read_published(), Records(folder)
    drawn = {f.name: figure for f in published.figures if (figure := draw(f, records)) is not None}
    pictures = figures.save_together(drawn, folder, NAME, TITLE)
    write_text(folder / f"{NAME}.md", page(published, records, set(drawn), pictures))


def page(published: Published, records: Records, drawn: set[str], pictures: dict[str, str]) -> str:
    parts = [HEAD, "## Tables"]
    parts += [part for table in published.tables for part in table_section(table, OURS[table.name](records))]
    parts.append("## Numbers in the text")
    parts += [part for table in published.text for part in table_section(table, OURS[table.name](records))]
    parts.append("## Figures")
    for figure in published.figures:
        parts += figure_section(figure, records, figure.name in drawn, pictures.get(figure.name, ""))
    parts += ["## Records", *record_sections(records)]
    return "\n\n".join(parts) + "\n"


def record_sections(records: Records) -> list[str]:
    """How each record was made, once."""
    used = {drawing.record for drawing in DRAWINGS.values()} | set(OURS)
    names = [name for name in EXPERIMENTS if name in used and records.made(name)]
    sections = [(f"### Record: {name.replace('_', ' ')}", " ".join(records.details(name))) for name in names]
    return [part for section in sections for part in section]


def cited(place: str, caption: str) -> str:
    return f'{place[:1].upper()}{place[1:]}: "{caption}"'


# -- tables -----------------------------------------------------------------------------------------------------------


def table_section(table: PublishedTable, ours: Ours) -> list[str]:
    heading = f"### Table {table.number}: {table.name}" if table.number else f"### {table.name.capitalize()}"
    return [
        heading,
        cited(table.place, table.caption),
        markdown_table(side_by_side(table, ours)),
        f"**Scale.** Theirs: {table.theirs}. Ours: {ours.scale}.",
        f"**How ours were made.** {' '.join(ours.made)}",
    ]


def side_by_side(table: PublishedTable, ours: Ours) -> pd.DataFrame:
    """The paper's layout, each column of numbers followed by ours."""
    first, *others = table.columns
    rows = []
    for name, *cells in table.rows:
        row = {first: name}
        for column, cell in zip(others, cells, strict=True):
            row[f"{column}, paper"] = cell
            row[f"{column}, ours"] = ours.cells.get((name, column), NO_RECORD)
        rows.append(row)
    return pd.DataFrame(rows)


# -- figures ----------------------------------------------------------------------------------------------------------


def shown(drawing: Drawing, records: Records) -> pd.DataFrame:
    """What the record has of the figure's families."""
    table = drawing.table(records)
    return table[table["family"].map(drawing.takes)] if len(table) else table


def draw(published: PublishedFigure, records: Records) -> go.Figure | None:
    if not published.measured:
        return None
    drawing = DRAWINGS[published.name]
    table = shown(drawing, records)
    if table.empty:
        return None
    replaced = records.stand_ins(drawing.record, dict.fromkeys(table["family"]))
    others = f"; not the paper's data: {', '.join(map(figures.named, replaced))}" if replaced else ""
    title = f"Beside figure {published.number}, ours (scale {records.scale(drawing.record)}{others})"
    return figures.entitled(drawing.figure(table), title)


def figure_section(published: PublishedFigure, records: Records, is_drawn: bool, picture: str) -> list[str]:
    parts = [
        f"### Figure {published.number}: {published.name.replace('_', ' ')}",
        cited(published.place, published.caption),
    ]
    if not published.measured:
        return [*parts, "It explains and shows no result, so nothing of ours stands beside it."]
    drawing = DRAWINGS[published.name]
    table = shown(drawing, records)
    families = list(dict.fromkeys(table["family"])) if len(table) else []
    ours = scale_line(records, drawing.record, families) if families else NO_RECORD
    if picture:
        parts.append(f"![Ours, beside figure {published.number}]({picture})")
    if is_drawn:
        parts.append(f"Ours: [{NAME}.html, figure {published.number}]({NAME}.html#{published.name}).")
    parts.append(f"**Scale.** Theirs: {published.theirs}. Ours: {ours}.")
    parts.append(f"**Form.** {drawing.form}")
    parts.append(f"**How ours was made.** {' '.join(how_made(drawing, records, families))}")
    return parts


def how_made(drawing: Drawing, records: Records, families: list[str]) -> list[str]:
    """The record's own words, then what it lacks of what the paper shows."""
    absent = [name for name in drawing.wanted if name not in families]
    whole = [] if families else ["Nothing is drawn: the record at hand lacks what the figure shows."]
    again = [f"`python -m train reproduce {drawing.record} --scale small` makes what is missing."]
    return [
        *records.made(drawing.record),
        *records.stand_ins(drawing.record, families).values(),
        *whole,
        *to_make(drawing.record, absent),
        *(again if not families and not absent else []),
    ]


HEAD = f"""# {TITLE}

`{COMMAND}`

Each table of the paper ("Learning-To-Measure: In-Context Active Feature Acquisition") in its own layout, its numbers as
published and ours beside them, and each figure drawn in its form from our records. Published numbers stand in
`train/study/beside/published.yaml`; a figure's are not published, and its form is read from its caption and the text. Ours are
read from the CSV files of this folder; "{NO_RECORD}" means that there is none, or that it measures something else, and the
words below say which command makes it. A command writes its record anew, of one scale at a time. Nothing here is a verdict:
those stand in the [overview](README.md), each by a rule fixed before its run.

The paper's models have 6 layers of width 256 and were trained for 100,000 steps (predictor) and 50,000 (policy) on H100 GPUs.
Ours are the released general model or, at the scale reduced, the study's own models with 4 layers of width 128, trained on one
CPU core for 2,500 to 62,712 steps (predictor) and 6,000 to 61,500 (policy), as each one's card says (those of the ablations:
20,000 and 2,000). Where ours and theirs differ, this comes first. Bars are 95% intervals over tasks where nothing else is said;
contexts (in rows) are those of today's configs, where these have as many tasks as the record."""
