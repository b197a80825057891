"""Device performance models: what a stage costs on a device, and which pools that makes possible."""
