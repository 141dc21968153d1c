"""Short tales for conversations: stories of the same world, each with what can be asked about it.

    python3 tales.py --seed 1 --count 2             prints tales with their questions and answers

A plot tells its tale through world.Story and records, with every fact that it tells, the questions whose
answer this fact is. An answer has one wording, so that it is right or wrong; questions have many. The tale in
one sentence (`short`) is for conversations that are asked to be brief; it has fewer facts (`brief`).
"""

import argparse
import random
import re

from words import (BEAST_HOMES, BEASTS, BOYS, CAN, CHILD_HOMES, COLORS, FAMILY, GIRLS, HE_BEASTS, INDOORS, LOVES, OUTDOORS,
                   SHE_BEASTS, TRAITS, TREASURES)
from world import AN, Story, Thing, Who

# Heroes that the long stories do not have: a user may ask for anything.
STRANGE = ("dragon robot witch king queen wizard giant fairy knight pirate elephant lion tiger monkey wolf snail bee "
           "fish horse cow unicorn mermaid ghost monster snowman dwarf troll elf penguin whale bird chicken goose swan "
           "snake parrot spider ant butterfly crab seal deer camel zebra giraffe kangaroo panda koala hamster gnome "
           "princess prince sailor soldier farmer baker doctor teacher cook tree star cloud train car boat ball teddy "
           "clown").split()
BEGIN, MIDDLE, END = ("b br d dr f fl g gr h j k kl l m n p r s sh st t tr v w z".split(),
                      "a e i o u ee oo ai".split(), "l n r s t m x ck nd b d lo ra na mi bo ta ri do ky la".split())
HOMES = [h for h in CHILD_HOMES + BEAST_HOMES if "fam" not in h]
PLACES = INDOORS + ["under the big oak", "in the tall grass", "by the well", "near the bridge", "behind the barn",
                    "under a bush", "on the old wall", "in the garden", "in an old shoe", "under a stone"]


def invented(rng):
    """A name that nobody has heard before, so that names are copied and not only recognized."""
    parts = "".join(rng.choice(BEGIN) + rng.choice(MIDDLE) for _ in range(rng.randint(1, 2))) + rng.choice(END)
    return parts.capitalize()


def polish(text):
    text = AN.sub(lambda m: m.group(1) + "n ", text)
    text = re.sub(r"([.!?]\"? )([a-z])", lambda m: m.group(1) + m.group(2).upper(), text)
    text = text[0].upper() + text[1:] if text[0] != '"' else '"' + text[1].upper() + text[2:]
    return re.sub(r" +", " ", text)


