"""Addresses that Streamlit's server answers."""

from __future__ import annotations

HEALTH = "/_stcore/health"
UPLOADS = "/_stcore/upload_file"  # then /session/file
MEDIA = "/media/"  # then the id of a file
METRICS = "/_stcore/metrics"
AGENT = "/_stcore/agent/"
LOG_IN = "/auth/login"
SIGNED_IN = "/oauth2callback"  # where the identity provider sends a browser back to
NOT_PAGES = ("/_stcore/", "/static/", MEDIA, "/component/")
