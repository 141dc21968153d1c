"""The plots: each a function that lets something happen to a hero and tells it through world.Story.

    python3 plots.py --seed 1 --count 3             prints three stories
    python3 plots.py --plot storm --count 2         only this plot, for reading proofs

A plot is written as the story is told: first who and what is wished for, then a paragraph of trouble, one of
help, one of joy. What is drawn once (a place, a helper, the cause of a loss) is used again where it matters.
"""

import argparse
import random

from words import (CAN, COLORS, FAMILY, GIFTS, INDOORS, MAKES, OBSTACLES, OUTDOORS, SOURCES)
from world import Story, Thing, Who, address, meet_in_trouble, overcome, with_article


def plot_lost(s):
    """A dear thing is lost, looked for in places, and found where the cause of its loss says."""
    h = s.hero(sibling=True)
    t = s.treasure()
    s.cast["t"] = t
    giver = s.relative(h)
    s.say(s.pick(["{h} had a {t.full}. It was a gift from {g}.",
                  "{h.His} [dearest|favorite] thing was a {t.full}[| from {g}].",
                  "{g} had given {h.him} a {t.full}, and {h} {t.use} it every day."]), g=giver)
    s.para()
    was, go = s.pick(OUTDOORS)
    s.say("{when}, {h} [went|walked] {go}[| with {h.his} {t}]. When {h.he} came home, the {t} was gone.",
          when=s.when(), go=go)
    s.scene()
    s.say('"[Oh no|Oh dear]! Where is my {t}?" [cried|said] {h}.')
    s.say("{h.He} looked {a} and {b}, but [it was not there|the {t} was not there|{h.he} could not find it].",
          a=s.fresh(INDOORS), b=s.fresh(INDOORS))
    s.sad(h, 0.7)
    s.para()
    helper = s.friend(h) if s.maybe() else giver
    first = helper.intro if helper.name else helper
    s.say(s.pick(["{i} [saw|heard] {h.him} and asked, \"[Why are you sad|What is wrong|What happened], {h}?\"",
                  "Then {i} came. \"[What is the matter|Why do you cry], {h}?\" asked {x}."]), x=helper, i=first)
    s.say('"I [have lost|lost|cannot find] my {t}," [said|answered] {h}.')
    s.say('"[Let us look for it together|Do not cry. We will look together|Think. Where did you have it last]," '
          'said {x}.', x=helper)
    s.say("[So they|Together they|They] went back {go}.", go=go)
    kind = s.pick(["bird", "hole", "puppy", "water", "plain", "child"])
    if kind == "bird":
        b = with_article(s.beast(CAN["fly"][:1] + ["magpie"]))
        s.say("High up in a tree they saw {b.a}. [In {b.his} nest lay the {t}|{b.He} had the {t} in {b.his} nest]!",
              b=b)
        s.say("\"[Please give it back|That is my {t}], {call}!\" [called|cried] {h}.", call=address(b))
        s.say(s.pick(['"[I am sorry|Forgive me]," said {b}. "[I did not know it was yours|It was so pretty that I '
                      'took it]." And {b.he} brought it down.',
                      '{b} [looked ashamed|was sorry] and brought the {t} down at once.']), b=b)
    elif kind == "hole":
        b = s.beast(["mole", "rabbit", "mouse"])
        s.say("There was a deep hole in the ground, and something {c} was in it. It was the {t}!",
              c=t.color if t.color in COLORS else "shiny")
        s.say("{h.ref} could not reach it. [Then|Just then] {b} looked out. \"I will get it for you,\" {b.he} said, "
              "and pushed the {t} out of the hole.", b=Who(s.rng, "x", b.female, f"a little {b.kind}"))
    elif kind == "puppy":
        s.say("There they [saw|met] a puppy. It was [running in circles|jumping up and down] with the {t} in its "
              "mouth!")
        s.say("{x} [laughed and threw a stick|called the puppy], and the puppy dropped the {t} [and wagged its "
              "tail|at their feet].", x=helper)
    elif kind == "water":
        b = with_article(s.beast(CAN["swim"]))
        s.say("The wind had blown the {t} into the water, and it was floating far away.")
        s.say("{h} called {b.a}, and {b} swam out and brought it back.", b=b)
    elif kind == "child":
        s.say("A [small|young] [girl|boy] [was sitting there|stood there] with the {t}. \"I found this [in the "
              "grass|on the path],\" said the child. \"Is it yours?\"")
        s.say('"Yes!" said {h}. "[Thank you for keeping it safe|You are very honest]."')
    else:
        s.say("{x} looked [under a bush|behind a stone|in the tall grass]. [Something {c} was lying there|There lay "
              "something {c}]. It was the {t}!", x=helper, c=t.color if t.color in COLORS else "small")
    s.happy(h)
    s.para()
    s.thanks(h, helper)
    s.some(0.5, "{h} [went home with|took home|carried home] the {t}[| and put it in a safe place].")
    s.ending("From that day on, {h} [took good care of|always looked after] the {t}.")


def plot_friend(s):
    """A lonely child sees a stranger, is shy, and finds a friend through one small deed."""
    h = s.hero()
    s.say(s.pick(["But {h} was [lonely|often alone]. {h.He} wished for a friend.",
                  "But {h.he} had no [friends|one to play with], and {h.he} was lonely.",
                  "There was only one thing {h.he} wished for: a [true|good] friend."]))
    s.para()
    was, go = s.pick(OUTDOORS)
    f = s.friend(h)
    f.known = True
    s.say("{when}, {h} went {go}. There {h.he} saw a {k} [sitting all alone|playing alone|who was new there].",
          when=s.when(), go=go, k=f.kind)
    s.scene()
    s.say(s.pick(["At first, {h} was too shy to speak.",
                  "{h.ref} [hid behind a tree|stood still] and watched for a while.",
                  "{h.He} did not dare to say anything at first."]))
    deed = s.pick(["ball", "fall", "share", "cold", "song"])
    if deed == "ball":
        s.say("Then a ball rolled to {h.his} feet. {h} picked it up and [gave|threw] it back.")
        s.say('"Thank you," said the {k}. "Do you want to play with me?"', k=f.kind)
    elif deed == "fall":
        s.say("Suddenly the {k} [slipped|fell] and hurt {f.his} knee. {h} [ran|hurried] to help {f.him} up.",
              k=f.kind)
        s.say('"Thank you," said the {k}. "You are [kind|very kind]."', k=f.kind)
    elif deed == "share":
        g = s.pick(GIFTS)
        s.say("Then {h} took {g} out of {h.his} bag. \"[Are you hungry|Would you like some]? We can share,\" {h.he} "
              "said.", g=g)
        s.say('"Yes, please," said the {k} and smiled.', k=f.kind)
    elif deed == "cold":
        s.say("[But the {k} looked cold|The {k} was shaking with cold]. {h} took off {h.his} scarf and [gave it to "
              "{f.him}|put it around {f.him}].", k=f.kind)
        s.say('"Thank you," said the {k}. "Now I am warm."', k=f.kind)
    else:
        s.say("Then the {k} began to sing a [soft|sad|little] song. {h} knew that song, and [sang along|began to "
              "sing too].", k=f.kind)
        s.say('"You know my song!" said the {k} [happily|with wide eyes].', k=f.kind)
    s.say('"My name is {h}," said {h}. "What is your name?" "I am {f}," said the {k}.', k=f.kind)
    s.para()
    did = s.pick(["flew a kite", "built a little house of sticks", "played hide and seek", "picked berries",
                  "made a boat of wood", "ran races", "told each other stories", "looked for round stones"])
    s.say("{h} and {f} [played together all day|played until the sun went down|spent the whole day together]. They "
          "{did} and laughed.", did=did)
    s.some(0.7,
           '"[Will you come back|Shall we play again] tomorrow?" asked {f}. "Yes, [every day|of course|I will]!" '
           'said {h}.')
    s.say(s.pick(["Now {h} was not lonely [anymore|any more]. {h.He} had a friend.", "{h}'s wish had come true.",
                  "When {h} went home, {h.he} was [singing|happy]. {h.He} had found a friend."]))
    s.ending("From that day on, {h} and {f} were [best friends|the best of friends|always together].")


