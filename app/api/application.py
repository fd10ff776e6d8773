"""The ASGI application: who may ask, what is asked, and refusals in words.

It acts as an owner without cohorts of its own: it sees what people share with everyone on this installation, and nothing
else. It stores nothing of a patient and writes nothing of one to the log.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api import cds_hooks, openapi
from app.api.answers import answer_about, described
from app.api.bodies import read_body
from app.api.questions import AnsweredBy, question, read_object
from app.api.tokens import is_right
from app.host.services import NOBODY, Services
from app.host.sweeping import sweep_now_and_then
from app.store import NotFound, StoredCohort, StoreError
from l2m_core.acquire.stopping import Stopping
from l2m_core.cohort import Cohort
from l2m_core.errors import InputError, L2MError
from l2m_core.memory import L2M, CohortMemory
from l2m_core.patients import BroughtPatients, PatientRecord
from l2m_core.schema import Schema, did_you_mean
from l2m_core.step_through.words import RESEARCH_ONLY

Result = TypeVar("Result")

OPEN = ("/health", "/openapi.json")  # they tell nothing of an installation
AT_ONCE = 2  # questions that are computed
MOST_WAITING = 16  # questions that are computed or wait for it
PATIENCE = 30.0  # seconds within which there is an answer, or a word on why not
READING_PATIENCE = 20.0  # seconds of them, at most, for the model to read the cohort
SECONDS_TO_STOP = 2.0  # for a sweep that is just at work
LOOK_AGAIN = 0.1  # seconds between looks at whether a cohort has been read


class Face:
    """What the routes share: the installation, its threads, and how many questions wait."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="l2m-api")
        self._waiting = 0

    # -- what is there --------------------------------------------------------------------------------------------------

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ready"})

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(openapi.document())

    async def cohorts(self, request: Request) -> Response:
        found = await self._thread(lambda: self.services.store.cohorts.list(NOBODY))
        return JSONResponse({"cohorts": [_brief(stored) for stored in found]})

    async def cohort(self, request: Request) -> Response:
        stored = await self._thread(lambda: self._stored(request.path_params["cohort"]))
        return JSONResponse({**_brief(stored), **described(Schema.from_yaml(stored.schema_yaml))})

    def _stored(self, cohort_id: str) -> StoredCohort:
        stored = self.services.store.cohorts.get(NOBODY, cohort_id)
        if not stored.is_usable_by(NOBODY):
            raise NotFound("There is no such cohort: it was deleted, or is not shared.")
        return stored

    def _cohort(self, stored: StoredCohort) -> Cohort:
        self.services.note_read(NOBODY, "cohort asked over HTTP", stored.id)
        return self.services.cohort(NOBODY, stored)

    # -- advice ---------------------------------------------------------------------------------------------------------

    async def advice(self, request: Request) -> Response:
        body = await read_body(request)
        try:
            asked = question(body, request.headers.get("content-type", ""))
        except KeyError:
            raise HTTPException(415, "Send application/json, application/fhir+json or text/csv.") from None

        async def work() -> dict[str, Any]:
            stored = await self._thread(lambda: self._stored(request.path_params["cohort"]))
            incoming = await self._thread(lambda: asked.about(self._cohort(stored)))
            memory, answers = await self._answers(stored, incoming, asked.rules)
            return {
                "cohort": _brief(stored),
                "model": {"name": memory.model.name, "fingerprint": memory.model.fingerprint},
                "council": None if memory.recipe is None else memory.recipe.to_data(),
                "patients": answers,
                "notes": list(incoming.notes),
                "use": RESEARCH_ONLY,
            }

        return JSONResponse(await self._bounded(work))

    async def _answers(
        self, stored: StoredCohort, incoming: BroughtPatients, rules: AnsweredBy
    ) -> tuple[CohortMemory, list[dict[str, Any]]]:
        model = await self._thread(lambda: self._model(rules.model))
        memory = await self._memory(stored, model)
        return memory, [await self._thread(partial(answer, memory, record, rules)) for record in incoming.patients]

    def _model(self, name: str) -> L2M:
        names = self.services.model_names(NOBODY)
        if name not in names:
            raise InputError(f"There is no model '{name:.60}'.{did_you_mean(name, names)}")
        return self.services.model(NOBODY, name)

    async def _memory(self, stored: StoredCohort, model: L2M) -> CohortMemory:
        """The model's memory of the cohort, with its council once that is fitted, as a step-through would begin with on the
        page. While the model reads, no thread waits, so that other cohorts are answered for."""
        services = self.services
        if not services.has_read(stored, model):
            await self._thread(lambda: services.begin_reading(NOBODY, stored, model))
        loop = asyncio.get_running_loop()
        late = loop.time() + READING_PATIENCE
        while (share := services.reading(stored, model)) is not None:
            if loop.time() > late:
                raise busy(f"The cohort is still being read, {share:.0%} so far.")
            await asyncio.sleep(LOOK_AGAIN)
        conditioned = await self._thread(lambda: services.conditioned(NOBODY, stored, model))
        return services.with_council(conditioned).memory

    # -- CDS Hooks ------------------------------------------------------------------------------------------------------

    async def cds_services(self, request: Request) -> Response:
        found = await self._thread(lambda: self.services.store.cohorts.list(NOBODY))
        return JSONResponse({"services": [said for stored in found if (said := cds_hooks.service_of(stored))]})

    async def cds_service(self, request: Request) -> Response:
        body = await read_body(request)

        async def work() -> dict[str, Any]:
            cohort_id = cds_hooks.cohort_of(request.path_params["service"])
            stored = await self._thread(lambda: self._stored(cohort_id))
            record, notes = await self._thread(lambda: cds_hooks.record_of(read_object(body), self._cohort(stored)))
            _, (answer,) = await self._answers(stored, BroughtPatients("FHIR", (record,)), AnsweredBy())
            return {"cards": [cds_hooks.card(stored.name, answer, notes)]}

        try:
            return JSONResponse(await self._bounded(work))
        except cds_hooks.NothingFetched as missing:
            raise HTTPException(412, str(missing)) from None

    # -- how many, how long ----------------------------------------------------------------------------------------------

    async def _bounded(self, work: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        if self._waiting >= MOST_WAITING:
            raise busy("Too many questions are waiting.")
        self._waiting += 1
        try:
            async with asyncio.timeout(PATIENCE):
                return await work()
        except TimeoutError:
            raise busy(f"There was no answer within {PATIENCE:g} seconds; the computer is busy.") from None
        finally:
            self._waiting -= 1

    async def _thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def answer(memory: CohortMemory, record: PatientRecord, rules: AnsweredBy) -> dict[str, Any]:
    stopping = replace(Stopping.at_first(memory.cohort, memory.release), **rules.stopping)
    patient = memory.start(record.values, limits=record.limits, stopping=stopping, policy=rules.policy)
    left = [name for name in rules.unavailable if name not in record.values]
    return answer_about(patient.unavailable(*left) if left else patient, record)


def busy(why: str) -> HTTPException:
    return HTTPException(503, f"{why} Ask again in some seconds.", {"Retry-After": "5"})


def _brief(stored: StoredCohort) -> dict[str, Any]:
    return {
        "id": stored.id,
        "name": stored.name,
        "version": stored.version,
        "content_hash": stored.content_hash,
    }


# -- who may ask ---------------------------------------------------------------------------------------------------------


class TokenGuard:
    """Answers nothing without the token, and marks what it answers as nobody else's business."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Cache-Control"] = "no-store"
                headers["X-Content-Type-Options"] = "nosniff"
            await send(message)

        answer = self.app
        if scope["path"] not in OPEN and not is_right(Headers(scope=scope).get("authorization"), self._token):
            refused = {"error": "Send the header 'Authorization: Bearer TOKEN' with this installation's token."}
            # The body is not read, so the connection cannot be used again.
            answer = JSONResponse(refused, 401, {"WWW-Authenticate": "Bearer", "Connection": "close"})
        await answer(scope, receive, send_with_headers)


# -- refusals ------------------------------------------------------------------------------------------------------------


async def refuse(request: Request, problem: Exception) -> Response:
    """Every refusal is one sentence of JSON."""
    headers = None
    if isinstance(problem, HTTPException):
        status, words, headers = problem.status_code, _words(problem), problem.headers
    elif isinstance(problem, NotFound):
        status, words = 404, str(problem)
    elif isinstance(problem, InputError):
        status, words = 422, str(problem)
    elif isinstance(problem, StoreError):
        status, words = 503, "The database is not ready. Ask again in some seconds."
    else:  # the model is gone or damaged: nothing that whoever asks could mend
        status, words = 503, str(problem)
    return JSONResponse({"error": words}, status, headers)


def _words(problem: HTTPException) -> str:
    plain = {404: "There is nothing at this address. GET /openapi.json tells what there is."}
    plain[405] = "This address is asked in another way. GET /openapi.json tells how."
    return plain.get(problem.status_code, problem.detail)


async def apologise(request: Request, fault: Exception) -> Response:
    return JSONResponse({"error": "Something went wrong in the program. The log says where."}, 500)


# -- all together --------------------------------------------------------------------------------------------------------


def make_app(services: Services, token: str, hosts: Sequence[str]) -> Starlette:
    """hosts: names under which requests may come; '*' for any."""
    face = Face(services)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        stop = threading.Event()
        sweeps = (services.forget_deleted, services.store.make_file_whole)
        sweep = threading.Thread(target=sweep_now_and_then, args=(stop, *sweeps), daemon=True)
        sweep.start()
        try:
            yield
        finally:
            stop.set()
            face.close()
            sweep.join(SECONDS_TO_STOP)
            services.store.close()  # here, since the signal that ends the server ends the process next

    return Starlette(
        routes=[
            Route("/health", face.health),
            Route("/openapi.json", face.openapi),
            Route("/v1/cohorts", face.cohorts),
            Route("/v1/cohorts/{cohort}", face.cohort),
            Route("/v1/cohorts/{cohort}/advice", face.advice, methods=["POST"]),
            Route("/cds-services", face.cds_services),
            Route("/cds-services/{service}", face.cds_service, methods=["POST"]),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
            Middleware(TokenGuard, token=token),
        ],
        exception_handlers={HTTPException: refuse, L2MError: refuse, Exception: apologise},
        lifespan=lifespan,
    )
