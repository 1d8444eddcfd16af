"""Steps, outputs, the queue and the files."""

import gzip
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from checker import check, read
from fakes import Request, Scheduler, graph, output

from takt_opprof.core import OpProfError, Recorder, Settings, recorder, start, stream
from takt_opprof.core.settings import DIR, MAX_BYTES, MAX_BYTES_DEFAULT

HERE = Path(__file__).parent


def step(rec, scheduler, out=None, graph_use=None):
    out = out or output()
    rec.enter(scheduler)
    rec.begin(scheduler, out)
    rec.finalize(out, graph_use)


def the_file(folder):
    (path,) = folder.iterdir()
    return path


def threads():
    return [t.name for t in threading.enumerate() if t.name.startswith("takt-opprof")]


@pytest.fixture
def hold(monkeypatch):
    """A writer that waits for the event before its first write."""
    event = threading.Event()
    write = stream.Files.write

    def held(self, *args):
        event.wait()
        write(self, *args)

    monkeypatch.setattr(stream.Files, "write", held)
    yield event
    event.set()


def test_steps_become_lines_and_a_footer(tmp_path):
    rec = Recorder(Settings(tmp_path), dp_rank=3)
    scheduler = Scheduler(requests={"r": Request(num_tokens=3)})
    step(rec, scheduler, output(new={"r": 3}), graph())
    step(rec, scheduler)
    rec.close()
    path = the_file(tmp_path)
    start_ns = path.stem.rsplit("-", 1)[1]
    assert path.name == f"opprof-v1-dp3-pid{os.getpid()}-{start_ns}.jsonl"
    assert abs(int(start_ns) - time.time_ns()) < 60e9
    file = check(path)
    assert [r["step_index"] for r in file.records] == [0, 1]
    assert file.records[0]["cudagraph"] == {
        "hit": True,
        "runtime_mode": "PIECEWISE",
        "unpadded_tokens": 3,
        "bucket_tokens": 8,
        "padding_tokens": 5,
    }
    assert file.records[1]["cudagraph"] is None
    assert (file.footer["written"], file.footer["unfinalized"]) == (2, 0)
    assert rec.failure is None


def test_no_request_id_is_written(tmp_path):
    rec = Recorder(Settings(tmp_path), dp_rank=0)
    scheduler = Scheduler(requests={"secret-id": Request(num_tokens=3)})
    step(rec, scheduler, output(new={"secret-id": 3}))
    rec.close()
    assert b"secret-id" not in the_file(tmp_path).read_bytes()


def test_only_the_mode_none_is_a_miss(tmp_path):
    rec = Recorder(Settings(tmp_path), dp_rank=0)
    for mode in ("NONE", "FULL"):
        step(rec, Scheduler(requests={"r": Request(3)}), output(new={"r": 3}), graph(mode))
    rec.close()
    assert [r["cudagraph"]["hit"] for r in check(the_file(tmp_path)).records] == [False, True]


def test_outputs_are_paired_by_identity_while_several_are_under_way(tmp_path):
    rec = Recorder(Settings(tmp_path), dp_rank=0)
    scheduler = Scheduler(requests={"r": Request(5)})
    outs = [output(new={"r": n}) for n in (1, 2)]
    for out in outs:
        rec.enter(scheduler)
        rec.begin(scheduler, out)
    for n, out in enumerate(outs, 1):
        rec.finalize(out, graph(tokens=n))
        rec.finalize(out, graph(tokens=n))  # Not ours any more.
    rec.finalize(output(), None)  # Never begun.
    rec.close()
    file = check(the_file(tmp_path))
    assert [r["cudagraph"]["unpadded_tokens"] for r in file.records] == [1, 2]


def test_a_step_whose_output_never_came_is_counted(tmp_path):
    rec = Recorder(Settings(tmp_path), dp_rank=0)
    rec.enter(Scheduler())
    rec.begin(Scheduler(), output())
    rec.close()
    assert check(the_file(tmp_path)).footer["unfinalized"] == 1


def test_steps_under_way_have_a_bound_and_the_oldest_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "PENDING_MAX", 2)
    rec = Recorder(Settings(tmp_path), dp_rank=0)
    outs = [output() for _ in range(3)]
    for out in outs:
        rec.begin(Scheduler(), out)
    for out in outs:
        rec.finalize(out, None)
    rec.close()
    file = check(the_file(tmp_path))
    assert [(r["step_index"], r["dropped_records_before"]) for r in file.records] == [
        (1, 1),
        (2, 0),
    ]
    assert file.footer["unfinalized"] == 1