def plot_animal(s):
    """An animal is in trouble; the hero helps; later the animal gives help back."""
    h = s.hero(human=True)
    s.para()
    kind = s.fresh(["bird", "fawn", "puppy", "kitten", "lamb", "young owl", "hedgehog", "duckling"])
    b = Who(s.rng, kind, s.maybe())
    b.a = f"a little {kind}"
    was, go = s.pick(OUTDOORS)
    s.say("{when}, {h} [was walking|was playing] {was}. Suddenly {h.he} heard a [small|soft|sad] cry.", when=s.when(),
          was=was)
    s.scene()
    wings = kind in ("bird", "young owl")
    trouble = s.pick(["fall"] if wings and s.maybe(0.6) else ["thorns", "lost", "hole", "hurt"])
    if trouble == "fall":
        s.say("{b.a} had fallen from its nest and lay in the grass. It [could not fly|was too small to fly].", b=b)
        s.say('"Do not be afraid," [whispered|said] {h}. "[I will help you|I will bring you home]."')
        s.say("{h} [carefully picked it up|took it in both hands], climbed the tree, and put it back into the nest.")
        s.say("The mother [bird|owl] [sang with joy|flew around {h.his} head with joy]." if kind == "bird" else "The "
              "mother owl [looked at {h.him} with big eyes|thanked {h.him} with a soft call].")
    else:
        if trouble == "thorns":
            s.say("{b.a} was caught in a bush full of thorns. [The more it pulled, the more it hurt|It could not "
                  "get out].", b=b)
            s.say('"[Hold still|Do not move]," said {h} [softly|gently]. "I will help you."')
            s.say("One by one, {h.he} bent the branches away until the {b.kind} was free.", b=b)
        elif trouble == "lost":
            s.say("{b.a} was sitting there all alone. It had lost its mother.", b=b)
            s.say('"[Do not cry|Do not be afraid], little one," said {h}. "We will find your mother."')
            s.say("{h.He} carried the {b.kind} in {h.his} arms and [looked everywhere|walked a long way]. At last "
                  "they heard a call. It was the mother!", b=b)
            s.say("The {b.kind} [ran|hurried] to its mother, and both were happy.", b=b)
        elif trouble == "hole":
            s.say("{b.a} had fallen into a deep hole and could not get out.", b=b)
            s.say("{h} [thought for a moment|looked around]. Then {h.he} [put a long branch into the hole|made a "
                  "little ladder of sticks|lay down and reached in with both arms].")
            s.say('"[Come|Come up], little one," {h.he} said, and [soon|at last] the {b.kind} was safe.', b=b)
        else:
            s.say("{b.a} was lying on the ground. Its leg was hurt, and it was very weak.", b=b)
            s.say("{h} [carried it home|took it home in {h.his} arms] and made a soft bed for it [by the fire|in a "
                  "basket].", b=b)
            s.say("Every day {h.he} gave it [water and food|warm milk] and spoke to it kindly. After [a week|some "
                  "days|two weeks], the {b.kind} could [run|walk] again." if not wings else "Every day {h.he} gave "
                  "it water and seeds and spoke to it kindly. After [a week|some days], the {b.kind} could fly "
                  "again.", b=b)
    s.para()
    if s.maybe(0.6):
        s.say(s.pick(["Some days later, {h} lost {h.his} way in the [forest|fog|dark].",
                      "That winter, {h} was lost in the [snow|forest]."]))
        s.some(0.5, "It grew dark, and {h.he} was afraid.")
        s.say("Then {h.he} heard a sound. It was the {b.kind}! It had not forgotten {h.him}.", b=b)
        s.say("The {b.kind} [went ahead|showed {h.him} the way], and {h} followed it [all the way|safely] home.", b=b)
    else:
        s.say(s.pick(["When {h} told {g}, {g} was proud. \"[You have a good heart|That was kind of you],\" said {g}.",
                      "{h.His} family was proud of {h.him}[|, and {g} baked a cake]."]), g=s.relative(h))
        s.some(0.6,
               "[From then on|After that], the {b.kind} [came to visit {h.him} often|followed {h.him} everywhere].",
               b=b)
    s.ending("{h} [learned|knew now] that [a kind deed is never lost|even a small kindness is a great gift].")


def plot_storm(s):
    """A storm comes; someone is out in it; they wait, help, and repair."""
    h = s.hero(sibling=True)
    f = s.friend(h)
    s.para()
    was, go = s.pick(OUTDOORS)
    s.say("{when}, {h} and {f.intro} were playing {was}. Suddenly the sky [grew|turned] dark, and the wind began to "
          "blow.", when=s.when(), was=was)
    s.say('"A storm is coming!" [cried|shouted] {who}. "[We must run|Quick, let us find a safe place]!"',
          who=s.pick([h, f]))
    shelter = s.pick(["an old barn", "a small cave", "a hollow tree", "an empty hut", "a dry place under a rock"])
    s.say("They ran [as fast as they could|hand in hand|through the rain] and found {sh}.", sh=shelter)
    s.say("[The thunder rolled|Thunder and lightning filled the sky], and the rain [fell and fell|came down hard].")
    s.para()
    scared, calm = (h, f) if s.maybe() else (f, h)
    s.say("{x} was [afraid|very afraid|shaking]. \"[I do not like the thunder|I want to go home],\" {x.he} said.",
          x=scared)
    s.say(s.pick(['"Let us sing a song," said {y}. And they sang so loudly that they [forgot|did not hear] the '
                  'thunder.',
                  '"Hold my hand," said {y}. "The storm will soon be over." And {y} told {x.him} a [funny|long] '
                  'story.',
                  '"The thunder is only a noise," said {y}. "It cannot hurt us here." Then {x} felt [better|a '
                  'little better].']), x=scared, y=calm)
    if s.maybe(0.5):
        b = with_article(s.beast(["mouse", "rabbit", "hedgehog", "kitten", "sparrow"]))
        s.say("Then they saw {b.a} outside. {b.He} was wet and cold.", b=b)
        s.say("\"Come in, {b.kind},\" said {y}. \"There is room for [all of us|three].\" And they kept each other "
              "warm.", y=calm, b=b)
    s.para()
    s.say(s.pick(["At last the rain stopped, and the sun came out. [A rainbow stood in the sky|There was a big "
                  "rainbow over the hills].",
                  "After an hour the storm was over. The sky was blue again, and [the birds were singing|everything "
                  "smelled fresh]."]))
    if s.maybe(0.5):
        s.say("But the wind had [broken the fence|blown the roof off the henhouse|thrown down the little bridge]. "
              "[So they|Everyone] worked together, and [by evening|soon] it was as good as new.")
    else:
        s.say("They [walked|ran] home, where {g} was waiting for {h.him} with [hot soup|warm milk|dry clothes].",
              g=s.relative(h))
    s.say('"I am [glad|happy] that [we were together|you were with me]," said {x}.', x=scared)
    s.ending("After that, {x} was not afraid of [storms|thunder] anymore.", x=scared)


def plot_bake(s):
    """Something is to be baked for somebody's day; one thing is missing and must be earned."""
    h = s.hero(sibling=True)
    g = s.relative(h)
    cake = s.pick(["cake", "apple pie", "honey cake", "berry pie", "loaf of sweet bread", "chocolate cake"])
    s.para()
    s.say(s.pick(["It was {g}'s birthday, and {h} wanted to bake a {c} for {g.him}.",
                  "{when}, {h} decided to bake a {c} as a surprise for {g}."]), g=g, c=cake, when=s.when())
    missing, owner, where = s.pick([
        ("eggs", "hen", "in the barn"), ("milk", "cow", "in the field"), ("honey", "bee", "in the garden"),
        ("flour", "miller", "in the old mill"), ("butter", "farmer", "on the farm"),
        ("sugar", "baker", "in the village"), ("apples", "farmer", "on the farm"),
        ("berries", "bear", "in the forest"), ("nuts", "squirrel", "in the forest"),
    ])
    have = [x for x in ["flour", "milk", "butter", "eggs", "sugar"] if x != missing]
    a, b = s.rng.sample(have, 2)
    are = "were" if missing[-1] == "s" else "was"
    s.say("{h.He} had {a} and {b}, but there {are} no {m}.", a=a, b=b, m=missing, are=are)
    s.say('"[How can I bake without {m}|Where can I find {m}]?" [said|asked] {h}.', m=missing)
    s.say("So {h} went to the {o} {w}. \"[Please, may I have some {m}|Could you give me some {m}]?\" {h.he} asked.",
          o=owner, w=where, m=missing)
    need, deed = s.pick([
        ("My house is so dirty", "swept the floor until it was clean"),
        ("I am so thirsty", "brought fresh water from the well"),
        ("I am tired and have so much work", "worked hard and did half of the work"),
        ("I am so lonely", "sat down and told a long and funny story"),
        ("I cannot find my little bell", "looked everywhere and found it in the grass"),
        ("I would like to hear a song", "sang a beautiful song"),
    ])
    s.say('"Yes," said the {o}, "but [first you must help me. {n}|will you help me first? {n}]."', o=owner, n=need)
    s.say("[So|Gladly,|At once,] {h} {d}. The {o} was [pleased|happy] and gave {h.him} {m}.", d=deed, o=owner,
          m=missing)
    s.para()
    s.say("{h} [hurried|ran] home. {h.He} mixed everything in a big bowl and [put it into the oven|baked it until "
          "it was golden]. Soon the whole house smelled sweet.")
    if s.maybe(0.4):
        s.say("But oh dear! The {c} was [a little burned|not quite round|a little crooked]. {h} was worried.", c=cake)
        s.say('"[It does not matter how it looks|It is the best {c} in the world]," said {g}. "You made it with '
              'love."', g=g, c=cake)
    else:
        s.say("When {g} came in and saw the {c}, {g.he} [clapped {g.his} hands|could not believe {g.his} eyes].", g=g,
              c=cake)
        s.say('"[Is this for me|Did you make this all alone]?" asked {g}. "Yes[, for you|]!" said {h} [proudly|with '
              'a smile].', g=g)
    s.say("They ate it together[, and it was delicious|, and it tasted wonderful].")
    s.some(0.6, "{h} [saved a big piece|brought a piece] for the {o}, too.", o=owner)
    s.ending("{h} [knew|had learned] that [a gift made with love is the best gift|work is easier when we help each "
             "other].")


def plot_fear(s):
    """Afraid of something; a good reason makes the hero try; it was not so bad."""
    h = s.hero()
    fear, call, reason, deed, truth = s.pick([
        ("the dark", "It is so dark in there", "{f.intro} had dropped {f.his} [ring|key] in the dark cellar",
         "took a candle and went down, one step after another", "the dark was only the day with its eyes closed"),
        ("deep water", "The water is so deep", "a little puppy had fallen into the pond",
         "held on to a branch, stepped into the water, and pulled the puppy out",
         "the water was not so bad after all"),
        ("high places", "It is so high up there", "a kitten sat high in the tree and could not come down",
         "climbed up slowly, from branch to branch, and brought the kitten down",
         "one only has to look at the next branch"),
        ("the big dog", "He has such big teeth", "the big dog had hurt his paw and was crying",
         "went closer and gently took the thorn out of his paw", "the big dog was only lonely"),
        ("the old forest", "There are strange noises in there", "{f.intro} had not come home from the forest",
         "walked in between the tall trees and called {f.his} name until {f} answered",
         "the strange noises were only the wind and the birds"),
        ("speaking aloud", "Everyone will look at me", "somebody had to thank the teacher in front of everyone",
         "took a deep breath and spoke, first softly and then loudly", "everyone was [smiling|kind]"),
    ])
    s.friend(h)
    s.say("But {h.he} was afraid of {x}. \"{c},\" {h.he} always said.", x=fear, c=call)
    s.some(0.5, "The others [laughed at {h.him}|did not understand it], but {f.intro} did not laugh.")
    s.para()
    s.say("{when}, [something happened|there was trouble]: " + reason + ".", when=s.when())
    s.say(s.pick(["There was no one else to help.",
                  "Everyone else was [far away|at work]. Only {h} was there.", "There was no time to lose."]))
    s.say("{h.His} [heart beat fast|knees were shaking|hands were cold]. \"I am afraid,\" {h.he} [thought|said to "
          "{h.himself}], \"but [I must try|I will do it|somebody must do it].\"")
    s.say("{h} " + deed + ".")
    s.para()
    s.say(s.pick(['"[You did it|You were so brave], {h}!" [cried|said] {f.intro}.',
                  '{f.intro} [hugged|thanked] {h.him}. "You are the bravest {k} I know," {f.he} said.']), k=h.kind)
    s.say('"I was afraid," said {h}, "[but I did it anyway|but then I forgot my fear]."')
    s.say("And {h} saw that " + truth + ".")
    s.happy(h, 0.5)
    s.ending("From that day on, {h} was not afraid of {x} anymore.", x=fear)


