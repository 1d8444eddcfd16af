"""A patched vLLM: the one that is installed, seen through a folder of links with the patched files
real, so that the installation stays as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checker import check
from real import model_folder, needs_vllm

from takt_opprof.core.settings import DIR
from takt_opprof.patch.edit import State
from takt_opprof.patch.installed import RECORDER, Installed
from takt_opprof.patch.places import FILES

pytestmark = needs_vllm
HERE = Path(__file__).parent

DRIVE = """
import sys, threading
from real import add_request, make_scheduler, run
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
import vllm
assert vllm.__file__.startswith(sys.argv[2]), vllm.__file__
assert "takt_opprof" not in sys.modules
for cls in (Scheduler, AsyncScheduler):
    asynchronous = cls is AsyncScheduler
    scheduler = make_scheduler(
        cls, sys.argv[1], asynchronous=asynchronous, blocks=14, caching=False, graphs=False
    )
    for i in range(2):
        add_request(scheduler, f"r{i}", [i + 1] * 90, max_tokens=40)
    run(scheduler, depth=2 if asynchronous else 1)
    scheduler.shutdown()
    print("recorder", scheduler.opprof is not None and scheduler.opprof.failure)
print("threads", [t.name for t in threading.enumerate() if "opprof" in t.name])
"""

KEY = """
from vllm import envs
print(envs.VLLM_OPPROF_DIR, sorted(k for k in envs.compile_factors() if "OPPROF" in k))
envs.validate_environ(hard_fail=True)
"""

PLUGIN = """
import sys
from real import make_scheduler
from takt_opprof import OpProfScheduler
make_scheduler(OpProfScheduler, sys.argv[1])
"""


@pytest.fixture(scope="session")
def patched(tmp_path_factory):
    """The folder to put first on the path."""
    source = Installed.here()
    root = tmp_path_factory.mktemp("site")
    real = [source.folder / file for file in FILES]
    _mirror(source.folder, root / "vllm", real)
    copy = Installed(root / "vllm")
    if not all(found.state is State.PATCHED for found in copy.places()):
        copy.apply()
    return root


def _mirror(source, target, real):
    """`target` holds links to what `source` holds, and copies of the files named in `real`."""
    target.mkdir()
    for entry in source.iterdir():
        if entry.name == "__pycache__":
            continue
        if any(entry in path.parents for path in real):
            _mirror(entry, target / entry.name, real)
        elif entry in real:
            (target / entry.name).write_bytes(entry.read_bytes())
        else:
            (target / entry.name).symlink_to(entry)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return model_folder(tmp_path_factory.mktemp("model"))


def python(code, patched, *arguments, paths=(), **switch):
    """Runs `code` in a Python of its own that sees the patched vLLM."""
    path = os.pathsep.join(map(str, (patched, HERE, *paths)))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VLLM_")}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments, str(patched)],
        env=environment | {"PYTHONPATH": path} | switch,
        check=False,
        capture_output=True,
        text=True,
        cwd=patched,
    )


def test_on_both_schedulers_record_and_need_nothing_of_this_package(patched, model, tmp_path):
    ended = python(DRIVE, patched, model, **{DIR: str(tmp_path)})
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.count("recorder None") == 2 and "threads []" in ended.stdout
    files = [check(path) for path in tmp_path.iterdir()]
    assert len(files) == 2
    for file in files:
        assert file.footer["written"] == len(file.records) > 50
        assert sum(r["preemptions"] for r in file.records) > 0
        assert sum(r["resumed_tokens"] for r in file.records) > 0
        assert sum(r["chunked_prefill"]["first"] for r in file.records) > 0


def test_off_there_is_no_recorder_no_thread_and_no_file(patched, model, tmp_path):
    ended = python(DRIVE, patched, model, **{DIR: ""})
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.count("recorder False") == 2 and "threads []" in ended.stdout


def test_the_switch_is_known_to_vllm_and_no_part_of_the_compile_cache_key(patched, tmp_path):
    ended = python(KEY, patched, **{DIR: str(tmp_path)})
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.splitlines()[-1] == f"{tmp_path} []"


def test_the_plugin_does_not_record_a_second_time(patched, model, tmp_path):
    ended = python(PLUGIN, patched, model, paths=[HERE.parent], **{DIR: str(tmp_path)})
    assert ended.returncode != 0
    assert "carries the in-place patch and records by itself" in ended.stderr


def test_the_installed_vllm_is_not_touched(patched):
    assert (patched / "vllm" / RECORDER).is_dir()
    assert not (patched / "vllm").is_symlink()
