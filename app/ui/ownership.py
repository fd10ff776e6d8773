"""Lets an owner share a cohort or model with everyone on this installation, or delete it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def show(
    what: str,
    identifier: str,
    shared: bool,
    erased: str,
    share: Callable[[str, bool], None],
    delete: Callable[[str], None],
) -> None:
    """what: 'cohort' or 'model'; erased: what deleting it means, in sentences."""
    key = f"share-{identifier}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.toggle(
            "Share with everyone who uses this installation",
            value=shared,
            key=key,
            on_change=_share,
            args=(share, identifier, key),
            help="Programs that have the token of l2m serve may use it too, where that runs",
        )
        # Keys of this very one: else the popover stays open for the next one, which a second press would delete too.
        with st.popover(f"Delete this {what}", icon=":material/delete:", key=f"{what}-deleting-{identifier}"):
            st.write(erased)
            st.button(
                "Delete permanently",
                key=f"{what}-delete-{identifier}",
                type="primary",
                on_click=delete,
                args=(identifier,),
            )


def _share(share: Callable[[str, bool], None], identifier: str, key: str) -> None:
    chosen = st.session_state.get(key)
    if chosen is not None:  # late, see `state`
        share(identifier, bool(chosen))
