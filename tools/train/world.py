"""The story world: characters, things, and the narrator that plots.py uses.

A story is made in two layers.

  state    who is there (`Who`), what matters (`Thing`), where they live, what each helper can do.
           A plot decides what happens from this state: a crow can see the way from above and a mole
           can dig, so only one of them can answer a certain call for help; the animal that was helped
           in the second paragraph is the one that comes back in the third; the story ends in the
           house in which it began, with the wish of the first paragraph fulfilled.
  wording  `Story.say` takes a template. `[a|b|c]` is one of several wordings (they nest), `{h.he}` a
           field of a character. "a" becomes "an" and sentences get their capital letter afterwards, so
           that templates stay plain.

Everything is drawn from one `random.Random`, so a story depends on its seed and number only.
"""

import re

from words import (BEAST_HOMES, BEASTS, BOYS, CHILD_HOMES, COLORS, ELDERS, FAMILY, GIFTS, GIRLS, HE_BEASTS, LOVES,
                   CASTLES, OBSTACLES, OPENINGS, SHE_BEASTS, SIBLINGS, TRAITS, TREASURES, TROUBLES, WHEN)


HUMANS = ("girl", "boy", "princess", "prince")


class Who:
    """A character. Templates may use its fields."""

    def __init__(self, rng, kind, female, name=None):
        self.rng, self.kind, self.female, self.name = rng, kind, female, name
        self.he, self.him, self.his = ("she", "her", "her") if female else ("he", "him", "his")
        self.himself = "herself" if female else "himself"
        self.He, self.His = self.he.capitalize(), self.his.capitalize()
        self.the = f"the {kind}"                                 # "the rabbit", "the old woman"
        self.human = kind in HUMANS
        self.known = True                                         # False: not yet introduced

    def __str__(self):
        return self.name or self.the

    @property
    def intro(self):
        """The first mention of a friend introduces them: "her friend Jack", later "Jack"."""
        first, self.known = not self.known, True
        return f"{self.tie} {self.name}" if first else self.name

    @property
    def ref(self):
        """Mostly the name, now and then "the little girl": one person under two descriptions."""
        if self.name and self.rng.random() < 0.2:
            return f"the little {self.kind}" if self.human else f"the {self.kind}"
        return str(self)


class Thing:
    """A dear thing: `{t}` is "ball", `{t.full}` is "red ball"."""

    def __init__(self, noun, color=None, use="carried"):
        self.noun, self.color, self.use = noun, color, use
        self.full = f"{color} {noun}" if color else noun

    def __str__(self):
        return self.noun


CHOICE = re.compile(r"\[([^\[\]]*)\]")                             # innermost [a|b|c]
AN = re.compile(r"\b([Aa]) (?=[aeiou](?!ne\b|ni|se|nce\b))")       # a owl -> an owl; not "a one", "a useful"


