/* The language of convert sections: what lines make, what is ignored, the types of keys, and errors. */
#include <math.h>

#include "convert_test.h"
#include "ggl/internal/gguf.h"
#include "hf_layout.h"

static const char own_begin[] =
    "arch t, u\nlanguage 1\nn_embd = .n\ntoken_embd [n_embd, n_vocab]\n"
    "x = token_embd[token]\nw [n_embd, n_embd] bias?\nx = x + linear(x, w)\n"
    "f [n_embd] ?\ny = x * f if has(f) else x\nlogits = linear(y, token_embd)\n"
    "convert Own:\n";

static ggl_gguf *own(const char *lines) {
    char text[2048];
    snprintf(text, sizeof text, "%s%s", own_begin, lines);
    return convert_by(text, false);
}

#define OWN                                                                                        \
    "  .vocab_size <- config.v\n  .n <- config.a.n\n  token_embd <- \"embed\"\n  ignore "          \
    "config.a.l, config.s, config.o\n"

/* Sections, and what becomes of them. */
static const struct {
    const char *lines, *w, *b, *f; /* column 0 of w, the bias, f */
} sections[] = {
    {OWN "  w <- \"w\"\n  f <- \"f\"\n", "0 4 8 12", "0 1 2 3", "0 1 2 3"},
    {OWN "  w <- transpose(\"w\") * 2 + 1\n  f <- 1 - \"f\" if false else \"f\" - 1\n", "1 3 5 7",
     "0 1 2 3", "-1 0 1 2"},
    {OWN "  w <- pairs(\"w\", 1)\n  f <- exp(\"f\" * 0)\n", "0 8 4 12", "0 2 1 3", "1 1 1 1"},
    {OWN "  w <- regroup(\"w\", 2, 2)\n  f <- config.a.l\n  ignore \"f*\"\n", "0 8 4 12", "0 2 1 3",
     "1 2 3 4.5"},
    {OWN "  w <- concat(rows(\"w\", 1, 3), rows(\"w\", 0, 1))\n  f <- \"f\" / 2\n", "4 8 12 0",
     "1 2 3 0", "0 0.5 1 1.5"},
    {OWN "  w <- \"none\" ?? \"w\"\n  f <- iota(n_embd) * 2 + log2(8)\n  ignore \"f\"\n",
     "0 4 8 12", "0 1 2 3", "3 5 7 9"},
    {OWN "  arch <- config.s\n  w <- \"w\"\n  f <- \"f\"\n", "0 4 8 12", "0 1 2 3", "0 1 2 3"},
    /* the folder's other tensors are not this section's */
    {OWN "  only \"w*\", \"embed\"\n  w <- \"w\"\n  f <- [1, 2, 3, 4]\n"
         "  tensor(\"more\") <- rows(\"w\", 1, 1)\n",
     "0 4 8 12", "0 1 2 3", "1 2 3 4"},
    /* a key that is 0 is absent by the table of known keys, for keys and for constants */
    {OWN "  .attention.scale <- 0\n  .logit_scale <- .attention.scale ?? 1\n  w <- \"w\"\n"
         "  f <- [.attention.scale ?? 1, 2, 3, 4]\n  ignore \"f\"\n",
     "0 4 8 12", "0 1 2 3", "1 2 3 4"},
    /* null is no value */
    {OWN
     "  w <- \"w\"\n  f <- [config.a.z ?? 1, 2, 0 if has(config.a.z) else 3, 4]\n  ignore \"f\"\n",
     "0 4 8 12", "0 1 2 3", "1 2 3 4"},
    /* y has no value where w is declared */
    {OWN "  w <- \"none\" ?? stack(\"w{y}.{e}\", 4) ?? \"w\"\n  f <- \"f\"\n", "0 4 8 12",
     "0 1 2 3", "0 1 2 3"},
    {OWN "  w <- shards(rows(\"w\", e, 1 + 2 * e), 2)\n  f <- \"f\"\n", "0 4 8 12", "0 1 2 3",
     "0 1 2 3"},
    {OWN "  w <- max(\"w\" ** 2, 20)\n  f <- min(2, \"f\")\n", "20 20 64 144", "0 1 2 3",
     "0 1 2 2"},
    {OWN "  w <- \"w\" * transpose(\"w\")\n  f <- \"f\" * (\"f\" * 2)\n", "0 4 16 36", "0 1 2 3",
     "0 2 8 18"},
    {OWN "  w <- \"w\" + transpose(\"w\")\n  f <- \"f\" ** 2 - \"f\"\n", "0 5 10 15", "0 1 2 3",
     "0 0 2 6"},
    {OWN "  w <- \"w\"\n  f <- max(softplus((\"f\" - 1) * 100), 0)\n", "0 4 8 12", "0 1 2 3",
     "0 0.69314718 100 200"},
    {OWN "  w <- ternary(\"w\" - 6)\n  f <- ternary(\"f\" - 1) * 2\n", "-4.125 0 0 4.125",
     "0 1 2 3", "-2 0 2 2"},
};

