"""The in-place patch, as an edit of files. That a patched vLLM records is in
`test_real_patch.py`."""

import shutil

import pytest
from real import WHY_NOT

from takt_opprof.patch import installed
from takt_opprof.patch.__main__ import main
from takt_opprof.patch.edit import State
from takt_opprof.patch.installed import RECORDER, Installed, Refused
from takt_opprof.patch.places import ENVS, FILES, PLACES, RUNNER, SCHEDULER


def made_up(folder):
    """A folder with the lines that the patch goes by, and little else."""
    for file in FILES:
        lines = []
        bodies = {}
        for place in PLACES:
            if place.file == file:
                bodies.setdefault(place.within, []).append(place.line)
        for within, body in bodies.items():
            if within:
                # A signature over several lines, as vLLM writes them.
                indent = " " * (len(within) - len(within.lstrip()))
                lines += [within, f"{indent}    self,", f"{indent}) -> None:"]
            lines += [*body, ""]
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines))
    (folder / "_version.py").write_text("__version__ = version = '0.24.0'\n")


def copied(folder):
    """The files of the vLLM that is installed."""
    source = Installed.here().folder
    for file in (*FILES, "_version.py"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, folder / file)


REAL = pytest.param(copied, id="real", marks=pytest.mark.skipif(bool(WHY_NOT), reason=str(WHY_NOT)))


@pytest.fixture(params=[pytest.param(made_up, id="made-up"), REAL])
def vllm(request, tmp_path):
    folder = tmp_path / "vllm"
    request.param(folder)
    if request.param is copied and all(
        found.state is State.PATCHED for found in Installed(folder).places()
    ):
        pytest.skip("the installed vLLM is patched: undo that to run this test on its files")
    return folder


