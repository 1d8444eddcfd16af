"""The files of one stream: names, rotation, footers, compression.

Each file stands on its own: whole lines, and a footer that speaks of this file alone. A file that
would outgrow `max_bytes` is closed and compressed to `….jsonl.gz` by a thread of the lowest
priority; its plain text is removed only when the compressed file is complete. A kill leaves at
worst a torn last line in the file being written, and a `.part` beside a file that was being
compressed.
"""

import gzip
import logging
import os
import sys
import threading
import time
from collections import deque
from pathlib import Path

import msgspec

from .records import SCHEMA, Footer
from .settings import DIR, OpProfError, Settings

logger = logging.getLogger("vllm.opprof")

BUFFER_BYTES = 1 << 20
COPY_BYTES = 1 << 20
STOP_WITHIN_S = 1.0
# A footer's length with counts of 20 digits.
FOOTER_BYTES_MAX = 256


class Files:
    """Writes lines into one file after the other. For the writer thread, once made."""

    def __init__(self, settings: Settings, engine_id: str) -> None:
        self._settings = settings
        self._engine_id = engine_id
        self._compressor = Compressor()
        try:
            self._open()
        except OSError as error:
            raise OpProfError(
                f"{DIR}={settings.folder}: cannot be written: {error.strerror}"
            ) from error

    def write(self, line: bytes, gap: int, high_watermark: int) -> None:
        """Appends a record that tells of `gap` missing ones before it."""
        grown = self._bytes + len(line) + 1
        if self._records and grown + FOOTER_BYTES_MAX > self._settings.max_bytes:
            self._finish(high_watermark, unfinalized=0)
            self._compressor.add(self.path)
            self._open()
            grown = len(line) + 1
        self._file.write(line)
        self._file.write(b"\n")
        self._bytes = grown
        self._records += 1
        self._dropped += gap

    def flush(self) -> None:
        """Hands what is buffered to the kernel."""
        self._file.flush()

    def close(self, high_watermark: int, dropped: int, unfinalized: int) -> None:
        """Ends the last file. It stays as it is; one being compressed stays plain, too."""
        self._dropped += dropped
        self._finish(high_watermark, unfinalized)
        self._compressor.stop()

    def _open(self) -> None:
        name = f"opprof-v{SCHEMA}-{self._engine_id}-{time.time_ns()}.jsonl"
        self.path: Path = self._settings.folder / name
        self._file = open(self.path, "xb", buffering=BUFFER_BYTES)
        self._bytes = self._records = self._dropped = 0

    def _finish(self, high_watermark: int, unfinalized: int) -> None:
        footer = Footer(
            schema=SCHEMA,
            footer=True,
            engine_id=self._engine_id,
            encoded=self._records + self._dropped,
            written=self._records,
            dropped=self._dropped,
            queue_high_watermark=high_watermark,
            unfinalized=unfinalized,
        )
        self._file.write(msgspec.json.encode(footer) + b"\n")
        self._file.close()


class Compressor:
    """Compresses closed files, one at a time, on a thread that lives while there is work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Closed files only: as many as the disk holds.
        self._waiting: deque[Path] = deque()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def add(self, path: Path) -> None:
        """Takes a closed file."""
        with self._lock:
            self._waiting.append(path)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="takt-opprof-gzip", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Ends the work after the piece at hand. A thread that does not get to it on a busy machine
        ends with the process, and leaves its `.part`."""
        self._stop.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(STOP_WITHIN_S)

    def _run(self) -> None:
        _lowest_priority()
        while True:
            with self._lock:
                if not self._waiting or self._stop.is_set():
                    self._thread = None
                    return
                path = self._waiting.popleft()
            try:
                self._compress(path)
            except OSError as error:
                logger.warning("opprof: %s stays uncompressed: %s", path, error)

    def _compress(self, path: Path) -> None:
        packed = path.with_name(path.name + ".gz")
        part = path.with_name(packed.name + ".part")
        try:
            with open(path, "rb") as source, gzip.open(part, "wb", compresslevel=1) as sink:
                while piece := source.read(COPY_BYTES):
                    sink.write(piece)
                    if self._stop.is_set():
                        return
            os.replace(part, packed)
            path.unlink()
        finally:
            part.unlink(missing_ok=True)


def _lowest_priority() -> None:
    # On Linux, and there alone, priorities are of threads.
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
