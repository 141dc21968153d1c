/* Messages of llm-convert about refused folders: they lead to the cause, and to patterns that work
 * when pasted. */
#include <sys/stat.h>

#include "convert_test.h"
#include "ggl/alloc.h"
#include "hf_layout.h"
#include "steps.h"

static const char own_arch[] =
    "arch t\nlanguage 1\nn_embd = .n\nn_layer = .block_count\nn_head = .attention.head_count\n"
    "d = .attention.key_length\nrequire d == n_embd/n_head\n"
    "token_embd [n_embd, n_vocab]\nx = token_embd[token]\nlayer l < n_layer:\n"
    "  w [n_embd, n_embd]\n  x = linear(x, w)\nlogits = linear(x, token_embd)\n"
    "convert Own:\n  .vocab_size <- config.v\n  .n <- config.n ?? (7 if config.architectures[0] == "
    "\"Own\" else 3)\n"
    "  .block_count <- config.num_hidden_layers ?? (2 if config.architectures[0] == \"Own\" else "
    "3)\n  .attention.head_count <- config.h ?? 1\n"
    "  .attention.key_length <- .n / .attention.head_count\n  token_embd <- \"embed\"\n"
    "  w <- \"model.layers.{l}.w\"\n";

/* A folder of so many layers, of 2 by 2 each, with further tensors of two numbers. */
static void put_tensors(int n_layer, const char *const *more, int n_more) {
    char list[2000] = "embed 2,3";
    for (int l = 0; l < n_layer; l++)
        sprintf(list + strlen(list), "; model.layers.%d.w.weight 2,2", l);
    for (int k = 0; k < n_more; k++)
        sprintf(list + strlen(list), "; %s 2", more[k]);
    put_made(list);
}

static bool put_config(int v, int n_layer, const char *more) {
    char text[1000];
    snprintf(text, sizeof text,
             "{\"architectures\": [\"Own\"], \"v\": %d, \"n\": 2, \"num_hidden_layers\": %d%s}", v,
             n_layer, more);
    return put_text("config.json", text);
}

/* NULL: it is refused, and err says why. */
static bool converts(const llm_arch_ignore *ignore) {
    static char path[600];
    snprintf(path, sizeof path, "%s", test_path("own.arch"));
    CHECK(put_text("own.arch", own_arch));
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    params.arch_path = path;
    if (ignore)
        params.ignore = *ignore;
    ggl_gguf *f = convert(&params);
    ggl_gguf_close(f);
    return f != NULL;
}

/* Takes the patterns that the message gives for a flag and converts with them. */
static bool converts_as_advised(const char *flag) {
    static char text[sizeof err.msg];
    const char *pattern[16];
    size_t n = 0;
    snprintf(text, sizeof text, "%s", err.msg);
    char *s = text;
    for (char *end; n < 16 && (s = strstr(s, flag)); s = end + 1) {
        s = strchr(s, '\'');
        end = s ? strchr(s + 1, '\'') : NULL;
        if (!end)
            break;
        *end = 0;
        pattern[n++] = s + 1;
    }
    const llm_arch_ignore ignore = {.key = pattern,
                                    .tensor = pattern,
                                    .n_key = strstr(flag, "config") ? n : 0,
                                    .n_tensor = strstr(flag, "tensor") ? n : 0};
    return CHECK_MSG(n > 0, "no pattern in: %s", err.msg) && converts(&ignore);
}

/* --- patterns that fit nothing ---------------------------------------------------------------- */

