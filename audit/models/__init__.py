from audit.models.decisions import Decision
from audit.models.grants import TenantGrant
from audit.models.keys import ApiKey
from audit.models.people import Membership, User
from audit.models.tenants import Tenant

__all__ = ["ApiKey", "Decision", "Membership", "Tenant", "TenantGrant", "User"]