/* Sections that are wrong. */
static const struct {
    const char *lines, *words;
} bad[] = {
    {OWN "  w <- \"w\"\n", "tensor f: read by no line of the convert section in"},
    {OWN "  f <- \"f\"\n", "'w' has no line in the convert section"},
    {OWN "  w <- none\n  f <- \"f\"\n", "nothing in the folder is the source of w.weight"},
    {OWN "  w <- \"w\"\n  f <- \"f\" + config.z\n", "config.z is missing in config.json"},
    {OWN "  w <- \"w\"\n  f <- config.z\n", "config.z is missing in config.json"},
    {OWN "  w <- \"w\"\n  f <- x\n", "'x' has no value here"},
    {OWN "  w <- \"w\"\n  f <- \"f\" / \"f\"\n",
     "'/' in a conversion needs a tensor and then a number"},
    {OWN "  w <- \"w\"\n  f <- 2 ** \"f\"\n",
     "'**' in a conversion needs a tensor and then a number"},
    {OWN "  w <- \"w\"\n  f <- max(\"f\", \"f\")\n",
     "'max' in a conversion needs a tensor and then a number"},
    {OWN "  w <- \"w\"\n  f <- \"f\" * \"w\"\n", "the shapes of the two tensors differ"},
    {OWN "  w <- \"w\"\n  f <- \"f\" * \"g\"\n", "this tensor is missing in the folder"},
    {OWN "  w <- rows(\"w\", 2, 3)\n", "rows 2 to 4 of [4, 4], which has 4 rows"},
    {OWN "  w <- pairs(\"w\", 3)\n", "the 4 rows of [4, 4] are not a multiple of 6"},
    {OWN "  w <- concat(\"w\", \"v\")\n", "1 of the 2 tensors is missing in the folder: v.weight"},
    {OWN "  w <- concat(\"w\", \"f\")\n", "concat of [4, 4] and [4]"},
    {OWN "  w <- shards(\"v{e}\" ?? rows(\"w\", 0, 2) if e == 0 else \"v\", 2)\n",
     "1 of the 2 tensors is missing in the folder"},
    {OWN "  w <- shards(\"w\", 2)\n",
     "tensor w.weight is [4, 8], declared [n_embd, n_embd] = [4, 4]"},
    {OWN "  w <- shards(rows(\"w\", 0, 2) if e == 0 else transpose(rows(\"w\", 0, 2)), 2)\n",
     "shards of [4, 2] and [2, 4]"},
    {OWN "  w <- concat(\"w\", \"w\")\n",
     "tensor w.weight is [4, 8], declared [n_embd, n_embd] = [4, 4]"},
    {OWN "  arch <- \"v\"\n  w <- \"w\"\n",
     "'arch' must be one of the descriptor's own names, in quotes"},
    {OWN "  .odd <- 1\n  w <- \"w\"\n  f <- \"f\"\n", "key t.odd = 1 is not read by"},
    {OWN "  w <- \"w\"\n  w <- \"w\"\n", "'w' has two lines"},
    {OWN "  require config.a.n == 5, \"n is\"\n", "n is: config.a.n = 4"},
    {OWN "  .l <- config.a\n", "config.a is an object in config.json"},
    {OWN "  .l <- transpose(\"a\")\n", "transpose(..) is allowed only where a source tensor is"},
    {OWN "  w <- stack(stack(\"w\", 2), 2)\n", "a stack in a stack"},
    {OWN "  w <- \"w{y}\" ?? \"w{z}\"\n", "'{z}' must be the name of a whole number"},
    {OWN "  w <- \"w{y}\" ?? \"none\"\n", "'{y}' must be the name of a whole number"},
    {OWN "  w <- \"w{config.v}\"\n",
     "the source of w.weight; it comes from w6.weight (its weight)"},
    {OWN "  w <- \"w{config.s}\"\n", "'{config.s}' must be the name of a whole number"},
    {OWN "  w <- stack(\"w{e}\", 2)\n",
     "nothing in the folder is the source of w.weight; it comes from w0.weight (its weight)"},
    {OWN "  only \"w*\"\n  w <- \"v\" ?? \"w\"\n  ignore \"w.weight\"\n"
         "  tensor(\"t\") <- rows(\"w\", 3, 2)\n",
     "rows 3 to 4 of [4, 4], which has 4 rows"},
    {OWN "  only \"five\", \"f\"\n  w <- \"w\"\n", "tensor f: read by no line"},
    {OWN "  .l <- processor.a\n",
     "the folder has neither preprocessor_config.json nor processor_config.json, which say how "
     "pictures are prepared: processor.a is missing"},
    {OWN "  w <- log(\"w\")\n",
     "log(..) does not accept a source tensor: in a conversion, only transpose, pairs"},
    {OWN "  w <- heads(\"w\", 2)\n", "heads(..) does not accept a source tensor"},
    {OWN "  .l <- n_embd\n",
     "'n_embd' has no value yet when keys are made: use the key of a line above, .n"},
    {OWN "  .l <- x\n",
     "'x' has no value yet when keys are made: use config.x, or keys of lines above"},
    {"  .vocab_size <- 6\n  token_embd <- \"embed\"\n  w <- \"w\"\n  f <- \"f\"\n"
     "  ignore config.a, config.v, config.s, config.o\n",
     "key t.n is missing in the convert section in"},
    {"  .vocab_size <- 6\n  token_embd <- \"embed\"\n  w <- \"w\"\n  f <- \"f\"\n"
     "  ignore config.a, config.v, config.s, config.o\n",
     "the section has no line for it"},
    {"  .vocab_size <- 6\n  .n <- none\n  token_embd <- \"embed\"\n  w <- \"w\"\n"
     "  ignore config.a, config.v, config.s, config.o\n",
     "its line gives none for this folder"},
    {OWN "  .l <- config.o[0]\n", "element 0 of config.o is an object in config.json"},
    {OWN "  .l <- config.o\n", "element 0 of config.o is an object in config.json"},
    {OWN "  w <- \"w\"\nconvert B, Own:\n  .n <- 1\n",
     "'Own' already has a convert section, in line 11"},
    {OWN "  w <- \"w\" if not has(\"v\") and has(\"w\") and has(\"w.bias\") else none\n"
         "  f <- \"f\" if has(\"v\") else \"g\"\n",
     "tensor f: read by no line"},
};