def plot_share(s):
    """Two want the same thing, quarrel, lose by it, and find out that sharing is better."""
    h = s.hero(sibling=True)
    s.friend(h)
    s.para()
    t = Thing(*s.pick([
        ("swing", None), ("sled", "red"), ("kite", "blue"), ("ball", "big"), ("boat", "little"), ("drum", "new"),
        ("cart", "wooden"), ("book", "beautiful"),
    ]))
    was, go = s.pick(OUTDOORS)
    s.say("{when}, {h} and {f.intro} found a {t.full} {was}.", when=s.when(), t=t, was=was)
    s.scene()
    s.say('"[It is mine|I saw it first]!" [cried|said] {h}. "No, [it is mine|I saw it first|I want it]!" '
          '[cried|shouted] {f}.')
    s.say("They [pulled and pulled|both held it tight], and neither would let go.")
    end = s.pick(["broke", "left", "elder"])
    if end == "broke":
        s.say("Then there was a loud crack. The {t} was broken!", t=t)
        s.say("Both of them were quiet. \"[I am sorry|It is my fault],\" said {h}. \"I am sorry, too,\" said {f}.")
        s.say("They sat down and [mended|repaired] the {t} together. {f} held the pieces, and {h} tied them with a "
              "string.", t=t)
        s.say("Soon the {t} was as good as new.", t=t)
    elif end == "left":
        s.say("{f} [became angry|was hurt] and went home. Now {h} had the {t} all to {h.himself}.", t=t)
        s.say("But it was no fun alone. {h} [looked at the {t} and sighed|missed {h.his} friend].", t=t)
        s.say("So {h.he} went to {f}'s house and knocked at the door. \"I am sorry,\" said {h}. \"Please come and "
              "play. [You may have it first|We can share it].\"")
        s.say("{f} smiled. \"[Let us take turns|I am sorry, too],\" {f.he} said.")
    else:
        o = s.elder()
        s.say("Just then, {o.a} came by and [saw them|heard them]. \"Why do you quarrel?\" {o.he} asked.",
              o=with_article(o))
        s.say('"We both want the {t}," said {h}.', t=t)
        s.say('"[Then use it one after the other|When two share one thing, both have it]," said {o}. "[That is '
              'twice the fun|If you quarrel, nobody has any joy]."', o=o)
        s.say("{h} and {f} [looked at each other|were ashamed]. \"[You first|You may begin],\" said {h}.")
    s.para()
    s.say("They played [together|in turns] until [evening|the sun went down], and it was [much more fun than "
          "before|twice as much fun as before].")
    s.happy(h, 0.5)
    s.ending("They had learned that [sharing is better than having|joy grows when we share it].")


def plot_journey(s):
    """A wish sends the hero far away; kindness on the road is repaid at the obstacles."""
    h = s.hero()
    goals = [("see the sea", "the sea", "The water was blue and went on to the end of the world", "a white shell"),
             ("see the top of the mountain", "the top of the mountain", "From there one could see the whole world",
              "a shining stone"),
             ("find the golden flower", "the golden flower", "It shone like the sun among the stones",
              "one golden seed"),
             ("hear the silver bird", "the silver bird", "It sang more sweetly than anything in the world",
              "a silver feather"),
             ("visit {h.his} grandmother on the other side of the forest", "the grandmother's house",
              "The grandmother stood at the door with open arms", "a basket of cakes"),
             ("see the queen's garden", "the queen's garden",
              "There were roses in all colors and a fountain of clear water", "a white rose"),
             ("find the end of the rainbow", "the end of the rainbow", "There everything shone in seven colors",
              "a ribbon of seven colors")]
    wish, goal, sight, prize = s.pick(goals)
    wish = s.word(wish)
    s.say("{h.His} [greatest|dearest] wish was to {w}.", w=wish)
    s.para()
    g = s.relative(h)
    s.say("{when}, {h} [packed|put] {food} into a bag and said goodbye to {g}.", when=s.when(),
          food=s.pick(["some bread and cheese", "an apple and some bread", "bread and nuts"]), g=g)
    s.scene()
    s.some(0.6, '"[Be careful|Be kind to everyone you meet|Come home soon]," said {g}.', g=g)
    ability = s.pick(OBSTACLES)
    b = s.beast(CAN[ability])
    known = s.maybe(0.75)
    if known:
        meet_in_trouble(s, b)
    s.para()
    s.say("{h} [walked on|went on] and on.")
    overcome(s, ability, b, known)
    if s.maybe(0.25):
        ab2 = s.pick([a for a in OBSTACLES if a != ability])
        overcome(s, ab2, s.beast(CAN[ab2]), False)
    s.para()
    s.say("At last, {h} [came to|reached|found] {goal}. {sight}.", goal=goal, sight=sight)
    s.say(s.pick(['"[It is even more beautiful than I thought|How wonderful|I have never seen anything so '
                  'beautiful]!" said {h}.' if "bird" not in goal else '"How wonderful!" said {h}.',
                  "{h} stood there for a long time and was happy."]))
    s.say("{h.He} took {p} home with {h.him}, [as a gift for {g}|and showed it to everyone|and kept it all {h.his} "
          "life].", p=prize, g=g)
    s.ending("{h} [had learned|knew now] that [no way is too long with good friends|kindness opens every door].")


def plot_honest(s):
    """Something is broken in secret; the secret is heavy; the truth makes it light."""
    h = s.hero()
    g = s.relative(h)
    t = s.pick(["blue vase", "big mirror", "glass bowl", "white cup", "old clock", "kitchen window", "flower pot"])
    s.para()
    s.say("{when}, {h} was playing [with a ball|and jumping around] in the house. {g} had said, \"[Do not play in "
          "the house|Please play outside],\" but {h} [did not listen|forgot it].", when=s.when(), g=g)
    s.say("Crash! The {t} fell and broke into [many|a hundred] pieces." if "window" not in t else "Crash! The ball "
          "flew into the kitchen window, and it broke.", t=t)
    s.say("{h} was [frightened|afraid]. \"[Nobody must know|What have I done],\" {h.he} thought[|, and hid the "
          "pieces behind the door].", gg=g)
    s.para()
    n = t.split()[-1]
    s.say("When {g} came home, {g.he} saw the {n}. \"[Who did this|What happened here]?\" {g.he} asked.", g=g, n=n)
    blame = s.pick(["the cat", "the wind", "the dog"])
    lied = s.maybe(0.6)
    s.say('"It was {b}," said {h}.' if lied else '{h} [said nothing|looked at the floor and said nothing].', b=blame)
    if lied and blame != "the wind":
        s.say("So {b} had to [stay outside|sleep outside|go without supper]. {b} looked at {h} with [sad|big sad] "
              "eyes.", b=blame)
    s.say("[That night|In the evening], {h} could not sleep. [The lie was heavy like a stone|{h.His} heart was "
          "heavy].")
    s.say("At last {h.he} [got up and went|ran] to {g}. \"It was me,\" {h.he} said[| and cried]. \"I broke the {n}, "
          "and I am sorry.\"", g=g, n=n)
    s.para()
    s.say('{g} [took {h.him} in {g.his} arms|looked at {h.him} for a while and smiled]. "A {n} can be replaced," '
          '{g.he} said. "[I am glad that you told me the truth|The truth is worth more]."', g=g, n=n)
    s.say("[The next day|In the morning], they [swept up the pieces|mended it] together[|, and {h} used {h.his} own "
          "coins to buy a new one].")
    if lied and blame != "the wind":
        s.some(0.8, "And {b} got [a big bowl of milk|the best piece of meat|a kiss on the nose] from {h}.", b=blame)
    s.say("{h.His} heart was light again.")
    s.ending("From that day on, {h} always told the truth.")


