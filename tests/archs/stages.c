/* Stages: which rows values belong to, what may be mixed, and which outputs a text has. */
#include "arch_test.h"
#include "ggl/internal/graph.h"
#include "test.h"

/* Parses and checks a text on made-up models; the message of the error, or "". */
static const char *fault_of(const char *body, ggl_error *err) {
    char text[4096];
    llm_arch *a;
    snprintf(text, sizeof text,
             "arch t\nlanguage 2\nn = .embedding_length\ntoken_embd [n, n_vocab]\n%s", body);
    *err = (ggl_error){0};
    ggl_status s = llm_arch_parse(&a, text, strlen(text), "t.arch", err);
    if (s == GGL_OK) {
        s = llm_arch_check(a, NULL, err);
        llm_arch_free(a);
    }
    return s == GGL_OK ? "" : err->msg;
}

typedef struct fault {
    const char *body, *want; /* "": there is none */
} fault;

static void check_faults(const fault *row, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ggl_error err;
        const char *got = fault_of(row[i].body, &err);
        if (!*row[i].want)
            CHECK_MSG(!*got, "%s: %s", row[i].body, got);
        else
            CHECK_MSG(strstr(got, row[i].want) != NULL, "%s: '%s', expected to hold '%s'",
                      row[i].body, got, row[i].want);
    }
}

#define STAGE                                                                                      \
    "stage s:\n  x = token_embd[token]\n  q = heads(x, 1)\n  x = x + attention(q, q, q)\n  "       \
    "return x\n"

TEST(rows) {
    static const fault rows[] = {
        {STAGE "embedding = s\n", ""},
        {STAGE "score = s[0]\n", ""},
        {STAGE "score = s[-1] * 2\n", ""},
        {STAGE "logits = linear(s, token_embd)\n", ""},
        {STAGE "score = mean_row(s, s[0])\n", ""},
        {STAGE "score = s[0] + s\n", "this mixes a value of row 0 with one of each row"},
        {STAGE "score = s[0] + s[-1]\n", "this mixes a value of row 0 with one of the last row"},
        {STAGE "score = rms(s[0], 0.1) * rms(s, 0.1)\n", "this mixes a value of row 0"},
        {STAGE "score = s[-2]\n", "-2"},
        {STAGE "embedding = x\n", "'x' has no value here"},
        {"stage s:\n  x = token_embd[token]\nembedding = s\n", "the stage 's' has no result"},
        {"stage s:\n  return 3\nembedding = s\n", "the stage 's' must return a value of each row"},
        {"stage s:\n  return token_embd[token]\nstage t:\n  return token_embd[token]\nembedding = "
         "t\n",
         "a descriptor has one stage of a text at most"},
        {"layer l < 2:\n  stage s:\n    return token_embd[token]\nembedding = s\n",
         "a stage is allowed only at top level"},
        {"s = 3\nstage s:\n  return token_embd[token]\nembedding = s\n", "'s' already has a value"},
        {"stage s:\n  z = token_embd[token]\n  return z\nlayer l < 2:\n  a = 1\nembedding = s * "
         "z\n",
         "'z' has no value here: names of the stage s end with it"},
        {"return token_embd[token]\n", "'return' is allowed only in a def, an op or a stage"},
        {STAGE "y = token_embd[token] + s\nlogits = linear(y, token_embd)\n",
         "this mixes a value of each token with one of each row of the stage"},
        {STAGE "y = token_embd[token]\nlogits = linear(y + s[0], token_embd)\n",
         "a row of a stage that tokens read"},
        {STAGE "y = token_embd[token]\nr = cache(heads(s, 1), heads(s, 1))\n"
               "logits = linear(y + flat(attend(heads(y, 1), r)), token_embd)\n",
         ""},
        {STAGE "prefix \"dec.\"\nw [n, n]\ny = linear(token_embd[token], w)\n"
               "r = cache(heads(s, 1), heads(s, 1))\n"
               "logits = linear(y + flat(attend(heads(y, 1), r)), token_embd)\n",
         ""},
        {STAGE "y = token_embd[token]\nr = cache(heads(s, 1), heads(s, 1))\n"
               "logits = linear(y + flat(attend(heads(y, 1), r, window = 3)), token_embd)\n",
         "a token has no place among the rows of the stage"},
        {STAGE "y = token_embd[token]\nz = linear(s, token_embd)[token]\n"
               "logits = linear(y * z, token_embd)\n",
         "this mixes a value of each row of the stage with one of each token"},
        {STAGE "z = s[0]\n"
               "embedding = flat(attend(heads(s, 1), cache(heads(z, 1), heads(z, 1))))\n",
         "the value belongs to row 0, but what is stored belongs to each row"},
        {"def run(x):\n  h = state(n)\n  h = h + x\n  return h\n"
         "stage s:\n  return run(token_embd[token])\n"
         "y = token_embd[token]\nr = cache(heads(s, 1), heads(s, 1))\n"
         "logits = linear(y + flat(attend(heads(y, 1), r)), token_embd)\n",
         "a stage whose rows tokens read cannot have a state"},
        {"stage s:\n  x = token_embd[token]\n  return x, x\nembedding = s\n",
         "a stage returns one value, but 2 are given"},
        {STAGE "embedding = s\ny = embedding * 2\nembedding = y\n",
         "the descriptor has no output: other lines read what has an output's name"},
        {STAGE "embedding = 3\n", "embedding must be a tensor"},
        {STAGE "embedding = token_embd\n", "embedding is a constant"},
        {STAGE "embedding = s\nscore = s[0]\nscore = score * 2\n", ""},
        {"x = token_embd[token]\nscore = rms(x, 0.1)\nlogits = linear(score, token_embd)\n", ""},
        {"x = token_embd[token]\n", "the descriptor has no output"},
    };
    check_faults(rows, sizeof rows / sizeof *rows);
}

