"""Diagnostics, and the one table of their codes.

Stages yield diagnostics and never print. A code that is not in the table is a bug, so it raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolwright.diagnostics import excerpts
from toolwright.diagnostics.spans import Place, Span

Severity: TypeAlias = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Code:
    """A row of the table: what the code means, and whether it stops the compiler."""

    id: str
    severity: Severity
    meaning: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `message` says what is wrong, `help` how to fix it; `at` is the narrowest place there is.

    Of what a user wrote, both hold excerpts alone: what is longer than a line is cut in its middle.
    """

    code: str
    message: str
    at: Place | Span | None = None
    help: str | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(f"unknown diagnostic code {self.code}")
        object.__setattr__(self, "message", excerpts.bounded(self.message, excerpts.LINE))
        if self.help is not None:
            object.__setattr__(self, "help", excerpts.bounded(self.help, excerpts.CODE))

    @property
    def severity(self) -> Severity:
        """Error or warning, from the table."""
        return CODES[self.code].severity


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether one of them stops the compiler."""
    return any(diagnostic.severity == "error" for diagnostic in diagnostics)


def _table(*rows: tuple[str, Severity, str]) -> dict[str, Code]:
    table = {code: Code(code, severity, meaning) for code, severity, meaning in rows}
    if len(table) != len(rows):
        raise ValueError("a diagnostic code is listed twice")
    return table


# TW0xx files and syntax, TW1xx structure, TW2xx schemas and meaning, TW3xx warnings, TW4xx generated files.
CODES = _table(
    ("TW001", "error", "A file cannot be read."),
    ("TW002", "error", "A file is not UTF-8 text."),
    ("TW003", "error", "A file is empty."),
    ("TW004", "error", "The syntax is broken."),
    ("TW005", "error", "A mapping has the same key twice."),
    ("TW006", "error", "A key is not a string."),
    ("TW007", "error", "JSON cannot represent a number."),
    ("TW008", "error", "A file is nested too deeply, or its aliases expand to too much."),
    ("TW009", "error", "A file uses a feature of YAML that JSON does not have."),
    ("TW010", "error", "A string contains half a surrogate pair."),
    ("TW011", "error", "A file that is included or referred to does not exist."),
    ("TW012", "error", "A file is outside the manifest's folder."),
    ("TW013", "error", "Files include each other in a circle."),
    ("TW014", "error", "A file is included twice with the same prefix."),
    ("TW015", "error", "Too many files are included."),
    ("TW100", "error", "The manifest's format version is missing or unknown."),
    ("TW101", "error", "A required key is missing."),
    ("TW102", "error", "A value has the wrong type."),
    ("TW103", "error", "A key of toolwright's own is unknown."),
    ("TW104", "error", "A value is not one of those allowed."),
    ("TW105", "error", "A value does not have the right form."),
    ("TW106", "error", "A key is not allowed in an included file."),
    ("TW201", "error", "An `inputSchema` is not for an object."),
    ("TW202", "error", "The dialect of a schema is unknown."),
    ("TW203", "error", "A schema names a type that does not exist."),
    ("TW204", "error", "A keyword has a value that its dialect does not allow."),
    ("TW205", "error", "A keyword is misspelt."),
    ("TW210", "error", "Two tools, prompts or resources have the same name."),
    ("TW211", "error", "Two tools, prompts, resources or questions would get the same name in Python."),
    ("TW212", "error", "The name of a class is already used for something else in the package."),
    ("TW213", "error", "A name cannot be a method's name."),
    ("TW214", "error", "`python.package` cannot be imported."),
    ("TW215", "error", "`python.package` hides another package."),
    ("TW216", "error", "`python.handlers` is not `module:Name`."),
    ("TW220", "error", "A reference does not resolve."),
    ("TW221", "error", "A reference points outside the manifest's folder."),
    ("TW222", "error", "A reference points to a URL, which is never fetched."),
    ("TW223", "error", "References form a cycle."),
    ("TW224", "error", "Schemas of different dialects are mixed."),
    ("TW225", "error", "A shared schema cannot be bundled here."),
    ("TW226", "error", "An anchor or identifier is given twice."),
    ("TW227", "error", "A pattern is not a regular expression."),
    ("TW228", "error", "The validator rejects a schema."),
    ("TW229", "error", "A required property is forbidden by the same schema."),
    ("TW230", "error", "`x-mcp-header` is not the name of a header."),
    ("TW231", "error", "Two properties have the same `x-mcp-header`."),
    ("TW232", "error", "`x-mcp-header` is on a property of the wrong type."),
    ("TW233", "error", "`x-mcp-header` is in a place where clients do not look for it."),
    ("TW240", "error", "An example is rejected by its own tool's schema."),
    ("TW241", "error", "An example has an output, but its tool has no `outputSchema`."),
    ("TW242", "error", "An example is `exact` without an output."),
    ("TW250", "error", "`overlay` names a tool or an API that does not exist."),
    ("TW251", "error", "`deprecated.use` names a tool that does not exist."),
    ("TW252", "error", "`x-handle` names a handle that is not declared."),
    ("TW253", "error", "A public cache cannot be combined with scopes."),
    ("TW254", "error", "A question's schema has something that a form cannot ask."),
    ("TW255", "error", "A URI template is malformed, or cannot be matched."),
    ("TW256", "error", "A resource's URI has no scheme."),
    ("TW257", "error", "Content is missing, given twice, or in the wrong form."),
    ("TW258", "error", "The manifest names an argument that does not exist."),
    ("TW259", "error", "A setting for tasks is on a tool that does not run as a task, or is not possible there."),
    ("TW260", "error", "An HTTP call uses an argument that its tool does not have."),
    ("TW261", "error", "An HTTP call names an API that is not declared, or that is declared twice."),
    ("TW262", "error", "A URL cannot be called."),
    ("TW263", "error", "Credentials are incomplete, or not declared."),
    ("TW264", "error", "Part of an HTTP call does not fit its method or its place."),
    ("TW265", "error", "A header of an HTTP call cannot be sent, or may not be filled from an argument."),
    ("TW266", "error", "The manifest names part of a response that no response can have."),
    ("TW267", "error", "The settings for pages do not lead to the next page."),
    ("TW268", "error", "An issuer or a resource of `auth` is not a URL, or not one that can be trusted."),
    ("TW269", "error", "An argument cannot be bound: other keywords of the schema use it, or its value does not fit."),
    ("TW270", "error", "A handle never expires, and has no owner."),
    ("TW271", "error", "`x-handle` is in a place where there cannot be an id of a handle."),
    ("TW280", "error", "A target refuses the name of a tool."),
    ("TW281", "error", "A target refuses the name of an argument or a property."),
    ("TW282", "error", "A target refuses an input schema."),
    ("TW283", "error", "A target's bound is exceeded: of a number of tools, a length, or the size of a schema."),
    ("TW284", "error", "There is no such target."),
    ("TW285", "error", "A toolset names a tool that does not exist."),
    ("TW286", "error", "A read-only toolset names a tool that is not said to be read-only."),
    ("TW287", "error", "A tool, a toolset or the server costs more than its budget."),
    ("TW300", "warning", "A key beside MCP's own is unknown."),
    ("TW301", "warning", "A pattern under `include` matches no file."),
    ("TW302", "warning", "A keyword has no effect in the schema's dialect."),
    ("TW303", "warning", "A keyword of an imported schema looks like one of JSON Schema, but is not."),
    ("TW310", "warning", "A tool's name is not one that MCP allows."),
    ("TW311", "warning", "Several clients reject a tool's name."),
    ("TW312", "warning", "A tool has no description."),
    ("TW313", "warning", "An input schema has a combination at its root."),
    ("TW320", "warning", "A default is rejected by its own schema."),
    ("TW321", "warning", "An example in a schema is rejected by that schema."),
    ("TW322", "warning", "A required property is forbidden in an alternative, or misspelt."),
    ("TW323", "warning", "Two bounds contradict each other."),
    ("TW324", "warning", "No arguments were found that a tool accepts."),
    ("TW330", "warning", "Annotations contradict each other."),
    ("TW331", "warning", "A parameter that looks sensitive is sent in a header."),
    ("TW332", "warning", "Clients could fetch a resource themselves."),
    ("TW333", "warning", "Clients reject an icon."),
    ("TW334", "warning", "An HTTP call does not use an argument."),
    ("TW335", "warning", "A policy redacts an argument that does not exist."),
    ("TW336", "warning", "Scopes or claims are required that no caller over HTTP can have."),
    ("TW337", "warning", "A handle's `idle` has no effect."),
    ("TW338", "warning", "No tool returns a handle, or no tool takes it."),
    ("TW339", "warning", "Nothing limits how often a tool is called over HTTP."),
    ("TW340", "warning", "A field is newer than the oldest supported revision."),
    ("TW341", "warning", "A schema keeps references despite `wire: {refs: inlined}`."),
    ("TW342", "warning", "A setting is no longer needed."),
    ("TW351", "warning", "Some clients reject the name of an argument or a property."),
    ("TW352", "warning", "Some clients reject an input schema."),
    ("TW353", "warning", "The bounds of some clients are exceeded."),
    ("TW354", "warning", "A target ignores a keyword of an input schema."),
    ("TW380", "warning", "`lint.ignore` names an error."),
    ("TW381", "warning", "`lint.ignore` names a code that does not exist."),
    ("TW391", "warning", "A client's manifest has warnings about the server."),
    ("TW401", "error", "Two manifests generate the same file."),
    ("TW402", "error", "A generated file was edited by hand."),
    ("TW403", "error", "A file that toolwright did not write is in the way."),
    (
        "TW404",
        "warning",
        "A file is no longer generated, but was edited or is next to edited files, and stays.",
    ),
    ("TW405", "error", "The lock cannot be read."),
    ("TW406", "error", "A file cannot be written."),
    ("TW407", "error", "A generated file does not match the manifest."),
    ("TW408", "error", "There is a link below the output folder."),
    ("TW409", "error", "A generated model cannot be built."),
    ("TW412", "warning", "A generated file belongs to no manifest."),
    ("TW420", "warning", "A handler method is missing."),
    ("TW421", "warning", "A handler method is no longer needed."),
    ("TW422", "warning", "A handler method has the wrong parameters or return type."),
    ("TW423", "warning", "`--stubs` cannot find the handwritten class."),
    ("TW424", "warning", "The handwritten module cannot be found."),
    ("TW425", "warning", "The handwritten module is not valid Python."),
    ("TW426", "warning", "The handwritten module does not contain what `python.handlers` names."),
    ("TW427", "warning", "A handler method has another name now."),
    ("TW428", "warning", "A handwritten module imports a name that its package does not have."),
    ("TW429", "warning", "A handler uses an attribute that its context does not have."),
    ("TW410", "error", "`[tool.toolwright]` in pyproject.toml is wrong."),
    ("TW411", "warning", "The project does not depend on what its server needs."),
)