def plot_garden(s):
    """A seed, patience, and something that grows."""
    h = s.hero()
    o = with_article(s.elder())
    s.para()
    seed = s.pick(["seed", "bean", "small brown seed", "tiny seed"])
    s.say("{when}, {o.a} gave {h} a {seed}. \"[Plant it and be patient|Take good care of it],\" said {o}. \"[It "
          "will make you happy one day|Something wonderful is inside].\"", when=s.when(), o=o, seed=seed)
    s.scene()
    s.say("{h} planted it [in the garden|behind the house|by the fence] and gave it water. [Every day|Every "
          "morning], {h.he} [went to look|looked at the spot].")
    s.say("But nothing happened. [One day passed, and then another|A week passed], and there was only [brown "
          "earth|earth].")
    s.friend(h)
    s.say('"[Nothing will ever grow here|You are wasting your time]," said {f.intro}. "[Come and play|Forget it]."')
    s.say(s.pick(['"I will wait," said {h}.',
                  '"[Good things need time|It only needs time]," said {h}.',
                  "{h} was sad, but {h.he} did not give up."]))
    s.para()
    if s.maybe(0.6):
        ill, act = s.pick([
            ("Then it did not rain for weeks, and the ground was dry", "carried water from the river every evening"),
            ("Then a cold night came with frost", "covered the spot with {h.his} own warm coat"),
            ("Then the crows came to steal the seed", "made a funny man of straw, and the crows flew away"),
        ])
        s.say("{ill}. {h} {act}.", ill=ill, act=s.word(act))
    grown, fin = s.pick([
        ("flower", "It was taller than {h} and yellow like the sun"),
        ("apple tree", "It grew year after year, and in autumn it was full of red apples"),
        ("rose", "It was red and smelled so sweet that people stopped at the fence"),
        ("pumpkin", "It grew so big that {h} could sit on it"),
        ("beanstalk", "It grew higher than the house"),
    ])
    s.say("Then, one [spring |]morning, there was a tiny green leaf! {h} [shouted|danced] with joy.")
    s.say("[The plant|The little plant] grew and grew. It became a [beautiful|fine|wonderful] {g}. {fin}.", g=grown,
          fin=s.word(fin))
    if grown in ("apple tree", "pumpkin", "beanstalk"):
        s.say("{h} shared [the {x}|everything] with [{f} and all the neighbors|the whole village].",
              x={"apple tree": "apples", "pumpkin": "pumpkin", "beanstalk": "beans"}[grown])
    else:
        s.say("[Bees and butterflies came to visit it|Everyone came to see it], even {f}.")
    s.say('"[You were right to wait|I am sorry that I laughed]," said {f}. "[Will you show me how to plant one|May '
          'I help you next time]?"')
    s.ending("{h} [learned|had learned] that good things [take time|need patience].")


def plot_magic(s):
    """A magic thing, a wish too many, and a wiser last wish."""
    h = s.hero()
    b = s.beast(["frog", "fish", "owl", "fairy", "little man"])
    if b.kind in ("fairy", "little man"):
        b = Who(s.rng, b.kind, b.kind == "fairy")
    with_article(b)
    s.para()
    was, go = s.pick(OUTDOORS)
    s.say("{when}, {h} found {b.a} {was}. {b.He} was [caught in a net|stuck under a heavy stone|lying in the dry "
          "grass].", when=s.when(), b=b, was=was)
    s.scene()
    s.say("{h} [felt sorry for {b.him} and set {b.him} free|helped {b.him} at once].", b=b)
    s.say('"[You have saved me|Thank you, {h}]," said {b}. "[For that you may make three wishes|I will give you '
          'three wishes]."', b=b)
    silly = s.pick([("a mountain of cakes",
                     "There were cakes on the table, on the bed, and on the roof. {h} ate until {h.his} stomach "
                     "hurt"),
                    ("a house full of toys", "There were so many toys that {h} could not get through the door"),
                    ("a bag of gold",
                     "The bag was so heavy that {h} could not lift it, and {h.he} could not sleep for fear of "
                     "thieves"),
                    ("the biggest horse in the world",
                     "It was so big that nobody could ride it, and it ate all the grass in the field")])
    s.para()
    s.say('"I wish for {w}!" said {h}. And there it was!', w=silly[0])
    s.say(silly[1] + ".")
    s.say('"[This is too much|This was a foolish wish]," said {h}. "I wish [it were gone|it would go away again]." '
          '[In a moment|At once], everything was as before.')
    s.say("Now there was only one wish left. {h} [thought for a long time|sat down and thought].")
    g = s.relative(h)
    f = s.friend(h)
    wise, res = s.pick([
        (f"{g} were never tired and sad again", f"When {{h}} came home, {g} was singing in the kitchen"),
        (f"my friend {f.name} could walk without pain again",
         f"When {{h}} came to the village, {f} was running to meet {{h.him}}"),
        ("the well in the village were full of clear water again",
         "When {h} came to the village, the well was full, and all the people were dancing"),
        ("no one in the village were hungry this winter", "When {h} came home, every house had bread on the table"),
    ])
    wise = wise.replace(f"{h.his} {g.kind}", f"my {g.kind}")
    s.say('"I wish that {w}," {h.he} said at last. {b} smiled. "That is a good wish," {b.he} said.', w=wise, b=b)
    s.para()
    s.say(res + ".")
    s.happy(h)
    s.ending("{h} [knew|had learned] that the best wishes are for others.")


def plot_skill(s):
    """Wants to be able to do something, fails, practises, does it on the day."""
    h = s.hero(human=True)
    skill, fail, day, feat = s.pick([
        ("swim", "water got into {h.his} nose, and {h.he} coughed", "the day at the lake",
         "swam all the way to the little island"),
        ("play the flute", "only a squeak came out, and the cat ran away", "the summer feast",
         "played so sweetly that everyone stopped talking"),
        ("ride a horse", "{h.he} slid down on the other side", "the market day",
         "rode through the village with a straight back"),
        ("skate on the ice", "{h.he} fell down again and again", "the winter feast",
         "made a great circle on the ice without falling"),
        ("fly a kite", "the kite fell into the bushes", "the day of the autumn wind",
         "let the kite fly higher than the church tower"),
        ("dance", "{h.he} stepped on everyone's feet", "the harvest dance",
         "danced as lightly as a leaf in the wind"),
        ("read", "the letters seemed to run around like ants", "{h.his} grandmother's birthday",
         "read a whole story aloud"),
        ("bake bread", "the bread was as hard as a stone", "the feast of the village",
         "baked the best bread of all"),
    ])
    s.say("More than anything, {h} wanted to [learn to |learn to |be able to ]{k}.", k=skill)
    s.para()
    s.say("{when}, {h.he} tried it for the first time. But {fail}.", when=s.when(), fail=s.word(fail))
    s.say(s.pick(['"I will never learn it," [said|sighed] {h}.',
                  "Some children laughed, and {h}'s face [turned|grew] red.", "{h} wanted to give up."]))
    o = s.pick([s.elder, lambda: s.relative(h)])()
    if o.kind not in FAMILY:
        with_article(o)
        s.say("But {o.a} had seen it. \"[Do not give up|Nobody can do it the first time],\" said {o}. \"[I will "
              "show you|Come to me every day, and I will teach you].\"", o=o)
    else:
        s.say("But {o} had seen it. \"[Do not give up|Nobody can do it the first time],\" said {o}. \"[I will show "
              "you|We will practice together].\"", o=o)
    s.para()
    s.say("[Every day|Day after day], {h} practiced with {o}. [On the first day it went badly, on the second day a "
          "little better|It was hard, but every day it went a little better].", o=o)
    s.some(0.5, "Sometimes {h.he} was tired, but {h.he} did not stop.")
    s.say("Then came {d}. {h}'s heart [beat fast|was beating fast]. {h.He} [took a deep breath|closed {h.his} eyes "
          "for a moment] and {feat}.", d=s.word(day), feat=feat)
    s.say("Everyone [clapped and cheered|cheered|clapped]. {o} was [proud|the proudest of all].", o=o)
    s.thanks(h, o)
    s.ending("{h} had learned that [practice makes the master|one must never give up too soon].")


def plot_race(s):
    """A proud one and a kind one in a race; kindness costs the lead and wins more."""
    h = s.hero()
    s.friend(h)
    s.para()
    prize = s.pick(["a golden cup", "a basket of apples", "a big honey cake", "a silver bell", "a crown of flowers"])
    s.say("{when}, there was a [great |]race [around the lake|through the forest|to the old bridge and back]. The "
          "prize was {p}.", when=s.when(), p=prize)
    s.scene()
    s.say('"I am the fastest of all," said {f.intro}. "[Nobody can beat me|I will surely win]." {h} said nothing[ '
          'and smiled|].')
    s.say("[They started|The race began], and {f} was soon far ahead. {h} ran as well as {h.he} could.")
    s.para()
    b = with_article(s.beast(["hedgehog", "turtle", "sparrow", "mouse", "kitten"]))
    if s.maybe(0.5):
        s.say("On the way, {h} saw {b.a} [lying on {b.his} back|caught under a branch]. The others ran past, but "
              "{h} stopped and helped {b.him}.", b=b)
        s.say('"Now you will lose the race," said {b}. "That does not matter," said {h}.', b=b)
        s.say('"[I know a shorter way|There is a secret path]," said {b}. "[Follow me|I will show you]!" And {h} '
              'ran [along the path|behind {b.him}].', b=b)
        s.say("{h} came to the end just before {f} and won the race!")
    else:
        s.say("Then {f} [fell over a stone|stepped into a hole] and hurt {f.his} foot. The others ran past.")
        s.say("But {h} stopped. \"[Lean on me|Come, I will help you],\" {h.he} said. Arm in arm, they [walked|went] "
              "on and came in last.")
        s.say("Everyone [cheered for them|clapped]. \"{h} has the fastest heart of all,\" said [the judge|the old "
              "judge].")
    s.say('"[I was too proud|I am sorry that I was so proud]," said {f}. "[You have earned it|You are a good '
          'friend]." "[Let us share the prize|It belongs to both of us]," said {h}.')
    s.say("So {h} and {f} [shared {p}|carried {p} home together].", p="the" + prize[1:])
    s.ending("[After that|From then on], {f} never [boasted|spoke proudly] again.")


