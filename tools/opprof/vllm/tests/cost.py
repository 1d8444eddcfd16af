"""What the recorder costs the serving thread: the time of its hooks alone, per step, beside that of
vLLM's own `schedule` and `update_from_output`, on steps of plain decoding.

    python tests/cost.py            # needs vLLM 0.24; some seconds

Processor time of the thread, and the lowest tenth of the steps, so that what else runs on the
machine counts little.
"""

import logging
import os
import statistics
import tempfile
import time
from pathlib import Path

from real import WHY_NOT, add_request, make_scheduler, model_folder, model_output

from takt_opprof.core.settings import DIR

STEPS = 300
WARM_UP = 20
REQUESTS = (8, 37, 256)


def main() -> None:
    if WHY_NOT:
        raise SystemExit(WHY_NOT)
    from takt_opprof import OpProfScheduler

    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        model = model_folder(Path(folder) / "model")
        print("requests  hooks us  vLLM's own us  share %  bytes a step")
        for requests in REQUESTS:
            records = Path(folder) / str(requests)
            os.environ[DIR] = str(records)
            scheduler = make_scheduler(
                OpProfScheduler, model, blocks=8192, tokens=4096, requests=requests
            )
            hooks, own = measure(scheduler, requests)
            scheduler.shutdown()
            (path,) = records.iterdir()
            size = path.stat().st_size / len(path.read_bytes().splitlines())
            print(
                f"{requests:8}  {hooks:8.1f}  {own:13.1f}  {100 * hooks / own:7.1f}  {size:12.0f}"
            )


def measure(scheduler, requests: int) -> tuple[float, float]:
    """Microseconds at the lowest tenth: the hooks, and the two calls without them."""
    spent = 0

    def timed(verb):
        def call(*args):
            nonlocal spent
            begun = time.thread_time_ns()
            verb(*args)
            spent += time.thread_time_ns() - begun

        return call

    recorder = scheduler.opprof
    for name in ("enter", "begin", "finalize"):
        setattr(recorder, name, timed(getattr(recorder, name)))
    for i in range(requests):
        add_request(scheduler, f"r{i}", [i % 250 + 1] * 40, max_tokens=900)
    hooks, own = [], []
    while len(hooks) < WARM_UP + STEPS:
        spent = 0
        begun = time.thread_time_ns()
        step = scheduler.schedule()
        scheduled = time.thread_time_ns() - begun
        done = {n for n in step.num_scheduled_tokens if not scheduler.requests[n].is_prefill_chunk}
        output = model_output(step, done)
        begun = time.thread_time_ns()
        scheduler.update_from_output(step, output)
        both = scheduled + time.thread_time_ns() - begun
        if len(done) == requests == step.total_num_scheduled_tokens:
            hooks.append(spent / 1000)
            own.append((both - spent) / 1000)
    return tuple(statistics.quantiles(times[WARM_UP:], n=10)[0] for times in (hooks, own))


if __name__ == "__main__":
    main()
