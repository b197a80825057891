"""Rows of the study: questions with their answers, asked once each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from npu import break_even
from npu.question import Question, answered, guessed_range, list_price

Row = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Asker:
    """Answers questions and remembers them."""

    known: dict[Question, Row] = field(default_factory=dict)
    solved: int = 0

    def answer(self, asked: Question) -> Row:
        """The figures of a question's plan."""
        if asked not in self.known:
            self.known[asked] = answered(asked)
            self.solved += 1
        return self.known[asked]

    def row(self, asked: Question) -> Row:
        """A row of the data file."""
        return {"asked": asked.stated(), **self.answer(asked)}

    def rows(self, questions: Iterable[Question]) -> list[Row]:
        """Rows of several questions."""
        return [self.row(asked) for asked in questions]

    def break_even(self, asked: Question, rival: Question, factor: float = 1.0) -> Row:
        """The NPU's price at which ``rival`` costs ``factor`` times as much as ``asked``; ``never`` where it does not even
        with a free one."""
        target = float(f"{self.answer(rival)['usd_per_hour'] / factor:.5g}")
        guessed = guessed_range(asked.npu)
        start = list_price(asked.npu, asked.rented) or (guessed[0] if guessed else 5.0)
        found = break_even.price(self.answer, asked, target, start)
        row: Row = {"asked": asked.stated(), "rival": rival.stated(), "usd_per_hour": target}
        if found is None:
            return {**row, "never": True}
        return {**row, "break_even": float(f"{found:.4g}")}

    def tariff(self, one: Question, other: Question) -> Row:
        """The electricity tariff at which two ways cost the same; ``never`` where one is cheaper from 0 to 1 $/kWh."""
        found = break_even.tariff(self.answer, one, other, 0.0, 1.0)
        row: Row = {"asked": one.stated(), "rival": other.stated()}
        return {**row, "never": True} if found is None else {**row, "tariff": float(f"{found:.3g}")}
