"""Prints how far resident memory rose while each file named became a cohort, or was refused, and the cohort's rows: run in a
process of its own, whose memory nothing else has touched. The first argument is the limit of a file, in MB."""

import io
import re
import sys
from pathlib import Path

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.tables.reading import read_table
from l2m_core.tables.table import Limits

STATUS, PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def main(megabytes: str, *paths: str) -> None:
    limits = Limits(megabytes=int(megabytes))
    small = "\n".join(f"{i % 7},{i % 2}" for i in range(50))
    cohort = Cohort.from_csv(
        f"a,y\n{small}".encode(), "y"
    )  # what is loaded at the first use is no part of a file's price
    if any(path.endswith(".parquet") for path in paths):
        buffer = io.BytesIO()
        cohort.frame().astype({"a": str}).to_parquet(buffer)
        read_table(buffer.getvalue())
    for path in paths:
        PEAK.write_text("5")  # forget the highest so far
        before = resident("VmRSS")
        try:
            rows = len(Cohort.from_csv(path, "died" if path.endswith(".parquet") else "y", limits=limits))
        except CohortError:
            rows = 0
        print(resident("VmHWM") - before, rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
