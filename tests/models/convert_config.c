/* llm-convert and config.json: values that no line of a section reads. */
#include <math.h>

#include "config_test.h"
#include "ggl/internal/show.h"

/* Values that lines name, and that none does. */
static const struct {
    const char *lines, *config, *words; /* NULL: it is converted */
} readings[] = {
    {OWN(""), BEGIN "'clip': 8}",
     "clip = 8. If they change what the model computes, the convert section in "},
    {OWN(""), BEGIN "'clip': 8}",
     "own.arch:5 lacks lines for them; if not, add there: ignore config.clip"},
    {OWN(""), BEGIN "'a': true, 'b': {'c': [1, 2], 'd': 'x', 'e': null}, 'f': 0.5}",
     "a = true, b.c = [1, 2], b.d = \"x\", f = 0.5."},
    {OWN(""), BEGIN "'a': null, 'b': [], 'c': {}, 'd': {'e': null}}", NULL},
    {OWN("  ignore config.clip\n"), BEGIN "'clip': 8}", NULL},
    {OWN("  ignore config.a.b, \"x\"\n"), BEGIN "'a': {'b': {'c': 1}}}", NULL},
    {OWN("  ignore config.a.b\n"), BEGIN "'a': {'b': 1, 'bc': 2}}", "does not read: a.bc = 2. If"},
    {OWN("  require (config.a ?? 1) == 1\n"), BEGIN "'a': 1}", NULL},
    {OWN("  .k <- 1 if true else config.a\n"), BEGIN "'a': 1}",
     NULL}, /* in a branch that is not taken */
    {OWN("  .k <- config.a.b ?? 1\n"), BEGIN "'a': 5}",
     "does not read: a = 5. If"}, /* a.b does not match a */
    {OWN("  .k <- 1 if has(config.a) else 2\n"), BEGIN "'a': {'b': 1}}",
     "does not read: a.b = 1. If"},
    {OWN("  .k <- config.l[1]\n"), BEGIN "'l': [1, 2]}", NULL},
    {OWN(""),
     BEGIN "'torch_dtype': 'x', 'hidden_dropout': 0.5, 'task_specific_params': {'a': {'b': 1}}}",
     NULL},
    {OWN(""), BEGIN "'logit_scale': 1.0, 'rope_interleaved': false, 'activation': 'swiglu'}", NULL},
    {OWN(""), BEGIN "'logit_scale': 16, 'rope_interleaved': true, 'activation': 'swiglux'}",
     "logit_scale = 16, rope_interleaved = true, activation = \"swiglux\"."},
    {OWN(""), BEGIN "'quantization_config': {'quant_method': 'quark'}}",
     "config.json has quantization_config.quant_method = \"quark\": the weights are quantized in a "
     "way that is not read: convert the folder of the original weights; what is read: fp8 mxfp4 "
     "compressed-tensors gptq"},
    {OWN(""),
     BEGIN "'quantization_config': {'quant_method': 'fp8', 'fmt': 'e4m3', 'activation_scheme': "
           "'blocks'}}",
     "config.json has quantization_config.activation_scheme = \"blocks\": the weights are "
     "quantized in a way that is not read: convert the folder of the original weights; what is "
     "read: dynamic static"},
    {OWN("  require config.quantization_config.quant_method == \"none\"\n"),
     BEGIN "'quantization_config': {'quant_method': 'none'}}", NULL},
    /* a name may contain dots, brackets, NULs: it is not a path */
    {OWN("  .k <- config.a.b ?? 1\n"), BEGIN "'a.b': 5}", "does not read: a\\.b = 5. If"},
    {OWN("  .k <- config.a.b\n"), BEGIN "'a': {'b': 5}, 'a.b': 5}", "does not read: a\\.b = 5. If"},
    {OWN("  ignore config.a.b\n"), BEGIN "'a.b': 5}", "does not read: a\\.b = 5. If"},
    {OWN(""), BEGIN "\"torch_dtype\\u0000\": 5}", "does not read: torch_dtype\\u0000 = 5. If"},
    {OWN(""), BEGIN "'task_specific_params.x': 5}", "task_specific_params\\.x = 5"},
    {OWN(""), BEGIN "'transformers.js_config': {'x': 1}}", NULL},
    {OWN(""), BEGIN "'transformers': {'js_config': 1}}", "transformers.js_config = 1"},
    /* lists of objects */
    {OWN(""), BEGIN "'l': [1, {'x': 2, 'dropout': 1}, [3]]}", "l[] = 1, l[].x = 2, l[] = [3]. If"},
    {OWN(""), BEGIN "'l': [{'x': 2}]}",
     "ignore config.l. To continue at your own risk: --ignore-config 'l[].x'"},
    {OWN("  ignore config.l\n"), BEGIN "'l': [1, {'x': 2}]}", NULL},
    /* switches: off is harmless, on is not */
    {OWN(""),
     BEGIN "'alibi': false, 'parallel_attn': false, 'use_parallel_residual': false, "
           "'sliding_window': -0.0}",
     NULL},
    {OWN(""), BEGIN "'alibi': true, 'parallel_attn': true, 'use_parallel_residual': true}",
     "alibi = true, parallel_attn = true, use_parallel_residual = true. If"},
    {OWN(""), BEGIN "'alibi': 'false', 'rope_ratio': '1'}",
     "alibi = \"false\", rope_ratio = \"1\". If"},
    {OWN(""), BEGIN "'logit_scale': 1.0000000000001}", "logit_scale = 1.0000000000000999. If"},
    /* a section about a part: the names of known values are those in it, too */
    {OWN("  only config.part\n"), BEGIN "'a': 5, 'part': {'dropout': 1}}", NULL},
    {OWN("  only config.part\n"), BEGIN "'a': 5, 'part': {'b': 1, 'o': {'c': 2}}}",
     "does not read: part.b = 1, part.o.c = 2. If"},
    {OWN("  only config.part\n"), BEGIN "'a': 5}",
     "the folder has no such part: config.part is missing in config.json"},
    {OWN("  only config.part\n"), BEGIN "'part': null}",
     "the folder has no such part: config.part is missing in config.json"},
    {OWN("  only config.part\n"), BEGIN "'a': 1, 'part': 5}", "does not read: part = 5. If"},
    {OWN("  ignore config\n"), BEGIN "'a': 1}",
     "'ignore' needs names of source tensors in quotes, or values config.x"},
    {OWN("  ignore config.a + 1\n"), BEGIN "'a': 1}", "'ignore' needs plain names of values"},
    {OWN("  use nothing\n"), BEGIN "'a': 1}", "the prelude has no lines named 'nothing'"},
};

