"""From a step to a record."""

import pytest
from checker import one
from fakes import Request, Scheduler, Stats, output

from takt_opprof.core.composition import Composer
from takt_opprof.core.records import CHUNK_EDGES, CONTEXT_EDGES


def composed(scheduler, step, composer=None):
    """The record of `step` as JSON would have it, checked as a completed one."""
    import msgspec

    composer = composer or Composer("dp0-pid1")
    composer.enter(scheduler)
    record = composer.compose(scheduler, step)
    record.complete_mono_ns = record.submit_mono_ns
    plain = msgspec.to_builtins(record)
    one(plain)
    return plain


def test_prompts_and_generations_are_told_apart_as_the_iteration_log_does():
    scheduler = Scheduler(
        requests={
            "new": Request(num_tokens=300),
            "chunk": Request(num_tokens=300, num_computed_tokens=100, is_prefill_chunk=True),
            "gen": Request(num_tokens=51, num_computed_tokens=50),
        }
    )
    step = output(new={"new": 300}, cached={"chunk": (64, 0), "gen": (1, 1)})
    record = composed(scheduler, step)
    assert (record["prefill_requests"], record["prefill_tokens"]) == (2, 364)
    assert (record["decode_batch_size"], record["decode_tokens"]) == (1, 1)
    assert record["scheduled_tokens"] == 365


@pytest.mark.parametrize(
    ("kind", "computed", "begun", "tokens"),
    [
        ("first", 0, False, 64),
        ("middle", 64, True, 64),
        ("final", 64, True, 136),
        ("unsplit", 0, False, 200),
        # A prefix found in the cache is no chunk.
        ("unsplit", 128, False, 72),
    ],
)
def test_a_prompt_of_200_tokens_is_split(kind, computed, begun, tokens):
    request = Request(num_tokens=200, num_computed_tokens=computed, is_prefill_chunk=begun)
    cached = {"r": (tokens, 0)} if begun else None
    step = output(new=None if begun else {"r": tokens}, cached=cached)
    chunks = composed(Scheduler(requests={"r": request}), step)["chunked_prefill"]
    assert [k for k in ("first", "middle", "final", "unsplit") if chunks[k]] == [kind]


@pytest.mark.parametrize("edge", CHUNK_EDGES)
def test_a_chunk_edge_is_within_its_bin(edge):
    at = CHUNK_EDGES.index(edge)
    for tokens, expected in ((edge, at), (edge + 1, at + 1)):
        scheduler = Scheduler(requests={"r": Request(num_tokens=tokens)})
        record = composed(scheduler, output(new={"r": tokens}))
        assert record["chunked_prefill"]["chunk_size_hist"][expected] == 1


@pytest.mark.parametrize("edge", CONTEXT_EDGES)
def test_a_context_edge_is_within_its_bin_and_the_step_counts(edge):
    at = CONTEXT_EDGES.index(edge)
    for computed, expected in ((edge - 1, at), (edge, at + 1)):
        request = Request(num_tokens=computed + 1, num_computed_tokens=computed)
        record = composed(Scheduler(requests={"r": request}), output(cached={"r": (1, 5)}))
        assert record["context_length_hist"][expected] == 1


def test_a_preempted_request_that_generates_is_resumed_until_it_has_caught_up():
    request = Request(num_tokens=210, num_preemptions=1, is_prefill_chunk=False)
    scheduler, composer = Scheduler(requests={"r": request}), Composer("dp0-pid1")
    record = composed(scheduler, output(cached={"r": (128, 10)}, resumed=["r"]), composer)
    assert (record["decode_tokens"], record["resumed_requests"], record["resumed_tokens"]) == (
        128,
        1,
        128,
    )
    request.num_computed_tokens, request.is_prefill_chunk = 128, True
    record = composed(scheduler, output(cached={"r": (82, 10)}), composer)
    assert (record["resumed_requests"], record["resumed_tokens"]) == (1, 82)
    request.num_computed_tokens, request.is_prefill_chunk = 210, False
    record = composed(scheduler, output(cached={"r": (1, 11)}), composer)
    assert (record["decode_tokens"], record["resumed_requests"]) == (1, 0)
    assert not composer._recovering