def plot_monster(s):
    """All are afraid of somebody big; the hero goes and finds out why he is so loud."""
    s.hero(human=True)
    m = s.pick(["dragon", "giant", "big bear", "troll", "wolf"])
    place = s.pick(["in a cave on the mountain", "in the dark forest", "behind the hills", "in an old castle"])
    s.say("Not far away, {place}, lived a {m}. Every night he [roared|howled|made a terrible noise], and all the "
          "people were afraid.", place=place, m=m)
    s.para()
    s.say('"[Why does he make such a noise|Has anyone ever asked him what he wants]?" asked {h}. [Nobody '
          'knew|Nobody had an answer].')
    s.say("So, [one morning|the next day], {h} took {gift} and went to [see|find] the {m}.",
          gift=s.pick(["a basket of bread", "a pot of honey", "a warm blanket", "a big cake"]), m=m)
    s.say("{h}'s knees were shaking, but {h.he} [knocked|went in|called out]. \"Who is there?\" [roared|cried] the "
          "{m}.", m=m)
    s.say('"I am {h}," said {h}. "[Why are you so loud|Why do you cry every night]?"')
    why, act = s.pick([
        ("I have a bad tooth, and it hurts", "tied a string around the tooth and pulled, and the tooth was out"),
        ("I am so lonely, and everyone runs away from me",
         "sat down beside him, and they talked and laughed until evening"),
        ("I have a thorn in my foot, and I cannot reach it", "took hold of the thorn and pulled it out"),
        ("I am afraid of the dark and cannot sleep", "gave him a little lantern and sang him a song until he slept"),
        ("I am so cold in here", "made a warm fire for him"),
        ("I lost my little teddy bear, and I cannot sleep without it",
         "looked everywhere and found it under a big stone"),
    ])
    s.say('The {m} [began to cry big tears|looked sad]. "{why}," he said.', m=m, why=why)
    s.say('"[I can help you|Then let me help you]," said {h}. {h.He} {act}.', act=act)
    s.say('"[Thank you, {h}|You are the first one who was kind to me]," said the {m}. "[Now I am happy|From now on '
          'I will be your friend]."', m=m)
    s.para()
    good = {
        "dragon": "lit the fires in all the ovens", "giant": "carried stones for a new bridge",
        "big bear": "brought honey for everyone", "troll": "guarded the bridge for the people",
        "wolf": "watched over the sheep",
    }[m]
    s.say("{h} brought the {m} to the village. At first the people [hid|were afraid], but [soon|then] they saw that "
          "he was [gentle|kind].", m=m)
    s.say("From then on, the {m} {good}, and the nights were quiet.", m=m, good=good)
    s.ending("The people had learned that one should [ask before one is afraid|never judge by a loud voice].")


def plot_ill(s):
    """Someone dear is ill; the cure is far; helped on the way; well again."""
    h = s.hero()
    g = s.relative(h)
    cure, place = s.pick([
        ("a blue flower", "on the high mountain"), ("the clear water", "from the well in the deep forest"),
        ("the golden honey", "of the wild bees"), ("a red apple", "from the tree in the hidden valley"),
        ("a white herb", "behind the waterfall"),
    ])
    noun = cure.split()[-1]
    s.para()
    s.say("{when}, {g} [became|fell] ill and could not get up.", g=g, when=s.when())
    o = with_article(s.elder())
    s.say('"Only {c} {p} can help," said {o.a}.', c=cure, p=place, o=o)
    s.say('"Then I will [get|find] it," said {h}, and [set out at once|went on {h.his} way].')
    ability = s.pick(OBSTACLES)
    b = s.beast(CAN[ability])
    known = s.maybe(0.7)
    if known:
        meet_in_trouble(s, b)
    s.para()
    overcome(s, ability, b, known)
    s.para()
    if noun in ("apple", "flower", "herb"):
        take = "[picked it carefully|put it into {h.his} bag]"
    else:
        take = "[took it carefully|put some of it into {h.his} bag]"
    s.say("At last, {h} [found|saw] the {n}. {h.He} " + take + " and [hurried|ran] home as fast as {h.he} could.",
          n=noun)
    s.say(s.pick(["{g} [opened {g.his} eyes|sat up] and smiled. \"I feel [better|much better] already,\" {g.he} "
                  "said.",
                  "The next morning, {g} [got up|stood up] and was well again."]), g=g)
    s.say('"[You have saved me|What would I do without you], my dear {h}," said {g} and [kissed|hugged] {h.him}.',
          g=g)
    s.some(0.4, "They [thanked {b} and asked {b.him} to supper|never forgot {b}].", b=b)
    s.ending("{h} knew now that love [makes us strong|finds a way].")


def plot_winter(s):
    """One works for the winter, one plays; the snow comes; help, and a better year."""
    h = s.hero(human=False)
    f = s.child(human=False, female=not h.female)
    s.cast["f"] = f
    food = s.pick(["nuts", "seeds", "berries", "apples", "mushrooms"])
    s.para()
    s.say("All summer long, {h} [gathered|collected] {food} for the winter. {h.His} neighbor {f}, a "
          "[merry|lazy|young] {k}, only [played and sang|slept in the sun].", food=food, k=f.kind)
    s.say('"[Why do you work so hard|Why do you never play]?" asked {f}.')
    s.say('"Winter is coming," said {h}. "[Then there will be nothing to eat|We will need food and wood]." But {f} '
          '[laughed|only laughed] and [ran away|danced on].')
    s.para()
    s.say("Then winter came, and the snow was [deep|high]. {h} sat [by the warm fire|in {h.his} warm home] and had "
          "enough to eat.")
    s.say("One [cold|stormy] evening, there was a knock at the door. It was {f}. {f.He} was [cold and hungry|thin "
          "and shaking with cold].")
    s.say('"[I have nothing to eat|Please help me]," said {f}. "[I was foolish|I should have listened to you]."')
    s.say(s.pick(['"Come in," said {h}. "[There is enough for two|Sit by the fire]."',
                  '{h} opened the door wide. "Come in and eat," {h.he} said.']))
    s.say("{h} gave {f.him} [warm soup|bread and {food}], and {f} [told funny stories|sang {f.his} best songs] [all "
          "winter|until spring came], and {h} was never [bored|lonely].", food=food)
    s.para()
    s.say("[When spring came|The next summer], {f} [worked beside {h} every day|was the first one at work]. And in "
          "the evening, {h} [played and sang|danced] with {f}.")
    s.ending("They had learned that there is a time for work and a time for play.")


def plot_secret(s):
    """A strange sound or door, a search for what is behind it, a small wonder."""
    h = s.hero(sibling=True)
    f = s.friend(h)
    s.para()
    sign, where, found, after = s.pick([
        ("a strange sound", "behind the old wall", "a mother cat with three tiny kittens",
         "brought them milk every day"),
        ("a soft light", "at the end of the garden", "a hundred fireflies that were dancing in a circle",
         "came back every summer night to watch them"),
        ("a tiny door", "in the trunk of the old oak", "a room full of acorns, and a squirrel who asked them to tea",
         "visited the squirrel every week"),
        ("small footprints", "in the snow", "a little deer that was looking for food",
         "put out hay for it all winter"),
        ("sweet music", "in the old mill", "an old man with a violin who had nobody to play for",
         "came every evening to listen"),
        ("a rusty key", "under a flat stone", "an old box full of letters and a map of a secret garden",
         "made the garden bloom again"),
        ("a bottle", "on the beach", "a letter from a boy on an island who wished for a friend",
         "wrote him a long answer"),
    ])
    s.say("{when}, {h} {noticed} {sign} {where}. \"What can that be?\" {h.he} [wondered|asked {h.himself}].",
          when=s.when(), sign=sign, where=where,
          noticed=s.word("[noticed|heard]" if "sound" in sign or "music" in sign else "[noticed|saw|found]"))
    s.scene()
    s.say("{h} ran to {f.intro} and told {f.him} [about it|everything]. \"[Let us go and see|We must find out]!\" "
          "said {f}.")
    s.say(s.pick(["\"And if it is dangerous?\" asked {h}. \"Then we will run,\" said {f}.",
                  "They took a [lantern|lamp] and [went quietly|walked on tiptoe].",
                  "They held hands, for they were a little afraid."]))
    s.say("They went closer and closer, and {h}'s heart beat [fast|faster and faster].")
    s.para()
    if sign in ("a rusty key", "a bottle"):
        s.say(("The key opened a small door in the garden wall. Behind it" if "key" in sign else "{f} pulled out "
               "the cork. Inside") + " was {found}.", found=found)
    else:
        s.say("Then they saw it. It was {found}!", found=found)
    s.say('"[How wonderful|Oh, how beautiful|I cannot believe it]!" whispered {w}.', w=s.pick([h, f]))
    s.say('"[It will be our secret|Let us keep this secret]," said {w}.', w=s.pick([h, f]))
    s.say("[From that day on|After that], {h} and {f} {after}.", after=after)
    s.happy(h, 0.4)
    s.ending("It was the [best|most beautiful] secret in the world.")


def plot_wayhome(s):
    """Follows something pretty, gets lost, is brought home by those asked politely."""
    h = s.hero()
    s.para()
    lure = s.pick(["a blue butterfly", "a white rabbit", "a red bird", "the sound of a bell",
                   "a golden leaf in the wind"])
    s.say("{when}, {h} followed {lure} deep into the forest. {h.He} went farther and farther[| and did not look "
          "back].", when=s.when(), lure=lure)
    s.scene()
    s.say("[When {h.he} looked around, all the trees looked the same|At last {h.he} stopped. All the trees looked "
          "the same]. {h} was lost.")
    s.sad(h, 0.7)
    s.say('"[How shall I find the way home|Who can show me the way home]?" said {h}.')
    s.para()
    a, b = s.rng.sample([
        ("snail", "I am too slow and have never been far from this leaf"),
        ("mole", "I live under the ground and cannot see the way"), ("frog", "I only know the pond"),
        ("hedgehog", "I sleep all day and do not know the roads"),
    ], 2)
    s.some(0.6, "{h.He} asked a {a}. \"{t},\" said the {a}. \"Ask [someone else|the {k}].\"", a=a[0], t=a[1], k=b[0])
    ability = s.pick(["fly", "smell", "shine"])
    w = with_article(s.beast([k for k in CAN[ability] if k not in ("fox",)]))
    s.say("Then {h} met {w.a}. \"Please, can you [help me|show me the way home]?\" {h.he} asked [politely|kindly].",
          w=w)
    s.say('"You asked so nicely," said {w}. "' + {
        "fly": "I will fly up and look for your house", "smell": "I can smell the smoke of your chimney",
        "shine": "I will light the way for you",
    }[ability] + '."', w=w)
    s.say({
        "fly": "{w} flew from tree to tree, and {h} followed {w.him}.",
        "smell": "{w} ran ahead with {w.his} nose to the ground, and {h} followed {w.him}.",
        "shine": "{w} flew ahead like a little star, and {h} followed {w.him} through the dark.",
    }[ability], w=w)
    s.say("Soon {h} saw [the lights of home|{h.his} own home|a light between the trees].")
    g = s.relative(h)
    s.para()
    s.say("{g} [was standing at the door|ran out] and took {h.him} in {g.his} arms. \"[I was so worried|I looked "
          "for you everywhere],\" {g.he} said.", g=g)
    s.say("{h} [told {g.him} everything|said, \"I will not go so far alone again\"].", g=g)
    s.some(0.5, "{w} got {gift} [as a thank you|for {w.his} help].", w=w, gift=s.pick(GIFTS))
    s.ending("After that, {h} never went into the forest alone.")


