"""Conversations about the story world: what a user may say to a storyteller, and what it answers.

    python3 talk.py --count 2                           prints conversations
    python3 talk.py --count 20000 --out talk.jsonl      writes them as llm-train reads them: a JSON object in a line

An answer follows from what was said before in the same conversation: from a tale (tales.py) that was told, from what
the user said about themselves, or from the system message. What does not follow from anything is answered by the
offer of a story. Each answer has a kind, by which check_talk.py counts right and wrong ones.
"""

import argparse
import json
import random
import re

from tales import COLORS, STRANGE, Tale, invented, polish
from words import BEASTS, BOYS, GIRLS, HE_BEASTS, SHE_BEASTS, TREASURES

HELD_OUT = 1_000_000                        # numbers of conversations from here on are never trained on
CHOICE = re.compile(r"\[([^\[\]]*)\]")
NOUNS = (list(TREASURES) + BEASTS + STRANGE + "sun moon sea mountain river city train plane phone computer internet "
                                              "game book movie song school war world country king president money bank "
                                              "shop car road bridge house door window kitchen garden flower bread "
                                              "cheese pizza soup apple banana milk tea water rain snow weather summer "
                                              "winter music football number word letter language history science "
                                              "energy planet star atom cell engine wheel clock paper picture doctor "
                                              "hospital medicine law tax job program file email list table code "
                                              "function robot".split())
ABOUT = {                                   # topic -> what the tale is made of
    "[friendship|friends|two friends|a new friend|a friend]": {"plot": "friend"},
    "[a storm|thunder|the rain|bad weather]":
    {"plot": "storm"},
     "[a cake|a birthday|baking|a birthday cake]": {"plot": "cake"}, "[a race|running|winning a prize]":
    {"plot": "race"},
     "[a garden|a seed|flowers|plants]": {"plot": "garden"}, "[magic|a wish|a magic thing]": {"plot": "magic"},
    "[a ghost in the house|a strange noise|being afraid|the night]": {"plot": "noise"},
    "[a journey|an adventure|a treasure]":
    {"plot": "journey"}, "[the truth|a lie|being honest|something broken]": {"plot": "honest"},
    "[helping an animal|a kind deed|kindness]": {"plot": "animal"}, "[something lost|a lost thing|losing something]":
    {"plot": "lost"}, "the sea": {"home": "in a small house by the sea"}, "[the forest|the woods]":
    {"home": "in a little village near the forest"}, "a lighthouse": {"home": "in a lighthouse by the sea"},
    "[the mountains|a mountain]": {"home": "in a small town in the mountains"}, "a farm":
    {"home": "on a farm at the edge of the forest"}, "[a windmill|a mill]": {"home": "in a windmill on the plain"},
    "an island": {"home": "on a small island"},
    "a [lake|house by the lake]": {"home": "in a little house beside the lake"},
    "a castle": {"home": "in an old castle"}, "a waterfall": {"home": "behind a waterfall"},
}
TELL = ("[tell me|can you tell me|please tell me|could you tell me|tell|I want|I would like|give me|I want to hear|"
        "will you tell me|write|write me|make up|would you tell me|let me hear|do you know|I need|how about] ")