class Tale(Story):
    """A tale; `want` may fix the hero's name, kind and sex, the plot, the thing and the home."""

    def __init__(self, rng, want=None, avoid=()):
        super().__init__(rng)
        self.want = want or {}
        self.used = set(avoid)
        self.qa = []               # (kind, question, answer)
        self.short = ""            # the tale in one sentence
        self.brief = set()         # kinds of question that the short tale answers, too
        plot = self.want.get("plot") or rng.choices(list(PLOTS), weights=list(PLOTS.values()))[0]
        self.plot = plot
        globals()["tale_" + plot](self)
        told = {kind for kind, _, _ in self.qa}
        for kind in self.rng.sample([k for k in ABSENT if k not in told], 2):
            self.ask("absent", ABSENT[kind], "The story does not say that.", True)
        self.qa.append(("about",
                        self.word("[What is the story about|What is it about|What happens in the story|What was the "
                                  "story about|Tell it in one sentence|Make it shorter|Summarize the story|What was it "
                                  "about|The short version, please]") + "?", polish(self.short)))

    def ask(self, kind, questions, answer, brief=False, **slots):
        q = self.word(questions, **slots)
        self.qa.append((kind, polish(q) + "?", polish(self.word(answer, **slots))))
        if brief:
            self.brief.add(kind)

    def tell(self):
        return self.text()

    def name(self, items):
        if self.rng.random() < 0.08:
            name = invented(self.rng)
            self.used.add(name)
            return name
        return self.fresh(items)

    def person(self, human=None, female=None):
        """A named character, child or animal."""
        human = self.maybe(0.6) if human is None else human
        female = self.maybe() if female is None else female
        if human:
            return Who(self.rng, "girl" if female else "boy", female, self.name(GIRLS if female else BOYS))
        return Who(self.rng, self.fresh(BEASTS), female, self.name(SHE_BEASTS if female else HE_BEASTS))

    def meet(self):
        """The hero and the home, with the questions about them."""
        w = self.want
        h = self.person(w.get("human"), w.get("female"))
        if "kind" in w:
            h.kind, h.human = w["kind"], w["kind"] in ("girl", "boy")
            if not h.human and "name" not in w:
                h.name = self.name(SHE_BEASTS if h.female else HE_BEASTS)
        h.name = w.get("name", h.name)
        h.the = f"the {h.kind}"
        self.used.update((h.name, h.kind))
        self.cast["h"] = h
        h.home = w.get("home") or self.fresh(CHILD_HOMES if h.human else BEAST_HOMES if self.maybe(0.8) else HOMES)
        h.trait, h.love = self.pick(TRAITS), self.word(self.pick(LOVES))
        adj = self.pick(["little", "little", "little", "young", "small"])
        self.say(self.pick([
            "Once upon a time, there was a {adj} {h.kind} named {h}. {h.He} lived {home}.",
            "Once upon a time, there was a {adj} {h.kind} named {h} who lived {home}.",
            "Once upon a time, a {adj} {h.kind} named {h} lived {home}.",
            "Once there was a {adj} {h.kind} called {h}. {h.He} lived {home}.",
            "{h} was a {adj} {h.kind} who lived {home}.",
            "There once was a {adj} {h.kind} named {h} who lived {home}."]), adj=adj, home=h.home)
        self.ask("hero", "[who is the story about|who is the hero|who is the hero of the story|who was the story about|"
                 "what is the hero called|what is the name of the {h.kind}|what was the {h.kind} called|"
                 "who is it about|what is {h.his} name]", "The story is about {h}, a {h.kind}.", True)
        self.ask("who", "[who is {h}|who was {h}|tell me about {h}|who is this {h}|and who is {h}]",
                 "{h} is a {h.kind} who lives {home}.", True, home=h.home)
        self.ask("home", "[where does {h} live|where did {h} live|where is {h}'s home|where does {h.he} live|"
                 "where does the {h.kind} live|in what place does {h} live]", "{h} lives {home}.", True, home=h.home)
        self.ask("kind", "[what is {h}|what kind of animal is {h}|is {h} a girl or a boy|what was {h}|"
                 "is {h} a person or an animal]", "{h} is a {h.kind}.", True)
        self.ask("isa", "[is|was] {h} a {h.kind}", "Yes, {h} is a {h.kind}.", True)
        other = self.pick([k for k in BEASTS + ["girl", "boy"] if k != h.kind])
        self.ask("no", "[is|was] {h} a {o}", "No, {h} is a {h.kind}.", True, o=other)
        if self.maybe(0.5):
            self.say("{h.He} [loved|liked] {love}.", love=h.love)
            self.ask("love", "[what does {h} love|what does {h} like|what does {h} like to do|what did {h} love|"
                     "what did {h} love to do|what does {h.he} like to do]", "{h} loves {love}.", love=h.love)
        elif self.maybe(0.6):
            self.say("{h.He} was [very |]{trait}.", trait=h.trait)
            self.ask("trait", "[what was {h} like|how was {h}|what is {h} like|what kind of {h.kind} was {h}|"
                     "how would you describe {h}]", "{h} was {trait}.", trait=h.trait)
        self.ask("unsaid", "[how old is {h}|how old is {h.he}|what color are {h}'s eyes|how tall is {h}|what does {h} "
                 "eat|who is {h}'s teacher|what is {h}'s last name|when was {h} born|what color is {h}'s hair|does {h} "
                 "have a sister|how much does {h} weigh|what day was it|what did {h} eat for breakfast|what is the "
                 "name of {h}'s dog|does {h} like pizza|how many friends does {h} have]",
                 "The story does not say that.", True)
        return h

    def pal(self):
        """A friend of the hero, with the questions about the friend."""
        h = self.cast["h"]
        f = self.cast["f"] = self.person(h.human if self.maybe(0.7) else None,
                                         (not h.female) if self.maybe(0.75) else h.female)
        f.kind, f.name = self.want.get("pal kind", f.kind), self.want.get("pal", f.name)
        self.ask("friend", "[who is {h}'s friend|what is {h}'s friend called|what is the name of {h}'s friend|what is "
                           "the friend called|who is {h.his} friend|what is {h.his} friend's name|does {h} have a "
                           "friend]",
                 "{h}'s friend is {f}.", True)
        self.ask("pal", "[who is {f}|who was {f}|and who is {f}|and {f}]", "{f} is {h}'s friend.", True)
        return f

    def kin(self):
        kind = self.pick(FAMILY)
        return Who(self.rng, kind, FAMILY[kind]), f"{self.cast['h'].his} {kind}"

    def thing(self):
        if "thing" in self.want:
            color, noun = self.want["thing"]
            return Thing(noun, color or self.pick(COLORS))
        return Thing(self.fresh(TREASURES), self.pick(COLORS))

    def ends(self, answer, **slots):
        self.ask("end", "[how does the story end|how does it end|how did it end|what happened at the end|what happens "
                 "in the end|how did the story end|what is the end of the story|and then|what happened then]", answer,
                 **slots)


