"""The recorder: from a scheduler's step to a line in a file.

    schedule()  enter ── counters of the prefix caches
                begin ── snapshot of the step, before any state moves  (composition)
    update      finalize ── the same step's output is here: encode     (recorder)
                   │ bounded queue, never waits                        (stream)
                   ▼
                writer thread ── file, rotation, compression           (files)

This folder stands alone: relative imports and `msgspec`, nothing of vLLM. Schedulers are looked at,
never imported or changed. The in-place patch copies the folder as it is to `vllm/v1/opprof`.
"""

from .recorder import Recorder, start
from .settings import OpProfError, Settings

__all__ = ["OpProfError", "Recorder", "Settings", "start"]
