"""Operating points of queues that differ only in speed are the same ones."""

from __future__ import annotations

import pytest

from epd_models.queueing import ServiceMoments
from epd_models.staffing import StaffedQueue, staffed_queues, strict_tau

RATES = {"chat": 12.0, "summary": 8.0}


def _staffed(speed: float) -> list[StaffedQueue]:
    """A pool whose services take ``1 / speed`` of a reading pool's time, at rates and waits that grow and shrink with it."""
    services = [
        ServiceMoments(name="chat", values=(0.05 / speed, 0.3 / speed), weights=(0.6, 0.4)),
        ServiceMoments(name="summary", values=(0.2 / speed, 1.0 / speed), weights=(0.7, 0.3)),
    ]
    rates = {name: rate * speed for name, rate in RATES.items()}
    tau = strict_tau(services, 0.17 / speed)
    return staffed_queues(services, [tau], rates, tail=0.025, servers_per_replica=1, limit=5)[0]


@pytest.mark.parametrize("speed", [0.1, 2.0, 30.0])
def test_points_do_not_depend_on_the_unit_of_time(speed: float) -> None:
    """As many replicas for as much work, however long a second is beside a service."""
    for one, other in zip(_staffed(1.0), _staffed(speed), strict=True):
        assert other.point.minimum_servers == one.point.minimum_servers
        fast = {name: rate * speed for name, rate in RATES.items()}
        need, fast_need = (max(row.need(rates) for row in q.rows) for q, rates in ((one, RATES), (other, fast)))
        assert need == pytest.approx(fast_need, rel=1e-6)