# Kind -> questions that only tales with such an answer can be asked; in all others, nothing is said about it.
ABSENT = {
    "friend": "[who is {h}'s friend|what is {h}'s friend called|who is {h.his} friend|does {h} have a friend]",
    "lost": "[what did {h} lose|what was gone]",
    "color": "[what color was it|what color was {h}'s hat|which color was it]",
    "giver": "[who gave it to {h}|from whom did {h} get it]", "went": "[where did {h} go|where did {h.he} go]",
    "bake": "[what did {h} bake|what did {h} cook]",
    "prize": "[what was the prize|what did {h} win]", "won": "who won the race",
    "wish": "[what did {h} wish for|what did {h} wish]", "broke": "[what did {h} break|what broke]",
    "grew": "[what grew|what did {h} plant]", "goal": "[what did {h} look for|what did {h} want to find]",
    "why": "[why was {h} sad|why was {h.he} sad|why did {h} cry|why was {h} angry]",
    "helper": "[who helped {h}|who helped {h.him}]", "hid": "where did they hide",
    "whose": "whose birthday was it", "did": "what did they do together",
}
HOW_SAD = "[why was {h} sad|why was {h.he} sad|why did {h} cry|why was {h} so sad|what made {h} sad]"
CHEER = "[{h} was very happy|{h} was happy again|{h} smiled and danced|{h} laughed with joy]."


def went(s):
    was, go = s.pick(OUTDOORS)
    s.ask("went", "[where did {h} go|where did {h.he} go]", "{h} went {go}.", go=go)
    return go


def tale_lost(s):
    h, t = s.meet(), s.thing()
    g, giver = s.kin()
    s.say("{h} had a {t.full}. It was a gift from {g}.", t=t, g=giver)
    s.ask("color", "[what color was the {t}|which color was the {t}|what color was {h}'s {t}|what color is the {t}]",
          "The {t} was {c}.", True, t=t, c=t.color)
    s.ask("giver", "[who gave {h} the {t}|who gave the {t} to {h}|from whom was the {t}|from whom did {h} get the {t}]",
          "{h} got the {t} from {g}.", t=t, g=giver)
    s.para()
    s.say("{when}, {h} went {go}. When {h.he} came home, the {t} was gone. {h} was [very |so |]sad.", when=s.when(),
          go=went(s), t=t)
    s.ask("lost", "[what did {h} lose|what did {h.he} lose|what was gone|what did the {h.kind} lose]",
          "{h} lost {h.his} {t.full}.", True, t=t)
    s.ask("why", HOW_SAD, "{h} was sad because {h.his} {t} was gone.", t=t)
    s.pal()
    s.say('Then {h.his} [friend|good friend] {f} came. "[I have lost|I cannot find] my {t}," said {h}. "[Let us look '
          'for it together|I will help you]," said {f}.', t=t)
    where = s.fresh(PLACES)
    s.say("They looked {a} and {b}. At last, {f} found the {t} {w}.",
          a=s.fresh(PLACES), b=s.fresh(PLACES), t=t, w=where)
    s.ask("helper", "[who helped {h}|who helped {h.him}|did someone help {h}]", "{f} helped {h}.", True)
    s.ask("finder", "[who found the {t}|who found {h}'s {t}|who found it]", "{f} found the {t}.", True, t=t)
    s.ask("place", "[where was the {t}|where did {f} find the {t}|where did they find the {t}|where did they find it|"
          "where was it]", "The {t} was {w}.", True, t=t, w=where)
    s.ask("yes",
          "[did {h} find the {t}|did they find the {t}|was the {t} found]", "Yes, {f} found the {t} {w}.", t=t, w=where)
    s.para()
    s.say(CHEER)
    s.say('"[Thank you|Thank you so much], {f}," said {h}. "[You are a true friend|You are the best friend of all]."')
    s.ends("{f} found the {t}, and {h} was happy again.", t=t)
    s.short = s.word("{h}, a little {h.kind} who lived {home}, lost {h.his} {t.full}, but {h.his} friend {f} found it "
                     "{w}.",
                     home=h.home, t=t, w=where)


