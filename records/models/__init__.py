"""The registry's objects, a file each (SPEC, "The objects")."""

from records.models.access import ApiToken, SignInLink
from records.models.alert import Alert
from records.models.audit import AuditEntry
from records.models.campaign import Campaign
from records.models.comparison import Comparison
from records.models.configuration import Configuration
from records.models.decision import Decision
from records.models.endpoint import Endpoint
from records.models.evidence import Evidence
from records.models.judgment import Judgment, JudgmentSet
from records.models.measurement_record import MeasurementRecord
from records.models.project import Membership, Project
from records.models.request_records import RequestRecords
from records.models.run import Run
from records.models.trace import Trace
from records.models.upload import IdempotencyKey, Upload
from records.models.workload import CaseSet, EvidencePacket, Rubric, ServiceClass, Workload

__all__ = [
    "Alert",
    "ApiToken",
    "AuditEntry",
    "Campaign",
    "CaseSet",
    "Comparison",
    "Configuration",
    "Decision",
    "Endpoint",
    "Evidence",
    "EvidencePacket",
    "IdempotencyKey",
    "Judgment",
    "JudgmentSet",
    "MeasurementRecord",
    "Membership",
    "Project",
    "RequestRecords",
    "Rubric",
    "Run",
    "ServiceClass",
    "SignInLink",
    "Trace",
    "Upload",
    "Workload",
]
