"""Defines diagnostics and the table of their codes.

Stages yield diagnostics and never print them. A code that is not in the table is a bug and raises KeyError.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stubwright.diagnostics import excerpts
from stubwright.diagnostics.spans import Place, Span

Severity: TypeAlias = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Code:
    """A diagnostic code: a row in the table of codes."""

    id: str
    severity: Severity
    meaning: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A problem in the input.

    Attributes:
        code: The diagnostic code, such as `SW203`.
        message: What is wrong. Long quotations are truncated in the middle.
        at: The narrowest location of the problem.
        help: How to fix the problem. Long quotations are truncated in the middle.
    """

    code: str
    message: str
    at: Place | Span | None = None
    help: str | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(f"unknown diagnostic code {self.code}")
        object.__setattr__(self, "message", excerpts.truncate(self.message, excerpts.LINE))
        if self.help is not None:
            object.__setattr__(self, "help", excerpts.truncate(self.help, excerpts.CODE))

    @property
    def severity(self) -> Severity:
        """The severity of the diagnostic's code."""
        return CODES[self.code].severity


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether any diagnostic is an error, which stops the compiler."""
    return any(diagnostic.severity == "error" for diagnostic in diagnostics)


def _table(*rows: tuple[str, Severity, str]) -> dict[str, Code]:
    table = {code: Code(code, severity, meaning) for code, severity, meaning in rows}
    if len(table) != len(rows):
        raise ValueError("a diagnostic code is listed twice")
    return table


# SW0xx files and syntax, SW1xx structure, SW2xx schemas and meaning, SW3xx warnings, SW4xx generated files.
CODES = _table(
    ("SW001", "error", "A file cannot be read."),
    ("SW002", "error", "A file is not UTF-8 text."),
    ("SW003", "error", "A file is empty."),
    ("SW004", "error", "A file has a syntax error."),
    ("SW005", "error", "A mapping has a duplicate key."),
    ("SW006", "error", "A key is not a string."),
    ("SW007", "error", "A number cannot be represented in JSON."),
    ("SW008", "error", "A file is nested too deeply, or its aliases expand to too many values."),
    ("SW009", "error", "A file uses a YAML feature that JSON does not support."),
    ("SW010", "error", "A string contains half a surrogate pair."),
    ("SW011", "error", "An included or referenced file does not exist."),
    ("SW012", "error", "A file is outside the manifest's folder."),
    ("SW013", "error", "Files include each other in a cycle."),
    ("SW014", "error", "A file is included twice with the same prefix."),
    ("SW015", "error", "Too many files are included."),
    ("SW100", "error", "The manifest's format version is missing or unknown."),
    ("SW101", "error", "A required key is missing."),
    ("SW102", "error", "A value has the wrong type."),
    ("SW103", "error", "A key that stubwright defines is unknown."),
    ("SW104", "error", "A value is not one of the allowed values."),
    ("SW105", "error", "A value has the wrong format."),
    ("SW106", "error", "A key is not allowed in an included file."),
    ("SW108", "error", "A shorthand type is invalid."),
    ("SW201", "error", "An `inputSchema` does not describe an object."),
    ("SW202", "error", "The dialect of a schema is unknown."),
    ("SW203", "error", "A schema has an unknown type."),
    ("SW204", "error", "A keyword has a value that the schema's dialect does not allow."),
    ("SW205", "error", "A keyword is misspelled."),
    ("SW210", "error", "Two tools, prompts or resources have the same name."),
    ("SW211", "error", "Two tools, prompts, resources or questions would get the same Python name."),
    ("SW212", "error", "A class name is already used in the package."),
    ("SW213", "error", "A name cannot be a method name."),
    ("SW214", "error", "`python.package` cannot be imported."),
    ("SW215", "error", "`python.package` shadows another package."),
    ("SW216", "error", "`python.handlers` is not `module:Name`."),
    ("SW220", "error", "A reference cannot be resolved."),
    ("SW221", "error", "A reference points outside the manifest's folder."),
    ("SW222", "error", "A reference points to a URL, which is never fetched."),
    ("SW223", "error", "References form a cycle."),
    ("SW224", "error", "Schemas mix dialects."),
    ("SW225", "error", "A shared schema cannot be bundled."),
    ("SW226", "error", "An anchor or identifier is defined twice."),
    ("SW227", "error", "A pattern is not a valid regular expression."),
    ("SW228", "error", "The validator rejects a schema."),
    ("SW229", "error", "A required property is forbidden by the same schema."),
    ("SW230", "error", "`x-mcp-header` is not a valid header name."),
    ("SW231", "error", "Two properties have the same `x-mcp-header`."),
    ("SW232", "error", "`x-mcp-header` is on a property of the wrong type."),
    ("SW233", "error", "`x-mcp-header` is in a position where clients ignore it."),
    ("SW240", "error", "An example does not match its tool's schema."),
    ("SW241", "error", "An example has an output, but its tool has no `outputSchema`."),
    ("SW242", "error", "An example is `exact` but has no output."),
    ("SW243", "error", "An alias has expired: the server's version is newer than its `removeAfter`."),
    ("SW244", "error", "A version to compare is not a semantic version."),
    ("SW245", "error", "An alias has the name of a tool or another alias, or a name that MCP does not allow."),
    ("SW246", "error", "An alias renames two arguments to the same name."),
    ("SW250", "error", "`overlay` refers to a tool or API that does not exist."),
    ("SW251", "error", "`deprecated.use` refers to a tool that does not exist."),
    ("SW252", "error", "`x-handle` refers to a handle that is not declared."),
    ("SW253", "error", "A public cache cannot be combined with scopes."),
    ("SW254", "error", "A form cannot represent a question's schema."),
    ("SW255", "error", "A URI template is malformed, or a URI cannot be matched with it."),
    ("SW256", "error", "A resource's URI has no scheme."),
    ("SW257", "error", "Content is missing, defined twice, or invalid."),
    ("SW258", "error", "The manifest refers to an argument that does not exist."),
    ("SW259", "error", "A task setting is invalid, or its tool does not run as a task."),
    ("SW260", "error", "An HTTP call uses an argument that its tool does not have."),
    ("SW261", "error", "An HTTP call refers to an API that is not declared, or that is declared twice."),
    ("SW262", "error", "A URL of an HTTP call is invalid."),
    ("SW263", "error", "Credentials are incomplete or not declared."),
    ("SW264", "error", "An HTTP call has a setting that its method or section does not allow."),
    ("SW265", "error", "An HTTP call has a header that cannot be sent, or that an argument cannot set."),
    ("SW266", "error", "The manifest refers to a part that no response can have."),
    ("SW267", "error", "The page settings do not locate the next page."),
    ("SW268", "error", "An issuer or a resource in `auth` is not a URL, or does not use HTTPS."),
    ("SW269", "error", "An argument cannot be bound or must be bound, because of its schema or value."),
    ("SW270", "error", "A handle neither expires nor has an owner."),
    ("SW271", "error", "`x-handle` is on a schema that cannot be a handle ID."),
    ("SW272", "error", "A completion refers to a schema without a list of strings."),
    ("SW273", "error", "A tool cannot return pages, because of its schemas or its call."),
    ("SW274", "error", "A page for hosts does not exist, or has the wrong MIME type."),
    ("SW275", "error", "A folder under `skills` contains no skill, or a skill that is too large for hosts."),
    ("SW276", "error", "The frontmatter of a skill is missing, or does not follow Agent Skills."),
    ("SW280", "error", "A target rejects a tool name."),
    ("SW281", "error", "A target rejects an argument or property name."),
    ("SW282", "error", "A target rejects an input schema."),
    ("SW283", "error", "A target's limit is exceeded: the number of tools, a length, or a schema's size."),
    ("SW284", "error", "A target does not exist."),
    ("SW285", "error", "A toolset refers to a tool that does not exist."),
    ("SW286", "error", "A read-only toolset contains a tool that is not declared read-only."),
    ("SW287", "error", "A tool, a toolset or the server costs more than its budget."),
    ("SW288", "error", "JavaScript cannot parse a pattern in an `outputSchema`."),
    ("SW300", "warning", "A key is not defined by MCP."),
    ("SW301", "warning", "A pattern under `include` matches no file."),
    ("SW302", "warning", "A keyword has no effect in the schema's dialect."),
    ("SW303", "warning", "A keyword in an imported schema looks like a JSON Schema keyword but is not one."),
    ("SW310", "warning", "MCP does not allow a tool name."),
    ("SW311", "warning", "Several clients reject a tool name."),
    ("SW312", "warning", "A tool has no description."),
    ("SW313", "warning", "An input schema has a combination at its root."),
    ("SW320", "warning", "A default does not match its own schema."),
    ("SW321", "warning", "An example in a schema does not match that schema."),
    ("SW322", "warning", "A required property is forbidden in an alternative, or misspelled."),
    ("SW323", "warning", "Two bounds contradict each other."),
    ("SW324", "warning", "No valid arguments were found for a tool."),
    ("SW325", "warning", "JavaScript cannot parse a pattern in an `inputSchema` or in an imported file."),
    ("SW326", "warning", "An official SDK's client rejects or ignores part of an `outputSchema`."),
    ("SW330", "warning", "A tool's annotations contradict each other or the rest of its definition."),
    ("SW331", "warning", "A parameter that looks sensitive is sent in a header."),
    ("SW332", "warning", "Clients could fetch a resource directly."),
    ("SW333", "warning", "Clients reject an icon."),
    ("SW334", "warning", "An HTTP call does not use an argument."),
    ("SW335", "warning", "A policy redacts an argument that does not exist."),
    ("SW336", "warning", "No caller over HTTP can have the required scopes or claims."),
    ("SW337", "warning", "A handle's `idle` has no effect."),
    ("SW338", "warning", "No tool returns a handle, or no tool accepts it."),
    ("SW339", "warning", "A tool has no rate limit over HTTP."),
    ("SW340", "warning", "A field is newer than the oldest supported revision."),
    ("SW341", "warning", "A schema keeps references despite `wire: {refs: inlined}`."),
    ("SW342", "warning", "A setting is obsolete."),
    ("SW343", "warning", "A scope appears only once and looks like a misspelling of another scope."),
    ("SW344", "warning", "A completion offers a value that is not in its argument's `enum`."),
    ("SW345", "warning", "An attached file's name is not valid on every system."),
    ("SW346", "warning", "Clients drop some of an object's properties."),
    ("SW347", "warning", "A host ignores a `_meta` value."),
    ("SW348", "warning", "Two skills have the same name."),
    ("SW349", "warning", "A skill links to a missing file."),
    ("SW350", "warning", "A tool that writes does not declare the effect of repeated calls."),
    ("SW351", "warning", "Some clients reject an argument or property name."),
    ("SW352", "warning", "Some clients reject an input schema."),
    ("SW353", "warning", "Some clients' limit is exceeded."),
    ("SW354", "warning", "A target ignores part of an input schema or omits values."),
    ("SW355", "warning", "An argument declares a format that is not validated."),
    ("SW380", "warning", "`lint.ignore` lists an error code, but only warnings can be ignored."),
    ("SW381", "warning", "`lint.ignore` lists a code that does not exist."),
    ("SW391", "warning", "A client's manifest contains warnings about the server."),
    ("SW401", "error", "Two manifests generate the same file."),
    ("SW402", "error", "A generated file or a contract was edited by hand."),
    ("SW403", "error", "A file that stubwright did not write already exists."),
    ("SW404", "warning", "A file that is no longer generated was kept, because it or a file next to it was edited."),
    ("SW405", "error", "The lock or a contract cannot be read."),
    ("SW406", "error", "A file cannot be written."),
    ("SW407", "error", "A generated file does not match the manifest."),
    ("SW408", "error", "The output folder contains a link."),
    ("SW409", "error", "A generated model cannot be built."),
    ("SW412", "warning", "A generated file does not belong to any manifest."),
    ("SW420", "warning", "A handler method is missing."),
    ("SW421", "warning", "A handler method is no longer needed."),
    ("SW422", "warning", "A handler method has the wrong parameters or return type."),
    ("SW423", "warning", "`--stubs` cannot find the handwritten class."),
    ("SW424", "warning", "The handwritten module cannot be found."),
    ("SW425", "warning", "The handwritten module is not valid Python."),
    ("SW426", "warning", "The handwritten module does not contain the class in `python.handlers`."),
    ("SW427", "warning", "A handler method was renamed."),
    ("SW430", "warning", "An `async def` handler makes a call that blocks the event loop."),
    ("SW410", "error", "`[tool.stubwright]` in pyproject.toml is invalid, or does not match the published files."),
    ("SW411", "warning", "The project does not depend on a package that its server needs."),
    ("SW413", "warning", "The project and its server have different versions."),
    ("SW414", "warning", "A tool hint has no value or no reason."),
)
