"""`l2m app`: where it listens, and that it serves."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.__main__ import FIRST_PORT, has_screen, is_healthy, listen, main
from tests.prerequisites import REPOSITORY

PATIENCE = 300  # seconds; a busy machine is slow


def test_it_listens_on_this_computer_only_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[tuple[str, int | None]] = []

    def refuse(address: str, port: int | None) -> socket.socket:
        places.append((address, port))
        raise OSError(98, "Address already in use")

    monkeypatch.setattr("app.__main__.listen", refuse)
    assert main([]) == 1
    assert main(["--address", "0.0.0.0", "--port", "80"]) == 1
    assert places == [("127.0.0.1", None), ("0.0.0.0", 80)]


def test_a_port_in_use_is_passed_over_when_none_was_asked_for() -> None:
    with listen("127.0.0.1", None) as first, listen("127.0.0.1", None) as second:
        ports = [listener.getsockname()[1] for listener in (first, second)]
    assert FIRST_PORT <= ports[0] < ports[1]


def test_a_port_in_use_that_was_asked_for_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert main(["--port", str(port)]) == 1
    complaint = capsys.readouterr().err
    assert f"port {port}" in complaint and "--port NUMBER" in complaint


def test_a_port_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("99999", "-1", "web"):
        with pytest.raises(SystemExit):
            main(["--port", wrong])
        assert "--port" in capsys.readouterr().err


def test_no_browser_opens_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    assert not has_screen()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_screen()


def test_nothing_listening_is_not_healthy(free_port: int) -> None:
    assert not is_healthy(f"http://127.0.0.1:{free_port}/_stcore/health")


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[bytes]
    log: Path

    def address(self) -> str:
        """Where it says that it is, once it does."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"L2M is at (http://localhost:\d+)", self.log.read_text())
            if found:
                return found[1]
            time.sleep(0.1)
        pytest.fail(f"the app did not start: {self.log.read_text()}")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """The real app, started by the console command from an unrelated folder."""
    command = [sys.executable, "-m", "l2m_core.cli", "app", "--port", "0", "--no-browser", "--data-dir", "data"]
    log = tmp_path / "log"
    with log.open("w") as output:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=output)
        try:
            yield Server(process, log)
        finally:
            process.kill()
            process.wait()


def test_it_serves_says_where_and_stops_when_told(server: Server) -> None:
    address = server.address()
    assert is_healthy(f"{address}/_stcore/health")
    with urllib.request.urlopen(address, timeout=PATIENCE) as page:
        assert "<html" in page.read().decode().lower()
    assert "GET /" not in server.log.read_text(), "request lines are in the log"
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=PATIENCE)
