#!/usr/bin/env python3
"""What other clients see of the conformance corpus: h11 and curl read each file from a socket, Python's own json reads
the bodies, and both are compared with what is written beside the file.

usage: corpus_clients.py [FILTER]

Needs h11 (pip install h11) or curl; what is missing is said and skipped. Each file of tests/corpus whose name holds
FILTER is served as it stands, in pieces of 1,000 bytes, by a plain socket on loopback. Compared are the status, the
body of the one client with that of the other, and of what succeeds: text, reasoning, arguments of calls, the number of
events with text, the finish reason and the server's counts. Of what fails by its framing, the client has to fail as
well. Exits 1 on any difference.
"""
import json
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading

try:
    import h11
except ImportError:
    h11 = None

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "corpus"
ROUTES = {
    "openai-chat": "/v1/chat/completions",
    "openai-completions": "/v1/completions",
    "openai-responses": "/v1/responses",
    "openai-embeddings": "/v1/embeddings",
    "sglang-generate": "/generate",
}


# What a client is known to take that it should not.
KNOWN = {("curl", "truncated_in_the_head"): "a head that is cut off is an answer to it"}


class Served:
    """One file, behind an address, for one connection."""

    def __init__(self, wire, end):
        self.wire, self.end = wire, end
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        connection, _ = self.listener.accept()
        self.listener.close()
        got = b""
        while b"\r\n\r\n" not in got or not got.endswith(b"{}"):
            piece = connection.recv(65536)
            if not piece:
                return
            got += piece
        for at in range(0, len(self.wire), 1000):
            connection.sendall(self.wire[at : at + 1000])
        if self.end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif self.end == "open":
            # Until the client has had enough.
            connection.settimeout(5)
            try:
                connection.recv(1)
            except OSError:
                pass
        connection.close()


def by_h11(served, api):
    """(status, body, error) as h11 has them."""
    client = h11.Connection(h11.CLIENT)
    status, body = None, b""
    with socket.create_connection(("127.0.0.1", served.port), 5) as wire:
        request = h11.Request(method="POST", target=ROUTES[api], headers=[("Host", "x"), ("Content-Length", "2")])
        wire.sendall(client.send(request) + client.send(h11.Data(b"{}")) + client.send(h11.EndOfMessage()))
        try:
            while True:
                event = client.next_event()
                if event is h11.NEED_DATA:
                    client.receive_data(wire.recv(4096))
                elif isinstance(event, h11.Response):
                    status = event.status_code
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
                    return status, body, None
        except (h11.RemoteProtocolError, OSError) as error:
            return status, body, str(error)


def by_curl(served, api):
    """(status, body, error) as curl has them."""
    url = f"http://127.0.0.1:{served.port}{ROUTES[api]}"
    asked = ["curl", "-sSN", "--http1.1", "--http0.9", "-m", "10", "-d", "{}", "-w", "%{stderr}status=%{http_code}\n", url]
    done = subprocess.run(asked, capture_output=True)
    said = done.stderr.decode(errors="replace")
    found = re.search(r"status=(\d+)", said)
    status = int(found[1]) or None if found else None
    words = said.splitlines()[0] if said else "no word"
    return status, done.stdout, None if done.returncode == 0 else f"exit {done.returncode}: {words}"


def event_data(body):
    """The data of server-sent events up to `[DONE]`, as the standard has them."""
    text = body.decode("utf-8", errors="replace").removeprefix("\ufeff")
    data = []
    for line in re.split("\r\n|\n|\r", text) + [""]:
        if line == "":
            if data and "\n".join(data) == "[DONE]":
                return
            if data:
                yield json.loads("\n".join(data))
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))


class Told:
    """What an answer says, added up."""

    def __init__(self):
        self.content, self.reasoning, self.calls = "", "", {}
        self.token_events, self.finish, self.usage = 0, None, {}

    def add(self, content="", reasoning="", calls=()):
        """One event with text, if it has any."""
        self.content += content or ""
        self.reasoning += reasoning or ""
        for index, arguments in calls:
            self.calls[index] = self.calls.get(index, "") + arguments
        self.token_events += bool(content or reasoning or calls)

    def counts(self, usage, names):
        if not isinstance(usage, dict):
            return
        for ours, theirs in names.items():
            value = usage
            for key in theirs.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if isinstance(value, int) and value >= 0:
                self.usage[ours] = value

    def __eq__(self, other):
        return vars(self) == vars(other)


CHAT = {
    "input": "prompt_tokens",
    "output": "completion_tokens",
    "cached": "prompt_tokens_details.cached_tokens",
    "reasoning": "completion_tokens_details.reasoning_tokens",
}
RESPONSES = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "input_tokens_details.cached_tokens",
    "reasoning": "output_tokens_details.reasoning_tokens",
}
SGLANG = {"input": "prompt_tokens", "output": "completion_tokens", "cached": "cached_tokens"}


def text_of(value):
    return value if isinstance(value, str) else ""


def calls_of(message):
    """(index, arguments) of the calls in a message that have a name or arguments."""
    found = []
    calls = message.get("tool_calls")
    for place, call in enumerate(calls if isinstance(calls, list) else []):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and (function.get("name") or function.get("arguments")):
            found.append((call.get("index", place), function.get("arguments") or ""))
    older = message.get("function_call")
    if isinstance(older, dict):
        found.append((0, older.get("arguments") or ""))
    return found


