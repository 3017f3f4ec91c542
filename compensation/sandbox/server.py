"""The HTTP face of the sandbox: systems, readback, stats, faults and the ledger page."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from compensation.sandbox import page, reading
from compensation.sandbox.digits import whole
from compensation.sandbox.faults import Fault, FaultBook
from compensation.sandbox.ledger import Arrival, Ledger, Outcome, Verdict
from compensation.sandbox.postings import KEY_HEADER, check_target, parse_object, read_key, read_posting
from compensation.sandbox.problems import RequestError, error_response, invalid

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Work = Callable[[], Awaitable[web.Response]]

MAX_BODY_BYTES = 1024 * 1024
_LIST_LIMIT = 200
_MAX_SEQ = 10**18 - 1
_HANG_CHECK_SECONDS = 0.1
_ANSWERS_BEFORE = frozenset({"fail", "reject", "throttle", "drop_before", "hang"})
_HOLDS_BY_ITSELF = frozenset({"hang", "throttle"})
_CSS = Path(__file__).with_name("ledger.css")
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_log = logging.getLogger("compensation.sandbox")


class Sandbox:
    """One sandbox: its ledger, its faults, and the wish to stop, which every wait listens to."""

    def __init__(self, *, ledger: Ledger, delay_ms: int = 0) -> None:
        self._ledger = ledger
        self._faults = FaultBook()
        self._delay_ms = delay_ms
        self._stopping = asyncio.Event()

    def application(self) -> web.Application:
        """The aiohttp application; the fixed paths stand before the systems, so that none hides the other."""
        app = web.Application(middlewares=[_json_errors], client_max_size=MAX_BODY_BYTES)
        app.router.add_get("/", self.show_page)
        app.router.add_get("/ledger.css", show_css)
        app.router.add_get("/stats", self.show_stats)
        app.router.add_get("/effects", self.list_effects)
        app.router.add_get("/effects/{key:.+}", self.read_back)
        app.router.add_get("/faults", self.list_faults)
        app.router.add_post("/faults", self.add_fault)
        app.router.add_delete("/faults", self.clear_faults)
        app.router.add_post("/faults/inject", self.inject_from_page)
        app.router.add_post("/faults/clear", self.clear_from_page)
        app.router.add_post("/{system}/{verb}", self.post)
        app.on_shutdown.append(self._stop)
        return app

    async def _stop(self, _app: web.Application) -> None:
        self._stopping.set()

    # -- systems and readback: the paths faults act on

    async def post(self, request: web.Request) -> web.Response:
        """`POST /{system}/{verb}`: 201 with the answer; a repeated key gets the first one, 409 with another body."""
        system, verb = request.match_info["system"], request.match_info["verb"]
        check_target(system, verb)
        key = read_key(request.headers)
        raw = await request.read()

        async def refuse() -> Outcome:
            return await self._ledger.record(Arrival(key))

        async def apply() -> web.Response:
            try:
                posting = read_posting(system=system, verb=verb, key=key, headers=request.headers, raw=raw)
            except RequestError:
                await refuse()
                raise
            return _answer(await self._ledger.record(Arrival(key, posting)))

        return await self._through_faults(request, work=apply, refuse=refuse)

    async def read_back(self, request: web.Request) -> web.Response:
        """`GET /effects/{key}`: the effect applied under that key, or 404."""
        key = request.match_info["key"]

        async def look() -> web.Response:
            effect = await self._ledger.read(partial(reading.effect_of_key, key=key))
            if effect is None:
                raise RequestError(404, "not_found", "No effect was applied under this key.")
            return web.json_response(effect.wire())

        return await self._through_faults(request, work=look, refuse=_nothing)

    async def _through_faults(
        self, request: web.Request, *, work: Work, refuse: Callable[[], Awaitable[object]]
    ) -> web.Response:
        fault = self._faults.take(request.path)
        wait_ms = fault.ms if fault and fault.mode not in _HOLDS_BY_ITSELF else 0
        if self._delay_ms + wait_ms and not await self._pause((self._delay_ms + wait_ms) / 1000):
            return _cut(request)
        if fault is None or fault.mode == "delay":
            return await work()
        if fault.mode in _ANSWERS_BEFORE:
            await refuse()
            return await self._misbehave(request, fault)
        await work()
        return _cut(request) if fault.mode == "drop_after" else web.Response(text='{"receiptId": "rcpt_', status=200)

    async def _misbehave(self, request: web.Request, fault: Fault) -> web.Response:
        if fault.mode == "drop_before":
            return _cut(request)
        if fault.mode == "hang":
            await self._hang(request, fault.ms / 1000)
            return _cut(request)
        if fault.mode == "throttle":
            response = error_response(429, "rate_limited", "An injected fault throttles this request.")
            response.headers["Retry-After"] = str(max(1, math.ceil(fault.ms / 1000)))
            return response
        return error_response(fault.status, "injected_fault", f"An injected fault answers {fault.status}.")

    async def _pause(self, seconds: float) -> bool:
        """Wait; False when the sandbox is told to stop meanwhile."""
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return True
        return False

    async def _hang(self, request: web.Request, seconds: float) -> None:
        """Hold the connection until the client goes, the bound is over, or the sandbox stops."""
        until = asyncio.get_running_loop().time() + seconds
        while _connected(request) and asyncio.get_running_loop().time() < until:
            if not await self._pause(_HANG_CHECK_SECONDS):
                return

    # -- lists and stats

    async def list_effects(self, request: web.Request) -> web.Response:
        """`GET /effects?key=&system=&limit=&cursor=`, newest first."""
        query = request.query
        limit = _number(query.get("limit"), "/query/limit", maximum=_LIST_LIMIT) or _LIST_LIMIT
        before = _number(query.get("cursor"), "/query/cursor", maximum=_MAX_SEQ)
        effects = await self._ledger.read(
            partial(
                reading.newest_effects, limit=limit + 1, before=before, key=query.get("key"), system=query.get("system")
            )
        )
        shown = effects[:limit]
        cursor = str(shown[-1].seq) if len(effects) > limit else None
        return web.json_response({"effects": [effect.wire() for effect in shown], "nextCursor": cursor})

    async def show_stats(self, request: web.Request) -> web.Response:
        """`GET /stats?key=`: counters over everything, and per key."""
        return web.json_response(await self._ledger.read(partial(reading.stats, key=request.query.get("key"))))

    # -- faults

    async def list_faults(self, request: web.Request) -> web.Response:
        """`GET /faults`: the active ones."""
        return web.json_response(self._faults.wire())

    async def add_fault(self, request: web.Request) -> web.Response:
        """`POST /faults`: 201 with the active faults."""
        _refuse_other_sites(request)
        self._faults.add(parse_object(await request.read()))
        return web.json_response(self._faults.wire(), status=201)

    async def clear_faults(self, request: web.Request) -> web.Response:
        """`DELETE /faults`: none is active afterwards."""
        _refuse_other_sites(request)
        self._faults.clear()
        return web.json_response(self._faults.wire())

    async def inject_from_page(self, request: web.Request) -> web.Response:
        """The page's form: back to the page, which says what is wrong when something is."""
        _refuse_other_sites(request)
        try:
            self._faults.add(_form_fields(await request.post()))
        except RequestError as refused:
            return await self._render(request, status=refused.status, notice=str(refused))
        raise web.HTTPSeeOther("/")

    async def clear_from_page(self, request: web.Request) -> web.Response:
        """The page's buttons: clear the fault with the id given, all when there is none."""
        _refuse_other_sites(request)
        wanted = str((await request.post()).get("fault", "")) or None
        self._faults.clear(_number(wanted, "/fault", maximum=_MAX_SEQ))
        raise web.HTTPSeeOther("/")

    # -- the page

    async def show_page(self, request: web.Request) -> web.Response:
        """`GET /`: the ledger as a person reads it."""
        return await self._render(request)

    async def _render(self, request: web.Request, *, status: int = 200, notice: str = "") -> web.Response:
        before = _number(request.query.get("before"), "/query/before", maximum=_MAX_SEQ)
        view = await self._ledger.read(partial(page.gather, before=before))
        text = page.render(view, faults=list(self._faults), live="live" in request.query, notice=notice)
        return web.Response(text=text, content_type="text/html", status=status, headers=_PAGE_HEADERS)


