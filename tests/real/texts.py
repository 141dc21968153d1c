"""Texts on which embedders are compared: 305 of them, in 36 languages, code and what is unusual, from one token to some 3,500. The same seed gives the
same texts."""
import random

LANGUAGES = {
    "English": "The river was high after the rain, and nobody crossed the old bridge before noon.",
    "German": "Nach dem Regen stand der Fluss hoch, und über die alte Brücke ging bis Mittag niemand; Straßen blieben größtenteils leer.",
    "French": "Après la pluie, la rivière était haute, et personne n'a traversé le vieux pont avant midi, même pas l'âne.",
    "Spanish": "Después de la lluvia el río venía crecido, y nadie cruzó el puente viejo antes del mediodía; ¿quién lo haría mañana?",
    "Portuguese": "Depois da chuva o rio estava cheio, e ninguém atravessou a ponte velha antes do meio-dia, nem os cães.",
    "Italian": "Dopo la pioggia il fiume era alto, e nessuno attraversò il vecchio ponte prima di mezzogiorno, perché così è più sicuro.",
    "Dutch": "Na de regen stond de rivier hoog en niemand stak voor de middag de oude brug over, zelfs de koeien niet.",
    "Swedish": "Efter regnet stod ån högt, och ingen gick över den gamla bron före klockan tolv på söndagen.",
    "Danish": "Efter regnen stod åen højt, og ingen gik over den gamle bro før middag, ikke engang børnene.",
    "Norwegian": "Etter regnet sto elva høyt, og ingen gikk over den gamle brua før klokka tolv på lørdag.",
    "Finnish": "Sateen jälkeen joki oli korkealla, eikä kukaan ylittänyt vanhaa siltaa ennen keskipäivää, vaikka tie oli tyhjä.",
    "Icelandic": "Eftir rigninguna var áin mikil og enginn fór yfir gömlu brúna fyrir hádegi, það þótti hættulegt.",
    "Polish": "Po deszczu rzeka wezbrała i przed południem nikt nie przeszedł przez stary most, choć ścieżka była sucha.",
    "Czech": "Po dešti byla řeka vysoko a nikdo před polednem nepřešel přes starý most, přestože cesta byla už suchá.",
    "Slovak": "Po daždi bola rieka vysoko a nikto pred poludním neprešiel cez starý most, hoci ľudia čakali.",
    "Hungarian": "Az eső után magas volt a folyó, és délig senki sem ment át a régi hídon, még a gyerekek sem tűntek fel.",
    "Romanian": "După ploaie râul era mare și nimeni nu a trecut podul vechi înainte de prânz, deși ținta era aproape.",
    "Turkish": "Yağmurdan sonra nehir yükselmişti ve öğleye kadar kimse eski köprüden geçmedi; İstanbul'a giden yol ıslaktı.",
    "Vietnamese": "Sau cơn mưa nước sông dâng cao, và trước buổi trưa không ai đi qua cây cầu cũ.",
    "Indonesian": "Sesudah hujan sungai meluap, dan sebelum tengah hari tidak ada orang yang menyeberangi jembatan tua itu.",
    "Swahili": "Baada ya mvua mto ulijaa, na hakuna mtu aliyevuka daraja la zamani kabla ya saa sita mchana.",
    "Russian": "После дождя река поднялась, и до полудня никто не переходил старый мост, ещё мокрый и скользкий.",
    "Ukrainian": "Після дощу річка піднялася, і до полудня ніхто не переходив старий міст; їжак теж чекав під ґанком.",
    "Bulgarian": "След дъжда реката беше висока и до обед никой не премина по стария мост, макар че пътят беше сух.",
    "Greek": "Μετά τη βροχή το ποτάμι ήταν ψηλά, και κανείς δεν πέρασε το παλιό γεφύρι πριν από το μεσημέρι.",
    "Hebrew": "אחרי הגשם היה הנהר גבוה, ואיש לא חצה את הגשר הישן לפני הצהריים.",
    "Arabic": "بعد المطر ارتفع النهر، ولم يعبر أحد الجسر القديم قبل الظهر، فالطريقُ ما زال مبلّلًا.",
    "Persian": "پس از باران رودخانه بالا آمده بود و تا ظهر هیچ‌کس از پل کهنه نگذشت.",
    "Hindi": "बारिश के बाद नदी ऊँची थी, और दोपहर से पहले किसी ने पुराना पुल पार नहीं किया।",
    "Bengali": "বৃষ্টির পরে নদী উঁচু ছিল, আর দুপুরের আগে কেউ পুরোনো সেতু পার হয়নি।",
    "Tamil": "மழைக்குப் பிறகு ஆறு உயர்ந்திருந்தது, நண்பகலுக்கு முன் யாரும் பழைய பாலத்தைக் கடக்கவில்லை.",
    "Thai": "หลังฝนตกน้ำในแม่น้ำสูงขึ้น และไม่มีใครข้ามสะพานเก่าก่อนเที่ยง",
    "Georgian": "წვიმის შემდეგ მდინარე ადიდდა და შუადღემდე ძველი ხიდი არავის გადაუვლია.",
    "Japanese": "雨のあと川は増水し、正午まで古い橋を渡る人は誰もいなかった。カタカナとひらがなも混じる。",
    "Korean": "비가 온 뒤 강물이 불어나 정오까지 아무도 오래된 다리를 건너지 않았다.",
    "Chinese": "雨后河水上涨，中午以前没有人走过那座旧桥；孩子們在岸邊等待。",
}
CODE = [
    "def mean(xs):\n    return sum(xs) / len(xs)  # of a list\n",
    "for (size_t i = 0; i < n; i++) {\n\tsum += a[i] * b[i];\n}\n",
    "SELECT name, COUNT(*) FROM birds WHERE seen >= '2024-01-01' GROUP BY name;",
    "<ul class=\"menu\"><li><a href=\"/x?y=1&amp;z=2\">one</a></li></ul>",
    "{\"id\": 17, \"tags\": [\"a\", \"b\"], \"ratio\": -1.5e-3, \"none\": null}",
    "git commit -am 'fix: off-by-one in parse()' && git push origin HEAD",
    "fn add(a: i32, b: i32) -> i32 { a.wrapping_add(b) }",
    "x = lambda y: {k: v ** 2 for k, v in y.items() if v}",
    "\\int_0^\\infty e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2}",
    "#!/bin/sh\nset -eu\nfind . -name '*.o' -print0 | xargs -0 rm -f\n",
]
UNUSUAL = [
    "", " ", "\n", "\t\t", ".", "a", "A", "0", "?!?!", "...", "é", "e\u0301", "ﬁ ﬂ Ⅷ ①", "\u00a0", "\u200b", "\ufeffbegins with a mark", "soft\u00adhyphen",
    "zero\u200bwidth\u200dspaces", "ＦＵＬＬ ｗｉｄｔｈ", "İstanbul ISPARTA ıßſ", "naïve façade coöperate", "😀 👩‍👩‍👧 🏳️‍🌈 🇩🇪", "∑∏√≠≤ ←→ ½ ¾ °C €£¥", "a\r\nb\rc",
    "tab\tseparated\tvalues", "ALL CAPITAL LETTERS HERE", "cAmElCaSe and snake_case and kebab-case", "user@example.org https://example.org/a/b?c=d#e", "1,234,567.89 and 12:34:56 and 2024-02-30",
    "under_score__double", "quote \"double\" 'single' “curly” ‘one’ «angle»", "(nested [brackets {of <all> kinds}])", "[CLS] special tokens [SEP] in [MASK] text [PAD] [UNK]",
    "<s> other </s> marks <mask> of <pad> roberta <unk>", "[CLS]", "[SEP][SEP]", "text[SEP]without spaces[MASK]here", "<|im_end|> <|endoftext|>", "w" * 99, "w" * 100, "w" * 101, "ab" * 400,
    "日本語とEnglishとрусскийのmix", "#hashtag @mention :smile: ;-)", "\u0378 unassigned \U000e0001", "control \x07 \x1b characters \x7f", "𝔉𝔯𝔞𝔨𝔱𝔲𝔯 𝒮𝒸𝓇𝒾𝓅𝓉", "ᚠᚢᚦ 𐎀𐎁 𓀀",
    "double  spaces   and    more", "ends with space ",
]
N_TEXTS, LONGEST = 305, 3300     # words; of the longest text


def texts(seed=1):
    draw = random.Random(seed)
    sentences = list(LANGUAGES.values())
    words = [w for s in sentences for w in s.split()]
    english = LANGUAGES["English"].split() + "a cat sat on mats while seven grey geese flew south over frozen fields and small farms".split()
    some = [*sentences, *CODE, *UNUSUAL]
    for s in sentences:  # each language: its words in another order, and repeated
        own = s.split() if " " in s else list(s)
        join = " " if " " in s else ""
        for n in (5, 40, 120):
            some.append(join.join(draw.choice(own) for _ in range(n)))
    for k in range(30):  # several languages in a text
        some.append(" ".join(draw.choice(sentences) for _ in range(2 + k % 5)))
    for k in range(24):  # English, longer and longer, up to the longest
        some.append(" ".join(draw.choice(english) for _ in range(LONGEST * (k + 1) // 24)))
    while len(some) < N_TEXTS:
        some.append(" ".join(draw.choice(words) for _ in range(draw.randrange(1, 90))))
    assert len(some) == N_TEXTS and len(LANGUAGES) >= 30, len(some)
    return some
