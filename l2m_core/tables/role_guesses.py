"""What a column probably is to a patient: known from the start, to be measured, or not to be used; with the reason.

A guess is only a first proposal, for a person to look over. It rests on the words of the column's name, in English and
where it is cheap in German, French, Spanish and Italian, and on the shape of its values. The more general rules come
last; what nothing tells of can be measured.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from l2m_core.tables.cell_parsing import DATE_ADVICE
from l2m_core.tables.column_reading import Reading
from l2m_core.tables.feature_inference import reason_to_ignore

GIVES_AWAY = 0.9  # share of the outcome's uncertainty that a column alone takes away: then it was hardly known before
USUAL_OUTCOMES = ("outcome", "target", "label", "class", "y", "diagnosis", "died", "death", "mortality", "event")
# Beside an outcome that tells whether something happened, a column of such a name tells until when one has watched.
HOW_LONG = frozenset(
    "time t tte duration days months years pfs os dfs rfs efs zeit dauer temps duree tiempo tempo".split()
)
WHETHER = frozenset(
    "event status censor cens death died dead progression relapse failure ereignis evento evenement".split()
)
# Words of an end that one may want to foresee, in the five languages.
END = frozenset(
    "death died mortality readmitted outcome verstorben gestorben tod mortalitat ausgang deces decede mort mortalite fallecido "
    "fallecimiento exitus muerte mortalidad deceduto decesso morto mortalita".split()
)

# Groups of words, each with its role and its reason. Words of one group are separated by blanks; an underscore joins
# those of a phrase. They are without accents and plural endings, as `words_of_name` has them.
AFTER, PAST, TREATMENT = "after", "past", "treatment"
TEST, CONDITION, VITAL, SYMPTOM, PERSON, STAY = "test", "condition", "vital", "symptom", "person", "stay"
ROLES_OF: Mapping[str, tuple[str, str]] = {
    AFTER: ("ignored", "sounds like something that is known only afterwards"),
    PAST: ("baseline", "history or habits, which a patient can tell"),
    TREATMENT: ("baseline", "a treatment that is or was given"),
    TEST: ("acquirable", "a laboratory value, examination or score"),
    CONDITION: ("baseline", "a known disease"),
    VITAL: ("baseline", "a vital sign, taken at the bedside"),
    SYMPTOM: ("baseline", "a complaint, or a sign seen at the bedside"),
    PERSON: ("baseline", "demographics"),
    STAY: ("baseline", "about the admission"),
}
FIRST = (PAST, AFTER, TREATMENT)  # a word of these decides, whatever else the name says
WORDS: Mapping[str, str] = {
    AFTER: """
        death dead die died deceased mortality survival survived survivor alive dod autopsy futime follow_up
        followup length_of_stay los time_in_hospital hospital_day day_in_hospital dia_hospital discharge
        discharged readmission readmitted relapse recurrence time_to_event event_time cause_of_death charge
        total_cost hospice outcome censored censoring deces mort survie sortie tod verstorben entlassung
        verweildauer muerte fallecido mortalidad alta morte decesso dimissione""",
    PAST: """
        history hx anamnesis anamnese family familial familiar pedigree hereditary previous prior past ever
        former prevalent preexisting pregnancy pregnant parity gravida antecedent antecedente vorgeschichte
        familienanamnese anamnesi gravidanza smoker smoking smoke smoked tobacco cigarette cig pack_year raucher
        rauchen fumeur tabac fumador tabaco tabaquismo fumatore fumo alcohol alkohol alcool drinker drinking
        physical_activity exercise_habit sleep diet self_rated menopause vaccination vaccinated comorbidity
        charlson outpatient inpatient emergency_visit number_emergency diag diagnosis number_diagnosis
        num_procedure general_health health activity""",
    TREATMENT: """
        medication med medicine drug therapy treatment treated dose dosage prescription prescribed trt antiviral
        lithium thyroxine intubated intubation ventilator ventilation ventilated vent dialysis transfusion
        vasopressor surgery surgical operation elective chemotherapy radiotherapy antibiotic statin aspirin
        heparin anticoagulant diuretic steroid beta_blocker medikament therapie behandlung operiert traitement
        medicament chirurgie medicamento tratamiento cirugia farmaco terapia""",
    TEST: """
        hemoglobin haemoglobin hamoglobin hemoglobina hemoglobine emoglobina hb hgb hba1c a1c glycated
        hematocrit haematocrit hamatokrit hematocrito hematocrite hct pcv rbc wbc white_cell white_blood_cell
        red_blood_cell leukocyte leucocyte leukozyten leucocito leucocita erythrocyte erythrozyten eritrocito
        globulo platelet plt thrombocyte thrombozyten plaqueta plaquette piastrine neutrophil lymphocyte
        monocyte eosinophil basophil mcv mch mchc rdw mpv esr crp c_reactive procalcitonin ferritin iron
        transferrin sodium natrium sodio potassium kalium potasio potassio chloride chlorid cloro calcium
        kalzium calcio magnesium phosphate phosphat phosphorus bicarbonate bikarbonat bicarbonato hco3 tco2
        anion_gap creatinine creatinina kreatinin crea bun urea harnstoff uree uric gfr egfr clearance albumin
        albumina globulin protein proteina bilirubin bilirubina bilirubine alt ast sgot sgpt got gpt ggt alp ldh
        ck ckmb amylase lipase aminotransferase transaminase phosphokinase troponin bnp ntprobnp d_dimer dimer
        fibrinogen inr pt ptt aptt prothrombin ph pao2 paco2 pco2 po2 fio2 lactate laktat lactato lattato
        glucose glukose glucosa glucemia glicemia glycemie glu blood_sugar blutzucker insulin insulina
        cholesterol cholesterin colesterol colesterolo chol hdl ldl triglyceride trig tsh cortisol testosterone
        testosteron estradiol psa afp cea ca125 cystatin vitamin folate zinc copper ammonia osmolality serum
        plasma urine urin orina csf culture specific_gravity antibody antigen pcr titer titre serology
        immunoglobulin light_chain kappa lambda gene expression mutation genotype methylation ecg ekg
        electrocardiogram qrs qt st_segment st_depression ejection_fraction lvef ef echo xray x_ray radiograph
        ct mri scan ultrasound sonography biopsy histology cytology nucleus nuclei mitosis infiltrate spirometry
        fev1 fvc angiography score scale grade index test result lab labor laboratory exam examination
        measurement level count ratio concentration thickness anemia anaemia anamie anemie""",
    CONDITION: """
        diabetes diabetic diabete dm hypertension hypertensive htn high_blood_pressure bluthochdruck hypertonie
        hipertension ipertensione cad chd coronary_artery_disease heart_disease heart_failure renal_failure
        kidney_disease liver_disease hepatic_failure chf copd asthma asthme asma stroke tia ckd cirrhosis cancer
        tumor malignancy lymphoma leukemia metastatic metastasis immunosuppression immunosuppressed aids hiv
        obesity depression dementia epilepsy obesidad obesite adipositas goitre goiter varices
        atrial_fibrillation myocardial_infarction cardiovascular_disease cvd pvd disease disorder syndrome
        krankheit vorerkrankung maladie enfermedad malattia krebs""",
    VITAL: """
        hr heart_rate pulse puls pouls pulso polso bp blood_pressure sbp dbp sys_bp bp_sys dia_bp bp_dia
        systolic diastolic sistolica diastolica systolisch diastolisch mean_bp mean_arterial_pressure map mbp
        blutdruck tension_arterielle tension_arterial presion_arterial pressione_arteriosa rr respiratory_rate
        respiration_rate resp_rate resp breathing atemfrequenz herzfrequenz frequence_cardiaque
        frecuencia_cardiaca temperature temperatur temperatura temp spo2 oxygen_saturation saturation saturacion
        sattigung gcs glasgow avpu consciousness eye motor verbal""",
    SYMPTOM: """
        symptom symptome sintoma sintomo pain schmerz douleur dolor dolore cough husten toux tos tosse fever
        fieber fievre fiebre febbre chill nausea vomiting vomit diarrhea diarrhoea dyspnea dyspnoea breathless
        shortness_of_breath fatigue headache dizziness rash itching itch pruritus edema oedema odem swelling
        appetite weakness numbness bleeding jaundice chest_pain angina complaint erythema scaling ascites
        palpitation syncope seizure confusion hoarseness malaise anorexia disnea dispnea dyspnoe papule lesion
        wound""",
    PERSON: """
        age alter edad etat eta ano birth dob born sex sexe sexo sesso geschlecht gender genre genero genere
        male female race ethnicity ethnic marital married marriage familienstand education school edu bildung
        estudio income poverty occupation work job employment profession beruf residence residency urban rural
        region country state city zip insurance payer versicherung religion language nationality height grosse
        taille talla altura altezza weight gewicht peso poids bmi body_mass_index waist hip_circumference obese""",
    STAY: """
        admission admit admitted aufnahme ingreso ricovero ward station unit icu hospital krankenhaus site
        center centre clinic department specialty speciality referral provider transfer trial arm randomized
        randomised cohort survey year yr jahr annee season month""",
}
# Words that say nothing by themselves; with the others they cut compounds such as 'unittype' or 'meanbp'.
NEUTRAL = frozenset(
    "type status source code group category name first last mean avg average ave max min maximum minimum median total "
    "direct initial final baseline value high low normal new old left right number num nr of at in on the and or for "
    "percentage blood rate pressure failure".split()
)
SHORTEST_PART = 3  # letters of a part of a compound; shorter ones are found everywhere
SHORT_PARTS = frozenset(("bp", "hr", "hb"))
# Given to patients as well as measured in them: words instead of numbers mean that it was given.
GIVEN_TOO = frozenset(
    "insulin insulina iron calcium potassium magnesium cortisol testosterone vitamin folate zinc".split()
)
# Endings of medical language; the first that fits counts. Drugs by the stems of their international names.
ENDINGS: tuple[tuple[str, str], ...] = (
    (TREATMENT, r"(?:formin|gliptin|gliflozin|glitazone|glinide|zolamide|butamide|propamide|azamide|gliclazide)"),
    (TREATMENT, r"(?:gly?[a-z]*ride|gli[a-z]*zide|glitol|carbose|statin|pril|sartan|olol|dipine|prazole|mycin|cillin)"),
    (TREATMENT, r"(?:floxacin|ciclovir|tinib|[uix]mab|xaban|parin|azepam|setron|oxetine|triptan)"),
    (TEST, r"(?:[a-z]{3}(?:in|er|id|et|yl|at)ase|uria|urie|penia|penie|cytosis|keratosis|globin|graphy|scopy)"),
    (CONDITION, r"(?:[ae]mia|itis|oma|pathy|pathie|plegia|sclerosis)"),
    (SYMPTOM, r"(?:algia|pnoea|pnea|rrhea|rrhoea)"),
)
SHORTEST_WITH_ENDING = 6  # letters
SHORTEST_NUMBERED = 4  # letters of a word whose number is no part of it
PLURALS = (("s$", ""), ("en$", ""), ("ies$", "y"), ("ses$", "sis"))
# 'in die Ambulanz': the German article before its noun, which says nothing of dying.
ARTICLE = re.compile(r"\bdie (?=[A-Z][a-z])")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class RoleGuess:
    """is_sure: only one reading of the name and the values was possible; otherwise a person should look."""

    role: str
    reason: str
    is_sure: bool = True


def guess_roles(
    readings: Iterable[Reading], outcome: str, explained: Mapping[str, float] | None = None
) -> dict[str, RoleGuess]:
    """Column → guess, for all columns but the outcome.

    explained: share of the outcome's uncertainty that a column takes away alone (see `Diagnostics`).
    """
    shares = explained or {}
    return {
        reading.name: guess_role(reading, outcome, shares.get(reading.name, np.nan))
        for reading in readings
        if reading.name != outcome
    }


def guess_role(reading: Reading, outcome: str, explained: float = np.nan) -> RoleGuess:
    """reading: the column, of all rows."""
    if reading.problem is not None and DATE_ADVICE in reading.problem:
        return RoleGuess("ignored", "a date or a time, which cannot be used as it stands")
    if reading.problem is None and (reason := reason_to_ignore(reading)) is not None:
        return RoleGuess("ignored", reason)
    if reading.name.casefold().strip() in HOW_LONG and WHETHER & set(words_of_name(outcome)):
        return RoleGuess("ignored", "sounds like how long a patient was followed, known only afterwards", is_sure=False)
    groups = groups_of(reading.name)
    if AFTER in groups and _is_about_leaving(outcome) and not _is_about_dying(reading.name):
        groups = [STAY, *(group for group in groups if group not in (AFTER, STAY))]  # the stay is over by then
    if explained >= GIVES_AWAY:
        return gives_away(explained)
    if groups[:1] == [TEST] and reading.numbers is None and GIVEN_TOO & set(words_of_name(reading.name)):
        groups = [TREATMENT, *groups]
    if groups:
        role, reason = ROLES_OF[groups[0]]
        return RoleGuess(role, reason, is_sure=_agree(groups) and groups[0] != AFTER)
    if reading.problem is None and reading.numbers is None and reading.present.all() and not _is_yes_or_no(reading):
        return RoleGuess("baseline", "words that are recorded for everyone", is_sure=False)
    return RoleGuess("acquirable", "nothing says that it is known from the start")


def gives_away(explained: float) -> RoleGuess:
    """The guess about a column that takes away so much of the outcome's uncertainty."""
    return RoleGuess("ignored", f"nearly gives the outcome away ({explained:.0%} of it)", is_sure=False)