async def show_css(_request: web.Request) -> web.FileResponse:
    """`GET /ledger.css`."""
    return web.FileResponse(_CSS)


@web.middleware
async def _json_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except RequestError as refused:
        return refused.response()
    except sqlite3.Error:
        _log.exception("the ledger could not be read or written")
        return error_response(
            503, "ledger_unavailable", "The ledger could not be read or written; nothing was applied."
        )
    except web.HTTPException as raised:
        if isinstance(raised, web.HTTPRedirection):
            raise
        code = {404: "not_found", 405: "method_not_allowed", 413: "payload_too_large"}.get(raised.status, "refused")
        return error_response(raised.status, code, raised.reason)


async def _nothing() -> None:
    """A readback that is refused leaves no trace: only what reaches a system is counted."""


def _answer(outcome: Outcome) -> web.Response:
    if outcome.verdict is Verdict.CONFLICT:
        message = f"This {KEY_HEADER} was used for another request; nothing was applied."
        return error_response(409, "idempotency_key_mismatch", message)
    return web.Response(text=outcome.answer, content_type="application/json", status=201)


def _connected(request: web.Request) -> bool:
    return request.transport is not None and not request.transport.is_closing()


def _cut(request: web.Request) -> web.Response:
    """Drop the connection. The response returned is never sent: there is nobody left to read it."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _refuse_other_sites(request: web.Request) -> None:
    if request.headers.get("Sec-Fetch-Site", "none") == "cross-site":
        raise RequestError(
            403, "forbidden", "Faults are injected from the ledger page or by a program, not from another site."
        )


def _number(text: str | None, pointer: str, *, maximum: int) -> int | None:
    if text is None:
        return None
    number = whole(text)
    if number is None or not 1 <= number <= maximum:
        raise invalid((pointer, f"must be a whole number from 1 to {maximum}"))
    return number


def _form_fields(form: Any) -> dict[str, Any]:
    """A form's texts as the JSON body would carry them: empty means absent, digits mean a number."""
    filled = {name: str(value).strip() for name, value in form.items() if str(value).strip()}
    numbers = {name: whole(text) for name, text in filled.items() if name in ("times", "ms", "status")}
    return filled | {name: number for name, number in numbers.items() if number is not None}