def plot_build(s):
    """Two or three build something, each doing what he can do best; it fails once, then works."""
    h = s.hero(sibling=True)
    f = s.friend(h)
    s.para()
    what, part, fail, test = s.pick([
        ("boat", "wood", "it sank at once", "sailed across the pond"),
        ("tree house", "boards", "the floor fell down", "sat high above the garden and ate apples"),
        ("bridge", "branches", "the water carried it away", "walked over it with dry feet"),
        ("kite", "paper and string", "it would not fly", "let it fly up to the clouds"),
        ("snow house", "snow", "the roof fell in", "sat inside and drank warm milk"),
        ("cart", "old wheels", "one wheel rolled away", "rode down the hill in it"),
    ])
    s.say("{when}, {h} had an idea. \"[Let us build|I want to build] a {x}!\" {h.he} said to {f.intro}.",
          when=s.when(), x=what)
    s.scene()
    s.say("They [looked for|gathered|collected] {p} and worked [all morning|until noon|the whole day]. But when "
          "they tried the {x}, {fail}.", p=part, x=what, fail=fail)
    s.say(s.pick(['"[It is no use|We will never do it]," [said|sighed] {f}.',
                  '{f} was angry. "[It is all your fault|I do not want to build anymore]!" {f.he} said.']))
    s.say(s.pick(['"Let us try again," said {h}. "[We know now what was wrong|This time we will do it better]."',
                  '"[Nothing works the first time|We only have to think]," said {h}.']))
    s.para()
    if s.maybe(0.6):
        o = with_article(s.elder())
        s.say("They asked {o.a} for advice. \"[Go slowly and tie everything tight|Make it strong at the bottom],\" "
              "said {o} and [gave them a long rope|lent them a hammer|helped them a little].", o=o)
    s.say("{h} [measured|drew a plan], and {f} [held|tied] [the pieces|everything] together. They worked [slowly "
          "and carefully|side by side].")
    s.say("[In the evening|At last|After three days], the {x} was ready. {h} and {f} {test}.", x=what, test=test)
    s.say('"[We did it|It works]!" they [cried|shouted].')
    s.happy(f, 0.5)
    s.ending("They had learned that [two can do more than one|one must try again when something goes wrong].")


def plot_star(s):
    """A small quiet story: cannot sleep, a talk, a thing in the sky."""
    h = s.hero()
    g = s.relative(h)
    s.para()
    s.say("One night, {h} could not sleep. {h.He} [looked out of the window|sat up and looked at the sky]. [The "
          "moon was round and bright|The stars were bright].")
    sky, want, ans = s.pick([
        ("the moon", "Why does the moon follow me everywhere",
         "Because it likes you, and because it wants to light your way"),
        ("a falling star", "Where do the stars go when they fall", "They fall into the sea and become shells"),
        ("a star", "Is the little star up there not lonely", "No, for every night we look up and wave to it"),
        ("the wind", "What does the wind say in the trees", "It says good night to every leaf, one after the other"),
    ])
    s.say("{h.He} got up and went [quietly |on tiptoe |]to {g}. \"{w}?\" {h.he} asked.", g=g, w=want)
    s.say("{g} [smiled|thought for a moment]. \"{a},\" {g.he} said.", g=g, a=ans)
    s.say("They [went outside|sat down on the steps] together, and {g} put a [blanket|warm shawl] around {h}.", g=g)
    s.para()
    s.say("[They saw|Over the trees they saw] " + s.pick(["an owl fly over the field", "a fox run over the path",
                                                          "a hedgehog with her young ones", "a falling star"]) + ". "
          "{h} [held {g.his} hand|made a wish|was very quiet].", g=g)
    s.say('"[May we do this again|Will you wake me when the next one falls]?" asked {h}. "[Of course|Yes, my '
          'dear]," said {g}.' if sky == "a falling star" else '"May we do this again?" asked {h}. "[Of course|Yes, '
          'my dear]," said {g}.', g=g)
    s.say("[Soon|Then] {h}'s eyes [closed|grew heavy], and {g} carried {h.him} to bed.", g=g)
    s.say(s.pick(["{h} dreamed of [the stars|a silver boat in the sky|the moon] all night long.",
                  "And the moon [shone|watched] over the house until morning."]))


def plot_chain(s):
    """To get one thing another is needed, and for that a third: the chain is undone from its end."""
    s.hero()
    s.para()
    goal = s.pick(["key", "boat", "bell", "rope", "lamp", "cart"])
    purpose = {
        "key": "open the old door", "boat": "cross the lake", "bell": "call the cows home",
        "rope": "pull the calf out of the ditch", "lamp": "look for the lost lamb in the dark",
        "cart": "bring the wood home",
    }[goal]
    wants = s.rng.sample([
        ("bread", "I am hungry"), ("flowers", "It is my wife's birthday"), ("wool", "I am always cold"),
        ("honey", "My throat hurts"), ("apples", "I want to bake a pie"), ("fish", "My cat is hungry"),
    ], 2)
    a, b = Who(s.rng, "fisherman", False), Who(s.rng, "farmer", False)
    if s.maybe():
        a, b = Who(s.rng, "old woman", True), Who(s.rng, "miller", False)
        wants = [w if "wife" not in w[1] else ("flowers", "My table looks so empty") for w in wants]
    (w1, why1), (w2, why2) = wants
    s.say("{when}, {h} needed a {g} to {p}. {h.He} went to {a}. \"[May I have your {g}|Will you lend me your "
          "{g}]?\" {h.he} asked.", when=s.when(), g=goal, p=purpose, a=a)
    s.say('"[Gladly|Yes], if you bring me some {w}," said {a}. "{y}."', a=a, w=w1, y=why1)
    s.say("So {h} went to {b} and asked for some {w}. \"[I have plenty|There is enough here],\" said {b}, \"but "
          "first bring me some {v}. {y}.\"", b=b, w=w1, v=w2, y=why2)
    s.para()
    place, deed = {
        "bread": ("home", "asked {h.his} family for a loaf"), "flowers": ("to the meadow", "picked a big bunch"),
        "wool": ("to the sheep", "combed them until the bag was full"),
        "honey": ("to the bees", "asked them politely, and they gave {h.him} a pot of it"),
        "apples": ("to the old apple tree", "picked as many as {h.he} could carry"),
        "fish": ("to the river", "sat there with a line until evening"),
    }[w2]
    s.say("So {h} went {place} and {deed}.", place=place, deed=s.word(deed))
    s.say("{h.He} brought the {v} to {b}, and {b} gave {h.him} the {w}. {h.He} brought the {w} to {a}, and {a} gave "
          "{h.him} the {g}.", a=a, b=b, v=w2, w=w1, g=goal)
    s.say("Now {h} could {p}. [Everyone was content|And all three were happy].", p=purpose)
    s.ending("{h} had learned that [one good turn leads to another|patience opens every door].")


def plot_fallen(s):
    """Something from the sky has fallen down and must go up again before morning."""
    s.hero()
    star = Who(s.rng, s.pick(["star", "cloud", "moonbeam"]), s.maybe())
    s.para()
    s.say("One night, {h} saw something [bright|white|shining] fall from the sky. {h.He} ran out and found a little "
          "{k} [in the grass|under a bush|on the hill].", k=star.kind)
    s.say('"[I fell down|I danced too wildly and fell]," said the little {k} and cried. "[I want to go home|If I do '
          'not get home before morning, I will fade away]."', k=star.kind)
    s.say('"[Do not cry|Do not be afraid], I will bring you home," said {h}.')
    s.scene(0.2)
    s.say(s.pick(["First {h} climbed the highest tree and held up the {k}, but it was not high enough.",
                  "First {h} threw the {k} up as high as {h.he} could, but it fell down again."]), k=star.kind)
    f = with_article(s.beast(["owl", "swan", "crow", "goose"]))
    s.para()
    s.say("Then {f.a} came [flying by|along]. \"[You must help us|Please help us]!\" [called|cried] {h}. \"The "
          "little {k} must go back to the sky.\"", f=f, k=star.kind)
    s.say('"[Sit on my back|I will carry it up]," said {f}. And {f.he} flew up, higher and higher, until {f.he} '
          '[was only a small point|touched the sky].', f=f)
    s.say("[The other stars shone brightly|All the sky began to shine], and the little {k} was home again.",
          k=star.kind)
    s.say("Every night after that, the little {k} [looked down and waved|sent a soft light] to {h}.", k=star.kind)
    s.ending("And {h} was never afraid of the dark again.")


