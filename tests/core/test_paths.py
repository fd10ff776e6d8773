"""Places to write to are looked at before the work."""

import argparse
import os
from pathlib import Path

import pytest

from l2m_core.errors import ConfigError
from l2m_core.paths import check_file, file_to_write, folder_to_write


def test_a_place_that_is_free_is_taken_as_it_is(tmp_path: Path) -> None:
    there = tmp_path / "there.csv"
    there.write_text("old")
    for place in (there, tmp_path / "new.csv", tmp_path / "a" / "b" / "new.csv"):
        assert file_to_write(str(place)) == place
    for place in (tmp_path, tmp_path / "a" / "b"):
        assert folder_to_write(str(place)) == place
    assert folder_to_write("docs") == Path("docs")


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(argparse.ArgumentTypeError, match="is a folder. Name a file in it"):
        file_to_write(str(tmp_path))
    for look in (file_to_write, folder_to_write):
        with pytest.raises(argparse.ArgumentTypeError, match="file is a file, so there can be no folder"):
            look(str(tmp_path / "file" / "a" / "b"))
    with pytest.raises(argparse.ArgumentTypeError, match="file is a file, so there can be no folder"):
        folder_to_write(str(tmp_path / "file"))


def test_no_device_is_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in ("/dev/null", "/dev/stdout", str(tmp_path / "pipe")):
        with pytest.raises(argparse.ArgumentTypeError, match="no file but a device or a pipe"):
            file_to_write(place)


@pytest.mark.skipif(os.geteuid() == 0, reason="whoever is root may write anywhere")
def test_a_folder_without_rights_is_named(tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o500)
    with pytest.raises(argparse.ArgumentTypeError, match="Nothing may be written to .*shut"):
        file_to_write(str(tmp_path / "shut" / "new.csv"))


def test_what_is_read_is_not_overwritten(tmp_path: Path) -> None:
    cohort = tmp_path / "cohort.csv"
    cohort.write_text("age,died")
    (tmp_path / "same.csv").symlink_to(cohort)
    for place in (cohort, tmp_path / "a" / ".." / "cohort.csv", tmp_path / "same.csv"):
        with pytest.raises(ConfigError, match="--json would take the place of cohort.csv, which is read"):
            check_file(place, [cohort, "schema.yaml"], "--json")
    check_file(tmp_path / "other.json", [cohort, "schema.yaml"], "--json")