#define NEAR(arguments)                                                                            \
    "m [n, 5]\nr [3]\nstage s:\n  x = token_embd[token]\n  q = heads(x, 1)\n  x = x * "            \
    "(sum(sum(m, 1)) + "                                                                           \
    "sum(r))\n  x = x + attention(q, q, q" arguments ")\n  return x\nembedding = s\n"

/* Rows of relative positions. */
TEST(relative) {
    static const struct {
        const char *body, *want;
    } rows[] = {
        {NEAR(", rel_k = m, rel_row = r"), ""},
        {NEAR(", rel_q = m, rel_row = iota(9) - 2"), ""},
        {NEAR(", rel_k = m, rel_q = reshape(m, n, 5, 1), rel_row = r"), ""},
        {NEAR(", rel_k = m"), "without rel_row, which says which row each distance has"},
        {NEAR(", rel_row = r"), "without rel_k or rel_q, whose rows it numbers"},
        {NEAR(", rel_k = m, rel_row = iota(4)"), "a constant of [2*m + 1] is needed"},
        {NEAR(", rel_k = m, rel_row = reshape(r, 3, 1)"), "a constant of [2*m + 1] is needed"},
        {NEAR(", rel_k = m, rel_row = x"), "a constant of [2*m + 1] is needed"},
        {NEAR(", rel_k = x, rel_row = r"), "with rel_k"},
        {NEAR(", rel_q = r, rel_row = r"), "with rel_q"},
        {NEAR(", rel_q = reshape(m, n / 2, 5, 2), rel_row = r"), "with rel_q"},
        {NEAR(", rel_k = m, rel_q = concat(m, m, dim = 1), rel_row = r"),
         "their numbers of rows differ"},
        {NEAR(", rel_k = repeat(reshape(iota(n), n, 1), n, 20000), rel_row = r"),
         "at most 16384 rows"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ggl_error err;
        const char *got = fault_of(rows[i].body, &err);
        if (!*rows[i].want)
            CHECK_MSG(!*got, "%s: %s", rows[i].body, got);
        else
            CHECK_MSG(strstr(got, rows[i].want) != NULL, "%s: '%s', expected to hold '%s'",
                      rows[i].body, got, rows[i].want);
    }
}

/* Stages that guess. */
#define MAIN "x = token_embd[token]\nlogits = linear(x, token_embd)\n"
#define AHEAD                                                                                      \
    "stage d over x(ahead = 1):\n  h = heads(x + token_embd[token], 1)\n  return x + "             \
    "attention(h, h, h)\n"
#define GUESS "guess = linear(d, token_embd)\n"

#define OVER  "input seen [6] from floats()\nstage a over seen:\n  return seen * 2\n"
#define PLAIN "logits = linear(token_embd[token], token_embd)\n"

TEST(over_rows) {
    static const fault rows[] = {
        {"input seen [6] from floats()\nstage a over seen:\n  return seen\nrows = a\n",
         "token_embd.weight is declared but does not reach"},
        {OVER "stage b over a(every = 3, from = 1):\n  w [6, n]\n  return linear(a, w)\n"
              "y = token_embd[token]\nr = cache(heads(b, 1), heads(b, 1))\n"
              "logits = linear(y + flat(attend(heads(y, 1), r)), token_embd)\n",
         ""},
        {OVER "stage b over a:\n  return around(a, -1, 3)\nr = cache(b, b)\n"
              "w [n, 6]\ny = linear(token_embd[token], w)\n"
              "z = linear(flat(attend(heads(y, 1), r)), w)\nlogits = linear(z, token_embd)\n",
         "error"},
        {"input seen [n] from floats()\nstage a over seen:\n  return seen * 2\n"
         "y = token_embd[token] + a\nlogits = linear(y, token_embd)\n",
         "this mixes a value of each token with one of each row of the stage"},
        {OVER "stage b over a:\n  return a + seen\n" PLAIN,
         "rows, which only a stage over them reads"},
        {OVER "stage b over a:\n  return around(seen, 0, 2)\n" PLAIN,
         "around(rows, first, k) needs the name that the stage is over"},
        {OVER "stage b over a:\n  return a * token\n" PLAIN, "a stage over rows has no token"},
        {OVER "stage b over a(every = 0):\n  return a\n" PLAIN, "'0' is 0; 1 to"},
        {OVER "stage b over a(from = -1025):\n  return a\n" PLAIN, "-1"},
        {OVER "stage b over a(count = -1):\n  return a\n" PLAIN, "-1"},
        {OVER "stage b over a(count = 2, count = 3):\n  return a\n" PLAIN,
         "each once, not 'count'"},
        {OVER "stage b over a(every = 2, every = 3):\n  return a\n" PLAIN,
         "each once, not 'every'"},
        {"input seen [6] from floats()\nstage b over seen(ahead = 1):\n  return seen\n" PLAIN,
         "'ahead' is for a value of each token; a stage over the rows of 'seen' has the options"},
        {OVER "stage b over a:\n  return a\nrows = a\n",
         "rows: these rows are for another stage; only those of the last stage can be an output"},
        {OVER "stage b over a(by = 2):\n  return a\n" PLAIN, "not 'by'"},
        {OVER "stage b over n:\n  return n\n" PLAIN,
         "a stage is over an input or a stage before it"},
        {"y = token_embd[token]\nstage b over y:\n  return y\n" PLAIN, "over y(ahead = 1)"},
        {"input seen [6] from fish()\n" PLAIN,
         "'layers(LIST)', 'floats()', 'sound(..)' or 'picture(..)' is expected here"},
        {"input seen [6] from floats(rows = 0)\n" PLAIN, "'0' is 0; 1 to"},
        {"input seen [6] from floats() + 1\n" PLAIN, "an input is from a call, such as floats()"},
        {"input seen [6] from floats(lines = 3)\n" PLAIN, "'lines'"},
        {"x = floats()\n" PLAIN, "this says how the rows of an input are prepared"},
        {"input seen [6] from sound(rate = 16000, window = 400, step = 160)\n" PLAIN, "seconds"},
        {"input seen [6] from sound(rate = 1000, window = 7, step = 10, seconds = 1)\n" PLAIN,
         "even numbers of samples, the transform not less than the window: 7 and 7"},
        {"input seen [6] from floats()\nstage a over seen:\n  return seen * seen.t\nrows = a\n",
         "only a row of an input from sound, or of a stage over it, has a number"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, fft = "
         "6)\n" PLAIN,
         "the transform not less than the window: 8 and 6"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, scale = "
         "\"mel\")\n" PLAIN,
         "one of \"slaney\", \"htk\" is expected: it is the string \"mel\""},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, log = "
         "2)\n" PLAIN,
         "one of \"ten\", \"e\", \"e_added\" is expected"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, level = "
         "\"\")\n" PLAIN,
         "one of \"largest\", \"bands\", \"none\" is expected"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, edges = "
         "\"end\")\n" PLAIN,
         "one of \"begin\", \"both\", \"zeros\" is expected"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, power = "
         "3)\n" PLAIN,
         "'3' is 3; 1 to 2"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, least = "
         "0)\n" PLAIN,
         "a sound's least power is above 0"},
        {"w [7]\ninput seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, taper "
         "= w)\n" PLAIN,
         "a taper must be a tensor of the file, [8], but is [7]"},
        {"input seen [6] from samples(rate = 1000)\n" PLAIN, "seconds"},
        {"input seen [6] from samples(rate = 0, seconds = 1)\n" PLAIN, "'0' is 0; 1 to"},
        {"input seen [2, 3] from samples(rate = 1000, seconds = 1)\n" PLAIN,
         "sound becomes rows of one dimension"},
        {"x = samples(rate = 1000, seconds = 1)\n" PLAIN,
         "this says how the rows of an input are prepared"},
        {OVER
         "stage b over a(block = 4, from = 1):\n  return a\nstage c over b:\n  return b\n" PLAIN,
         "rows in blocks have no 'from', 'count', 'windows' or 'ends'"},
        {OVER
         "stage b over a(block = 4, ends = 1):\n  return a\nstage c over b:\n  return b\n" PLAIN,
         "rows in blocks have no 'from', 'count', 'windows' or 'ends'"},
        {OVER "stage b over a(beyond = 2):\n  return a\n" PLAIN, "'2' is 2; 0 to 1"},
        {OVER "stage b over a(ends = 2):\n  return a\n" PLAIN, "'2' is 2; 0 to 1"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, after = "
         "-1)\n" PLAIN,
         "'-1' is -1; 0 to"},
        {OVER "stage b over a(block = 4):\n  return a\n" PLAIN,
         "the stage that tokens read has no blocks, whose last one may be filled"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 0.001)\n" PLAIN,
         "0.001 seconds of sound are 0.1"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, whole = "
         "2)\n" PLAIN,
         "'2' is 2; 0 to 1"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, begin = "
         "2)\n" PLAIN,
         "a text of less than 64 bytes is expected"},
        {"w [4, 6]\ninput seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, "
         "filters = w)\n" PLAIN,
         "filters must be a tensor of the file, [5, 6], but are [4, 6]"},
        {"w [5, 6]\nm [6, n]\ninput seen [6] from sound(rate = 1000, window = 8, step = 10, "
         "seconds = 1, "
         "filters = w)\nstage a over seen:\n  return seen * 2\ny = token_embd[token]\n"
         "r = cache(heads(linear(a, m), 1), heads(linear(a, m), 1))\n"
         "logits = linear(y + flat(attend(heads(y, 1), r)), token_embd)\n",
         ""},
        {"table [6, 9]\ninput seen [6] from floats(rows = 10)\nstage a over seen:\n"
         "  return seen + table[pos]\ny = token_embd[token]\n"
         "r = cache(heads(a, 1), heads(a, 1))\n"
         "logits = linear(y + flat(attend(heads(y, 1), r)), token_embd)\n",
         "10 positions, but"},
        {"input seen [2, 2, 2, 2] from floats()\n" PLAIN, "at most 3 dimensions"},
        {"input seen [2, 3] from layers([1])\n" PLAIN, "rows of layers have one dimension"},
        {OVER "input seen [7] from floats()\n" PLAIN, "'seen' already has a value"},
        {OVER "stage a over seen:\n  return seen\n" PLAIN, "'a' already has a value"},
        {STAGE OVER "embedding = s\n", "a descriptor has one stage of a text at most"},
        {OVER STAGE "embedding = s\n", "a descriptor has one stage of a text at most"},
        {"input seen [6] from floats()\n" PLAIN, "nothing reads 'seen'"},
        {"x = given(token_embd[token])\nlogits = linear(x, token_embd)\n", ""},
        {STAGE "embedding = given(s)\n", "given(x) stands for a row of each token"},
        {"x = given(token_embd[token], added = 1)\nlogits = linear(x, token_embd)\n", ""},
        {"x = given(token_embd[token], added = 1, together = 1)\nlogits = linear(x, token_embd)\n",
         "rows that are added to tokens see what these see: together = 0"},
        {"x = given(token_embd[token], added = 2)\nlogits = linear(x, token_embd)\n",
         "'2' is 2; 0 to 1"},
        {OVER "stage b over a(causal = 1):\n  return a\n" PLAIN,
         "a causal stage is one of an eye or ear, without 'asks' and 'windows'"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, unit = "
         "0)\n" PLAIN,
         "'0' is 0; 1 to"},
        {"input seen [6] from sound(rate = 1000, window = 8, step = 10, seconds = 1, lead = "
         "-1)\n" PLAIN,
         "'-1' is -1; 0 to"},
        {"x = given(3)\nlogits = linear(token_embd[token], token_embd)\n",
         "given(x) stands for a row"},
    };
    check_faults(rows, sizeof rows / sizeof *rows);
}

