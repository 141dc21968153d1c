/* Defaults of sampling that a model's file has. */
#include "llm/internal/file_sampling.h"

#include <math.h>
#include <stdio.h>

#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "sampler_impl.h"

const llm_sampling_key llm_sampling_keys[LLM_N_SAMPLING_KEYS] = {
#define SAMPLER_KEY(name, key, config) {"general.sampling." key, config, LLM_SAMPLER_NUMBER_##name},
#include "llm/internal/samplers.def"
};

typedef struct reading {
    llm_file_sampling *out;
    const ggl_gguf *file;
    llm_sampling_note *note;
    void *user;
} reading;

/* Says why a value is not used, or not all of it. */
static void say(const reading *r, bool is_foreign, const char *key, const char *what) {
    char text[400];
    if (!r->note)
        return;
    snprintf(text, sizeof text, "%s %s", key, what);
    r->note(r->user, is_foreign, text);
}

/* --- numbers ---------------------------------------------------------------------------------- */

static void read_number(const reading *r, const llm_sampling_key *k) {
    const ggl_gguf_value *v = ggl_gguf_find(r->file, k->key);
    const llm_sampler_number *n = &llm_sampler_numbers[k->number];
    const bool is_top_k = k->number == LLM_SAMPLER_NUMBER_top_k;
    char what[200];
    ggl_error err;
    double x = 0;
    if (!v)
        return;
    if (v->is_array || !ggl_gguf_number(v, 0, &x)) {
        say(r, false, k->key, "is no number; it is not used");
        return;
    }
    if (is_top_k && x == -1) /* some programs write "all" so */
        x = 0;
    if (k->number == LLM_SAMPLER_NUMBER_mirostat && x == 1) {
        say(r, true, k->key, "is 1, but only 0 (off) and 2 are supported; it is not used");
        return;
    }
    if (llm_sampler_set_number(&r->out->p, n->field, x, &err) == GGL_OK) {
        r->out->sets[k->number] = true;
        return;
    }
    snprintf(what, sizeof what, "is %.9g, but must be %s%s; it is not used", x,
             n->is_int && x != floor(x) ? "an integer, " : "", n->must_be);
    say(r, false, k->key, what);
}

/* --- the order -------------------------------------------------------------------------------- */

/* Names of a sequence that are left out: how many, and the first of them. */
typedef struct left_out {
    size_t n;
    char first[160]; /* the name, and what is wrong with it */
} left_out;

/* Adds a stage, if there is one of that spelling, and it is not in the order yet. */
static void add(const reading *r, int stage, const char *s, size_t n, left_out *left) {
    char name[80];
    llm_sampler_params *p = &r->out->p;
    char *order = r->out->order;
    const size_t used = strlen(order);
    int i = 0;
    while (i < p->n_stages && p->stage[i] != stage)
        i++;
    if (stage >= 0 && i == p->n_stages) {
        p->stage[p->n_stages++] = (uint8_t)stage;
        snprintf(order + used, sizeof r->out->order - used, "%s%s", used > 0 ? ";" : "",
                 llm_sampler_rows[stage].name);
    } else if (left->n++ == 0) {
        ggl_show(name, sizeof name, s, n < 40 ? n : 40);
        snprintf(left->first, sizeof left->first, "names '%s', which is %s", name,
                 stage < 0 ? "no sampler here" : "in the sequence before");
    }
}

/* Names, separated by ';', or the letter of each. */
static void read_order(const reading *r) {
    const ggl_gguf_value *v = ggl_gguf_find(r->file, LLM_SAMPLING_SEQUENCE);
    left_out left = {0};
    char what[256];
    ggl_str s;
    if (!v)
        return;
    if (v->is_array || !ggl_gguf_string(v, 0, &s)) {
        say(r, false, LLM_SAMPLING_SEQUENCE, "is no text; it is not used");
        return;
    }
    const bool letters = !memchr(s.s, ';', s.n) && llm_sampler_find_stage(s.s, s.n, false) < 0;
    for (size_t at = 0; at < s.n;) {
        const char *from = s.s + at, *end = letters ? NULL : memchr(from, ';', s.n - at);
        const size_t n = letters ? 1 : end ? (size_t)(end - from) : s.n - at;
        if (n > 0)
            add(r, llm_sampler_find_stage(from, n, letters), from, n, &left);
        at += n + !letters;
    }
    snprintf(what, sizeof what, "%s; %s", left.first,
             left.n > 1 ? "such names are left out" : "it is left out");
    if (left.n > 0)
        say(r, true, LLM_SAMPLING_SEQUENCE, what);
    if (r->out->p.n_stages == 0)
        say(r, true, LLM_SAMPLING_SEQUENCE, "names no sampler; it is not used");
}

/* --- all -------------------------------------------------------------------------------------- */

void llm_file_sampling_read(llm_file_sampling *out, const ggl_gguf *file, llm_sampling_note *note,
                            void *user) {
    const reading r = {out, file, note, user};
    *out = (llm_file_sampling){.p = llm_sampler_default()};
    if (!file)
        return;
    for (int i = 0; i < LLM_N_SAMPLING_KEYS; i++)
        read_number(&r, &llm_sampling_keys[i]);
    read_order(&r);
}

const char *llm_file_sampling_text(const llm_file_sampling *s, char *buf, size_t size) {
    size_t used = 0;
    buf[0] = 0;
    for (int i = 0; i < LLM_SAMPLER_N_NUMBERS && used < size; i++)
        if (s->sets[i])
            used += (size_t)snprintf(buf + used, size - used, "%s%s %g", used > 0 ? ", " : "",
                                     llm_sampler_numbers[i].field,
                                     llm_sampler_get_number(&s->p, &llm_sampler_numbers[i]));
    if (s->order[0] && used < size)
        snprintf(buf + used, size - used, "%ssamplers %s", used > 0 ? ", " : "", s->order);
    return buf;
}
