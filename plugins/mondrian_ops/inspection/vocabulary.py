"""The words by which columns are known: in their names, and in their values.

Lists grow by what people find missing; each word is in small letters.
"""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NAMES = _words(
    "apellido apellidos cognome firstname forename fullname initials lastname maiden middlename "
    "nachname name names nickname nom nombre nome prenom signature surname vorname"
)
"""Names of people; not of what `THINGS` has."""

THINGS = _words(
    "brand category city class company country county course department dept drug event file firm "
    "hospital item job model plan product region school shop state station store street town ward"
)
"""What has a name, or an address, and is no person."""

LEADS_TO_PERSON = _words(
    "addr address anschrift email fax fingerprint guid handle homepage iban licence license login "
    "mail mobile mrn nino passport phone photo ssn strasse street telefon telephone twitter url "
    "username uuid website"
)
"""What one person has alone."""

NUMBER = _words("code id ids idx index key no nr num number numero nummer pk record rowid uid")
"""Words for a number of a row or of a person."""

PERSON = _words(
    "account citizen client customer customerid employee insured member mrn participant patient "
    "patientid person personid pid policyholder pupil resident respondent student subject user "
    "userid"
)
"""Words for a person who may have several rows."""

PERSON_NUMBER = _words("mrn pid patientid personid customerid userid")
"""Those of `PERSON` that say that they are numbers."""

KNOWN = _words(
    "admission afam age alter area arrival birth birthdate birthday birthplace black born browser "
    "caste child children citizen citizenship city college collegeed color colour commune country "
    "county date day degree department dependents discharge district divorced dob edu educ "
    "education emp employed employer employment ethnic ethnicity experience family female gender "
    "geschlecht graduate height hisp hispanic home homeownership household housing industry ip "
    "job jobclass kids lang language lat latitude lng location lon long longitude male marital "
    "maritl marriage married marry metro military month municipality nation nationality native "
    "neighborhood neighbourhood occup occupation origin owner place plz postal postcode precinct "
    "profession province qualification race racef region relationship rent rural school schooling "
    "selfemp seniority sex siblings smsa spouse state tenure title tongue town urban veteran "
    "village visit weight white widowed work workclass year yob yr zip zipcode"
)
"""What others may know of a person."""

SECRET = _words(
    "abortion affair affairs aids alcohol allergy arrest arrested assets attrition balance "
    "bankruptcy benefit benefits blood bmi cancer capital chlorides cholesterol churn claim "
    "claims condition conviction credit crime criminal dead death debt debts deductible default "
    "denied deny depression diabetes diagnoses diagnosis died disability disabled disease drug "
    "drugs earnings expense expenses faith fine fraud gain glucose gpa grades health heart hiv "
    "hlthp icd icd10 ideo ideology illness income injury ins insulin insurance loan loans loss "
    "medication mental mortality mortgage offence offense opinion orientation outcome party pay "
    "political politics pregnancy pregnant prescription pressure procedure rating released "
    "religion religious revenue salaries salary satisfaction score sexual smoke smoker smoking "
    "stroke surgery survival survived symptom symptoms syndrome therapy treatment tumor tumour "
    "union violation vote voted votes votetrump wage wages welfare"
)
"""What people may keep to themselves."""

KNOWN_STEMS = _words("marri marit educ ethnic employ occup birth nation resid since datetime")
"""Parts of a word that say the same as a word of `KNOWN`."""

SECRET_STEMS = _words(
    "relig medic chronic diagnos psych hospital clinic incom incr salar crim offen arrest citation "
    "search polit illness illday disab pregnan"
)
"""Parts of a word that say the same as a word of `SECRET`."""

VALUES: Mapping[str, frozenset[str]] = {
    "sexes": _words("diverse f female m male man men other unknown woman women x"),
    "marital states": _words(
        "divorced married married-af-spouse married-civ-spouse married-spouse-absent never- "
        "married separated single unmarried widow widowed"
    ),
    "races": _words(
        "african-american amer-indian-eskimo asian asian-pac-islander black hispanic latino "
        "native native-american other white"
    ),
}
"""Values by which a column is known without its name, blanks as hyphens."""

ORDERS = (
    ("very low", "low", "medium", "high", "very high"),
    ("low", "moderate", "high"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("poor", "fair", "good", "very good", "excellent"),
    ("none", "mild", "moderate", "severe"),
    ("xs", "s", "m", "l", "xl"),
    ("small", "medium", "large"),
)
"""Ordered categories, least first."""

MISSING = _words("? - -- . n/a nan null unknown missing unspecified")
"""Texts that may stand for a missing value."""
