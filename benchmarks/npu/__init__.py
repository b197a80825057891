"""The study behind docs/gpu-prefill-npu-decode.md: questions, their answers as stored, tables and pictures."""