def tale_friend(s):
    h = s.meet()
    s.say("But {h.he} had no friends, and {h.he} was [sad|very sad].")
    s.ask("why", HOW_SAD, "{h} was sad because {h.he} had no friends.")
    s.para()
    go = went(s)
    s.pal()
    s.say("{when}, {h} went {go}. There {h.he} met a {f.kind}. \"[My name is|I am] {f}. What is your name?\" asked the "
          "{f.kind}. \"I am {h},\" said {h}.", when=s.when(), go=go)
    s.ask("met",
          "[whom did {h} meet|who did {h} meet|who did {h.he} meet|who was there]", "{h} met {f}, a {f.kind}.", True)
    s.ask("fkind", "[what is {f}|is {f} a girl or a boy|what kind of animal is {f}]", "{f} is a {f.kind}.")
    did = s.pick(["flew a kite",
                  "played hide and seek", "picked berries", "made a little boat", "told each other stories",
                  "looked for shells", "sang songs", "built a house of sticks", "climbed trees", "baked a cake",
                  "painted a picture", "danced in the rain"])
    s.say("{h} and {f} {did} [until the sun went down|all day long|the whole afternoon].", did=did)
    s.ask("did", "[what did they do|what did they do together|what did {h} and {f} do|what did {h} do with {f}]",
          "{h} and {f} {did}.", True, did=did)
    s.para()
    s.say("[Now {h} was not sad anymore|{h} was not sad anymore]. {h.He} had a friend.")
    s.some(0.6, "From that day on, {h} and {f} were best friends.")
    s.ends("{h} and {f} were best friends.")
    s.short = s.word("{h}, a little {h.kind} who lived {home}, had no friends until {h.he} met {f}, a {f.kind}, and "
                     "they {did} together.", home=h.home, did=did)


ILLS = [("was caught in a bush", "set {b.him} free"),
        ("had hurt {b.his} foot", "put a cloth around the foot"),
        ("was very hungry", "gave {b.him} a piece of bread"),
        ("was cold and wet", "wrapped {b.him} in a warm blanket"),
        ("had fallen into a hole", "put a long branch into the hole"),
        ("had lost {b.his} mother", "helped {b.him} to look for her")]


def tale_animal(s):
    h = s.meet()
    b = Who(s.rng, s.fresh(["bird",
                            "fawn", "puppy", "kitten", "lamb", "owl", "hedgehog", "duckling", "mouse", "rabbit"]),
            s.maybe())
    s.para()
    was, go = s.pick(OUTDOORS)
    ill, help_ = s.pick(ILLS)
    ill, help_ = s.word(ill, b=b), s.word(help_, b=b)
    s.say("{when}, {h} [heard a soft cry|heard a small voice] {was}. There was a little {b.kind}. The {b.kind} {ill}.",
          when=s.when(), was=was, b=b, ill=ill)
    s.ask("found", "[what did {h} find|who was there|whom did {h} help|which animal did {h} help|what animal was it|"
          "who needed help]", "{h} helped a little {b.kind}.", True, b=b)
    s.ask("place", "[where was the {b.kind}|where did {h} find the {b.kind}|where did {h} hear the cry]",
          "The {b.kind} was {was}.", b=b, was=was)
    s.ask("ill",
          "[what was wrong with the {b.kind}|why did the {b.kind} cry|what happened to the {b.kind}|what was the "
          "matter with the {b.kind}]", "The {b.kind} {ill}.", True, b=b, ill=ill)
    s.say('"[Do not be afraid|Do not cry]," said {h}. "I will help you." {h.He} {help}. "Thank you," said the '
          '{b.kind}. "I will not forget you."', b=b, help=help_)
    s.ask("how", "[how did {h} help|how did {h} help the {b.kind}|what did {h} do for the {b.kind}|what did {h} do]",
          "{h} {help}.", b=b, help=help_)
    s.para()
    s.say("Some days later, {h} was lost in the [forest|fog|dark]. {h.He} was afraid. Then the {b.kind} came and "
          "showed {h.him} the way home.", b=b)
    s.ask("helper", "[who helped {h}|who showed {h} the way|who helped {h.him}|who brought {h} home]",
          "The {b.kind} helped {h}.", b=b)
    s.ask("why", "[why was {h} afraid|why was {h.he} afraid]", "{h} was afraid because {h.he} was lost.")
    s.say("{h} [knew now|learned] that a kind deed is never lost.")
    s.ends("The {b.kind} showed {h} the way home.", b=b)
    s.short = s.word("{h}, a little {h.kind} who lived {home}, helped a little {b.kind} who {ill}, and later the "
                     "{b.kind} showed {h.him} the way home.", home=h.home, b=b, ill=ill)


