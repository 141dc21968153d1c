"""The vocabulary of the story world: names, places, things, helpers and what they can do.

Kept small on purpose: a model of a million parameters learns a word only if it meets it often.
Texts are templates as world.py explains them: `[a|b]` is a choice, `{h.he}` a field of a character.
"""

GIRLS = ("Lily Anna Mia Rose Ella Molly Sara Nora Emma Lucy Clara Ivy Daisy Grace Hanna Ruth Amy "
         "Kate Jane May Sophie Maria Helen Julia Alice Betty Nina Eva Mary Susan Zoe Laura").split()
BOYS = ("Tom Ben Max Sam Jack Leo Peter Finn Oscar Henry Will Noah Paul George Adam Hugo Theo Luke "
        "Fred Otto John Jim Charlie David Eric Simon Martin Billy Robin Daniel Mark Tim").split()
SHE_BEASTS = "Hazel Clover Poppy Bella Willow Dot Pearl Olive Tilly Ruby Honey Misty Flora Fern".split()
HE_BEASTS = "Pip Bramble Rusty Teddy Benny Milo Toby Moss Jasper Barney Bruno Felix Oliver Nico".split()

BEASTS = ("rabbit fox bear mouse hedgehog squirrel cat badger frog duck dog pony lamb turtle owl pig goat "
          "donkey").split()

CHILD_HOMES = ["in a small house by the sea", "in a little village near the forest", "in an old mill by the river",
               "in a white house on the hill", "on a farm at the edge of the forest",
               "in a small town in the mountains", "in a cottage with a red roof",
               "in a little house beside the lake", "in a quiet valley", "in a cozy cabin in the woods",
               "in a house with a green door", "on a small island", "in an old town by the river",
               "in a lighthouse by the sea", "at the foot of a high mountain", "at the end of a long street",
               "in a windmill on the plain"]
CASTLES = ["in a castle on a hill", "in a big castle with a hundred rooms", "in a white castle by the sea",
           "in an old castle"]
BEAST_HOMES = ["in a hollow tree in the forest", "in a warm hole under an old oak",
               "in a little house beside the pond", "in a green meadow near the river",
               "in a quiet garden behind the farm", "in a cozy nest of leaves in the woods",
               "in a small cave on the hill", "in an old barn at the edge of the field", "in a hole near the brook",
               "in a thick hedge by the road", "on an old farm", "behind a waterfall", "in a forest full of birds"]

# Trait -> how people notice it.
TRAITS = {
    "kind": "{h.He} always [had a good word for|shared with|helped] [everyone|the others].",
    "clever": "{h.He} [always had a new idea|liked to think about everything|asked many questions every day].",
    "brave": "{h.He} was not afraid of [many things|much].",
    "shy": "{h.He} did not [say much|talk much], but {h.he} [saw everything|listened well].",
    "curious": "{h.He} wanted to know [everything|how everything worked|what was behind every door].",
    "cheerful": "{h.He} [sang|laughed|smiled] [all day long|from morning until night].",
    "quiet": "{h.He} liked to [sit and watch the clouds|listen to the birds|look at the stars].",
    "gentle": "{h.He} [was always careful with small animals|never hurt anyone].",
    "patient": "{h.He} [never hurried|always took {h.his} time].",
    "lively": "{h.He} [could not sit still for a minute|ran and jumped all day].",
}
LOVES = ["to play in the garden", "to paint pictures", "to sing songs", "to pick flowers", "to climb trees",
         "to listen to old stories", "to walk along the river", "to look at the stars", "to collect round stones",
         "to dance in the rain", "to watch the birds", "to read books", "to build little boats", "to ask questions",
         "to help in the garden", "to make music", "to play hide and seek", "to swim in the lake",
         "to bake with {h.his} family", "to look for shells", "to run through the fields", "to draw animals",
         "to tell jokes", "to watch the clouds", "to dream by the window"]
COLORS = "red blue green yellow white silver golden brown".split()
# Dear thing -> how it is used.
TREASURES = {
    "ball": "played with", "kite": "flew", "scarf": "wore", "ring": "wore", "bell": "rang", "hat": "wore",
    "flute": "played", "doll": "played with", "key": "carried", "book": "read", "lantern": "carried",
    "ribbon": "wore", "drum": "played", "toy boat": "played with", "coat": "wore", "button": "looked at",
    "whistle": "blew", "umbrella": "carried", "blanket": "slept under", "cup": "drank from", "necklace": "wore",
    "spoon": "ate with", "picture book": "looked at", "cap": "wore", "belt": "wore", "bag": "carried",
    "pencil": "drew with", "pillow": "slept on", "basket": "carried", "mitten": "wore", "wooden horse": "played with",
}
GIFTS = ["a piece of bread", "a ripe apple", "some berries", "a piece of cheese", "a little cake",
         "a handful of nuts"]