TEST(language) {
    put_made("embed 4,6; w.weight 4,4 0; w.bias 4 0; f 1,1,4 0");
    REQUIRE(put_text("config.json",
                     "{\"architectures\": [\"Own\"], \"v\": 6, \"a\": {\"n\": 4, "
                     "\"l\": [1, 2, 3, 4.5], \"z\": null}, \"s\": \"u\", \"o\": [{\"x\": 1}]}"));
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        refused_with(own(bad[k].lines), bad[k].words, bad[k].lines);
    for (size_t k = 0; k < sizeof sections / sizeof *sections; k++) {
        const char *lines = sections[k].lines;
        ggl_gguf *f = refused_with(own(lines), NULL, lines);
        if (!f)
            continue;
        check_numbers(f, "w.weight", 4, sections[k].w, lines);
        check_numbers(f, "w.bias", 1, sections[k].b, lines);
        check_numbers(f, "f.weight", 1, sections[k].f, lines);
        ggl_str name;
        CHECK(ggl_gguf_get_string(f, "general.architecture", &name, &err) == 1 &&
              name.s[0] == (k == 6 ? 'u' : 't'));
        ggl_gguf_close(f);
    }
}

/* An object that has numbers as names, with gaps, and lists as values. */
TEST(numbered_object) {
    put_made("embed 4,6; w.weight 4,4 0");
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"], \"v\": 6, "
                                    "\"o\": {\"2\": [5, 6], \"7\": [1]}}"));
    ggl_gguf *f =
        own("  .vocab_size <- config.v\n  .n <- config.o[2][1] - 3 + (config.o[3][0] ?\? 1)\n"
            "  token_embd <- \"embed\"\n  w <- \"w\"\n");
    CHECK(f);
    ggl_gguf_close(f);
    f = own("  .vocab_size <- config.v\n  .n <- config.o[3][0]\n"
            "  token_embd <- \"embed\"\n  w <- \"w\"\n");
    CHECK(!f);
    CHECK_HAS(err.msg, "config.o[3] is missing in config.json");
}

/* Of five dimensions, the two innermost are one. */
TEST(five_dimensions) {
    put_made("embed 4,6; w.weight 2,2,2,2,2 0");
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"], \"v\": 6}"));
    ggl_gguf *f = own("  .vocab_size <- config.v\n  .n <- 4\n  token_embd <- \"embed\"\n"
                      "  w <- reshape(rows(\"w\", 1, 1, dim = 1), 4, 4)\n"
                      "  tensor(\"more\") <- rows(embed_of_token, 5, 1)\n");
    CHECK(!f);
    CHECK_HAS(err.msg, "unknown name 'embed_of_token'");
    f = own("  .vocab_size <- config.v\n  .n <- 4\n  token_embd <- \"embed\"\n"
            "  w <- reshape(rows(\"w\", 1, 1, dim = 1), 4, 4)\n"
            "  tensor(\"more\") <- rows(\"w\", 1, 1)\n");
    REQUIRE(f);
    /* [2 * 2, frame, 2, 2] */
    check_numbers(f, "w.weight", 1, "4 5 6 7 12 13 14 15 20 21 22 23 28 29 30 31", "frames");
    const ggl_gguf_tensor *more = ggl_gguf_find_tensor(f, "more");
    CHECK(more && more->n_dims == 3 && more->ne[0] == 4 && more->ne[2] == 2);
    CHECK(more && ((const float *)more->data)[0] == 16);
    ggl_gguf_close(f);
}

/* x is [3, 4, 2], innermost first, its numbers 0 .. 23; x.bias [4, 2], 100 .. 107; o.more [4], 200 .. 203. */
static void put_source(void) {
    put_made("embed 4,6; x.weight 3,4,2 0; x.bias 4,2 100; o.more 4 200");
}

