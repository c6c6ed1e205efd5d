"""What notebooks show is well-formed, has the figures of the command line, and no name in it is markup."""

from __future__ import annotations

import base64
import re
import unittest
from html.parser import HTMLParser
from typing import Optional
from xml.etree import ElementTree

import perflab

from laboratory import HOSTILE, RecordedCase

#: Elements without an end.
VOID = {"img", "br"}

#: What the package writes; a name that is markup would add another.
WRITTEN = {
    "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "p", "ul", "li", "code", "details", "summary",
    "img", "br",
}  # fmt: skip


class Page(HTMLParser):
    """Its texts, its elements, and the SVGs of its images."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.texts: list[str] = []
        self.images: list[tuple[str, ElementTree.Element]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        if self.open:
            raise AssertionError(f"left open: {self.open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Optional[str]]]) -> None:
        self.elements.add(tag)
        about = dict(attrs)
        if any(name.startswith("on") for name in about):
            raise AssertionError(f"a handler: {attrs}")
        if tag == "img":
            data = (about["src"] or "").split("base64,", 1)[1]
            self.images.append((about["alt"] or "", ElementTree.fromstring(base64.b64decode(data))))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes another")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


class HtmlTest(RecordedCase):
    def show(self, value: object) -> Page:
        page = Page(value._repr_html_())  # type: ignore[attr-defined]
        self.assertLessEqual(page.elements, WRITTEN)
        return page

    def test_no_name_is_markup(self) -> None:
        hostile = self.archive.runs(label=HOSTILE)[0]
        shown = [hostile, self.archive.runs(), self.archive, self.archive.compare("before", HOSTILE), hostile.facts]
        for value in shown[:4]:
            page = self.show(value)
            self.assertTrue(any(HOSTILE in text for text in page.texts), page.texts)
        self.show(shown[4])
        for picture in (self.show(hostile).images, self.show(shown[3]).images):
            for _, svg in picture:
                tags = {element.tag.rsplit("}", 1)[-1] for element in svg.iter()}
                self.assertNotIn("script", tags)

    def test_a_comparison_shows_the_figures_of_the_command_line(self) -> None:
        found = self.archive.compare("before", by="pages")
        page = self.show(found)
        (text,) = found.row_texts
        assert text is not None
        for part in text:
            self.assertTrue(any(part in shown for shown in page.texts), (part, page.texts))
        ((label, svg),) = page.images
        self.assertIn(text.change, label)
        circle = next(element for element in svg.iter() if element.tag.endswith("circle"))
        (row,) = found.rows
        assert row.change is not None
        # Right of the middle is more, left is less.
        self.assertEqual(float(circle.attrib["cx"]) > 110, row.change.value > 0)

    def test_a_run_shows_its_iterations_as_the_program_draws_them(self) -> None:
        run = self.run_of("before")
        page = self.show(run)
        self.assertEqual(len(page.images), 1)
        drawn = self.archive.plot("strip", run, by="pages").svg
        self.assertEqual(
            [element.tag for element in page.images[0][1].iter()],
            [element.tag for element in ElementTree.fromstring(drawn).iter()],
        )

    def test_long_lists_say_what_they_leave_out(self) -> None:
        many = perflab.Runs(list(self.archive.runs()) * 20)
        page = self.show(many)
        self.assertTrue(any(re.search(r"80 runs, the latest 50", text) for text in page.texts))


if __name__ == "__main__":
    unittest.main()
