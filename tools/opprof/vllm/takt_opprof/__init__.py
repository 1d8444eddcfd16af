"""What every scheduler step of a vLLM server was made of, written down while it serves.

Two ways into the server, one recorder:

- `--scheduler-cls takt_opprof.OpProfScheduler`: a plugin; nothing of vLLM is changed
  (`scheduler.py`).
- `python -m takt_opprof.patch apply`: edits an installed vLLM 0.24.0 and can undo itself (`patch`).

Both do nothing at all unless `VLLM_OPPROF_DIR` names a folder. `core` is the recorder. It needs
neither vLLM nor anything else of this package, and so importing this package does not import vLLM,
either.
"""

__all__ = ["OpProfScheduler"]


def __getattr__(name: str):
    if name == "OpProfScheduler":
        from .scheduler import OpProfScheduler

        return OpProfScheduler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
