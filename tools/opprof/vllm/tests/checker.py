"""What must hold in a file of records, as a reader that trusts nothing: it goes by the JSON, not by
the recorder's own types. `takt opprof check` is the tool for users; this one needs Python alone."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

FIELDS = (
    "schema engine_id step_index submit_wall_ns submit_mono_ns complete_mono_ns model_executed "
    "scheduled_requests decode_batch_size prefill_requests prefill_tokens decode_tokens "
    "chunked_prefill context_length_hist preemptions queues kv prefix cudagraph moe_expert_load "
    "dropped_records_before"
).split()
OPTIONAL = ["scheduled_tokens", "resumed_requests", "resumed_tokens"]
FOOTER = (
    "schema footer engine_id encoded written dropped queue_high_watermark unfinalized"
).split()
NESTED = {
    "chunked_prefill": "first middle final unsplit tokens chunk_size_hist",
    "queues": "running waiting deferred",
    "kv": "total_blocks free_blocks used_blocks usage",
    "prefix": "local external",
}
COUNTS = "requests queries hits preempted_requests preempted_queries preempted_hits".split()
GRAPH = "hit runtime_mode unpadded_tokens bucket_tokens padding_tokens".split()


@dataclass
class Read:
    """A file as far as it is whole."""

    records: list
    footer: dict | None
    torn: bool


def read(path: Path) -> Read:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    *lines, rest = data.split(b"\n")
    parsed = [json.loads(line) for line in lines]
    footer = parsed.pop() if parsed and "footer" in parsed[-1] else None
    return Read(parsed, footer, bool(rest))


def check(path: Path) -> Read:
    """Reads a file and asserts every rule; a step's number is in the message."""
    file = read(path)
    expected = None
    submitted = 0
    for record in file.records:
        try:
            one(record)
        except AssertionError as error:
            raise AssertionError(f"{path.name}, step {record['step_index']}: {error}") from error
        gap = record["dropped_records_before"]
        assert expected is None or record["step_index"] == expected + gap, "a gap not told of"
        expected = record["step_index"] + 1
        assert record["submit_mono_ns"] >= submitted, "submitted before its predecessor"
        submitted = record["submit_mono_ns"]
    if file.footer is not None:
        end(file)
    return file


def one(r: dict) -> None:
    """The rules within one record."""
    assert list(r) in (FIELDS, FIELDS + OPTIONAL), f"fields {list(r)}"
    for name, fields in NESTED.items():
        assert list(r[name]) == fields.split(), f"fields of {name}: {list(r[name])}"
    assert r["schema"] == 1 and r["moe_expert_load"] is None
    assert not_negative(r), "a negative count"
    assert len(r["context_length_hist"]) == 12
    assert sum(r["context_length_hist"]) == r["scheduled_requests"]
    chunks = r["chunked_prefill"]
    assert len(chunks["chunk_size_hist"]) == 9
    assert sum(chunks["chunk_size_hist"]) == r["prefill_requests"]
    assert sum(chunks[k] for k in ("first", "middle", "final", "unsplit")) == r["prefill_requests"]
    assert chunks["tokens"] == r["prefill_tokens"]
    assert r["prefill_requests"] + r["decode_batch_size"] == r["scheduled_requests"]
    assert r["submit_mono_ns"] <= r["complete_mono_ns"]
    tokens = r["prefill_tokens"] + r["decode_tokens"]
    assert r["model_executed"] == (tokens > 0)
    if "scheduled_tokens" in r:
        assert tokens == r["scheduled_tokens"]
        assert r["resumed_requests"] <= r["decode_batch_size"]
        assert r["resumed_requests"] <= r["resumed_tokens"] <= r["decode_tokens"]
    kv = r["kv"]
    assert kv["used_blocks"] == kv["total_blocks"] - kv["free_blocks"]
    assert 0 <= kv["usage"] <= 1
    assert abs(kv["usage"] * kv["total_blocks"] - kv["used_blocks"]) < 1e-6
    for counts in (r["prefix"]["local"], r["prefix"]["external"]):
        if counts is not None:
            assert list(counts) == COUNTS
            assert counts["hits"] <= counts["queries"]
            assert counts["preempted_hits"] <= counts["preempted_queries"]
    graph = r["cudagraph"]
    if graph is not None:
        assert list(graph) == GRAPH
        assert graph["hit"] == (graph["runtime_mode"] != "NONE")
        assert graph["bucket_tokens"] == graph["unpadded_tokens"] + graph["padding_tokens"]
        assert graph["unpadded_tokens"] == tokens


def end(file: Read) -> None:
    """The footer's arithmetic."""
    footer = file.footer
    assert list(footer) == FOOTER and footer["footer"] is True
    assert footer["written"] == len(file.records)
    assert footer["encoded"] == footer["written"] + footer["dropped"]
    assert footer["dropped"] >= sum(r["dropped_records_before"] for r in file.records)
    assert all(footer["engine_id"] == r["engine_id"] for r in file.records)


def not_negative(value) -> bool:
    if isinstance(value, dict):
        return all(not_negative(v) for v in value.values())
    if isinstance(value, list):
        return all(not_negative(v) for v in value)
    return not isinstance(value, (int, float)) or value >= 0
