"""Names that everybody knows: that a private document mentions them tells nothing.

Countries, languages, months and days are those of the Unicode CLDR, in English, German, French and Spanish.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import regex
from babel import Locale

from indexing.text.normalization import fold

_LOCALES = ("en", "de", "fr", "es")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]++")

_PLACES = """
Amsterdam Athens Atlanta Auckland Bangalore Bangkok Barcelona Bavaria Bayern Beijing Berlin Bern Bonn Boston Brussels Brüssel
Bucharest Budapest Cairo California Cambridge Canton Chicago Cologne Copenhagen Dallas Delhi Denver Detroit Dresden Dubai Dublin
Düsseldorf Edinburgh England Essen Europa Europe European Africa African Asia Asian America American Americas Florence Florida
Frankfurt Geneva Genf Glasgow Hamburg Hannover Hanoi Helsinki Houston Istanbul Jakarta Johannesburg Karlsruhe Köln Kyoto Lagos
Leipzig Lisbon London Los Angeles Lyon Madrid Manchester Manila Marseille Melbourne Miami Milan Montreal Moscow Mumbai Munich
München Nairobi Naples Nuremberg Nürnberg Osaka Oslo Oxford Paris Philadelphia Prague Prag Rome Rotterdam Salzburg Santiago
Scotland Seattle Seoul Shanghai Shenzhen Singapore Sofia Stockholm Stuttgart Sydney Taipei Texas Tokyo Toronto Turin Valencia
Vancouver Venice Vienna Wien Wales Warsaw Washington Wellington Yokohama Zurich Zürich York Manhattan Atlantic Pacific Alps
Mediterranean Hessen Sachsen Thüringen Brandenburg Niedersachsen Saarland Westfalen Württemberg Chinese Japanese German British
English French Spanish Italian Dutch Swiss Austrian Polish Russian Indian Korean Canadian Australian Irish Scottish Turkish
Greek Swedish Danish Norwegian Finnish Mexican Brazilian Portuguese Christian Muslim Jewish Buddhist Earth Moon Sun
"""

_CALENDAR = """
Easter Christmas Thanksgiving Halloween Ramadan Pentecost Hanukkah Diwali Juneteenth Weihnachten Ostern Pfingsten Silvester
Advent Neujahr Mon Tue Wed Thu Fri Sat Sun Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Okt Dez Monday Mondays Tuesdays
Wednesdays Thursdays Fridays Saturdays Sundays Q1 Q2 Q3 Q4 H1 H2
"""

_PRODUCTS = """
Adobe Acrobat Photoshop Illustrator InDesign Airbnb Airbus Airtable Alexa Alibaba Amazon AWS Amex Android Angular Ansible Anthropic
Apache Apple iPhone iPad iOS macOS MacBook Mac Arduino Arm Asana Asus Atlassian Audi Azure Bash BigQuery Bing Bitbucket Bitcoin
Blackberry Blender Bluetooth BMW Boeing Bosch Braintree Canon Canva Cassandra Celery Chrome Chromium ChatGPT Claude Cisco Citrix
ClickHouse Cloudflare Codex Confluence CUDA Databricks Datadog Debian Dell Deloitte DHL Discord Django Docker DocuSign Dropbox
Duolingo Dynamics Edge Elasticsearch Elastic Electron Ericsson Ethernet Ethereum Evernote Excel Exchange Express Facebook FastAPI
FedEx Fedora Figma Firebase Firefox Flask Flink Ford Fortran Fujitsu Gartner Gemini GitHub GitLab Git Gmail Go Golang Google Gradle
Grafana Groovy Hadoop Haskell Heroku Hetzner Honda Huawei Hugging Face IBM Ikea Instagram Intel IntelliJ Intercom Istio Java
JavaScript Jenkins JetBrains Jira jQuery Jupyter Kafka Kanban Keycloak Kibana Kindle Kotlin Kubernetes KPMG LangChain Laravel LaTeX
Lenovo Lexmark Linkedin LinkedIn Linux Logitech Lotus Lua Lufthansa Magento MariaDB Markdown Mastercard MATLAB Maven Meta Mercedes
Microsoft Miro MongoDB Mozilla MySQL Neo4j Netflix Nginx Nintendo Nokia Notion Node NodeJS NumPy Nvidia OAuth Office Okta OneDrive
OneNote OpenAI OpenSearch OpenSSL OpenStack OpenTelemetry Opera Oracle Outlook Overleaf PagerDuty Panasonic Pandas PayPal PeopleSoft
Perl Personio Philips PHP Playwright Porsche Postgres PostgreSQL PowerPoint PowerShell Prometheus Puppet PyPI PyTorch Python Qualcomm
QuickBooks RabbitMQ Rails React Reddit Redis Redmine Redshift Renault Ruby Rust Safari Salesforce Samsung SAP Scala Scikit Scrum
Selenium Sentry ServiceNow SharePoint Shopify Siemens Signal Skype Slack Snowflake Solaris Sony Spark Splunk Spotify SQLite
SQLAlchemy Stripe Subversion Swift Tableau Tailscale Teams TensorFlow Terraform Tesla Thunderbird TikTok TLS Tomcat Toyota Trello
Twilio Twitter TypeScript Uber Ubuntu UniFi Unix UPS Vercel Vim Visa VMware Volkswagen Volvo Vue Webex WeChat Whatsapp WhatsApp WiFi
Wi-Fi Wikipedia Windows Word WordPress Workday Xbox Xero Xerox Yahoo YouTube Zapier Zendesk Zoom Airflow Alpine Arrow Atom Axios
Chrome Cobol Confluent Copilot Cypress Delphi Gerrit Hibernate Hudson Ingress Helm Lambda Lucene Mistral Llama Nomad Consul Vault
Packer Podman Rancher Rocky Spring Boot Swagger OpenAPI Symfony Vagrant Varnish Vite Webpack Wireshark Wayland Zigbee Zscaler
"""

_INSTITUTIONS = """
Bitkom Bundesbank Bundesrat Bundestag Bundesamt Congress Senate Parliament Commission Bafin Gartner Harvard Stanford Interpol
Internet Web Intranet Ethernet Interpol Nasdaq Nikkei Nobel Red Cross Reuters Bloomberg Schengen Unesco Unicef Vatican Brexit
Gregorian Latin Roman Celsius Fahrenheit Unicode Levenshtein Monte Carlo Gauss Gaussian Bayes Bayesian Fourier Boolean Turing
Newton Einstein Euler Pareto Gantt Kaizen Lean Six Sigma Eisenhower Pomodoro Covid Corona Influenza Euro Dollar Pound Yen Franken
"""

_ACRONYMS = """
AI ANSI AML API APIs APR ARR ASAP ASCII ATM B2B B2C BGB BI BIOS BMI BSI CAD CAGR CAPEX CCPA CCTV CDN CEO CFO CHF CI CD CIA CISO CLI CMO
CMS CNC COBRA COGS COO COVID CPI CPU CRM CRUD CSS CSV CTO CVE CVSS DACH DAX DHCP DIN DKIM DMARC DNS DOCX DSGVO DSL EBITDA ECB EDI EEA EN
EPA EPS ERP ESG ETA ETF EU EUR EZB FAQ FAX FBI FDA FIFO FMLA FTE FTP FX GAAP GB GBP GDP GDPR GmbH GMT GPL GPS GPT GPU GRPC GUI HDMI HIPAA HR
HRA HTML HTTP HTTPS IATA IBAN ICANN IDE IEC IEEE IETF IFRS IMAP IMF IOT IP IPO IPV4 IPV6 IRA IRS ISBN ISMS ISO ISP IT ITIL JPEG JPG JSON JVM
JWT KI KPI KPIs KYC LAN LDAP LED LGPL LIFO LLC LLM LLMs LTE MB MBA MDM MFA MIT ML MP3 MP4 MRR MVP NASA NATO NDA NFC NGO NIST NLP NPM NPS OCR
ODBC OECD OHSAS OIDC OKR OKRs OPEX ORM OS OSHA OSI OTP OWASP PAYE PC PCI PDF PDFs PGP PHD PIN PIP PMO PNG POC POP3 POS PPE PPT PR PTO PSD2 QA QR RAG
RAM RBAC REST RFC RFI RFP RGB RMA ROI RPC RSA RSS SaaS SAML SCIM SDK SEC SEO SEPA SFTP SIM SKU SLA SLAs SLO SMB SME SMS SMTP SOAP SOC SOX SPF SQL
SSD SSH SSL SSN SSO STEM STP SVG SWIFT SWOT TCP TIFF TLS TOTP TSV TV TXT UAE UAT UDP UI UK UML UN UPC URI URL URLs USA US USB USD USP UTC UTF UTM UX
UUID VAT VLAN VM VMs VOIP VPC VPN VR WACC WAN WCAG WHO WLAN WTO WWW XLSX XML XSS YAML YTD ZIP AG KG SE OHG UG BAG BetrVG AGB BDSG HGB UStG EStG
LOHN MWST TÜV VDE VDI DGUV ArbZG AGG AOK TVÖD SGB STGB ABS NRW CFO ETL FIDO GNU GTC HDD IAM IDS IPS KB MAC MSP OEM PII PKI QMS RDP RDS S3 EC2 SAST
DAST SIEM SLD TPM UPS WAF WEEE REACH ROHS CE FCC UL
"""


@lru_cache(maxsize=1)
def load_well_known_names() -> frozenset[str]:
    """Return the words of well-known names, folded."""
    lists = (_PLACES, _CALENDAR, _PRODUCTS, _INSTITUTIONS, _ACRONYMS, *_list_cldr())
    return frozenset(fold(word) for text in lists for word in _WORD.findall(text))


def is_well_known(word: str) -> bool:
    return fold(word) in load_well_known_names()


def _list_cldr() -> Iterator[str]:
    for locale in map(Locale, _LOCALES):
        yield from _values(locale.territories)
        yield from _values(locale.languages)
        for width in ("wide", "abbreviated"):
            yield from _values(locale.months["format"][width])
            yield from _values(locale.days["format"][width])


def _values(names: object) -> Iterable[str]:
    """Return the values of `names`, one of the mappings of Babel, which have no types."""
    return names.values() if hasattr(names, "values") else ()
