"""A whole vLLM server on 127.0.0.1 with a tiny model of random weights, and requests to it."""

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
UP_WITHIN_S = 600
DOWN_WITHIN_S = 60

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 320,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 128,
    "max_position_embeddings": 4096,
    "bos_token_id": 257,
    "eos_token_id": 258,
    "torch_dtype": "bfloat16",
}
# A pool of 19 blocks of 128 tokens and steps of 128 tokens: prompts come in chunks, requests are
# preempted.
TIGHT = ["--num-gpu-blocks-override", "20", "--max-num-batched-tokens", "128"]
PLUGIN = ["--scheduler-cls", "takt_opprof.OpProfScheduler", "--cudagraph-metrics"]
SHUTDOWN = ["--shutdown-timeout", "10"]


class DidNotStart(Exception):
    """The server ended before it was up; the text is its log."""


class Server:
    """One running server."""

    def __init__(self, process, port: int, log: Path) -> None:
        self._process = process
        self._log = log
        self.port = port

    @property
    def log(self) -> str:
        return self._log.read_text()

    def post(self, path: str, body: dict | None = None) -> dict | None:
        """Posts; the answer as JSON, `None` when it is empty."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=UP_WITHIN_S)
        headers = {"content-type": "application/json"}
        connection.request("POST", path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status != 200:
            raise AssertionError(f"{path}: {answer.status}: {text[:500]}")
        return json.loads(text) if text else None

    def complete(self, prompt: list[int], max_tokens: int) -> list[int]:
        """The greedy continuation of a prompt, both as token ids."""
        body = {
            "model": "tiny",
            "prompt": prompt,
            "max_tokens": max_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        return self.post("/v1/completions", body)["choices"][0]["token_ids"]

    def load(self, prompts: list[list[int]], at_once: int, max_tokens: int) -> list[list[int]]:
        """The continuations of all prompts, `at_once` in flight, in the order of the prompts."""
        answers = [None] * len(prompts)
        left = iter(range(len(prompts)))
        lock = threading.Lock()

        def client():
            while True:
                with lock:
                    at = next(left, None)
                if at is None:
                    return
                answers[at] = self.complete(prompts[at], max_tokens)

        clients = [threading.Thread(target=client) for _ in range(at_once)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        assert None not in answers
        return answers

    def terminate(self) -> None:
        """Asks it to end, and waits until it has."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(DOWN_WITHIN_S)

    def kill(self) -> None:
        """Kills the server and all its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def serving(folder: Path, *options: str, **switch: str):
    """A server that is up. Ends with its processes killed, whatever happened."""
    model = folder / "model"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(MODEL))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *("nice", "-n", "10", sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(model), "--served-model-name", "tiny", "--load-format", "dummy"),
        *("--skip-tokenizer-init", "--host", "127.0.0.1", "--port", str(port)),
        *("--max-model-len", "2048", "--max-num-seqs", "16", "--dtype", "bfloat16"),
        *("--enforce-eager", *options),
    ]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VLLM_")}
    environment |= {
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_HOST_IP": "127.0.0.1",
        **switch,
    }
    log = folder / f"server-{port}.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(process, port, log)
    try:
        _wait_until_up(process, server)
        yield server
    finally:
        server.kill()


def _wait_until_up(process, server: Server) -> None:
    deadline = time.monotonic() + UP_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        time.sleep(1)
    raise DidNotStart(server.log)


def prompts(count: int, seed: int = 0) -> list[list[int]]:
    """Prompts of several lengths; every second one begins with the same 160 tokens."""
    chance = random.Random(seed)
    shared = [chance.randrange(1, 250) for _ in range(160)]
    return [
        shared * (i % 2)
        + [chance.randrange(1, 250) for _ in range(chance.choice((20, 60, 200, 400)))]
        for i in range(count)
    ]
