"""What a scheduler step is made of: from vLLM's objects to a record.

Everything is read inside `schedule()`, after the step's output has been put together and before any
state moves on. Reading at the output's return instead would see later steps of an asynchronous
scheduler.

Who is prefilling is decided as vLLM's own iteration log does: a request that is scheduled for the
first time, or that has no output yet. So a preempted request that has output counts as decoding
while it computes its prompt again; these are told apart as `resumed`.

The loop over all scheduled requests is the cost of the recorder; it does two look-ups and an
addition.
"""

import time
from bisect import bisect_left

from .records import (
    CHUNK_BINS,
    CONTEXT_BINS,
    CONTEXT_EDGES,
    SCHEMA,
    ChunkedPrefill,
    KvBlocks,
    PrefixCaches,
    PrefixCounts,
    Queues,
    Record,
    chunk_bin,
)


class Composer:
    """Makes the snapshots of one scheduler. Call `enter`, then `compose`, in every `schedule()`."""

    def __init__(self, engine_id: str) -> None:
        self._engine_id = engine_id
        self._steps = 0
        self._local = _Counter()
        self._external = _Counter()
        # Requests that compute again after a preemption. Never more than there are live requests:
        # every step drops those that caught up or are gone.
        self._recovering: set[str] = set()

    def enter(self, scheduler) -> None:
        """At the entry of `schedule()`: remembers where the counters of the prefix caches stand."""
        self._local.enter(scheduler.kv_cache_manager.prefix_cache_stats)
        self._external.enter(scheduler.connector_prefix_cache_stats)

    def compose(self, scheduler, output) -> Record:
        """The record of this step, but for what its completion brings."""
        requests = scheduler.requests
        scheduled = output.num_scheduled_tokens
        fresh = [new.req_id for new in output.scheduled_new_reqs]
        cached = output.scheduled_cached_reqs
        prompts = [i for i, made in zip(cached.req_ids, cached.num_output_tokens) if not made]
        prefill = _prefill(requests, scheduled, fresh, prompts, cached.resumed_req_ids)
        resumed = self._resumed(requests, scheduled, fresh, prompts, cached.resumed_req_ids)
        prefill_requests = len(fresh) + len(prompts)
        total_tokens = output.total_num_scheduled_tokens
        index, self._steps = self._steps, self._steps + 1
        return Record(
            schema=SCHEMA,
            engine_id=self._engine_id,
            step_index=index,
            submit_wall_ns=time.time_ns(),
            submit_mono_ns=time.monotonic_ns(),
            complete_mono_ns=0,
            model_executed=total_tokens > 0,
            scheduled_requests=len(scheduled),
            decode_batch_size=len(scheduled) - prefill_requests,
            prefill_requests=prefill_requests,
            prefill_tokens=prefill.tokens,
            decode_tokens=total_tokens - prefill.tokens,
            chunked_prefill=prefill,
            context_length_hist=_context_lengths(requests, scheduled),
            preemptions=len(output.preempted_req_ids or ()),
            queues=Queues(
                len(scheduler.running), len(scheduler.waiting), len(scheduler.skipped_waiting)
            ),
            kv=_kv_blocks(scheduler.kv_cache_manager.block_pool),
            prefix=PrefixCaches(
                self._local.since(scheduler.kv_cache_manager.prefix_cache_stats) or PrefixCounts(),
                self._external.since(scheduler.connector_prefix_cache_stats),
            ),
            cudagraph=None,
            moe_expert_load=None,
            dropped_records_before=0,
            scheduled_tokens=total_tokens,
            resumed_requests=resumed[0],
            resumed_tokens=resumed[1],
        )

    def _resumed(self, requests, scheduled, fresh, prompts, resumed) -> tuple[int, int]:
        """Decoding requests, and their tokens, that compute again what a preemption threw away."""
        recovering = self._recovering
        recovering |= resumed
        # The V2 model runner gets resumed requests among the new ones.
        recovering.update(i for i in fresh if requests[i].num_preemptions)
        if not recovering:
            return 0, 0
        back = resumed.union(fresh)
        prefilling = {*fresh, *prompts}
        count = tokens = 0
        for request_id in tuple(recovering):
            request = requests.get(request_id)
            if request is None:
                recovering.discard(request_id)
            elif request_id not in scheduled:
                pass  # Waits, or was thrown out once more.
            elif request_id not in back and not request.is_prefill_chunk:
                recovering.discard(request_id)
            elif request_id not in prefilling:
                count += 1
                tokens += scheduled[request_id]
        return count, tokens


class _Counter:
    """One prefix cache's counters, read and never drained.

    vLLM replaces the object when it drains it, which it does between steps: then what the new
    object holds is all of this step's.
    """

    def __init__(self) -> None:
        self._object = None
        self._before = (0,) * 6

    def enter(self, stats) -> None:
        self._object = stats
        self._before = (0,) * 6 if stats is None else _read(stats)

    def since(self, stats) -> PrefixCounts | None:
        if stats is None:
            return None
        now = _read(stats)
        if stats is not self._object:
            return PrefixCounts(*now)
        return PrefixCounts(*(n - b for n, b in zip(now, self._before)))


def _read(stats) -> tuple[int, ...]:
    return (
        stats.requests,
        stats.queries,
        stats.hits,
        stats.preempted_requests,
        stats.preempted_queries,
        stats.preempted_hits,
    )


def _prefill(requests, scheduled, fresh, prompts, resumed) -> ChunkedPrefill:
    """How the prompts were split. `fresh` and resumed requests begin here, whatever their flag
    says: a request thrown out in the middle of its prompt keeps the flag of a chunk."""
    hist = [0] * CHUNK_BINS
    # By (begun before, goes on after).
    counts = {(False, True): 0, (True, True): 0, (True, False): 0, (False, False): 0}
    tokens_total = 0
    for group, may_have_begun in ((fresh, False), (prompts, True)):
        for request_id in group:
            request, tokens = requests[request_id], scheduled[request_id]
            begun = may_have_begun and request.is_prefill_chunk and request_id not in resumed
            end = request.num_tokens + request.num_output_placeholders
            counts[begun, request.num_computed_tokens + tokens < end] += 1
            hist[chunk_bin(tokens)] += 1
            tokens_total += tokens
    return ChunkedPrefill(
        first=counts[False, True],
        middle=counts[True, True],
        final=counts[True, False],
        unsplit=counts[False, False],
        tokens=tokens_total,
        chunk_size_hist=hist,
    )


def _context_lengths(requests, scheduled) -> list[int]:
    """Every scheduled request by its length at the end of the step's input."""
    hist = [0] * CONTEXT_BINS
    for request_id, tokens in scheduled.items():
        length = requests[request_id].num_computed_tokens + tokens
        hist[_CONTEXT_BIN[length] if length <= _LAST_EDGE else CONTEXT_BINS - 1] += 1
    return hist


def _kv_blocks(pool) -> KvBlocks:
    total = pool.num_gpu_blocks - 1  # The null block is never given out.
    free = pool.get_num_free_blocks()
    return KvBlocks(total, free, total - free, 1.0 - free / total if total else 0.0)


_LAST_EDGE = CONTEXT_EDGES[-1]
# Length to bin: an index is a third of the cost of a search, for each request of each step.
_CONTEXT_BIN = bytes(bisect_left(CONTEXT_EDGES, length) for length in range(_LAST_EDGE + 1))
