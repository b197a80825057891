"""Waiting in a pool of replicas with least-loaded routing, as rows that are affine in the flows.

A pool of n servers that take the next waiting request when they fall idle is a GI/G/n queue. At an *operating point*
everything that is not linear is fixed, and the pool keeps its promise P(W > t_c) <= eps_c, t_c = tau ln(1 / eps_c), for
every class c as long as a few rows hold:

- ``work``: slope * sum x_c E[S_c] + setup * y <= n,
- ``burst``: sum x_c r_c(theta) / (theta**2 spread) <= n, where r_c(theta) = g_c(theta) - theta E[S_c] and
  g_c(theta) = (E[exp(theta S_c)]**scv_c - 1) / scv_c is the growth rate of the work that class c brings (exact for
  renewal arrivals with Gamma gaps; theta**2 E[S_c**2] / 2 to second order),
- ``peak``: as ``work`` for classes whose arrivals are burstier than the point was made for,
- ``minimum``: minimum_replicas * y <= n.

``burst`` makes the waiting time fall at least as fast as exp(-(n - A) t / spread) while that rate per server is below
theta; ``work`` is the tangent, at the flow the point was made for, of the capacity at which
P(all servers busy) * exp(-(n - A) t / spread) reaches eps. The first factor is Erlang's C at (n / z, A / z), z the
peakedness of the arrivals (Hayward). A tangent of a concave curve is safe at every flow, so an operating point never
depends on the flows. docs/queueing.md compares this with simulation.

References
----------
Janssen, van Leeuwaarden, Zwart, "Gaussian expansions and bounds for the Poisson distribution applied to the Erlang B
formula", Adv. Appl. Prob. 40 (2008): the closed form of Erlang's C. Whitt, "Heavy-traffic approximations for service
systems with blocking", AT&T BLTJ 63 (1984): peakedness. Neuts and Takahashi, Z. Wahrsch. 57 (1981): the decay rate of
GI/PH/n. Kingman, "Inequalities in the theory of queues", JRSS B 32 (1970): the exponential bound for one server.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from epd_models.row import Row

Array = NDArray[np.float64]

#: Factor on Erlang's C that covers service less variable than exponential (measured, docs/queueing.md).
_PREFACTOR = 1.6
#: Tried values of theta * n * tau; 0 promises on the probability of waiting at all.
_TILTS = np.array([0.0, 0.07, 0.16, 0.32, 0.55, 0.8, 1.0, 1.2, 1.6, 2.2])
#: A larger tilt gives up some of the best size to hold from less than half of it on.
_WIDE_TILT = np.array([2.4])
#: Fractions of the wait at which the residual service of a full pool is looked at.
_FRACTIONS = np.array([0.15, 0.35, 0.55, 0.8, 1.0])
_LARGEST_EXPONENT = 500.0
#: Work variance of a stream without any (equal services at equal gaps), as a share of its second moment: keeps ratios
#: defined and asks for nothing that counts.
_LEAST_SPREAD = 1e-6
#: Servers per Erlang from which a burst load only says that the point is not for this class: its share of the work
#: stays below 1e-5, which no promise notices.
_FORBIDDING = 1e5
#: Summed relative excess over the pools looked at that one more point must save.
_LEAST_GAIN = 0.01


@dataclass(frozen=True, kw_only=True)
class ServiceMoments:
    """Service of one class on one server of a pool.

    Attributes
    ----------
    name : str
        Class.
    values, weights : tuple of float
        Ascending service times in seconds and their probabilities. The service is the request's whole work: images
        that come together are inside it.
    scv : float
        Squared coefficient of variation of the gaps between arrivals; 1 is Poisson.
    """

    name: str
    values: tuple[float, ...]
    weights: tuple[float, ...]
    scv: float = 1.0

    def times(self, factor: float) -> ServiceMoments:
        """The same service, every time of it ``factor`` times as long."""
        return ServiceMoments(
            name=self.name, values=tuple(value * factor for value in self.values), weights=self.weights, scv=self.scv
        )

    @cached_property
    def mean(self) -> float:
        """E[S], s."""
        return math.fsum(v * w for v, w in zip(self.values, self.weights, strict=True))

    @cached_property
    def second(self) -> float:
        """E[S**2], s**2."""
        return math.fsum(v * v * w for v, w in zip(self.values, self.weights, strict=True))

    @cached_property
    def peakedness(self) -> float:
        """Variance over mean of the number in service if no request ever waited; 1 for Poisson arrivals.

        1 + (scv - 1) E[min(S, S')] / E[S] with S' an independent copy of S (limit of many servers).
        """
        values, weights = self._arrays
        surviving = 1.0 - np.concatenate(([0.0], np.cumsum(weights)[:-1]))
        overlap = float(surviving**2 @ np.diff(values, prepend=0.0)) / self.mean
        return 1.0 + (self.scv - 1.0) * overlap

    @cached_property
    def _arrays(self) -> tuple[Array, Array]:
        return np.array(self.values), np.array(self.weights)

    def _log_moment(self, theta: Array) -> Array:
        """ln E[exp(theta S)], infinite where it would overflow."""
        values, weights = self._arrays
        exponent = theta * values[-1] * max(self.scv, 1.0)
        safe = np.where(exponent < _LARGEST_EXPONENT, theta, 0.0)
        result: Array = np.log(np.exp(safe[..., None] * values) @ weights)
        return np.where(exponent < _LARGEST_EXPONENT, result, np.inf)

    def excess(self, theta: Array) -> Array:
        """r(theta) / theta**2: half the work variance per request of its arrival stream, s**2, tilted by theta (1/s)."""
        log_moment = self._log_moment(theta)
        growth = log_moment if self.scv == 0 else np.expm1(self.scv * log_moment) / self.scv
        limit = (self.second + (self.scv - 1.0) * self.mean**2) / 2.0
        small = theta * self.values[-1] * max(self.scv, 1.0) < 1e-4
        tilt = np.where(small, 1.0, theta)
        least = _LEAST_SPREAD * self.second
        return np.maximum(np.where(small, limit, (growth - theta * self.mean) / tilt**2), least)

    def own_burst(self, theta: Array) -> Array:
        """Log of the factor by which this class, arriving in bursts, sees more waiting work than an outside observer."""
        if self.scv <= 1.0:
            return np.zeros_like(theta)
        log_moment = self._log_moment(theta)
        finite = np.isfinite(log_moment) & (log_moment > 1e-9)
        safe = np.where(finite, log_moment, 1.0 / self.scv)
        ratio = np.log(np.expm1(self.scv * safe) / (self.scv * np.expm1(safe)))
        return np.where(np.isinf(log_moment), np.inf, np.where(finite, ratio, 0.0))


def erlang_c(servers: Array, load: Array) -> Array:
    """Probability that an arrival finds all servers busy in M/M/n, for any real number of servers.

    Janssen, van Leeuwaarden and Zwart (2008): never below the exact value at integer sizes, above it by at most
    8 % at one server and less than 1 % from ten servers up. One where the load reaches the servers.
    """
    ratio = np.clip(load / servers, 1e-300, 1.0)
    half_square = np.maximum(servers * (ratio - 1.0 - np.log(ratio)), 0.0)
    gaussian = 1.0 - 0.5 * _erfc(np.sqrt(half_square))
    idle = np.sqrt(2.0 * math.pi * servers) * gaussian * np.exp(np.minimum(half_square, _LARGEST_EXPONENT)) + 2.0 / 3.0
    result: Array = 1.0 / (ratio + (1.0 - ratio) * idle)
    return result


def _erfc(x: Array) -> Array:
    """Complementary error function of x >= 0, to 1.2e-7 of its value (Numerical Recipes, 2nd ed., section 6.2)."""
    t = 1.0 / (1.0 + 0.5 * x)
    series = np.full_like(t, _ERFC_SERIES[0])
    for coefficient in _ERFC_SERIES[1:]:
        series = series * t + coefficient
    result: Array = t * np.exp(series - x * x)
    return result


_ERFC_SERIES = (
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807,
    -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mixes:
    """What the tail of the waiting time needs to know of mixes of classes beyond their work and their variance.

    Shape (mixes, 1, 1), ``own`` with the classes in front. ``wait``: what a request may wait for, s; ``batch``: requests of
    its own burst that an arrival of the burstiest class finds; ``own``: share of the factor of
    ``ServiceMoments.own_burst`` that applies; ``residual``: log of P(residual service > x) at ``ages``, ages last.
    """

    wait: Array
    peakedness: Array
    batch: Array
    batch_tail: Array
    short_spread: Array
    own: Array
    ages: Array
    residual: Array
    fresh: Array


def _mixes(services: Sequence[ServiceMoments], rates: Array, wait: Array) -> _Mixes:
    """Of mixes given by their rates, shape (mixes, classes), each with some work, and by their waits, shape (mixes,).
    Bursts of every class count, also of one that a mix leaves out: it may flow all the same."""
    means = np.array([s.mean for s in services])
    seconds = np.array([s.second for s in services])
    scv = np.array([s.scv for s in services])
    peaks = np.array([s.peakedness for s in services])
    work, total = rates @ means, rates.sum(axis=1)
    peak = np.maximum(1.0, rates @ (means * peaks) / work)
    # A stream alone sees its bursts inside the peakedness of the pool; one among smooth streams sees them on top.
    above = np.where(peaks > 1.0, peaks - 1.0, 1.0)
    inside = np.where(peaks > 1.0, np.minimum(1.0, (peak[:, None] - 1.0) / above), 1.0)
    bursts = np.maximum(0.0, scv - 1.0) / 2.0
    mean, second = work / total, rates @ seconds / total
    waits, which = np.unique(wait, return_inverse=True)
    ages = waits[:, None] * _FRACTIONS
    over, beyond = np.zeros((len(services), *ages.shape)), np.full(ages.shape, -np.inf)
    for c, service in enumerate(services):
        values, weights = service._arrays
        over[c] = np.tensordot(weights, np.maximum(values[:, None, None] - ages, 0.0), axes=1)
        if service.scv > 1.0:
            outlasting = np.tensordot(weights, values[:, None, None] > ages, axes=1)
            beyond = np.maximum(beyond, np.log(np.maximum(outlasting, 1e-300)))
    residual = np.log(np.maximum(np.einsum("mc,cma->ma", rates, over[:, which]) / work[:, None], 1e-300))
    fresh = np.maximum(residual, beyond[which])
    return _Mixes(
        wait=wait[:, None, None],
        peakedness=peak[:, None, None],
        batch=(bursts * (1.0 - inside / 2.0)).max(axis=1)[:, None, None],
        batch_tail=np.full((len(rates), 1, 1), bursts.max()),
        short_spread=(0.5 * np.maximum(0.0, 2.0 - second / mean**2) * np.maximum(0.0, mean - wait))[:, None, None],
        own=(1.0 - inside).T[:, :, None, None],
        ages=ages[which][:, None, None, :],
        residual=residual[:, None, None, :],
        fresh=fresh[:, None, None, :],
    )


def _log_tail(mix: _Mixes, depth: float, servers: Array, load: Array, rate: Array, own: Array) -> Array:
    """Log of the bound on P(W > wait), to be compared with ``-depth``; shape (mixes, sizes, tilts).

    A wait is that long when all servers are busy and stay so through residual services, then through a queue. The
    share ``just_begun`` of the services may have begun together with a burst.
    ``rate`` is the decay rate per server and second, ``own`` the log of the burst factor.
    """
    burst = mix.batch_tail * depth / servers
    free = servers - mix.batch - burst
    busy = erlang_c(np.maximum(free, 1e-9) / mix.peakedness, load / mix.peakedness)
    log_busy = np.minimum(0.0, np.log(np.where(free > 0, _PREFACTOR * busy, 1.0)))
    just_begun = np.minimum(burst, 1.0)[..., None]
    held = (1.0 - just_begun) * mix.residual + just_begun * mix.fresh + rate[..., None] * mix.ages
    held = np.maximum(0.0, held.max(axis=-1))
    result: Array = log_busy + np.minimum(0.0, own + servers * (held - rate * mix.wait))
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPoint:
    """An operating point of a pool that promises P(W > tau ln(1 / eps_c)) <= eps_c to each class, eps_c >= tail.

    Attributes
    ----------
    kind : {"tail", "no_wait"}
        Whether it relies on the decay of the waiting time, or only on the probability of waiting.
    tau : float
        Seconds of waiting promised per factor e of probability.
    tail : float
        Smallest probability promised.
    slope : float
        Servers per Erlang of offered load.
    setup : float
        Servers that an open pool needs on top.
    theta, spread : float
        Tilt (1/s) and bound of the work variance (s); 0 for "no_wait".
    peakedness : float
        Peakedness of arrivals that ``slope`` covers.
    minimum_servers : int
        Smallest number of servers for which the promise was derived.
    servers_per_replica : int
        Servers in one replica.
    """

    kind: str
    tau: float
    tail: float
    slope: float
    setup: float
    theta: float
    spread: float
    peakedness: float
    minimum_servers: int
    servers_per_replica: int = 1

    @property
    def minimum_replicas(self) -> int:
        """Smallest open pool, in replicas."""
        return max(1, math.ceil(self.minimum_servers / self.servers_per_replica))

    def wait(self, probability: float) -> float:
        """Seconds that a class waits at most with this probability.

        Raises
        ------
        ValueError
            The point does not promise that much.
        """
        if 1.0 - probability < self.tail * (1.0 - 1e-9):
            raise ValueError(f"promises up to probability {1.0 - self.tail:g}, asked for {probability:g}")
        return self.tau * math.log(1.0 / (1.0 - probability))

    def rows(self, services: Sequence[ServiceMoments]) -> tuple[Row, ...]:
        """Rows on the replicas of the pool; the classes' services must be those the point was made for."""
        share = 1.0 / self.servers_per_replica
        work = {s.name: self.slope * s.mean * share for s in services}
        rows = [Row(kind="work", load=tuple(work.items()), setup=self.setup * share)]
        if self.theta > 0:
            tilt = np.array(self.theta)
            load = tuple((s.name, min(float(s.excess(tilt)) / self.spread, _FORBIDDING * s.mean) * share) for s in services)
            rows.append(Row(kind="burst", load=load))
        peaks = {s.name: s.peakedness / self.peakedness for s in services}
        if max(peaks.values()) > 1.0 + 1e-9:
            load = tuple((name, value * peaks[name]) for name, value in work.items())
            rows.append(Row(kind="peak", load=load, setup=self.setup * share))
        if self.minimum_replicas > 1:
            rows.append(Row(kind="minimum", load=(), setup=float(self.minimum_replicas)))
        return tuple(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rays:
    """Points made for pools of ``sizes`` that serve the share ``scale`` of a mix's rates, shape (mixes, sizes)."""

    sizes: Array
    scale: Array
    theta: Array
    spread: Array


@dataclass(frozen=True, kw_only=True)
class _Search:
    """Mixes of classes to staff, rates of shape (mixes, classes), each for a wait per factor e of its own, ``tau`` of shape
    (mixes, 1, 1): decides whether sizes keep the promise when they serve shares of a mix's rates. Sizes and tilts have
    shape (mixes, sizes, tilts). What is found for a mix depends on it alone."""

    services: Sequence[ServiceMoments]
    rates: Array
    mix: _Mixes
    tau: Array
    depth: float

    @cached_property
    def work(self) -> Array:
        """Erlangs of each whole mix, shape (mixes, 1, 1)."""
        work: Array = self.rates @ np.array([service.mean for service in self.services])
        return work[:, None, None]

    def variance(self, theta: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Half the work variance of the whole mixes, the burst factor's log, and where both are finite."""
        half, own = np.zeros_like(theta), np.zeros_like(theta)
        for service, rates, shares in zip(self.services, self.rates.T, self.mix.own, strict=True):
            flows = np.flatnonzero(rates > 0)
            half[flows] += rates[flows, None, None] * service.excess(theta[flows])
            if (bursts := np.flatnonzero(shares > 0)).size:
                own[bursts] = np.maximum(own[bursts], shares[bursts] * service.own_burst(theta[bursts]))
        usable = np.isfinite(half) & np.isfinite(own)
        return np.where(usable, half, 1.0), np.where(usable, own, 0.0), usable

    def excess_tail(self, servers: Array, load: Array, theta: Array, spread: Array, own: Array) -> Array:
        """Log of the bound on P(W > t) over what is promised; ``own`` belongs to ``theta``."""
        rate = np.minimum((servers - load) / ((spread + self.mix.short_spread) * servers), theta)
        burst = own * rate / np.where(theta > 0, theta, 1.0)
        return _log_tail(self.mix, self.depth, servers, load, rate, burst) + self.depth

    def whole(self) -> Array:
        """Servers that each whole mix needs, at its best tilt, shape (mixes,)."""

        def keeps(servers: Array) -> NDArray[np.bool_]:
            size = np.repeat(servers[:, :, None], len(_TILTS), axis=2)
            theta = _TILTS / (size * self.tau)
            half, own, usable = self.variance(theta)
            load = np.broadcast_to(self.work, size.shape)
            tail = self.excess_tail(size, load, np.where(usable, theta, 0.0), half / size, own)
            return np.asarray((tail <= 0).any(axis=2))

        low = np.maximum(self.work[:, 0, 0], 1e-9)
        high = self.work[:, 0, 0] + 1.0
        while not (kept := keeps(high[:, None])[:, 0]).all():
            low, high = np.where(kept, low, high), np.where(kept, high, 2.0 * high)
        for _ in range(2):
            # The first of evenly spaced sizes that keeps the promise, and the one before it.
            sizes = low[:, None] + (high - low)[:, None] * _PARTS
            first = np.argmax(np.append(keeps(sizes), np.ones((len(low), 1), dtype=bool), axis=1), axis=1)
            edges = np.concatenate((low[:, None], sizes, high[:, None]), axis=1)
            mixes = np.arange(len(low))
            low, high = edges[mixes, first], edges[mixes, first + 1]
        return high

    def best(self, sizes: Array) -> _Rays:
        """The tilt that serves most of the mix, for each size, and then the same with a wide tilt for each size."""
        tilts = np.concatenate((_TILTS, _WIDE_TILT))
        servers = np.repeat(sizes[:, :, None], len(tilts), axis=2)
        theta = tilts / (servers * self.tau)
        half, own, usable = self.variance(theta)
        theta = np.where(usable, theta, 0.0)

        low, high = np.zeros_like(servers), servers / self.work
        for _ in range(14):
            scale = (low + high) / 2.0
            spread = np.maximum(scale * half / servers, 1e-300)
            kept = self.excess_tail(servers, scale * self.work, theta, spread, own) <= 0
            low, high = np.where(kept, scale, low), np.where(kept, high, scale)

        def picked(values: Array) -> Array:
            parts = (values[:, :, : len(_TILTS)], where), (values[:, :, len(_TILTS) :], wide)
            return np.concatenate([np.take_along_axis(part, at, axis=2)[:, :, 0] for part, at in parts], axis=1)

        where = np.argmax(low[:, :, : len(_TILTS)], axis=2)[:, :, None]
        wide = np.argmax(low[:, :, len(_TILTS) :], axis=2)[:, :, None]
        return _Rays(
            sizes=np.concatenate((sizes, sizes), axis=1),
            scale=picked(low),
            theta=picked(theta),
            spread=picked(low * half / servers),
        )


_PARTS = np.arange(1, 16) / 16.0


def _tangents(search: _Search, rays: _Rays, wanted: NDArray[np.bool_], largest: Array) -> Iterator[tuple[int, WaitingPoint]]:
    """Operating points of the rays where ``wanted``, each with the number of its mix: tangents of the needed size against
    the load, with the sizes from which they hold, looked at up to eight times the ``largest`` of a mix, shape (mixes,).

    Where a tangent would only hold in pools larger than it was made for, it is tilted towards the ray's origin.
    """
    sizes = rays.sizes[:, None, :]
    load = np.maximum(rays.scale[:, None, :] * search.work, 1e-9 * sizes)
    wanted = wanted & (rays.scale * search.work[:, 0] > 1e-6 * rays.sizes)
    theta, spread = rays.theta[:, None, :], np.maximum(rays.spread, 1e-300)[:, None, :]
    _, own, _ = search.variance(theta)

    def tail(servers: Array, offered: Array) -> Array:
        return search.excess_tail(servers, offered, theta, spread, own)

    step = 1e-3 * np.minimum(load, np.maximum(sizes - load, 0.0))
    by_load = tail(sizes, load + step) - tail(sizes, load - step)
    by_size = tail(sizes + step, load) - tail(sizes - step, load)
    tangent = np.clip(-by_load / np.where(by_size < 0, by_size, -1e-300), 1.0, sizes / load)
    slope, smallest = tangent, np.full(sizes.shape, np.inf)
    small = np.tile(np.arange(1.0, 9.0), (len(largest), 1))
    checked = np.round(np.concatenate((small, np.geomspace(9.0, 8.0 * largest + 9.0, 16, axis=1)), axis=1))[:, :, None]
    none = np.full((len(largest), 1, 1), np.inf)
    for share in (0.0, 0.3, 1.0):
        steeper = tangent + share * (sizes / load - tangent)
        offered = np.maximum((checked - sizes) / steeper + load, 0.0)
        kept = tail(np.broadcast_to(checked, offered.shape), offered) <= 0.02
        kept |= offered <= 0
        count = checked.shape[1]
        held = np.cumprod(kept[:, ::-1], axis=1).sum(axis=1).astype(int)
        from_here = np.take_along_axis(np.append(checked, none, axis=1), (count - held)[:, None, :], axis=1)
        better = (smallest > np.ceil(sizes)) & (from_here < smallest)
        slope, smallest = np.where(better, steeper, slope), np.where(better, from_here, smallest)
    setup = np.maximum(sizes - slope * load, 0.0)
    wanted = wanted & np.isfinite(smallest[:, 0])
    for m, i in np.argwhere(wanted):
        point = WaitingPoint(
            kind="tail" if theta[m, 0, i] > 0 else "no_wait",
            tau=float(search.tau[m, 0, 0]),
            tail=math.exp(-search.depth),
            slope=float(slope[m, 0, i]),
            setup=float(setup[m, 0, i]),
            theta=float(theta[m, 0, i]),
            spread=float(spread[m, 0, i]) if theta[m, 0, i] > 0 else 0.0,
            peakedness=float(search.mix.peakedness[m, 0, 0]),
            minimum_servers=int(smallest[m, 0, i]),
        )
        yield int(m), point


def waiting_points(
    services: Sequence[ServiceMoments],
    tau: float,
    rate_hint: Mapping[str, float],
    *,
    tail: float,
    servers_per_replica: int = 1,
    limit: int = 8,
) -> list[WaitingPoint]:
    """A few operating points that cover pools of one server up to the hint's demand, best covered first.

    Candidates are made for pools of growing size that serve the whole mix, or one class alone; of these the list keeps
    those that bring the pools closest to their own best points.

    Parameters
    ----------
    services : sequence of ServiceMoments
        Classes that the pool may serve.
    tau : float
        Promise: class c waits at most tau ln(1 / eps_c) seconds with probability 1 - eps_c.
    rate_hint : Mapping[str, float]
        Full demand of each class, requests/s; the pool may take any part of it, or more.
    tail : float
        Smallest eps_c among the classes.
    servers_per_replica : int
        Servers in one replica, each serving one request at a time (encoder processes on a device).
    limit : int
        Most points returned.

    Returns
    -------
    list of WaitingPoint
        Empty where no class flows.
    """
    return waiting_points_at(services, [tau], rate_hint, tail=tail, servers_per_replica=servers_per_replica, limit=limit)[0]


def waiting_points_at(
    services: Sequence[ServiceMoments],
    taus: Sequence[float],
    rate_hint: Mapping[str, float],
    *,
    tail: float,
    servers_per_replica: int = 1,
    limit: int = 8,
) -> list[list[WaitingPoint]]:
    """What :func:`waiting_points` finds for each of several waits, faster than one by one."""
    flowing = [s for s in services if rate_hint.get(s.name, 0.0) > 0 and s.mean > 0]
    if not flowing or not taus:
        return [[] for _ in taus]
    rates = np.array([rate_hint[s.name] for s in flowing])
    mixes, ratios = rates[None, :], [2.3]
    if len(flowing) > 1:
        mixes, ratios = np.concatenate((mixes, np.diag(rates))), ratios + [6.0] * len(flowing)
    depth, count = math.log(1.0 / tail), len(mixes)
    each, tau = np.tile(mixes, (len(taus), 1)), np.repeat(np.array(taus), count)
    mix = _mixes(flowing, each, tau * depth)
    search = _Search(services=flowing, rates=each, mix=mix, tau=tau[:, None, None], depth=depth)
    found = zip(search.whole(), ratios * len(taus), strict=True)
    sizes = [_sizes(float(whole), ratio, servers_per_replica) for whole, ratio in found]
    longest = max(len(some) for some in sizes)
    # Shorter lists of sizes are filled up with their last one, which is then left out of the points.
    padded = np.array([np.append(some, np.full(longest - len(some), some[-1])) for some in sizes])
    real = np.arange(longest) < np.array([[len(some)] for some in sizes])
    rays = search.best(padded)
    largest = np.repeat(padded.max(axis=1).reshape(len(taus), count).max(axis=1), count)
    points: list[list[WaitingPoint]] = [[] for _ in taus]
    for m, point in _tangents(search, rays, np.concatenate((real, real & (padded > 6.0)), axis=1), largest):
        points[m // count].append(replace(point, tail=tail, servers_per_replica=servers_per_replica))
    targets: list[list[Array]] = [[] for _ in taus]
    for m, (some, scale) in enumerate(zip(sizes, rays.scale, strict=True)):
        served = scale[: len(some)]
        between = np.sqrt(some[1:] * some[:-1])
        parts = np.concatenate((served[::-1], np.interp(between, some, served)))
        targets[m // count] += [each[m] * part for part in parts if part > 0]
    return [
        _best_few(some, flowing, np.array(aims), limit) if some else [] for some, aims in zip(points, targets, strict=True)
    ]


def _sizes(whole: float, ratio: float, servers_per_replica: int) -> Array:
    """Pools from one replica to the whole demand, ``ratio`` apart, and the largest one that is smaller, in servers."""
    whole = max(whole / servers_per_replica, 1.0)
    steps = max(2, math.ceil(math.log(whole) / math.log(ratio)) + 1)
    smaller = np.concatenate(([1.0, 2.0, 3.0, math.floor(whole)], np.round(np.geomspace(1.0, whole, steps)[:-1])))
    return servers_per_replica * np.append(np.unique(smaller[smaller < whole]), whole)


def _best_few(
    points: Sequence[WaitingPoint], services: Sequence[ServiceMoments], targets: Array, limit: int
) -> list[WaitingPoint]:
    """Adds, one by one, the point that most lowers the summed relative excess over the pools of ``targets`` (flows).

    The first target, the whole demand, counts as much as all others; of these, larger pools count more, because a whole
    demand is served by few small pools.
    """
    means = np.array([s.mean for s in services])
    peaks = np.array([s.peakedness for s in services])
    slopes = np.array([point.slope for point in points])
    setups = np.array([point.setup for point in points])
    theta = np.array([point.theta for point in points])
    spread = np.array([max(point.spread, 1e-300) for point in points])
    excess = np.minimum(np.stack([s.excess(theta) for s in services]), _FORBIDDING * means[:, None] * spread)
    excess *= theta > 0
    peaked = np.maximum(1.0, targets @ (means * peaks) / (targets @ means) / np.array([[p.peakedness] for p in points]))
    need = slopes[:, None] * peaked * (targets @ means) + setups[:, None]
    need = np.maximum(need, (targets @ excess / spread).T)
    need = np.maximum(need, np.array([[float(point.minimum_servers)] for point in points]))
    need = np.ceil(need / points[0].servers_per_replica - 1e-6)
    best = need.min(axis=0)
    weight = np.sqrt(best / best.max())
    weight[0] = weight.sum()
    excess_cost = weight * np.minimum(need / best - 1.0, 1.0)
    chosen: list[int] = []
    current = weight
    while len(chosen) < limit:
        gain = current.sum() - np.minimum(excess_cost, current).sum(axis=1)
        pick = int(np.argmax(gain))
        if gain[pick] < _LEAST_GAIN and chosen:
            break
        chosen.append(pick)
        current = np.minimum(current, excess_cost[pick])
    return [points[i] for i in chosen]


_SOLVED = 1e-6
"""Share by which solvers let a row be exceeded."""


def predicted_wait(
    services: Sequence[ServiceMoments],
    flows: Mapping[str, float],
    replicas: int,
    probability: float,
    *,
    servers_per_replica: int = 1,
    point: WaitingPoint | None = None,
) -> float:
    """Seconds that a request waits at most with this probability, at the load that the pool really carries.

    Parameters
    ----------
    point : WaitingPoint or None
        The pool's operating point: where its rows hold, the estimate never exceeds what it promises.

    Returns
    -------
    float
        Infinite where the pool cannot carry the load. Errs upwards: simulated waits exceed it in at most
        1.2 (1 - probability) of the requests (docs/queueing.md).
    """
    flowing = [s for s in services if flows.get(s.name, 0.0) > 0 and s.mean > 0]
    if not flowing:
        return 0.0
    rates = [flows[s.name] for s in flowing]
    promised = math.inf
    if point is not None and all(row.need(flows) <= replicas * (1 + _SOLVED) for row in point.rows(flowing)):
        promised = point.wait(probability)
    servers = float(replicas * servers_per_replica)
    work = sum(rate * s.mean for s, rate in zip(flowing, rates, strict=True))
    if work >= servers:
        return promised
    theta = _decay(flowing, rates, servers, work)
    depth = math.log(1.0 - probability)
    low, high = 0.0, max(s.values[-1] for s in flowing)

    mixes = np.array([rates])
    size, load = np.full((1, 1, 1), servers), np.full((1, 1, 1), work)

    def log_tail(wait: float) -> float:
        mix = _mixes(flowing, mixes, np.array([wait]))
        spread = (servers - work) / (theta * servers) + mix.short_spread
        rate = (servers - work) / (spread * servers)
        own = np.zeros_like(rate)
        for service, share in zip(flowing, mix.own, strict=True):
            own = np.maximum(own, share * service.own_burst(rate)) if share > 0 else own
        return float(_log_tail(mix, -depth, size, load, rate, own)[0, 0, 0])

    if log_tail(0.0) <= depth:
        return 0.0
    while log_tail(high) > depth and high < promised:
        high *= 2.0
    for _ in range(24):
        middle = (low + high) / 2.0
        low, high = (middle, high) if log_tail(middle) > depth else (low, middle)
    return min(high, promised)


def _decay(services: Sequence[ServiceMoments], rates: Sequence[float], servers: float, work: float) -> float:
    """Largest theta with sum x g(theta) <= n theta: the decay rate of the waiting time per server and second."""
    half = sum(rate * float(s.excess(np.array(0.0))) for s, rate in zip(services, rates, strict=True))
    low, high = 0.0, (servers - work) / half if half > 0 else _LARGEST_EXPONENT / max(s.values[-1] for s in services)
    high = min(high, _LARGEST_EXPONENT / max(s.values[-1] * max(s.scv, 1.0) for s in services))
    for _ in range(40):
        theta = (low + high) / 2.0
        excess = sum(rate * float(s.excess(np.array(theta))) for s, rate in zip(services, rates, strict=True))
        low, high = (theta, high) if work + excess * theta <= servers else (low, theta)
    return low
