"""The plugin on vLLM's own scheduler: what the records say against what vLLM says itself."""

import random
import threading

import pytest
from checker import check
from real import add_request, make_scheduler, model_folder, needs_vllm, run

from takt_opprof.core import OpProfError
from takt_opprof.core.settings import DIR

pytestmark = needs_vllm
BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["plain", "asynchronous"])


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return model_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture
def make(model, monkeypatch, tmp_path):
    """Makes the plugin's scheduler, recording to `tmp_path`."""
    from takt_opprof import OpProfScheduler

    monkeypatch.setenv(DIR, str(tmp_path))
    return lambda **options: make_scheduler(OpProfScheduler, model, **options)


def records(scheduler, folder):
    """Ends the scheduler; its checked file."""
    scheduler.shutdown()
    assert scheduler.opprof.failure is None
    (path,) = folder.iterdir()
    file = check(path)
    assert file.footer["written"] == len(file.records)
    assert (file.footer["dropped"], file.footer["unfinalized"]) == (0, 0)
    return file.records


@BOTH
def test_off_the_engine_gets_vllms_own_scheduler(model, asynchronous):
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.core.sched.scheduler import Scheduler

    from takt_opprof import OpProfScheduler

    scheduler = make_scheduler(OpProfScheduler, model, asynchronous=asynchronous)
    assert type(scheduler) is (AsyncScheduler if asynchronous else Scheduler)
    assert not hasattr(scheduler, "opprof")
    assert not [t for t in threading.enumerate() if t.name.startswith("takt")]


@BOTH
def test_the_record_says_what_vllms_iteration_log_says(make, tmp_path, asynchronous):
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.utils import compute_iteration_details

    scheduler = make(asynchronous=asynchronous)
    assert isinstance(scheduler, AsyncScheduler) == asynchronous
    for i in range(6):
        add_request(scheduler, f"r{i}", [i + 1] * (40 + 30 * i), max_tokens=8)
    seen = []

    def look(step):
        details = compute_iteration_details(step)
        usage = scheduler.kv_cache_manager.usage
        seen.append((details, step, usage, len(scheduler.running), len(scheduler.waiting)))

    run(scheduler, depth=2 if asynchronous else 1, seen=look)
    lines = records(scheduler, tmp_path)
    assert len(lines) == len(seen) > 10
    for record, (details, step, usage, running, waiting) in zip(lines, seen):
        assert record["prefill_requests"] == details.num_ctx_requests
        assert record["prefill_tokens"] == details.num_ctx_tokens
        assert record["decode_batch_size"] == details.num_generation_requests
        assert record["decode_tokens"] == details.num_generation_tokens
        assert record["scheduled_tokens"] == step.total_num_scheduled_tokens
        assert record["kv"]["usage"] == usage
        assert (record["queues"]["running"], record["queues"]["waiting"]) == (running, waiting)
        assert record["cudagraph"]["runtime_mode"] == "PIECEWISE"


@BOTH
def test_a_long_prompt_is_seen_in_chunks(make, tmp_path, asynchronous):
    scheduler = make(asynchronous=asynchronous)
    add_request(scheduler, "r", list(range(1, 201)), max_tokens=2)
    run(scheduler, depth=2 if asynchronous else 1)
    kinds = [
        kind
        for record in records(scheduler, tmp_path)
        for kind in ("first", "middle", "final", "unsplit")
        if record["chunked_prefill"][kind]
    ]
    assert kinds == ["first", "middle", "middle", "final"]  # 64 + 64 + 64 + 8


@BOTH
def test_prefix_counts_add_up_to_what_vllm_drains(make, tmp_path, asynchronous):
    scheduler = make(asynchronous=asynchronous)
    drained = [0, 0, 0]
    manager = scheduler.kv_cache_manager
    stock = manager.make_prefix_cache_stats

    def draining():
        stats = stock()
        for at, value in enumerate((stats.requests, stats.queries, stats.hits)):
            drained[at] += value
        return stats

    manager.make_prefix_cache_stats = draining
    shared = [9] * 96
    for i in range(4):
        add_request(scheduler, f"r{i}", shared + [i + 20] * 20, max_tokens=4)
    # Asynchronous: look-ups of two steps before vLLM drains either.
    run(scheduler, depth=2 if asynchronous else 1)
    local = [r["prefix"]["local"] for r in records(scheduler, tmp_path)]
    assert [sum(c[k] for c in local) for k in ("requests", "queries", "hits")] == drained
    assert drained == [4, 4 * 116, 3 * 96]


@BOTH
def test_preemptions_and_what_is_computed_again_are_seen(make, tmp_path, asynchronous):
    scheduler = make(asynchronous=asynchronous, blocks=14, tokens=64, caching=False)
    for i in range(2):
        add_request(scheduler, f"r{i}", [i + 1] * 90, max_tokens=40)
    preempted = again = decode_again = 0

    def look(step):
        nonlocal preempted, again, decode_again
        preempted += len(step.preempted_req_ids or ())
        # Nothing is speculative here: a generation of more than one token computes again.
        more = [
            (name, step.num_scheduled_tokens[name])
            for name, made in zip(
                step.scheduled_cached_reqs.req_ids, step.scheduled_cached_reqs.num_output_tokens
            )
            if made and step.num_scheduled_tokens[name] > 1
        ]
        again += len(more)
        decode_again += sum(tokens for _, tokens in more)

    run(scheduler, depth=2 if asynchronous else 1, seen=look)
    lines = records(scheduler, tmp_path)
    assert sum(r["preemptions"] for r in lines) == preempted > 0
    assert sum(r["resumed_requests"] for r in lines) == again > 1
    assert sum(r["resumed_tokens"] for r in lines) == decode_again


