#!/usr/bin/env python3
"""conversations.py N TURNS: an agentic dataset of N conversations with TURNS turns each, all but the first behind a tool's delay of 1 to 9 s."""
import json
import random
import sys

count, turns = int(sys.argv[1]), int(sys.argv[2])
rng = random.Random(7)


def call(n):
    return [{"id": f"k{n}", "type": "function", "function": {"name": "bash", "arguments": "{\"cmd\":\"ls\"}"}}]


for c in range(count):
    def row(turn, **more):
        print(json.dumps({"conversation_id": f"c{c}", "turn": turn, **more}))

    row(1, role="user", content="word " * 40, system="You are an agent.", max_tokens=8)
    for n in range(1, turns):
        row(2 * n, role="assistant", content=None, tool_calls=call(n))
        result = [{"tool_call_id": f"k{n}", "content": "out " * 40}]
        row(2 * n + 1, role="tool", content=None, tool_results=result, delay_seconds=round(rng.uniform(1, 9), 3))
