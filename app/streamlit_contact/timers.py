"""Timers of a page that somebody has just left.

A fragment that is run every second is asked for by the browser, with the page that it belongs to. Such a request may still
be under way when another page is opened. Streamlit then draws the page that was left; or it tells the browser that a
fragment of that page begins, upon which the browser empties the new page and fails at the next thing drawn on it.
"""

from __future__ import annotations

from typing import Any

from app.streamlit_contact.insides import InsideMissing, attribute, inside

TAKE, RUN = "_request_rerun_locked", "_run_script"  # Streamlit's methods that are replaced


def keep_timers_to_their_page() -> None:
    """A timer's request is dropped where the whole page is about to be drawn, or where another page has been."""
    try:
        requests = inside("streamlit.runtime.scriptrunner_utils.script_requests", "ScriptRequests")
        runner = inside("streamlit.runtime.scriptrunner.script_runner", "ScriptRunner")
        state = inside("streamlit.runtime.scriptrunner_utils.script_requests", "ScriptRequestType").RERUN
        take, run = attribute(requests, TAKE), attribute(runner, RUN)
    except InsideMissing as missing:
        missing.log("a page that is opened while another one counts its progress may stay empty until it is reloaded")
        return

    def take_unless_all_is_drawn(self: Any, new_data: Any) -> Any:
        """A request for a whole page that waits keeps its page; that page's fragments are drawn with it."""
        waits = self._rerun_data if self._state == state else None
        if new_data.is_auto_rerun and waits is not None and not waits.fragment_id_queue:
            return True
        return take(self, new_data)

    def run_unless_left(self: Any, rerun_data: Any) -> Any:
        if rerun_data.is_auto_rerun and rerun_data.page_script_hash != self._pages_manager.current_page_script_hash:
            return None
        return run(self, rerun_data)

    setattr(requests, TAKE, take_unless_all_is_drawn)
    setattr(runner, RUN, run_unless_left)
