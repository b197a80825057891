"""Plans the fleets that serve multimodal language models."""
