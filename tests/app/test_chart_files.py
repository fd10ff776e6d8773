"""A chart's picture and numbers can be taken away, and the audit trail tells of it."""

from app.host.services import Services
from app.store import StoredCohort
from tests.app.stepping import begin, step_id


def test_each_chart_of_a_step_offers_its_picture_and_its_numbers(
    owner: str, ward: StoredCohort, shared_services: Services
) -> None:
    app = begin(ward)
    offered = {button.key for button in app.get("download_button")}
    for chart in ("step-icons", "step-history", "step-gains", "step-preview"):
        assert {f"{chart}-SVG", f"{chart}-PNG", f"{chart}-CSV"} <= offered
    assert "step-ranking-CSV" in offered and not {"step-ranking-SVG", "step-ranking-PNG"} & offered
    assert step_id(app)
