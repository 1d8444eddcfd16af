#!/usr/bin/env python3
"""Events by the hundred thousand a second, with a subscriber that stops reading after one second.

Two runs of the same load, without a subscriber and with one, against `takt mock --mode instant`. It prints
send lateness and result of both, what each thread took of the processors, what the subscriber missed by its
own count, and what the journal has. It fails when a request is missing from a result or a journal, and when
the subscriber missed nothing.

  cargo build --release -p takt
  tests/zmq/slow_subscriber.py                       # needs pyzmq; two cores and nothing else running
  tests/zmq/slow_subscriber.py --events 20000 --seconds 6 --queue 4      # a short look
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import zmq


def subscribe(address, over, found):
    """Reads for a second, sleeps until `over`, reads the rest and counts."""
    socket = zmq.Context.instance().socket(zmq.SUB)
    socket.subscribe("")
    socket.setsockopt(zmq.RCVHWM, 8)
    socket.connect(address)
    began, numbers = None, {}
    while True:
        if not socket.poll(3000):
            if over.is_set():
                return
            continue
        topic, number, lines = socket.recv_multipart()
        number = int(number)
        found["missed"] += number - numbers.get(topic, number)
        numbers[topic] = number + 1
        found["messages"] += 1
        found["events"] += lines.count(b"\n")
        began = began or time.monotonic()
        if time.monotonic() - began > 1 and not found["slept"]:
            found["slept"] = True
            over.wait()


def threads(process, over, found):
    """CPU seconds of each thread of `process`, by name, as they were last seen, and of what runs beside it."""
    tick = os.sysconf("SC_CLK_TCK")
    while not over.wait(0.1):
        seen = {}
        for task in Path(f"/proc/{process}/task").glob("*"):
            try:
                name, rest = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            user, system = rest.split()[11:13]
            # Threads without a name of their own have the program's.
            thread = THREADS.get(name, "others")
            seen[thread] = seen.get(thread, 0) + (int(user) + int(system)) / tick
        found.update(seen)


THREADS = {"takt": "reactor", "takt-recorder": "recorder", "ZMQbg/IO/0": "ZMQ"}


def run(takt, url, folder, options, subscriber):
    # A request without a stream is two events: issued and complete.
    address = f"ipc://{folder}/events"
    out = folder / ("with" if subscriber else "without")
    command = [takt, "run", "--url", url, "--api", "raw", "--rate", str(options.events / 2)]
    command += ["--duration", f"{options.seconds}s", "--out", str(out), "--quiet", "--format", "json"]
    command += ["--set", f"publish.events={address}"]
    command += ["--set", f"publish.queue={options.queue}"]
    over, found = threading.Event(), {"messages": 0, "events": 0, "missed": 0, "slept": False}
    thread = threading.Thread(target=subscribe, args=(address, over, found))
    if subscriber:
        thread.start()
        # It reads on shortly before the end, so that it sees from the numbers what it has missed.
        threading.Timer(options.seconds - 1, over.set).start()
    cpu, ended = {}, threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        watcher = threading.Thread(target=threads, args=(running.pid, ended, cpu))
        watcher.start()
        printed = running.stdout.read()
        ended.set()
        watcher.join()
    over.set()
    if subscriber:
        thread.join()
    assert running.returncode == 0, f"exit {running.returncode}"
    phase = json.loads(printed)["phases"][0]
    count = phase["issued"] * 2
    phase["cpu"] = "  ".join(f"{name} {cpu.get(name, 0) / count * 1e6:.2f}" for name in THREADS.values())
    events = subprocess.run([takt, "events", str(out)], stdout=subprocess.PIPE, check=True).stdout
    phase["journal"] = events.count(b'"event_type":"sample.complete"')
    return phase, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--takt", default="target/release/takt")
    parser.add_argument("--events", type=int, default=100_000, help="events a second")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--queue", type=int, default=256, help="messages that wait for the subscriber")
    options = parser.parse_args()
    mock = [options.takt, "mock", "--mode", "instant", "--listen", "127.0.0.1:0"]
    wrong = []
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(mock, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = "http://" + server.stdout.readline().split()[-1]
            for subscriber in (False, True):
                phase, found = run(options.takt, url, Path(folder), options, subscriber)
                lateness = phase["lateness_us"]["p"]
                print(
                    "with   " if subscriber else "without",
                    f"issued {phase['issued']}  succeeded {phase['succeeded']}  in the journal {phase['journal']}",
                    f" lateness p50 {lateness['50']:.1f} us  p99 {lateness['99']:.1f} us",
                    f" lost {phase['instrument']['lost']}  CPU us an event: {phase['cpu']}",
                )
                if not phase["issued"] == phase["succeeded"] == phase["journal"]:
                    wrong.append("requests are missing")
            print("subscriber", found)
            if found["missed"] == 0:
                wrong.append("the subscriber missed nothing: it was not slow enough")
        finally:
            server.terminate()
    sys.exit("; ".join(wrong) or 0)


if __name__ == "__main__":
    main()
