"""Phone numbers and mailboxes as other libraries read them, for the test that holds the gateway's canonical forms against them.

    compare_numbers.py SEED COUNT

Writes lines of tab-separated fields: `valid NUMBER` for a number that `phonenumbers` takes for somebody's, `same NUMBER
SPELLING` for another spelling that it reads as that number, `domain ASCII WRITTEN` for a domain and what `idna` makes of it.
COUNT is how many numbers of each kind of each region are drawn from the pattern of its numbering plan.
"""

import random
import re
import re._constants as sre
import re._parser as parser
import sys

import idna
import phonenumbers
from phonenumbers import PhoneMetadata, PhoneNumberFormat

# Blocks and not lines, also where the environment asks for no buffer: there are tens of thousands of lines.
sys.stdout.reconfigure(write_through=False)
DICE = random.Random(int(sys.argv[1]))
COUNT = int(sys.argv[2])
KINDS = ["fixed_line", "mobile", "toll_free", "premium_rate", "shared_cost", "personal_number", "voip", "pager", "uan",
         "voicemail"]
# What people and switches write before a number, whether the country has it or not.
PREFIXES = ["0", "00", "1", "01", "8", "80", "88", "06", "9", "90", "15", "44", "10", "180020", "011"]
# Two subscribers may share these digits, so the gateway folds none of them: a carrier's prefix in Japan is the beginning of
# a toll-free number.
DOUBTFUL = {81: re.compile(r"003768")}


def draw(pattern):
    """A text that a pattern of digits matches."""
    out = []

    def walk(items):
        for name, value in items:
            if name is sre.LITERAL:
                out.append(chr(value))
            elif name is sre.IN:
                chosen = DICE.choice(value)
                if chosen[0] is sre.RANGE:
                    out.append(chr(DICE.randint(*chosen[1])))
                elif chosen[0] is sre.CATEGORY:
                    out.append(DICE.choice("0123456789"))
                else:
                    out.append(chr(chosen[1]))
            elif name is sre.BRANCH:
                walk(DICE.choice(value[1]))
            elif name is sre.SUBPATTERN:
                walk(value[3])
            elif name is sre.MAX_REPEAT:
                for _ in range(DICE.randint(value[0], min(value[1], 15))):
                    walk(value[2])
            elif name is sre.CATEGORY:
                out.append(DICE.choice("0123456789"))
            elif name is not sre.AT:
                raise ValueError(f"{pattern}: {name}")

    walk(parser.parse(pattern))
    return "".join(out)


def read(text):
    """The E.164 form of a number that is somebody's, or None."""
    try:
        number = phonenumbers.parse(text)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_valid_number(number):
        return None
    return phonenumbers.format_number(number, PhoneNumberFormat.E164)


def regions():
    for code, names in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items():
        main = None
        for name in names:
            metadata = (PhoneMetadata.metadata_for_nongeo_region(code) if name == "001"
                        else PhoneMetadata.metadata_for_region(name))
            main = main or metadata
            yield code, metadata, main


def spellings(code, e164, parsing):
    number = phonenumbers.parse(e164)
    national = e164[1 + len(str(code)):]
    yield e164
    for form in (PhoneNumberFormat.INTERNATIONAL, PhoneNumberFormat.RFC3966):
        yield phonenumbers.format_number(number, form)
    yield f"+{code} {phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)}"
    yield f"+{code}(0){national}"
    for prefix in PREFIXES:
        yield f"+{code}{prefix}{national}"
    if parsing:
        for _ in range(2):
            yield f"+{code} {draw(parsing)} {national}"
    # One digit fewer after the code: what a plan may add to.
    for count in (1, 2, 4):
        yield f"+{code}{national[count:]}"


seen, written = set(), set()
for code, metadata, main in regions():
    for kind in KINDS:
        described = getattr(metadata, kind)
        if described is None or not described.national_number_pattern:
            continue
        drawn = {draw(described.national_number_pattern) for _ in range(COUNT)}
        if described.example_number:
            drawn.add(described.example_number)
        for national in sorted(drawn):
            e164 = read(f"+{code}{national}")
            # E.164 has no more than 15 digits; plans have longer numbers for calls at home.
            if e164 is None or len(e164) > 16 or e164 in seen:
                continue
            seen.add(e164)
            print("valid", e164, sep="\t")
            for spelling in spellings(code, e164, main.national_prefix_for_parsing):
                digits = re.sub(r"\D", "", spelling)[len(str(code)):]
                if spelling in written or code in DOUBTFUL and DOUBTFUL[code].match(digits):
                    continue
                written.add(spelling)
                other = read(spelling)
                if other is not None and len(other) <= 16:
                    print("same", other, spelling, sep="\t")
                    if other not in seen:
                        seen.add(other)
                        print("valid", other, sep="\t")

LETTERS = ["abcxyz019", "äöüßéèåøæñç", "αβγδεςσ", "абвгдёж", "אבגד", "ابتث", "中文网络", "ひらがな", "한국어", "ＡＢＣ１２", "ÀÉÎÕÜ", "fifl"]
for _ in range(40 * COUNT):
    labels = ["".join(DICE.choice(DICE.choice(LETTERS[:1]) if DICE.random() < 0.3 else script) for _ in range(DICE.randint(1, 9)))
              for script in DICE.choices(LETTERS, k=DICE.randint(1, 3))]
    domain = DICE.choice([".", ".", ".", "。", "．"]).join(labels + [DICE.choice(["example", "EXAMPLE", "рф", "测试"])])
    try:
        ascii = idna.encode(domain, uts46=True, transitional=False, std3_rules=True).decode()
    except idna.IDNAError:
        continue
    print("domain", ascii, domain, sep="\t")
