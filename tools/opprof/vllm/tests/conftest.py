import logging

import pytest

from takt_opprof.core.settings import DIR, MAX_BYTES


@pytest.fixture(autouse=True)
def no_switch(monkeypatch):
    """No test depends on the environment it is started in."""
    monkeypatch.delenv(DIR, raising=False)
    monkeypatch.delenv(MAX_BYTES, raising=False)


@pytest.fixture(autouse=True)
def logs_are_seen(monkeypatch):
    """vLLM, when a test has imported it, keeps its loggers to itself."""
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
