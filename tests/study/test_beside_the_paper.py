"""The paper's numbers stand as published; ours come from records, and where there is none the page says so in words."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from tests.prerequisites import REPOSITORY, study_source
from train.__main__ import main
from train.study import beside_the_paper as command
from train.study.beside import drawings, tables
from train.study.beside.drawings import DRAWINGS
from train.study.beside.published import PublishedFigure, PublishedTable, read_published
from train.study.beside.records import NO_RECORD, Records
from train.study.beside.tables import OURS
from train.study.experiments.experiment import find

PUBLISHED = read_published()
TABLES = {table.name: table for table in (*PUBLISHED.tables, *PUBLISHED.text)}
MEASURED = [figure for figure in PUBLISHED.figures if figure.measured]
OF_EXPERIMENTS = ("runtimes", "gradients")

MACROS = {
    r"\LTM": "L2M",
    r"\GP": "GP",
    r"\BNN": "BNN",
    r"\Mini": "MiniBooNE",
    r"\Metabric": "Metabric",
    r"\MNIST": "MNIST",
    r"\MIMIC": "MIMIC-IV",
    r"\pm": "±",
    r"\times": "×",
    r"\downarrow": "↓",
    r"\uparrow": "↑",
    r"\%": "%",
}


def plain(latex: str) -> str:
    """Without mark-up: what a reader of the paper sees."""
    for macro, text in MACROS.items():
        latex = re.sub(re.escape(macro) + r"(?![A-Za-z])(\\ )?", text, latex)
    latex = re.sub(r"\\(emph|textbf)\b", "", latex)
    return re.sub(r"\s+", " ", re.sub(r"[${}]", "", latex)).strip()


def floats(kind: str) -> list[str]:
    """Figures or tables of the source, in its order."""
    return [body for _, body in re.findall(rf"\\begin{{({kind}\*?)}}(.*?)\\end{{\1}}", study_source(), re.DOTALL)]


def captions(latex: str) -> list[str]:
    """The text from each caption on."""
    return [plain(part) for part in re.split(r"\\caption\*?", latex)[1:]]


def cells(latex: str) -> list[tuple[str, ...]]:
    """The rows of a table, its heading first."""
    found = re.search(r"\\toprule(.*?)\\bottomrule", latex, re.DOTALL)
    assert found is not None
    rows = re.sub(r"\\midrule", "", found[1]).split(r"\\")
    return [tuple(plain(cell) for cell in row.split("&")) for row in rows if row.strip()]


# -- what the paper publishes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", PUBLISHED.tables, ids=lambda table: table.name)
def test_a_published_table_is_the_paper_s_cell_by_cell(table: PublishedTable):
    source = floats("table")[table.number - 1]
    assert f"\\label{{{table.label}}}" in source
    assert any(caption.startswith(table.caption) for caption in captions(source))
    heading, *rows = cells(source)
    assert heading == table.columns
    assert rows == list(table.rows)


def test_no_table_and_no_figure_of_the_paper_is_left_out():
    assert [table.number for table in PUBLISHED.tables] == list(range(1, len(floats("table")) + 1))
    assert [figure.number for figure in PUBLISHED.figures] == list(range(1, len(floats("figure")) + 1))


@pytest.mark.parametrize("figure", PUBLISHED.figures, ids=lambda figure: figure.name)
def test_a_figure_has_the_paper_s_number_label_and_caption(figure: PublishedFigure):
    source = floats("figure")[figure.number - 1]
    assert f"\\label{{{figure.label}}}" in source or not figure.label
    assert any(caption.startswith(figure.caption) for caption in captions(source))


@pytest.mark.parametrize("table", PUBLISHED.text, ids=lambda table: table.name)
def test_a_number_of_the_text_stands_in_a_sentence_of_the_paper(table: PublishedTable):
    assert table.caption in plain(study_source())
    assert all(cell in table.caption for row in table.rows for cell in row[1:])


# -- layout -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_its_whole_layout(name: str, tmp_path: Path):
    table = TABLES[name]
    assert all(len(row) == len(table.columns) for row in table.rows)
    ours = OURS[name](Records(tmp_path))
    shown = command.side_by_side(table, ours)
    assert shown.shape == (len(table.rows), 2 * len(table.columns) - 1)
    assert shown.notna().all().all()
    assert set(ours.cells) <= {(row[0], column) for row in table.rows for column in table.columns[1:]}


def test_every_table_and_every_figure_with_results_has_something_of_ours_or_words():
    assert set(OURS) == set(TABLES)
    assert set(DRAWINGS) == {figure.name for figure in MEASURED}
    assert all(figure.theirs for figure in MEASURED)


# -- missing records --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OF_EXPERIMENTS)
def test_without_a_record_a_table_has_words_and_the_command(name: str, tmp_path: Path):
    ours = OURS[name](Records(tmp_path))
    shown = command.side_by_side(TABLES[name], ours)
    own = [column for column in shown if column.endswith(", ours")]
    assert set(shown[own].to_numpy().ravel()) == {NO_RECORD}
    assert f"python -m train reproduce {name}" in " ".join(ours.made)


@pytest.mark.parametrize("figure", MEASURED, ids=lambda figure: figure.name)
def test_without_a_record_a_figure_is_not_drawn_and_says_which_command_makes_it(figure, tmp_path: Path):
    records = Records(tmp_path)
    assert command.draw(figure, records) is None
    section = "\n".join(command.figure_section(figure, records, False, ""))
    assert f"Ours: {NO_RECORD}." in section
    assert f"`python -m train reproduce {DRAWINGS[figure.name].record} --scale" in section
    assert "html" not in section


def test_a_page_without_any_record_is_whole(tmp_path: Path):
    assert main(["beside_the_paper", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "beside-the-paper.md").read_text()
    assert page.count("### Table") == len(PUBLISHED.tables) and page.count("### Figure") == len(PUBLISHED.figures)
    assert "[Beside the paper](beside-the-paper.md)" in (tmp_path / "README.md").read_text()


# -- records ----------------------------------------------------------------------------------------------------------


def keep(folder: Path, name: str, table: pd.DataFrame, caption: str = "") -> Records:
    """A record as an experiment writes it."""
    table.to_csv(folder / f"{name}.csv", index=False)
    claim = find(name).CLAIM
    page = f"# A\n\n`python -m train reproduce {name} --scale small` · 2026-11-23\n\n{caption}  \n\n"
    (folder / f"{name}.md").write_text(f"{page}**The study's words.** {claim}\n")
    return Records(folder)


def gradient_rows(**more: object) -> pd.DataFrame:
    facts = {"family": "bnn_plan", "part": "holes", "estimator": "offline", "samples": 64, "tasks": 8, "scale": "small"}
    scores = {"l2_error": 0.12345, "relative_error": 1.5, "cosine": 0.5}
    return pd.DataFrame([{**facts, **scores, **more}])


def test_our_numbers_stand_as_the_paper_writes_its_own(tmp_path: Path):
    spread = {"l2_error_std": 0.02, "relative_error_std": 0.25, "cosine_std": 0.1}
    ours = OURS["gradients"](keep(tmp_path, "gradients", gradient_rows(**spread)))
    row = "Offline IPW REINFORCE 5-step (n=64)"
    assert ours.cells == {
        (row, "Bias norm (↓)"): "0.123 ± 0.020",
        (row, "Rel. bias (↓)"): "1.50 ± 0.25",
        (row, "Cosine sim (↑)"): "0.50 ± 0.10",
    }
    assert "8 tasks" in ours.scale


def test_a_mean_without_a_spread_has_none_made_up(tmp_path: Path):
    ours = OURS["gradients"](keep(tmp_path, "gradients", gradient_rows()))
    assert ours.cells["Offline IPW REINFORCE 5-step (n=64)", "Cosine sim (↑)"] == "0.50"


def test_another_quantity_is_named_and_not_put_into_the_table(tmp_path: Path):
    ours = OURS["gradients"](keep(tmp_path, "gradients", gradient_rows(samples=30)))
    assert ours.cells == {}
    assert "offline (n=30)" in " ".join(ours.made) and "another quantity" in " ".join(ours.made)


def test_a_runtime_is_of_training_and_a_total_says_what_else_is_in_it(tmp_path: Path):
    facts = {"family": "bnn", "method": "dime", "tasks": 4, "scale": "small"}
    seconds = {"median_fit_seconds": 1.234, "median_seconds": 2.0, "total_seconds": 9.876}
    ours = OURS["runtimes"](keep(tmp_path, "runtimes", pd.DataFrame([{**facts, **seconds}])))
    assert ours.cells["DIME", "Median Time (s)"] == "1.23"
    assert ours.cells["DIME", "Total Time (s)"] == "9.88 (answering included)"
    assert ours.cells["DIME", "Epochs"].startswith("not recorded")
    assert ("GDFS", "Median Time (s)") not in ours.cells


@pytest.mark.parametrize(("scale", "epochs"), [("study", "50"), ("small", "not recorded (ends early)")])
def test_epochs_are_the_study_s_where_its_baselines_were_run(scale: str, epochs: str):
    assert tables.epochs_of("gdfs", scale) == epochs


def test_a_record_of_an_earlier_run_says_so(tmp_path: Path):
    records = keep(tmp_path, "gradients", gradient_rows())
    assert not records.is_earlier("gradients")
    (tmp_path / "gradients.md").write_text("# A\n\n`python -m train reproduce gradients` · 2026-11-22\n")
    assert records.is_earlier("gradients") and "earlier run" in " ".join(records.details("gradients"))


def test_a_stand_in_is_named_in_the_figure_and_below_it(tmp_path: Path):
    facts = {"variant": "", "method": "l2m", "score": "log_loss", "step": 0, "value": 0.5, "tasks": 1, "scale": "small"}
    table = pd.DataFrame([{"family": family, **facts} for family in ("gp_rbf", "miniboone")])
    records = keep(tmp_path, "acquisition", table, "miniboone: a made-up table.")
    (figure,) = (figure for figure in MEASURED if figure.name == "acquisition")
    drawn = command.draw(figure, records)
    assert drawn is not None and "not the paper's data: MiniBooNE" in drawn.layout.title.text
    section = "\n".join(command.figure_section(figure, records, True, ""))
    assert "MiniBooNE: a made-up table." in section and "No record of GP, Matérn" in section


def test_an_improvement_is_the_mlp_s_score_minus_l2m_s_by_task(tmp_path: Path):
    facts = {"family": "gp_rbf", "score": "mse", "step": 1}
    rows = [
        {**facts, "task": task, "method": method, "value": value + task}
        for task in (0, 1)
        for method, value in (("l2m", 0.25), ("mlp_random", 0.75))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "uncertainty-tasks.csv", index=False)
    assert drawings.improvements(Records(tmp_path))["value"].tolist() == [0.5]


def test_gains_over_random_order_are_not_drawn_as_gains_over_trained_methods(tmp_path: Path):
    table = pd.DataFrame([{"family": "bnn", "what": "context", "amount": 50, "gain": 0.1, "scale": "small"}])
    records = keep(tmp_path, "context_length", table)
    assert drawings.against_others(records).empty
    keep(tmp_path, "context_length", pd.concat([table.assign(against=a) for a in ("l2m_random", "gdfs")]))
    assert drawings.against_others(records)["against"].tolist() == ["gdfs"]


def test_prevalences_are_measured_where_data_are_given_and_stand_ins_marked(tmp_path: Path):
    data = tmp_path / "data"
    data.mkdir()
    assert OURS["prevalences"](Records(tmp_path)).cells == {}
    assert main(["beside_the_paper", "--out", str(tmp_path), "--data", str(data)]) == 0
    ours = OURS["prevalences"](Records(tmp_path))
    assert all(cell.endswith("(stand-in)") for cell in ours.cells.values()) and len(ours.cells) == 4
    assert "made-up table" in " ".join(ours.made)


def test_a_folder_of_data_that_is_not_there_is_no_folder_of_stand_ins(tmp_path: Path, capsys):
    assert main(["beside_the_paper", "--out", str(tmp_path), "--data", str(tmp_path / "dta")]) == 2
    assert "There is no folder" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


# -- the page ---------------------------------------------------------------------------------------------------------


def test_figures_lie_in_one_page_under_their_names_and_an_old_picture_goes(tmp_path: Path):
    (tmp_path / "beside-the-paper-gradient_errors.svg").write_text("old")
    keep(tmp_path, "gradients", gradient_rows(part="samples", estimator="gumbel", temperature=0.5))
    command.write_page(tmp_path)
    assert "id='gradient_errors'" in (tmp_path / "beside-the-paper.html").read_text()
    assert not list(tmp_path.glob("*.svg"))


def test_the_published_page_says_what_the_records_beside_it_say():
    folder = REPOSITORY / "docs" / "results"
    records = Records(folder)
    drawn = {figure.name for figure in MEASURED if command.draw(figure, records) is not None}
    pictures = {
        file.stem.removeprefix("beside-the-paper-"): file.name for file in folder.glob("beside-the-paper-*.svg")
    }
    page = (folder / "beside-the-paper.md").read_text("utf-8")
    assert page == command.page(PUBLISHED, records, drawn, pictures), "run: python -m train beside_the_paper"