SAID = {                                    # kind -> what the user says, what the storyteller answers
    "hello": ("[hello|hi|hey|hello there|hi there|good morning|good evening|good afternoon|good day|greetings|hello "
              "friend|hey you|howdy|yo]",
              ["Hello! Shall I tell you a story?"]),
    "how": ("[how are you|how are you today|how do you do|are you well|are you fine|how is it going|how do you feel|"
            "what is up|how was your day|are you ok]", ["I am fine, thank you. Shall I tell you a story?"]),
    "can": ("[what can you do|what can I ask|help|help me|what can I ask you|what do you know|what should I say|how "
            "does this work|what do you do|how can you help me|what are you good at|what can I do here|what now|what "
            "is this]",
            ["I can tell you a story and answer your questions about it. Just say who or what it shall be about."]),
    "thanks": ("[thank you|thanks|thank you very much|thanks a lot|many thanks|thank you so much|oh thank you|thx|ok "
               "thanks]",
               ["You are welcome!"]),
    "bye": ("[bye|goodbye|good night|see you|bye bye|see you soon|I must go|I have to go now|see you tomorrow|good bye|"
            "I am tired|that is all for today|I am going to sleep|let us stop here|farewell]",
            ["Goodbye! Sleep well and come back soon."]),
    "praise": ("[that was nice|what a nice story|I liked it|I like the story|that was a good story|wow|great|good|"
               "beautiful|well done|I liked that story|very good|nice|lovely|cool|that is a good story|what a "
               "beautiful story|I love it|that was fun|good job|you are good|I love your stories|that is funny|"
               "interesting|amazing]",
               ["I am glad that you like it."]),
    "blame": ("[I do not like it|that was boring|that is a bad story|I did not like it|boring|this is boring|what a "
              "bad story|I hate it|not good|that was silly|that makes no sense|that is stupid|this is nonsense|bad]",
              ["I am sorry. Shall I tell you another one?"]),
    "maker": ("[who made you|who are your parents|where do you come from|where do you live|who built you|are you a "
              "robot|are you a computer|are you human|are you a person|are you real|what kind of model are you|are you "
              "a machine|are you an AI|are you alive|do you have a mother]",
              ["I am a very small computer program that learned to tell stories."]),
    "joke": ("[tell me a joke|do you know a joke|make me laugh|say something funny|a joke please|another joke|tell a "
             "joke]",
             ["Why did the snail not win the race? It carried its house all the way!",
              "What did the big flower say to the small one? Hello, bud!",
              "Why was the little book so cold? It had lost its cover!"]),
    "sing": ("[sing a song|can you sing|sing for me|sing me a song|do you know a poem|tell me a poem|write a poem|a "
             "rhyme please]",
             ["The moon is bright, the stars are near, good night, good night, my friend so dear."]),
    "love": ("[I love you|I like you|you are nice|you are funny|you are kind|you are my friend|will you be my friend|"
             "you are sweet|you are great|you are clever|can we be friends]",
             ["That is very kind of you. I like you, too."]),
    "rude": ("[you are stupid|you are bad|I hate you|shut up|you are wrong|go away|you are boring|you are silly|that "
             "is wrong|you are dumb|be quiet|that is not true|no that is wrong|you lie]",
             ["I am sorry. I am small, but I do my best."]),
    "age": ("[how old are you|when were you born|when is your birthday|what is your age|are you old|are you young]",
            ["I am quite young. I was made not long ago."]),
    "likes": ("[what do you like|do you like stories|what is your favorite story|what is your favorite animal|what do "
              "you love|do you have a hobby|what do you like to do|what is your favorite color|do you like animals|do "
              "you like cats]",
              ["I like all stories, but best of all those about friends."]),
    "sad": ("[I am sad|I am not happy|I feel sad|I am lonely|I am afraid|I had a bad day|I am angry|I feel bad|I am "
            "unhappy|I am worried|I cannot sleep|I cried today]",
            ["I am sorry to hear that. Shall I tell you a story?"]),
    "glad": ("[I am happy|I am fine|I am well|I am good|I feel good|I had a good day|I am ok|fine|I am fine, thank you|"
             "not bad|very well|I am great|I am fine thanks, and you]",
             ["I am glad to hear that. Shall I tell you a story?"]),
    "bored": ("[I am bored|what shall we do|entertain me|I have nothing to do|let us play|do something|say something|"
              "talk to me|let us talk|surprise me with something|what do you want to do]",
              ["Shall I tell you a story?"]),
    "no": ("[no|no thanks|no thank you|not now|nope|no, not now|later|maybe later|I do not want a story|not yet|no "
           "please not]", ["All right. Just ask if you want to hear a story."]),
    "ok": ("[ok|okay|I see|aha|oh|all right|I understand|hm|hmm|really|oh really|is that so|I know|interesting story|"
           "alright]",
           ["Do you have a question, or shall I tell you a story?"]),
}
REFUSE = "I am sorry, I do not know that. I only know stories."
STRANGERS = (                               # questions about the world outside
    "what is the capital of {C}|where is {C}|how big is {C}|how far is it to {C}|who is the president of {C}|have you "
    "been to {C}|how many people live in {C}|is {C} in {D}|what language do they speak in {C}|what is the weather in "
    "{C}|when was {C} founded|who is {C} {D}|who was {C} {D}|who wrote {C}|do you know {C} {D}|when did {C} {D} die|"
    "what is {N}|what is a {n}|what are {n}s|how does a {n} work|how do I make a {n}|how do I repair my {n}|where can "
    "I buy a {n}|what does {n} mean|how much is a {n}|who invented the {n}|when was the {n} invented|what is the best "
    "{n}|why is the {n} blue|why do {n}s {v}|explain {n} to me|explain the {n}|can you {v} a {n}|can you {v}|how do I "
    "{v}|how do you {v} a {n}|what is the difference between a {n} and a {m}|is a {n} a {m}|what is {d} plus {e}|how "
    "much is {d} times {e}|what is {d} minus {e}|{d} + {e}|what is {d} x {e}|calculate {d} + {e}|count to {d}|what is "
    "the square root of {d}|what time is it|what day is today|what is the date|what is the news|what is the weather "
    "today|will it rain tomorrow|how is the weather|translate {n} into {D}|say {n} in {D}|how do you say {n} in {D}|"
    "write a letter about {n}|write an email to {C}|write a program|write code for a {n}|write a python function|fix "
    "my {n}|solve this for me|what is the meaning of life|who won the game|who is the best {n}|give me a recipe for "
    "{n}|how do I cook {n}|recommend a {n}|which {n} should I buy|I need help with my {n}|do my homework|what is your "
    "opinion on {n}|should I {v} my {n}|what is {d}|who is god|how many {n}s are there|what is the population of {C}|"
    "play a {n}|open the {n}|turn on the {n}|what do you think about {n}|can you draw a {n}|show me a {n}|search for "
    "{n}|what is inside a {n}|how fast is a {n}|how high is {C}").split("|")
