#!/usr/bin/env bash
# takt against every real server that is there, and a table of what came of it.
#   usage: tests/real/all.sh [NAME=URL[,MODEL[,TOKENIZER.json]]]...
# such as
#   tests/real/all.sh llama=http://127.0.0.1:8080,tiny vllm=http://127.0.0.1:8000,tiny,model/tokenizer.json
# The servers are yours to start; one that does not answer is skipped, and said to be. Where nginx is installed, the
# first server that answers is also measured behind it: as a proxy that buffers, and, when this takt has TLS, as one
# that ends TLS. Each is asked for streams and for whole answers.
# From the environment: TAKT (the program; built here when absent), REQUESTS (200), CONCURRENCY (8), TOKENS (16).
set -uo pipefail
cd "$(dirname "$0")/../.."
requests=${REQUESTS:-200} concurrency=${CONCURRENCY:-8} tokens=${TOKENS:-16}
if [ $# -eq 0 ]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0"
  echo "skipped: no server was named"
  exit 0
fi
if [ -z "${TAKT:-}" ]; then
  cargo build -q --release -p takt || exit 1
  TAKT=target/release/takt
fi
out=$(mktemp -d)
nginx_pid=
trap 'if [ -n "$nginx_pid" ]; then kill "$nginx_pid"; fi; rm -rf "$out"' EXIT
failed=0 first=

printf '%-20s %-7s %7s %7s %5s %7s  %-22s %-26s %s\n' \
  server form issued ok retr conns 'output tokens' 'beside them' 'TTFT p50'

row() { # NAME FORM RESULT.json
  python3 - "$@" <<'PY'
import json, sys
name, form, path = sys.argv[1:]
p = next(p for p in json.load(open(path))["phases"] if p["type"] == "performance")
t = p["tokens"] or {}
ttft = (p["ttft_ms"] or {}).get("from_send")
beside = f"{t.get('events', 0)} events" if form == "stream" else ""
ours, agree = t.get("tokenizer"), not t.get("disagreeing")
if ours:
    beside += (", " if beside else "") + f"{ours['output_total']} by tokenizer"
connections = (p["instrument"] or {}).get("connections")
print(f"{name:<20} {form:<7} {p['issued']:>7} {p['succeeded']:>7} {p['retried']:>5} {connections!s:>7}  "
      f"{str(t.get('output_total')) + ' (' + str(t.get('source')) + ')':<22} {beside:<26} "
      f"{str(round(ttft['p']['50'], 2)) + ' ms' if ttft else '-'}")
if not agree:
    print(f"{'':<20} the counts of {t['disagreeing']} requests contradict each other")
for e in p["error_samples"]:
    print(f"{'':<20} {e['count']} x {e['kind']}: {e['message'][:120]}")
sys.exit(p["succeeded"] != p["issued"] or not agree)
PY
}

measure() { # NAME URL MODEL TOKENIZER [ARGS...]
  local name=$1 url=$2 model=$3 tokenizer=$4 form
  shift 4
  [ -n "$tokenizer" ] && set -- "$@" --set "tokenizer=$tokenizer"
  for form in stream no-stream; do
    if "$TAKT" run --url "$url" --api openai-chat --model "$model" --extra-body "{\"max_tokens\": $tokens}" \
      --concurrency "$concurrency" --requests "$requests" "--$form" --quiet --format json \
      --out "$out/$name-$form" "$@" >"$out/result.json" 2>"$out/errors" || [ -s "$out/result.json" ]; then
      row "$name" "${form/no-stream/whole}" "$out/result.json" || failed=1
    else
      echo "$name $form: takt ended with an error:"; tail -3 "$out/errors"; failed=1
    fi
  done
}

for server in "$@"; do
  name=${server%%=*}
  IFS=, read -r url model tokenizer <<<"${server#*=}"
  # Any answer of HTTP will do: not every server has the same routes.
  if ! curl -sS -m 5 -o /dev/null "$url/v1/models" 2>/dev/null; then
    echo "$name: skipped, nothing answers at $url"
    continue
  fi
  measure "$name" "$url" "${model:-tiny}" "${tokenizer:-}"
  [ -z "$first" ] && first="$name $url ${model:-tiny} ${tokenizer:-}"
done

if [ -z "$first" ]; then
  echo "nginx: skipped, there is no server to stand before"
elif ! command -v nginx >/dev/null; then
  echo "nginx: skipped, it is not installed"
else
  read -r name url model tokenizer <<<"$first"
  read -r plain secure < <(python3 - <<'PY'
import socket
sockets = [socket.socket() for _ in range(2)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))
PY
)
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
    -keyout "$out/key.pem" -out "$out/cert.pem" 2>/dev/null
  proxy="proxy_pass $url; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_read_timeout 60s;"
  cat >"$out/nginx.conf" <<CONF
pid $out/nginx.pid; error_log $out/nginx.log; daemon off; worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 100000; client_body_temp_path $out/body; proxy_temp_path $out/proxy;
  fastcgi_temp_path $out/f; uwsgi_temp_path $out/u; scgi_temp_path $out/s;
  server { listen 127.0.0.1:$plain; location / { $proxy proxy_buffering on; } }
  server { listen 127.0.0.1:$secure ssl; ssl_certificate $out/cert.pem; ssl_certificate_key $out/key.pem;
           location / { $proxy proxy_buffering off; } }
}
CONF
  nginx -c "$out/nginx.conf" 2>"$out/nginx.err" & nginx_pid=$!
  for _ in $(seq 50); do curl -s -m 1 -o /dev/null "http://127.0.0.1:$plain/" && break; sleep 0.1; done
  measure "$name+nginx-buffers" "http://127.0.0.1:$plain" "$model" "$tokenizer"
  help=$("$TAKT" run --help)
  if [[ $help == *--cacert* ]]; then
    measure "$name+nginx-tls" "https://localhost:$secure" "$model" "$tokenizer" --cacert "$out/cert.pem"
  else
    echo "$name+nginx-tls: skipped, this takt has no TLS"
  fi
fi
exit "$failed"
