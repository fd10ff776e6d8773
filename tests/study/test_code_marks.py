"""The mark of the code that a row was made with: what it follows, and how marks of another time are compared."""

import shutil

import pytest

from train.study.evaluation import versions


def test_a_method_s_mark_follows_its_code_and_not_its_comments(tmp_path, monkeypatch):
    folder = tmp_path / "baselines"
    shutil.copytree(versions.FOLDER, folder)
    monkeypatch.setattr(versions, "FOLDER", folder)
    mark = versions.code_version.__wrapped__
    before = {name: mark(name) for name in ("gdfs", "logistic", "base_rate")}
    assert len(set(before.values())) == 3
    networks = folder / "methods" / "networks.py"
    networks.write_text("# a comment\n" + networks.read_text().replace("Two hidden layers", "A few hidden layers"))
    assert mark("gdfs") == before["gdfs"]
    networks.write_text(networks.read_text() + "\nEXTRA = 1\n")
    assert mark("gdfs") != before["gdfs"]
    assert mark("logistic") == before["logistic"]


@pytest.mark.parametrize(
    ("module", "old", "new", "changed", "kept"),
    [
        ("learn/picks.py", "\n\n\ndef ", "\n\nEXTRA = 1\n\n\ndef ", {"gdfs"}, {"logistic", "l2m"}),
        ("metrics.py", "SMALLEST = 1e-12", "SMALLEST = 1e-9", {"gdfs", "l2m", "l2m_council"}, set()),
        ("metrics.py", "T_GRID = 200_001", "T_GRID = 100_001", set(), {"gdfs", "logistic", "l2m_council"}),
        ("council/weights.py", "LEAST = ", "LEAST = 2 * ", {"l2m_council", "l2m_council_random"}, {"l2m", "gdfs"}),
        ("tabular/linear.py", "\n\n\n", "\n\n\nEXTRA = 1\n\n\n", {"l2m_council", "logistic"}, {"l2m"}),
    ],
)
def test_a_mark_follows_picks_scores_and_councils_where_a_method_uses_them(
    module, old, new, changed, kept, tmp_path, monkeypatch
):
    folder = tmp_path / "core"
    shutil.copytree(versions.FOLDER, folder)
    monkeypatch.setattr(versions, "FOLDER", folder)
    mark = versions.code_version.__wrapped__
    before = {name: mark(name) for name in changed | kept}
    file = folder / module
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    assert {name for name in before if mark(name) != before[name]} == changed


def test_rows_keep_the_mark_of_their_time_and_are_compared_by_its_rule():
    same = versions.is_same_code
    for method in ("gdfs", "logistic", "base_rate"):
        assert versions.code_version(method).startswith("2:")
        assert same(versions.code_version(method), method) and same(versions.earlier_code_version(method), method)
        assert not same("2:0123456789ab", method) and not same("0123456789ab", method) and not same("", method)
    assert same("", "l2m_council_random") and same("", "l2m"), "forms of the model had no mark"
    assert not same("2:0123456789ab", "l2m_council")


def test_a_method_s_mark_does_not_follow_where_modules_lie_or_how_they_are_laid_out(tmp_path, monkeypatch):
    folder = tmp_path / "methods"
    shutil.copytree(versions.FOLDER, folder)
    monkeypatch.setattr(versions, "FOLDER", folder)
    mark = versions.code_version.__wrapped__
    before = mark("gdfs")
    networks = folder / "methods" / "networks.py"
    moved = networks.read_text().replace("from l2m_core.tabular.predictions import", "from elsewhere import")
    assert "from elsewhere import" in moved
    networks.write_text(moved.replace("\n\n\n", "\n\n\n\n") + "\nimport os\n")
    assert mark("gdfs") == before