def test_a_full_queue_drops_the_new_record_and_the_next_that_fits_tells(
    tmp_path, hold, monkeypatch
):
    monkeypatch.setattr(stream, "QUEUE_RECORDS_MAX", 4)
    rec = Recorder(Settings(tmp_path), dp_rank=0)
    step(rec, Scheduler())
    while rec._stream._queue.qsize():  # The writer holds the first; four more fit.
        time.sleep(0.001)
    for _ in range(7):
        step(rec, Scheduler())
    assert rec._stream.gap == 3
    hold.set()
    while rec._stream._queue.qsize():
        time.sleep(0.001)
    step(rec, Scheduler())
    rec.close()
    file = check(the_file(tmp_path))
    assert [r["step_index"] for r in file.records] == [0, 1, 2, 3, 4, 8]
    assert file.records[-1]["dropped_records_before"] == 3
    footer = file.footer
    assert (footer["encoded"], footer["written"], footer["dropped"]) == (9, 6, 3)
    assert footer["queue_high_watermark"] == 4


def test_drops_after_the_last_record_are_in_the_footer(tmp_path, hold, monkeypatch):
    monkeypatch.setattr(stream, "QUEUE_RECORDS_MAX", 1)
    rec = Recorder(Settings(tmp_path), dp_rank=0)
    step(rec, Scheduler())
    while rec._stream._queue.qsize():
        time.sleep(0.001)
    for _ in range(3):
        step(rec, Scheduler())
    hold.set()
    rec.close()
    footer = check(the_file(tmp_path)).footer
    assert (footer["encoded"], footer["written"], footer["dropped"]) == (4, 2, 2)


def test_a_record_reaches_the_file_without_the_next_one(tmp_path):
    rec = Recorder(Settings(tmp_path), dp_rank=0)
    step(rec, Scheduler())
    deadline = time.monotonic() + 10
    while not read(the_file(tmp_path)).records:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    rec.close()