TEST(patterns_that_fit_nothing) {
    static const char *const slip[] = {"slip.*", "odd"}, *const odd[] = {"odd.weight"};
    const llm_arch_ignore both = {.key = slip, .tensor = slip, .n_key = 1, .n_tensor = 1},
                          keys = {.key = slip, .tensor = slip, .n_key = 2, .n_tensor = 2};
    put_tensors(1, odd, 1);
    REQUIRE(put_config(3, 1, ", \"odd\": 7"));
    CHECK(!converts(&both));
    CHECK_HAS(err.msg, "odd = 7");
    CHECK_HAS(err.msg, "\n--ignore-config 'slip.*' matches nothing unread");
    CHECK_MSG(!strstr(err.msg, "--ignore-tensor"), "not known yet: %s", err.msg);
    CHECK(!converts(&keys));
    CHECK_HAS(err.msg, "odd.weight: read by no line");
    CHECK_HAS(err.msg, "\n--ignore-config 'slip.*' matches nothing unread\n"
                       "--ignore-tensor 'slip.*' matches nothing unread\n"
                       "--ignore-tensor 'odd' matches nothing");
    CHECK_MSG(!strstr(err.msg, "--ignore-config 'odd'"), "%s", err.msg);
    REQUIRE(
        put_text("config.json",
                 "{\"architectures\": [\"Own\"], \"n\": 2, \"odd\": 7, \"num_hidden_layers\": 1}"));
    CHECK(!converts(&keys)); /* an error before any value is judged */
    CHECK_HAS(err.msg, "config.v is missing");
    CHECK_HAS(err.msg, "\n--ignore-config 'slip.*' matches nothing unread");
}

/* --- tensors that no line reads --------------------------------------------------------------- */

TEST(unread_tensors) {
    static const struct {
        const char *name[4], *list, *options, *hint;
    } list[] = {
        {{"a.weight"}, "model.safetensors: tensor a.weight: read by no line", "'a.weight'", NULL},
        {{"a.weight", "b.weight"},
         "2 tensors are read by no line of the convert section in ",
         "'a.weight' --ignore-tensor 'b.weight'",
         NULL},
        {{"model.layers.0.odd", "model.layers.1.odd"},
         ": model.layers.*.odd (2 tensors); map them or",
         "(--ignore-tensor 'model.layers.*.odd', at",
         NULL},
        {{"model.layers.2.w.weight", "model.layers.2.eh_proj.weight", "a"},
         "3 tensors",
         "--ignore-tensor 'model.layers.2.*' --ignore-tensor 'a'",
         "Nothing of model.layers.2.* is read, but layers besides it are: the number of "
         "layers may be too small: "},
        {{"model.layers.2.w.weight"},
         "tensor model.layers.2.w.weight: read by no",
         "'model.layers.2.w.weight'",
         "num_hidden_layers = 2"},
        {{"visual.blocks.0.a", "visual.blocks.1.a", "visual.blocks.1.b"},
         "visual.blocks.* (3 tensors)",
         "(--ignore-tensor 'visual.blocks.*', at your own risk)",
         NULL},
    };
    REQUIRE(put_config(3, 2, ""));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        int n = 0;
        while (n < 4 && list[k].name[n])
            n++;
        put_tensors(2, list[k].name, n);
        CHECK(!converts(NULL));
        CHECK_HAS(err.msg, list[k].list);
        CHECK_HAS(err.msg, list[k].options);
        if (list[k].hint)
            CHECK_HAS(err.msg, list[k].hint);
        else
            CHECK_MSG(!strstr(err.msg, "too small"), "%s", err.msg);
        CHECK_MSG(converts_as_advised("--ignore-tensor"), "case %zu: %s", k, err.msg);
    }
}

/* A folder whose config.json does not say how many layers it has, and has more or fewer than the default. */
TEST(missing_count_of_layers) {
    static const char *const one[] = {"model.layers.2.w.weight"};
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"], \"v\": 3, \"n\": 2}"));
    put_tensors(2, NULL, 0);
    CHECK_MSG(converts(NULL), "%s", err.msg);
    put_tensors(1, NULL, 0);
    CHECK(!converts(NULL));
    CHECK_HAS(err.msg, "nothing in the folder is the source of blk.1.w.weight");
    CHECK_HAS(err.msg, "config.json: num_hidden_layers is missing");
    put_tensors(2, one, 1);
    CHECK(!converts(NULL));
    CHECK_HAS(err.msg, "the number of layers may be too small: ");
    CHECK_HAS(err.msg, "config.json: num_hidden_layers is missing");
}

