"""A picture that the program drew."""

from __future__ import annotations

import base64
import html
import os
import re
from pathlib import Path
from typing import Union


class Picture:
    """An SVG. A notebook shows it as an image, so that nothing in it is part of the page."""

    def __init__(self, svg: str) -> None:
        #: The SVG's text.
        self.svg = svg

    def __repr__(self) -> str:
        return f"Picture({self.describe()!r})"

    def describe(self) -> str:
        """What the picture says it shows."""
        found = re.search(r'aria-label="([^"]*)"', self.svg)
        return html.unescape(found[1]) if found else "a picture"

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes it to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.svg.encode()).decode()
        text = html.escape(self.describe(), quote=True)
        return f'<img alt="{text}" style="max-width:100%;background:#fff" src="data:image/svg+xml;base64,{data}">'
