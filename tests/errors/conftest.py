"""The programs raise errors when they are imported: they are run by test_golden.py alone."""

collect_ignore = ["programs"]