def tale_storm(s):
    h = s.meet()
    f = s.pal()
    s.para()
    was, go = s.pick(OUTDOORS)
    shelter = s.pick(["in an old barn", "in a small cave", "in a hollow tree", "in an empty hut", "under a big rock"])
    s.say("{when}, {h} and {h.his} [friend|good friend] {f} were playing {was}. Suddenly the sky grew dark, and a "
          "storm came. They ran as fast as they could and hid {sh}.", when=s.when(), was=was, sh=shelter)
    s.ask("place", "[where were they playing|where did {h} and {f} play|where were {h} and {f}|where did they play]",
          "{h} and {f} were playing {was}.", was=was)
    s.ask("hid", "[where did they hide|where did {h} and {f} hide|where did they go|where did {h} hide]",
          "They hid {sh}.", True, sh=shelter)
    s.ask("what", "[what happened|what came|what happened to {h} and {f}]", "A storm came.", True)
    x, y = (h, f) if s.maybe() else (f, h)
    how, did = s.pick([("Let us sing a song", "sang a song"), ("Hold my hand", "held {x.his} hand"),
                       ("I will tell you a story", "told {x.him} a story"), ("The thunder is only a noise",
                                                                            "said that it was only a noise")])
    s.say('{x} was afraid of the thunder. "[{how}|Do not be afraid. {how}]," said {y}. Then {x} felt better.',
          x=x, y=y, how=how)
    s.ask("afraid",
          "[who was afraid|who was afraid of the thunder|was {x} afraid]", "{x} was afraid of the thunder.", x=x)
    s.ask("said", "[what did {y} say|how did {y} help|how did {y} help {x}]", 'He said, "{how}."' if not y.female else
          'She said, "{how}."', y=y, x=x, how=how)
    s.para()
    s.say("At last the storm was over. There was a [big |beautiful |]rainbow in the sky, and {h} and {f} [ran|walked] "
          "home together.")
    s.ends("The storm was over, and {h} and {f} went home together.")
    s.short = s.word("{h}, a little {h.kind} who lived {home}, and {h.his} friend {f} hid {sh} from a storm until it "
                     "was over.",
                     home=h.home, sh=shelter)


def tale_cake(s):
    h = s.meet()
    g, kin = s.kin()
    cake = s.pick(["honey cake", "apple pie", "berry pie", "chocolate cake", "nut cake", "loaf of sweet bread"])
    need = s.pick(["honey", "flour", "sugar", "milk", "butter", "nuts", "berries", "apples", "salt"])
    s.para()
    s.say("It was the birthday of {g}. {h} wanted to bake a {c} for {g.him}.", g=Wrap(kin, g), c=cake)
    s.ask("whose", "[whose birthday was it|who had a birthday|for whom was the cake|for whom did {h} bake]",
          "It was the birthday of {k}.", True, k=kin)
    s.ask("bake", "[what did {h} bake|what did {h} make|what did {h} want to bake|what did {h.he} bake]",
          "{h} baked a {c}.", True, c=cake)
    who = s.pick(["baker", "farmer", "miller", "old woman", "old man", "bear", "squirrel", "neighbor"])
    job = s.pick(["carry the wood", "feed the hens", "sweep the yard", "catch the goat", "find the glasses",
                  "bring water from the well", "pick the apples", "wash the windows"])
    s.say("But {h} had no {n}. So {h.he} went to the {w}. \"I will give you {n},\" said the {w}, \"if you help me to "
          "{j}.\" {h} helped gladly and got the {n}.", n=need, w=who, j=job)
    s.ask("need", "[what did {h} need|what was missing|what did {h} not have]",
          "{h} had no {n}.", n=need)
    s.ask("helper", "[who gave {h} the {n}|where did {h} get the {n}|from whom did {h} get the {n}|who helped {h}]",
          "{h} got the {n} from the {w}.", True, n=need, w=who)
    s.ask("job", "[what did {h} have to do|what did {h} do for the {w}|how did {h} help the {w}|what did the {w} want]",
          "{h} helped the {w} to {j}.", w=who, j=job)
    s.para()
    s.say("Then {h} baked the {c}. \"[This is the best {c} in the world|How good it is]!\" said {k}. {k} [was very "
          "happy|smiled from ear to ear].", c=cake, k=kin)
    s.ends("{h} baked the {c}, and {k} was very happy.", c=cake, k=kin)
    s.short = s.word("{h}, a little {h.kind} who lived {home}, got {n} from the {w} and baked a {c} for the birthday "
                     "of {k}.",
                     home=h.home, n=need, w=who, c=cake, k=kin)


class Wrap:
    """A relative as the hero sees them: "her mother", with pronouns."""

    def __init__(self, text, who):
        self.text, self.him = text, who.him

    def __str__(self):
        return self.text


