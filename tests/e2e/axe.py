"""What axe-core, the automated check of accessibility, says of the page that is open."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.e2e.browser import settled

SERIOUS = ("serious", "critical")
# Markup of Streamlit and Plotly that the app cannot reach. Each was looked at: what it means to a person is said here.
KNOWN: dict[str, str] = {}


def findings(page: Page, where: str) -> list[str]:
    """Serious findings of axe, with where they are."""
    settled(page)
    answer = Axe().run(page, options={"resultTypes": ["violations"]}).response
    return [
        f"{where}: {found['id']} ({found['impact']}): {found['help']}: {node['target']} {node['html'][:200]} "
        f"{node.get('failureSummary', '')[:300]}"
        for found in answer["violations"]
        if found["impact"] in SERIOUS and found["id"] not in KNOWN
        for node in found["nodes"]
    ]