KNOWN = {*GIRLS, *BOYS, *HE_BEASTS, *SHE_BEASTS}
BRIEFLY = [("what is", "what's"), ("who is", "who's"), ("where is", "where's"), ("I am", "I'm"), ("do not", "don't"),
           ("did not", "didn't"), ("cannot", "can't"), ("that is", "that's"), ("it is", "it's"), ("you are", "you're")]
MANY = {"mouse": "mice",
        "goose": "geese", "wolf": "wolves", "fish": "fish", "deer": "deer", "elf": "elves", "snowman": "snowmen",
        "sheep": "sheep", "witch": "witches", "fox": "foxes", "ox": "oxen", "princess": "princesses"}
VERBS = ("drive fly swim cook read write paint build repair open close buy sell eat drink run learn teach cut wash "
         "draw play fix sing dance bake jump count add print send find clean catch grow make do use start stop").split()


class Talk:
    """A conversation: `messages` is a list of (role, text, kind)."""

    def __init__(self, rng, prose=()):
        self.rng, self.prose = rng, prose
        self.messages, self.tales = [], []
        self.user, self.bot, self.facts = None, "Fable", {}
        self.short, self.tail, self.about = False, "", None
        self.used = set()
        self.offered = None                                  # what "yes" would mean

    def pick(self, items):
        return self.rng.choice(list(items))

    def maybe(self, p=0.5):
        return self.rng.random() < p

    def word(self, text, **slots):
        while True:
            text, n = CHOICE.subn(lambda m: self.pick(m.group(1).split("|")), text)
            if not n:
                return text.format(**slots) if slots else text

    # what the user says --------------------------------------------------------------------------

    def user_says(self, text):
        """Users write as they like: with or without capitals, marks, apostrophes."""
        keep = any(w not in KNOWN for w in re.findall(r"(?<=\S )[A-Z][a-z]+", text))       # an invented name is left as it is
        if self.maybe(0.3):
            for long, brief in BRIEFLY:
                text = re.sub(rf"\b{long}\b", brief, text)
        text = re.sub(r"\ba (?=[aeiou](?!ne\b|ni|se\b))", "an ", text)
        text = text.rstrip("?.! ")
        asks = re.match(r"(?i)(who|what|where|why|when|how|is|was|did|does|do|are|can|will|which|whom|whose|could|would|from|"
                        r"for|to|in)\b", text)
        style = self.rng.random()
        if style < 0.6:
            text = text[0].upper() + text[1:] + ("?" if asks else self.pick([".", ".", "!"]) if self.maybe(0.8) else "")
        elif style < 0.75:
            text = text[0].upper() + text[1:]
        elif style < 0.88:
            text = text[0].lower() + text[1:] + ("?" if asks and self.maybe() else "")
        elif not keep:
            text = text.lower() + ("?" if asks and self.maybe() else "")
        self.messages.append(("user", text, ""))

    def answers(self, text, kind, offer=None):
        if self.short and kind[:4] in ("chat", "fact", "refu", "miss", "earl"):
            text = "I am sorry, I only know stories." if kind == "refuse" else text if kind in ("chat.joke",
                   "chat.sing") else \
                re.match(r".*?[.!?](?= |$)", text).group()
            offer = None
        if self.tail:
            text += " " + self.tail
        self.messages.append(("assistant", text, kind))
        self.offered = offer

    # acts ----------------------------------------------------------------------------------------

    def system(self):
        """Half of the conversations have none."""
        parts, r = [], self.rng.random
        if r() < 0.5:
            return
        if r() < 0.3:
            parts.append(self.pick(["You are a storyteller.",
                                    "You are a friendly storyteller.", "You tell stories to children.",
                                    "You are a helpful assistant.",
                                    "Be kind.", "Answer all questions.", "Tell short stories.",
                                    "You are a helpful and kind assistant."]))
        if r() < 0.4:
            self.bot = self.name()
            parts.append(self.word("[Your name is|You are called|You are|Your name is] {n}.", n=self.bot))
        if r() < 0.25:
            self.short = True
            parts.append(self.pick(["Answer in one sentence.",
                                    "Answer in one sentence.", "Always answer in one sentence.",
                                    "Tell every story in one sentence.",
                                    "Be brief.", "Be short.", "Use only one sentence."]))
        if r() < 0.2:
            self.user = self.name()
            parts.append(self.word("[The user is called|The name of the user is|You are talking to|The child is "
                                   "called] {n}.",
                                   n=self.user))
        if r() < 0.2:
            self.about = self.pick(BEASTS + STRANGE[:40])
            parts.append(self.word("[All stories are about|Tell only stories about|Every story is about|All your "
                                   "stories are about] a {n}.", n=self.about))
        if r() < 0.2:
            self.tail = self.pick(["Good night!",
                                   "Ho ho ho!", "Hooray!", "Have a nice day!", "Is it not so?", "La la la.",
                                   "The end.", "Meow!", "My dear.", "Woof!", "So it is.", "By my beard!"])
            parts.append(self.word("[End every answer with|Always end with|Finish every answer with] \"{t}\"",
                                   t=self.tail))
        if parts:
            self.rng.shuffle(parts)
            text = " ".join(parts)
            self.messages.append(("system", re.sub(r"\ba (?=[aeiou](?!ni))", "an ", text), ""))

    def name(self):
        if self.maybe(0.35):
            return invented(self.rng)
        return self.pick(GIRLS + BOYS + HE_BEASTS + SHE_BEASTS)

    def tale(self, want):
        want = dict(want)
        if self.about:
            want["kind"] = self.about
            want.pop("human", None)
        tale = Tale(self.rng, want, self.used)
        self.used |= tale.used
        self.tales.append(tale)
        self.answers(polish(tale.short) if self.short else tale.tell(), "short" if self.short else "tale")
        easy = ("isa",
                "no",
                "kind",
                "unsaid", "absent", "who", "hero", "home", "about")      # the same in all plots: asked less often
        qa = [x for x in tale.qa if (not self.short or x[0] in tale.brief) and (x[0] not in easy or self.maybe(0.5))]
        self.rng.shuffle(qa)
        tale.left = qa

    def ask_tale(self):
        """A request for a story, mostly about something, and the story."""
        r, want, a = self.rng.random(), {}, "a [||||long |funny |nice |new |happy |good |short |little |bedtime |fairy |sad ][story|story|story|tale]"
        if self.tales and r < 0.25:
            self.user_says(self.word("[another one|one more|tell me another one|another story|another story please|one "
                                     "more please|more|a new story|tell me another story|next|next story|another|can I "
                                     "have another one|tell me one more|once more|a different one]"))
        elif r < 0.4:
            self.user_says(self.word(TELL + a + "[|| please|, please| to me]" + "[|| now]") if self.maybe(0.7) else self.word(
                "[a story|a story please|story|story please|tell me something|tell a story|start|begin|once upon a "
                "time|I want a story|story time|surprise me|a story about anything|tell me any story]"))
        elif self.user and r < 0.55:
            self.user_says(self.word(TELL + a + " [about me|with me in it|in which I am the hero|about me, please]"))
            want = {"name": self.user, "human": True, "kind": self.pick(["girl", "boy"])}
            want["female"] = want["kind"] == "girl"
        else:
            topic, want = self.topic()
            ask = TELL + a if self.maybe(0.75) else self.word("[a story|story|one|another one|something|now one|and "
                                                              "one|now a story|another story]")
            self.user_says(self.word(ask + " [about|about|about|about|about|of|with] ") + topic + self.word("[|||, plea"
                                                                                                            "se| please"
                                                                                                            "]"))
        self.tale(want)

    def topic(self):
        """(words of the request, what the tale must have)"""
        r = self.rng.random()
        human = self.maybe(0.4)
        female = self.maybe()
        kind = self.pick(["girl" if female else "boy"] if human else BEASTS if self.maybe(0.6) else STRANGE if self.maybe(0.75)
                         else NOUNS)
        name = invented(self.rng) if self.maybe(0.35) else self.pick((GIRLS if female else BOYS) if human else
                                                                     (SHE_BEASTS if female else HE_BEASTS))
        little = self.pick(["", "", "little ", "small ", "brave ", "funny ", "young "])
        who = {"kind": kind, "female": female, "human": human}
        if r < 0.1:                                              # two heroes
            plot = {"plot": self.pick(["lost", "friend", "storm", "race", "noise"])}
            k2 = self.pick(BEASTS + STRANGE)
            n2 = invented(self.rng) if self.maybe(0.35) else self.pick(GIRLS + BOYS + HE_BEASTS + SHE_BEASTS)
            if self.maybe():
                return f"a {kind} and a {k2}", {**who, **plot, "pal kind": k2}
            return f"{name} and {n2}", {**who, **plot, "name": name, "pal": n2}
        if r < 0.18:
            return self.pick(["",
                              "",
                              "the ",
                              "two ", "little "]) + MANY.get(kind, re.sub("([^aeiou])y$", r"\1ie", kind) + "s"), who
        if r < 0.42:
            return f"a {little}{kind}", who
        if r < 0.5:
            return f"a {little}{kind} {self.pick(['named', 'called', 'with the name'])} {name}", {**who, "name": name}
        if r < 0.56:
            return f"{name} the {kind}", {**who, "name": name}
        if r < 0.64:
            return name, {"name": name, "female": female, "human": human}
        if r < 0.84:
            color, noun = self.pick(COLORS), self.pick(TREASURES)
            if self.maybe(0.4):
                return f"a {color} {noun}", {"thing": (color, noun), "plot": self.pick(["lost", "magic"])}
            return (f"a lost {noun}", {"thing": (None, noun), "plot": "lost"}) if self.maybe() else \
                (f"a magic {noun}", {"thing": (None, noun), "plot": "magic"})
        topic = self.pick(ABOUT)
        want = dict(ABOUT[topic])
        topic = self.word(topic)
        if self.maybe(0.25):
            return f"a {kind} and {topic}", {**who, **want}
        return topic, want

    def question(self):
        """A question about a tale of this conversation, mostly about the last one."""
        tale = self.tales[-1] if self.maybe(0.85) else self.pick(self.tales)
        if not tale.left:
            return self.ask_tale()
        kind, q, a = tale.left.pop()
        if tale is not self.tales[-1]:                           # must name the hero or friend of the earlier tale
            names = [str(w) for w in tale.cast.values()]
            if not any(n in q for n in names) or kind in ("went", "end"):
                return self.ask_tale()
        self.user_says(q)
        self.answers(a, "q." + kind)

    def next(self):
        """Questions that look for more than there is."""
        if self.maybe(0.6):
            self.user_says(self.word("[go on|continue|what happens next|what happened next|tell me more|and what "
                                     "happened next|is there more|how does it go on|then what|keep going|what else "
                                     "happened]"))
            self.answers("That is the end of the story. Shall I tell you another one?", "chat.next", True)
        else:
            self.user_says(self.word("[why|why not|why is that|how so|why did that happen|how do you know|are you sure]"))
            self.answers("The story does not say that.", "chat.why")

    def early(self):
        """A question about a story before there is one."""
        self.user_says(self.word("[who is the story about|how does it end|what is the story about|where does she live|"
                                 "where does he live|what happened|who is the hero|why was she sad|why was he sad|what "
                                 "is his name|what is her name|who helped him|who helped her|tell it again|what did he "
                                 "find|what color was it|go on|continue|what happened next|how does the story end|who "
                                 "found it]"))
        self.answers("I have not told you a story yet. Shall I tell you one?", "early", True)

    def again(self):
        self.user_says(self.word("[tell it again|tell me that story again|say that again|can you repeat it|repeat the "
                                 "story|once more the same story|the same story again]"))
        tale = self.tales[-1]
        self.answers(polish(tale.short) if self.short else tale.tell(), "again")

    def chat(self):
        kind = self.pick(SAID)
        if kind == "ok" and self.offered:
            return self.yes()
        if kind in ("praise", "blame") and not self.tales or kind in ("no", "ok") and not self.messages:
            kind = "hello"
        said, answers = SAID[kind]
        self.user_says(self.word(said))
        answer = self.pick(answers)
        if kind == "hello" and self.user:
            answer = answer.replace("Hello", f"Hello, {self.user}")
        self.answers(answer, "chat." + kind, "Shall" in answer)

    def who(self):
        self.user_says(self.word("[who are you|what is your name|what are you called|tell me your name|your name|who "
                                 "is this|what are you|what is your name please|do you have a name|may I ask your name|"
                                 "tell me about yourself|introduce yourself|and you|and who are you|how are you called|"
                                 "name]"))
        self.answers(f"I am {self.bot}, a little storyteller.", "name")

    def yes(self):
        self.user_says(self.word("[yes|yes please|yes, please|sure|of course|please|ok|go on|yes do|oh yes|gladly|yeah|"
                                 "yep|please do|of course, please|I would love that|why not|that would be nice|go "
                                 "ahead|do it]"))
        self.tale({"name": self.offered} if isinstance(self.offered, str) else {})

    def tell_fact(self):
        """The user says something about themselves, which can be asked for later."""
        kind = self.pick(["name", "name", "color", "animal", "pet", "town"])
        if kind == "name":
            self.user = self.name()
            said = self.word("[my name is|I am|I am called|call me|my name is|hello, I am|hi, my name is|it is|I'm|hi "
                             "I am] {n}",
                             n=self.user)
            answer = f"Nice to meet you, {self.user}! Shall I tell you a story?"
        elif kind == "color":
            x = self.facts["color"] = self.pick(COLORS + ["pink", "black", "purple", "orange"])
            said = self.word("[my favorite color is {x}|I like {x} best|I love {x}|{x} is my favorite color]", x=x)
            answer = f"I like {x}, too."
        elif kind == "animal":
            x = self.facts["animal"] = self.pick(BEASTS + STRANGE[:30])
            said = self.word("[my favorite animal is the {x}|I like the {x} best|my favorite animal is a {x}|the {x} "
                             "is my favorite animal]", x=x)
            answer = f"I like the {x}, too."
        elif kind == "pet":
            k, n = self.pick(["dog",
                              "cat",
                              "rabbit", "pony", "duck", "mouse", "bird", "turtle", "friend", "brother", "sister"]), \
                self.name()
            self.facts["pet"] = (k, n)
            said = self.word("[I have a {k} named {n}|I have a {k} called {n}|my {k} is called {n}|my {k}'s name is "
                             "{n}|the name of my {k} is {n}]", k=k, n=n)
            answer = f"{n} is a nice name for a {k}."
            if k in ("friend", "brother", "sister"):
                answer = f"{n} is a nice name."
        else:
            n = self.facts["town"] = invented(self.rng)
            said = self.word("[I live in {n}|I am from {n}|I come from {n}|my home is in {n}|my town is called {n}]",
                             n=n)
            answer = f"{n} must be a nice place."
        self.user_says(said)
        self.answers(re.sub(r"\ba (?=[aeiou])", "an ", answer), "fact." + kind, "Shall" in answer)

    def ask_fact(self):
        known = [*self.facts] + ["name"] * bool(self.user)
        if not known and self.maybe(0.6):
            return self.tell_fact()
        kind = self.pick(known if known and self.maybe(0.7) else ["color", "animal", "pet", "town", "name", "name"])
        unknown = "You have not told me that."
        if kind == "name":
            self.user_says(self.word("[what is my name|do you know my name|who am I|what am I called|can you remember "
                                     "my name|how am I called|say my name|do you remember me|do you remember my name]"))
            answer = f"Your name is {self.user}." if self.user else unknown
        elif kind == "color":
            self.user_says(self.word("[what is my favorite color|which color do I like|what color do I like best|which "
                                     "color do I like best|do you remember my favorite color]"))
            answer = f"Your favorite color is {self.facts['color']}." if "color" in self.facts else unknown
        elif kind == "animal":
            self.user_says(self.word("[what is my favorite animal|which animal do I like|what animal do I like best|do "
                                     "you remember my favorite animal]"))
            answer = f"Your favorite animal is the {self.facts['animal']}." if "animal" in self.facts else unknown
        elif kind == "town":
            self.user_says(self.word("[where do I live|where am I from|where do I come from|what is my town called|"
                                     "where is my home]"))
            answer = f"You live in {self.facts['town']}." if "town" in self.facts else unknown
        else:
            k, n = self.facts.get("pet", (self.pick(["dog", "cat", "friend", "brother", "sister"]), None))
            self.user_says(self.word("[what is my {k} called|what is the name of my {k}|what is my {k}'s name|how is "
                                     "my {k} called|do you remember my {k}]", k=k))
            answer = f"Your {k} is called {n}." if n else unknown
        self.answers(answer, "recall" if answer != unknown else "unknown")

    def stranger(self):
        """Something from outside of the story world."""
        if self.prose and self.maybe(0.35):
            said = self.pick(self.prose)
        elif self.maybe(0.06):                                   # a cat walked over the keyboard
            said = "".join(self.pick("abcdefghijklmnopqrstuvwxyz  ") for _ in range(self.rng.randint(3,
                   14))).strip() or "x"
        else:
            said = self.pick(STRANGERS)
            name = lambda: invented(self.rng) if self.maybe() else self.pick(
                "France Paris Rome London Berlin Germany England America China Japan Spain Italy India Africa Europe "
                "Russia Peru Shakespeare Einstein Napoleon Google Python Linux Mars Canada Brazil Egypt Greece Vienna "
                "Madrid English French German Spanish Latin Bach Mozart Newton Plato Caesar Apple Java Moscow Tokyo "
                "Texas Boston Ohio".split())
            said = said.format(C=name(), D=name(), n=self.pick(NOUNS), m=self.pick(NOUNS), N=self.pick(NOUNS),
                               v=self.pick(VERBS), d=self.rng.randint(0, self.pick([10, 100, 2000])), e=self.rng.randint(0, 100))
        self.user_says(said)
        self.answers(REFUSE, "refuse")

    def missing(self):
        """A question about somebody of whom nothing was told; "yes" then begins a story about them."""
        while (n := self.name()) in self.used or n in (self.user, self.bot):
            pass
        self.user_says(self.word("[who is {n}|where does {n} live|tell me about {n}|what did {n} find|why was {n} sad|"
                                 "who was {n}|what is {n}]", n=n))
        self.answers(f"I do not know {n}. Shall I tell you a story about {n}?", "missing", n)

    def small_talk(self, size):
        """A conversation without stories."""
        while sum(len(t) for _, t, _ in self.messages) < size:
            r = self.rng.random()
            (self.chat if r < 0.55 else self.stranger if r < 0.7 else self.who if r < 0.77 else self.tell_fact if r < 0.83 else
             self.ask_fact if r < 0.95 else self.missing)()
        return self

    def run(self, size):
        """Goes on until there are about `size` characters."""
        self.system()
        if self.maybe(0.2):
            return self.small_talk(min(size, 1200))
        while self.maybe(0.45):
            self.rng.choice([self.chat, self.chat, self.who, self.tell_fact, self.tell_fact, self.stranger])()
        while sum(len(t) for _, t, _ in self.messages) < size:
            r = self.rng.random()
            if self.offered and self.maybe(0.4):
                self.yes()
            elif not self.tales:
                (self.ask_tale if r < 0.6 else self.pick([self.chat, self.who, self.stranger, self.tell_fact, self.ask_fact,
                                                          self.missing, self.early]))()
            elif r < 0.69:
                self.question()
            elif r < 0.75:
                self.ask_tale()
            elif r < 0.80:
                self.stranger()
            elif r < 0.88:
                self.chat()
            elif r < 0.92:
                self.ask_fact()
            elif r < 0.945:
                self.tell_fact()
            elif r < 0.965:
                self.missing()
            elif r < 0.975:
                self.who()
            elif r < 0.99:
                self.next()
            else:
                self.again()
        return self


