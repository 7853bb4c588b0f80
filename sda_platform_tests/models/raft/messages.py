"""What Raft nodes send each other, and the rules that a planted bug breaks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from sda_platform_tests.models.raft.log import Entry, Snapshot


@dataclass(frozen=True)
class VoteRequest:
    """A candidate asks for a vote; ``is_trial``: whether it would get one, which raises no term (pre-vote)."""

    term: int
    last_index: int
    last_term: int
    is_trial: bool


@dataclass(frozen=True)
class Vote:
    """The answer. Of a trial ``term`` is that of the question if granted."""

    term: int
    is_granted: bool
    is_trial: bool


@dataclass(frozen=True)
class Append:
    """Entries after ``previous_index``, or a heartbeat without any; ``round_number`` counts the leader's broadcasts."""

    term: int
    previous_index: int
    previous_term: int
    entries: tuple[Entry, ...]
    commit: int
    round_number: int


@dataclass(frozen=True)
class Install:
    """A snapshot, where the entries that a follower needs are compacted."""

    term: int
    snapshot: Snapshot
    round_number: int


@dataclass(frozen=True)
class Appended:
    """The answer to both. ``index``: up to where the logs agree, or where the leader should try next."""

    term: int
    is_success: bool
    index: int
    round_number: int


Message = VoteRequest | Vote | Append | Install | Appended


@dataclass(frozen=True)
class RaftRules:
    """The rules of the protocol. A planted bug is one of them switched off: a campaign must find it."""

    restricts_elections: bool = True
    """A vote needs a log that is at least as new as the voter's."""
    stores_votes: bool = True
    """A vote survives a crash."""
    counts_own_term: bool = True
    """A leader commits by counting entries of its own term only (figure 8 of the paper)."""
    bounds_commit: bool = True
    """A follower commits no further than the entries that the message has verified."""
    verifies_previous: bool = True
    """Entries are appended only after the entry that the leader has before them."""
    changes_one_voter: bool = True
    """VoterChange changes by one voter, after the previous change is committed."""
    snapshot_has_sessions: bool = True
    """A snapshot contains what was answered to each client."""
    remembers_requests: bool = True
    """A request that is tried again applies once."""
    confirms_reads: bool = True
    """A leader answers a read after a majority confirmed that it still leads (read-index)."""
    tries_votes_first: bool = True
    """A node that is cut off raises no term (pre-vote)."""
    checks_quorum: bool = True
    """A leader that hears no majority steps down."""


PLANTED_BUGS: Final = tuple(rule.name for rule in fields(RaftRules))
"""The rules, each of which can be switched off."""
