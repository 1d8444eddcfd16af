#!/usr/bin/env python3
"""How long after its process was started takt's first request arrives, over some starts.

usage: bench/first_request.py [TAKT] [STARTS]

TAKT is target/release/takt unless it is named. A server of this program's own waits for the request.
"""

import socket
import statistics
import subprocess
import sys
import tempfile
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def first_request(takt, server, out):
    """Milliseconds from the start of a run to its first request."""
    url = "http://127.0.0.1:%d" % server.getsockname()[1]
    command = [takt, "run", "--url", url, "--api", "raw", "--concurrency", "1", "--requests", "1"]
    started = time.monotonic()
    run = subprocess.Popen([*command, "--out", out, "--quiet"], stdout=subprocess.DEVNULL)
    try:
        while True:
            connection = server.accept()[0]
            with connection:
                connection.settimeout(10)
                # Looks whether anybody listens come without a request.
                if connection.recv(1 << 16):
                    took = time.monotonic() - started
                    connection.sendall(ANSWER)
                    run.wait(10)
                    return took * 1e3
    finally:
        run.kill()
        run.wait()


def main():
    takt = sys.argv[1] if len(sys.argv) > 1 else "target/release/takt"
    starts = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    with socket.create_server(("127.0.0.1", 0)) as server, tempfile.TemporaryDirectory() as folder:
        server.settimeout(10)
        took = [first_request(takt, server, "%s/%d" % (folder, n)) for n in range(starts)]
    print("first request after: median %.1f ms, %.1f to %.1f, %d starts"
          % (statistics.median(took), min(took), max(took), starts))


if __name__ == "__main__":
    main()