TEST(unread) {
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        double k;
        bool ok = own(readings[i].lines, readings[i].config, &k);
        CHECK_MSG(ok == !readings[i].words, "case %zu: %s", i, ok ? "converted" : err.msg);
        if (!ok && readings[i].words)
            CHECK_HAS(err.msg, readings[i].words);
    }
}

/* Many values, long names, deep objects: the message stays in its bounds. */
TEST(many_unread) {
    char *text = malloc(1 << 20), *to = text + sprintf(text, "%s", BEGIN);
    double k;
    for (int i = 0; i < 5000; i++)
        to += sprintf(to, "'name_%d': %d, ", i, i + 1);
    for (int i = 0; i < 60; i++)
        to += sprintf(to, "'%0100d': {", i);
    to += sprintf(to, "'x': 1");
    memset(to, '}', 61);
    to[61] = 0;
    CHECK(!own(OWN(""), text, &k));
    CHECK_HAS(err.msg, "name_0 = 1, name_1 = 2, ");
    CHECK_HAS(err.msg, " more. If they change");
    free(text);
}

static void check_utf8(const char *text) {
    for (const char *s = text; *s; s += ggl_utf8_length(s, strlen(s)))
        if (!CHECK_MSG(ggl_utf8_length(s, strlen(s)) > 0, "no UTF-8 at '%.12s' in: %s", s, text))
            break;
    CHECK_MSG(!strstr(text, "\\x"), "half of a character is shown as bytes: %s", text);
}

/* Messages cut values and names between characters. */
TEST(cut_messages) {
    static const char *const lines[] = {
        OWN("  require config.x in [\"a\"], \"odd x\"\n"), OWN("  require config.x == \"a\"\n"),
        OWN("  .k <- 1 + config.x\n"), OWN("  .k <- value(\"a\xc3\xb6\")\n"),
        OWN("  .k <- config.x.y\n")};
    char text[1000];
    double k;
    for (int shift = 0; shift < 2; shift++)
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            char *to = text + sprintf(text, BEGIN "'x': '%s", shift ? "a" : "");
            for (int n = 0; n < 150; n++)
                to += sprintf(to, "\xc3\xb6");
            sprintf(to, "\"}");
            CHECK(!own(lines[i], text, &k));
            check_utf8(err.msg);
        }
}

/* A long path is not looked up by its beginning, and is cut between characters. */
TEST(long_paths) {
    char text[8000], *to = text + sprintf(text, "%s", BEGIN), word[600];
    double k;
    memset(word, 'a', 600);
    sprintf(to, "'%.500s': 1}", word);
    CHECK(!own(OWN(""), text, &k));
    CHECK_HAS(err.msg, ".. = 1. If they change");
    sprintf(to, "'x': {'%.510s_dropout': 1}}", word); /* a pattern of the table would fit */
    CHECK(!own(OWN(""), text, &k));
    CHECK_HAS(err.msg, "x.aaaaa");
    to = text + sprintf(text, "%s\"", BEGIN);
    for (int i = 0; i < 300; i++)
        to += sprintf(to, i == 0 ? "b" : "\xc3\xb6");
    sprintf(to, "\": \"%s\"}",
            "\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3"
            "\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6z\xc3\xb6\xc3\xb6"
            "\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3"
            "\xb6\xc3\xb6\xc3\xb6");
    CHECK(!own(OWN(""), text, &k));
    check_utf8(err.msg);
}
