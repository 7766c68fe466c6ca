"""Build the website from README.md, docs/ and the pages next to them, into build/site/.

    python docs/website.py ZENSICAL

ZENSICAL is the program that converts Markdown to HTML; `make site` installs it. Each build copies the pages listed in
docs/website.toml to build/pages/, and adds generated ones: the gallery, llms.txt and llms-full.txt. The build fails if
a link does not resolve, or if a page would fetch anything from elsewhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CONFIGURATION: Final = Path(__file__).with_suffix(".toml")
BUILD: Final = ROOT / "build"
PAGES: Final = BUILD / "pages"
SITE: Final = BUILD / "site"
GALLERY: Final = "gallery/index.md"
PICTURES: Final = frozenset({".png", ".svg"})
"""Files that are copied, since pages show them."""

_FENCE: Final = re.compile(r"^( *)```(\S*) *(.*)")
_ITEM: Final = re.compile(r"^(?:[-*]|\d+\.) +")
_LINK: Final = re.compile(r"(?:\[([^\[\]]*))?\]\(([\w./-]+)((?:#[\w-]+)?)\)")
_CODE: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_FETCHED: Final = frozenset({"icon", "manifest", "modulepreload", "preconnect", "preload", "stylesheet"})
_TAB: Final = 4  # the indentation that Python-Markdown requires below a list item


@dataclass(frozen=True, slots=True)
class Group:
    """A navigation group, or the front page, which has no group title."""

    title: str
    paths: tuple[str, ...]


def navigation(entries: Iterable[str | Mapping[str, Sequence[str]]]) -> list[Group]:
    """Return the navigation groups with the paths of their pages, relative to the repository's root."""
    listed = []
    for entry in entries:
        if isinstance(entry, str):
            listed.append(Group("", (entry,)))
        else:
            listed += [Group(title, tuple(paths)) for title, paths in entry.items()]
    return listed


def adapt(text: str, path: str, pages: Iterable[str], source: str | None) -> str:
    """Convert a page from GitHub's Markdown to Zensical's, which is Python-Markdown.

    Fences get their file names as titles. The contents of a list item are indented by four, and an item after a second
    paragraph is preceded by an empty line. Code in tables has no escaped pipes. Links to files that are not pages start
    with `source`, the repository URL; if it is None, their text replaces them.

    Raises FileNotFoundError if there is no such file, and ValueError if a link's text cannot replace it.
    """
    lines: list[str] = []
    fence, indent, apart = "", 0, False  # a list item is `apart` once it has more than one paragraph
    for line in text.splitlines():
        item = _ITEM.match(line)
        opened = _FENCE.match(line)
        if opened and not fence:
            fence = f"{opened[1]}```"
            indent = indent if opened[1] else 0
            title = f' title="{opened[3]}"' if opened[3] else ""
            line = f"{fence}{opened[2]}{title}"
        elif fence:
            fence = "" if line.rstrip() == fence else fence
        else:
            line = _LINK.sub(lambda link: _resolve(link, path, pages, source), line)
            if line.lstrip().startswith("|"):
                line = _CODE.sub(lambda code: code[0].replace("\\|", "|"), line)
            if item:
                if indent and apart and lines[-1]:
                    lines.append("")  # otherwise the item would continue that paragraph
                indent, apart = len(item[0]), False
            elif not line:
                apart = True
            elif not line.startswith(" "):
                indent = 0
        if indent and line and not item:
            line = " " * (_TAB - indent) + line
        lines.append(line)
    return "\n".join(lines) + "\n"


def _resolve(match: re.Match[str], path: str, pages: Iterable[str], source: str | None) -> str:
    text, link, anchor = match.groups()
    there = (ROOT / path).parent.joinpath(link).resolve()
    inside = there.relative_to(ROOT).as_posix()
    if inside in pages:
        return match[0]
    if not there.exists():
        raise FileNotFoundError(f"{path} links to {link}, which does not exist")
    if there.suffix in PICTURES:
        return match[0]
    if source is not None:
        address = f"{source}/{'tree' if there.is_dir() else 'blob'}/main/{inside}{anchor}"
        return f"{'' if text is None else f'[{text}'}]({address})"
    if text is None:
        raise ValueError(f"{path}: write the whole link to {link} on one line, with no link or picture in its text")
    return str(text)


def title(text: str) -> str:
    """Return the heading of a page, without its markup."""
    return _plain(text.partition("\n")[0].removeprefix("# "))


