"""Findings and warnings about a cohort, one line for each kind with its columns folded under it, the worst first."""

from __future__ import annotations

import re
from collections.abc import Iterable

import streamlit as st

from app.ui import labels, notices
from l2m_core.diagnostics import SENTINEL, SEVERITIES, Finding

# Code of a finding → what several of the same kind have in common.
ABOUT_SEVERAL = {
    "rare_class": "{count} classes have few rows",
    "positivity": "{count} were measured too rarely, in all or in some class, for advice on them",
    "measuring_predicts_outcome": "Whether {count} were measured tells about the outcome",
    "leak": "{count} say very much about the outcome: were they recorded after it?",
    "leak_by_measuring": "Whether {count} were measured nearly tells the outcome",
    "identifier": "{count} look like identifiers",
    SENTINEL: "{count} hold a number that may mean 'not measured'",
    "rare_levels": "{count} have many rare levels, read as 'other'",
    "copy": "{count} equal another column",
    "ignored": "{count} are not used",
}
MOST_NAMES = 6
MOST_SENTENCES = 100
STREAMLIT_COLOURS = {"critical": "red", "warning": "orange", "info": "gray"}
ICONS = {"critical": ":material/error:", "warning": ":material/warning:", "info": ":material/info:"}


def grouped(findings: Iterable[Finding]) -> list[tuple[Finding, ...]]:
    """By severity and kind: the worst first, then the kinds with most findings."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    order = sorted(groups.values(), key=lambda group: (SEVERITIES.index(group[0].severity), -len(group)))
    return [tuple(group) for group in order]


def headline(group: tuple[Finding, ...]) -> str:
    """One line that stands for the group."""
    if len(group) == 1:
        return group[0].sentence
    columns = list(dict.fromkeys(finding.column for finding in group if finding.column))
    several = ABOUT_SEVERAL.get(group[0].code)
    if several is None or not columns:
        return f"{len(group)} findings such as: {group[0].sentence}"
    counted = several.format(count=labels.counted(len(columns), "column"))
    if group[0].code == "rare_class":
        return several.format(count=len(group)) + "."
    names = ", ".join(labels.short(name) for name in columns[:MOST_NAMES])
    more = f" and {len(columns) - MOST_NAMES} more" if len(columns) > MOST_NAMES else ""
    return f"{counted}: {names}{more}."


def show(findings: Iterable[Finding]) -> None:
    """A single finding stands as it is; several of a kind are one line that opens."""
    for group in grouped(findings):
        severity = group[0].severity
        if len(group) == 1:
            notices.show({"critical": "error"}.get(severity, severity), group[0].sentence)
            continue
        colour = STREAMLIT_COLOURS[severity]
        line = f":{colour}[{ICONS[severity]}] {labels.markdown(headline(group))}"
        with st.expander(line):
            for finding in group[:MOST_SENTENCES]:
                st.caption(labels.markdown(finding.sentence))
            if len(group) > MOST_SENTENCES:
                st.caption(f"… and {len(group) - MOST_SENTENCES:,} more.")


def similar(warnings: Iterable[str]) -> list[tuple[str, ...]]:
    """Warnings that differ only in what they quote and in their numbers, together; one of each column, which stands first."""
    groups: dict[str, list[dict[str, str]]] = {}
    for warning in warnings:
        about = groups.setdefault(re.sub(r"'[^']*'|\d[\d,.]*", "…", warning), [])
        column = _first_quoted(warning) or warning
        group = next((group for group in about if column not in group), None)
        if group is None:
            about.append(group := {})
        group[column] = warning
    return [tuple(group.values()) for about in groups.values() for group in about]


def _first_quoted(warning: str) -> str:
    found = re.search(r"'([^']*)'", warning)
    return found[1] if found else ""


def in_one_line(group: tuple[str, ...]) -> str:
    """The first of similar warnings, and which other columns it holds for."""
    columns = [column for warning in group[1:] if (column := _first_quoted(warning))]
    if not columns:
        return group[0]
    names = ", ".join(labels.short(name) for name in columns[:MOST_NAMES])
    more = f" and {len(columns) - MOST_NAMES} more" if len(columns) > MOST_NAMES else ""
    return f"{group[0]} Likewise: {names}{more}."
