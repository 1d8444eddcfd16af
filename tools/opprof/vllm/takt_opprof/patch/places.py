"""The places in vLLM 0.24.0 that the patch touches, and what it puts there.

A place is one line, looked for within one function where the line alone is not unique. Nothing of
vLLM's is carried here but these lines, by which a place is known.
"""

from dataclasses import dataclass

MARK = "takt-opprof"


@dataclass(frozen=True)
class Place:
    """One edit: `line`, as it stands in 0.24.0, becomes `after`."""

    file: str
    what: str
    line: str
    after: str
    # The beginning of the `def` line in whose body `line` stands; the whole file when empty.
    within: str = ""


def _before(line: str, text: str) -> str:
    return f"{text}\n{line}"


def _behind(line: str, text: str) -> str:
    return f"{line}\n{text}"


def _place(file, what, how, line, text, within=""):
    return Place(file, what, line, how(line, text), within)


ENVS = "envs.py"
SCHEDULER = "v1/core/sched/scheduler.py"
RUNNER = "v1/worker/gpu_model_runner.py"

PLACES = (
    _place(
        ENVS,
        "the variables' types",
        _behind,
        '    VLLM_HOST_IP: str = ""',
        f'    VLLM_OPPROF_DIR: str = ""  # {MARK}\n    VLLM_OPPROF_MAX_BYTES: str = ""  # {MARK}',
    ),
    _place(
        ENVS,
        "the variables themselves",
        _behind,
        '    "VLLM_HOST_IP": lambda: os.getenv("VLLM_HOST_IP", ""),',
        f"    # {MARK}: an absolute folder for one record per scheduler step; empty is off.\n"
        '    "VLLM_OPPROF_DIR": lambda: os.getenv("VLLM_OPPROF_DIR", ""),\n'
        f"    # {MARK}: a file of records is closed before it grows beyond this.\n"
        '    "VLLM_OPPROF_MAX_BYTES": lambda: os.getenv("VLLM_OPPROF_MAX_BYTES", ""),',
    ),
    _place(
        ENVS,
        "left out of the compile-cache key",
        _behind,
        '        "VLLM_HOST_IP",',
        f'        "VLLM_OPPROF_DIR",  # {MARK}\n        "VLLM_OPPROF_MAX_BYTES",  # {MARK}',
        within="def compile_factors(",
    ),
    _place(
        SCHEDULER,
        "import of the recorder",
        _before,
        "from vllm.v1.core.kv_cache_coordinator import HybridKVCacheCoordinator",
        f"from vllm.v1 import opprof  # {MARK}",
    ),
    _place(
        SCHEDULER,
        "the recorder's start",
        _behind,
        "        self._inflight_prefills: set[Request] = set()",
        f"\n        # {MARK}: None unless VLLM_OPPROF_DIR is set.\n"
        "        self.opprof = opprof.start(\n"
        "            self, settings=opprof.Settings.from_env(), graphs_reported=True\n"
        "        )",
        within="    def __init__(",
    ),
    _place(
        SCHEDULER,
        "entry of schedule",
        _behind,
        "        self.current_step += 1",
        f"        if self.opprof is not None:  # {MARK}: enter\n"
        "            self.opprof.enter(self)",
        within="    def schedule(",
    ),
    _place(
        SCHEDULER,
        "before state moves",
        _before,
        '        with record_function_or_nullcontext("schedule: update_after_schedule"):',
        f"        if self.opprof is not None:  # {MARK}: begin\n"
        "            self.opprof.begin(self, scheduler_output)\n",
        within="    def schedule(",
    ),
    _place(
        SCHEDULER,
        "the step's completion",
        _before,
        "        return engine_core_outputs",
        f"        if self.opprof is not None:  # {MARK}: finalize\n"
        "            self.opprof.finalize(scheduler_output, cudagraph_stats)\n",
        within="    def update_from_output(",
    ),
    _place(
        SCHEDULER,
        "the recorder's end",
        _before,
        '        logger.debug_once("[shutdown] Scheduler: complete")',
        f"        if self.opprof is not None:  # {MARK}: close\n            self.opprof.close()\n",
        within="    def shutdown(",
    ),
    Place(
        RUNNER,
        "statement of the graph used",
        "        if self.vllm_config.observability_config.cudagraph_metrics:",
        f"        if (  # {MARK}\n"
        "            self.vllm_config.observability_config.cudagraph_metrics\n"
        "            or envs.VLLM_OPPROF_DIR\n"
        "        ):",
    ),
)

FILES = tuple(dict.fromkeys(place.file for place in PLACES))