WAYS = {
    "swim": ("there was a deep river without a bridge", "took {h.him} across the river"),
    "fly": ("there was a thick fog", "flew up and saw the way"),
    "dig": ("there was a high wall", "dug a hole under the wall"),
    "pull": ("a big tree lay across the road", "pulled the tree away"),
    "bite": ("there was a thick hedge of thorns", "bit a hole into the hedge"),
    "shine": ("there was a dark cave", "lit up the cave"),
    "smell": ("the snow had covered the path", "smelled the right way"),
}


def tale_journey(s):
    h = s.meet()
    goal = s.pick(["a golden apple", "a magic flower", "a singing stone", "a silver shell", "the end of the rainbow",
                   "the highest mountain", "a blue rose", "a lost star", "the wise old owl", "a golden feather",
                   "the sea", "a hidden treasure"])
    s.say("{h} wanted to find {g}.", g=goal)
    s.ask("goal",
          "[what did {h} want|what did {h} want to find|what did {h} look for|what was {h} looking for|what was "
          "{h}'s wish]", "{h} wanted to find {g}.", True, g=goal)
    s.para()
    way = s.pick(WAYS)
    stop, act = WAYS[way]
    b = s.beast(CAN[way])
    act = s.word(act)
    s.say("{when}, {h.he} set out. [Soon|After a while|At noon], {st}, and {h} could "
          "not go on. \"I will help you,\" said a {b.kind}. The {b.kind} {a}.", when=s.when(), st=stop, b=b, a=act)
    s.ask("stop", "[what was the problem|what stopped {h}|why could {h} not go on|what was on the way]",
          "{h} could not go on because {st}.", st=stop)
    s.ask("helper", "[who helped {h}|who helped {h.him}|which animal helped {h}|did anyone help {h}]",
          "A {b.kind} helped {h}.", True, b=b)
    s.ask("how", "[how did the {b.kind} help|what did the {b.kind} do|how did the {b.kind} help {h}]",
          "The {b.kind} {a}.", b=b, a=act)
    s.para()
    s.say('[In the evening|At last], {h} found {g}. "[How beautiful|What luck]!" said {h}. [Then {h.he} went home and '
          'told everyone about it|{h.He} was the happiest {h.kind} in the world].', g=goal)
    s.ask("yes", "[did {h} find {g}|did {h.he} find it|did {h} find it]", "Yes, {h} found {g}.", g=goal)
    s.ends("{h} found {g}.", g=goal)
    s.short = s.word("{h}, a little {h.kind} who lived {home}, wanted to find {g}, and with the help of a {b.kind} "
                     "{h.he} found it.", home=h.home, g=goal, b=b)


def tale_honest(s):
    h = s.meet()
    g, kin = s.kin()
    x = s.pick(["glass bowl",
                "blue cup", "white plate", "big mirror", "old clock", "window", "red vase", "lamp", "tea pot"])
    why = s.pick(["played with a ball in the house", "ran through the kitchen", "danced on the table",
                  "jumped on the bed", "climbed on a chair"])
    s.para()
    s.say("{when}, {h} {y}. Crash! The {x} of {k} fell and broke. {h} was afraid and hid the pieces {p}.",
          when=s.when(), y=why,
          x=x, k=kin, p=(p := s.pick(INDOORS)))
    s.ask("broke",
          "[what did {h} break|what broke|what happened|what fell down]", "The {x} of {k} broke.", True, x=x, k=kin)
    s.ask("because",
          "[why did the {x} break|how did the {x} break|what did {h} do]", "The {x} broke because {h} {y}.", x=x, y=why)
    s.ask("hid", "[where did {h} hide the pieces|where were the pieces|what did {h} do with the pieces]",
          "{h} hid the pieces {p}.", p=p)
    s.say("In the evening, {h} could not sleep. \"It was me,\" {h.he} said to {k}. \"I am sorry.\"", k=kin)
    s.para()
    s.say("{k} [smiled|took {h.him} into {g.his} arms]. \"[Thank you for telling me the truth|I am glad that you told "
          "me the truth],\" {g.he} said. {h}'s heart was light again.", k=kin, g=g)
    s.ask("said",
          "[what did {h} say|to whom did {h} tell the truth|whom did {h} tell]", "{h} told {k} the truth.", True, k=kin)
    s.ask("angry",
          "[was {k} angry|was {h.his} {g.kind} angry]", "No, {k} was glad that {h} told the truth.", k=kin, g=g)
    s.ends("{h} told {k} the truth, and {h.his} heart was light again.", k=kin)
    s.short = s.word("{h}, a little {h.kind} who lived {home}, broke the {x} of {k}, but then {h.he} told the truth.",
                     home=h.home, x=x, k=kin)


