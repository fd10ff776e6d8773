"""How a person states what a file's cells mean, in words that a message can end with: by hand, in Python, for
a command, for a training job."""

from __future__ import annotations

import json
import shlex

# Option of `Cohort.from_file`, and of a command → its field on the page.
ON_THE_PAGE = {
    "decimal": "Decimal sign",
    "missing": "Other codes for not measured",
    "censored": "Cells such as <5",
    "units": "Cells such as 5 mg/L",
}
LISTS = frozenset(("missing",))


def how_to_state(option: str, *values: str) -> str:
    """Each value is one that may be stated."""
    in_python = " or ".join(f"{option}={[value] if option in LISTS else value!r}" for value in values)
    for_a_command = " or ".join(f"--{option} {shlex.quote(value)}" for value in values)
    # JSON is YAML in which numbers that are texts stay texts.
    settings = [json.dumps([value] if option in LISTS else value, ensure_ascii=False) for value in values]
    for_a_job = " or ".join(shlex.quote(f"reading.{option}={setting}") for setting in settings)
    return (
        f"on the page: '{ON_THE_PAGE[option]}'; in Python: {in_python}; for a command: {for_a_command}; "
        f"for a job: {for_a_job}"
    )
