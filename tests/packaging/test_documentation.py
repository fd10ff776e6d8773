"""The documentation is true: links lead somewhere, commands parse, examples run, nothing is left without words."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import l2m_core as l2m
from app.__main__ import build_parser as app_parser
from app.api.__main__ import build_parser as api_parser
from app.store.__main__ import build_parser as store_parser
from l2m_core import cli
from l2m_core.errors import ConfigError
from l2m_core.evidence import EvidenceSettings
from l2m_core.methods import METHODS, Gaussian
from l2m_core.model.interface import Context, Output
from l2m_core.schema import Feature, Outcome, Schema
from l2m_core.settings import build_settings, read_settings
from l2m_core.tasks.registry import PRIORS
from tests.packaging.sources import modules
from tests.prerequisites import REPOSITORY
from train.__main__ import COMMANDS, JOBS, settings_of
from train.__main__ import parse as job_parse
from train.study import evaluate

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *REPOSITORY.glob("pretrained/**/*.md")])
GUIDES = REPOSITORY / "docs"
RUN_BY_HAND = (
    "curl",
    "docker",
    "pip",
    "torchrun",
    "git",
    "mkdir",
    "openssl",
)  # tools of others, whose options are theirs


def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- links and pages --------------------------------------------------------------------------------------------------


def anchor_of(heading: str) -> str:
    """As GitHub makes it."""
    plain = re.sub(r"[^\w\- ]", "", re.sub(r"[`*_]", "", heading).strip().lower())
    return plain.replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        anchors = (
            {anchor_of(heading) for heading in re.findall(r"^#+ (.+)$", text_of(target), re.MULTILINE)}
            if anchor and target.suffix == ".md" and target.exists()
            else {anchor}
        )
        if not target.exists() or anchor not in anchors:
            dead.append(link)
    assert dead == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [REPOSITORY / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        links = re.findall(r"\]\(([^)#\s]+)", text_of(page))
        waiting += [(page.parent / link).resolve() for link in links if not link.startswith("http")]
    assert [name_of(page) for page in PAGES if page not in seen] == []


def test_no_page_names_a_place_on_somebodys_machine() -> None:
    private = re.compile(r"/(?:home|Users|root|work)/\w")
    assert [name_of(page) for page in PAGES if private.search(text_of(page))] == []


def test_every_file_on_the_ways_through_the_house_is_there() -> None:
    ways = text_of(GUIDES / "architecture.md").partition("## Three ways")[2].partition("## Vocabulary")[0]
    named = re.findall(r"`((?:app|l2m_core|train)/[\w/]+\.py)`", ways)
    steps = [int(number) for number in re.findall(r"^\| (\d+) \|", ways, re.MULTILINE)]
    assert len(named) >= len(steps) and steps.count(1) == 3 and max(steps) <= 10
    assert [path for path in named if not (REPOSITORY / path).is_file()] == []


def test_every_picture_is_shown_and_described() -> None:
    shown = {link for page in PAGES for link in re.findall(r"!\[[^\]]{10,}\]\(([^)]+)\)", text_of(page))}
    files = [file for folder in ("pictures", "results") for file in (GUIDES / folder).iterdir()]
    drawn = {file.name for file in files if file.suffix in (".png", ".svg")}
    assert drawn and {Path(link).name for link in shown} == drawn


# Files beside the jobs' configs that are read by something else; `evaluate`'s own help explains its keys.
NO_JOBS = ("choices.yaml", "evaluate_quick.yaml")

# -- what must have words ---------------------------------------------------------------------------------------------


def test_every_config_key_has_words_and_the_page_has_them() -> None:
    settings_page = load_script("settings_page")
    assert settings_page.undescribed() == []
    assert text_of(settings_page.PAGE) == settings_page.page(), "run: python scripts/settings_page.py"


def test_the_settings_page_explains_every_key_of_every_config_file() -> None:
    known = set(re.findall(r"^\| `(\w+)`", text_of(GUIDES / "settings.md"), re.MULTILINE))

    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {key for item in value.values() for key in keys(item)}
        return {key for item in value for key in keys(item)} if isinstance(value, list) else set()

    for file in sorted((REPOSITORY / "train" / "configs").glob("*.yaml")):
        settings = yaml.safe_load(file.read_text("utf-8"))
        assert file.name in NO_JOBS or keys(settings) - known == set(), file.name


def test_every_leg_of_the_general_model_says_what_became_of_it() -> None:
    _, _, legs = text_of(GUIDES / "training.md").partition("## Legs of the general model")
    table = "\n".join(line for line in legs.partition("\n## ")[0].splitlines() if line.startswith("| `"))
    first, last = map(int, re.search(r"general_cpu_(\d)\.yaml` … `general_cpu_(\d)\.yaml", table).groups())  # type: ignore[union-attr]
    named = {*re.findall(r"\w+\.yaml", table), *(f"general_cpu_{number}.yaml" for number in range(first, last + 1))}
    configs = REPOSITORY / "train" / "configs"
    assert named == {file.name for kind in ("general", "gain") for file in configs.glob(f"{kind}_*.yaml")}


def test_every_option_of_evaluate_has_words_and_its_config_names_no_other() -> None:
    options = {name: option.help for name, option in evaluate.options_by_name().items()}
    assert all(options.values()), [name for name, words in options.items() if not words]
    named = yaml.safe_load((REPOSITORY / "train" / "configs" / "evaluate_quick.yaml").read_text("utf-8"))
    assert set(named) <= set(options)


def test_every_environment_setting_is_described() -> None:
    read = {
        name for module in modules() for name in re.findall(r'"(L2M_[A-Z_]+)"', (REPOSITORY / module.path).read_text())
    }
    read |= set(re.findall(r"\b(?:L2M|STREAMLIT)_[A-Z_]+", (REPOSITORY / "compose.yaml").read_text("utf-8")))
    described = set(re.findall(r"`((?:L2M|STREAMLIT)_[A-Z_]+)`", text_of(GUIDES / "deployment.md")))
    assert read and read <= described


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("README.md", [f"l2m {command}" for command in (*cli.LAUNCHES, "models")]),
        ("docs/training.md", [f"`{job}`" for job in JOBS]),
        ("docs/researcher-guide.md", [f"`{name}`" for name in (*PRIORS, *METHODS)]),
        ("docs/evaluation.md", [f"train {command}" for command in COMMANDS]),
        ("docs/deployment.md", [f"l2m store {command}" for command in ("migrate", "verify", "heads", "backup")]),
        ("docs/deployment.md", ["/_stcore/health", "/readyz", "log_error_verbosity"]),
        ("CONTRIBUTING.md", ["make test", "make reliability", ".ci/run"]),
    ],
)
def test_every_command_and_choice_is_described(page: str, names: list[str]) -> None:
    text = text_of(REPOSITORY / page)
    assert [name for name in names if name not in text] == []


def test_every_page_of_the_app_is_in_the_user_guide() -> None:
    pages = re.findall(r'^    \("(\w+)", "([\w-]+)", ":material', text_of(REPOSITORY / "app" / "main.py"), re.MULTILINE)
    assert {name for name, _ in pages} == {file.stem for file in (REPOSITORY / "app" / "views").glob("[a-z]*.py")}
    headings = " ".join(re.findall(r"^## .+$|\*\w[\w-]+\* page", text_of(GUIDES / "user-guide.md"), re.MULTILINE))
    assert [title for _, title in pages if title.split("-")[0].lower() not in headings.lower()] == []


@pytest.mark.parametrize(
    "record",
    [Feature, Outcome, Schema, Context, Output, Gaussian, EvidenceSettings],
    ids=lambda record: record.__name__,
)
def test_the_contracts_name_the_fields_of_a_record_in_their_order(record: type) -> None:
    text = re.sub(r"#.*", "", text_of(GUIDES / "architecture.md"))
    stated = re.search(rf"\b{record.__name__}\(((?:[^()]|\(\))*)\)", text)
    assert stated is not None
    names = re.findall(r"(?:^|,)\s*(\w+)", stated[1])
    assert names == [field.name for field in dataclasses.fields(record)]  # type: ignore[arg-type]


def test_every_proxy_in_the_deployment_guide_asks_for_https_from_then_on() -> None:
    section = text_of(GUIDES / "deployment.md").partition("## TLS")[2].partition("\n## ")[0]
    configurations = re.findall(r"^```(?:nginx)?\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert len(configurations) == 2
    for configuration in configurations:
        (seconds,) = re.findall(r'Strict-Transport-Security "max-age=(\d+)', configuration)
        assert int(seconds) >= 365 * 24 * 3600


# -- commands ---------------------------------------------------------------------------------------------------------


def documented_commands() -> list[tuple[str, str]]:
    """(page, command line) of every shell block, continued lines joined and comments dropped."""
    found = []
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    found.append((name_of(page), shlex.join(words)))
    return found


def parse_command(words: list[str]) -> None:
    """Ends the program, or raises, where the program that is named would refuse the words."""
    while "=" in words[0]:
        words = words[1:]
    program, *rest = words
    if program == "make":
        targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
        assert rest and set(rest) <= targets
    elif program == "l2m" and rest[0] in cli.LAUNCHES:
        module, *before = cli.LAUNCHES[rest[0]]
        parse_module(module, [*before, *rest[1:]])
    elif program == "l2m":
        cli.build_parser().parse_args(rest)
    elif program == "python" and rest[0] == "-m":
        parse_module(rest[1], rest[2:])
    elif program == "python":
        assert (REPOSITORY / rest[0]).is_file()
    elif "/" in program:
        assert os.access(REPOSITORY / program, os.X_OK)
    else:
        assert program in RUN_BY_HAND, f"nobody knows whether '{program}' is right"


def parse_module(module: str, words: list[str]) -> None:
    if module == "app":
        app_parser().parse_args(words)
    elif module == "app.api":
        api_parser().parse_args(words)
    elif module == "app.store":
        store_parser().parse_args(words)
    elif module == "train" and words[0] in JOBS:
        given = job_parse(words)
        build_settings(settings_of(given.job), read_settings(REPOSITORY / given.config, given.overrides))
    elif module == "train":
        assert words[0] in COMMANDS
        importlib.import_module(COMMANDS[words[0]]).parse(words[1:])
    else:
        assert importlib.util.find_spec(module) is not None


@pytest.mark.parametrize(("page", "line"), documented_commands())
def test_every_documented_command_is_one(page: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    parse_command(shlex.split(line))


@pytest.mark.parametrize(
    "line",
    [
        "l2m app --colour red",
        "l2m train predictor --config train/configs/smoke.yaml lr=3",
        "make coffee",
        "scripts/nothing",
        "l2m store verifi",
    ],
)
def test_a_wrong_command_would_be_noticed(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    with pytest.raises((SystemExit, AssertionError, ConfigError)):
        parse_command(shlex.split(line))


def run(words: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", **environment},
    )


def test_the_commands_for_the_store_run_as_they_are_written(tmp_path: Path) -> None:
    """In the order of the page, but for `migrate`, which a new database needs first."""
    lines = [line for page, line in documented_commands() if line.startswith("l2m store")]
    lines.sort(key=lambda line: not line.endswith("migrate"))
    assert len(lines) >= 4
    for line in lines:
        done = run([sys.executable, "-m", "l2m_core.cli", *shlex.split(line)[1:]], tmp_path, L2M_DATA_DIR=str(tmp_path))
        assert done.returncode == 0, f"{line}: {done.stderr}"
        if line == "l2m store heads":
            (tmp_path / "heads.json").write_text(done.stdout)
    assert (tmp_path / "l2m-backup.sqlite3").is_file()


def test_the_commands_for_jobs_run_as_they_are_written(tmp_path: Path) -> None:
    """In the order of the page, two steps of each; the model that they end with can be opened."""
    jobs = [line for page, line in documented_commands() if page.endswith("researcher-guide.md")]
    jobs = [line for line in jobs if re.match(r"l2m train (predictor|gain|policy|release) .*=runs/", line)]
    assert len(jobs) >= 5
    (tmp_path / "train").symlink_to(REPOSITORY / "train")
    for number, line in enumerate(jobs):
        words = [word for word in shlex.split(line) if not word.startswith("stop_at=")]
        if words[2] != "release":
            words += [f"stop_at={2 + number}", "held_out_pools=1"]
        done = run([sys.executable, "-m", "l2m_core.cli", *words[1:]], tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr}"
    assert l2m.load(str(tmp_path / "runs" / "model")).release.config.value_bins


# -- examples ---------------------------------------------------------------------------------------------------------


EXAMPLES = [REPOSITORY / "README.md", GUIDES / "researcher-guide.md"]


def test_every_page_with_examples_is_run() -> None:
    """The contracts on the architecture page are signatures, which do not run."""
    assert {page for page in PAGES if "```python" in text_of(page)} == {*EXAMPLES, GUIDES / "architecture.md"}


@pytest.mark.parametrize("page", EXAMPLES, ids=name_of)
def test_the_examples_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL)
    program = tmp_path / "example.py"
    program.write_text("\n".join(blocks))
    done = run([sys.executable, str(program)], tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_prior_and_a_baseline_are_added_in_under_fifty_lines() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", text_of(GUIDES / "researcher-guide.md"), re.MULTILINE | re.DOTALL)
    prior, baseline = (next(block for block in blocks if word in block) for word in ("PRIORS[", "@register("))
    assert len(prior.splitlines()) < 50 and len(baseline.splitlines()) < 50
