"""Compares the old and new schema of a tool, question or state, and classifies each change.

A new input schema must accept all instances of the old one, and a new output schema only instances of the old one. A
change is `compatible` if this is proved for the whole schema or for the edit, `breaking` if there is a counterexample,
and `may break` otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, Impact
from stubwright.diff.kinds import edits
from stubwright.diff.subsumption import cause, counterexample
from stubwright.diff.subsumption.annotations import are_same
from stubwright.diff.subsumption.memory import ProofMemory
from stubwright.diff.subsumption.orders import align
from stubwright.diff.subsumption.proof import SchemaValidator
from stubwright.jsonschema.instances.search import Budget

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.diff.kinds.edits import Edit

Direction: TypeAlias = Literal["input", "output"]

_STEPS: Final = 12_000
"""The step limit for the counterexample searches of one comparison."""

_STEPS_FOR_BLAME: Final = 2_000
"""The step limit for finding the keywords that prevent proofs, for all changes in one comparison."""

_EFFORT: Final = 1_000_000_000
"""The proof budget of one comparison. Each proof costs the square of the schemas' total length."""


@dataclass(frozen=True, slots=True)
class SchemaComparison:
    """Compares the old and new schema of one input or output."""

    subject: str
    direction: Direction
    old: ir.Schema
    new: ir.Schema
    old_formats: ir.Formats
    new_formats: ir.Formats
    shared: Mapping[str, tuple[Place | None, Place | None]]
    _budget: Budget = field(default_factory=lambda: Budget(_STEPS), init=False)
    _blame: Budget = field(default_factory=lambda: Budget(_STEPS_FOR_BLAME), init=False)
    _proofs: ProofMemory = field(default_factory=lambda: ProofMemory(_EFFORT), init=False)
    _culprits: list[str | None] = field(default_factory=list, init=False)
    """The keyword that prevents a proof, once searched for."""

    def compare(self) -> list[Change]:
        """Return all changes, in schema order."""
        return self._compare_formats() if are_same(self.old.wire, self.new.wire) else list(self._compare_edits())

    def _compare_formats(self) -> list[Change]:
        if self.old_formats == self.new_formats:
            return []
        old, new = self._get_validators()
        if self._fits(old, new):
            return []
        example = self._find_example(old, [new], [self.old.wire])
        return [self._change("SW508", "", "the meaning of `format` changed", (), (), self._impact(example), example)]

    def _compare_edits(self) -> Iterator[Change]:
        old, new = self._get_validators()
        dialect = new.dialect
        base = self.old.wire
        fits = self._fits(old, new)
        impacts: set[Impact] = set()
        is_shown = False
        if old.dialect is not dialect:
            base = {"$schema": dialect.uri, **{key: value for key, value in base.items() if key != "$schema"}}
            change = self._compare_dialects(old, SchemaValidator(base, self.old_formats), new, fits=fits)
            impacts.add(change.impact)
            yield change
        moved = align(base, self.new.wire, dialect)
        if are_same(base, moved):
            yield self._change("SW503", "", "only its order changed", (), (), "cosmetic")
            return
        # The reverse edit, applied to the new schema, removes the edit from it.
        undone = {(edit.new, edit.old): edit.edited for edit in edits.find_edits(moved, base, dialect)}
        steps = [*edits.find_edits(base, moved, dialect)]
        remaining = sum(edit.edited is not None for edit in steps)
        is_equal = fits and self._is_equal(old, new)
        for edit in steps:
            remaining -= edit.edited is not None
            # Reserve an equal share of the steps for each later edit.
            self._budget.reserve_for(remaining)
            without = undone.get((edit.old, edit.new))
            others = None if without is None else SchemaValidator(without, self.new_formats)
            change = self._classify_edit(edit, old, SchemaValidator(base, self.old_formats), new, others, fits=fits)
            if change.impact == "compatible" and edit.edited is not None:
                change = self._explain_harmless(change, is_equal=is_equal)
            impacts.add(change.impact)
            is_shown |= edit.opens and change.impact == "may break"
            yield change
        if not (fits or is_shown or "breaking" in impacts):
            example = self._find_example(old, [new], [*self._find_hints(old, new), self.old.wire, self.new.wire])
            if example is not None:
                message = "no single edit is known to break anything, but all edits together do"
                yield self._change("SW545", "", message, (), (), "breaking", example)
            elif "may break" not in impacts:
                message = "each edit alone is harmless, but it is not proved that all edits together are"
                yield self._change("SW545", "", message, (), (), "may break")

    def _classify_edit(
        self,
        edit: Edit,
        original: SchemaValidator,
        base: SchemaValidator,
        new: SchemaValidator,
        others: SchemaValidator | None,
        *,
        fits: bool,
    ) -> Change:
        """Classify an edit. `others` is the new schema without the edit, or None if the edit cannot be reverted."""

        def classify(impact: Impact, example: tuple[ir.Json] | None = None, why: str | None = None) -> Change:
            return self._change(edit.code, edit.where, edit.message, edit.old, edit.new, impact, example, why)

        if edit.edited is None:
            return replace(
                classify("words" if edit.words else "compatible" if edit.deprecates else "cosmetic"), words=edit.words
            )
        edited = SchemaValidator(edit.edited, self.new_formats)
        # An edit that removes a `$ref` target is impossible without other edits.
        is_possible = not edited.is_broken
        if fits or (is_possible and self._fits(base, edited)):
            if edit.code in ("SW532", "SW533") and self.direction == "input":
                return classify("may break", why="old calls stay valid; the server ignores the property")
            return classify("compatible")
        example = None
        if is_possible:
            hints = [*self._find_hints(base, edited), *self._find_hints(original, new), edit.edited, base.schema]
            example = self._find_example(original, [edited, new], hints)
        if example is None and others is not None and not others.is_broken:
            if self._fits(others, new):
                return classify("compatible")
            example = self._find_step(original, others, new)
        if edit.opens and self.direction == "input":
            why = "the old schema left this key open, so old calls may contain any value for it"
            return classify("may break", example, why)
        return classify(self._impact(example), example)

    def _explain_harmless(self, change: Change, *, is_equal: bool) -> Change:
        if is_equal:
            why = "both schemas accept the same values, so nothing changes for callers and handlers"
            return replace(change, help=change.help or why, is_equal=True)
        if change.code == "SW537" and self.direction == "output" and change.help is None:
            why = "results with other values are now rejected, so handlers must not return them; callers need no change"
            return replace(change, help=why)
        return change

    def _compare_dialects(
        self, old: SchemaValidator, base: SchemaValidator, new: SchemaValidator, *, fits: bool
    ) -> Change:
        names = f"the dialect changed from {old.dialect.name} to {base.dialect.name}"
        if fits or self._fits(old, base):
            return self._change("SW544", "", names, ("$schema",), ("$schema",), "compatible")
        example = self._find_example(old, [base, new], [self.old.wire])
        return self._change("SW544", "", names, ("$schema",), ("$schema",), self._impact(example), example)

    def _get_validators(self) -> tuple[SchemaValidator, SchemaValidator]:
        return SchemaValidator(self.old.wire, self.old_formats), SchemaValidator(self.new.wire, self.new_formats)

    def _is_decided(self, old: SchemaValidator, new: SchemaValidator) -> bool:
        return self._fits(old, new) or self._find_example(old, [new], [], self._blame) is not None

    def _fits(self, old: SchemaValidator, new: SchemaValidator) -> bool:
        return self._proofs.covers(new, old) if self.direction == "input" else self._proofs.covers(old, new)

    def _is_equal(self, old: SchemaValidator, new: SchemaValidator) -> bool:
        return self._proofs.covers(old, new) if self.direction == "input" else self._proofs.covers(new, old)

    def _find_hints(self, old: SchemaValidator, new: SchemaValidator) -> Sequence[Any]:
        wide, narrow = (new, old) if self.direction == "input" else (old, new)
        return self._proofs.find_rejected(wide, narrow)

    def _find_example(
        self,
        old: SchemaValidator,
        others: Sequence[SchemaValidator],
        hints: Sequence[Any],
        budget: Budget | None = None,
    ) -> tuple[ir.Json] | None:
        """Return an instance that `old` accepts and all `others` reject or, for outputs, the reverse."""
        if self.direction == "input":
            return counterexample.find([old], others, hints, budget or self._budget)
        return counterexample.find(others, [old], hints, budget or self._budget)

    def _find_step(self, old: SchemaValidator, others: SchemaValidator, new: SchemaValidator) -> tuple[ir.Json] | None:
        """Return an instance that the edit breaks when it is applied after all `others`."""
        if self.direction == "input":
            return counterexample.find([old, others], [new], self._find_hints(others, new), self._budget)
        return counterexample.find([new], [others, old], self._find_hints(others, new), self._budget)

    def _impact(self, example: tuple[ir.Json] | None) -> Impact:
        return "breaking" if example is not None else "may break"

    def _change(
        self,
        code: str,
        where: str,
        message: str,
        old: Sequence[str | int],
        new: Sequence[str | int],
        impact: Impact,
        example: tuple[ir.Json] | None = None,
        why: str | None = None,
    ) -> Change:
        evidence = None
        if example is not None:
            effect = (
                "was accepted and is now rejected"
                if self.direction == "input"
                else "was impossible and is now possible"
            )
            evidence = f"for example {counterexample.show(example[0])} {effect}"
        elif impact == "may break" and why is None:
            hope = "all old values are still accepted" if self.direction == "input" else "no new results are possible"
            if not self._culprits:
                self._culprits.append(cause.find_culprit(*self._get_validators(), self._is_decided))
            culprit = self._culprits[0]
            if culprit:
                because = f": `{culprit}` prevents a proof"
            else:
                because = ": the search for a counterexample took too long" if self._budget.steps <= 0 else ""
            evidence = f"could not prove or disprove that {hope}{because}"
        noun = "argument" if self.direction == "input" else "result"
        part = f", {noun} `{where}`" if where else f", {noun}s" if self.direction == "input" else f", {noun}"
        return Change(
            code,
            "wire",
            impact,
            self.subject + part,
            message,
            self._locate(self.old, old, 0),
            self._locate(self.new, new, 1),
            "; ".join(text for text in (why, evidence) if text) or None,
        )

    def _locate(self, schema: ir.Schema, pointer: Sequence[str | int], side: Literal[0, 1]) -> Place:
        """Return the location of a part of a schema. Bundled schemas are located in the shared schemas."""
        if len(pointer) > 1 and pointer[0] in ("$defs", "definitions"):
            name = schema.shared.get(f"#/{pointer[0]}/{pointer[1]}")
            place = self.shared.get(name, (None, None))[side] if name is not None else None
            if place is not None:
                return Place(place.file, (*place.pointer, *pointer[2:]))
        return Place(schema.place.file, (*schema.place.pointer, *pointer))