#define PICTURE "picture(patch = 2, mean = 0, std = 1, size = 4"
#define UNSIZED "picture(patch = 2, mean = 0, std = 1, fit = \"follow\", most = 100"
#define SEEN    "input seen [2, 2, 3] from tiles("

TEST(tiles) {
    static const fault rows[] = {
        {SEEN PICTURE "), by = \"fit\")\n" PLAIN, "tiles need `most` or a list of grids"},
        {SEEN PICTURE "), by = \"longest\")\n" PLAIN, "tiles need `most`"},
        {SEEN PICTURE "), by = \"most\")\n" PLAIN,
         "one of \"none\", \"fit\", \"longest\", \"shape\", \"ratio\", \"windows\" is "
         "expected: it is the string \"most\""},
        {SEEN PICTURE "), by = \"none\")\n" PLAIN, "nothing reads 'seen'"},
        {SEEN PICTURE "), by = \"fit\", most = 9)\n" PLAIN, "nothing reads 'seen'"},
        {SEEN PICTURE "), by = \"fit\", most = 257)\n" PLAIN, "at most 256 are possible"},
        {SEEN PICTURE "), by = \"longest\", most = 65)\n" PLAIN, "1 to 289 tiles"},
        {SEEN PICTURE "), by = \"fit\", least = 5, most = 4)\n" PLAIN, "5 to 4 tiles"},
        {SEEN PICTURE "), by = \"fit\", grids = [4, 8, 4])\n" PLAIN, "the list has 3 numbers"},
        {SEEN PICTURE "), by = \"fit\", grids = [4, 6])\n" PLAIN,
         "a side of 6 pixels does not consist of tiles of 4"},
        {SEEN PICTURE "), by = \"fit\", grids = [400, 400])\n" PLAIN, "10000 tiles"},
        {SEEN PICTURE "), by = \"fit\", most = 4, fit = \"crop\")\n" PLAIN,
         "one of \"stretch\", \"pad\" is expected"},
        {SEEN PICTURE "), by = \"shape\", most = 4)\n" PLAIN,
         "tiles by shape go with fit = \"area\""},
        {SEEN PICTURE ", fit = \"area\"), by = \"fit\", most = 4)\n" PLAIN,
         "tiles of one size go with a picture of one size"},
        {SEEN UNSIZED "), by = \"fit\", grids = [4, 8])\n" PLAIN,
         "tiles of one size go with a picture of one size"},
        {SEEN UNSIZED "), by = \"longest\", most = 4)\n" PLAIN,
         "tiles of one size go with a picture of one size"},
        {SEEN UNSIZED "), by = \"ratio\", most = 4)\n" PLAIN, "tiles by ratio need a size"},
        {SEEN UNSIZED "), by = \"ratio\", most = 4, size = 4)\n" PLAIN, "nothing reads 'seen'"},
        {SEEN PICTURE "), by = \"windows\", size = 3)\n" PLAIN,
         "tiles by windows need a size that is a multiple of 2 pixels"},
        {SEEN UNSIZED "), by = \"windows\", size = 4)\n" PLAIN,
         "tiles by windows go with fit = \"stretch\""},
        {SEEN PICTURE ", longest = 9, thin = 3), by = \"windows\", size = 4)\n" PLAIN,
         "nothing reads 'seen'"},
        {SEEN PICTURE ", thin = -1), by = \"none\")\n" PLAIN, "0 to 32768"},
        {SEEN UNSIZED "), by = \"ratio\", most = 4, size = 4, above = 9)\n" PLAIN,
         "nothing reads 'seen'"},
        {SEEN PICTURE "), by = \"fit\", most = 4, tile = 3)\n" PLAIN,
         "a text of less than 64 bytes is expected"},
        {SEEN "tiles(" PICTURE "), by = \"fit\", most = 4), by = \"fit\", most = 4)\n" PLAIN,
         "tiles(picture(..), ..) are of a picture, once"},
        {SEEN "floats(), by = \"none\")\n" PLAIN, "are of a picture, once"},
        {"x = tiles(3, by = \"none\")\n" PLAIN, "are of a picture, once"},
        {"input seen [2, 2, 3] from " PICTURE ", cells = 2)\n" PLAIN, "'2' is 2; 0 to 1"},
        {"input seen [2, 2, 3] from " PICTURE ", block = 2, inner = 3)\n" PLAIN,
         "a square of 2 x 2 patches does not consist of squares of 3 x 3"},
        {"input seen [2, 2, 3] from " PICTURE ", block = 2, inner = [2, 1, 1])\n" PLAIN,
         "at most 2 squares one in the other, not 3"},
        {"input seen [2, 2, 3] from " PICTURE ", line_end = 2)\n" PLAIN,
         "a text of less than 64 bytes is expected"},
        {SEEN UNSIZED "), by = \"ratio\", most = 4, size = 4, above = 9, woven = 1)\n" PLAIN,
         "tiles that are woven have the size of the whole"},
        {SEEN PICTURE "), by = \"fit\", most = 4, woven = 1, unpad = 1)\n" PLAIN,
         "unpad goes with woven = 1 and fit = \"pad\""},
        {SEEN PICTURE
         "), by = \"fit\", most = 4, above = 0, fit = \"pad\", woven = 1, unpad = 1)\n" PLAIN,
         "nothing reads 'seen'"},
        {"input seen [2, 2, 3] from " PICTURE ", places = 3)\n" PLAIN, "'3' is 3; 0 to 2"},
        {"input seen [2, 2, 3] from " PICTURE ", widened = 1)\n" PLAIN,
         "a picture is widened by less than a patch, not by 1"},
        {SEEN PICTURE "), by = \"ratio\", most = 4, size = 4, woven = 3)\n" PLAIN,
         "'3' is 3; 0 to 2"},
        {SEEN PICTURE ", block = 2), by = \"ratio\", most = 4, size = 4, woven = 2)\n" PLAIN,
         "this needs the rows of a square, line by line"},
        {SEEN PICTURE "), by = \"ratio\", most = 4, size = 4, woven = 2)\n" PLAIN,
         "nothing reads 'seen'"},
        {"input seen [2, 2, 3] from " PICTURE ", line = 2)\n" PLAIN,
         "a text of less than 64 bytes is expected"},
    };
    check_faults(rows, sizeof rows / sizeof *rows);
}

