"""The layer-1 record, version 1: names, order and nulls as they are written.

Counts and histograms only. No request id and no list of lengths is ever in a record.
"""

from bisect import bisect_left

import msgspec

SCHEMA = 1

# Upper edges, each within its bin; one more bin holds what is above the last.
CONTEXT_EDGES = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
CHUNK_EDGES = (16, 32, 64, 128, 256, 512, 1024, 2048)
CONTEXT_BINS = len(CONTEXT_EDGES) + 1
CHUNK_BINS = len(CHUNK_EDGES) + 1


def chunk_bin(tokens: int) -> int:
    """The bin of a piece of a prompt of so many tokens."""
    return bisect_left(CHUNK_EDGES, tokens)


class ChunkedPrefill(msgspec.Struct, gc=False):
    """How the prompts of a step were split; each prefill request is one of the four."""

    first: int
    middle: int
    final: int
    unsplit: int
    tokens: int
    chunk_size_hist: list[int]


class Queues(msgspec.Struct, gc=False):
    """Requests by where they stand after scheduling; `deferred` ones were passed over."""

    running: int
    waiting: int
    deferred: int


class KvBlocks(msgspec.Struct, gc=False):
    """Blocks of the key-value cache after scheduling, without the null block."""

    total_blocks: int
    free_blocks: int
    used_blocks: int
    usage: float


class PrefixCounts(msgspec.Struct, gc=False):
    """Look-ups in one prefix cache, differences over one step."""

    requests: int = 0
    queries: int = 0
    hits: int = 0
    preempted_requests: int = 0
    preempted_queries: int = 0
    preempted_hits: int = 0


class PrefixCaches(msgspec.Struct, gc=False):
    """The server's own prefix cache, and one elsewhere where there is one."""

    local: PrefixCounts
    external: PrefixCounts | None


class GraphUse(msgspec.Struct, gc=False):
    """How the step's batch met the captured graphs."""

    hit: bool
    runtime_mode: str
    unpadded_tokens: int
    bucket_tokens: int
    padding_tokens: int


class Record(msgspec.Struct, gc=False):
    """One scheduler step.

    A snapshot taken when it was scheduled; `complete_mono_ns`, `cudagraph` and
    `dropped_records_before` are filled in when its output has been processed.
    """

    schema: int
    engine_id: str
    step_index: int
    submit_wall_ns: int
    submit_mono_ns: int
    complete_mono_ns: int
    model_executed: bool
    scheduled_requests: int
    decode_batch_size: int
    prefill_requests: int
    prefill_tokens: int
    decode_tokens: int
    chunked_prefill: ChunkedPrefill
    context_length_hist: list[int]
    preemptions: int
    queues: Queues
    kv: KvBlocks
    prefix: PrefixCaches
    cudagraph: GraphUse | None
    moe_expert_load: None
    dropped_records_before: int
    # Optional in version 1; always written here.
    scheduled_tokens: int
    # Of the requests counted as decoding, those that compute again what a preemption threw away.
    resumed_requests: int
    resumed_tokens: int


class Footer(msgspec.Struct, gc=False):
    """The last line of a file that was closed in order; it speaks of this file's records.

    `encoded` = `written` + `dropped`. The high-water mark is the recorder's so far; steps without
    an output are counted in the last file.
    """

    schema: int
    footer: bool
    engine_id: str
    encoded: int
    written: int
    dropped: int
    queue_high_watermark: int
    unfinalized: int
