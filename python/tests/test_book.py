"""What the page of the book shows runs, in order, on an archive that has the runs it names."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

from laboratory import RecordedCase

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


class BookTest(RecordedCase):
    def test_every_block_of_the_page_runs(self) -> None:
        blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
        self.assertGreaterEqual(len(blocks), 5)
        space: dict[str, Any] = {}
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.laboratory.home)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            for block in blocks:
                exec(compile(block, str(PAGE), "exec"), space)
        self.assertIn("memory-sweep pages=huge access", said.getvalue())
        self.assertIn("did you mean `before`?", said.getvalue())
        self.assertGreater(len(space["medians"]), 2)
        self.assertTrue((self.laboratory.home / "pages.svg").is_file())
