"""Words by which a name is distinguished from other words; folded and in small letters."""

from indexing.text.normalization import fold


def _fold_words(text: str) -> frozenset[str]:
    return frozenset(map(fold, text.split()))


ANNOUNCING = _fold_words(
    """
    project projects codename codenamed operation initiative firm startup subsidiary acquisition acquire acquiring acquired
    mr mrs ms miss dr prof professor madam called named dubbed nicknamed
    herr herrn frau projekt projekts projektes kunde kunden kundin firma lieferant lieferanten kollege kollegin codenamen deckname
    produkt plattform system team server vorhaben tochterfirma namens genannt kanzlei marke
    monsieur madame mme mlle projet société entreprise nommé nommée proyecto señor señora empresa llamado llamada
    progetto signor signora azienda projeto senhor senhora meneer mevrouw bedrijf
    """
)
"""Before a name."""
NOT_ANNOUNCED = _fold_words(
    """
    management manager managers plan plans planning lead leader leaders leads office officer officers team teams owner owners sponsor
    sponsors board boards charter coordinator coordinators budget budgets code codes number numbers name names status report reports
    scope room rooms administration administrator administrators settings requirements support engineering
    leitung leiter leiterin management manager managerin plan team teams beginn ende start budget nummer name status bericht raum
    einstellungen anforderungen mitglied mitglieder leader lead
    """
)
"""Ordinary words that make a heading or a role with such a word before them: "Project Management"."""
COUNTED = _fold_words(
    """
    act annex appendix article band bay block book box bridge building bus chapter class clause column day days desk dock door
    edition error exit figure file floor form gate generation grade group hall house issue item lane layer lesson level line
    list lot method mode model module number option order page paragraph part parts period phase plan platform point pool port
    position priority quarter question region release report revision room round row rule schedule season section series
    sheet shift slide slot stage step table target task team term terminal test tier top track type unit user version volume
    wave week weeks window year years zone vol sec fig
    abschnitt absatz anhang anlage artikel auflage aufgabe ausgabe bereich bild blatt ebene etage frage gebäude gruppe halle haus
    kapitel klasse linie modul nummer paragraf paragraph platz punkt raum regel runde schicht schritt seite spalte stock stufe
    tabelle tag tarif teil typ woche zeile ziffer zimmer étape article page chapitre section niveau
    """
)
"""That a number follows without making a name of them."""
OFFICE_WORDS = _fold_words(
    """
    analytics backend backends blockchain blog blogs changelog chatbot chatbots checkbox coworking crowdsourcing cybersecurity dataset datasets
    devops downtime dropdown ebook ecommerce email emails endpoint endpoints eskalation firmware freelancer frontend fulltime gdpr
    geolocation greenhouse gigabyte hackathon hashtag homeoffice hotline hotspot infosec kanban kilobyte lockdown malware megabyte
    metadata microservice microservices middleware namespace nonprofit offboarding offsite onboarding offline online opensource
    outsourcing parttime passcode paywall phishing plugin plugins podcast preboarding prepaid ransomware rebranding refactoring
    remote retweet roadmap roadmaps rollback rollout runbook runbooks runtime scrum serverless signup smartphone smartphones smartwatch
    spyware startup startups storyboard subdomain teambuilding telehealth teleworking timestamp timezone touchscreen uptime username
    videoconference vlog webcam webhook webhooks webinar webinars whiteboard whitelist whitepaper wireframe workaround workflows
    absence accounting accounts addendum admin administrator allowance appendix applicant applicants appraisal approver archive
    assignee attachment attachments audit auditor backlog backup bonus bookkeeping branch browser calendar cancel cashier checklist
    claimant clipboard compliance confidential configuration confirm contractor contractors contributor coordinator
    correspondence counsel customers dashboard default deliverables deployment designer developer developers dialog disclosure
    drafts editor employees employer enrollment entitlement escalation exemption expense expenses export facilities feedback finance
    folder folders footer glossary handbook helpdesk holidays homepage import inbox incident incidents intern interns internet intranet
    inventory invoice invoices itinerary kickoff ledger licensee licensor liaison login logistics logout mailbox maintenance manuals
    marketing menu milestone milestones newsletter notification notifications onboarding operations outbox overtime
    password payee payer payment payments payroll penalty permissions personnel portal preferences premises procedure procedures
    procurement profile provider providers purchasing qualification quotation receipt receipts recipient reception recruiter
    recruiting recruitment redirect refund refunds registry reimbursement renewal repository requester reset retention reviewer
    sabbatical sandbox seller settings severance shareholder shareholders shipping signature sitemap spam spreadsheet sprint
    stakeholder stakeholders submit subcontractor subscriber supervisor supplier suppliers surcharge syllabus tenant tenants timesheet
    timesheets toolbar trainee trainees translator trash treasurer treasury trustee tutorial undo upload vacation vendor vendors
    verification visitor visitors voucher warehouse warranty webmaster webshop wholesale widget wizard workflow workplace workspace
    """
)
"""That policies, contracts and descriptions of programs write with a capital."""
COMMON_SURNAMES = (
    "becker", "fuchs", "hartmann", "hermann", "hoffmann", "hofmann", "huber", "jansen", "keller", "krause", "köhler", "lehmann",
    "maier", "meier", "meyer", "möller", "müller", "neumann", "peters", "schmidt", "schmitt", "schneider", "scholz", "schröder",
    "schubert", "schulz", "schäfer", "wagner", "walter", "weber", "werner", "zimmermann",
)  # fmt: skip
"""A German compound that begins with one is a name, such as a house or a firm."""
VERBS_OF_ONE = {
    "en": _fold_words(
        """
        is was has had will would can could may might must should does did begins comes covers depends ends fails gets goes
        includes launches moves needs opens pays reaches remains replaces runs ships starts stays supports uses wins
        """
    ),
    "de": _fold_words(
        """
        ist war wird wurde hat hatte kann konnte soll sollte muss musste darf will beginnt bekommt bleibt braucht endet erhält ersetzt
        gehört gewinnt geht hilft kommt kostet kostete lief liefert läuft liegt macht nutzt scheitert startet startete steht umfasst
        verdient verlangt wächst zeigt zieht
        """
    ),
    "fr": _fold_words(
        """
        est était sera fut a avait aura va peut doit devra reste commence comprend coûte coûtera démarre démarrera devient dépend
        finit gagne marche ouvre paie remplace sort utilise vaut
        """
    ),
}
"""That follow one thing: in these languages one that is counted has an article before it, and a name has none."""
ABSTRACT_ENDINGS = (
    "ung", "heit", "keit", "schaft", "tion", "sion", "tät", "ismus", "ment", "ness", "ity", "ing", "ance", "ence", "age", "ship",
    "ism", "té", "isme",
)  # fmt: skip
"""Of words for what is not counted, which have no article either."""
