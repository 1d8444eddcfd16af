"""From the serving thread to a file, without ever waiting for it.

The queue has a bound. When it is full the new record is dropped and counted, and the next one that
fits says how many are missing before it. One producer, one writer thread.

The writer flushes whenever the queue runs empty, and at the latest after a second or a mebibyte. A
flush hands the bytes to the kernel, which is enough to outlive a kill of the process; nothing is
synced.
"""

import logging
import queue
import threading
import time
from dataclasses import dataclass

from .files import Files
from .settings import Settings

logger = logging.getLogger("vllm.opprof")

QUEUE_RECORDS_MAX = 8192
FLUSH_AFTER_S = 1.0
# What `close` grants the writer. A server's own patience at shutdown is of this order.
CLOSE_WITHIN_S = 5.0


@dataclass(frozen=True)
class _End:
    """The last item of the queue: drops after the last record, and steps without an output."""

    dropped: int
    unfinalized: int


class Stream:
    """The queue and its writer thread. All methods are for the one serving thread."""

    def __init__(self, settings: Settings, engine_id: str) -> None:
        self._files = Files(settings, engine_id)
        self._queue: queue.SimpleQueue[tuple[bytes, int] | _End] = queue.SimpleQueue()
        # Steps missing since the last record that fitted; the recorder writes it into the next one.
        self.gap = 0
        self._high_watermark = 0
        self._broken = False
        self._thread = threading.Thread(target=self._write, name="takt-opprof", daemon=True)
        self._thread.start()

    @property
    def path(self):
        """The file being written."""
        return self._files.path

    def offer(self, line: bytes) -> None:
        """Queues a record that tells of `gap` missing ones, or drops it."""
        waiting = self._queue.qsize()
        # Nobody else puts, so that what is free now stays free.
        if waiting >= QUEUE_RECORDS_MAX or self._broken:
            self.gap += 1
            return
        self._queue.put((line, self.gap))
        self.gap = 0
        if waiting >= self._high_watermark:
            self._high_watermark = waiting + 1

    def close(self, unfinalized: int) -> None:
        """Lets the writer finish, footer included, for as long as `CLOSE_WITHIN_S`."""
        self._queue.put(_End(self.gap, unfinalized))
        self._thread.join(CLOSE_WITHIN_S)
        if self._thread.is_alive():
            logger.warning("opprof: the writer was not done in %s s: no footer", CLOSE_WITHIN_S)

    def _write(self) -> None:
        try:
            end = self._write_until_end()
            self._files.close(self._high_watermark, end.dropped, end.unfinalized)
        except OSError as error:
            # Offers turn into drops; what is queued is lost, as the missing footer tells.
            self._broken = True
            logger.error("opprof: cannot write %s, recording ends: %s", self.path, error)

    def _write_until_end(self) -> _End:
        flushed_at = time.monotonic()
        while True:
            item = self._queue.get()
            while item is not None:
                if isinstance(item, _End):
                    return item
                line, gap = item
                self._files.write(line, gap, self._high_watermark)
                if time.monotonic() - flushed_at >= FLUSH_AFTER_S:
                    self._files.flush()
                    flushed_at = time.monotonic()
                item = self._next_at_hand()
            self._files.flush()
            flushed_at = time.monotonic()

    def _next_at_hand(self):
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None
