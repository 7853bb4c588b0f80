"""Which follower may lead a replicated state without the loss of an acknowledged write. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ReplicaStatus:
    """A server as it answers now. ``lag_bytes`` and ``lag_s`` count from the leader; of a leader they are 0.

    ``generation``: that which it leads, or the newest of which it has received something. ``synchronous``: the follower
    whose acknowledgement a leader waits for.
    """

    name: str
    is_leader: bool
    generation: int
    position: int
    lag_bytes: int = 0
    lag_s: float = 0.0
    synchronous: str = ""


def newest_leaders(found: Sequence[ReplicaStatus]) -> list[ReplicaStatus]:
    """Return the leaders of the newest generation: one, unless none answers or two were promoted side by side.

    A generation counts that a follower knows, though its leader is silent.
    """
    newest = max((each.generation for each in found), default=0)
    return [each for each in found if each.is_leader and each.generation == newest]


def why_unsafe(name: str, synchronous: str, found: Sequence[ReplicaStatus], servers: int) -> str:
    """State why ``name`` must not lead, of so many ``servers`` of which ``found`` answer; empty: it may.

    A write is acknowledged by the leader and one follower. So where every server but one follows, the one that is
    furthest has everything, unless a leader that works goes on with another follower meanwhile. A newer generation is
    known to the two servers that acknowledged its writes, so one of them answers where all but one do.
    """
    followers = {each.name: each for each in found if not each.is_leader}
    leaders = newest_leaders(found)
    if [each.name for each in leaders] != [name]:
        if name not in followers:
            return "it is no follower that answers"
        if len(followers) < servers - 1:
            return f"only {len(followers)} of {servers} servers answer as followers, another may have a later write"
        furthest = max(followers.values(), key=lambda each: each.position)
        if followers[name].position < furthest.position:
            return f"{furthest.name} is ahead by {furthest.position - followers[name].position:,} bytes"
        if leaders and leaders[0].synchronous != name:
            return f"{leaders[0].name} leads, and waits for {leaders[0].synchronous or 'no follower'}"
    elif len(found) < servers - 1:
        return f"only {len(found)} of {servers} servers answer, another may lead a newer generation"
    if synchronous not in set(followers) - {name}:
        return f"{synchronous} is no other follower that answers, so nothing would be acknowledged"
    return ""