def tale_race(s):
    h = s.meet()
    s.pal()
    to = s.pick(["the old mill",
                 "the big oak", "the bridge", "the lake", "the top of the hill", "the well", "the red barn"])
    prize = s.pick(["a golden cup", "a big cake", "a red ribbon", "a basket of apples", "a silver bell", "a new hat"])
    s.para()
    s.say("{when}, there was a race to {to}. The prize was {p}. {h} and {h.his} friend {f} both wanted to win.",
          when=s.when(),
          to=to, p=prize)
    s.ask("to", "[where did the race go|where did they run|how far was the race]", "The race went to {to}.", to=to)
    s.ask("prize",
          "[what was the prize|what could they win|what did the winner get]", "The prize was {p}.", True, p=prize)
    bad = s.pick(["fell and hurt {f.his} knee", "stepped into deep mud", "lost {f.his} shoe", "fell into the brook"])
    bad = s.word(bad)
    if s.maybe():
        s.say("{h} was first. But then {f} {bad}. {h} stopped and helped {f.him}. So a {b} won the race.", bad=bad,
              b=(b := s.fresh(BEASTS)))
        s.ask("ill", "[what happened to {f}|why did {h} stop|why did {h} not win]", "{f} {bad}.", bad=bad)
        s.ask("won", "[who won|who won the race|did {h} win|who was the winner]", "A {b} won the race.", True, b=b)
        s.para()
        s.say('"[I did not win|We did not win]," said {h}, "but I have a friend." {f} smiled, and the {b} shared {p} '
              'with them.',
              b=b, p="the" + prize[1:] if prize[1] == " " else prize)
        s.ends("The {b} shared the prize with {h} and {f}.", b=b)
        s.short = s.word("{h}, a little {h.kind} who lived {home}, did not win the race to {to}, because {h.he} "
                         "stopped to help {h.his} friend {f}, and a {b} won {p}.", home=h.home, to=to, b=b, p=prize)
    else:
        s.say("{f} was faster at first. But {f.he} [sat down under a tree and slept|stopped to pick flowers|stopped to "
              "eat berries]. {h} ran and ran, and {h.he} won the race.")
        s.ask("won", "[who won|who won the race|did {h} win|who was the winner]", "{h} won the race.", True)
        s.para()
        s.say("{h} got {p}. {h.He} shared it with {f}, and both were happy.", p=prize)
        s.ends("{h} won {p} and shared it with {f}.", p=prize)
        s.short = s.word("{h}, a little {h.kind} who lived {home}, won a race to {to} against {h.his} friend {f} and "
                         "shared the prize, which was {p}.", home=h.home, to=to, p=prize)
        s.brief.discard("prize")


def tale_garden(s):
    h = s.meet()
    g, kin = s.kin()
    plant = s.pick(["sunflower", "pumpkin", "apple tree", "red rose", "carrot", "strawberry", "cherry tree", "tulip"])
    s.para()
    s.say("{when}, {k} gave {h} a small seed. {h} put it into the earth {w} and gave it water every day.",
          when=s.when(), k=kin,
          w=(w := s.pick(["behind the house", "by the wall", "near the well", "in the garden", "under the window"])))
    s.ask("giver", "[who gave {h} the seed|from whom did {h} get the seed|where did the seed come from]",
          "{h} got the seed from {k}.", True, k=kin)
    s.ask("place",
          "[where did {h} put the seed|where was the seed|where did {h} plant it]",
          "{h} put the seed into the earth {w}.",
          w=w)
    s.say("But nothing grew, and {h} was sad. \"[Wait a little|Be patient],\" said {k}. \"Good things need time.\"",
          k=kin)
    s.ask("why", HOW_SAD, "{h} was sad because nothing grew.")
    s.ask("said",
          "[what did {k} say|what did {h.his} {g.kind} say]", '{g.He} said, "Good things need time."', k=kin, g=g)
    s.para()
    s.say("[One morning|After many days], there was a big {p}. \"[Look|Come and see]!\" cried {h}. It was the most "
          "beautiful {p} in the [village|land].", p=plant)
    s.ask("grew",
          "[what grew|what did {h} grow|what was it|what came out of the seed]", "A big {p} grew.", True, p=plant)
    s.ends("A big {p} grew, and {h} was happy.", p=plant)
    s.short = s.word("{h}, a little {h.kind} who lived {home}, got a seed from {k}, waited a long time, and then a big "
                     "{p} grew.", home=h.home, k=kin, p=plant)


