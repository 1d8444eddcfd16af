#!/usr/bin/env bash
# takt against a real llama.cpp server on this machine, in the ways users do, and a table of what came of it.
#   usage: tests/real/llama.sh PORT [DATASET.jsonl]      the server is yours to start; it must speak /v1/chat/completions
# From the environment: TAKT (the program; built here when absent).
# Packets are captured beside the first run where tcpdump may do so, and the reported TTFT is held against them.
set -euo pipefail
cd "$(dirname "$0")/../.."
port=${1:?usage: tests/real/llama.sh PORT [DATASET.jsonl]}
dataset=${2:-}
if ! curl -fsS -m 2 "http://127.0.0.1:$port/health" >/dev/null 2>&1; then
  echo "skipped: nothing answers on http://127.0.0.1:$port/health; start a llama.cpp server there first"
  exit 0
fi
takt=${TAKT:-target/release/takt}
[ -n "${TAKT:-}" ] || cargo build -q --release --locked -p takt
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
common=(--url "http://127.0.0.1:$port" --api openai-chat --model tiny --quiet --format json)
common+=(--extra-body '{"max_tokens": 16}')
[ -n "$dataset" ] && common+=(--dataset "$dataset")
failed=0

row() { # NAME RESULT.json
  python3 - "$1" "$2" <<'PY' || failed=1
import json, sys
name, path = sys.argv[1:]
doc = json.load(open(path))
for p in doc["phases"]:
    if p["type"] != "performance": continue
    view = (p["ttft_ms"] or {}).get("from_send") or {}
    ttft = view.get("p", {}).get("50")
    tokens = p["tokens"]["output"] or {}
    print(f"{name:<14} {p['name']:<14} ok {p['succeeded']:>5} failed {p['failed']:>3} retried {p['retried']:>3}"
          f"  ttft p50 {ttft if ttft is None else round(ttft, 2)} ms"
          f"  tokens {tokens.get('mean')} ({p['tokens']['source']})  verdict {doc['verdict']['status']}")
    if p["failed"] or p["unanswered"] or p["succeeded"] != p["issued"]:
        sys.exit(1)
PY
}

run() { # NAME ARGS...
  local name=$1; shift
  "$takt" run "${common[@]}" --out "$out/$name" "$@" >"$out/$name.json" 2>"$out/$name.err" || {
    echo "$name: exit $?"; tail -5 "$out/$name.err"; failed=1; return; }
  row "$name" "$out/$name.json"
}

capture=
if command -v tcpdump >/dev/null; then
  tcpdump -i lo -s 0 -B 8192 -w "$out/lo.pcap" "tcp port $port" 2>/dev/null & capture=$!
  sleep 1
  kill -0 "$capture" 2>/dev/null || { capture=; echo "packets: not compared, tcpdump may not"; }
else
  echo "packets: not compared, there is no tcpdump"
fi
run rate --rate 50 --requests 500 --stream
if [ -n "$capture" ]; then
  sleep 1; kill "$capture"; wait "$capture" || true
  python3 tests/real/ttft_from_packets.py "$out/lo.pcap" "$port" "$out/rate.json" || failed=1
fi
run closed --concurrency 8 --requests 500 --stream
run not-streamed --concurrency 8 --requests 200 --no-stream
cat >"$out/sweep.yaml" <<YAML
name: sweep
endpoint: {url: "http://127.0.0.1:$port", api: openai-chat, model: tiny, stream: true, body: {max_tokens: 16}}
phases:
$(for c in 4 8 16; do
  echo "  - {name: warm_c$c, type: warmup, load: {pattern: concurrency, target_concurrency: $c}, requests: 40}"
  echo "  - {name: perf_c$c, type: performance, load: {pattern: concurrency, target_concurrency: $c}, requests: 200}"
done)
YAML
"$takt" run "$out/sweep.yaml" --quiet --format json --out "$out/sweep" >"$out/sweep.json" || failed=1
row sweep "$out/sweep.json"
exit "$failed"
