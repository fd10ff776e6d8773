"""A real training job, tiny: refused, started, watched, stopped, resumed over a restart, and made into a model."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.axe import findings
from tests.e2e.browser import PATIENCE, serving, settled

pytestmark = pytest.mark.browser

LONG = 5 * PATIENCE  # a trainer shares the machine with the server and the browser
TINY = """seed: 1
model: {encoder: cells, layers: 1, width: 16, heads: 2, feedforward: 32, max_classes: 2}
prior: {name: synthetic, settings: {outcome: classes, max_classes: 2}}
held_out: [own]
held_out_pools: 1
loop: {warmup: 2, threads: 1, evaluate_every: 10, log_every: 1, checkpoint_minutes: 0.05}
stages:
  - {steps: 100000, tasks: 2, rows: [16], features: [3], context: [0.5]}
"""


def button(page: Page, key: str) -> Locator:
    """By key: Streamlit's own header has a "Stop" too while it computes. The first: one with a help text is there twice,
    for a mouse and for a finger, of which one is hidden."""
    return page.locator(f".st-key-{key} button").first


def write_settings(page: Page, text: str) -> None:
    area = page.get_by_role("textbox", name="Settings (YAML)")
    area.fill(text)
    area.press("Control+Enter")
    settled(page)


def steps_done(page: Page) -> int:
    """As the page says it; it draws this line anew every two seconds."""
    text = page.get_by_text(re.compile(r"^Step [\d,]+ of 100,000$")).first.inner_text(timeout=LONG)
    return int(text.split()[1].replace(",", ""))


def wait_for_step(page: Page, least: int) -> None:
    deadline = time.monotonic() + LONG / 1000
    while steps_done(page) < least:
        assert time.monotonic() < deadline, f"Step {least} was not reached in time."
        page.wait_for_timeout(1000)


def stop(page: Page) -> None:
    button(page, "job-stop").click()
    expect(button(page, "job-resume")).to_be_visible(timeout=LONG)
    settled(page)
    expect(page.get_by_text(re.compile(r"Stopped at step [\d,]+ of 100,000; a checkpoint is written"))).to_be_visible()


def test_a_training_job_is_started_watched_stopped_resumed_and_made_into_a_model(
    page: Page, repository: Path, data_dir: Path, free_port: int
) -> None:
    page.set_viewport_size({"width": 1280, "height": 1000})
    with serving(repository, data_dir, free_port) as served:
        page.goto(f"{served.address}/experiments")
        expect(button(page, "start-job")).to_be_visible()
        write_settings(page, "loop: {lr: -1}\nstages: [{steps: 1}]")
        button(page, "start-job").click()
        expect(page.get_by_text("loop.lr is -1.0; it must be above 0.")).to_be_visible(timeout=LONG)
        write_settings(page, TINY)
        button(page, "start-job").click()
        expect(button(page, "job-stop")).to_be_visible(timeout=LONG)
        wait_for_step(page, 12)
        expect(page.locator(".js-plotly-plot")).to_have_count(2, timeout=LONG)
        page.reload()
        expect(button(page, "job-stop")).to_be_visible(timeout=LONG)
        wait_for_step(page, steps_done(page) + 1)
        stop(page)
    with serving(repository, data_dir, free_port) as served:
        page.goto(f"{served.address}/experiments")
        page.get_by_role("tab", name="Jobs").click()
        expect(button(page, "job-resume")).to_be_visible(timeout=LONG)
        settled(page)
        button(page, "job-resume").click()
        expect(button(page, "job-stop")).to_be_visible(timeout=LONG)
        wait_for_step(page, 13)
        stop(page)
        button(page, "job-release").click()
        expect(page.get_by_text("Model 'my predictor' can be chosen now.")).to_be_visible(timeout=LONG)
        page.get_by_role("tab", name="Models").click()
        page.get_by_role("combobox", name=re.compile("Model")).last.click()
        page.get_by_role("option", name="my predictor, trained here").click()
        expect(page.get_by_text("Nobody has evaluated it.")).to_be_visible()
        assert page.get_by_text("Traceback").count() == 0
        for tab in ("Models", "Jobs", "Start a job"):
            page.get_by_role("tab", name=tab).click()
            assert findings(page, tab) == []
