#include "record.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/json_text.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/number.h"
#include "ggl/internal/os_stream.h"
#include "ggl/types.h"
#include "ggl/version.h"
#include "llm/internal/logprobs.h"

bool record_token(record *r, int32_t id, const float *logits, int32_t n_vocab) {
    if (!ggl_grow(&r->id, &r->cap_id, r->n + 1, sizeof *r->id) ||
        !ggl_grow(&r->logprob, &r->cap_logprob, r->n + 1, sizeof *r->logprob))
        return false;
    llm_logprob chosen = {.id = id, .logprob = NAN};
    if (logits) /* else the token was found by a search */
        (void)llm_logprobs(logits, n_vocab, &chosen, NULL, 0);
    r->id[r->n] = id;
    r->logprob[r->n++] = chosen.logprob;
    return true;
}

bool record_text(record *r, const char *text, size_t n) {
    if (!ggl_grow(&r->text, &r->cap_text, r->n_text + n + 1, 1))
        return false;
    if (n > 0)
        memcpy(r->text + r->n_text, text, n);
    r->n_text += n;
    return true;
}

void record_clear(record *r) {
    r->n = r->n_text = 0;
}

void record_fini(record *r) {
    ggl_free(r->id);
    ggl_free(r->logprob);
    ggl_free(r->text);
    *r = (record){0};
}

/* --- printing --------------------------------------------------------------------------------- */

static void put_text(FILE *out, const char *name, const char *s, size_t n) {
    fprintf(out, "\"%s\": ", name);
    if (s)
        json_put_string(out, s, n);
    else
        fputs("null", out);
}

static void put_string(FILE *out, const char *name, const char *s) {
    put_text(out, name, s, s ? strlen(s) : 0);
}

static void put_ids(FILE *out, const char *name, const int32_t *id, size_t n) {
    fprintf(out, "\"%s\": [", name);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%" PRId32, i ? ", " : "", id[i]);
    fputs("]", out);
}

/* A number of the JSON kind: infinities and NaN are null. */
static void put_number(FILE *out, double x, int digits) {
    if (isfinite(x))
        fprintf(out, "%.*g", digits, x);
    else
        fputs("null", out);
}

static void put_logprobs(FILE *out, const record *r) {
    fputs("\"logprobs\": [", out);
    for (size_t i = 0; i < r->n; i++) {
        fputs(i ? ", " : "", out);
        put_number(out, r->logprob[i], 6);
    }
    fputs("]", out);
}

/* Writes as few digits as say exactly which float it is. */
static void put_float(FILE *out, float x) {
    char text[GGL_NUMBER_TEXT];
    fputs(isfinite(x) ? ggl_number_shortest(text, (double)x, true) : "null", out);
}

/* The numbers of the sampler's parameters. */
static void put_sampling(FILE *out, const llm_sampler_params *p) {
    fputs("\"sampling\": {", out);
    for (size_t i = 0; i < LLM_SAMPLER_N_NUMBERS; i++) {
        fprintf(out, "\"%s\": ", llm_sampler_numbers[i].name);
        put_float(out, (float)llm_sampler_get_number(p, &llm_sampler_numbers[i]));
        fputs(", ", out);
    }
    fputs("\"stages\": [", out);
    const int32_t n_stages = p->n_stages > 0 ? p->n_stages : LLM_SAMPLER_N_STAGES;
    for (int32_t i = 0; i < n_stages; i++) {
        const int32_t stage = p->n_stages > 0 ? p->stage[i] : i;
        fprintf(out, "%s\"%s\"", i ? ", " : "", llm_sampler_stage_name((llm_sampler_stage)stage));
    }
    fputs("], \"dry_breakers\": [", out);
    for (size_t i = 0; i < p->n_dry_breakers; i++) {
        fputs(i ? ", " : "", out);
        json_put_string(out, p->dry_breakers[i].s, p->dry_breakers[i].n);
    }
    fputs("], \"logit_bias\": {", out);
    for (size_t i = 0; i < p->n_bias; i++) {
        fprintf(out, "%s\"%" PRId32 "\": ", i ? ", " : "", p->bias[i].id);
        if (isinf(p->bias[i].bias))
            fputs("\"-inf\"", out);
        else
            put_float(out, p->bias[i].bias);
    }
    fputs("}}", out);
}

/* FNV-1a of a text. */
static uint64_t digest(const char *s, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return h;
}

static void put_model(FILE *out, const record_run *run) {
    const ggl_gguf *file = llm_model_file(run->model);
    size_t n;
    const char *text = llm_arch_text(llm_model_arch(run->model), &n);
    fputs("\"model\": {", out);
    put_string(out, "file", ggl_gguf_name(file));
    fprintf(out, ", \"digest\": \"%016" PRIx64 "\"}, \"descriptor\": {", ggl_gguf_digest(file));
    put_string(out, "origin", llm_model_arch_origin(run->model));
    fprintf(out, ", \"digest\": \"%016" PRIx64 "\"}", digest(text, n));
}

static void put_session(FILE *out, const record_run *run) {
    fprintf(out, "\"context\": %" PRId64 ", \"cache_type_k\": \"%s\", \"cache_type_v\": \"%s\", ",
            llm_session_n_ctx(run->session), ggl_type_get(run->params->type_k)->name,
            ggl_type_get(run->params->type_v)->name);
    put_string(out, "backends", run->backends);
}

static void put_timings(FILE *out, const record *r, const record_run *run) {
    fprintf(out,
            "\"timings\": {\"load_ms\": %.3f, \"prompt_ms\": %.3f, \"prompt_tokens\": %zu, "
            "\"prompt_reused\": %" PRId64 ", \"generation_ms\": %.3f, \"generated_tokens\": %zu, "
            "\"repacking_ms\": %.3f}",
            run->load * 1e3, run->prompt * 1e3, run->prompt_ids->n, run->n_reused,
            run->generation * 1e3, r->n, run->repacking * 1e3);
}

static void put_line(const record *r, const record_run *run, FILE *out) {
    fputs("{", out);
    put_text(out, "prompt", run->prompt_text, run->n_prompt_text);
    fputs(", ", out);
    put_ids(out, "prompt_ids", run->prompt_ids->id, run->prompt_ids->n);
    fputs(", ", out);
    put_text(out, "text", r->text ? r->text : "", r->n_text);
    fputs(", ", out);
    put_ids(out, "ids", r->id, r->n);
    fputs(", ", out);
    put_logprobs(out, r);
    fputs(", ", out);
    if (run->content.s) {
        put_text(out, "content", run->content.s, run->content.n);
        fputs(", \"tool_calls\": [", out);
        fwrite(run->calls.s ? run->calls.s : "", 1, run->calls.n, out);
        fputs("], ", out);
    }
    put_string(out, "finish", run->finish);
    fprintf(out, ", \"seed\": %" PRIu64 ", \"n_predict\": %" PRId64 ", ", run->sampling->seed,
            run->n_predict);
    put_sampling(out, run->sampling);
    fputs(", ", out);
    put_session(out, run);
    fputs(", ", out);
    put_model(out, run);
    fputs(", ", out);
    put_timings(out, r, run);
    fputs(", ", out);
    put_string(out, "version", ggl_version());
    fputs("}\n", out);
}

char *record_line(const record *r, const record_run *run, size_t *n) {
    os_memory_stream line;
    if (!ggl_os_memory_stream_open(&line))
        return NULL;
    put_line(r, run, line.to);
    if (!ggl_os_memory_stream_close(&line))
        return NULL;
    *n = line.n;
    return line.text;
}
