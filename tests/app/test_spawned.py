"""A process that the server spawns begins by running the script behind the pages, which has nothing to draw there."""

from __future__ import annotations

import subprocess
import sys

from tests.prerequisites import REPOSITORY


def test_a_spawned_process_draws_no_page() -> None:
    """As multiprocessing runs a child's main script: by another name, in a process without Streamlit's server."""
    code = "import runpy; runpy.run_path('app/main.py', run_name='__mp_main__')"
    run = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