def guess_outcome(names: Sequence[str]) -> str:
    """The column with the most usual name for an outcome; else one that sounds like an end; else the last one."""
    usual = [name for name in names if name.casefold().strip() in USUAL_OUTCOMES]
    if usual:
        return usual[-1]
    ends = [name for name in names if END & set(words_of_name(name))]
    return ends[-1] if ends else names[-1]


def groups_of(name: str) -> list[str]:
    """The groups that the words of a name belong to, the one that decides first."""
    words = words_of_name(name)
    found: dict[str, int] = {}  # group → letters of its longest phrase in the name
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + LONGEST_PHRASE) + 1):
            for group in VOCABULARY.get(tuple(words[start:end]), ()):
                found[group] = max(found.get(group, 0), sum(map(len, words[start:end])))
    if not found:
        found = {group: 1 for group in map(_by_ending, words) if group is not None}
    order = [*ROLES_OF]
    return sorted(
        found, key=lambda group: (group not in FIRST, -found[group] * (group not in FIRST), order.index(group))
    )


def _agree(groups: Sequence[str]) -> bool:
    return len({ROLES_OF[group][0] for group in groups}) == 1


def _is_about_leaving(outcome: str) -> bool:
    """Whether the outcome comes after the stay, as a readmission does."""
    return bool({"readmission", "readmitted", "readmit", "rehospitalization"} & set(words_of_name(outcome)))


