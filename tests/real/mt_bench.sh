#!/usr/bin/env bash
# Conversations against a real llama.cpp server on this machine: MT-bench, eight at a time, the model's own answers in the prompts of
# the second turns. The server is the witness that each of these came after its first turn was answered.
#   usage: tests/real/mt_bench.sh PORT MT_BENCH.jsonl [SERVER.log]      the server is yours to start
set -euo pipefail
cd "$(dirname "$0")/../.."
port=${1:?usage: tests/real/mt_bench.sh PORT MT_BENCH.jsonl [SERVER.log]}
dataset=${2:?usage: tests/real/mt_bench.sh PORT MT_BENCH.jsonl [SERVER.log]}
log=${3:-}
if ! curl -fsS -m 2 "http://127.0.0.1:$port/health" >/dev/null 2>&1; then
  echo "skipped: nothing answers on http://127.0.0.1:$port/health; start a llama.cpp server there first"
  exit 0
fi
takt=${TAKT:-target/release/takt}
[ -n "${TAKT:-}" ] || cargo build -q --release -p takt
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$takt" run --url "http://127.0.0.1:$port" --model tiny --dataset "$dataset" --dataset-format mt-bench --concurrency 8 \
  --extra-body '{"max_tokens": 16}' --name mt_bench --out "$out/run" 2>"$out/err" || { tail -5 "$out/err"; exit 1; }
"$takt" events "$out/run" >"$out/events.jsonl"
python3 tests/real/turns.py "$out/events.jsonl" $log
