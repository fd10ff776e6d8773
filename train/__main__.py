"""`python -m train JOB --config FILE [key=value …] [--resume]`; under `torchrun`, on several processes or GPUs."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path

from l2m_core.errors import L2MError
from train.config import build, read_config

# Each job's module, which holds `run`, and the dataclass of its settings.
JOBS = {
    "predictor": "PredictorJob",
    "policy": "PolicyJob",
    "gain": "GainJob",
    "finetune": "FinetuneJob",
    "release": "ReleaseJob",
}


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    settings = read_config(given.config, given.overrides)
    job = importlib.import_module(f"train.{given.job}")
    job.run(build(getattr(job, JOBS[given.job]), settings), given.resume)
    return 0


if __name__ == "__main__":
    sys.exit(main())
