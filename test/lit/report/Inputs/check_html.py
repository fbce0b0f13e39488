"""check_html.py PAGE: is the page well-formed, complete and in need of nothing else? Says what it shows.

Every element that is opened is closed in order, ids are unique, every reference within the page has its goal,
and no attribute, style or script names anything outside. Prints, in the order of the page, what a reader sees
of the findings: titles, marked source, the boxes of the pictures.
"""

import html.parser
import re
import sys

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
REFERENCES = {"src", "href", "action", "poster", "data", "srcset", "xlink:href", "formaction", "background"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.problems, self.shown = [], [], []
        self.ids, self.goals = set(), set()
        self.texts = []

    def problem(self, text):
        self.problems.append(f"line {self.getpos()[0]}: {text}")

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.problem(f"<{tag}> has an attribute twice")
        values = dict(attrs)
        if "id" in values:
            if values["id"] in self.ids:
                self.problem(f"id {values['id']} is there twice")
            self.ids.add(values["id"])
        for name, value in attrs:
            if name.startswith("on"):
                self.problem(f"<{tag}> has a handler: {name}")
            if name in REFERENCES:
                if not value.startswith("#"):
                    self.problem(f"<{tag} {name}> leads outside: {value}")
                self.goals.add(value[1:])
            if name == "aria-labelledby":
                self.goals.update(value.split())
        if tag == "svg" and values.get("role") != "img":
            self.problem("a picture without a role")
        if tag in ("link", "iframe", "object", "embed", "base"):
            self.problem(f"<{tag}> on the page")
        if tag not in VOID:
            self.open.append((tag, values.get("class", "").split()))
            self.texts.append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.problem(f"</{tag}> closes {self.open[-1][0] if self.open else 'nothing'}")
            return
        name, classes = self.open.pop()
        text = self.texts.pop()
        if name in ("style", "script") and re.search(r"https?:|@import|url\(", text):
            self.problem(f"<{name}> names something outside")
        if name in ("h1", "h3", "mark", "ins", "del", "desc") or name == "pre":
            self.shown.append(f"{name}: {text}")
        if name == "text":
            self.shown.append(f"{classes[0] if classes else 'caption'}: {text}")
        if self.texts and name not in ("style", "script", "title", "desc"):
            self.texts[-1] += text + ("\n" if "row" in classes else "")

    def handle_data(self, data):
        if self.texts:
            self.texts[-1] += data


def main():
    with open(sys.argv[1], encoding="utf-8") as stream: # strict: the page is valid UTF-8
        source = stream.read()
    page = Page()
    page.feed(source)
    page.close()
    page.problems += [f"<{tag}> is not closed" for tag, _ in page.open]
    page.problems += [f"#{goal} is nowhere" for goal in sorted(page.goals - page.ids)]
    if not source.startswith("<!DOCTYPE html>"):
        page.problems.append("no doctype")
    print("\n".join(page.shown))
    if page.problems:
        sys.exit("\n".join(page.problems))
    print("the page is complete")


main()
