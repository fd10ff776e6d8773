"""Streamlit's look-ups of this machine's addresses, which ask the internet while everybody waits."""

from __future__ import annotations

from app.streamlit_contact.insides import InsideMissing, attribute, inside


def never_look_up() -> None:
    """Lets Streamlit know of no address of this machine. `app.host.hosts` has compared a page's origin before it asks.

    Otherwise one handshake with a stranger's origin makes it fetch the public address from an outside service, in the
    server's loop: all pages stand still meanwhile, for seconds where outgoing traffic hangs.
    """
    try:
        used_by_the_check = inside("streamlit.web.server.server_util", "net_util")
        attribute(used_by_the_check, "get_internal_ip")
        attribute(used_by_the_check, "get_external_ip")
    except InsideMissing as missing:
        missing.log("what it may look up of this machine's addresses is left as it is")
        return
    used_by_the_check.get_internal_ip = unknown
    used_by_the_check.get_external_ip = unknown


def unknown() -> None:
    """No address."""
