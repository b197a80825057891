"""Should the encoder have its own GPUs? The study behind docs/encoder-separation.md, one table a file."""