def test_a_resumed_request_that_is_gone_is_forgotten():
    scheduler, composer = Scheduler(requests={"r": Request(210)}), Composer("dp0-pid1")
    composed(scheduler, output(cached={"r": (128, 10)}, resumed=["r"]), composer)
    del scheduler.requests["r"]
    assert composed(scheduler, output(), composer)["resumed_requests"] == 0
    assert not composer._recovering


def test_a_request_preempted_in_mid_prefill_begins_anew_despite_its_flag():
    request = Request(num_tokens=200, num_preemptions=1, is_prefill_chunk=True)
    step = output(cached={"r": (64, 0)}, resumed=["r"])
    record = composed(Scheduler(requests={"r": request}), step)
    assert record["chunked_prefill"]["first"] == 1
    assert record["resumed_requests"] == 0, "its tokens are prefill already"


def test_the_v2_runner_gets_resumed_requests_as_new_ones():
    request = Request(num_tokens=210, num_preemptions=1, is_prefill_chunk=True)
    scheduler, composer = Scheduler(requests={"r": request}), Composer("dp0-pid1")
    record = composed(scheduler, output(new={"r": 128}), composer)
    assert (record["chunked_prefill"]["first"], record["resumed_requests"]) == (1, 0)
    request.num_computed_tokens = 128
    record = composed(scheduler, output(cached={"r": (82, 10)}), composer)
    assert (record["prefill_requests"], record["resumed_tokens"]) == (0, 82)


def test_prefix_counts_are_of_the_step_and_nothing_is_drained():
    scheduler = Scheduler()
    stats = scheduler.kv_cache_manager.prefix_cache_stats
    stats.queries, stats.hits = 100, 40
    composer = Composer("dp0-pid1")
    composer.enter(scheduler)
    stats.queries, stats.hits, stats.requests = 164, 88, 1
    local = composer.compose(scheduler, output()).prefix.local
    assert (local.requests, local.queries, local.hits) == (1, 64, 48)
    assert (stats.queries, stats.hits) == (164, 88)


def test_counters_replaced_between_entry_and_snapshot_count_from_zero():
    scheduler, composer = Scheduler(), Composer("dp0-pid1")
    scheduler.kv_cache_manager.prefix_cache_stats.queries = 100
    composer.enter(scheduler)
    scheduler.kv_cache_manager.prefix_cache_stats = Stats(queries=7)
    assert composer.compose(scheduler, output()).prefix.local.queries == 7


def test_an_external_cache_is_null_without_a_connector():
    assert composed(Scheduler(), output())["prefix"]["external"] is None
    scheduler, composer = (
        Scheduler(connector_prefix_cache_stats=Stats(hits=3)),
        Composer("dp0-pid1"),
    )
    composer.enter(scheduler)
    scheduler.connector_prefix_cache_stats.hits = 8
    assert composer.compose(scheduler, output()).prefix.external.hits == 5


def test_a_step_without_tokens_is_a_record():
    record = composed(Scheduler(), output())
    assert (record["model_executed"], record["scheduled_requests"]) == (False, 0)


def test_queues_blocks_and_preemptions_are_read_at_the_step():
    scheduler = Scheduler(running=[1], waiting=[1, 2], skipped_waiting=[1, 2, 3])
    scheduler.kv_cache_manager.block_pool.free = 75
    record = composed(scheduler, output(preempted=["a", "b"]))
    assert record["queues"] == {"running": 1, "waiting": 2, "deferred": 3}
    assert record["kv"] == {
        "total_blocks": 100,
        "free_blocks": 75,
        "used_blocks": 25,
        "usage": 0.25,
    }
    assert record["preemptions"] == 2


def test_a_cache_without_blocks_is_unused():
    scheduler = Scheduler()
    scheduler.kv_cache_manager.block_pool.num_gpu_blocks = 1
    scheduler.kv_cache_manager.block_pool.free = 0
    assert composed(scheduler, output())["kv"]["usage"] == 0.0
