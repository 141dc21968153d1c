#include "sampling_options.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/number.h"
#include "texts.h"

const char *const sampling_mirostat_choices[] = {"0", "2", NULL};

const sampling_options sampling_defaults = {
#define SAMPLER_NUMBER(kind, name, value, ...) .name = value,
#include "llm/internal/samplers.def"
};

/* The parameter that a value of an option stands for. */
#define FLOAT(x)    (float)(x)
#define INT(x)      (int32_t)(x)
#define TOP_K(x)    (int32_t)(x)
#define MIROSTAT(x) (2 * (x))

/* Reads ID+X, ID-X or ID-inf. */
static bool read_bias(const char *s, llm_logit_bias *out) {
    const size_t n = strspn(s, "0123456789");
    char digits[16] = "";
    int64_t id;
    double x = INFINITY;
    bool range;
    if (n == 0 || n >= sizeof digits || (s[n] != '+' && s[n] != '-'))
        return false;
    memcpy(digits, s, n);
    if (!args_read_int(digits, &id, &range) || id > INT32_MAX)
        return false;
    const char *number = s + n + 1;
    const bool is_number =
        strspn(number, ".0123456789") > 0 && args_read_float(number, &x, &range) && x <= FLT_MAX;
    if (!is_number && strcmp(s + n, "-inf") != 0)
        return false;
    *out = (llm_logit_bias){(int32_t)id, (float)(s[n] == '-' ? -x : x)};
    return true;
}

static int read_biases(const char *tool, sampling_options *o) {
    if (o->bias || o->biases.n == 0)
        return -1;
    o->bias = ggl_calloc(o->biases.n, sizeof *o->bias);
    if (!o->bias)
        return tool_error(tool, 1, "out of memory");
    for (size_t i = 0; i < o->biases.n; i++)
        if (!read_bias(o->biases.s[i], &o->bias[i]))
            return tool_error(
                tool, 2,
                "--logit-bias: '%s' is not a token's id, a sign and a number, such as "
                "15043+1, 15043-0.5 or 15043-inf",
                o->biases.s[i]);
    o->n_biases = o->biases.n;
    return -1;
}

static int read_breakers(const char *tool, sampling_options *o, bool escape) {
    if (o->breaker || o->breakers.n == 0)
        return -1;
    size_t first = 0; /* after the last "none", as in llama.cpp */
    for (size_t i = 0; i < o->breakers.n; i++)
        first = strcmp(o->breakers.s[i], "none") == 0 ? i + 1 : first;
    o->n_breakers = o->breakers.n - first;
    o->breaker = read_texts(o->breakers.s + first, o->n_breakers, escape);
    return o->breaker ? -1 : tool_error(tool, 1, "out of memory");
}

static int read_order(const char *tool, sampling_options *o) {
    llm_sampler_params p = {.size = sizeof p};
    ggl_error err = {0};
    if (o->names && o->letters)
        return tool_error(tool, 2, "--samplers and --sampling-seq cannot be used together");
    if (o->names && llm_sampler_read_names(&p, o->names, &err) != GGL_OK)
        return tool_error(tool, 2, "--samplers: %s", err.msg);
    if (o->letters && llm_sampler_read_letters(&p, o->letters, &err) != GGL_OK)
        return tool_error(tool, 2, "--sampling-seq: %s", err.msg);
    memcpy(o->stage, p.stage, sizeof o->stage);
    o->n_stages = p.n_stages;
    return -1;
}

int sampling_options_check(const char *tool, sampling_options *o, bool escape) {
    int code = read_order(tool, o);
    if (code < 0)
        code = read_biases(tool, o);
    return code < 0 ? read_breakers(tool, o, escape) : code;
}

int sampling_options_check_vocab(const char *tool, const sampling_options *o, int64_t n_vocab) {
    for (size_t i = 0; i < o->n_biases; i++)
        if (o->bias[i].id >= n_vocab)
            return tool_error(
                tool, 2, "--logit-bias: token %" PRId32 " is not in the vocabulary of %" PRId64,
                o->bias[i].id, n_vocab);
    return -1;
}

/* Options of a parameter: the shortest number that says which float it is, for who prints it. */
static double of_float(float x) {
    char text[GGL_NUMBER_TEXT];
    return strtod(ggl_number_shortest(text, (double)x, true), NULL);
}

#define OF_FLOAT(x)    of_float(x)
#define OF_INT(x)      (x)
#define OF_TOP_K(x)    (x)
#define OF_MIROSTAT(x) ((x) / 2)

/* What the file sets and no option does. */
static llm_file_sampling left_of(const llm_file_sampling *file, const sampling_options *o) {
    llm_file_sampling left = *file;
    for (size_t i = 0; i < LLM_SAMPLER_N_NUMBERS; i++)
        left.sets[i] = left.sets[i] && !o->given[i];
    if (o->letters || (o->names && o->names != file->order))
        left.order[0] = 0;
    return left;
}

void sampling_options_resolve(sampling_options *o, const llm_file_sampling *file) {
    const llm_file_sampling left = left_of(file, o);
#define SAMPLER_NUMBER(kind, name, ...)                                                            \
    if (left.sets[LLM_SAMPLER_NUMBER_##name])                                                      \
        o->name = OF_##kind(left.p.name);
#include "llm/internal/samplers.def"
    if (!left.order[0])
        return;
    o->names = file->order;
    memcpy(o->stage, file->p.stage, sizeof o->stage);
    o->n_stages = file->p.n_stages;
}

static void print_note(void *tool, const char *text) {
    tool_note(tool, "%s", text);
}

void sampling_options_note(const char *tool, const sampling_options *o, const llm_context *c,
                           const llm_opening *opening) {
    const llm_file_sampling left = left_of(llm_opened_sampling(c), o);
    llm_note_sampling(c, opening, &left, print_note, (void *)(uintptr_t)tool);
}

llm_sampler_params sampling_params(const sampling_options *o) {
    llm_sampler_params p = llm_sampler_default();
#define SAMPLER_NUMBER(kind, name, ...) p.name = kind(o->name);
#include "llm/internal/samplers.def"
    p.bias = o->bias;
    p.n_bias = o->n_biases;
    if (o->breakers.n > 0) {
        p.dry_breakers = o->breaker;
        p.n_dry_breakers = o->n_breakers;
    }
    memcpy(p.stage, o->stage, sizeof p.stage);
    p.n_stages = o->n_stages;
    return p;
}

void sampling_options_fini(sampling_options *o) {
    args_list_fini(&o->breakers);
    args_list_fini(&o->biases);
    ggl_free(o->breaker);
    ggl_free(o->bias);
}
