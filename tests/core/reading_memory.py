"""Prints how far resident memory rose while the CSV of the first argument became a cohort: run in a process of its own, whose
memory nothing else has touched."""

import re
import sys
from pathlib import Path

from l2m_core.cohort import Cohort

STATUS, PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def main(path: str) -> None:
    small = "\n".join(f"{i % 7},{i % 2}" for i in range(50))
    Cohort.from_csv(f"a,y\n{small}".encode(), "y")  # what is loaded at the first use is no part of the file's price
    PEAK.write_text("5")  # forget the highest so far
    before = resident("VmRSS")
    cohort = Cohort.from_csv(path, "y")
    print(resident("VmHWM") - before, len(cohort))


if __name__ == "__main__":
    main(sys.argv[1])