/* A default of the class that the tensors do not have is named by the key that is missing. */
TEST(missing_width) {
    REQUIRE(put_text("config.json",
                     "{\"architectures\": [\"Own\"], \"v\": 3, \"num_hidden_layers\": 2}"));
    put_tensors(2, NULL, 0);
    CHECK(!converts(NULL));
    CHECK_HAS(err.msg, "config.json: n is missing");
}

/* Counts that cannot be are named by the value of config.json that has them. */
TEST(counts_of_nothing) {
    static const struct {
        int v, n_layer;
        const char *says;
    } list[] = {{3, 0,
                 "config.json: num_hidden_layers = 0: at least 1 is expected, as it becomes "
                 "the key t.block_count"},
                {3, -1, "config.json: num_hidden_layers = -1: at least 1 is expected"},
                {0, 1,
                 "config.json: v = 0: at least 1 is expected, as it becomes the key "
                 "t.vocab_size"},
                {-7, 1, "config.json: v = -7: at least 1 is expected"}};
    put_tensors(1, NULL, 0);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        REQUIRE(put_config(list[i].v, list[i].n_layer, ""));
        CHECK(!converts(NULL));
        CHECK_HAS(err.msg, list[i].says);
    }
    REQUIRE(put_config(3, 1, ", \"h\": 0")); /* also where a later key is divided by it */
    CHECK(!converts(NULL));
    CHECK_HAS(err.msg, "config.json: h = 0: at least 1 is expected, as it becomes the key "
                       "t.attention.head_count");
}

/* More groups than the message shows. */
TEST(many_unread_tensors) {
    static const char *const name[] = {"a.x", "b.x", "c.x", "d.x", "e.x", "f.x", "g.x"};
    REQUIRE(put_config(3, 2, ""));
    put_tensors(2, name, 7);
    CHECK(!converts(NULL));
    CHECK_HAS(err.msg, "7 tensors are");
    CHECK_HAS(err.msg, "e.x, and more (--dry-run lists all); map them");
    CHECK_HAS(err.msg, "--ignore-tensor '*'");
    CHECK(converts_as_advised("--ignore-tensor"));
}

/* --- the vocabulary --------------------------------------------------------------------------- */

/* The embedding shows whether vocab_size or the tokenizer is wrong; it is looked at before anything of vocab_size's size is made. */
TEST(wrong_vocab_size) {
    static const int sizes[] = {2, 4, 16777216};
    char words[100];
    put_tensors(1, NULL, 0);
    REQUIRE(
        put_text("tokenizer.json",
                 "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", "
                 "\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]}}"));
    for (int k = 0; k < 3; k++) {
        REQUIRE(put_config(sizes[k], 1, ""));
        CHECK(!converts(NULL));
        snprintf(words, sizeof words,
                 "tensor token_embd.weight is [2, 3], declared [n_embd, n_vocab] = [2, %d]",
                 sizes[k]);
        CHECK_HAS(err.msg, words);
        CHECK_MSG(!strstr(err.msg, "--extra-tokens"), "%s", err.msg);
    }
    REQUIRE(put_config(3, 1, ""));
    CHECK_MSG(converts(NULL), "%s", err.msg);
}

/* --- config.json ------------------------------------------------------------------------------ */

/* A name may be empty, and be ignored all the same. */
TEST(empty_names) {
    static const char *const none[] = {""}, *const all[] = {"*"};
    const llm_arch_ignore ignore[] = {{.key = none, .n_key = 1}, {.key = all, .n_key = 1}};
    static const char *const list[] = {", \"\": 5", ", \"\": {\"\": 5}", ", \"\": {\"a\": 5}"};
    put_tensors(1, NULL, 0);
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(put_config(3, 1, list[i]));
        CHECK(!converts(NULL));
        CHECK_HAS(err.msg, i ? " = 5" : "does not read: \"\" = 5");
        CHECK(i > 0 || converts_as_advised("--ignore-config"));
        for (int k = 0; k < 2; k++)
            CHECK_MSG(converts(&ignore[k]), "%s: %s", list[i], err.msg);
    }
}