# Where one is, where one goes.
OUTDOORS = [("in the garden", "to the garden"), ("in the forest", "into the forest"),
            ("by the river", "to the river"), ("on the hill", "up the hill"), ("in the meadow", "to the meadow"),
            ("by the pond", "to the pond"), ("near the old mill", "to the old mill"),
            ("in the market", "to the market"), ("on the beach", "to the beach"),
            ("near the bridge", "to the bridge"), ("in the field", "to the field"),
            ("under the big oak", "to the big oak"),
            ("on the playground", "to the playground"), ("by the brook", "to the brook"),
            ("at the edge of the woods", "to the edge of the woods"), ("near the well", "to the well"),
            ("in the orchard", "into the orchard"), ("on the old wall", "to the old wall"),
            ("behind the barn", "behind the barn"), ("in the park", "to the park")]
INDOORS = ["under the bed", "behind the door", "in the kitchen", "under the table", "in the old box",
           "behind the chair", "on the shelf"]

WHEN = ["One day", "One morning", "Then, one day", "One Sunday",
        "On a [sunny|warm|bright|windy|cool|fine] [day|morning|afternoon]",
        "On a [Monday|Tuesday|Wednesday|Thursday|Friday|Saturday] [morning|afternoon][ in [spring|summer|autumn]|]",
        "One [sunny|warm|bright|windy|cool|fine] [day|morning|afternoon]",
        "One [spring|summer|autumn] [day|morning]", "Early one morning", "One afternoon"]

# Word -> is female.
FAMILY = {
    "mother": True, "father": False, "grandmother": True, "grandfather": False, "aunt": True, "uncle": False,
}
ELDERS = [("old woman", True), ("old man", False), ("baker", False), ("farmer", False), ("miller", False),
          ("fisherman", False), ("teacher", True), ("shepherd", False)]

OPENINGS = [
    "Once upon a time, there was a {adj} {h.kind} named {h}. {h.He} lived {home}.",
    "Once upon a time, there was a {adj} {h.kind} [named|called] {h} who lived {home}.",
    "Once upon a time, {home}, there lived a {adj} {h.kind} [named|called] {h}.",
    "Once upon a time, a {adj} {h.kind} [named|called] {h} lived {home}.",
    "Once upon a time, there lived a {adj} {h.kind} {home}. {h.His} name was {h}.",
    "Once there was a {adj} {h.kind} whose name was {h}. {h.He} lived {home}.",
    "There once was a {adj} {h.kind} [named|called] {h} who lived {home}.",
    "Long ago, a {adj} {h.kind} named {h} lived {home}.",
    "{home} lived a {adj} {h.kind} [named|called] {h}.",
    "{h} was a {adj} {h.kind} who lived {home}.",
    "This is the story of a {adj} {h.kind} named {h}, who lived {home}.",
    "Many years ago, {home}, there lived a {adj} {h.kind} named {h}.",
    "A {adj} {h.kind} named {h} lived {home}. Everyone there knew {h.him}.",
    "Do you know the story of {h}? {h.He} was a {adj} {h.kind} who lived {home}.",
    "Everyone knew {h}, the {adj} {h.kind} who lived {home}.",
    "[Not long ago|Far away], {home}, lived a {adj} {h.kind} named {h}.",
    "The sun rose, and a {adj} {h.kind} named {h} woke up. {h.He} lived {home}.",
    "The {adj} {h.kind} was called {h}. {h.He} lived {home}.",
    "There was a {adj} {h.kind} named {h}. {h.He} lived {home}.",
    "Little {h} was a {h.kind} who lived {home}.",
    "There was once a {adj} {h.kind} who lived {home}. People called {h.him} {h}.",
]

SIBLINGS = [
    "Once upon a time, there were a {h.kind} named {h} and {f.tie} {f}. They lived {home}.",
    "Once upon a time, a brother and a sister lived {home}. Their names were {h} and {f}.",
    "{h} and {f} were brother and sister. They lived {home} and [did everything together|were never apart].",
    "Once there were two children, {h} and {f}, who lived {home}.",
]

# ---------------------------------------- helpers, obstacles, things to make

# Ability -> who has it.
CAN = {
    "fly": ["crow", "sparrow", "owl", "magpie", "pigeon"],
    "swim": ["otter", "swan", "turtle", "beaver"],
    "dig": ["mole", "badger", "rabbit"],
    "pull": ["horse", "ox", "bear"],
    "bite": ["mouse", "goat"],
    "shine": ["firefly"],
    "smell": ["dog", "fox"],
}

# What is wrong with the animal (any animal), how the hero helps.
TROUBLES = [
    ("It was {b.a} who [was very hungry|had not eaten for days]. \"Please, give me something to eat,\" said {b}.",
     "{h.ref} gave {b.him} {gift}. {b.He} ate it all up."),
    ("It was {b.a} [with a thorn in {b.his} foot|whose foot was caught in an old net|who was caught in a bush].",
     "{h.ref} [bent down and|went closer and] [carefully|gently] set {b.him} free."),
    ("It was {b.a} who was [cold and wet|shaking with cold].",
     "{h.ref} [wrapped {b.him} in a warm cloth|dried {b.him} and kept {b.him} warm]."),
    ("It was {b.a} whose [leg|foot] was [hurt|stuck between two stones].",
     "{h.ref} [knelt down and|came closer and] helped {b.him} until {b.he} could stand again."),
]