class Story:
    def __init__(self, rng):
        self.rng = rng
        self.paragraphs = [[]]
        self.used = set()                                        # names and kinds already taken
        self.intro = 0                                           # sentences that introduce the hero
        self.more = False                                        # True: another part follows
        self.cast = {}                                           # slots every template may use

    # wording ---------------------------------------------------------------------------------

    def pick(self, items):
        return self.rng.choice(list(items))

    def maybe(self, p=0.5):
        return self.rng.random() < p

    def word(self, template, **slots):
        """One wording of the template, its slots filled."""
        text = template
        while True:
            text, n = CHOICE.subn(lambda m: self.pick(m.group(1).split("|")), text)
            if not n:
                break
        return text.format(**{**self.cast, **slots})

    def say(self, template, **slots):
        text = self.word(template, **slots)
        text = text[0].upper() + text[1:] if text[0] != '"' else '"' + text[1].upper() + text[2:]
        self.paragraphs[-1].append(text)

    def some(self, p, template, **slots):
        if self.maybe(p):
            self.say(template, **slots)

    def para(self):
        if self.paragraphs[-1]:
            self.paragraphs.append([])

    def in_medias_res(self):
        """Drops the introduction if the next sentence can do it in passing: "One day, a little girl named ..."."""
        h, first = self.cast["h"], self.paragraphs[0]
        rest = first[self.intro:] or self.paragraphs[1][:1]
        name = re.search(rf"\b{h.name}\b(?!')", rest[0]) if rest and self.intro else None
        if not name or rest[0].startswith("Then") or re.search(r"\b(he|she|his|her|him)\b|\"", rest[0][:name.start()],
                                                               re.I):
            return
        del first[:self.intro]
        where = first if first else self.paragraphs[1]
        if self.maybe(0.7):
            intro = self.word("a [little|young|small|{trait}] {h.kind} [named|called] {h}", trait=h.trait)
            where[0] = where[0][:name.start()] + intro + where[0][name.end():]
            where[0] = where[0][0].upper() + where[0][1:]

    def text(self):
        out = "\n".join(" ".join(p) for p in self.paragraphs if p)
        out = AN.sub(lambda m: m.group(1) + "n ", out)
        out = re.sub(r"([.!?] )([a-z])", lambda m: m.group(1) + m.group(2).upper(), out)
        return re.sub(r" +", " ", out)

    # people and things -----------------------------------------------------------------------

    def fresh(self, items):
        """One of the items that this story has not used yet."""
        items = [i for i in items if i not in self.used] or list(items)
        item = self.pick(items)
        self.used.add(item)
        return item

    def child(self, female=None, human=None, royal=False):
        female = self.maybe() if female is None else female
        human = self.maybe(0.7) if human is None else human
        if human:
            kind = "girl" if female else "boy"
            if royal and self.maybe(0.08):
                kind = "princess" if female else "prince"
            return Who(self.rng, kind, female, self.fresh(GIRLS if female else BOYS))
        return Who(self.rng, self.fresh(BEASTS), female, self.fresh(SHE_BEASTS if female else HE_BEASTS))

    def relative(self, child):
        """A grown-up of the child's family: `str` gives "her mother"."""
        kinds = list(FAMILY) if child.human else ["mother", "father", "grandmother", "grandfather"]
        kind = self.fresh(kinds)
        who = Who(self.rng, kind, FAMILY[kind], None)
        who.the = f"{child.his} {kind}"
        return who

    def elder(self):
        kind, female = self.pick(ELDERS)
        return Who(self.rng, kind, female)

    def beast(self, kinds):
        return Who(self.rng, self.fresh(kinds), self.maybe())

    def treasure(self):
        noun = self.fresh(TREASURES)
        return Thing(noun, self.pick(COLORS) if self.maybe(0.8) else self.pick(["old", "little", "beautiful"]),
                     TREASURES[noun])

    def hero(self, sibling=False, **kw):
        """Chooses the hero, and introduces the hero and the place where the story begins."""
        if "h" in self.cast:                                     # second part of a longer story
            return self.cast["h"]
        h = self.child(royal=not sibling, **kw)
        self.cast["h"] = h
        if sibling and h.human and self.maybe(0.2):                # brother and sister
            f = self.cast["f"] = self.child(not h.female, True)
            f.tie = self.word("{h.his} ") + ("sister" if f.female else "brother")
            h.home, h.trait, h.love = self.fresh(CHILD_HOMES), self.pick(TRAITS), self.pick(LOVES)
            self.say(self.pick(SIBLINGS), home=h.home)
            return h
        h.home = self.fresh(CASTLES if h.kind in HUMANS[2:] else CHILD_HOMES if h.human else BEAST_HOMES)
        h.trait = self.pick(TRAITS)
        h.love = self.pick(LOVES)
        adj = self.pick(["little", "little", "young", "small", h.trait]) if h.human else \
            self.pick(["little", "young", "small", h.trait])
        slots = dict(adj=adj, home=h.home)
        self.say(self.pick(OPENINGS[:5] if self.maybe(0.5) else OPENINGS), **slots)
        said_trait = adj == h.trait
        if said_trait:
            self.say(TRAITS[h.trait])
        elif self.maybe(0.5):
            self.say("{h.He} was [very |]{trait}" + self.pick([".", " and [friendly|helpful|honest]."]),
                     trait=h.trait)
            self.some(0.4, TRAITS[h.trait])
        self.some(0.45, "{h.He} [loved|liked] {love}.", love=self.word(h.love))
        self.intro = len(self.paragraphs[0])
        return h

    def friend(self, h):
        """A second child, mostly of the other sex so that pronouns stay clear."""
        if "f" in self.cast:
            return self.cast["f"]
        f = self.child(female=(not h.female) if self.maybe(0.75) else h.female,
                       human=h.human if self.maybe(0.85) else not h.human)
        self.cast["f"] = f
        f.known, f.tie = False, self.word("{h.his} [friend|friend|friend|neighbor|good friend|best friend]")
        return f

    # small scenes used by many plots ------------------------------------------------------------

    def when(self):
        return self.word(self.pick(WHEN))

    def scene(self, p=0.35):
        """Now and then, how it looked and sounded."""
        self.some(p,
                  self.pick(["The sun was [shining|warm], and the birds were singing.",
                             "The wind [sang|whispered] in the trees.",
                             "White clouds [moved|sailed] across the blue sky.",
                             "Everything smelled of [flowers|grass|rain and earth].",
                             "The air was fresh and [clear|cool].",
                             "Bees were [humming|busy] in the flowers.",
                             "The leaves were [dancing in the wind|green and gold].",
                             "It was so quiet that one could hear [a leaf fall|the bees].",
                             "A [thin|light] mist lay over the fields.",
                             "{h} [hummed a little song|was in a good mood|felt that something would happen that "
                             "day]."]))

    def sad(self, who, p=1.0):
        self.some(p,
                  self.pick(["{w.ref} [felt|was] [very sad|sad|so sad].", "{w.ref} began to cry.",
                             "Tears [ran|rolled] down {w.his} cheeks." if who.human else "{w.He} hung {w.his} head.",
                             "{w.He} [sat down and cried|did not know what to do].",
                             "{w.ref} [swallowed hard|looked at the ground|sighed deeply|felt a lump in {w.his} "
                             "throat].", "{w.His} heart was heavy."]), w=who)

    def happy(self, who, p=1.0):
        self.some(p,
                  self.pick(["{w.ref} was [very |so |]happy.",
                             "{w.ref} [laughed|smiled|jumped] with joy.",
                             "{w.ref} [smiled|beamed] [from ear to ear|happily].",
                             "{w.His} heart was [full of joy|light again].",
                             "{w.ref} danced [around and around|with joy].",
                             "{w.ref} [could not stop smiling|had never been so happy|felt as light as a "
                             "feather|wanted to hug the whole world]."]), w=who)

    def thanks(self, who, to):
        """`who` thanks `to`, and gets a friendly answer."""
        family = to.kind in FAMILY
        self.say(self.pick(['"Thank you[| so much], {call}!" said {w}.',
                            '"Thank you[| for your help]," said {w}. "You are [very kind|{true}]."',
                            '{w} thanked {to} [with all {w.his} heart|again and again|and smiled].']), w=who, to=to,
                 call=address(to), true="the best" if family else "a true friend")
        self.some(0.4, self.pick([
            '"You are welcome," said {to}.', '"I was glad to help," {to} [said|answered].',
            '"That is what {these} are for," said {to}.']), to=to, these="families" if family else "friends")

    def ending(self, moral=None, **slots):
        """Back home: evening, sleep, or a lesson."""
        if self.more:                                            # the end comes after the second part
            self.more = False
            return
        kind = self.rng.random()
        if moral and kind < 0.45:
            self.say(moral, **slots)
        elif kind < 0.6:
            self.say(self.pick(["That [night|evening], {h} [fell asleep with a smile|slept well and had sweet "
                                "dreams|went to bed tired and happy].",
                                "When the [stars|moon] came out, {h} [was already asleep|lay in bed and "
                                "smiled|thought of the day and was happy].",
                                "{h} was so tired that {h.he} fell asleep [at once|at the table|before {h.he} could "
                                "say good night].",
                                "[At night|In {h.his} dreams], {h} [saw it all again|laughed in {h.his} "
                                "sleep|dreamed of new adventures]."]))
        elif kind < 0.75:
            self.say("[From that day on|After that day|From then on], {h} " + self.pick(["was [never sad for "
                                                                                         "long|always ready to help "
                                                                                         "others|happier than ever].",
                                                                                         "told everyone about [that "
                                                                                         "day|what had happened].",
                                                                                         "[often thought of that "
                                                                                         "day|never forgot it|told "
                                                                                         "the story again and "
                                                                                         "again].",
                                                                                         "knew that [good friends "
                                                                                         "are the greatest "
                                                                                         "treasure|a kind heart "
                                                                                         "finds a way|it is good to "
                                                                                         "help others]."]))
        elif kind < 0.9:
            self.say("[And so|In the end|And from then on], [they all|everyone] [lived happily ever after|lived in "
                     "peace and joy].")
        else:
            self.say("[It had been|It was] [a wonderful day|the best day of all|a day to remember|a day that nobody "
                     "forgot].")
            self.some(0.3, "The end.")


