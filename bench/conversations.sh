#!/usr/bin/env bash
# Conversations that are all active from the start, a tool's delay before each further turn, against the instant server.
#   usage: bench/conversations.sh CONVERSATIONS TURNS        prints takt's report
# From the environment: TAKT (the program; built here when there is none).
set -euo pipefail
cd "$(dirname "$0")/.."
conversations=${1:?usage: bench/conversations.sh CONVERSATIONS TURNS} turns=${2:?how many turns each}
takt=${TAKT:-target/release/takt}
[ -x "$takt" ] || cargo build -q --release --locked -p takt
out=$(mktemp -d)
# Waited for, so that its time counts as this script's.
trap '{ kill "$server" && wait "$server"; } 2>/dev/null || true; rm -rf "$out"' EXIT
server=
bench/conversations.py "$conversations" "$turns" >"$out/talks.jsonl"
"$takt" mock --mode instant --listen 127.0.0.1:0 >"$out/mock" &
server=$!
until grep -q '^listening on ' "$out/mock"; do kill -0 "$server"; sleep 0.1; done
"$takt" run --url "http://$(sed 's/^listening on //' "$out/mock")" --model mock --quiet --out "$out/run" \
  --dataset "$out/talks.jsonl" --dataset-format agentic --concurrency "$conversations" \
  --set phases.performance.load.inject_tool_delay=true