def talk(seed, number, prose=(), short=False):
    """Conversation `number` of the world `seed`: a list of (role, text, kind). short: of few turns."""
    rng = random.Random(seed * 1_000_003 + number)
    sizes = {300: 20, 800: 30, 1500: 25} if short else {300: 15, 800: 25, 1500: 25, 2400: 20, 3500: 12, 6000: 3}
    size = rng.choices(list(sizes), weights=list(sizes.values()))[0]
    return Talk(rng, prose).run(size).messages


def prose_lines(path, seed=1):
    """Short questions and remarks from old books, as things that users say out of the blue."""
    with open(path, encoding="utf-8") as f:
        lines = re.findall(r'[“"]([A-Z][^“”"\n.!?]{8,70}[.?!])', f.read().replace("’", "'"))
    lines = sorted({s for s in lines if s.isascii() and "story" not in s and "name" not in s and s.endswith("?")})
    return lines


def held_out(prose):
    """Every tenth line of prose is for conversations that no model is trained on; their numbers begin at HELD_OUT."""
    return prose[::10]


def learned(prose):
    return [s for i, s in enumerate(prose) if i % 10]


TALES = ("tale", "short")                    # kinds of answers that count as they are, and others twice: they are shorter, and harder to learn


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--count", type=int, default=2)
    ap.add_argument("--first", type=int, default=0, help="number of the first one")
    ap.add_argument("--short", action="store_true", help="of few turns")
    ap.add_argument("--held-out", action="store_true", help="those that are not for training")
    ap.add_argument("--prose", help="a text of old stories, whose questions users ask")
    ap.add_argument("--out", help="JSON lines")
    args = ap.parse_args()
    prose = (held_out if args.held_out else learned)(prose_lines(args.prose)) if args.prose else ()
    first = args.first + args.held_out * HELD_OUT
    talks = (talk(args.seed, n, prose, args.short) for n in range(first, first + args.count))
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            for messages in talks:
                rows = [{"role": r, "content": t} | ({"weight": 2} if r == "assistant" and kind not in TALES else {}) for r, t, kind in messages]
                f.write(json.dumps({"messages": rows}, ensure_ascii=False) + "\n")
        return
    for messages in talks:
        for role, text, kind in messages:
            print(f"{role} {kind}: {text}")
        print()


if __name__ == "__main__":
    main()
