"""The container files, read as text: no engine is needed to see that they keep their promises."""

import fnmatch
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from l2m_core import __version__
from tests.prerequisites import REPOSITORY

DOCKERFILE = (REPOSITORY / "Dockerfile").read_text("utf-8")
COMPOSE = yaml.safe_load((REPOSITORY / "compose.yaml").read_text("utf-8"))
SERVICES = sorted(COMPOSE["services"])


def instructions() -> list[tuple[str, str]]:
    """(KEYWORD, rest) for each instruction, comments dropped and continued lines joined."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines()
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in joined if line)]


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


def only(word: str, stage: list[tuple[str, str]]) -> str:
    values = [rest for keyword, rest in stage if keyword == word]
    assert len(values) == 1, f"{len(values)} {word} instructions in one stage"
    return values[0]


def assert_exact_release(image: str) -> None:
    name, _, tag = image.partition(":")
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?-[a-z-]+", tag), f"{name}: the tag '{tag}' moves with time"


def test_hadolint_finds_nothing() -> None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("hadolint has a package for 64-bit x86 Linux only")
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint is not None, "hadolint is not installed beside Python: pip install -e '.[test]' brings it"
    run = subprocess.run([hadolint, str(REPOSITORY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_image_is_built_in_two_stages_from_exact_releases() -> None:
    assert len(stages()) == 2
    for stage in stages():
        assert_exact_release(only("FROM", stage).split()[0])


def test_the_last_stage_gets_the_environment_and_no_sources() -> None:
    assert only("COPY", stages()[-1]).split() == ["--from=build", "/opt/l2m", "/opt/l2m"]


def test_the_container_does_not_run_as_root() -> None:
    user = only("USER", stages()[-1])
    assert all(int(number) >= 1000 for number in user.split(":"))
    # Nothing after USER needs more rights, as every later RUN would.
    after = stages()[-1][stages()[-1].index(("USER", user)) :]
    assert "RUN" not in {word for word, _ in after}


def test_data_lies_in_a_volume_that_the_account_owns() -> None:
    last = stages()[-1]
    assert only("VOLUME", last) == "/data"
    assert "L2M_DATA_DIR=/data" in only("ENV", last)
    assert "--owner l2m" in only("RUN", last) and "/data" in only("RUN", last)


def test_the_health_check_asks_the_port_that_the_app_listens_on() -> None:
    last = stages()[-1]
    health = only("HEALTHCHECK", last)
    port = only("EXPOSE", last)
    assert f"127.0.0.1:{port}/_stcore/health" in health
    assert f'"--port", "{port}"' in only("CMD", last)


def test_the_health_check_is_python_that_compiles() -> None:
    words = yaml.safe_load(only("HEALTHCHECK", stages()[-1]).partition("CMD ")[2])
    assert words[:2] == ["python", "-c"]
    compile(words[2], "HEALTHCHECK", "exec")


def test_the_container_starts_a_command_that_exists() -> None:
    from app.__main__ import build_parser

    entry = yaml.safe_load(only("ENTRYPOINT", stages()[-1]))
    command, *options = yaml.safe_load(only("CMD", stages()[-1]))
    assert entry == ["l2m"] and command == "app"
    assert build_parser().parse_args(options).no_browser


def test_cpu_is_the_default_and_cuda_a_build_argument() -> None:
    first = stages()[0]
    assert only("ARG", first) == "ACCELERATOR=cpu"
    assert any("${ACCELERATOR}" in rest for word, rest in first if word == "RUN")
    assert COMPOSE["services"]["app"]["build"]["args"]["ACCELERATOR"].endswith(":-cpu}")


def test_every_package_in_the_image_has_its_exact_version() -> None:
    first = stages()[0]
    environment = shlex.split(" ".join(rest for word, rest in first if word == "ENV"))
    assert "PIP_CONSTRAINT=/build/constraints.txt" in environment


def sent_to_the_builder(path: str) -> bool:
    """Whether .dockerignore lets this path through: the last pattern that fits it, or a folder above it, decides."""
    kept = True
    parts = path.split("/")
    above = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    for line in (REPOSITORY / ".dockerignore").read_text("utf-8").splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        anywhere = line.removeprefix("!").startswith("**/")
        candidates = [part for part in parts] if anywhere else above
        if line and not line.startswith("#") and any(fnmatch.fnmatch(name, pattern) for name in candidates):
            kept = line.startswith("!")
    return kept


def test_what_the_build_copies_is_sent_to_it() -> None:
    for word, rest in stages()[0]:
        if word == "COPY":
            for source in rest.split()[:-1]:
                assert sent_to_the_builder(source), f".dockerignore holds back {source}"
                assert (REPOSITORY / source).exists()


@pytest.mark.parametrize("path", [".git/config", ".venv/bin/l2m", ".env", "app/.env", "runs/a.log", "app/a.sqlite3"])
def test_secrets_and_data_are_never_sent_to_the_builder(path: str) -> None:
    assert not sent_to_the_builder(path)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_can_do_as_little_as_possible(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service and "network_mode" not in service
    assert not str(service.get("user", "10001")).startswith(("0", "root"))


@pytest.mark.parametrize("name", SERVICES)
def test_each_image_is_an_exact_release(name: str) -> None:
    service = COMPOSE["services"][name]
    image = service["image"]
    if "build" in service:
        assert re.fullmatch(r"l2m:\d+\.\d+\.\d+", image)
    else:
        assert_exact_release(image)


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_this_computer_only(name: str) -> None:
    for port in COMPOSE["services"][name].get("ports", []):
        assert port.startswith("127.0.0.1:")


def test_the_database_is_reached_by_the_app_alone() -> None:
    database = COMPOSE["services"]["database"]
    assert "ports" not in database
    assert all(COMPOSE["networks"][network]["internal"] for network in database["networks"])
    assert set(database["networks"]) <= set(COMPOSE["services"]["app"]["networks"])


def test_the_app_waits_for_a_database_that_answers() -> None:
    assert COMPOSE["services"]["app"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert "pg_isready" in COMPOSE["services"]["database"]["healthcheck"]["test"][1]


def test_no_password_is_written_down() -> None:
    """Each is asked for when the services start, and nothing stands in for one that is not given."""
    services = COMPOSE["services"]
    assert services["database"]["environment"]["POSTGRES_PASSWORD"].startswith("${L2M_DATABASE_PASSWORD:?")
    url = services["app"]["environment"]["L2M_DATABASE_URL"]
    assert re.search(r":\$\{L2M_DATABASE_PASSWORD:\?[^}]+\}@database/", url)


def test_what_is_kept_lies_in_named_volumes() -> None:
    for name, folder in (("app", "/data"), ("database", "/var/lib/postgresql/data")):
        (volume,) = COMPOSE["services"][name]["volumes"]
        source, _, target = volume.partition(":")
        assert source in COMPOSE["volumes"] and target == folder


def test_the_image_bears_the_version_of_the_project() -> None:
    assert COMPOSE["services"]["app"]["image"] == f"l2m:{__version__}"