def summary(text: str) -> str:
    """Return the first sentence of a page's first paragraph, or nothing if it has none."""
    text = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for paragraph in text.split("\n\n"):
        paragraph = " ".join(paragraph.split())
        if paragraph and not re.match(r"[#|>]|[-*] |\d+\. ", paragraph):
            sentence = re.match(r".*?[.?](?= |$)", paragraph)
            return re.sub(r":$", ".", _plain(sentence[0] if sentence else paragraph))
    return ""


def _plain(text: str) -> str:
    return re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text).replace("**", "")


def llms(listed: Sequence[Group], texts: Mapping[str, str], address: str) -> str:
    """Return llms.txt: the title and a line about the project, then a line for each page (https://llmstxt.org).

    Links start with `address`, the site's URL; without it, they are relative to the file.
    """
    front = texts["README.md"]
    lines = [f"# {title(front)}", "", f"> {summary(front)}"]
    for group in listed:
        if group.title:
            lines += ["", f"## {group.title}", ""]
            for path in group.paths:
                about = summary(texts[path])
                lines.append(f"- [{title(texts[path])}]({address}{path})" + (f": {about}" if about else ""))
    return "\n".join(lines) + "\n"


def gallery(folder: Path) -> str:
    """Run `stubwright docs` on the examples, writing to a folder, and return a page with links to the output."""
    subprocess.run([sys.executable, "-m", "stubwright", "docs", "--output", folder], cwd=ROOT, check=True)
    lines = [
        "# Gallery",
        "",
        "The pages that [`stubwright docs`](../docs/publishing.md#web-pages) makes of "
        "[the examples](../examples/README.md).",
        "",
    ]
    for page in sorted(folder.glob("*.html")):
        text = page.read_text("utf-8")
        name = re.findall(r"<title>(.*?)</title>", text)[0]
        figures = re.findall(r"<li><b>(\d+)</b> ([a-z ]+)</li>", text)
        lines.append(f"- [{unescape(name)}]({page.name}): {', '.join(f'{number} {noun}' for number, noun in figures)}")
    return "\n".join(lines) + "\n"


class _Fetched(HTMLParser):
    """Collects the addresses that a page fetches from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "link" and _FETCHED.isdisjoint(values.get("rel", "").split()):
            return
        address = values.get("href" if tag == "link" else "src", "")
        if re.match(r"(https?:)?//", address):
            self.addresses.append(address)


def foreign(site: Path) -> Iterator[str]:
    """Yield each external address from which a page fetches something."""
    for page in sorted(site.rglob("*.html")):
        parser = _Fetched()
        parser.feed(page.read_text("utf-8"))
        yield from (f"{page.relative_to(site)}: {address}" for address in parser.addresses)


def main() -> None:
    """Build the site."""
    configuration = tomllib.loads(CONFIGURATION.read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    source = project.get("urls", {}).get("Repository")
    listed = navigation(configuration["project"]["nav"])
    paths = [path for group in listed for path in group.paths]
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    (PAGES / GALLERY).parent.mkdir(parents=True)
    texts = {path: (ROOT / path).read_text("utf-8") for path in paths if path != GALLERY}
    texts[GALLERY] = gallery((PAGES / GALLERY).parent)
    for path, text in texts.items():
        (PAGES / path).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / path).write_text(text if path == GALLERY else adapt(text, path, paths, source), "utf-8")
    for picture in (found for found in CONFIGURATION.parent.iterdir() if found.suffix in PICTURES):
        shutil.copy(picture, PAGES / CONFIGURATION.parent.name)
    shutil.copy(CONFIGURATION.with_suffix(".css"), PAGES)
    shutil.copy(CONFIGURATION, BUILD)
    program = Path(sys.argv[1]).resolve()
    subprocess.run([program, "build", "--strict", "--clean", "--config-file", BUILD / CONFIGURATION.name], check=True)
    for path in paths:  # llms.txt links to these
        shutil.copy(PAGES / path, SITE / path)
    (SITE / "llms.txt").write_text(llms(listed, texts, configuration["project"].get("site_url", "")), "utf-8")
    (SITE / "llms-full.txt").write_text("\n".join(texts[path] for path in paths), "utf-8")
    if addresses := [*foreign(SITE)]:
        sys.exit("\n".join(["fetched from elsewhere:", *addresses]))


if __name__ == "__main__":
    main()