#define PLANE "input seen [2, 2, 3] from " PICTURE ")\n"
#define ENDS  "rows = a\n"

TEST(planes) {
    static const fault rows[] = {
        {PLANE "stage a over seen(windows = 2, filled = 1):\n"
               "  return flat(seen) + 0 * sum(flat(token_embd))\n" ENDS,
         ""},
        {PLANE "stage a over seen(filled = 1):\n  return flat(seen)\n" ENDS,
         "only windows of at most 1024 lines and columns can be filled"},
        {PLANE "stage a over seen(windows = 2, filled = 2):\n  return flat(seen)\n" ENDS,
         "'2' is 2; 0 to 1"},
        {PLANE "stage a over seen(windows = 2, step = 2):\n  return flat(seen)\n" ENDS,
         "rows in windows have no 'step'"},
        {PLANE "stage a over seen(windows = 2, filled = 1):\n  return flat(plane_around(seen, "
               "3))\n" ENDS,
         "rows that fill windows, or ask, have none around them"},
        {PLANE "stage a over seen(from = -1025):\n  return flat(seen)\n" ENDS, "-1024 to"},
        {PLANE "stage a over seen(windows = 2, from = -1):\n  return flat(seen)\n" ENDS,
         "rows before the patches are in no window"},
        {PLANE "stage a over seen(step = 2):\n  return flat(plane_around(seen, 2))\n" ENDS,
         "a row is in the middle of an odd number"},
        {PLANE "stage b over seen(asks = 1, from = 1):\n  return flat(seen)\nstage a over b:\n"
               "  return b\n" ENDS,
         "a stage that asks has no other options"},
        {PLANE "stage a over seen(asks = 1):\n  return flat(seen)\n" ENDS,
         "a stage that asks has no other options, and is not the last one"},
        {PLANE "stage b over seen:\n  return flat(seen)\nstage a over b(windows = 2):\n"
               "  return b\n" ENDS,
         "windows of rows of a stage are filled"},
        {PLANE "stage b over seen(every = 2):\n  return flat(seen)\nstage a over b(step = 2):\n"
               "  return b\n" ENDS,
         "this needs the rows of a square, line by line"},
        {PLANE "stage b over seen(from = -1):\n  return flat(seen)\nstage a over b:\n"
               "  return b * b.lines\n" ENDS,
         "this needs the rows of a square, line by line"},
        {"input seen [2, 2, 3] from " PICTURE ", first = 1)\n"
         "stage a over seen:\n  return flat(plane_around(seen, 3))\n" ENDS,
         "this needs the rows of a square, line by line"},
        {PLANE "stage a over seen:\n  return flat(plane_around(flat(seen), 3))\n" ENDS,
         "plane_around(rows, k) needs the name that the stage is over"},
    };
    check_faults(rows, sizeof rows / sizeof *rows);
}