/* Expressions of source tensors, and the numbers that they make. */
static const struct {
    const char *shape, *line, *first, *bias; /* what becomes of x */
} makings[] = {
    {"3, 4, 2", "  w <- \"x\"\n", "0 1 2 3 4 5 6 7", "100 101 102 103 104 105 106 107"},
    {"3, 4", "  w <- rows(\"x\", 1, 1)\n", "12 13 14 15", "104 105 106 107"},
    {"3, 2, 2", "  w <- rows(\"x\", 1, 2, dim = 1)\n", "3 4 5 6 7 8 15 16", "101 102 105 106"},
    {"2, 4, 2", "  w <- rows(\"x\", 1, 2, dim = 0)\n", "1 2 4 5 7", "100 101 102 103 104"},
    {"3, 4, 2", "  w <- regroup(\"x\", 2, 2, dim = 1)\n", "0 1 2 6 7 8 3",
     "100 102 101 103 104 106 105 107"},
    {"3, 4, 2", "  w <- regroup(\"x\", 3, 1, dim = 0)\n", "0 1 2 3", "100 101 102"},
    {"3, 4, 2", "  w <- pairs(\"x\", 1, dim = 1)\n", "0 1 2 6 7 8 3", "100 102 101 103"},
    {"3, 4, 2", "  w <- concat(rows(\"x\", 2, 2, dim = 1), rows(\"x\", 0, 2, dim = 1), dim = 1)\n",
     "6 7 8 9 10 11 0 1", "102 103 100 101 106 107 104 105"},
    {"3, 4, 2",
     "  w <- concat(rows(\"x\", 2, 1, dim = 0), rows(\"x\", 0, 2, dim = 0), dim = 0)\n"
     "  w.bias <- none\n",
     "2 0 1 5 3 4", ""},
    {"3, 8", "  w <- reshape(\"x\", 3, 8)\n", "0 1 2 3 4 5 6 7", "100 101 102 103 104 105 106 107"},
    {"3, 2, 4", "  w <- reshape(\"x\", 3, 2, 4)\n", "0 1 2 3 4 5 6 7",
     "100 101 102 103 104 105 106 107"},
    {"6, 4", "  w <- reshape(\"x\", 6, 4)\n  w.bias <- \"o.more\"\n", "0 1 2", "200 201 202 203"},
    {"4, 3, 2", "  w <- transpose(\"x\")\n  w.bias <- none\n", "0 3 6 9 1 4 7 10", ""},
    {"3, 2, 4", "  w <- transpose(\"x\", 1, 2)\n", "0 1 2 12 13 14 3 4",
     "100 104 101 105 102 106 103 107"},
    {"2, 4, 3", "  w <- transpose(\"x\", 2, 0)\n  w.bias <- none\n", "0 12 3 15 6 18 9 21", ""},
    {"3, 4, 2", "  w <- \"x\"\n  w.bias <- transpose(reshape(\"x\", 2, 4)) * 2\n", "0",
     "200 204 208 212 202 206 210 214"},
    {"3, 4, 2", "  w <- stack(rows(reshape(\"x\", 3, 8), 4 * e, 4), 2)\n", "0 1 2 3 4 5 6 7",
     "100 101 102 103 104 105 106 107"},
    {"3, 4",
     "  w <- rows(\"x\", 1, 1)\n"
     "  w.bias <- concat(rows(\"o.more\", 2, 2), rows(\"o.more\", 0, 2)) + 1\n",
     "12 13 14 15", "203 204 201 202"},
};

/* Every function that rearranges, along every dimension. */
TEST(dimensions) {
    put_source();
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"]}"));
    for (size_t k = 0; k < sizeof makings / sizeof *makings; k++) {
        const char *line = makings[k].line;
        ggl_gguf *f = refused_with(made_with(makings[k].shape, line), NULL, line);
        if (f) {
            check_numbers(f, "w.weight", 1, makings[k].first, line);
            check_numbers(f, "w.bias", 1, makings[k].bias, line);
        }
        ggl_gguf_close(f);
    }
}

