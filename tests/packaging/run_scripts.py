"""Runs the project's scripts with stand-ins for the programs that they call."""

import shutil
import subprocess
import sys
from pathlib import Path


def add_program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text("#!/usr/bin/env bash\n" + text)
    file.chmod(0o755)


def run(project: Path, programs: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    script, *options = words
    return subprocess.run(
        [str(project / "scripts" / script), *options],
        env={"PATH": str(programs), "HOME": str(project), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def python_that_installs(programs: Path) -> None:
    """A stand-in for the interpreter and its pip, which leaves what an installation leaves, and keeps a record.

    Its pip has no settings of its own and finds no CPU build, unless the files `settings` and `offered` say otherwise.
    """
    text = f"""
case "$*" in
    *"-m venv"*)
        mkdir -p "${{@: -1}}/bin"
        cat "$0" > "${{@: -1}}/bin/python"
        {shutil.which("chmod")} +x "${{@: -1}}/bin/python" ;;
    *"-m pip config list"*) if [ -e settings ]; then cat settings; fi ;;
    *"-m pip index versions torch"*) if [ -e offered ]; then cat offered; else exit 1; fi ;;
    *"-m pip"*)
        if [ -e said ]; then cat said; fi
        echo "$PIP_CONSTRAINT $*" >> record
        if [ -e fail ]; then exit 1; fi
        cat "$0" > .venv/bin/l2m
        {shutil.which("chmod")} +x .venv/bin/l2m ;;
    *) exec {sys.executable} "$@" ;;
esac
"""
    add_program(programs, "python3", text)