def test_a_killed_process_leaves_a_readable_file(tmp_path):
    code = (
        "import os, signal, sys, time; from pathlib import Path; from fakes import *\n"
        "from takt_opprof.core import Recorder, Settings\n"
        "rec = Recorder(Settings(Path(sys.argv[1])), 0)\n"
        "for _ in range(20):\n"
        "    out = output(); rec.begin(Scheduler(), out); rec.finalize(out, None)\n"
        "while rec.path.read_bytes().count(b'\\n') < 20: time.sleep(0.005)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parent)))}
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    file = check(the_file(tmp_path))
    assert (len(file.records), file.footer) == (20, None)


def test_an_interpreter_that_just_ends_writes_the_footer(tmp_path):
    code = (
        "import sys; from pathlib import Path; from fakes import *\n"
        "from takt_opprof.core import Recorder, Settings\n"
        "rec = Recorder(Settings(Path(sys.argv[1])), 0)\n"
        "out = output(); rec.begin(Scheduler(), out); rec.finalize(out, None)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parent)))}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=True)
    assert check(the_file(tmp_path)).footer["written"] == 1


def test_files_rotate_and_closed_ones_are_compressed(tmp_path):
    rec = Recorder(Settings(tmp_path, max_bytes=4000), dp_rank=0)
    for _ in range(20):
        step(rec, Scheduler())
    rec_stream = rec._stream
    deadline = time.monotonic() + 10
    while rec_stream._files._compressor._thread or rec_stream._queue.qsize():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    rec.close()
    paths = sorted(tmp_path.iterdir())
    assert [p.suffix for p in paths[-2:]] == [".gz", ".jsonl"] and len(paths) > 3
    files = [check(path) for path in paths]
    assert [r["step_index"] for f in files for r in f.records] == list(range(20))
    assert all(f.footer is not None for f in files)
    for path in paths:
        plain = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert len(plain) <= 4000


def test_closing_does_not_wait_for_compression(tmp_path, monkeypatch):
    from takt_opprof.core import files

    begun = threading.Event()
    monkeypatch.setattr(files, "COPY_BYTES", 1)
    real = files.gzip.open

    def slow(*args, **kwargs):
        begun.set()
        return real(*args, **kwargs)

    monkeypatch.setattr(files.gzip, "open", slow)
    rec = Recorder(Settings(tmp_path, max_bytes=200_000), dp_rank=0)
    while not begun.is_set():
        step(rec, Scheduler())
    rec.close()
    assert not threads()
    assert not list(tmp_path.glob("*.part"))
    assert all(check(path).footer for path in tmp_path.iterdir())


def test_a_disk_that_fails_ends_the_recording_and_not_the_server(tmp_path, monkeypatch, caplog):
    rec = Recorder(Settings(tmp_path), dp_rank=0)

    def full(self, *args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stream.Files, "write", full)
    step(rec, Scheduler())
    rec._stream._thread.join(10)
    for _ in range(3):
        step(rec, Scheduler())
    assert rec._stream.gap == 3
    rec.close()
    assert "No space left" in caplog.text
    assert read(the_file(tmp_path)).footer is None


def test_a_scheduler_that_is_not_as_expected_ends_the_recording_and_not_the_server(
    tmp_path, caplog
):
    rec = Recorder(Settings(tmp_path), dp_rank=0)
    step(rec, Scheduler())
    step(rec, object())
    step(rec, object())
    assert isinstance(rec.failure, AttributeError)
    assert "the server goes on" in caplog.text
    assert check(the_file(tmp_path)).footer["written"] == 1


def test_unset_or_empty_is_nothing_at_all(tmp_path, monkeypatch):
    for value in (None, ""):
        if value is not None:
            monkeypatch.setenv(DIR, value)
        assert Settings.from_env() is None
        assert start(Scheduler(), settings=Settings.from_env(), graphs_reported=True) is None
    assert not threads()


def test_settings_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv(DIR, str(tmp_path / "a" / "b"))
    assert Settings.from_env() == Settings(tmp_path / "a" / "b", MAX_BYTES_DEFAULT)
    assert (tmp_path / "a" / "b").is_dir()
    monkeypatch.setenv(MAX_BYTES, "1048576")
    assert Settings.from_env().max_bytes == 1 << 20


@pytest.mark.parametrize("value", ["1", "-1", "1e9", "256 MiB", "٣٣٣٣٣٣"])
def test_a_size_that_is_none_is_refused(tmp_path, monkeypatch, value):
    monkeypatch.setenv(DIR, str(tmp_path))
    monkeypatch.setenv(MAX_BYTES, value)
    with pytest.raises(OpProfError, match="at least 65536"):
        Settings.from_env()


def test_a_relative_folder_is_refused(monkeypatch):
    monkeypatch.setenv(DIR, "out/records")
    with pytest.raises(OpProfError, match="relative; give an absolute one"):
        Settings.from_env()


def test_a_folder_that_is_a_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "f").write_text("")
    monkeypatch.setenv(DIR, str(tmp_path / "f"))
    with pytest.raises(OpProfError, match="File exists"):
        Settings.from_env()


def test_a_folder_that_cannot_be_written_is_refused():
    # The kernel's, where even root makes no file.
    with pytest.raises(OpProfError, match="cannot be written: "):
        Recorder(Settings(Path("/proc/self")), dp_rank=0)
    assert not threads()


def test_without_statistics_the_start_fails_and_says_what_to_change(tmp_path):
    with pytest.raises(OpProfError, match="leave out --disable-log-stats"):
        start(Scheduler(log_stats=False), settings=Settings(tmp_path), graphs_reported=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("v2", "reported", "says"),
    [
        (True, True, "VLLM_USE_V2_MODEL_RUNNER=0"),
        (False, False, "add --cudagraph-metrics"),
        (False, True, None),
    ],
)
def test_graphs_that_will_be_null_are_said_so_at_the_start(tmp_path, caplog, v2, reported, says):
    caplog.set_level(logging.INFO)
    scheduler = Scheduler(use_v2_model_runner=v2)
    rec = start(scheduler, settings=Settings(tmp_path), graphs_reported=reported)
    rec.close()
    assert str(rec.path) in caplog.text
    assert (says in caplog.text) if says else ("will be null" not in caplog.text)


def test_lines_are_json_for_any_reader(tmp_path):
    rec = Recorder(Settings(tmp_path), dp_rank=0)
    step(rec, Scheduler())
    rec.close()
    text = the_file(tmp_path).read_text()
    assert text.endswith("\n") and all(json.loads(line) for line in text.splitlines())
