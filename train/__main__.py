"""`python -m train JOB --config FILE [key=value …] [--resume]`."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from l2m_core.errors import L2MError
from train.config import build, read_config

# Each job's module, which holds `run`, and the dataclass of its settings.
JOBS = {"predictor": "PredictorJob", "gain": "GainJob"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m train", description="Training jobs of Learning-to-Measure.")
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--config", type=Path, required=True, help="YAML settings; see train/configs")
    parser.add_argument("--resume", action="store_true", help="continue from the newest checkpoint")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings that replace the file's")
    given = parser.parse_intermixed_args(arguments)
    try:
        settings = read_config(given.config, given.overrides)
        job = importlib.import_module(f"train.{given.job}")
        job.run(build(getattr(job, JOBS[given.job]), settings), given.resume)
    except L2MError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
