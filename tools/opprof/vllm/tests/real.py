"""A real vLLM 0.24 scheduler, driven without engine, model or server."""

import functools
import json

import pytest

from takt_opprof.patch.installed import Installed, Refused

try:
    Installed.here()
    WHY_NOT = None
except Refused as error:
    WHY_NOT = str(error)

needs_vllm = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a real vLLM 0.24.0: {WHY_NOT}")

MODEL = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "vocab_size": 320,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 128,
    "moe_intermediate_size": 64,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 4096,
    "eos_token_id": 258,
    "torch_dtype": "bfloat16",
}


def model_folder(folder):
    """A model by its configuration alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(MODEL))
    return str(folder)


def make_scheduler(
    cls,
    model,
    *,
    asynchronous=False,
    blocks=200,
    tokens=64,
    caching=True,
    stats=True,
    requests=16,
    graphs=True,
    policy="fcfs",
):
    """A scheduler of `cls`, as the engine makes it."""
    import torch
    from vllm.config import (
        CacheConfig,
        DeviceConfig,
        ModelConfig,
        ObservabilityConfig,
        SchedulerConfig,
        VllmConfig,
    )
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.structured_output import StructuredOutputManager

    cache = CacheConfig(block_size=BLOCK, enable_prefix_caching=caching)
    config = VllmConfig(
        model_config=ModelConfig(
            model=model, dtype="bfloat16", skip_tokenizer_init=True, max_model_len=1024
        ),
        scheduler_config=SchedulerConfig(
            max_num_seqs=requests,
            max_num_batched_tokens=tokens,
            max_model_len=1024,
            enable_chunked_prefill=True,
            is_encoder_decoder=False,
            policy=policy,
        ),
        cache_config=cache,
        device_config=DeviceConfig("cpu"),
        observability_config=ObservabilityConfig(cudagraph_metrics=graphs),
    )
    # vLLM turns it off for CPUs, where a server has no use for it; the scheduler itself does not
    # mind.
    config.scheduler_config.async_scheduling = asynchronous
    cache.num_gpu_blocks = blocks
    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32)
    return cls(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(
            num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["l"], spec)]
        ),
        structured_output_manager=StructuredOutputManager(config),
        block_size=BLOCK,
        log_stats=stats,
    )


BLOCK = 16


@functools.cache
def block_hasher():
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash

    init_none_hash(sha256)  # A new one each time: blocks hashed before would not be found.
    return get_request_block_hasher(BLOCK, sha256)


def add_request(scheduler, name, prompt, max_tokens, priority=0):
    """Queues a request; `prompt` is a list of token ids."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.request import Request

    sampling = SamplingParams(max_tokens=max_tokens, ignore_eos=True)
    sampling.update_from_generation_config({}, 258)
    scheduler.add_request(
        Request(
            request_id=name,
            prompt_token_ids=prompt,
            sampling_params=sampling,
            pooling_params=None,
            block_hasher=block_hasher(),
            priority=priority,
        )
    )


def model_output(step, made_by):
    """What a model would return for `step`: one token for each request named in `made_by`."""
    from vllm.compilation.cuda_graph import CUDAGraphStat
    from vllm.v1.outputs import ModelRunnerOutput

    names = list(step.num_scheduled_tokens)
    tokens = step.total_num_scheduled_tokens
    bucket = -(-tokens // 64) * 64
    return ModelRunnerOutput(
        req_ids=names,
        req_id_to_index={name: at for at, name in enumerate(names)},
        sampled_token_ids=[[7] if name in made_by else [] for name in names],
        logprobs=None,
        prompt_logprobs_dict={},
        pooler_output=[],
        cudagraph_stats=CUDAGraphStat(tokens, bucket, bucket - tokens, "PIECEWISE"),
    )


def run(scheduler, depth=1, seen=None, steps_max=5000):
    """Drives the scheduler until it has nothing left, with up to `depth` steps under way, as the
    engine does with its batch queue. `seen(step)` is called after each `schedule()`."""
    under_way = []
    for _ in range(steps_max):
        if scheduler.has_requests() and len(under_way) < depth:
            step = scheduler.schedule()
            done = {
                n for n in step.num_scheduled_tokens if not scheduler.requests[n].is_prefill_chunk
            }
            under_way.append((step, model_output(step, done)))
            if seen:
                seen(step)
        elif under_way:
            scheduler.update_from_output(*under_way.pop(0))
        else:
            return
    raise AssertionError(f"not done after {steps_max} moves")