/* Numbers that are none are values like others: they are shown as config.json has them, and no key. */
TEST(odd_numbers) {
    put_tensors(1, NULL, 0);
    REQUIRE(put_config(3, 1, ", \"a\": [0.5, Infinity], \"b\": -Infinity, \"c\": NaN"));
    CHECK(!converts(NULL));
    CHECK_HAS(err.msg, "does not read: a = [0.5, Infinity], b = -Infinity, c = NaN");
    REQUIRE(put_text(
        "config.json",
        "{\"architectures\": [\"Own\"], \"v\": 3, \"n\": Infinity, \"num_hidden_layers\": 1}"));
    CHECK(!converts(NULL));
    CHECK_HAS(err.msg, "a key must be a number, a string, true or false, or a list of these");
}

/* One object of so many values, whose own name has so many bytes. */
static uint64_t steps_of_values(int n_name, int n_values) {
    const size_t cap = (size_t)n_name + 32 * (size_t)n_values + 256;
    char *text = ggl_calloc(cap, 1);
    size_t n = (size_t)snprintf(
        text, cap,
        "{\"architectures\": [\"Own\"], \"v\": 3, \"n\": 2, \"num_hidden_layers\": 1, \"");
    memset(text + n, 'k', (size_t)n_name);
    n += (size_t)n_name;
    n += (size_t)snprintf(text + n, cap - n, "\": {\"k\": 1");
    for (int i = 0; i < n_values; i++)
        n += (size_t)snprintf(text + n, cap - n, ", \"%d\": 1", i);
    snprintf(text + n, cap - n, "}}");
    CHECK(put_text("config.json", text));
    ggl_free(text);
    ggl_n_steps = 0;
    CHECK(!converts(NULL));
    CHECK_HAS(err.msg, ", and ");
    return ggl_n_steps;
}

/* A name is not read again for each value that is in its object. */
TEST(long_names_above_many_values) {
    const uint64_t few = steps_of_values(4, 2000), more = steps_of_values(4, 16000),
                   longer = steps_of_values(400, 2000);
    test_linear("values of config.json", few, more, 8);
    CHECK_MSG(longer < 2 * few,
              "%" PRIu64 " steps for a name of 400 bytes, %" PRIu64 " for one of 4", longer, few);
}

/* --- files that are none ---------------------------------------------------------------------- */

/* Nobody writes to the pipe, and the device has no end: neither is waited for. */
TEST(pipes_and_devices) {
    static const char *const name[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                       "own.arch"};
    const char *const tokenizer =
        "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\": "
        "{\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]}}";
    char path[600], words[700], arch[600];
    put_tensors(1, NULL, 0);
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    snprintf(arch, sizeof arch, "%s", test_path("own.arch"));
    params.arch_path = arch;
    for (int k = 0; k < 12; k++) {
        REQUIRE(put_config(3, 1, "") && put_text("tokenizer.json", tokenizer) &&
                put_text("tokenizer_config.json", "{}") && put_text("own.arch", own_arch));
        snprintf(path, sizeof path, "%s", test_path(name[k % 4]));
        REQUIRE(remove(path) == 0);
        REQUIRE(k < 4   ? mkfifo(path, 0600) == 0
                : k < 8 ? symlink("/dev/zero", path) == 0
                        : mkdir(path, 0700) == 0);
        CHECK(!convert(&params));
        snprintf(words, sizeof words, "%s: is %s", path,
                 k < 4   ? "a pipe that nobody writes to"
                 : k < 8 ? "a device, not a file"
                         : "a directory, not a file");
        CHECK_HAS(err.msg, words);
        REQUIRE(remove(path) == 0);
    }
}
