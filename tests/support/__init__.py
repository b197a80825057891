"""What several tests share: small random planning problems, and plain documents to start from."""
