"""The command line of the patch."""

import argparse
import sys
from pathlib import Path

from .edit import State
from .installed import RECORDER, Installed, Refused


def main(arguments: list[str] | None = None) -> int:
    """Exit codes: 0 it is as asked (`check`: patched), 1 it is not, and why is printed."""
    parser = argparse.ArgumentParser(prog="python -m takt_opprof.patch")
    parser.add_argument("verb", choices=["apply", "check", "undo"])
    parser.add_argument(
        "--vllm", type=Path, help="the package folder; default: the one installed here"
    )
    asked = parser.parse_args(arguments)
    try:
        installed = Installed(asked.vllm) if asked.vllm else Installed.here()
        return {"apply": _apply, "check": _check, "undo": _undo}[asked.verb](installed)
    except (Refused, OSError) as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1


def _apply(installed: Installed) -> int:
    installed.apply()
    print(f"patched vLLM {installed.version} at {installed.folder}")
    return 0


def _check(installed: Installed) -> int:
    places = installed.places()
    for found in places:
        print(found)
    recorder = installed.recorder()
    word = {
        State.ORIGINAL: "not there",
        State.PATCHED: "this package's",
        State.OTHER: "not this package's",
    }[recorder]
    print(f"{RECORDER}: {word}")
    whole = all(state is State.PATCHED for state in (recorder, *(f.state for f in places)))
    print("patched" if whole else "not patched, or not by this package")
    return 0 if whole else 1


def _undo(installed: Installed) -> int:
    others = installed.undo()
    print(f"took the patch out of vLLM {installed.version} at {installed.folder}")
    for file in others:
        print(f"{file}: the patch is out, and the file is not known to be as it was before it")
    if (installed.folder / RECORDER).exists():
        print(f"{RECORDER}: stays, since files are in it that the patch did not bring")
    return 0


if __name__ == "__main__":
    sys.exit(main())