def address(who):
    """The form of address for somebody."""
    if who.name:
        return who.name
    if who.kind in FAMILY:
        return who.kind.capitalize()
    return {"old woman": "good woman", "old man": "good man"}.get(who.kind, f"dear {who.kind}")


# ------------------------------------------------------------ scenes that many plots share

def with_article(beast):
    beast.a = f"a {beast.kind}"
    beast.adj = ""
    return beast


def meet_in_trouble(s, beast):
    """The hero finds an animal in need and helps it. It will remember."""
    with_article(beast)
    trouble, cure = s.pick(TROUBLES)
    s.say(s.pick(["On the way, {h.he} heard [a soft cry|somebody crying|a small voice].",
                  "[After a while|Soon|On the road], {h.he} [met someone|saw something move]."]))
    s.say(trouble, b=beast)
    s.some(0.4, '"[Poor thing|You poor {b.kind}]," said {h}. "[I will help you|Let me help you]."', b=beast)
    s.say(cure, b=beast, gift=s.pick(GIFTS))
    s.say(s.pick(['"[Thank you|You are kind|Thank you, {h}]," said {b}. "[I will not forget this|One day I will '
                  'help you too|If you need me, just call]."',
                  '{b} thanked {h.him} and promised to help {h.him} one day.']), b=beast)


def overcome(s, ability, beast, known):
    """An obstacle that only this ability removes; a known helper returns, a new one is asked."""
    h = s.cast["h"]
    with_article(beast)
    stop, act, *who = s.pick([o for o in OBSTACLES[ability] if len(o) < 3 or beast.kind in o[2]])
    s.say(stop)
    if known:
        s.some(0.6, '"[What shall I do now|How can I go on|Oh dear, what now]?" [said|asked] {h}.')
        s.say(s.pick(["Then {h} remembered {b} and called {b.him}.", "Just then, {b} came [back|along].",
                      "Then {b} appeared again."]), b=beast)
        s.say('"[You helped me, and now I will help you|Do not worry, I will help you|Now it is my turn to help]," '
              'said {b}.', b=beast)
    else:
        s.say(s.pick(["Just then, {b.a} came along.", "There sat {b.a}.",
                      "[Luckily|By good luck], {b.a} [lived there|was near]."]), b=beast)
        s.say('"[Can you help me|Please, will you help me]?" asked {h}. "[Of course|Yes, I can|Gladly]," said {b}.',
              b=beast)
    s.say(act, b=beast)
    if s.maybe(0.6):
        s.thanks(h, beast)
