"""Runs jobs in parallel, on processes of this machine or on a Ray cluster. Both give the same results.

A job carries its own seed, so neither the engine nor the number of workers changes what comes out.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from l2m_core.errors import ConfigError, L2MError, TrainingError, tell_warnings_plainly

Job = TypeVar("Job")
Result = TypeVar("Result")

ENGINES = ("processes", "ray")
WAITING = 4
"""Jobs handed out for each worker before results are taken in: jobs are read as they are needed, never all at once."""
DIED = (
    "A worker process died, most likely for want of memory. What was finished is kept: run the same command again, with "
    "fewer --workers."
)


def cores() -> int:
    """Processor cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS, nor on Windows
        return os.cpu_count() or 1


def fan_out(
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    engine: str = "processes",
    workers: int = 1,
    threads: int = 1,
    gpus: int = 0,
    ordered: bool = False,
) -> Iterator[tuple[int, Result]]:
    """(number of the job, its result), as they finish, or in the jobs' order.

    function: of a module, so that other processes find it; threads: of each worker; gpus: that a job needs, which a
    cluster must know to find it a machine (processes of one machine share what it has).
    """
    if engine not in ENGINES:
        raise ConfigError(f"There is no engine {engine!r}; choose one of {', '.join(ENGINES)}.")
    if workers < 1 or threads < 1:
        raise ConfigError(f"workers is {workers} and threads is {threads}; both must be at least 1.")
    source = iter(jobs)
    if engine == "ray":
        results = _ray(function, source, workers, threads, gpus)
    else:
        results = _processes(function, source, workers, threads)
    return _in_order(results) if ordered else results


def _in_order(results: Iterator[tuple[int, Result]]) -> Iterator[tuple[int, Result]]:
    early: dict[int, Result] = {}
    following = 0
    for number, result in results:
        early[number] = result
        while following in early:
            yield following, early.pop(following)
            following += 1


def _processes(function, jobs, workers: int, threads: int):
    if workers == 1:
        _set_threads(threads)
        for number, job in enumerate(jobs):
            yield number, function(job)
        return
    # A forked child would inherit the parent's thread pools in an undefined state.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker, initargs=(threads,)) as pool:
        waiting: dict[Future, int] = {}
        source = enumerate(jobs)
        try:
            _top_up(waiting, source, workers * WAITING, lambda job: pool.submit(function, job))
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
                _top_up(waiting, source, workers * WAITING, lambda job: pool.submit(function, job))
        except BrokenProcessPool as error:
            raise TrainingError(DIED) from error
        finally:
            for future in waiting:
                future.cancel()


def _begin_worker(threads: int) -> None:
    _set_threads(threads)
    tell_warnings_plainly()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Nobody ends the workers of a command that was killed: they would keep their memory for ever, and a second run
    would meet those that are still at work."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _ray(function, jobs, workers: int, threads: int, gpus: int):
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "The engine 'ray' needs Ray, which is not installed: pip install 'learning-to-measure[ray]'. "
            "The engine 'processes' needs nothing."
        ) from error
    started = not ray.is_initialized()
    # RAY_ADDRESS joins a running cluster; without it one is started here with so many workers.
    alone = started and not os.environ.get("RAY_ADDRESS")
    if started:
        here: dict[str, Any] = {"num_cpus": workers * threads} if alone else {}
        ray.init(log_to_driver=False, include_dashboard=False, configure_logging=False, **here)
    # A cluster may have more cores than workers were asked for, and runs whatever is handed out.
    most = workers * WAITING if alone else workers
    try:
        remote = ray.remote(num_cpus=threads, num_gpus=gpus)(_with_threads)
        waiting: dict[Any, int] = {}
        source = enumerate(jobs)
        _top_up(waiting, source, most, lambda job: remote.remote(function, job, threads))
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1)
            for reference in done:
                yield waiting.pop(reference), _result(ray, reference)
            _top_up(waiting, source, most, lambda job: remote.remote(function, job, threads))
    finally:
        if started:
            ray.shutdown()


def _result(ray, reference) -> Any:
    """Errors come in the words in which the job raised them, as from the other engine."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, L2MError):
            raise error.cause from error
        raise
    except ray.exceptions.RayError as error:
        raise TrainingError(DIED) from error


def _top_up(waiting: dict, source: Iterator, most: int, submit: Callable[[Any], Any]) -> None:
    while len(waiting) < most:
        try:
            number, job = next(source)
        except StopIteration:
            return
        waiting[submit(job)] = number


def _with_threads(function, job, threads: int):
    _set_threads(threads)
    return function(job)


def _set_threads(threads: int) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    import torch

    torch.set_num_threads(threads)
