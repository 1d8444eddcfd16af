"""The switch and its neighbour, from the environment."""

import os
from dataclasses import dataclass
from pathlib import Path

DIR = "VLLM_OPPROF_DIR"
MAX_BYTES = "VLLM_OPPROF_MAX_BYTES"

MAX_BYTES_DEFAULT = 256 << 20
# Room for some records and the footer; a smaller number is a mistake in the unit.
MAX_BYTES_LEAST = 64 << 10


class OpProfError(ValueError):
    """The recorder cannot start; the text says why and what to change."""


@dataclass(frozen=True)
class Settings:
    """Where records go, and how large one file may become."""

    folder: Path
    max_bytes: int = MAX_BYTES_DEFAULT

    @staticmethod
    def from_env() -> "Settings | None":
        """`None` when the switch is unset or empty: then nothing at all is to happen."""
        folder = os.environ.get(DIR, "")
        if not folder:
            return None
        return Settings(_folder(folder), _max_bytes(os.environ.get(MAX_BYTES, "")))


def _folder(value: str) -> Path:
    folder = Path(value)
    if not folder.is_absolute():
        raise OpProfError(f"{DIR}={value}: the path is relative; give an absolute one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OpProfError(f"{DIR}={value}: cannot be made a folder: {error.strerror}") from error
    return folder


def _max_bytes(value: str) -> int:
    if not value:
        return MAX_BYTES_DEFAULT
    if not value.isascii() or not value.isdigit() or int(value) < MAX_BYTES_LEAST:
        raise OpProfError(
            f"{MAX_BYTES}={value}: must be a whole number, at least {MAX_BYTES_LEAST}"
        )
    return int(value)
