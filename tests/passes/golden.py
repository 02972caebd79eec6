"""Printed forms kept in tests/golden.  FGRAD_UPDATE_GOLDEN=1 renews them: read them then."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


def assert_golden(name, text):
    """`text` is what tests/golden/<name> holds."""
    file = FOLDER / name
    if os.environ.get("FGRAD_UPDATE_GOLDEN") == "1":
        FOLDER.mkdir(exist_ok=True)
        file.write_text(text + "\n")
    assert file.read_text() == text + "\n", f"{file} differs: FGRAD_UPDATE_GOLDEN=1 renews it"
