"""Texts as people have them: every script, and files of other programs."""

import unicodedata

import pytest

from attnlib import ParallelText
from companion.data.words import NAMES, tokenise, tokenizer_of

LINES = {
    "Amharic": "ድመቷ ቤት ውስጥ ተኛች።",
    "Arabic": "القطة تنام في البيت.",
    "Arabic with vowels": "القِطَّةُ تَنَامُ فِي البَيْتِ.",
    "Armenian": "Կատուն քնում է տանը։",
    "Bengali": "বিড়ালটি ঘরে ঘুমায়।",
    "Burmese": "ကြောင်က အိမ်ထဲမှာ အိပ်တယ်။",
    "Chinese": "猫在房子里睡觉。",
    "Chinese and English": "猫在 house 里睡觉。",
    "Czech, decomposed": unicodedata.normalize("NFD", "Kočka spí v domě."),
    "Devanagari, numbers": "घर में १२ बिल्लियाँ हैं।",
    "emoji of several characters": "the 👩‍👩‍👧 sleeps 👍🏽 .",
    "Georgian": "კატა სახლში სძინავს.",
    "Greek, polytonic": "ἡ γαλῆ ἐν τῷ οἴκῳ καθεύδει.",
    "Gujarati": "બિલાડી ઘરમાં સૂવે છે.",
    "Hebrew": "החתול ישן בבית.",
    "Hebrew with points": "הֶחָתוּל יָשֵׁן בַּבַּיִת.",
    "Hindi": "बिल्ली घर में सोती है।",
    "Japanese": "猫は家で寝ています。",
    "Japanese, Katakana": "コンピューターで寝る。",
    "Kannada": "ಬೆಕ್ಕು ಮನೆಯಲ್ಲಿ ಮಲಗುತ್ತದೆ.",
    "Khmer": "ឆ្មាដេកក្នុងផ្ទះ។",
    "Korean": "고양이가 집에서 잔다.",
    "Korean, decomposed": unicodedata.normalize("NFD", "고양이가 집에서 잔다."),
    "Lao": "ແມວນອນຢູ່ໃນເຮືອນ.",
    "Malayalam": "പൂച്ച വീട്ടിൽ ഉറങ്ങുന്നു.",
    "Marathi": "मांजर घरात झोपते.",
    "Persian, joined without width": "گربه در خانه می\u200cخوابد.",
    "Punjabi": "ਬਿੱਲੀ ਘਰ ਵਿੱਚ ਸੌਂਦੀ ਹੈ।",
    "Russian": "Кошка спит в доме.",
    "Sinhala": "පූසා ගෙදර නිදාගනී.",
    "Tamil": "பூனை வீட்டில் தூங்குகிறது.",
    "Telugu": "పిల్లి ఇంట్లో నిద్రపోతుంది.",
    "Thai": "แมวนอนหลับอยู่ในบ้าน",
    "Tibetan": "ཞི་མི་ཁང་པའི་ནང་ལ་གཉིད་ཉལ་གྱི་འདུག།",
    "Ukrainian, apostrophe": "П'ять котів сплять.",
    "Urdu": "بلی گھر میں سوتی ہے۔",
    "Vietnamese": "Con mèo ngủ trong nhà.",
    "Vietnamese, decomposed": unicodedata.normalize("NFD", "Con mèo ngủ trong nhà."),
}
SHARED_BY_SPACES = {name for name in NAMES if name != "sentencepiece"}


def letters(text):
    """What is left without white space and signs without width."""
    kept = (sign for sign in text if not sign.isspace() and unicodedata.category(sign) != "Cf")
    return "".join(kept).lower().replace("▁", "")


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_no_word_is_a_mark_without_its_letter(line):
    assert not [word for word in tokenise(line) if unicodedata.category(word[0]) in ("Mn", "Mc", "Cf")]


@pytest.mark.parametrize("name", sorted(SHARED_BY_SPACES))
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_no_letter_is_lost_by_a_choice_of_words(line, name):
    words = tokenizer_of(name)(line)
    assert unicodedata.normalize("NFC", letters("".join(words))) == unicodedata.normalize(
        "NFC", letters(line)
    )


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
ENDS = {"Unix": "\n", "Windows": "\r\n", "old Macs": "\r"}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_file_of_another_program_has_the_same_pairs(tmp_path, encoding, end):
    sides = {"a": [LINES["Hindi"], LINES["Russian"]], "b": [LINES["Chinese"], LINES["Arabic"]]}
    for name, lines in sides.items():
        (tmp_path / name).write_bytes((end.join(lines) + end).encode(encoding))
    assert list(ParallelText(tmp_path / "a", tmp_path / "b").pairs()) == list(
        zip(*sides.values(), strict=True)
    )
