"""A server's page: a single, self-contained HTML file.

Manifest text is escaped, with invisible characters shown as code points; descriptions are Markdown. A content security
policy allows only the page's own style and script, identified by digest.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup

from stubwright import package_data, tokens
from stubwright.docs import markdown
from stubwright.docs.texts import escape_invisible, split_name
from stubwright_runtime.mcp import revisions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stubwright.docs.views import View

GENERATOR: Final = '<meta name="generator" content="stubwright docs">'
"""The marker that distinguishes our pages from other files."""

_TITLE: Final = re.compile("<title>(.*?)</title>", re.DOTALL)
_INDEX_STYLE: Final = "body { font: 1rem/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto }"
_BRIEF: Final = 200
"""The maximum length of a description shown next to a name."""


def render(view: View) -> str:
    """Render a server's page."""
    return render_page("docs", view, revisions=revisions.REVISIONS, unit=tokens.name_unit())


def render_page(folder: str, view: View, *, policy: str = "", data: Any = None, **values: Any) -> str:
    """Render a server's page from the template, style and script in a folder, and the shared assets.

    Args:
        folder: The folder below the templates with `page.html.jinja`, `style.css` and `script.js`.
        policy: Additional content security policy directives.
        data: JSON data for the script.
        values: Additional variables for the template.
    """
    style = "\n".join((_read_asset("docs", "base.css"), _read_asset(folder, "style.css")))
    script = "\n".join((_read_asset("docs", "theme.js"), _read_asset(folder, "script.js")))
    own = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        _make_environment()
        .get_template(f"{folder}/page.html.jinja")
        .render(
            view=view,
            data=Markup(_escape_data(data)),  # noqa: S704 - no markup is left in it
            style=Markup(style),  # noqa: S704 - our own, as the next two are
            script=Markup(script),  # noqa: S704
            generator=Markup(GENERATOR),  # noqa: S704
            policy=f"{own}; {policy}" if policy else own,
            **values,
        )
    )


def render_index(pages: Mapping[str, str]) -> str:
    """Render a page that links to server pages, which are keyed by file name."""
    titles = [(name, Markup(_TITLE.findall(text)[0])) for name, text in pages.items()]  # noqa: S704 - escaped there
    return (
        _make_environment()
        .get_template("docs/index.html.jinja")
        .render(
            pages=titles,
            style=Markup(_INDEX_STYLE),  # noqa: S704 - our own, as the next is
            generator=Markup(GENERATOR),  # noqa: S704
            policy=f"default-src 'none'; style-src '{_digest(_INDEX_STYLE)}'; base-uri 'none'; form-action 'none'",
        )
    )


def _format_name(text: str) -> Markup:
    """Return a name in which lines can break after separators. A copy of the text does not contain the breaks."""
    return Markup("<wbr>").join(split_name(text))


def _format_code(text: str) -> Markup:
    parts = text.split("`")
    shaped = (Markup("<code>{}</code>") if at % 2 else Markup("{}") for at in range(len(parts)))
    return Markup("").join(shape.format(escape_invisible(part)) for shape, part in zip(shaped, parts, strict=True))


def _read_asset(folder: str, name: str) -> str:
    return (package_data.TEMPLATES / folder / name).read_text("utf-8")


def _escape_data(value: Any) -> str:
    """Escape JSON for a script element (HTML, "Restrictions for contents of script elements")."""
    return json.dumps(value).replace("<", "\\u003c")


def _digest(text: str) -> str:
    """Return a CSP hash source for an inline script or style (Content Security Policy Level 3, 6.7.2.3)."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _make_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(package_data.TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
        finalize=lambda value: (
            escape_invisible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
    )
    environment.filters["ticks"] = _format_code
    environment.filters["name"] = _format_name
    environment.filters["markdown"] = markdown.render_html
    environment.filters["brief"] = lambda text: markdown.shorten(text, _BRIEF)
    environment.globals["code"] = markdown.render_block
    environment.filters["thousands"] = lambda number: f"{number:,}"
    return environment
