"""Streamlit's environment variables, as the deployment page promises them: it does not read them by itself under uvicorn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.prerequisites import REPOSITORY

ASK = """
import json
from app import asgi
from streamlit import config
names = ("server.maxUploadSize", "server.disconnectedSessionTTL", "browser.serverAddress", "server.fileWatcherType",
         "server.enableXsrfProtection", "browser.gatherUsageStats")
print(json.dumps([{name: config.get_option(name) for name in names}, asgi.allowed_hosts()]))
"""


def ask(data_dir: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        env={**os.environ, "L2M_DATA_DIR": str(data_dir), **environment},
    )


def test_variables_win_over_the_apps_own_settings_and_name_the_hosts(tmp_path: Path) -> None:
    answer = ask(
        tmp_path,
        STREAMLIT_SERVER_ADDRESS="127.0.0.1",
        STREAMLIT_BROWSER_SERVER_ADDRESS="l2m.example.org",
        STREAMLIT_SERVER_MAX_UPLOAD_SIZE="7",
        STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL="9",
        STREAMLIT_SERVER_ENABLE_XSRF_PROTECTION="true",
    )
    found, hosts = json.loads(answer.stdout.splitlines()[-1])
    assert found == {
        "server.maxUploadSize": 7,
        "server.disconnectedSessionTTL": 9,
        "browser.serverAddress": "l2m.example.org",
        "server.fileWatcherType": "none",  # of the app's own settings, as is the next but one
        "server.enableXsrfProtection": True,
        "browser.gatherUsageStats": False,
    }
    assert hosts == ["localhost", "127.0.0.1", "[::1]", "::1", "l2m.example.org"]


def test_a_value_of_the_wrong_kind_is_named(tmp_path: Path) -> None:
    answer = ask(tmp_path, STREAMLIT_SERVER_MAX_UPLOAD_SIZE="much")
    assert answer.returncode != 0
    assert "STREAMLIT_SERVER_MAX_UPLOAD_SIZE is 'much', which is no int." in answer.stderr
