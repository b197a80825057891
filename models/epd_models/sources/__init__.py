"""Where a time comes from: one file per source, one line each in :data:`SOURCES`."""