def _is_about_dying(name: str) -> bool:
    return bool(
        {"death", "died", "deceased", "mortality", "survival", "dod", "readmission", "readmitted"}
        & {*words_of_name(name)}
    )


def _is_yes_or_no(reading: Reading) -> bool:
    return reading.distinct <= 2


def _by_ending(word: str) -> str | None:
    if len(word) < SHORTEST_WITH_ENDING or word.endswith("disease"):
        return None
    return next((group for group, ending in ENDINGS if re.search(ending + "$", word)), None)


# Words of a name


def words_of_name(name: str) -> list[str]:
    """'HbA1c_first' → hba1c, first; 'unitType', 'unittype' → unit, type; without accents, numbers and plural endings."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    plain = ARTICLE.sub("", plain)
    words: list[str] = []
    for written in re.findall(r"[A-Za-z][A-Za-z0-9]*", plain):
        whole = _parts(_stem(written.casefold()))
        words += whole or [word for part in CAMEL.split(written) for word in _words_of_part(part.casefold())]
    return words


def _words_of_part(written: str) -> list[str]:
    return _parts(_stem(written)) or [_stem(written)]


def _stem(word: str) -> str:
    if word in KNOWN:
        return word
    bare = re.sub(r"\d+$", "", word)
    bare = bare if len(bare) >= SHORTEST_NUMBERED else word  # race1 is race, and map2 a gene
    singular = [re.sub(plural, one, bare) for plural, one in PLURALS]
    return next((form for form in (bare, *singular) if form in KNOWN), bare)


@lru_cache(maxsize=4096)
def _parts(word: str) -> list[str] | None:
    """The known words that a compound is made of, the longest first one tried first."""
    if word in KNOWN:
        return [word]
    for end in range(len(word) - 1, 1, -1):
        first, rest = word[:end], _stem(word[end:])
        if _may_be_part(first) and _may_be_part(word[end:], rest) and (others := _parts(rest)) is not None:
            return [first, *others]
    return None


def _may_be_part(written: str, stem: str | None = None) -> bool:
    if written in SHORT_PARTS:
        return True
    return len(written) >= SHORTEST_PART and (stem is not None or written in KNOWN)


def _vocabulary() -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for group, texts in WORDS.items():
        for phrase in texts.split():
            found.setdefault(tuple(phrase.split("_")), []).append(group)
    return found


VOCABULARY = _vocabulary()
LONGEST_PHRASE = max(map(len, VOCABULARY))
KNOWN = NEUTRAL.union(*VOCABULARY)