TEST(wrong_dimensions) {
    static const char *const list[][2] = {
        {"  w <- rows(\"x\", 1, 2, dim = 3)\n",
         "dimension 3 of a tensor that has 3, counted from 0"},
        {"  w <- rows(\"x\", 1, 2, size = 1)\n", "rows in a conversion has no argument 'size'"},
        {"  w <- rows(\"x\", 2, 2, dim = 0)\n", "rows 2 to 3 of [3, 4, 2], which has 3 rows"},
        {"  w <- transpose(\"x\", 1)\n", "transpose in a conversion needs 1 or 3 arguments, not 2"},
        {"  w <- transpose(\"x\", 0, 3)\n", "dimension 3 of a tensor that has 3"},
        {"  w <- reshape(\"x\", 5, 5)\n", "[3, 4, 2] has 24 numbers, but the new shape has 25"},
        {"  w <- reshape(\"x\", 6, 4)\n", "the bias [4, 2] has 8 numbers, but the new shape has 4: "
                                          "write a line for it, NAME.bias <- .."},
        {"  w <- reshape(\"x\", 6, 2, 1, 1, 2)\n",
         "reshape in a conversion needs 2 to 5 arguments, not 6"},
        {"  w <- concat(\"x\", \"x\", dim = 0)\n", "matrices side by side give no bias"},
        {"  w <- concat(\"x\", rows(\"x\", 0, 2, dim = 1))\n", "concat of [3, 4, 2] and [3, 2, 2]"},
        {"  w <- \"x\"\n  w.scale <- \"x\"\n",
         "'w.scale': no stage and no 'prefix' of the descriptor has \"w.\", and after a weight's "
         "name only '.bias' may follow"},
        {"  w <- \"x\"\n  w.* <- \"x\"\n", "'bias' is expected after the weight's name and '.'"},
        {"  w <- \"x\"\n  w.bias <- \"x\"\n  w.bias <- \"x\"\n", "'w' has two lines"},
        {"  w <- \"x\"\n  .l <- list(config.l[e], 3)\n", "'e' is 2, but the list has 2 elements"},
        {"  w <- \"x\"\n  .l <- list(list(e, 2), 3)\n", "a list in a list or stack"},
        {"  w <- \"x\"\n  .l <- list(none, 3)\n",
         "an element must be a number, a string, true or false; for e = 0: "},
        {"  w <- \"x\"\n  .l <- e\n", "'e' has no value here"},
        {"  w <- \"x\"\n  .l <- value(\"zz\")\n", "tensor zz is missing in the folder"},
        {"  w <- \"x\"\n  .l <- value(config.l)\n",
         "value(..) needs the name of a source tensor, in quotes"},
        {"  w <- \"x\"\n  .l <- n_rows(1)\n",
         "n_rows(..) needs the name of a source tensor, in quotes"},
        {"  w <- \"x\"\n  .l <- joined(config.l)\n", "config.l in config.json is no list of lists"},
        {"  w <- \"x\"\n  .l <- joined(generation.l)\n",
         "generation.l is missing in generation_config.json"},
        {"  w <- \"x\"\n  .l <- n_parts(0, 1, 128)\n", "0"},
        {"  w <- \"x\"\n  .l <- n_parts(64, 1, 0.5)\n", "0.5"},
        {"  w <- \"x\"\n  .l <- joined(3)\n", "joined(..) needs a value config.x or generation.x"},
        {"  w <- \"x\"\n  note true\n", "a 'note' needs a text"},
        {"  w <- \"x\"\n  within config.l + 1\n", "'within' needs an object of config.json"},
        {"  w <- \"x\"\n  folder \"gone\"\n",
         "gone/config.json: no such file: the folder gone of the model"},
        {"  w <- \"x\"\n  prefix \"a\"\n", "'prefix' needs beginnings of names"},
    };
    put_source();
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"], \"l\": [1, 2]}"));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char line[300];
        snprintf(line, sizeof line, "%s%s", list[k][0],
                 strstr(list[k][0], "config.l") ? "" : "  ignore config.l\n");
        const char *shape = strstr(line, "6, 4)")               ? "6, 4"
                            : strstr(line, "\"x\", \"x\", dim") ? "6, 4, 2"
                                                                : "3, 4, 2";
        refused_with(made_with(shape, line), list[k][1], list[k][0]);
    }
}

/* Weights of one name in a stage and after it: a line for each, or for both. */
TEST(prefixes) {
    static const struct {
        const char *lines, *words; /* words NULL: it is converted; first: of each tensor */
        const char *first;
        int n_bias;
    } list[] = {
        {"  s.w <- \"o\"\n  d.w <- \"p\"\n", NULL, "12", 2},
        {"  d.w <- \"o\"\n  s.w <- \"p\"\n", NULL, "21", 2},
        {"  w <- \"o\"\n", NULL, "11", 2},
        {"  w <- \"o\"\n  d.w <- \"p\"\n", NULL, "12", 2},
        {"  d.w <- \"p\"\n  w <- \"o\"\n  w.bias <- none\n", NULL, "12", 0},
        {"  d.w <- \"p\"\n  w <- \"o\"\n  d.w.bias <- none\n", NULL, "12", 1},
        {"  d.w <- \"p\"\n", "'w' has no line in the convert section for it", "00", 0},
        {"  w <- \"o\"\n  d.w <- \"p\"\n  d.w <- \"o\"\n", "'w' has two lines", "00", 0},
        {"  w <- \"o\"\n  e.w <- \"p\"\n", "'e.w': no stage and no 'prefix'", "00", 0},
        {"  w <- \"o\"\n  d.v <- \"p\"\n", "the descriptor declares no weight 'v'", "00", 0},
    };
    put_made("embed 4,6; o.weight 4,4 1; p.weight 4,4 2; o.bias 4; p.bias 4");
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"]}"));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "arch t\nlanguage 2\ndef f(x):\n  w [4, 4] bias?\n  return linear(x, w)\n"
                 "embd [4, n_vocab]\nstage text \"s.\":\n  return f(embd[token])\nprefix \"d.\"\n"
                 "read = cache(heads(text, 1), heads(text, 1))\n"
                 "y = flat(attend(heads(f(embd[token]), 1), read))\nlogits = linear(y, embd)\n"
                 "convert Own:\n  .vocab_size <- 6\n  embd <- \"embed\"\n  ignore \"*\"\n%s",
                 list[k].lines);
        ggl_gguf *f = refused_with(convert_by(text, false), list[k].words, list[k].lines);
        for (int i = 0; f && i < 2; i++) {
            check_numbers(f, i ? "d.w.weight" : "s.w.weight", 1,
                          list[k].first[i] == '1' ? "1" : "2", list[k].lines);
            check_numbers(f, i ? "d.w.bias" : "s.w.bias", 1, i < list[k].n_bias ? "0" : "",
                          list[k].lines);
        }
        ggl_gguf_close(f);
    }
}

