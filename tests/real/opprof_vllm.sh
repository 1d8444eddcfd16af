#!/usr/bin/env bash
# What `takt opprof` shows of a real vLLM on a CPU: step records that check, profiler windows within a run, both sides joined,
# and the overhead gate with recording off and on.
#   usage: tests/real/opprof_vllm.sh PYTHON MODEL [PORT]
# PYTHON is the interpreter of an environment with vLLM 0.24 and this repository's plugin in it
# (pip install --no-deps tools/opprof/vllm); MODEL is a folder or name that it can serve: a tiny one will do.
# From the environment: TAKT (the program; built here when absent), SECONDS_OF_LOAD (20), PAIRS (6), REQUESTS (a run of the gate,
# 64), OUT (kept when given), VLLM_ARGS (more options of the server). The gate starts a server for each of its runs, which
# takes most of the time: PAIRS=0 leaves it out. On a busy machine it says INCONCLUSIVE, which is no failure here.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-} model=${2:-} port=${3:-18200}
if [ -z "$python" ] || ! "$python" -c 'import vllm, takt_opprof' 2>/dev/null; then
  sed -n '2,10s/^# \{0,1\}//p' "$0"
  echo "skipped: ${python:-no interpreter was named, and so} cannot import vllm and takt_opprof"
  exit 0
fi
if [ -z "$model" ]; then
  echo "skipped: no model was named"
  exit 0
fi
if [ "${PAIRS:-6}" -ne 0 ] && [ "${PAIRS:-6}" -lt 6 ]; then
  echo "PAIRS is ${PAIRS:-6}: the gate judges by 6 pairs at least; 0 leaves it out" >&2
  exit 2
fi
if [ -z "${TAKT:-}" ]; then
  cargo build -q --release -p takt
  TAKT=$PWD/target/release/takt
fi
out=${OUT:-$(mktemp -d)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
server=
cleanup() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
  if [ -z "${OUT:-}" ]; then rm -rf "$out"; fi
}
trap cleanup EXIT

export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export VLLM_CPU_KVCACHE_SPACE=${VLLM_CPU_KVCACHE_SPACE:-1} VLLM_HOST_IP=127.0.0.1 VLLM_SERVER_DEV_MODE=1
serve="$python -m vllm.entrypoints.openai.api_server --model $model --served-model-name tiny --host 127.0.0.1 --port $port \
--max-model-len 2048 --max-num-seqs 16 --enforce-eager --dtype bfloat16 --shutdown-timeout 10 \
--scheduler-cls takt_opprof.OpProfScheduler --cudagraph-metrics ${VLLM_ARGS:-}"
url=http://127.0.0.1:$port

echo "== windows within a run"
mkdir -p "$out/kineto"
VLLM_OPPROF_DIR=$out/records $serve --profiler-config.profiler=torch "--profiler-config.torch_profiler_dir=$out/kineto" \
  --profiler-config.ignore_frontend=true --profiler-config.max_iterations=8 \
  --profiler-config.torch_profiler_with_stack=false >"$out/server.log" 2>&1 &
server=$!
for _ in $(seq 600); do
  curl -fsS -m 2 -o /dev/null "$url/health" 2>/dev/null && break
  kill -0 "$server" 2>/dev/null || { echo "the server ended:"; tail -20 "$out/server.log"; exit 1; }
  sleep 0.5
done
"$TAKT" run --url "$url" --model tiny --concurrency 8 --warmup-requests 16 --duration "${SECONDS_OF_LOAD:-20}s" \
  --extra-body '{"max_tokens": 48, "ignore_eos": true}' --opprof "$out/records" --opprof-traces "$out/kineto" \
  --opprof-windows 3 --set opprof.decode=4..8 --out "$out/run" --quiet
kill "$server"; wait "$server" || true
server=
"$python" - "$out/run/result.json" <<'PY'
import json, sys
side = json.load(open(sys.argv[1]))["opprof"]
assert not side["problems"], side["problems"]
assert len(side["windows"]) == 3, side["windows"]
for window in side["windows"]:
    assert not window["problems"] and window["steps"] == 8, window
assert side["joined"]["steps"] > 100 and side["joined"]["clocks"] == "same", side["joined"]["steps"]
PY
echo "== records"
"$TAKT" opprof check "$out/records"
"$TAKT" opprof check --part "$out/run/opprof"
echo "== steps of the traces, each with its record; a CPU's traces hold no kernels"
"$TAKT" opprof attribute "$out/kineto" --records "$out/records" || [ $? -eq 2 ]
if [ "${PAIRS:-6}" -eq 0 ]; then
  echo "gate: left out, PAIRS is 0"
  exit 0
fi
echo "== the overhead gate, recording off and on"
cat >"$out/gate.yaml" <<YAML
endpoint: {url: "$url", api: openai-chat, model: tiny, stream: true, body: {max_tokens: 48, temperature: 0, ignore_eos: true}}
phases:
  - {name: warm-up, type: warmup, requests: 16, load: {pattern: concurrency, target_concurrency: 8}}
  - {name: measured, type: performance, requests: ${REQUESTS:-64}, load: {pattern: concurrency, target_concurrency: 8}}
YAML
verdict=0
"$TAKT" opprof gate --run "$out/gate.yaml" --out "$out/gate" --pairs "${PAIRS:-6}" --ready-within 300s \
  --off-server "exec $serve" --on-server "export VLLM_OPPROF_DIR=\$TAKT_RECORDS; exec $serve" || verdict=$?
case $verdict in
  0 | 6) ;;
  5) echo "recording costs more than 3 %"; exit 5 ;;
  *) echo "the gate ended with $verdict"; exit 1 ;;
esac