def plot_snowman(s):
    """A snowman in a short winter: a friend who must leave, and comes back."""
    h = s.hero(sibling=True, human=True)
    s.friend(h)
    s.para()
    s.say("One winter [day|morning], everything was white with snow. {h} and {f.intro} [made|built] a big snowman. "
          "They gave him {a} for a nose and {b} for a hat.", a=s.pick(["a carrot", "a pine cone", "a red apple"]),
          b=s.pick(["an old pot", "a basket", "a bucket"]))
    s.say("\"[Good morning|Hello]!\" said the snowman suddenly. \"[Thank you for the fine nose|What a fine hat I "
          "have]!\" {h} and {f} could not believe their ears.")
    s.say("[Every day|All winter long], they played with the snowman. He [told them stories of the north|showed "
          "them how to slide down the hill|danced with them under the moon].")
    s.para()
    s.say("But then the sun became warmer. The snowman grew [smaller and smaller|thin and weak]. \"[I must go "
          "now|Spring is coming, and I must leave],\" he said.")
    s.say('"[Please stay|Do not go]!" cried {h}. [Tears ran down {h.his} cheeks|{h.He} was very sad].')
    s.say('"[Do not be sad|Do not cry]," said the snowman. "[I will become water and then a cloud|When the first '
          'snow falls, I will come back]. Keep my hat for me."')
    s.say("One morning, only the hat was left. {h} [kept it under {h.his} bed|took it home] and waited.")
    s.say("Then winter came again, and the first snow fell. {h} and {f} [ran out|made a new snowman] and put the "
          "hat on his head. \"Here I am again,\" said the snowman.")
    s.happy(h, 0.6)
    s.ending("{h} [knew now|had learned] that good friends always come back.")


def plot_gift(s):
    """No money for a present; what one can make or do oneself is worth more."""
    h = s.hero(sibling=True)
    g = s.relative(h)
    s.para()
    s.say("It was [almost|soon] {g}'s birthday, but {h} had no money for a gift. [In the shop window there was a "
          "{x}|{h} looked at a {x} in the market], but it cost ten coins.", g=g,
          x=s.pick(["golden comb", "warm shawl", "silver cup", "fine hat"]))
    wonder = '"[What can I give|How can I make {g.him} happy]?" {h} [thought|asked {h.himself}].'
    s.say(wonder if s.maybe() else "{h} was sad and thought about it all day.", g=g)
    s.friend(h)
    s.say('"The best gifts cannot be bought," said {f.intro}. "[Make something|Think of what {k} likes]."', k=g.he)
    s.para()
    made, how, said = s.pick([
        ("a picture of their home", "painted for three days, until there was paint on {h.his} nose",
         "It is more beautiful than any picture in the king's castle"),
        ("a song", "practiced it quietly every evening behind the house",
         "Nobody has ever sung for me so beautifully"),
        ("a little wooden bird", "worked on it until {h.his} fingers hurt", "It looks as if it could fly away"),
        ("a crown of flowers", "got up before the sun and picked the freshest flowers",
         "Now I feel like a queen" if g.female else "Now I feel like a king"),
        ("a warm scarf", "learned to knit and worked on it every night", "Now I will never be cold again"),
        ("a box full of shells", "walked along the water all day and looked for the prettiest ones",
         "I can hear the sea in them"),
    ])
    s.say("So {h} made {m}. {h.He} {how}.", m=made, how=s.word(how))
    s.say("On the birthday, {h}'s heart beat fast. \"[This is for you|I made this for you],\" {h.he} said. \"[I had "
          "no money|It cost nothing], but it [comes from my heart|is made with love].\"")
    s.say('{g} had tears in {g.his} eyes. "{said}," {g.he} said and [hugged|kissed] {h.him}.', g=g, said=said)
    s.ending("{h} had learned that [the best gifts come from the heart|love is worth more than gold].")


def plot_laugh(s):
    """A king's child who cannot laugh; many try; a small honest accident does it."""
    s.hero(human=True)
    royal = Who(s.rng, *s.pick([("princess", True), ("prince", False), ("queen", True), ("king", False)]))
    s.say("In the castle lived a {k} who [could not laugh|was always sad].", k=royal.kind)
    s.para()
    s.say('"[Whoever makes the {k} laugh|The one who makes the {k} laugh] shall have [a bag of gold|a fine '
          'horse|one wish]," [it was said|said the people of the castle].', k=royal.kind)
    s.say("Many came. [A clown|A man with a bear|A singer] came and a man who could [stand on his head|eat "
          "fire|walk on his hands], but the {k} only [sighed|looked out of the window].", k=royal.kind)
    s.say("{h} came, too, [with|and brought] {x}. {h.He} wanted to [tell a funny story|sing a merry song].",
          x=s.pick(["a basket of eggs", "three geese", "a little pig", "a big cake"]))
    s.para()
    s.say(s.pick(["But {h.he} slipped on the smooth floor and [slid through the whole hall|slid right up to the "
                  "throne].",
                  "But {h.he} bowed so deeply that {h.he} fell over and [rolled|tumbled] down the stairs.",
                  "But a fly sat on {h.his} nose, and {h.he} [sneezed so hard that all the candles went out|made "
                  "such a funny face that even the guards smiled]."]))
    s.say("First it was quiet. Then the {k} began to [smile|giggle], and then {r.he} laughed and laughed[ until "
          "tears ran down {r.his} cheeks|]. The whole castle laughed, too.", k=royal.kind, r=royal)
    s.say('"[That was the funniest thing I have ever seen|I feel so light now]," said the {k}. "What do you wish '
          'for?"', k=royal.kind)
    wish, done = s.pick([
        ("I would like to come back and play with you", "From then on, {h} came to the castle every week"),
        ("Please give bread to all the poor people", "The very next day, there was bread for everyone"),
        ("I would like a cow, so that my family has milk", "And {h} went home with the finest cow in the land"),
    ])
    s.say('"{w}," said {h}. {d}.', w=wish, d=s.word(done))
    s.ending("And the {k} was never sad for long again.", k=royal.kind)


def plot_school(s):
    """A first day somewhere new: worry, a kind gesture, and the evening's report."""
    h = s.hero()
    where, fear, joy = s.pick([
        ("at school", "the others will laugh at me", "learned to write {h.his} own name"),
        ("at the singing class", "my voice is too small", "sang louder than {h.he} had ever sung"),
        ("at the swimming lesson", "the water is too cold", "could float on {h.his} back"),
        ("with the baker", "I will burn the bread", "made a round loaf all alone"),
    ])
    g = s.relative(h)
    s.para()
    s.say("It was {h}'s first day {w}.", w=where)
    s.say('"I do not want to go," {h} said to {g}. "I think that {fear}."', g=g, fear=fear)
    s.say('{g} [knelt down|took {h.his} hand]. "[Everyone is afraid on the first day|You only have to be '
          'yourself]," {g.he} said. "[Take this little stone. When you hold it, think of me|Put my kiss into your '
          'pocket]."', g=g)
    s.para()
    f = s.friend(h)
    f.known = True
    s.say("[At first|In the beginning], {h} stood [alone in a corner|near the door]. Then {k} named {f} came and "
          "said, \"[Are you new, too|Is this your first day]? [Stand next to me|Come with me].\"", k=f"a {f.kind}")
    s.say("Together it was [much easier|not so bad]. {h} {joy}.", joy=s.word(joy))
    s.some(0.5, "{f} [laughed, but it was a friendly laugh|showed {h.him} everything].")
    s.para()
    s.say("In the evening, {g} asked, \"How was it?\" \"[It was wonderful|It was so much fun],\" said {h}. \"[I "
          "have a new friend|I want to go again]!\"", g=g)
    s.ending("{h} had learned that [the first step is the hardest|new things are only new once].")


def plot_boat(s):
    """A trip on the water, a hole or a wave, a rescue."""
    h = s.hero(sibling=True)
    f = s.friend(h)
    s.para()
    s.say("{when}, {h} and {f.intro} [found an old boat|climbed into a little boat] [by the river|on the beach|at "
          "the lake]. They wanted to [see|sail to] the small island.", when=s.when())
    s.scene()
    s.say("At first everything went well. {h} [rowed|held the sail], and {f} [sang|looked for fish].")
    bad, cure = s.pick([
        ("there was a hole in the boat, and water came in",
         "stuffed {h.his} {x} into the hole, and {f} scooped out the water with a {y}"),
        ("a big wave came, and {f} fell into the water",
         "threw {f.him} the end of a rope and pulled with all {h.his} strength"),
        ("the wind grew strong and carried them far out",
         "tied {h.his} {x} to a stick and waved it as high as {h.he} could"),
        ("the boat ran onto a rock and stuck fast",
         "jumped into the shallow water and pushed until the boat was free"),
    ])
    s.say("But suddenly, {bad}. \"[Help|Oh no|Look out]!\" [cried|shouted] {f}.", bad=s.word(bad))
    s.say("{h} [thought quickly|did not lose a moment]. {h.He} {cure}.",
          cure=s.word(cure, x=s.pick(["scarf", "coat", "shirt"]), y=s.pick(["pot", "cup", "shoe"])))
    s.para()
    if "wind" in bad:
        s.say("A fisherman saw it and [came to help|brought them home]. \"[That was clever|You were lucky],\" he "
              "said.")
    else:
        s.say("[Wet and tired|Tired but happy], they reached the [shore|island]. \"[You saved us|That was close], "
              "{h}!\" said {f}.")
    s.say("They [made a fire|sat in the sun] and dried their clothes. \"[Next time we will look at the boat "
          "first|Next time we will ask a grown-up],\" said {h}." if s.cast["h"].human else "They sat in the sun "
          "until they were dry. \"Next time we will look at the boat first,\" said {h}.")
    s.happy(f, 0.4)
    s.ending("Since that day, {h} and {f} [knew that they could count on each other|were closer than ever].")