def chat(told, piece):
    told.counts(piece.get("usage"), CHAT)
    choices = piece.get("choices")
    texts, calls = {"content": "", "reasoning": ""}, []
    for choice in choices if isinstance(choices, list) else []:
        if not isinstance(choice, dict):
            continue
        if isinstance(choice.get("finish_reason"), str):
            told.finish = choice["finish_reason"]
        message = choice.get("delta", choice.get("message"))
        message = message if isinstance(message, dict) else {"content": choice.get("text")}
        if choice.get("index", 0) == 0:
            texts["content"] += text_of(message.get("content")) + text_of(message.get("refusal"))
            texts["reasoning"] += text_of(message.get("reasoning_content") or message.get("reasoning"))
            calls += calls_of(message)
    told.add(texts["content"], texts["reasoning"], calls)


def responses(told, piece):
    kind = piece.get("type", "")
    index = piece.get("output_index", 0)
    if kind in ("response.output_text.delta", "response.refusal.delta"):
        told.add(content=piece["delta"])
    elif kind.startswith("response.reasoning") and kind.endswith(".delta"):
        told.add(reasoning=piece["delta"])
    elif kind == "response.function_call_arguments.delta":
        told.add(calls=[(index, piece["delta"])])
    elif kind == "response.output_item.added" and piece["item"]["type"] == "function_call":
        told.add(calls=[(index, piece["item"]["arguments"])])
    elif kind in ("response.completed", "response.incomplete"):
        response_end(told, piece["response"])


def response_end(told, response):
    told.counts(response.get("usage"), RESPONSES)
    calls = any(item["type"] == "function_call" for item in response["output"])
    reasons = {"max_output_tokens": "length", "content_filter": "content_filter"}
    if response["status"] == "incomplete":
        told.finish = reasons[response["incomplete_details"]["reason"]]
    else:
        told.finish = "tool_calls" if calls else "stop"


def whole_response(told, response):
    for place, item in enumerate(response["output"]):
        parts = item.get("content") or item.get("summary") or []
        text = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
        if item["type"] == "reasoning":
            told.reasoning += text
        elif item["type"] == "message":
            told.content += text
        else:
            told.calls[place] = item["arguments"]
    response_end(told, response)


def generate(told, piece, before):
    """A frame; gives the text so far, and the ids where there is no text."""
    meta = piece["meta_info"]
    told.counts(meta, SGLANG)
    if meta["finish_reason"]:
        told.finish = meta["finish_reason"]["type"]
    text = piece.get("text")
    if text is None:
        told.token_events += len(piece["output_ids"]) > len(before or [])
        return piece["output_ids"]
    before = before or ""
    alone = len(piece.get("output_ids", [])) < meta["completion_tokens"] and "output_ids" in piece
    new = text if alone else text.removeprefix(before)
    told.add(content=new)
    return text


def read(api, body, streamed):
    """What a body says."""
    told, before = Told(), None
    pieces = event_data(body) if streamed else [json.loads(body)]
    for piece in pieces:
        if api == "openai-responses":
            (responses if streamed else whole_response)(told, piece)
        elif api == "sglang-generate":
            before = generate(told, piece, before)
        else:
            chat(told, piece)
    if not streamed:
        told.token_events = 0
    return told


def written(events):
    """The same from what is written beside a file."""
    told = Told()
    for event in events:
        for kind in ("token", "text"):
            piece = event.get(kind, {})
            told.content += piece.get("content", "")
            told.reasoning += piece.get("reasoning", "")
            for call in piece.get("tool_calls", []):
                told.calls[call["index"]] = told.calls.get(call["index"], "") + call.get("arguments", "")
        told.token_events += "token" in event
        told.finish = event.get("finish", told.finish)
        told.usage.update(event.get("usage", {}))
    return told


def differs(says, seen):
    """Why a client's view is not what is written, or None."""
    status, body, error = seen
    expect = next((event["head"] for event in says["events"] if "head" in event), None)
    if expect is None:
        # No whole head: some clients tell the status even so.
        return None if error else "it took a part of a head for an answer"
    if status != expect:
        return f"status {status}, not {expect}"
    outcome = says["outcome"]
    failure = outcome.get("failure", {}).get("kind")
    cut = failure == "truncated" and says["end"] != "open"
    if failure == "bad_framing" or cut:
        return None if error else "it read to the end what is cut or wrong"
    if error and says["end"] == "open":
        return error
    if not outcome["ok"]:
        return None
    told, expect = read(says["api"], body, outcome["form"] == "stream"), written(says["events"])
    if told == expect:
        return None
    return f"it says {vars(told)}, and written is {vars(expect)}"[:400]


def main():
    clients = {"h11": by_h11 if h11 else None, "curl": by_curl if shutil.which("curl") else None}
    for name, client in clients.items():
        if client is None:
            print(f"{name} is not installed: skipped")
    clients = {name: client for name, client in clients.items() if client}
    if not clients:
        sys.exit("skipped: neither h11 nor curl is there")
    names = sorted(path.stem for path in CORPUS.glob("*.http"))
    names = [name for name in names if len(sys.argv) < 2 or sys.argv[1] in name]
    agree, wrong = {name: 0 for name in clients}, []
    for name in names:
        wire = (CORPUS / f"{name}.http").read_bytes()
        says = json.loads((CORPUS / f"{name}.json").read_text())
        bodies = {}
        for client, view in clients.items():
            seen = view(Served(wire, says["end"]), says["api"])
            why = differs(says, seen)
            if why and (client, name) in KNOWN:
                print(f"{name}: {client}: known: {KNOWN[client, name]}")
            elif why:
                wrong.append(f"{name}: {client}: {why}")
            else:
                agree[client] += 1
            if not seen[2]:
                bodies[client] = seen[1]
        if len(set(bodies.values())) > 1:
            wrong.append(f"{name}: the bodies of {' and '.join(bodies)} differ")
    for client, count in agree.items():
        print(f"{client:5} agrees on {count} of {len(names)} files")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