static double number_of(const ggl_gguf *f, const char *key, uint64_t i) {
    const ggl_gguf_value *v = ggl_gguf_find(f, key);
    double x = NAN;
    bool flag;
    if (v && i < v->n && ggl_gguf_bool(v, i, &flag))
        return flag;
    return v && i < v->n && ggl_gguf_number(v, i, &x) ? x : NAN;
}

/* Lists made element by element, values of tensors, objects in lists, keys by their full names. */
TEST(made_values) {
    static const struct {
        const char *line, *key;
        int n;
        double x[4];
    } list[] = {
        {"  .l <- list(config.kinds[e] == \"full\", 3)\n", "t.l", 3, {1, 0, 1}},
        {"  .k <- list(e * 2, 3)\n  .l <- .k\n", "t.l", 3, {0, 2, 4}},
        {"  .l <- list(4 if config.kinds[e] == \"full\" else 0, size(config.kinds))\n",
         "t.l",
         3,
         {4, 0, 4}},
        {"  .l <- list(config.blocks[e].n ?? 7, 3)\n", "t.l", 3, {5, 7, 6}},
        {"  .l <- config.blocks[2].n\n", "t.l", 1, {6}},
        {"  .l <- value(\"o.more\")\n", "t.l", 4, {200, 201, 202, 203}},
        {"  .l <- value(\"o.more\")[1]\n", "t.l", 1, {201}},
        {"  .l <- n_rows(\"o.more\")\n", "t.l", 1, {4}},
        /* whole; in 2 and 4 parts; in 4 or 8; in none */
        {"  .l <- n_parts(256, 2, 128)\n", "t.l", 1, {1}},
        {"  .l <- n_parts(600, 6, 128)\n", "t.l", 1, {2}},
        {"  .l <- [n_parts(1200, 12, 128), n_parts(600, 8, 128), n_parts(7, 3, 2)]\n",
         "t.l",
         3,
         {4, 1, 1}},
        {"  .l <- n_rows(\"zz\") ?? 3\n", "t.l", 1, {3}},
        {"  .l <- list(value(\"{e}.more\" ?? \"o.more\")[e] + exp(0), 2)\n", "t.l", 0, {0}},
        {"  key(\"training.alpha\") <- list(value(\"o.more\")[e] * 2, 2)\n",
         "training.alpha",
         2,
         {400, 402}},
        {"  key(\"t.l\") <- 3\n", "t.l", 1, {3}},
        {"  .l <- joined(generation.heads)\n", "t.l", 4, {1, 2, 3, 4}},
        {"  .l <- joined(generation.none) ?? generation.a.b\n", "t.l", 1, {7}},
    };
    put_source();
    REQUIRE(put_text("config.json",
                     "{\"architectures\": [\"Own\"], \"kinds\": [\"full\", \"near\", "
                     "\"full\"], \"blocks\": [{\"n\": 5}, {\"n\": null}, {\"n\": 6}]}"));
    REQUIRE(put_text("generation_config.json",
                     "{\"heads\": [[1, 2], [], [3, 4]], \"a\": {\"b\": 7}, \"c\": 1}"));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char line[600];
        snprintf(line, sizeof line, "  w <- \"x\"\n%s%s%s", list[k].line,
                 strstr(list[k].line, "kinds") ? "" : "  ignore config.kinds\n",
                 strstr(list[k].line, "blocks") ? "" : "  ignore config.blocks\n");
        ggl_gguf *f = made_with("3, 4, 2", line);
        if (list[k].n == 0) {
            CHECK_HAS(err.msg, "value(..) needs the name of a source tensor");
            continue;
        }
        if (!CHECK_MSG(f, "%s: %s", list[k].line, err.msg))
            continue;
        for (int i = 0; i < list[k].n; i++)
            CHECK_MSG(number_of(f, list[k].key, (uint64_t)i) == list[k].x[i], "%s: %g",
                      list[k].line, number_of(f, list[k].key, (uint64_t)i));
        ggl_gguf_close(f);
    }
}

