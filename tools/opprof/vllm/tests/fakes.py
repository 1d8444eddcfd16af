"""Objects with the fields of vLLM 0.24's that the recorder looks at, and a scheduler small enough
to be driven by hand. Only for tests of the recorder; what vLLM really does is in
`test_real_scheduler.py`."""

from dataclasses import dataclass, field
from types import SimpleNamespace


@dataclass
class Stats:
    requests: int = 0
    queries: int = 0
    hits: int = 0
    preempted_requests: int = 0
    preempted_queries: int = 0
    preempted_hits: int = 0


@dataclass
class Request:
    num_tokens: int
    num_computed_tokens: int = 0
    num_output_placeholders: int = 0
    num_preemptions: int = 0
    is_prefill_chunk: bool = False


@dataclass
class Pool:
    num_gpu_blocks: int = 101
    free: int = 100

    def get_num_free_blocks(self) -> int:
        return self.free


@dataclass
class Scheduler:
    requests: dict = field(default_factory=dict)
    running: list = field(default_factory=list)
    waiting: list = field(default_factory=list)
    skipped_waiting: list = field(default_factory=list)
    connector_prefix_cache_stats: Stats | None = None
    log_stats: bool = True
    use_v2_model_runner: bool = False
    kv_cache_manager: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(prefix_cache_stats=Stats(), block_pool=Pool())
    )
    parallel_config: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(data_parallel_index=0)
    )


def output(new=None, cached=None, resumed=(), preempted=()):
    """A scheduler's output. `new`: id to tokens; `cached`: id to (tokens, output tokens so far)."""
    new, cached = new or {}, cached or {}
    scheduled = new | {i: tokens for i, (tokens, _) in cached.items()}
    return SimpleNamespace(
        num_scheduled_tokens=scheduled,
        total_num_scheduled_tokens=sum(scheduled.values()),
        scheduled_new_reqs=[SimpleNamespace(req_id=i) for i in new],
        scheduled_cached_reqs=SimpleNamespace(
            req_ids=list(cached),
            num_output_tokens=[made for _, made in cached.values()],
            resumed_req_ids=set(resumed),
        ),
        preempted_req_ids=set(preempted),
    )


def graph(mode="PIECEWISE", tokens=3, bucket=8):
    return SimpleNamespace(
        runtime_mode=mode,
        num_unpadded_tokens=tokens,
        num_padded_tokens=bucket,
        num_paddings=bucket - tokens,
    )
