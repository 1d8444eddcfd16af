"""turns.py EVENTS.jsonl [LLAMA.log]: was every second turn sent after its first was answered?

By the run's own events; by the tokens that the server says it found in its cache (a slot's cache serves another task only after
the slot was released, so a second turn that finds the first one's prompt there came after that was answered); and by the
server's log, in which no more tasks may run at once than there were conversations.
"""
import json
import re
import sys

events = [json.loads(line) for line in open(sys.argv[1])]
issued, ended = {}, {}
for event in events:
    key = (event["conversation_id"], event["turn"])
    if event["event_type"] == "sample.issued":
        issued[key] = event["timestamp_ns"]
    elif event["event_type"] == "sample.complete":
        ended[key] = event
seconds = [key for key in issued if key[1] > 1]
early = [key for key in seconds if issued[key] < ended[(key[0], key[1] - 2)]["timestamp_ns"]]
unanswered = [key for key in seconds if ended[(key[0], key[1] - 2)]["takt"]["outcome"] != "ok"]
known = cached = 0
for key in seconds:
    now, before = ended[key]["takt"]["tokens"], ended[(key[0], key[1] - 2)]["takt"]["tokens"]
    if None in (now["cached"], before["input"], before["output"]):
        continue
    known += 1
    # The end of a prompt is the template's and differs; a slot that another conversation took has lost it.
    cached += now["cached"] >= before["input"] - 8
print(f"{len(seconds)} second turns, {len(early)} sent early, {len(unanswered)} after a failed first one")
print(f"the server found the first turn in the cache of a slot that was free again for {cached} of {known}")
bad = bool(early or unanswered or not seconds or not cached)
if len(sys.argv) > 2:
    running = most = launched = 0
    for line in open(sys.argv[2], errors="replace"):
        if re.search(r"launch_slot_: .*processing task", line):
            running, launched = running + 1, launched + 1
            most = max(most, running)
        elif re.search(r"slot +release: .*stop processing", line):
            running -= 1
    print(f"the server's log: {launched} tasks, {most} at once at the most")
    bad |= most > 8
sys.exit(bad)
