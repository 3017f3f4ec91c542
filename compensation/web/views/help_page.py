from django.http import HttpResponse
from django.views.decorators.http import require_safe

from compensation.web.pages import Here, tenant_page
from compensation.web.words import GLOSSARY


@require_safe
@tenant_page
def help_page(here: Here) -> HttpResponse:
    """The keyboard and every state with its wire name; a dialog where scripts run."""
    return here.render("help.html", part="partials/_help.html", glossary=GLOSSARY)