# Ability -> what stops the hero, what the helper does, which helpers if not all.
OBSTACLES = {
    "swim": [("But the way led across a [wide|deep] river, and there was no bridge.",
              "{b} [pulled a little boat|pushed a big log] through the water, and so {h} came safely to the other "
              "side."),
             ("Then {h} came to a lake. [There was no boat|There was no way around it].",
              "{b} took {h} on {b.his} back and swam across.", ("swan", "turtle"))],
    "fly": [("But soon a thick [white|grey] fog came down, and {h} could not see the way.",
             "{b} flew high above the fog, saw the way, and [called down to {h}|led {h} through]."),
            ("But the road split into three, and {h} did not know which way was right.",
             "{b} flew up over the trees and looked around. \"It is the [left|right|middle] one,\" {b.he} called.")],
    "dig": [("But the [gate|path] was [closed|blocked] by a high stone wall.",
             "{b} dug a hole under the wall, and {h} crept through."),
            ("But {h} [slipped and fell|fell] into a deep pit and could not climb out.",
             "{b} dug and dug until there was a path up, and {h} could walk out.")],
    "pull": [("But a [big|heavy] tree had fallen across the road.",
              "{b} [pulled with all {b.his} strength|pushed as hard as {b.he} could], and the tree rolled away."),
             ("But {h} [sank|stepped] into deep mud and could not move.",
              "{b} held out {b.his} tail, {h} took hold of it, and {b} pulled {h.him} out.")],
    "bite": [("But a thick [hedge of thorns|net of ropes] stood in the way.",
              "{b} bit and bit with {b.his} [sharp|little] teeth until there was a hole, and {h} slipped through."),
             ("But suddenly {h}'s foot was caught in a [rope|trap of ropes].",
              "{b} bit through the rope, and {h} was free.")],
    "shine": [("But the path went into a [dark|deep] cave, and {h} could see nothing at all.",
               "{b} [shone like a tiny star|lit up the dark] and flew ahead, and {h} followed the light."),
              ("Then night came. There was no moon, and {h} could not see the path.",
               "{b} flew ahead and [shone|glowed] as brightly as {b.he} could, and {h} did not lose the way.")],
    "smell": [("But the path came to an end, and {h} was lost among the trees.",
               "{b} put {b.his} nose to the ground, smelled the right way, and ran ahead."),
              ("But the [wind|snow] had covered the path, and {h} did not know where to go.",
               "{b} [sniffed here and there|sniffed at the ground] and soon found the path again.")],
}

# Thing -> how one gets it without asking anybody.
SOURCES = {
    "a carrot": "pulled it out of the earth behind the house",
    "some berries": "picked them at the edge of the forest", "some salt": "found it in the kitchen",
    "an egg": "found it under the white hen", "some honey": "got it from the bees with a soft song",
    "a long feather": "found it in the grass", "some wool": "picked it from the bushes where the sheep had been",
    "some straw": "took it from the barn", "a straight stick": "found it under the big oak",
    "some moss": "found it in the forest", "a ribbon": "found it in an old box",
    "a flat stone": "found it by the river", "some paper": "took it from the shelf",
    "a big shell": "found it on the beach", "some pine cones": "found them under the trees",
    "some flowers": "picked them in the meadow", "a candle": "found it behind the door",
    "some nuts": "gathered them in the forest", "a piece of cloth": "cut it from an old coat",
}
# What is made, for what, from what, how, and what came of it.
MAKES = [("a kite", "the day of the great wind", ["some paper", "a straight stick", "a ribbon"],
          "tied everything together", "it rose up to the clouds"),
         ("a soft bed", "a kitten without a home", ["some straw", "some wool", "a piece of cloth"],
          "put one thing on top of the other", "the kitten slept in it at once"),
         ("a lantern", "the feast of lights", ["some paper", "a candle", "a straight stick"],
          "glued and tied until it was done", "it shone brighter than all the others"),
         ("a soup", "a sick neighbor", ["a carrot", "some salt", "some nuts"], "cooked everything in a big pot",
          "the neighbor ate three bowls and felt much better"),
         ("a crown", "the queen of the spring feast", ["some flowers", "a ribbon", "a long feather"],
          "wove them together", "it looked as if the whole meadow had come to the feast"),
         ("a house", "the hedgehog for the winter", ["some moss", "some straw", "a flat stone"],
          "built it in a quiet corner", "the hedgehog moved in that same night"),
         ("a cake", "the first day of spring", ["an egg", "some honey", "some berries"],
          "mixed everything and baked it", "nobody had ever eaten a better cake"),
         ("a picture", "the wall of the old woman", ["a big shell", "some pine cones", "some moss"],
          "laid them all on a board", "the old woman smiled whenever she looked at it")]
