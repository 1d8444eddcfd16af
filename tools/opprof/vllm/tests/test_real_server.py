"""The plugin in a whole server. Each start takes from half a minute to some minutes on a small
machine: `-m "not server"` leaves these out."""

import functools

import pytest
from checker import check
from real import needs_vllm
from server import PLUGIN, SHUTDOWN, TIGHT, DidNotStart, prompts, serving

from takt_opprof.core.settings import DIR, MAX_BYTES, MAX_BYTES_LEAST

pytestmark = [needs_vllm, pytest.mark.server]

REQUESTS = prompts(24)
LOAD = {"at_once": 8, "max_tokens": 40}
# 16 that outgrow a block of 128 tokens each while they generate, in a pool of 19.
GROWING = [[i + 1] * 100 for i in range(16)]
# One at a time the batches are the same in every run, and so the tokens are.
ALONE = {"at_once": 1, "max_tokens": 40}


def total(records, *path):
    return sum(functools.reduce(dict.__getitem__, path, record) for record in records)


def the_file(folder):
    (path,) = folder.iterdir()
    return path


def test_on_it_records_off_it_does_nothing_and_both_answer_the_same(tmp_path):
    records = tmp_path / "records"
    with serving(tmp_path, *PLUGIN, *TIGHT, *SHUTDOWN, **{DIR: str(records)}) as server:
        on = server.load(REQUESTS[:4], **ALONE)
        server.load(REQUESTS[4:], **LOAD)
        server.load(GROWING, at_once=16, max_tokens=60)
        before = check(the_file(records))
        assert before.footer is None and len(before.records) > 40, "records come while it serves"
        server.terminate()
        assert f"recording every scheduler step to {records}" in server.log
    file = check(the_file(records))
    assert file.footer["written"] == len(file.records) == file.footer["encoded"]
    assert file.footer["unfinalized"] == 0
    assert [r["step_index"] for r in file.records] == list(range(len(file.records)))
    assert total(file.records, "chunked_prefill", "first") > 0
    assert total(file.records, "chunked_prefill", "middle") > 0
    assert total(file.records, "prefix", "local", "hits") > 0
    assert total(file.records, "preemptions") > 0
    assert total(file.records, "resumed_tokens") > 0

    with serving(tmp_path, *PLUGIN, *TIGHT, **{DIR: ""}) as server:
        assert server.load(REQUESTS[:4], **ALONE) == on
        server.load(REQUESTS[4:], **LOAD)
        assert "opprof:" not in server.log
    assert [path.name for path in records.iterdir()] == [the_file(records).name]


def test_a_killed_server_leaves_readable_files(tmp_path):
    records = tmp_path / "records"
    switch = {DIR: str(records), MAX_BYTES: str(MAX_BYTES_LEAST)}
    with serving(tmp_path, *PLUGIN, *TIGHT, **switch) as server:
        server.load(REQUESTS, **LOAD)
        server.kill()
    paths = sorted(path for path in records.iterdir() if path.suffix != ".part")
    files = [check(path) for path in paths]
    assert len(files) > 1 and files[-1].footer is None
    assert all(file.footer for file in files[:-1])
    steps = [r["step_index"] for file in files for r in file.records]
    assert steps == list(range(len(steps)))


@pytest.mark.parametrize(
    ("folder", "options", "says"),
    [
        ("records", [], "the path is relative; give an absolute one"),
        ("/proc/self/records", [], "cannot be made a folder"),
        (None, ["--disable-log-stats"], "leave out --disable-log-stats"),
    ],
)
def test_what_cannot_record_does_not_start_and_says_why(tmp_path, folder, options, says):
    folder = folder or str(tmp_path / "records")
    up = serving(tmp_path, *PLUGIN, *options, **{DIR: folder})
    with pytest.raises(DidNotStart, match=says), up:
        pass