/* The text part of a model that also sees: an object of its own in config.json, other beginnings of names. */
TEST(nested) {
    static const struct {
        const char *config, *words; /* NULL: it is converted */
    } list[] = {
        {"{\"architectures\": [\"Own\"], \"n\": 3}", NULL},
        {"{\"architectures\": [\"Own\"], \"text_config\": {\"n\": 3, \"torch_dtype\": \"x\", "
         "\"initializer_range\": 1}, \"vision_config\": {\"n\": 5}}",
         NULL},
        {"{\"architectures\": [\"Own\"], \"text_config\": {\"n\": 3}, \"n\": 3}", NULL},
        {"{\"architectures\": [\"Own\"], \"text_config\": {\"rope_parameters\": "
         "{\"full_attention\": {\"rope_theta\": 3}}}, \"n\": 3}",
         NULL},
        {"{\"architectures\": [\"Own\"], \"text_config\": {\"n\": 3}, \"n\": 4}",
         "two different values of n, in the model's own object and outside it: 3 and 4; either"},
        {"{\"architectures\": [\"Own\"], \"text_config\": {\"n\": 3, \"clip\": 1}}",
         "text_config.clip = 1. If"},
        {"{\"architectures\": [\"Own\"], \"text_config\": {\"n\": 3}, \"clip\": 1}",
         "does not read: clip = 1. If"},
        {"{\"architectures\": [\"Own\"], \"text_config\": {\"n\": 3, \"vision_config\": 1}}", NULL},
        {"{\"architectures\": [\"Own\"], \"text_config\": {\"text_config\": {\"n\": 4}, \"n\": 3}}",
         "text_config.text_config.n = 4"},
    };
    for (int form = 0; form < 3; form++) {
        static const char *const begin[] = {"model.", "language_model.model.",
                                            "model.language_model."};
        char tensors[200];
        snprintf(tensors, sizeof tensors, "%sembed 4,6; %sx.weight 3,4,2; %slayers.5.inv 2",
                 begin[form], begin[form], begin[form]);
        put_made(tensors);
        for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
            REQUIRE(put_text("config.json", list[k].config));
            ggl_gguf_close(refused_with(
                convert_by("arch t\nlanguage 1\nembd [4, n_vocab]\nw [3, 4, 2]\nh = sum(flat(w))\n"
                           "logits = linear(embd[token] * h, embd)\nconvert Own:\n  within "
                           "config.text_config\n"
                           "  prefix \"model.\" ?\? \"language_model.model.\" ?\? "
                           "\"model.language_model.\"\n"
                           "  require (config.n ?\? rope.theta) == 3 and "
                           "(rope.full_attention.theta ?\? 3) == 3\n"
                           "  .vocab_size <- 6\n  embd <- \"model.embed\"\n  w <- \"model.x\"\n"
                           "  ignore config.vision_config, \"model.layers.{e}.inv\"\n",
                           false),
                list[k].words, list[k].config));
        }
    }
}

/* As files have them: f32 by name, else integers if they are whole. */
TEST(key_types) {
    static const struct {
        const char *key, *value;
        ggl_gguf_type type;
    } list[] = {
        {"attention.scale", "12", GGL_GGUF_F32},
        {"logit_scale", "16", GGL_GGUF_F32},
        {"final_logit_sigmoid_capping", "3", GGL_GGUF_F32},
        {"expert_weights_scale", "1", GGL_GGUF_F32},
        {"rope.freq_base_swa", "10000", GGL_GGUF_F32},
        {"rope.scaling.factor", "4", GGL_GGUF_F32},
        {"attention.group_norm_epsilon", "1", GGL_GGUF_F32},
        {"block_count", "12", GGL_GGUF_U32},
        {"rope.scaling.original_context_length", "12", GGL_GGUF_U32},
        {"odd", "-12", GGL_GGUF_I32},
        {"odd", "5000000000", GGL_GGUF_U64},
        {"odd", "0.5", GGL_GGUF_F32},
        {"odd", "[1, 2]", GGL_GGUF_I32},
        {"odd", "[1, 0.5]", GGL_GGUF_F32},
        {"odd", "[true, false]", GGL_GGUF_BOOL},
        {"odd", "true", GGL_GGUF_BOOL},
        {"odd", "\"x\"", GGL_GGUF_STRING},
        {"xielu.alpha_p", "[1, 2]", GGL_GGUF_F32},
        {"swiglu_clamp_exp", "[7, 7]", GGL_GGUF_F32},
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char arch[400], text[400];
        snprintf(arch, sizeof arch,
                 "arch t\nlanguage 1\na [2, n_vocab]\nlogits = linear(a[token], a)\nignore .%s\n"
                 "convert Own:\n  .vocab_size <- 3\n  .%s <- config.x\n  a <- \"a\"\n",
                 list[k].key, list[k].key);
        snprintf(text, sizeof text, "{\"architectures\": [\"Own\"], \"x\": %s}", list[k].value);
        REQUIRE(put_text("config.json", text));
        ggl_gguf *f = convert_by(arch, true);
        snprintf(text, sizeof text, "t.%s", list[k].key);
        const ggl_gguf_value *v = f ? ggl_gguf_find(f, text) : NULL;
        if (CHECK_MSG(v, "%s: %s", text, err.msg))
            CHECK_MSG(v->type == list[k].type && v->is_array == (list[k].value[0] == '['),
                      "%s = %s", text, list[k].value);
        ggl_gguf_close(f);
    }
}

