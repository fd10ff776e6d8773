"""`python -m train JOB --config FILE [key=value …] [--resume]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from l2m_core.errors import L2MError
from train.config import build, read_config

JOBS = ("predictor",)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m train", description="Training jobs of Learning-to-Measure.")
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--config", type=Path, required=True, help="YAML settings; see train/configs")
    parser.add_argument("--resume", action="store_true", help="continue from the newest checkpoint")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings that replace the file's")
    given = parser.parse_args(arguments)
    try:
        settings = read_config(given.config, given.overrides)
        from train import predictor

        predictor.run(build(predictor.PredictorJob, settings), given.resume)
    except L2MError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
