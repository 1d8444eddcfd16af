"""One begin and one finalize for every step of one scheduler.

Steps are paired with their outputs by the very output object: an asynchronous scheduler has several
under way, and the engine hands each one back. The recorder never breaks the server: when one of its
verbs fails, the reason is logged, the file is closed in order and the verbs do nothing from there
on.
"""

import atexit
import logging
import os
import time

import msgspec

from .composition import Composer
from .records import GraphUse, Record
from .settings import DIR, OpProfError, Settings
from .stream import Stream

# A child of vLLM's own logger, so that its handlers print it.
logger = logging.getLogger("vllm.opprof")

# Steps under way. The engine has as many as it has batches in flight, a handful; more than this
# means that outputs do not come back, and the oldest is given up.
PENDING_MAX = 1024


def start(scheduler, *, settings: Settings | None, graphs_reported: bool) -> "Recorder | None":
    """A recorder for `scheduler`, or `None` without settings. `graphs_reported` says that the model
    runner is asked for the graph it used.

    Raises `OpProfError` when the recorder cannot work as asked; meant to end the server's start.
    """
    if settings is None:
        return None
    if not scheduler.log_stats:
        raise OpProfError(
            f"{DIR} is set but the engine's statistics are off, and prefix-cache counts come from "
            "them: leave out --disable-log-stats (offline: LLM(..., disable_log_stats=False)), or "
            "unset it"
        )
    rank = scheduler.parallel_config.data_parallel_index
    recorder = Recorder(settings, rank)
    logger.info("opprof: recording every scheduler step to %s", recorder.path)
    if scheduler.use_v2_model_runner:
        logger.warning(
            "opprof: `cudagraph` will be null: the V2 model runner of vLLM 0.24 does not report "
            "the graph it used; VLLM_USE_V2_MODEL_RUNNER=0 selects the runner that does"
        )
    elif not graphs_reported:
        logger.warning("opprof: `cudagraph` will be null: add --cudagraph-metrics to have it")
    return recorder


class Recorder:
    """Records one scheduler's steps to one stream of files."""

    def __init__(self, settings: Settings, dp_rank: int) -> None:
        engine_id = f"dp{dp_rank}-pid{os.getpid()}"
        self._composer = Composer(engine_id)
        self._encode = msgspec.json.Encoder().encode
        self._stream = Stream(settings, engine_id)
        # By the output's identity; the output is kept so that its identity is not used again.
        self._pending: dict[int, tuple[object, Record]] = {}
        self._unfinalized = 0
        self._closed = False
        self.failure: Exception | None = None
        atexit.register(self.close)

    @property
    def path(self):
        """The file being written."""
        return self._stream.path

    def enter(self, scheduler) -> None:
        """At the entry of `schedule()`."""
        if self._closed:
            return
        try:
            self._composer.enter(scheduler)
        except Exception as error:
            self._fail(error)

    def begin(self, scheduler, output) -> None:
        """In `schedule()`, when `output` is complete and no state has moved yet."""
        if self._closed:
            return
        try:
            if len(self._pending) == PENDING_MAX:
                self._give_up_oldest()
            self._pending[id(output)] = (output, self._composer.compose(scheduler, output))
        except Exception as error:
            self._fail(error)

    def finalize(self, output, graph) -> None:
        """In `update_from_output()`, when `output` has been processed. `graph` is the model
        runner's statement of the graph it used, or `None`. An output that was never begun is not
        ours."""
        pair = self._pending.pop(id(output), None)
        if pair is None or self._closed:
            return
        try:
            record = pair[1]
            record.complete_mono_ns = time.monotonic_ns()
            if graph is not None:
                record.cudagraph = _graph_use(graph)
            record.dropped_records_before = self._stream.gap
            self._stream.offer(self._encode(record))
        except Exception as error:
            self._fail(error)

    def close(self) -> None:
        """Writes what is queued and the footer. Again, it does nothing."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._stream.close(self._unfinalized + len(self._pending))
        self._pending.clear()

    def _give_up_oldest(self) -> None:
        """Its place in the numbering is reported as a drop."""
        del self._pending[next(iter(self._pending))]
        self._unfinalized += 1
        self._stream.gap += 1

    def _fail(self, error: Exception) -> None:
        self.failure = error
        logger.error("opprof: recording ends here; the server goes on", exc_info=error)
        self.close()


def _graph_use(graph) -> GraphUse:
    return GraphUse(
        hit=graph.runtime_mode != "NONE",
        runtime_mode=graph.runtime_mode,
        unpadded_tokens=graph.num_unpadded_tokens,
        bucket_tokens=graph.num_padded_tokens,
        padding_tokens=graph.num_paddings,
    )
