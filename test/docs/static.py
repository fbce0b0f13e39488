"""What can be said of the pages without running anything: links, translations, a table that speaks of every block."""

from pages import SOURCES

TRANSLATION = ".zh-CN.md"


def original_of(name):
    """The page that a translation translates: README's stands beside the pages."""
    name = name[: -len(TRANSLATION)] + ".md"
    return "README.md" if name == "docs/README.md" else name


def check_links(pages):
    by_path = {page.path: page for page in pages}
    for page in pages:
        for target in page.links():
            path, _, anchor = target.partition("#")
            file = (page.path.parent / path).resolve() if path else page.path
            if not file.exists():
                yield f"{page.name}: links to {target}, which does not exist"
            elif file.suffix != ".md" or SOURCES not in file.parents:
                if anchor:
                    yield f"{page.name}: {target} names a heading of a file without headings"
            elif anchor:
                known = by_path.get(file)
                if known is None:
                    yield f"{page.name}: {target} names a heading of a page that is not among the pages"
                elif anchor not in known.anchors():
                    yield f"{page.name}: {target}: no such heading"


def comparable(text, language):
    """Comments are translated; all else of a block is not."""
    marks = {"sh": "#", "cpp": "//", "yaml": "#", "cmake": "#"}
    mark = marks.get(language)
    if not mark:
        return text
    lines = (line.split(mark, 1)[0].rstrip() if "NOLINT" not in line else line for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def check_translations(pages):
    by_name = {page.name: page for page in pages}
    for page in pages:
        if not page.name.endswith(TRANSLATION):
            continue
        original = by_name.get(original_of(page.name))
        if original is None:
            yield f"{page.name}: there is no {original_of(page.name)}"
            continue
        if not any(link.endswith(page.path.name) for link in original.links()):
            yield f"{original.name}: no link to {page.name}"
        if not any(link.endswith(original.path.name) for link in page.links()):
            yield f"{page.name}: no link back to {original.name}"
        ours = [(block.language, comparable(block.text, block.language)) for block in page.blocks]
        theirs = [(block.language, comparable(block.text, block.language)) for block in original.blocks]
        if len(ours) != len(theirs):
            yield f"{page.name}: {len(ours)} code blocks, {original.name} has {len(theirs)}"
        for block, mine, its in zip(page.blocks, ours, theirs):
            if mine != its:
                yield f"{page.name}:{block.line}: not the code block of {original.name}"
        if page.prose.count("\n#") != original.prose.count("\n#"):
            yield f"{page.name}: other headings than {original.name}"


def check_table(pages, table):
    for page in pages:
        if page.name.endswith(TRANSLATION):
            continue  # its blocks are those of the original
        listed = table.get(page.name, {})
        first_lines = []
        for block in page.command_blocks():
            first = block.text.splitlines()[0]
            first_lines.append(first)
            entry = listed.get(first)
            if entry is None:
                yield f"{page.name}:{block.line}: test/docs/blocks.py does not know the block that begins with: {first}"
                continue
            wanted = entry.get("exit")
            if isinstance(wanted, list) and len(wanted) != len(block.commands()):
                yield f"{page.name}:{block.line}: {len(block.commands())} commands, test/docs/blocks.py says {len(wanted)}"
        for first in listed:
            if first_lines.count(first) != 1:
                yield f"test/docs/blocks.py: {page.name} has {first_lines.count(first)} blocks that begin with: {first}"
    for name in table:
        if name not in {page.name for page in pages}:
            yield f"test/docs/blocks.py: there is no page {name}"
