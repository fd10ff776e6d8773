"""What a manifest says of a cohort holds, or is refused by name."""

import textwrap

import pandas as pd
import pytest

from l2m_core.errors import CohortError, ConfigError
from tests.prerequisites import REPOSITORY
from tests.study.manifests import rewrite
from train.study.evaluation.manifest import read_manifest


def test_a_manifest_gives_roles_and_leaves_other_columns_out(folder):
    icu, scores = read_manifest(folder)
    cohort = icu.load()
    assert cohort.names == ("age", "lactate", "sodium")
    assert cohort.acquirable.tolist() == [False, True, True]
    assert scores.load().kind == "continuous"


WRITINGS = {"byte order mark": {"encoding": "utf-8-sig"}, "semicolons": {"sep": ";"}, "windows": {"encoding": "cp1252"}}


@pytest.mark.parametrize("writing", WRITINGS)
def test_a_manifest_s_roles_hold_however_the_file_is_written(folder, writing):
    frame = pd.read_csv(folder / "icu.csv").rename(columns={"age": "âge", "sodium": "sodium, serum"})
    frame = frame[["note", "âge", "lactate", "sodium, serum", "died"]]
    frame.to_csv(folder / "icu.csv", index=False, **WRITINGS[writing])
    rewrite(folder, baseline_columns=["âge"], acquirable_columns=["lactate", "sodium, serum"])
    (source,) = read_manifest(folder)
    cohort = source.load()
    assert cohort.names == ("âge", "lactate", "sodium, serum")
    assert cohort.acquirable.tolist() == [False, True, True]


@pytest.mark.parametrize("key", ["baseline_columns", "acquirable_columns", "ignored_columns", "outcome"])
def test_a_manifest_that_names_a_column_that_is_not_there_is_refused(folder, key):
    rewrite(folder, **{key: "lactat" if key == "outcome" else ["lactat"]})
    (source,) = read_manifest(folder)
    with pytest.raises(ConfigError, match=f"'icu'.*no column 'lactat'.*{key}.*Did you mean 'lactate'"):
        source.load()


def test_a_column_has_one_role_in_a_manifest(folder):
    rewrite(folder, ignored_columns=["note", "sodium"])
    (source,) = read_manifest(folder)
    with pytest.raises(ConfigError, match="'sodium' under acquirable_columns and under ignored_columns"):
        source.load()


def test_columns_whose_names_are_numbers_keep_their_roles(folder):
    pd.read_csv(folder / "icu.csv").rename(columns={"lactate": "7", "note": "8"}).to_csv(
        folder / "icu.csv", index=False
    )
    rewrite(folder, acquirable_columns=[7, "sodium"])
    assert read_manifest(folder)[0].load().names == ("age", "7", "sodium")


def test_a_folder_without_a_manifest_is_refused_with_what_it_should_hold(tmp_path):
    with pytest.raises(ConfigError, match="acquirable_columns"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("key", ["outcome", "task", "baseline_columns", "acquirable_columns"])
def test_a_manifest_that_lacks_what_is_needed_is_refused_by_name(folder, key):
    rewrite(folder, **{key: None})
    with pytest.raises(ConfigError, match=f"no {key} .*icu.csv"):
        read_manifest(folder)


def test_a_cohort_without_a_file_is_refused_rather_than_passed_over(folder):
    rewrite(folder, file=None)
    with pytest.raises(ConfigError, match="no file for the cohort 'icu'"):
        read_manifest(folder)


WRONG = {
    "": "no list of cohorts under datasets",
    "- icu.csv": "no list of cohorts under datasets",
    "cohorts: []": "no list of cohorts under datasets.*acquirable_columns",
    "datasets: icu.csv": "no list of cohorts under datasets",
    "datasets: [icu.csv]": "no list of cohorts under datasets",
    "datasets: [": "manifest.yaml cannot be read: .* line .*It is YAML",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_manifest_of_another_form_is_refused_with_the_form_that_it_should_have(folder, text):
    (folder / "manifest.yaml").write_text(text)
    with pytest.raises(ConfigError, match=WRONG[text]):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("task", "binray", "'icu': task is 'binray'.*binary, multiclass, regression"),
        ("baseline_columns", "age", "'icu': baseline_columns is 'age'.*a list of columns' names"),
        ("acquirable_columns", [["lactate"]], "'icu': acquirable_columns is .*a list of columns' names"),
        ("ignored_columns", {"note": 1}, "'icu': ignored_columns is .*a list of columns' names"),
        ("cost", {"lactate": "much"}, "'icu': cost is .*a number for each"),
        ("cost", [1, 2], "'icu': cost is .*a number for each"),
    ],
)
def test_what_a_manifest_says_otherwise_than_it_should_is_refused_by_cohort_and_setting(folder, key, value, told):
    rewrite(folder, **{key: value})
    with pytest.raises(ConfigError, match=told):
        read_manifest(folder)


def test_two_cohorts_of_one_name_are_refused(folder):
    text = (folder / "manifest.yaml").read_text().replace("name: scores", "name: icu")
    (folder / "manifest.yaml").write_text(text)
    with pytest.raises(ConfigError, match="2 cohorts with the name 'icu'"):
        read_manifest(folder)


def test_the_manifest_of_the_guide_can_be_read(folder):
    guide = (REPOSITORY / "docs" / "evaluation.md").read_text()
    example = guide.split("```yaml\n")[1].split("```")[0]
    pd.read_csv(folder / "icu.csv").to_csv(folder / "sepsis.csv", index=False)
    (folder / "manifest.yaml").write_text(textwrap.dedent(example))
    (source,) = read_manifest(folder)
    assert source.load().names == ("age", "lactate", "sodium") and source.positive == "1" and source.costs


@pytest.mark.parametrize(
    ("content", "told"),
    [("", "The file is empty"), ("age,lactate,sodium,died\n", "header but no rows"), (None, "does not exist")],
)
def test_a_file_that_cannot_be_read_is_told_with_its_cohort(folder, content, told):
    if content is None:
        (folder / "icu.csv").unlink()
    else:
        (folder / "icu.csv").write_text(content)
    with pytest.raises(CohortError, match=f"Cohort 'icu', icu.csv: .*{told}"):
        read_manifest(folder)[0].load()


def test_a_positive_label_that_no_row_has_is_told_with_its_cohort(folder):
    rewrite(folder, positive_label="perhaps")
    with pytest.raises(CohortError, match="Cohort 'icu', icu.csv: positive is 'perhaps'"):
        read_manifest(folder)[0].load()
