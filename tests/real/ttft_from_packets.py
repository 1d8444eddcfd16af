#!/usr/bin/env python3
"""Times to first token as a packet capture saw them, beside those that takt reported.

usage: ttft_from_packets.py CAPTURE.pcap SERVER_PORT RESULT.json [LIMIT_MS]

Reads a classic pcap of the loopback device (tcpdump -i lo -s 0 -w CAPTURE.pcap tcp port PORT). For each request
(a payload to the port that begins with an HTTP method) it takes the time from that packet to the first packet back
on the same connection that completes an event whose delta has content, and compares mean and percentiles with
`ttft_ms.from_send` of the first performance phase in RESULT.json. Exits 1 when any differs by more than LIMIT_MS (1).
"""
import json
import re
import struct
import sys

CONTENT = re.compile(rb'^data:.*"(?:content|reasoning_content|reasoning)":"(?!")', re.M)
LINKTYPE_HEADER = {1: 14, 113: 16, 276: 20}


def packets(path):
    """Yields (seconds, link header length, frame)."""
    with open(path, "rb") as file:
        magic, _, _, _, _, _, linktype = struct.unpack("<IHHiIII", file.read(24))
        if magic not in (0xA1B2C3D4, 0xA1B23C4D):
            sys.exit(f"{path}: not a little-endian pcap file")
        unit = 1e-9 if magic == 0xA1B23C4D else 1e-6
        while head := file.read(16):
            seconds, fraction, length, _ = struct.unpack("<IIII", head)
            yield seconds + fraction * unit, LINKTYPE_HEADER[linktype & 0xFFFF], file.read(length)


def payloads(path):
    """Yields (seconds, source port, destination port, payload) of TCP over IPv4."""
    for at, skip, frame in packets(path):
        ip = frame[skip:]
        if len(ip) < 40 or ip[0] >> 4 != 4 or ip[9] != 6:
            continue
        tcp = ip[(ip[0] & 15) * 4 : struct.unpack(">H", ip[2:4])[0]]
        source, destination = struct.unpack(">HH", tcp[:4])
        yield at, source, destination, tcp[(tcp[12] >> 4) * 4 :]


def first_token_times(path, port):
    """Milliseconds from request to first token, one per answered request."""
    open_requests, times = {}, []
    for at, source, destination, payload in payloads(path):
        if destination == port and payload[:5] in (b"POST ", b"GET /"):
            open_requests[source] = (at, b"")
        elif source == port and destination in open_requests and payload:
            begun, seen = open_requests[destination]
            seen += payload
            whole = seen[: seen.rfind(b"\n\n") + 2] if b"\n\n" in seen else b""
            if CONTENT.search(whole):
                times.append((at - begun) * 1e3)
                del open_requests[destination]
            else:
                open_requests[destination] = (begun, seen)
    return sorted(times)


def main():
    capture, port, result = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    limit = float(sys.argv[4]) if len(sys.argv) > 4 else 1.0
    times = first_token_times(capture, port)
    if not times:
        sys.exit(f"{capture}: no first token of a stream on port {port}")
    with open(result) as file:
        phases = json.load(file)["phases"]
    ttft = next(p for p in phases if p["type"] == "performance")["ttft_ms"]["from_send"]
    print(f"requests with a first token: {len(times)} in packets, {ttft['count']} in the report")
    rows = [("mean", sum(times) / len(times), ttft["mean"])]
    for key in ("50", "90", "99"):
        rank = max(0, -(-len(times) * int(key) // 100) - 1)
        rows.append((f"p{key}", times[rank], ttft["p"][key]))
    worst = 0.0
    for name, packet, reported in rows:
        print(f"{name:>5}  packets {packet:9.3f} ms  reported {reported:9.3f} ms  {reported - packet:+.3f}")
        worst = max(worst, abs(reported - packet))
    if len(times) != ttft["count"] or worst > limit:
        sys.exit(f"the reported times differ by {worst:.3f} ms, limit {limit} ms")


main()
