"""The plugin: vLLM's own scheduler with a recorder looking on.

`--scheduler-cls takt_opprof.OpProfScheduler`. The engine calls the class to get its scheduler, and
gets the one it would have had: `AsyncScheduler` when asynchronous scheduling is on, `Scheduler`
when not. Without `VLLM_OPPROF_DIR` it is that very class; with it, one derived from it. Nothing is
decided here and nothing of the scheduler's state is changed.
"""

import functools
import importlib.util

import vllm
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from .core import OpProfError, Settings, start

VLLM_VERSION = "0.24."


class OpProfScheduler:
    """What the engine calls; never an instance of itself."""

    def __new__(cls, *args, **kwargs):
        vllm_config = kwargs["vllm_config"] if "vllm_config" in kwargs else args[0]
        stock = AsyncScheduler if vllm_config.scheduler_config.async_scheduling else Scheduler
        settings = Settings.from_env()
        if settings is None:
            return stock(*args, **kwargs)
        _check_vllm()
        return _recorded(stock)(*args, opprof_settings=settings, **kwargs)


def _check_vllm() -> None:
    """The hooks are places inside vLLM, which other versions may have moved."""
    if not vllm.__version__.startswith(VLLM_VERSION):
        raise OpProfError(
            f"OpProfScheduler is made for vLLM {VLLM_VERSION}x and this is {vllm.__version__}"
        )
    if importlib.util.find_spec("vllm.v1.opprof") is not None:
        raise OpProfError(
            "this vLLM carries the in-place patch and records by itself: leave out "
            "--scheduler-cls, or undo the patch"
        )


@functools.cache
def _recorded(stock):
    """The class derived from `stock` that tells a recorder of every step."""

    class Recorded(stock):
        def __init__(self, *args, opprof_settings, **kwargs):
            super().__init__(*args, **kwargs)
            self.opprof = start(
                self,
                settings=opprof_settings,
                graphs_reported=self.observability_config.cudagraph_metrics,
            )

        def schedule(self, *args, **kwargs):
            self.opprof.enter(self)
            return super().schedule(*args, **kwargs)

        def _update_after_schedule(self, scheduler_output):
            # The last call in `schedule`: the output is complete and no state has moved.
            self.opprof.begin(self, scheduler_output)
            super()._update_after_schedule(scheduler_output)

        def update_from_output(self, scheduler_output, model_runner_output):
            outputs = super().update_from_output(scheduler_output, model_runner_output)
            self.opprof.finalize(scheduler_output, model_runner_output.cudagraph_stats)
            return outputs

        def shutdown(self):
            self.opprof.close()
            super().shutdown()

    Recorded.__name__ = Recorded.__qualname__ = f"Recorded{stock.__name__}"
    return Recorded
