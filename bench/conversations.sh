#!/usr/bin/env bash
# Conversations that are all active from the start, a tool's delay before each further turn, against the instant server.
#   usage: bench/conversations.sh CONVERSATIONS TURNS        prints takt's report
set -euo pipefail
cd "$(dirname "$0")/.."
conversations=${1:?usage: bench/conversations.sh CONVERSATIONS TURNS} turns=${2:?how many turns each}
[ -x target/release/takt ] || cargo build -q --release -p takt
out=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$out"' EXIT
server=
bench/conversations.py "$conversations" "$turns" >"$out/talks.jsonl"
target/release/takt mock --mode instant --listen 127.0.0.1:0 >"$out/mock" &
server=$!
until grep -q '^listening on ' "$out/mock"; do kill -0 "$server"; sleep 0.1; done
target/release/takt run --url "http://$(sed 's/^listening on //' "$out/mock")" --model mock --quiet --out "$out/run" \
  --dataset "$out/talks.jsonl" --dataset-format agentic --concurrency "$conversations" \
  --set phases.performance.load.inject_tool_delay=true