def plot_trick(s):
    """Somebody sly wants to eat or cheat; the small one answers with wit."""
    h = s.hero(human=False)
    if h.kind in ("fox", "bear", "cat", "dog"):                  # no prey
        return plot_share(s)
    w = Who(s.rng, s.pick(["wolf", "fox"]), False)
    with_article(w)
    s.para()
    s.say("{when}, {h} met a [hungry|sly] {k} [on the road|in the forest|at the edge of the field]. \"[Good day, my "
          "little {q}|What luck]! [I am going to eat you|You will be my supper],\" said {w}.", when=s.when(),
          k=w.kind, w=w, q=h.kind)
    s.say("{h} was [afraid|frightened], but {h.he} [did not show it|thought quickly].")
    trick, end = s.pick([
        ("I am so thin. Wait until autumn, then I will be fat and round",
         '"That is true," said {w} and let {h.him} go. But in autumn, {h} stayed at home behind a strong door'),
        ("Before you eat me, please sing a song for me. They say that you have the finest voice",
         "{w} closed his eyes and howled. The dogs of the village heard it and chased him away"),
        ("There is a much bigger cheese down in the well. Look, how round and yellow it is",
         "{w} looked down, saw the moon in the water, and jumped in. And {h} ran away"),
        ("My big brother is coming behind me. He is ten times as fat as I am",
         "So {w} waited for the brother, and waited, and waited. And {h} was home long before he understood"),
        ("You may eat me if you can guess what I have in my bag. You have three tries",
         "{w} guessed nuts, apples, and stones. All wrong! The bag was empty, and he had to keep his word"),
    ])
    s.say('"[Dear {k}|Listen]," said {h}, "{t}."', k=w.kind,
          t=trick[0].lower() + trick[1:] if not trick.startswith("I ") else trick)
    s.say("{e}.", e=s.word(end, w=w)[0].upper() + s.word(end, w=w)[1:])
    s.para()
    g = s.relative(h)
    s.say("At home, {h} told {g} [everything|what had happened]. {g} [laughed until {g.his} sides hurt|was proud of "
          "{h.him}].", g=g)
    s.say('"[A clever head is better than sharp teeth|You are small, but you are clever]," said {g}.', g=g)
    s.ending("And the {k} never came back.", k=w.kind)


def plot_collect(s):
    """Three things must be brought together to make a fourth."""
    h = s.hero(sibling=True)
    s.para()
    made, purpose, needs, how, end = s.pick(MAKES)
    needs = s.rng.sample(needs, 3)
    s.say("{when}, {h} wanted to make {m} for {p}. For that, {h.he} needed {a}, {b}, and {c}.", when=s.when(), m=made,
          p=purpose, a=needs[0], b=needs[1], c=needs[2])
    s.scene(0.25)
    hard = s.rng.randrange(3)                                      # one of the three is not easy to get
    owner = s.elder()
    for i, need in enumerate(needs):
        thing = need.split(" ", 1)[1]
        many = thing in ("berries", "flowers", "nuts", "pine cones")
        first = ["First, {h.he} looked for {n}.", "Then {h.he} went to look for {n}.",
                 "[Last of all|At last], {h.he} needed {n}."][i]
        s.say(first, n=need)
        if i != hard:
            s.say("{h.He} {how}[ and put {it} into {h.his} bag|].", how=SOURCES[need], it="them" if many else "it")
            continue
        s.say("But {h.he} could not find {any} anywhere.", any="any" if need.startswith("some") else "one")
        s.some(0.5, '"[What now|What shall I do without {n}]?" [said|asked] {h}.', n=need)
        s.say(s.pick(["{o.a} saw {h.him} and said, \"[I have what you need|Take mine]. But [please help me "
                      "first|first help me] to {job}.\" {h} did it gladly and got {n}.",
                      "Then {h.he} met {o.a}. \"I will give you {n},\" said {o}, \"if you help me to {job}.\" [So "
                      "{h} helped|{h} helped gladly] and got {n}."]), o=with_article(owner), n=need,
              job=s.pick(["carry the wood", "feed the hens", "sweep the yard", "find my glasses",
                          "bring water from the well", "catch the goat"]))
    s.para()
    s.say("Now {h} had everything. {h.He} {how}, and {time} the {m} was ready.", how=how,
          time=s.word("[soon|by evening|at last]"), m=made[2:])
    s.say("And what a fine {m} it was: {end}!", m=made[2:], end=end)
    if "f" in s.cast:
        s.say('"[How did you do that|That is wonderful]!" said {f.intro}. "[One thing after the other|I will show '
              'you how]," said {h}.')
    s.happy(h, 0.5)
    s.ending("{h} had learned that [one gets far with patience|great things are made of small things].")


def plot_day(s):
    """A walk through one day; in the evening it is told again, in the same order."""
    h = s.hero()
    g = s.relative(h)
    s.para()
    s.say("{when}, {h} wanted to see [what the world was like|where the river came from|what was behind the hill]. "
          "{h.He} said goodbye to {g} and set out.",
          when=s.word("[Early one morning|One morning|One day|Early one Sunday morning]"), g=g)
    told, bag = [], None
    beasts = ["turtle", "swan", "crow", "mole", "snail", "horse", "goose", "deer"]
    events = s.rng.sample(["find", "animal", "rain", "eat", "stones", "song", "help"], s.rng.randint(2, 3))
    times = ["In the morning", "At noon", "In the afternoon"] if len(events) == 3 else ["First", "Then"]
    for when, event in zip(times, events):
        if event == "find":
            bag = s.pick(["a white feather", "a round stone", "a silver button", "a big shell", "a golden leaf",
                          "a small bell"])
            s.say("{t}, {h.he} found {x} {p} and put it into {h.his} bag.", t=when, x=bag, p=s.pick(OUTDOORS)[0])
            told.append(f"I found {bag}")
        elif event == "animal":
            b = with_article(s.beast(beasts))
            did = s.pick(["sleeping in the sun", "looking for food", "singing a song", "building a house",
                          "taking a bath"])
            s.say("{t}, {h.he} met {b.a} who was {d}. \"Good day,\" said {h}. \"Good day to you, too,\" said {b}.",
                  t=when, b=b, d=did)
            told.append(f"I met {b.a}")
        elif event == "rain":
            s.say("{t}, it began to rain. {h} [sat|waited] under [a big tree|a bush|a bridge] until it stopped. "
                  "Then there was a rainbow.", t=when)
            told.append("I saw a rainbow")
        elif event == "eat":
            food = s.pick(["sweet berries", "red apples", "ripe pears", "yellow plums"])
            s.say("{t}, {h.he} was hungry. {h.He} came to a garden with {f}. \"Take as many as you like,\" said the "
                  "[gardener|old gardener].", t=when, f=food)
            told.append(f"I ate {food}")
        elif event == "stones":
            x = s.pick(["a tower of stones", "a little dam", "a castle of sand", "a boat of leaves"])
            s.say("{t}, {h.he} [sat down|stopped] {p} and built {x}.", t=when,
                  p=s.pick(["by the river", "on the beach", "by the lake"]), x=x)
            told.append(f"I built {x}")
        elif event == "song":
            b = with_article(s.beast(["blackbird", "sparrow", "lark"]))
            s.say("{t}, {b.a} was singing on a branch. {h} listened until {h.he} knew the song by heart.", t=when,
                  b=b)
            told.append(f"I learned the song of {b.a}")
        else:
            o = with_article(s.elder())
            s.say("{t}, {h.he} saw {o.a} with a heavy bag. {h} [carried it for {o.him}|helped {o.him} to carry it] "
                  "all the way [to the village|home].", t=when, o=o)
            told.append(f"I helped {o.a}")
    s.para()
    s.say("In the evening, {h} came home. \"[What did you see|How was your day]?\" asked {g}.", g=g)
    s.say('"{list}," said {h}.',
          list=told[0] + (", then " + told[1] if len(told) == 3 else "") + ", and then " + told[-1])
    if bag:
        s.say("And {h.he} [gave {g} {x}|put {x} into {g}'s hand]. {g} [smiled|was very happy].", g=g,
              x="the" + bag[1:])
    s.some(0.6,
           '"[The world is big|The world is beautiful], but [home is the best place of all|it is good to be home '
           'again]," {h} [said|added].')
    s.ending()


# How often each plot is told.
PLOTS = {
    plot_lost: 12, plot_friend: 8, plot_animal: 8, plot_storm: 6, plot_bake: 7, plot_fear: 6, plot_share: 6,
    plot_journey: 9, plot_honest: 6, plot_garden: 6, plot_magic: 5, plot_skill: 6, plot_race: 6, plot_monster: 6,
    plot_ill: 7, plot_winter: 4, plot_secret: 6, plot_wayhome: 6, plot_build: 6, plot_star: 3, plot_chain: 5,
    plot_fallen: 5, plot_snowman: 4, plot_gift: 6, plot_laugh: 5, plot_school: 5, plot_boat: 6, plot_trick: 6,
    plot_collect: 9, plot_day: 9,
}


# What may happen before or after something else: nothing that needs the hero to be lonely or alone.
SECOND = [plot_lost, plot_storm, plot_bake, plot_share, plot_honest, plot_garden, plot_secret, plot_build, plot_star,
          plot_collect, plot_chain, plot_fallen, plot_gift, plot_boat]


def tell(seed, number):
    """Story `number` of the world `seed`: its text, paragraphs separated by one newline."""
    rng = random.Random(seed * 1_000_003 + number)
    story = Story(rng)
    plot = rng.choices(list(PLOTS), weights=list(PLOTS.values()))[0]
    if plot in SECOND and rng.random() < 0.25:                   # a longer story: two things happen
        second = rng.choice([p for p in SECOND if p is not plot])
        story.more = True
        plot(story)
        story.para()
        plot = second
    plot(story)
    if rng.random() < 0.15:
        story.in_medias_res()
    return story.text()


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--count", type=int, default=3)
    ap.add_argument("--plot", help="only this plot, e.g. lost (for reading proofs)")
    args = ap.parse_args()
    for n in range(args.count):
        if args.plot:
            story = Story(random.Random(args.seed * 1_000_003 + n))
            globals()["plot_" + args.plot](story)
            print(story.text(), end="\n\n")
        else:
            print(tell(args.seed, n), end="\n\n")


if __name__ == "__main__":
    main()
