"""Every failure IMPAKT reports, as one tree. Imports nothing of ours.

Each error is one sentence a person can act on; `exit_code` is what the
command line answers with (see README, "Exit codes"). Code that meets a foreign
exception translates it into one of these at the place where it first meets it.
"""

from __future__ import annotations


class ImpaktError(Exception):
    """Base of all errors shown to a person; the message is one line."""

    exit_code = 2

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


class BadInput(ImpaktError):
    """Something given to us does not have the form we need (exit 2)."""

    exit_code = 2


class FieldError(BadInput):
    """A named field of a named file or document is wrong.

    `where` names the file and line or the document, `field` the field path,
    `expected` what would have been right.
    """

    def __init__(self, where: str, field: str | None, expected: str) -> None:
        self.where, self.field, self.expected = where, field, expected
        parts = [where, field, expected]
        super().__init__(": ".join(p for p in parts if p))


class BadTrace(FieldError):
    """An arrival trace that cannot be replayed as it stands."""


class BadWorkload(FieldError):
    """A workload file that does not describe classes, objectives or a rubric."""


class BadConfiguration(FieldError):
    """A configuration tuple with a field of the wrong form."""


class BadProfile(FieldError):
    """A profile of the reference endpoint with a field of the wrong form."""


class BadEvidence(FieldError):
    """An evidence folder, archive or record that is not one."""


class EvidenceDiffers(ImpaktError):
    """Bytes or figures are not what the manifest or record says (exit 1)."""

    exit_code = 1


class NotDecided(ImpaktError):
    """The question has no answer yet: invalid run, too little evidence (exit 3)."""

    exit_code = 3


class StorageFailed(ImpaktError):
    """Our own disk refused: full, read-only, not permitted (exit 3: nothing is lost)."""

    exit_code = 3


class OtherSideFailed(ImpaktError):
    """The endpoint or server did not do its part (exit 4)."""

    exit_code = 4


class EndpointUnreachable(OtherSideFailed):
    """No connection to the endpoint could be made."""


class WrongKey(OtherSideFailed):
    """The other side refused our credentials; the credential is never in the message."""


class HostNotAllowed(BadInput):
    """Load was asked for a host that is not a registered endpoint."""


class NotPermitted(ImpaktError):
    """The member's role does not allow this."""


class Conflict(ImpaktError):
    """What is asked contradicts what already stands (a second key, a claimed run)."""