static const char layered[] =
    "arch t\nlanguage 1\nn_layer = 2\nembd [4, n_vocab]\nx = embd[token]\n"
    "layer l < n_layer:\n  w [4, 4]\n  x = x + linear(x, w)\nlogits = linear(x, embd)\n"
    "convert Own:\n  .vocab_size <- config.v\n  embd <- \"embed\"\n  w <- \"l.{l}.w\"\n";

/* Layers 0 and 1 are the model's; 2 is a draft layer. */
TEST(ignored) {
    static const struct {
        const char *lines, *words; /* NULL: it is converted */
    } list[] = {
        {"  ignore \"l.{n_layer}.*\"\n",
         "tensor l.0.bias: read by no line"}, /* that layer, not every layer */
        {"  ignore \"l.{n_layer}.*\", \"l.{l}.bias\"\n", NULL},
        {"  ignore \"l.{l}.*\"\n", NULL},
        {"  ignore \"l.2.*\", \"l.{e}.bias\"\n", NULL},
        {"  ignore \"l.{l}.bias\"\n", "tensor l.2.w: read by no line"},
        {"  ignore \"l.{n_layers}.*\"\n", "'{n_layers}' is not a name of this descriptor"},
        {"  ignore \"l.{n_layer + 0}.*\", \"l.{l}.bias\"\n", NULL},
        {"  ignore \"l.{ n_layer+1-1 }.*\", \"l.{l}.bias\"\n", NULL},
        {"  ignore \"l.{n_layer + 1}.*\", \"l.{l}.bias\"\n", "tensor l.2.w: read by no line"},
        {"  ignore \"l.{n_layer + nix}.*\"\n", "'{nix}' is not a name of this descriptor"},
        {"  ignore \"l.{n_layer * 2}.*\"\n", "'{n_layer * 2}' is not a name of this descriptor"},
        {"  ignore \"l.{n_layer + l}.*\"\n", "{l} stands for the number of any layer or expert"},
        {"  ignore \"l.{x}.*\"\n", "'{x}' must be the name of a whole number"},
    };
    put_made("embed 4,6; l.0.w 4,4; l.1.w 4,4; l.0.bias 4; l.2.w 4");
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"], \"v\": 6}"));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", layered, list[k].lines);
        ggl_gguf_close(refused_with(convert_by(text, false), list[k].words, list[k].lines));
    }
}

/* The meaning of a number is suggested only if it is clear: 16 may be n_embd, or twice n_ff. */
TEST(hints) {
    static const char text[] =
        "arch t\nlanguage 1\nn_embd = .n\nn_ff = 8\nn_odd = 11\nmag = 1\n"
        "a [n_embd, n_vocab]\nw [n_embd, n_ff]\nx = a[token]\n"
        "logits = linear(x * (1 + sum(linear(x, w))) * n_odd * mag, a)\nconvert Own:\n"
        "  .vocab_size <- 6\n  .n <- 16\n  a <- \"a\"\n  w <- \"w\"\n";
    static const char *const tensors[] = {"a 16,6; w 16,16", "a 16,6; w 16,11", "a 16,6; w 16,1"};
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"]}"));
    for (int k = 0; k < 3; k++) {
        put_made(tensors[k]);
        CHECK(!convert_by(text, false));
        CHECK_HAS(err.msg, "declared [n_embd, n_ff] = [16, 8]");
        CHECK_MSG(!strstr(err.msg, " here is ") == (k != 1), "%s", err.msg);
    }
}

/* Each class of a built-in descriptor has one section, one of an eye, and one of an ear, unless they have conditions. */
TEST(built_in_classes) {
    const char *name, *text;
    char seen[3][16384] = {" ", " ", " "};
    size_t n;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        for (const char *s = text; (s = strstr(s, "\nconvert ")); s++) {
            char line[1024], *class_name;
            snprintf(line, sizeof line, "%.*s", (int)strcspn(s + 9, ":"), s + 9);
            char *condition = strstr(line, " if "), *list = seen[!strstr(text, "\nrows = ") ? 0
                                                                 : strstr(text, "] from s") ? 2
                                                                                            : 1];
            if (condition)
                *condition = 0;
            for (char *at = line; (class_name = strtok(at, ", ")); at = NULL) {
                char word[128];
                snprintf(word, sizeof word, " %s ", class_name);
                CHECK_MSG(condition || !strstr(list, word), "%s: '%s' has two sections", name,
                          class_name);
                strncat(list, word + 1, sizeof seen[0] - strlen(list) - 1);
            }
        }
    CHECK_HAS(seen[0], " MixtralForCausalLM ");
    CHECK_HAS(seen[1], " Qwen2VLForConditionalGeneration ");
    CHECK_HAS(seen[2], " Gemma4ForConditionalGeneration ");
}