TEST(ahead) {
    static const fault rows[] = {
        {MAIN AHEAD GUESS, ""},
        {MAIN AHEAD, "the value of 'd' does not reach"},
        {MAIN GUESS, "'d'"},
        {MAIN "guess = linear(x, token_embd)\n",
         "guess must be computed from a stage over a value of each token"},
        {"x = token_embd[token]\n" AHEAD "logits = linear(d, token_embd)\n",
         "logits is computed from a stage that guesses: only 'guess' can be"},
        {MAIN AHEAD "guess = linear(d, token_embd) + logits\n",
         "this mixes a value of each guess with one of each token"},
        {MAIN AHEAD "guess = d\n", "must have a score for each of n_vocab"},
        {MAIN "y = x * 2\nstage d over x(ahead = 1):\n  return x + token_embd[token] + y\n" GUESS,
         "this mixes a value of each guess with one of each token"},
        {"x = token_embd[token]\nk = cache(heads(x, 1), heads(x, 1))\n"
         "y = x + flat(attend(heads(x, 1), k))\nlogits = linear(y, token_embd)\n"
         "stage d over y(ahead = 1):\n  h = heads(y + token_embd[token], 1)\n"
         "  return flat(attend(h, k))\n" GUESS,
         "a value of each guess cannot read what is stored of each token"},
        {MAIN "stage d over x(ahead = 1):\n  return token_embd[token]\n" GUESS, ""},
        {MAIN "w [n, 2*n]\nstage d over x(ahead = 1):\n  return linear(x, w)\n" GUESS,
         "must return a row like that of 'x'"},
        {MAIN "stage d over x(ahead = 1):\n  y = x\n" GUESS, "the stage 'd' has no result"},
        {MAIN AHEAD "stage e over x(ahead = 1):\n  return x\n" GUESS,
         "a descriptor has one stage over a value at most"},
        {MAIN "stage d over token_embd(ahead = 1):\n  return token_embd[token]\n" GUESS,
         "a stage is over a row of numbers of each token"},
        {MAIN "stage d over y(ahead = 1):\n  return y\n" GUESS, "'y'"},
        {MAIN "stage d over x(ahead = 2):\n  return x\n" GUESS, "'ahead' can only be 1"},
        {MAIN "stage d over x(ahead = k + 1):\n  return x\n" GUESS,
         "'k' is not the number of a layer of this stage"},
        {MAIN "stage d over x(ahead = k + 2, layer k < 2):\n  return x\n" GUESS,
         "'ahead' can only be 1, or that after the number of a layer"},
        {MAIN "stage d over x(ahead = 1, layers k < 2):\n  return x\n" GUESS,
         "'from = 1' is expected here, not 'layers'"},
        {MAIN "stage d over x(ahead = 1, from = 1, l < 2):\n  return x\n" GUESS,
         "'layer' is expected as the last option of 'over', not 'l'"},
        {MAIN "stage d over x(ahead = 1, layer k < 0):\n  return x\n" GUESS, "0"},
        {MAIN "k = 3\nstage d over x(ahead = 1, layer k < 2):\n  return x * k\n" GUESS,
         "'k' already has a value: the layer's number needs a new name"},
        {MAIN "stage d over x(ahead = 1, layer k < 2):\n  return x + token_embd[token] * k\n" GUESS,
         ""},
        {MAIN "def scaled(y):\n  k = 2\n  w [n]\n  return y * w * k\nm = .block_count\n"
              "stage d over x(ahead = k + 1, layer k < 2) \"blk.{m + k}.\":\n  return scaled(x)\n"
              "guess = linear(d, token_embd) * (k + 1)\n",
         ""},
        {"input y [n] from layers([\"state\", \"some\"])\nstage d over y(ahead = 1):\n  return "
         "y\n" GUESS,
         "a layer's number, \"state\", \"window\" or \"all\" is expected, not \"some\""},
        {"input y [n] from layers([0, 1, 2])\nstage d over y(ahead = 1):\n  return y\n" GUESS,
         "from 3 layers, whose rows have the same length"},
        {MAIN "stage d over x(ahead = 1, stay = 1):\n  return x\n" GUESS,
         "only a model that guesses for another one can have stay = 1"},
        {MAIN "stage d over x(ahead = 1, stay = 2):\n  return x\n" GUESS, "'stay' can only be 1"},
        {"input y [n] from layers(0)\nz = y * 2\nstage d over y(ahead = 1, from = 1, stay = 1):\n"
         "  return y + token_embd[token] + z\n" GUESS,
         ""},
        {"input y [n] from layers(0)\nstage d over y(ahead = 1, layer k < 2):\n  return y\n" GUESS,
         "a model that guesses for another one has one layer that does"},
        {"input y [n] from layers(0)\nstage d over y(ahead = 1, from = 1, block b < 4):\n"
         "  return where(b, token_embd[token], y)\n" GUESS,
         ""},
        {MAIN "stage d over x(ahead = 1, block b < 4):\n  return x\n" GUESS,
         "only a model that guesses for another one, from = 1, guesses in blocks"},
        {MAIN "stage d over x(ahead = 1, block b):\n  return x\n" GUESS,
         "after the name that says whether an element is guessed"},
        {MAIN "stage d over x(every = 2):\n  return x\n" GUESS, "over x(ahead = 1)"},
        {MAIN "stage d over x:\n  return x\n" GUESS, "over x(ahead = 1)"},
        {MAIN "stage d over x(ahead = 1) \"blk.{m}.\":\n  w [n]\n  return x * w\n" GUESS,
         "must be the name of a whole number"},
        {MAIN "m = .block_count\nstage d over x(ahead = 1) \"blk.{m}.\":\n  w [n]\n  return x * "
              "w\n" GUESS,
         ""},
        {"def recent(x):\n  s = state(n)\n  keep s = x\n  return s\n" MAIN
         "stage d over x(ahead = 1):\n  return recent(x)\n" GUESS,
         "a stage that guesses cannot have a state"},
        {STAGE "prefix \"dec.\"\nw [n, n]\nx = linear(token_embd[token], w)\nr = cache(heads(s, "
               "1), heads(s, 1))\n"
               "x = x + flat(attend(heads(x, 1), r))\nlogits = linear(x, token_embd)\n"
               "stage d over x(ahead = 1):\n  return x + flat(attend(heads(x, 1), r))\n" GUESS,
         "a value of each guess cannot read what is stored of each row of the stage"},
    };
    check_faults(rows, sizeof rows / sizeof *rows);
}

/* Descriptors of the engine, and what they are. */
TEST(kinds) {
    static const struct {
        const char *family;
        bool whole, reads, logits, embedding, score;
    } rows[] = {
        {"llama", false, false, true, false, false},    {"qwen3", false, false, true, false, true},
        {"bert", true, false, false, true, true},       {"dream", true, false, true, false, false},
        {"t5encoder", true, false, false, true, false}, {"t5", false, true, true, true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ggl_error err;
        llm_arch *a;
        REQUIRE_OK(llm_arch_open(&a, rows[i].family, &err), &err);
        CHECK_MSG(llm_arch_sees_all(a) == rows[i].whole &&
                      llm_arch_reads_text(a) == rows[i].reads &&
                      llm_arch_has_output(a, "logits") == rows[i].logits &&
                      llm_arch_has_output(a, "embedding") == rows[i].embedding &&
                      llm_arch_has_output(a, "score") == rows[i].score,
                  "%s", rows[i].family);
        llm_arch_free(a);
    }
}
