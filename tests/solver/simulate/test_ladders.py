"""The twin meets published closed loops where the step times that it is given do."""

from __future__ import annotations

import pytest
from simulated.ladders import R1, R2, Ladder, closed_loop, ten_rounds


def simulated_ms(ladder: Ladder, clients: int) -> tuple[float, float]:
    spread, burst = (closed_loop(ladder, clients=clients, together=together) for together in (False, True))
    return ten_rounds(spread, burst)


@pytest.mark.parametrize("rung", [R2.rungs[0], R2.rungs[2], R2.rungs[4]], ids=str)
def test_intervals_and_first_tokens_of_a_published_ladder(rung: tuple[int, float, float]) -> None:
    """Qwen3-32B on two H100: intervals within 10 %, first tokens within 25 %."""
    clients, tpot_ms, ttft_ms = rung
    interval, first = simulated_ms(R2, clients)
    assert interval == pytest.approx(tpot_ms, rel=0.10)
    assert first == pytest.approx(ttft_ms, rel=0.25)


@pytest.mark.parametrize("rung", [R1.rungs[0], R1.rungs[3]], ids=str)
def test_intervals_of_eight_devices(rung: tuple[int, float, float]) -> None:
    """Llama-3.1-70B on eight H200: intervals within 10 %; first tokens: docs/simulation.md."""
    clients, tpot_ms, _ = rung
    assert simulated_ms(R1, clients)[0] == pytest.approx(tpot_ms, rel=0.10)
