"""An installed vLLM on disk: what is in it, and replacing several files or none.

Files are replaced, never written into: installers link one file into several environments.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from . import edit
from .edit import Found, State
from .places import FILES

VERSION = "0.24.0"
RECORDER = "v1/opprof"
NOTE = "PATCH.json"
CORE = Path(__file__).parent.parent / "core"


class Refused(Exception):
    """The patch does not do what was asked; nothing has been changed."""


class Installed:
    """The package folder of an installed vLLM of the version the patch is for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            text = (folder / "_version.py").read_text()
        except OSError:
            raise Refused(f"{folder} is not an installed vLLM: it has no _version.py") from None
        found = re.search(r"^__version__ = (?:version = )?['\"]([^'\"]+)['\"]", text, re.MULTILINE)
        self.version = found[1] if found else "unknown"
        # What follows a plus sign names a build, not other sources.
        if self.version.partition("+")[0] != VERSION:
            raise Refused(f"the patch is for vLLM {VERSION}; {folder} is {self.version}")
        self._texts = {file: (folder / file).read_text() for file in FILES}

    @staticmethod
    def here() -> "Installed":
        """The one that this Python would import; it is not imported."""
        spec = importlib.util.find_spec("vllm")
        if spec is None or spec.origin is None:
            raise Refused("no vLLM is installed in this Python; --vllm names the folder of another")
        return Installed(Path(spec.origin).parent)

    def places(self) -> list[Found]:
        """Every place and how it stands."""
        return [found for file in FILES for found in edit.look(file, self._texts[file])]

    def recorder(self) -> State:
        """The recorder's folder: there is none, it is this package's, or something else."""
        folder = self.folder / RECORDER
        if not folder.exists():
            return State.ORIGINAL
        same = all(
            (folder / source.name).is_file()
            and (folder / source.name).read_bytes() == source.read_bytes()
            for source in _sources()
        )
        return State.PATCHED if same and (folder / NOTE).is_file() else State.OTHER

    def apply(self) -> None:
        """Patches every place, or none."""
        self._must_be(State.ORIGINAL, self.places())
        if self.recorder() is not State.ORIGINAL:
            raise Refused(
                f"{self.folder / RECORDER} is there already, and the places are not patched"
            )
        texts = {file: edit.apply(file, text) for file, text in self._texts.items()}
        note = {"vllm": self.version, "sha256": {f: _sha256(t) for f, t in self._texts.items()}}
        self._add_recorder(note)
        try:
            self._replace(texts)
        except OSError:
            self._remove_recorder()
            raise

    def undo(self) -> list[str]:
        """Takes the patch out, whole; names the files that are not now, byte for byte, as the patch
        once found them: somebody edited them elsewhere."""
        self._must_be(State.PATCHED, self.places())
        texts = {file: edit.undo(file, text) for file, text in self._texts.items()}
        before = self._note()
        self._replace(texts)
        self._remove_recorder()
        return [file for file, text in texts.items() if _sha256(text) != before.get(file)]

    def _note(self) -> dict:
        """File to digest, from before the patch; empty when the note is lost."""
        try:
            return json.loads((self.folder / RECORDER / NOTE).read_text())["sha256"]
        except (OSError, ValueError, KeyError):
            return {}

    def _must_be(self, wanted: State, places: list[Found]) -> None:
        others = [found for found in places if found.state is not wanted]
        if not others:
            return
        if all(found.state is State.PATCHED for found in places):
            raise Refused("this vLLM is patched already")
        if all(found.state is State.ORIGINAL for found in places):
            raise Refused("this vLLM is not patched")
        listed = "\n".join(map(str, others))
        raise Refused(f"not every place is as it should be; nothing was changed\n{listed}")

    def _add_recorder(self, note: dict) -> None:
        folder = self.folder / RECORDER
        new = Path(tempfile.mkdtemp(prefix=".opprof-", dir=folder.parent))
        try:
            for source in _sources():
                shutil.copyfile(source, new / source.name)
            (new / NOTE).write_text(json.dumps(note, indent=1) + "\n")
            new.chmod(folder.parent.stat().st_mode & 0o777)
            new.rename(folder)
        except OSError:
            shutil.rmtree(new, ignore_errors=True)
            raise

    def _remove_recorder(self) -> None:
        """Removes what was put there and what Python made of it; a foreign file stays, in its
        folder."""
        folder = self.folder / RECORDER
        if not folder.is_dir():
            return
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        for path in folder.iterdir():
            if path.suffix == ".py" or path.name == NOTE:
                path.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()

    def _replace(self, texts: dict[str, str]) -> None:
        """Replaces all files; when one fails, puts back those already replaced."""
        done = []
        try:
            for file, text in texts.items():
                _replace_file(self.folder / file, text)
                done.append(file)
        except OSError:
            for file in done:
                _replace_file(self.folder / file, self._texts[file])
            raise
        self._texts = texts


def _sources() -> list[Path]:
    return sorted(CORE.glob("*.py"))


def _replace_file(path: Path, text: str) -> None:
    handle, new = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(handle, "w", newline="") as file:
            file.write(text)
        shutil.copymode(path, new)
        os.replace(new, path)
    except OSError:
        Path(new).unlink(missing_ok=True)
        raise


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
