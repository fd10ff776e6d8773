"""Plain JSON of answers, and where two of them differ: texts, counts and hashes exactly, measured numbers nearly."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

KEPT = Path(__file__).parent / "kept"
NEAR = 1e-5  # of posteriors and gains, relative where they are larger than one: another CPU sums in another order
LOGITS = 5  # times as far: scores of the policy head, which no bound holds near to one


def plain(value: Any) -> Any:
    """For JSON: what is no finite number becomes None; eight digits say more than is compared."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    return value


def write(name: str, value: Any) -> None:
    """A file under `kept`, one line for each entry at the top; what changed in it is printed."""
    path = KEPT / name
    before = read(name) if path.is_file() else None
    lines = [
        f"{json.dumps(key)}: {json.dumps(item, ensure_ascii=False, separators=(',', ':'))}"
        for key, item in value.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    if before is None:
        print(f"{name}: new, {path.stat().st_size:,} bytes")
        return
    found = list(differences(read(name), before))
    print(f"{name}: {len(found)} differences from before" + "".join(f"\n  {line}" for line in found[:20]))


def read(name: str) -> Any:
    return json.loads((KEPT / name).read_text(encoding="utf-8"))


def unpacked(name: str) -> bytes:
    return gzip.decompress((KEPT / name).read_bytes())


def differences(now: Any, then: Any, where: str = "", near: float = NEAR) -> Iterator[str]:
    """A line for each place where the two are not the same; none where they agree. then: what was kept."""
    if is_ranking(then) and is_ranking(now):
        yield from _of_rankings(now, then, where, near)
    elif isinstance(then, dict) and isinstance(now, dict):
        for key in sorted(set(then) | set(now)):
            if key not in now or key not in then:
                yield f"{where}/{key}: {'gone' if key in then else 'new'}"
            else:
                yield from differences(now[key], then[key], f"{where}/{key}", near)
    elif isinstance(then, list) and isinstance(now, list) and len(now) == len(then):
        for place, (one, other) in enumerate(zip(now, then, strict=True)):
            yield from differences(one, other, f"{where}/{place}", near)
    elif not _same(now, then, LOGITS * near if "/policies/learned/" in where else near):
        yield f"{where}: {now!r:.200}, kept is {then!r:.200}"


def _same(now: Any, then: Any, near: float) -> bool:
    if isinstance(now, float) and isinstance(then, int | float) and not isinstance(then, bool):
        return abs(now - then) <= near * max(1.0, abs(then))
    return type(now) is type(then) and bool(now == then)


# -- rankings -------------------------------------------------------------------------------------------------------


def is_ranking(value: Any) -> bool:
    """Features in their order beside columns of the same length, `score` among them."""
    return isinstance(value, dict) and {"feature", "score"} <= set(value) and isinstance(value["score"], list)


def _of_rankings(now: dict, then: dict, where: str, near: float) -> Iterator[str]:
    order = then["feature"]
    if sorted(now["feature"]) != sorted(order):
        yield f"{where}: other features are ranked: {now['feature']}, kept are {order}"
        return
    if not _is_order(now["feature"], dict(zip(order, then["score"], strict=True)), order, near):
        yield f"{where}: the order is {now['feature']}, kept is {order}"
    places = [now["feature"].index(name) for name in order]
    yield from differences(
        {key: [column[place] for place in places] for key, column in now.items() if key != "feature"},
        {key: column for key, column in then.items() if key != "feature"}, where, near,
    )  # fmt: skip


def _is_order(now: list[str], scores: dict[str, float | None], then: list[str], near: float) -> bool:
    """The very same order; only two whose scores another CPU may round past each other may have changed places."""
    places = {name: place for place, name in enumerate(then)}
    for before, after in ((a, b) for i, a in enumerate(now) for b in now[i + 1 :]):
        if places[before] < places[after]:
            continue
        high, low = scores[after], scores[before]
        if high is None or low is None or high == low or high - low > near * max(1.0, abs(high)):
            return False
    return True
