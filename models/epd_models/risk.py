"""Sharing out a class's time and its risk over the pools on its way."""

from __future__ import annotations

from dataclasses import dataclass

from epd_models.request import RequestLoad

LEVEL_SHARES = {
    "encoded": (0.12, 0.3, 0.6),
    "prefilled": (0.5, 0.8, 0.94),
}
"""Levels of elapsed time at the hand-overs, as shares of the class's TTFT target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What one class is promised, in terms that pools can keep.

    Where an end-to-end target exists, its risk is shared equally by TTFT, interval and output length, and ``itl_s`` is
    one of several ways to share its time.

    Attributes
    ----------
    ttft_s, ttft_eps : float
        Time to first token and the share of requests that may exceed it.
    itl_s, itl_eps : float
        Mean interval of a request and the share of requests that may exceed it.
    """

    ttft_s: float
    ttft_eps: float
    itl_s: float
    itl_eps: float


_E2E_SHARES = (0.4, 0.6, 0.75, 0.85, 0.93)


def promises(load: RequestLoad) -> tuple[Promise, ...]:
    """Ways to keep the targets of a class: one without an end-to-end target, several with one."""
    targets = load.request.targets
    inf = float("inf")
    ttft = inf if targets.ttft_s is None else targets.ttft_s
    itl = inf if targets.itl_s is None else targets.itl_s
    ttft_eps, itl_eps = 1.0 - targets.ttft_probability, 1.0 - targets.itl_probability
    if targets.e2e_s is None:
        return (Promise(ttft_s=ttft, ttft_eps=ttft_eps, itl_s=itl, itl_eps=itl_eps),)
    output = load.request.output_tokens
    share = (1.0 - targets.e2e_probability) / (3.0 if output.varies else 2.0)
    gaps = output.quantile(1.0 - share) - 1.0
    result = []
    for portion in _E2E_SHARES if gaps > 0 else (0.0,):
        interval = min(itl, portion * targets.e2e_s / gaps) if gaps > 0 else itl
        result.append(
            Promise(
                ttft_s=min(ttft, targets.e2e_s - (gaps * interval if gaps > 0 else 0.0)),
                ttft_eps=min(ttft_eps, share),
                itl_s=interval,
                itl_eps=min(itl_eps, share),
            )
        )
    return tuple(dict.fromkeys(result))


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskShares:
    """Shares of a class's TTFT risk.

    Attributes
    ----------
    size_probability : float
        Quantile of request size at which each pool's own time is counted.
    wait_eps : float
        Probability with which each queue may exceed its planned wait.
    """

    size_probability: float
    wait_eps: float


def risk_shares(load: RequestLoad, eps: float, *, queues: int, pools: int) -> RiskShares:
    """Half of the risk goes to request size where sizes matter, the rest evenly to the queues.

    Parameters
    ----------
    eps : float
        Share of requests that may miss the TTFT target.
    queues, pools : int
        Queues and pools with an own time that depends on the request's size, over the class's whole way to its first
        token.
    """
    probability = 1.0 - eps / (2 * pools)
    varies = any(
        load.exceeds(values, load.quantile(values, probability)) > 0.0 for values in (load.prompt_uppers, load.image_counts)
    )
    size = eps / 2 if varies else 0.0
    return RiskShares(size_probability=probability if varies else 1.0, wait_eps=(eps - size) / queues)