def contents(folder):
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def rewrite(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def refused(folder, verb):
    """Runs a verb that must change nothing and fail; what it says."""
    before = contents(folder)
    with pytest.raises(Refused) as error:
        getattr(Installed(folder), verb)()
    assert contents(folder) == before
    return str(error.value)


def test_what_is_applied_is_undone_to_the_byte_and_can_be_applied_again(vllm):
    before = contents(vllm)
    Installed(vllm).apply()
    patched = contents(vllm)
    assert [f for f in FILES if patched[f] == before[f]] == []
    assert all(found.state is State.PATCHED for found in Installed(vllm).places())
    assert Installed(vllm).recorder() is State.PATCHED
    assert Installed(vllm).undo() == []
    assert contents(vllm) == before
    Installed(vllm).apply()
    assert contents(vllm) == patched


def test_nothing_but_lines_are_added_and_one_condition_is_widened(vllm):
    before = {f: (vllm / f).read_text().splitlines() for f in FILES}
    Installed(vllm).apply()
    for file in (ENVS, SCHEDULER):
        after = iter((vllm / file).read_text().splitlines())
        assert all(line in after for line in before[file]), "every line is there, in its order"
    lost = set(before[RUNNER]) - set((vllm / RUNNER).read_text().splitlines())
    assert lost == {place.line for place in PLACES if place.file == RUNNER}


@pytest.mark.parametrize("vllm", [REAL], indirect=True)
def test_patched_files_are_python(vllm):
    Installed(vllm).apply()
    for path in (*(vllm / file for file in FILES), *(vllm / RECORDER).glob("*.py")):
        compile(path.read_text(), path, "exec")


def test_twice_is_refused_either_way(vllm):
    assert refused(vllm, "undo") == "this vLLM is not patched"
    Installed(vllm).apply()
    assert refused(vllm, "apply") == "this vLLM is patched already"


@pytest.mark.parametrize("version", ["0.24.1", "0.23.0", "0.25.0+cpu", "0.24.0rc1"])
def test_another_version_is_refused(vllm, version):
    (vllm / "_version.py").write_text(f"__version__ = version = '{version}'\n")
    with pytest.raises(Refused) as error:
        Installed(vllm)
    assert str(error.value) == f"the patch is for vLLM 0.24.0; {vllm} is {version}"


def test_a_build_of_the_same_version_is_not_another(vllm):
    (vllm / "_version.py").write_text("__version__ = version = '0.24.0+cpu'\n")
    Installed(vllm).apply()


def test_a_folder_that_is_no_vllm_is_refused(tmp_path):
    with pytest.raises(Refused, match="not an installed vLLM"):
        Installed(tmp_path)


@pytest.mark.parametrize("place", PLACES, ids=lambda p: p.what.replace(" ", "-"))
def test_a_place_that_somebody_edited_is_named_and_nothing_is_changed(tmp_path, place):
    vllm = tmp_path / "vllm"
    made_up(vllm)
    path = vllm / place.file
    kept = path.read_text()
    for line in (place.line + "  # mine", f"{place.line}\n{place.line}", ""):
        path.write_text(_in_region(kept, place, line))
        says = refused(vllm, "apply")
        assert f"{place.file}: {place.what}: edited by someone else" in says
    path.write_text(kept)
    Installed(vllm).apply()
    ours = path.read_text()
    added = next(x for x in place.after.split("\n") if "opprof" in x)
    rewrite(path, added, added + " and mine")
    for verb in ("apply", "undo"):
        assert place.what in refused(vllm, verb)
    path.write_text(ours)
    Installed(vllm).undo()


def _in_region(text, place, line):
    head, _, tail = text.partition(f"\n{place.within}") if place.within else ("", "", text)
    assert place.line in tail
    joint = f"\n{place.within}" if place.within else ""
    return head + joint + tail.replace(place.line, line, 1)


def test_a_recorder_folder_that_is_not_ours_is_left_alone(vllm):
    (vllm / RECORDER).mkdir(parents=True)
    assert "is there already" in refused(vllm, "apply")


def test_undo_after_edits_elsewhere_takes_out_its_own_lines_and_says_so(vllm):
    path = vllm / SCHEDULER
    before = path.read_text()
    Installed(vllm).apply()
    path.write_text(path.read_text() + "# mine\n")
    assert Installed(vllm).undo() == [SCHEDULER]
    assert path.read_text() == before + "# mine\n"


def test_undo_keeps_foreign_files_and_does_without_its_note(vllm):
    Installed(vllm).apply()
    (vllm / RECORDER / "PATCH.json").unlink()
    (vllm / RECORDER / "notes.txt").write_text("mine")
    assert Installed(vllm).undo() == list(FILES)
    assert [p.name for p in (vllm / RECORDER).iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_a_disk_that_fails_half_way_leaves_all_as_it_was(vllm, verb, monkeypatch):
    if verb == "undo":
        Installed(vllm).apply()
    before = contents(vllm)
    replace = installed.os.replace
    calls = []

    def failing(source, target):
        calls.append(target)
        if len(calls) == len(FILES):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(installed.os, "replace", failing)
    with pytest.raises(OSError):
        getattr(Installed(vllm), verb)()
    assert contents(vllm) == before


def test_a_file_linked_elsewhere_is_replaced_and_not_written_into(vllm, tmp_path):
    other = tmp_path / "cache.py"
    other.hardlink_to(vllm / SCHEDULER)
    before = other.read_bytes()
    Installed(vllm).apply()
    assert other.read_bytes() == before != (vllm / SCHEDULER).read_bytes()


def test_the_command_line_says_what_it_did(vllm, capsys):
    where = ["--vllm", str(vllm)]
    assert main(["check", *where]) == 1
    assert main(["apply", *where]) == 0
    assert main(["check", *where]) == 0
    assert main(["apply", *where]) == 1
    said = capsys.readouterr()
    assert (
        "patched vLLM 0.24.0" in said.out and said.err == "refused: this vLLM is patched already\n"
    )
    assert main(["undo", *where]) == 0
    assert main(["check", *where]) == 1
