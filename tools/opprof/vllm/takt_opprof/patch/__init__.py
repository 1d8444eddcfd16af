"""The in-place patch: vLLM 0.24.0 with the recorder built in.

    python -m takt_opprof.patch apply | check | undo  [--vllm FOLDER]

It edits three files, adds the recorder as `vllm/v1/opprof`, and takes all of it out again. Every
place is checked before anything is written: another version, or a place that is neither original
nor patched, is refused. The reason to patch, when there is the plugin: graph statistics need no
option of their own, any scheduler class records, and `VLLM_OPPROF_DIR` is a variable that vLLM
knows.
"""
