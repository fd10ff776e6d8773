"""Memory of a training whose shapes vary: it rises while the process warms up, and then stays."""

import re
from pathlib import Path

import pytest

from l2m_core.learn.stages import Stage
from tests.figures import Keep
from tests.learn.examples import small_loop, stream

STATUS = Path("/proc/self/status")
MOST = 50  # megabytes
STAGE = Stage(steps=10_000, tasks=4, rows=tuple(range(16, 64)), features=(2, 3, 4, 5, 6, 7, 8), continuous=0.3)

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="resident memory is read from /proc")


def resident_megabytes() -> float:
    found = re.search(r"^VmRSS:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1000


def growth(folder: Path, warm_up: int, steps: int, dtype: str) -> tuple[float, int]:
    """Megabytes that stayed after `steps` more steps, and how many shapes those and the warm-up had."""
    drawn, episodes = set(), stream(0, (STAGE,))

    def draw(step: int):
        episode = episodes.episode(step)
        drawn.add((*episode.tasks.x.shape, episode.context, episode.tasks.continuous))
        return episode

    loop = small_loop(folder, draw=draw, stages=(STAGE,), dtype=dtype)
    loop.run(warm_up)
    before = resident_megabytes()
    loop.run(warm_up + steps)
    assert loop.step == warm_up + steps
    return resident_megabytes() - before, len(drawn)


def test_a_few_steps_of_many_shapes_leave_little_behind(tmp_path: Path) -> None:
    grown, shapes = growth(tmp_path, warm_up=8, steps=16, dtype="float32")
    assert shapes >= 6 and grown <= MOST


@pytest.mark.reliability
def test_memory_stays_flat_over_steps_of_ever_new_shapes(tmp_path: Path, figure: Keep) -> None:
    """In bfloat16 the processor's kernels are built for each shape; so many are kept that 100 steps reach it."""
    warm_up, steps = 100, 200
    grown, shapes = growth(tmp_path, warm_up, steps, "bfloat16")
    figure(
        f"training: resident memory over {steps} steps of varying shapes, after {warm_up}",
        f"grows by at most {MOST} MB",
        f"{grown:+.1f} MB, {shapes} shapes",
        grown <= MOST,
    )
    assert grown <= MOST
