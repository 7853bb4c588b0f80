"""What `sda collector status` shows: each source with its rate, state, lag and drops."""

import asyncio
from dataclasses import asdict
from typing import Any

from sda_platform.edge.collector import Collector
from sda_platform.edge.priority import Priority


def report_sources(collector: Collector) -> dict[str, Any]:
    """Return the sources, the zones that are saturated, and the bottleneck; plain values for JSON."""
    now_s = asyncio.get_running_loop().time()
    return {
        "sources": [_source(collector, name, now_s) for name in collector.supervised],
        "saturated": [zone for zone, entry in collector.zones().items() if entry.pressure.is_saturated],
        "bottleneck": collector.occupancy.bottleneck(),
        "loop_lag_s": round(collector.loop_lag_s, 3),
        "seal_p99_s": {
            f"{sealer.zone}.{sealer.priority.label}": sealer.latency.quantile(0.99)
            for sealer in collector.sealers
            if sealer.segments
        },
        "problems": collector.health,
    }


def _source(collector: Collector, name: str, now_s: float) -> dict[str, Any]:
    supervised = collector.supervised[name]
    source, account = supervised.source, collector.ledger.of_source(name)
    last = collector.listening_log.last_of(name)
    silent_s = None if source.last_received_s is None else round(now_s - source.last_received_s, 3)
    return {
        "name": name,
        "kind": source.kind,
        "zone": source.zone,
        "address": source.address,
        "state": source.state.value,
        "detail": source.detail,
        "problem": supervised.problem(),
        "rate_per_s": round(collector.rates.of(name), 2),
        "silent_s": silent_s,
        "received": account.received,
        "sealed": account.sealed,
        "deferred": account.deferred,
        "dropped": account.dropped,
        "in_flight": account.in_flight,
        "kernel_drops": source.kernel_drops,
        "connections": source.connections,
        "restarts": supervised.restarts,
        "errors": dict(source.errors),
        "not_listened": None if last is None else {**asdict(last), "seconds": last.seconds},
        "low_share": _share(collector, name),
    }


def _share(collector: Collector, name: str) -> float:
    low = sum(a.received for key, a in collector.ledger.accounts().items() if key == (name, Priority.LOW))
    total = collector.ledger.of_source(name).received
    return round(low / total, 4) if total else 0.0