def test_a_request_preempted_in_mid_prefill_begins_again(make, tmp_path):
    # 11 blocks to give: `b`, of 7, is admitted beside `a`, of 4, and is read 7 tokens a step;
    # before it has been read, `a` grows by a block.
    scheduler = make(blocks=12, tokens=8, requests=4, caching=False)
    add_request(scheduler, "a", [1] * 60, max_tokens=60)
    add_request(scheduler, "b", [2] * 110, max_tokens=4)
    thrown_out = 0

    def look(step):
        nonlocal thrown_out
        for name in step.preempted_req_ids or ():
            thrown_out += scheduler.requests[name].num_output_tokens == 0

    run(scheduler, seen=look)
    chunks = [r["chunked_prefill"] for r in records(scheduler, tmp_path)]
    begun = sum(c["first"] + c["unsplit"] for c in chunks)
    ended = sum(c["final"] + c["unsplit"] for c in chunks)
    assert ended == 2
    assert begun - ended == thrown_out > 0


@BOTH
def test_the_scheduler_decides_the_same_with_and_without(
    make, model, tmp_path, monkeypatch, asynchronous
):
    from takt_opprof import OpProfScheduler

    def steps(scheduler):
        decided = []
        for i in range(8):
            add_request(scheduler, f"r{i}", [i % 3 + 1] * (30 + 17 * i), max_tokens=20)
        run(
            scheduler,
            depth=2 if asynchronous else 1,
            seen=lambda s: decided.append((dict(s.num_scheduled_tokens), s.preempted_req_ids)),
        )
        return decided

    options = {"asynchronous": asynchronous, "blocks": 30}
    on = make(**options)
    with_recorder = steps(on)
    on.shutdown()
    monkeypatch.delenv(DIR)
    assert steps(make_scheduler(OpProfScheduler, model, **options)) == with_recorder


@BOTH
@pytest.mark.parametrize("policy", ["fcfs", "priority"])
@pytest.mark.parametrize("seed", range(4))
def test_any_traffic_keeps_every_rule(make, tmp_path, asynchronous, policy, seed):
    """Arrivals, aborts and resets of the cache at any time, in pools of any tightness."""
    from vllm.v1.request import RequestStatus
    from vllm.v1.utils import compute_iteration_details

    chance = random.Random(seed)
    scheduler = make(
        asynchronous=asynchronous,
        policy=policy,
        blocks=chance.randrange(30, 80),
        tokens=chance.choice((16, 64, 256)),
        requests=chance.choice((4, 16)),
        caching=chance.random() < 0.7,
    )
    # What the scheduler does with requests that come back depends on it; no runner is there.
    scheduler.use_v2_model_runner = seed % 2 == 1
    arrivals = [f"r{i}" for i in range(60)]
    said = []

    def arrive():
        prompt = [chance.randrange(1, 4)] * chance.randrange(1, 300)
        priority = chance.randrange(3) if policy == "priority" else 0
        name = arrivals.pop()
        add_request(scheduler, name, prompt, chance.randrange(1, 60), priority)

    def look(step):
        details = compute_iteration_details(step)
        said.append((details.num_ctx_tokens, details.num_generation_tokens))
        for _ in range(chance.choice((0, 0, 0, 1, 3))):
            if arrivals:
                arrive()
        if chance.random() < 0.05 and scheduler.requests:
            name = chance.choice(list(scheduler.requests))
            scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)
        # With steps under way vLLM's own bookkeeping does not survive a reset.
        if not asynchronous and chance.random() < 0.01:
            scheduler.reset_prefix_cache(reset_running_requests=True)

    while arrivals:
        arrive()
        run(scheduler, depth=2 if asynchronous else 1, seen=look)
    lines = records(scheduler, tmp_path)
    assert [(r["prefill_tokens"], r["decode_tokens"]) for r in lines] == said
    assert len(scheduler.opprof._composer._recovering) <= 16, "requests that are gone are forgotten"


def test_statistics_off_fails_at_the_start(make):
    with pytest.raises(OpProfError, match="--disable-log-stats"):
        make(stats=False)


def test_a_relative_folder_fails_at_the_start(make, monkeypatch):
    monkeypatch.setenv(DIR, "here")
    with pytest.raises(OpProfError, match="relative"):
        make()


def test_another_version_is_refused(make, monkeypatch):
    import vllm

    monkeypatch.setattr(vllm, "__version__", "0.25.1")
    with pytest.raises(OpProfError, match=r"is 0\.25\.1"):
        make()


def test_the_compile_cache_key_does_not_know_the_switch(monkeypatch, tmp_path):
    from vllm import envs

    before = envs.compile_factors()
    monkeypatch.setenv(DIR, str(tmp_path))
    assert envs.compile_factors() == before
