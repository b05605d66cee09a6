"""The shims are for the suites alone: they import what only those have."""

collect_ignore = ["shims"]
