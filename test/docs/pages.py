"""The pages of the documentation: their code blocks, links and headings."""

import pathlib
import re

SOURCES = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ("sh", "console")


class Block:
    """A fenced block: `language`, `text`, the `line` of its fence, and `number` among those of its language on the page."""

    def __init__(self, language, text, line, number):
        self.language, self.text, self.line, self.number = language, text, line, number

    def commands(self):
        """Its shell commands with what each must print; None for a block without output."""
        if self.language == "sh":
            joined = re.sub(r"\\\n\s*", "", self.text)
            return [(line, None) for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        found, ends = [], None
        for line in self.text.splitlines():
            if ends:  # a here-document
                found[-1] = (f"{found[-1][0]}\n{line}", [])
                ends = None if line == ends else ends
            elif line.startswith("$ "):
                found.append((line[2:], []))
                document = re.search(r"<<'(\w+)'$", line)
                ends = document and document[1]
            else:
                found[-1][1].append(line)
        return [(command, "\n".join(output)) for command, output in found]


class Page:
    def __init__(self, path):
        self.path = path
        self.name = str(path.relative_to(SOURCES))
        self.text = path.read_text(encoding="utf-8")
        self.blocks, counts = [], {}
        for match in re.finditer(r"^```([\w+-]*)\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL):
            language = match[1]
            counts[language] = counts.get(language, 0) + 1
            line = self.text.count("\n", 0, match.start()) + 1
            self.blocks.append(Block(language, match[2], line, counts[language]))
        self.prose = re.sub(r"^```.*?^```$", "", self.text, flags=re.MULTILINE | re.DOTALL)

    def block(self, language, number):
        return next(each for each in self.blocks if (each.language, each.number) == (language, number))

    def command_blocks(self):
        return [each for each in self.blocks if each.language in COMMANDS]

    def links(self):
        """Targets of its links that are not elsewhere on the web."""
        plain = re.sub(r"`[^`\n]*`", "`code`", self.prose)
        targets = re.findall(r"\]\(([^)\s]+)\)", plain)
        return [each for each in targets if not re.match(r"[a-z]+:", each)]

    def anchors(self):
        """The fragments that GitHub and GitLab give its headings."""
        found = set()
        for heading in re.findall(r"^#+ +(.*?) *$", self.prose, re.MULTILINE):
            heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
            anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            while anchor in found:
                anchor = re.sub(r"(?:-(\d+))?$", lambda match: f"-{int(match[1] or 0) + 1}", anchor, count=1)
            found.add(anchor)
        return found


def all_pages():
    paths = [SOURCES / "README.md", *sorted((SOURCES / "docs").rglob("*.md"))]
    return [Page(path) for path in paths]
