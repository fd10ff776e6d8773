"""What a refusal says can be stated is what the page, Python and a command take."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from pathlib import Path

import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.settings import apply_override, build_settings
from l2m_core.tables import reading_options
from l2m_core.tables.how_to_state import ON_THE_PAGE, how_to_state
from train.finetune import FinetuneJob

REFUSED = {
    "decimal": ["1,234", "2,250", "3,125"],
    "missing": ["1.5", "2.5", "3.5", "nicht da"],
    "censored": ["1.5", "2.5", "<0.5"],
    "units": ["1.5 mg/L", "2.5 mg/L", "3.5 mg/L"],
}


def options_of(command: str) -> reading_options.ReadingOptions:
    parser = argparse.ArgumentParser()
    reading_options.add_options(parser)
    return reading_options.chosen(parser.parse_args(shlex.split(command)))


def settings_of(job: str) -> reading_options.ReadingOptions:
    settings = {"folder": "runs/ward", "cohort": "ward.csv"}
    for override in shlex.split(job):
        apply_override(settings, override)
    return build_settings(FinetuneJob, settings).reading


@pytest.mark.parametrize("option", ON_THE_PAGE)
def test_each_way_that_a_refusal_names_has_the_file_read(option: str, tmp_path: Path):
    file = tmp_path / "ward.csv"
    values = REFUSED[option] * 8
    file.write_text("a;y\n" + "".join(f"{value};{'yes' if i % 2 else 'no'}\n" for i, value in enumerate(values)))
    with pytest.raises(CohortError) as refusal:
        Cohort.from_file(file, outcome="y")
    said = re.search(
        r"in Python: (?:.* or )?(\w+)=(.*?); for a command: (?:.* or )?(--.*?); for a job: (?:.* or )?(.*?)\)",
        str(refusal.value),
    )
    assert said is not None, str(refusal.value)
    assert f"on the page: '{ON_THE_PAGE[option]}'" in str(refusal.value)
    told, by_command, by_job = {said[1]: ast.literal_eval(said[2])}, options_of(said[3]), settings_of(said[4])
    assert by_job == by_command
    assert list(told) == [option]
    in_python = Cohort.from_file(file, outcome="y", **told)
    assert in_python.content_hash == Cohort.from_file(file, outcome="y", **by_command.keywords()).content_hash
    assert in_python.feature("a").kind == "number"


def test_a_text_with_a_space_is_one_argument_of_the_command():
    said = how_to_state("missing", "k. A.")
    assert "missing=['k. A.']" in said
    _, _, commands = said.partition("for a command: ")
    for_a_command, _, for_a_job = commands.partition("; for a job: ")
    assert options_of(for_a_command).missing == settings_of(for_a_job).missing == ("k. A.",)


def test_a_number_that_means_not_recorded_stays_a_text_in_a_job_s_settings():
    assert settings_of(how_to_state("missing", "-9").rpartition("for a job: ")[2]).missing == ("-9",)
