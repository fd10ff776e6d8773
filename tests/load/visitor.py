"""A visitor without a browser: speaks Streamlit's own messages over a WebSocket, as the page's script does.

What a visitor sees is what the server drew: elements by their place on the page, forgotten when a run no longer draws
them. What it measures is the time from a press to the end of the run that the press brought about.
"""

from __future__ import annotations

import asyncio
import re
import time
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPConnection
from types import TracebackType
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

FINISHED = ForwardMsg.ScriptFinishedStatus
PATIENCE = 120.0  # seconds; a busy machine is slow


class Failed(Exception):
    """The page showed an error of the program, or what was to be pressed is not there."""


@dataclass
class Visitor:
    """One browser. Use it as an asynchronous context manager."""

    address: str
    page: str = ""
    """Name of the page to begin at; the first one by default."""
    query: str = ""
    cookie: str = ""
    elements: dict[tuple[int, ...], Any] = field(default_factory=dict)
    received: int = 0
    """Bytes."""
    sent_to: str = ""
    """Where the page sent the browser: to sign in, or out."""
    everything: bytearray | None = None
    """All that was received, when asked for at the start."""
    _page: str = ""
    session: str = ""
    _drawn: set[tuple[int, ...]] = field(default_factory=set)
    _cache: dict[str, ForwardMsg] = field(default_factory=dict)
    _refresh: tuple[float, str] | None = None
    _socket: ClientConnection | None = None

    async def __aenter__(self) -> Visitor:
        if not self.cookie:
            self.cookie = await asyncio.to_thread(get_cookie, self.address)
        url = self.address.replace("http", "ws", 1) + "/_stcore/stream"
        self._socket = await connect(
            url,
            subprotocols=["streamlit", *self._proofs()],
            additional_headers={"Cookie": self.cookie},
            origin=self.address,
            max_size=None,
            open_timeout=PATIENCE,
            ping_timeout=PATIENCE,
        )  # type: ignore[arg-type]
        await self.run()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._socket is not None:
            await self._socket.close()

    # -- acting -----------------------------------------------------------------------------------------------------

    async def press(self, key: str, **values: Any) -> float:
        """Press the button with this key, its form's fields filled in first; the seconds until the page is drawn."""
        states = [WidgetState(id=self.find(key).id, trigger_value=True)]
        for name, value in values.items():
            states.append(self._state(name, value))
        return await self.run(states)

    async def follow(self, label: str) -> float:
        """Follow the link to another page that says so; the seconds until that page is drawn."""
        links = [element.page_link for element in self.elements.values() if element.WhichOneof("type") == "page_link"]
        link = next((link for link in links if link.label == label), None)
        if link is None:
            raise Failed(f"There is no link '{label}' on the page, which has {sorted(link.label for link in links)}.")
        self._page, self.query = link.page_script_hash, link.query_string
        return await self.run()

    async def run(self, states: list[WidgetState] | None = None, fragment: str = "") -> float:
        """One run of the page's script, to its end."""
        message = BackMsg()
        message.rerun_script.query_string = self.query
        message.rerun_script.page_script_hash = self._page
        if not self._page:
            message.rerun_script.page_name = self.page
        if fragment:
            message.rerun_script.fragment_id = fragment
            message.rerun_script.is_auto_rerun = True
        message.rerun_script.widget_states.widgets.extend(states or [])
        message.rerun_script.cached_message_hashes.extend(self._cache)
        assert self._socket is not None
        began = time.perf_counter()
        await self._socket.send(message.SerializeToString())
        await asyncio.wait_for(self._read_to_the_end(), PATIENCE)
        return time.perf_counter() - began

    async def think(self, seconds: float) -> None:
        """Wait as a person does, while the page looks by itself whether something is ready."""
        until = time.perf_counter() + seconds
        while self._refresh is not None and time.perf_counter() + self._refresh[0] < until:
            interval, fragment = self._refresh
            await asyncio.sleep(interval)
            await self.run(fragment=fragment)
        await asyncio.sleep(max(0.0, until - time.perf_counter()))

    async def ask_for_download(self, key: str) -> str:
        """The address under which the file behind a download button lies, once it has been made."""
        message = BackMsg()
        message.backend_operation_request.request_id = key
        message.backend_operation_request.session_id = self.session
        message.backend_operation_request.deferred_file.file_id = self.find(key).deferred_file_id
        assert self._socket is not None
        await self._socket.send(message.SerializeToString())
        while True:
            data = await asyncio.wait_for(self._socket.recv(), PATIENCE)
            answer = ForwardMsg.FromString(data)  # type: ignore[arg-type]
            if answer.WhichOneof("type") == "backend_operation_response":
                return str(answer.backend_operation_response.deferred_file.url)
            self._take(answer)

    def get(self, path: str) -> int:
        """The status of an address, asked for with this visitor's cookie."""
        request = urllib.request.Request(self.address + path, headers={"Cookie": self.cookie})
        try:
            with _direct().open(request, timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refusal:
            return refusal.code

    def upload(self, name: str, size: int, method: str = "PUT", chunked: bool = False) -> int:
        """The status of sending a file of so many bytes (or DELETE) to this page's session, as the page's script does."""
        body = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n' + bytes(size) + b"\r\n--x--\r\n"
        connection = HTTPConnection(self.address.removeprefix("http://"), timeout=PATIENCE)  # kept open, as browsers do
        headers = {
            "Cookie": self.cookie,
            "X-Xsrftoken": "".join(self._proofs()),
            "Content-Type": "multipart/form-data; boundary=x",
        }
        path = f"/_stcore/upload_file/{self.session}/{name}"
        connection.request(method, path, iter([body]) if chunked else body, headers, encode_chunked=chunked)
        try:
            return connection.getresponse().status
        finally:
            connection.close()

    # -- seeing -----------------------------------------------------------------------------------------------------

    def find(self, key: str, partly: bool = False) -> Any:
        """The widget with this key, or (partly) with a key that begins so."""
        for element in self.elements.values():
            widget = getattr(element, element.WhichOneof("type") or "", None)
            identifier = getattr(widget, "id", "")
            if identifier.endswith(f"-{key}") or (partly and f"-{key}" in identifier):
                return widget
        raise Failed(f"There is no '{key}' on the page, which has {sorted(self.keys())}.")

    def keys(self) -> set[str]:
        """Keys of all widgets on the page."""
        found = set()
        for element in self.elements.values():
            widget = getattr(element, element.WhichOneof("type") or "", None)
            parts = getattr(widget, "id", "").split("-", 2)
            if len(parts) == 3 and parts[0] == "$$ID":
                found.add(parts[2])
        return found

    def text(self) -> str:
        """Everything that the page holds, as the messages have it."""
        return "\n".join(str(element) for element in self.elements.values())

    # -- messages ---------------------------------------------------------------------------------------------------

    async def _read_to_the_end(self) -> None:
        assert self._socket is not None
        while True:
            data = await self._socket.recv()
            assert isinstance(data, bytes)
            self.received += len(data)
            if self.everything is not None:
                self.everything += data
            message = ForwardMsg.FromString(data)
            if message.WhichOneof("type") == "ref_hash":
                known = self._cache[message.ref_hash]
                known.metadata.CopyFrom(message.metadata)
                message = known
            elif message.metadata.cacheable:
                self._cache[message.hash] = message
            if self._take(message):
                return

    def _take(self, message: ForwardMsg) -> bool:
        """Whether the message ends the run."""
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._page = message.new_session.page_script_hash
            self.session = message.new_session.initialize.session_id
            self._drawn, self._refresh = set(), None
        elif kind == "navigation":  # a session's first run finds the page by its name only after it has begun
            self._page = message.navigation.page_script_hash
        elif kind == "auth_redirect":
            self.sent_to = message.auth_redirect.url
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "auto_rerun":
            self._refresh = (message.auto_rerun.interval, message.auto_rerun.fragment_id)
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            place = tuple(message.metadata.delta_path)
            self._drawn.add(place)
            element = message.delta.new_element
            self.elements[place] = element
            if element.WhichOneof("type") == "exception":
                raise Failed("The page shows a stack trace.")
        elif kind == "script_finished":
            status = message.script_finished
            if status == FINISHED.FINISHED_EARLY_FOR_RERUN:
                return False
            if status == FINISHED.FINISHED_WITH_COMPILE_ERROR:
                raise Failed("The page's script did not run.")
            if status == FINISHED.FINISHED_SUCCESSFULLY:
                self.elements = {place: e for place, e in self.elements.items() if place in self._drawn}
            return True
        return False

    def _proofs(self) -> list[str]:
        """Without Streamlit's own token it reads no cookie of sign-in."""
        found = re.search(r"\b_streamlit_xsrf=([^;]+)", self.cookie)
        return [found[1]] if found else []

    def _state(self, key: str, value: Any) -> WidgetState:
        widget = self.find(key)
        if isinstance(value, bool):
            return WidgetState(id=widget.id, bool_value=value)
        if isinstance(value, float):
            state = WidgetState(id=widget.id)
            state.double_value = value
            return state
        return WidgetState(id=widget.id, string_value=str(value))


def _direct() -> urllib.request.OpenerDirector:
    """No proxy has a part in a question to this computer."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get_cookie(address: str) -> str:
    """The identity that the first page gives to a browser."""
    with _direct().open(address, timeout=PATIENCE) as answer:
        cookies = answer.headers.get_all("Set-Cookie") or []
    return "; ".join(cookie.split(";")[0] for cookie in cookies)
