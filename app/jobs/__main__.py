"""`python -m app.jobs ID`: one worker for one job. Started by the app, which hands it its claim by standard input."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable

from app.catalogue import Catalogue
from app.jobs import folders
from app.jobs.runner import PATIENCE, Runner
from app.jobs.work import Ending, Stopped, Work
from app.settings import AppSettings
from app.store import Conflict, Job, StoreError
from l2m_core.errors import L2MError, tell_warnings_plainly

SECONDS_BETWEEN_REPORTS = 2.0
SECONDS_TO_STOP = 180.0  # then the worker ends without waiting for its work


def kinds() -> dict[str, Callable[[Work], Ending]]:
    from app.jobs import evidence_job, releasing, study_jobs, training_job

    return {
        evidence_job.KIND: evidence_job.run,
        training_job.KIND: training_job.run,
        releasing.KIND: releasing.run,
        study_jobs.EVALUATE: study_jobs.run,
        study_jobs.REPRODUCE: study_jobs.run,
    }


def main() -> int:
    job_id, claim = sys.argv[1], sys.stdin.readline().strip()  # a line: the pipe's end may be held open by others
    if not claim:
        return 0  # the job was somebody else's first
    _be_modest()
    catalogue = Catalogue(AppSettings.from_environment())
    store = catalogue.store
    job = next((job for job in store.jobs.active() if job.id == job_id and job.claim == claim), None)
    if job is None:
        return 0
    work = Work(job, folders.folder_of(catalogue.settings.jobs_dir, job.id), catalogue)
    signal.signal(signal.SIGTERM, lambda *_: work.stop_asked.set())
    ended = threading.Event()
    reporter = threading.Thread(target=_report, args=(work, claim, ended), daemon=True)
    reporter.start()
    state, sentence, result = _outcome(work)
    ended.set()
    reporter.join()
    try:
        store.jobs.finish(job.id, claim, state, sentence[:2000], result)  # type: ignore[arg-type]
    except Conflict:
        print("This job was given to another worker meanwhile.", file=sys.stderr)
    Runner(store, catalogue.settings).pump(PATIENCE)  # whoever waits is next
    store.close()
    return 0


def _outcome(work: Work) -> tuple[str, str, dict | None]:
    """The work's end in words. What went wrong in the program is named by its kind only: its words may quote values."""
    try:
        outcome = kinds()[work.job.kind](work)
        return outcome.state, outcome.sentence, outcome.result
    except Stopped:
        return "cancelled", "Stopped. What is finished is kept: it can be resumed.", None
    except L2MError as refusal:
        return "failed", str(refusal), None
    except MemoryError:
        return "failed", "The memory of this computer did not suffice. Choose fewer rows or a smaller model.", None
    except Exception as fault:
        where = "".join(traceback.format_tb(fault.__traceback__))
        print(f"Traceback (most recent call last):\n{where}{type(fault).__name__}", file=sys.stderr)
        return "failed", f"Something went wrong in the program ({type(fault).__name__}); its log file says where.", None


def _report(work: Work, claim: str, ended: threading.Event) -> None:
    """Every few seconds: how far it is, and whether it should stop. Losing the claim means stopping too."""
    waited = 0.0
    while not ended.wait(SECONDS_BETWEEN_REPORTS):
        try:
            job: Job = work.catalogue.store.jobs.heartbeat(work.job.id, claim, work.progress, work.sentence)
            if job.cancel_requested:
                work.stop_asked.set()
        except Conflict:
            work.stop_asked.set()
        except StoreError:
            pass  # the store may be back the next time
        except Exception as fault:  # whatever it is: a worker that stopped listening could never be stopped
            print(f"note: no report was made ({type(fault).__name__})", file=sys.stderr)
        folders.trim(work.folder)
        waited = waited + SECONDS_BETWEEN_REPORTS if work.stop_asked.is_set() else 0.0
        if waited > SECONDS_TO_STOP:
            _leave(work, claim)


def _leave(work: Work, claim: str) -> None:
    try:
        work.catalogue.store.jobs.finish(
            work.job.id, claim, "cancelled", "Stopped at once, since it did not stop by itself; what was kept stays."
        )
    finally:
        os._exit(1)


def _be_modest() -> None:
    """The page comes first; warnings become one line each."""
    if hasattr(os, "nice"):
        os.nice(5)
    tell_warnings_plainly()
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


if __name__ == "__main__":
    sys.exit(main())