def tale_noise(s):
    h = s.meet()
    s.pal()
    s.para()
    where = s.pick(["under the bed",
                    "behind the door", "on the roof", "in the kitchen", "in the old box", "in the garden"])
    b = s.fresh(["mouse", "cat", "owl", "hedgehog", "squirrel", "puppy", "frog"])
    s.say("One night, {h} heard a strange noise {w}. \"[It is a monster|There is a ghost]!\" {h.he} cried. {h} was "
          "very afraid.",
          w=where)
    s.ask("heard",
          "[what did {h} hear|what happened|what happened at night]", "{h} heard a strange noise {w}.", True, w=where)
    s.ask("place", "[where was the noise|where did the noise come from]", "The noise was {w}.", w=where)
    s.ask("why", "[why was {h} afraid|why was {h.he} afraid|what was {h} afraid of]",
          "{h} was afraid because {h.he} heard a strange noise.")
    s.say("{h} called {h.his} friend {f}. {f} took a [lamp|candle] and looked {w}. It was only a little {b}!",
          w=where, b=b)
    s.ask("was", "[what was it|what was the noise|was it a monster|who made the noise|was it a ghost]",
          "It was only a little {b}.", True, b=b)
    s.ask("helper", "[who helped {h}|who helped {h.him}]", "{f} helped {h}.", True)
    s.ask("called", "[whom did {h} call|who did {h} call|who came|who looked {w}]", "{h} called {f}.", w=where)
    s.para()
    s.say("{h} and {f} laughed. They gave the {b} some [milk|bread|water], and {h} was not afraid anymore.", b=b)
    s.ends("It was only a little {b}, and {h} was not afraid anymore.", b=b)
    s.short = s.word("{h}, a little {h.kind} who lived {home}, heard a strange noise {w}, but {h.his} friend {f} saw "
                     "that it was only a little {b}.", home=h.home, w=where, b=b)


def tale_magic(s):
    h, t = s.meet(), s.thing()
    s.para()
    place = s.fresh(PLACES)
    wish, came = s.pick([("to fly", "flew over the houses"), ("to be big", "grew as tall as a tree"),
                         ("a friend", "found a friend at the door"), ("snow", "saw snow on all the fields"),
                         ("a cake",
                          "had a big cake on the table"), ("to talk with the birds", "could talk with the birds"),
                         ("to see the sea", "stood on a beach"), ("to sing well", "sang like a bird"),
                         ("a little dog", "heard a little dog at the door")])
    s.say("{when}, {h} found a {t.full} {p}. It was magic! \"You have one wish,\" said the {t}. {h} wished {w}.",
          when=s.when(),
          t=t, p=place, w=wish if wish.startswith("to ") else "for " + wish)
    s.ask("found", "[what did {h} find|what did {h.he} find|what was magic]", "{h} found a {t.full}.", True, t=t)
    s.ask("color",
          "[what color was the {t}|which color was the {t}|what color was it]",
          "The {t} was {c}.", True, t=t, c=t.color)
    s.ask("place",
          "[where was the {t}|where did {h} find the {t}|where did {h} find it|where was it]", "The {t} was {p}.", t=t,
          p=place)
    s.ask("wish",
          "[what did {h} wish|what did {h} wish for|what was {h}'s wish|what was the wish]", "{h} wished {w}.", True,
          w=wish if wish.startswith("to ") else "for " + wish)
    s.para()
    s.say("And at once, {h.he} {c}. {h} laughed with joy.", c=came)
    s.ask("came",
          "[what happened after the wish|what happened when {h} wished|what did the {t} do|did the wish come true]",
          "{h} {c}.", t=t, c=came)
    s.say("[In the evening|Then], {h} put the {t} back. \"[Someone else may have a wish, too|One wish is enough],\" "
          "{h.he} said.",
          t=t)
    s.ends("{h} put the {t} back, because one wish is enough.", t=t)
    s.short = s.word("{h}, a little {h.kind} who lived {home}, found a magic {t.full} and wished {w}, and it came true.",
                     home=h.home, t=t, w=wish if wish.startswith("to ") else "for " + wish)


PLOTS = {"lost": 12, "friend": 9, "animal": 9, "storm": 7, "cake": 8, "journey": 9, "honest": 7, "race": 7, "garden": 6,
         "noise": 7, "magic": 8}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--count", type=int, default=2)
    ap.add_argument("--plot", choices=PLOTS)
    args = ap.parse_args()
    for n in range(args.count):
        t = Tale(random.Random(args.seed * 1_000_003 + n), {"plot": args.plot} if args.plot else None)
        print(t.tell(), "\n", "[" + polish(t.short) + "]", sep="")
        for kind, q, a in t.qa:
            print(f"  {kind:8} {q}  {a}")
        print()


if __name__ == "__main__":
    main()
