"""The models that can be chosen, and what an owner can do with theirs."""

from __future__ import annotations

import shutil
from pathlib import Path

import streamlit as st

from app.host import services
from app.ui import labels, notices, ownership, state
from app.ui.metrics import boxes, metric
from l2m_core.errors import L2MError
from l2m_core.model.by_outcome import networks
from l2m_core.paths import model_folders

SECTION = "experiments-models"
ERASED = "Its files are erased. Step-throughs made with it stay, but cannot be continued with it."


def show(owner: str) -> None:
    notices.show_waiting(SECTION)
    here = services.get()
    stored = here.stored_models(owner)
    names = list(here.model_names(owner))
    if not names:
        notices.show(
            "warning", "There is no model on this computer. Copy a model folder into `pretrained`, or train one."
        )
        return
    released = model_folders()
    chosen = str(
        st.selectbox(
            "Model",
            names,
            key="experiments-model",
            format_func=lambda name: f"{labels.plain(name)}{'' if name in released else ', trained here'}",
        )
    )
    with notices.shown_refusals():
        model = here.model(owner, chosen)
        trained = model.release.trained
        parameters = sum(weight.numel() for weight in model.release.module.parameters())
        config = model.release.config
        with boxes():
            shape = f"{config.encoder}, {config.layers} layers, width {config.width}"
            if len(networks(model.release.module)) > 1:
                shape = f"two networks, each {shape}"
            metric("Parameters", f"{parameters / 1e6:.2f} M", shape)
            for what in ("features", "context rows"):
                metric(what.capitalize(), f"up to {trained.sizes[what]:,}", "that it was trained on")
            metric("Outcomes", labels.counted(len(trained.outcomes), "kind"), ", ".join(trained.outcomes))
        st.caption(f"Ranks tests by {model.release.inference.policy} · fingerprint {model.fingerprint[:16]}…")
        with st.container(border=True):
            st.markdown(labels.card(model.card) or "This model comes without a card.")
    mine = stored.get(chosen)
    if mine is not None and mine.owner == owner:
        ownership.show("model", mine.fingerprint, mine.shared, ERASED, _share, _delete)


def _share(fingerprint: str, shared: bool) -> None:
    with notices.refusals(SECTION):
        owner, store = state.owner(), services.get().store
        mine = store.models.get(owner, fingerprint)
        store.models.register(owner, mine.name, fingerprint, mine.folder, mine.card, shared)


def _delete(fingerprint: str) -> None:
    try:
        owner, here = state.owner(), services.get()
        mine = here.store.models.get(owner, fingerprint)
        here.store.models.forget(owner, fingerprint)
        folder = Path(mine.folder)
        if folder.resolve().parent == here.settings.models_dir.resolve():  # never anything but what was made here
            shutil.rmtree(folder, ignore_errors=True)
        state.notify("success", f"Model '{mine.name}' is deleted.", SECTION)
        st.session_state.pop("experiments-model", None)
    except L2MError as refusal:
        state.notify("error", str(refusal), SECTION)
