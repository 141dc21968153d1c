/* check-golden DIR: runs the reference models of DIR and prints a line for each: how far its logits
 * are from those recorded, and the limit. Then the texts of DIR/text. Exit code 1 if one is past
 * its limit, 77 if there is no such folder.
 *
 * Logits are compared with NAME.f64.npy (exact arithmetic) where there is one, else with
 * NAME.logits.npy (an established engine's). Float models: the largest difference, at most 1e-4.
 * Quantized ones on backends that round their activations to 8 bits, the CPU and Vulkan with integer
 * dot products: the mean difference, at most 1.15 times that of the engine whose mean is largest.
 * Other backends take activations as floats there, too, so that the limit is that of float models;
 * on lavapipe, the largest difference of any model is 1.7e-5. Matrix units round the columns of
 * quantized models to f16: at most 1e-2 (gpt2-q4_0: 4.1e-3). Exit code 77 also if the backend is not
 * there. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/npy.h"
#include "ggl/backends.h"
#include "llm/internal/sampler.h"
#include "llm/internal/session.h"

#define FLOAT_LIMIT 1e-4
#define HALF_LIMIT  1e-2
#define SLACK       1.15
#define MAX_TOKENS  4096

/* Largest mean difference among the engines that were recorded, for quantized models. */
static const struct {
    const char *name;
    double mean;
} quantized[] = {{"llama-q8_0", 0.0446},        {"llama-q4_0", 0.0421},     {"qwen2-q8_0", 0.0427},
                 {"qwen2-q4_0", 0.0415},        {"gpt2-q8_0", 0.0164},      {"gpt2-q4_0", 0.0159},
                 {"llama-w256-q4_k_m", 0.0299}, {"llama-w256-q6_k", 0.0299}};

typedef struct run {
    const char *dir;
    ggl_backend *backend, *reference;
    llm_model *model;
    llm_session *session;
    float *logits;
    int64_t n_vocab;
} run;

/* --- files ------------------------------------------------------------------------------------ */

static char *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *data = NULL;
    size_t n = 0, got;
    do {
        data = realloc(data, n + 65537);
        got = fread(data + n, 1, 65536, f);
        n += got;
    } while (got);
    fclose(f);
    data[n] = 0;
    *size = n;
    return data;
}

/* The numbers of a JSON list of integers. */
static int read_tokens(const char *path, int32_t *out) {
    size_t size;
    char *text = read_file(path, &size), *s = text;
    int n = 0;
    while (s && *s && n < MAX_TOKENS) {
        char *end;
        long v = strtol(s, &end, 10);
        if (end == s) {
            s++;
            continue;
        }
        out[n++] = (int32_t)v;
        s = end;
    }
    free(text);
    return n;
}

/* The string or number after "key": in flat JSON, escapes resolved, into out. */
static bool read_field(const char *json, const char *key, char *out, size_t size) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *s = strstr(json, quoted);
    if (!s)
        return false;
    s += strlen(quoted);
    s += strspn(s, " ");
    bool text = *s == '"';
    size_t n = 0;
    for (s += text; *s && n + 1 < size && *s != (text ? '"' : ',') && (text || *s != '\n'); s++) {
        if (*s == '\\')
            s++, out[n++] = *s == 'n' ? '\n' : *s;
        else
            out[n++] = *s;
    }
    out[n] = 0;
    return true;
}

/* --- running ---------------------------------------------------------------------------------- */

static void close_model(run *r) {
    llm_session_free(r->session);
    llm_model_free(r->model);
    r->session = NULL;
    r->model = NULL;
}

static bool open_model(run *r, const char *path, int64_t n_ctx, ggl_type kv, ggl_error *err) {
    llm_session_params p = llm_session_default();
    p.n_ctx = n_ctx;
    p.n_rows = 512;
    p.type_k = p.type_v = kv;
    p.backend = &r->backend;
    p.n_backends = 1;
    p.fold = r->reference;
    if (llm_model_open(&r->model, path, NULL, err) == GGL_OK &&
        llm_session_new(&r->session, r->model, &p, err) == GGL_OK &&
        llm_session_alloc(r->session, err) == GGL_OK)
        return true;
    close_model(r);
    return false;
}

static void take_logits(void *ctx, int64_t i, const float *logits) {
    run *r = ctx;
    memcpy(r->logits + i * r->n_vocab, logits, (size_t)r->n_vocab * sizeof *logits);
}

static bool eval_all(run *r, const int32_t *token, int n, ggl_error *err) {
    bool *want = malloc((size_t)n);
    memset(want, 1, (size_t)n);
    r->n_vocab = llm_session_n_vocab(r->session);
    r->logits = realloc(r->logits, (size_t)n * (size_t)r->n_vocab * sizeof *r->logits);
    llm_batch b = {.n = n, .token = token, .want = want, .each = take_logits, .ctx = r};
    bool ok = llm_session_eval(r->session, &b, err) == GGL_OK;
    free(want);
    return ok;
}

/* --- logits ----------------------------------------------------------------------------------- */

static bool rounds_activations(const ggl_backend *b) {
    return strncmp(b->name, "cpu", 3) == 0 || strstr(b->description, " idot");
}

static bool report(const run *r, const char *name, const float *got, const float *want, size_t n) {
    double max = 0, mean = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        max = d > max || isnan(d) ? d : max;
        mean += d / (double)n;
    }
    const bool halves = strstr(r->backend->description, " matrix");
    double limit = FLOAT_LIMIT, value = max;
    for (size_t k = 0; halves && k < sizeof quantized / sizeof *quantized; k++)
        limit = strcmp(quantized[k].name, name) == 0 ? HALF_LIMIT : limit;
    for (size_t k = 0; k < sizeof quantized / sizeof *quantized; k++)
        if (rounds_activations(r->backend) && strcmp(quantized[k].name, name) == 0) {
            limit = quantized[k].mean * SLACK;
            value = mean;
        }
    bool ok = value <= limit;
    printf("%-20s max %9.2e  mean %9.2e  %s at most %9.2e  %s\n", name, max, mean,
           value == max ? "max " : "mean", limit, ok ? "ok" : "TOO FAR");
    return ok;
}

static bool check_logits(run *r, const char *name) {
    char path[4096];
    ggl_error err = {0};
    static int32_t token[MAX_TOKENS];
    snprintf(path, sizeof path, "%s/%s.tokens.json", r->dir, name);
    int n = read_tokens(path, token);
    snprintf(path, sizeof path, "%s/%s.gguf", r->dir, name);
    if (n == 0 || !open_model(r, path, 0, GGL_F32, &err) || !eval_all(r, token, n, &err)) {
        printf("%-20s %s\n", name, err.msg);
        close_model(r);
        return false;
    }
    size_t count = (size_t)n * (size_t)r->n_vocab;
    npy_array want;
    snprintf(path, sizeof path, "%s/%s.f64.npy", r->dir, name);
    ggl_status st = npy_read(&want, path, &err);
    if (st == GGL_IO) { /* there is none */
        snprintf(path, sizeof path, "%s/%s.logits.npy", r->dir, name);
        st = npy_read(&want, path, &err);
    }
    bool ok = false;
    if (st != GGL_OK)
        printf("%-20s %s\n", name, err.msg);
    else if (want.n_rows != n || want.n_columns != r->n_vocab)
        printf("%-20s %s: [%" PRId64 ", %" PRId64 "], not [%d, %" PRId64 "]\n", name, path,
               want.n_rows, want.n_columns, n, r->n_vocab);
    else
        ok = report(r, name, r->logits, want.data, count);
    npy_fini(&want);
    close_model(r);
    return ok;
}

/* --- texts ------------------------------------------------------------------------------------ */

static void append(char *out, size_t size, ggl_str s) {
    size_t n = strlen(out);
    if (n + s.n < size) {
        memcpy(out + n, s.s, s.n);
        out[n + s.n] = 0;
    }
}

static bool write_text(run *r, const char *prompt, int n, char *out, size_t size, ggl_error *err) {
    const llm_tokenizer *t;
    llm_tokens ids = {0};
    llm_sampler *s = NULL;
    llm_sampler_params p = llm_sampler_default();
    p.temp = 0;
    bool ok =
        llm_model_tokenizer(r->model, &t, err) == GGL_OK &&
        llm_tokenize(t, prompt, strlen(prompt), LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL, &ids,
                     err) == GGL_OK &&
        llm_sampler_new(&s, &p, (int32_t)llm_session_n_vocab(r->session), 64, err) == GGL_OK &&
        llm_session_eval(r->session, &(llm_batch){.n = (int64_t)ids.n, .token = ids.id}, err) ==
            GGL_OK;
    *out = 0;
    for (int i = 0; i < n && ok; i++) {
        int32_t id = llm_sampler_next(s, llm_session_logits(r->session), NULL);
        if (llm_tokenizer_is_eog(t, id))
            break;
        append(out, size, llm_token_text(t, id, false));
        ok = i + 1 == n ||
             llm_session_eval(r->session, &(llm_batch){.n = 1, .token = &id}, err) == GGL_OK;
    }
    llm_sampler_free(s);
    llm_tokens_fini(&ids);
    return ok;
}

static bool check_text(run *r, const char *name) {
    static char prompt[1024], want[65536], got[65536];
    char path[4096], model[256], n[32];
    size_t size;
    ggl_error err = {0};
    snprintf(path, sizeof path, "%s/text/%s.json", r->dir, name);
    char *json = read_file(path, &size);
    bool ok = json && read_field(json, "model", model, sizeof model) &&
              read_field(json, "prompt", prompt, sizeof prompt) &&
              read_field(json, "n", n, sizeof n) && read_field(json, "text", want, sizeof want);
    free(json);
    if (!ok) {
        printf("text/%-15s cannot be read\n", name);
        return false;
    }
    snprintf(path, sizeof path, "%s/../models/%s", r->dir, model);
    ok = open_model(r, path, 0, GGL_F16, &err) &&
         write_text(r, prompt, atoi(n), got, sizeof got, &err);
    bool same = ok && strcmp(got, want) == 0;
    printf("text/%-15s %s\n", name, !ok ? err.msg : same ? "the same text  ok" : "ANOTHER TEXT");
    if (ok && !same)
        printf("  wanted: %s\n  got:    %s\n", want, got);
    close_model(r);
    return same;
}

/* --- all of them ------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The stems of the files in a folder that end so; sorted. */
static int list(const char *dir, const char *end, char **out, int most) {
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d)) && n < most;) {
        size_t len = strlen(e->d_name), tail = strlen(end);
        if (len > tail && strcmp(e->d_name + len - tail, end) == 0)
            out[n++] = strndup(e->d_name, len - tail);
    }
    if (d)
        closedir(d);
    qsort(out, (size_t)n, sizeof *out, by_name);
    return n;
}

int main(int argc, char **argv) {
    const char *backend = getenv("CHECK_BACKEND");
    if (argc < 2) {
        fprintf(stderr,
                "usage: check-golden DIR [NAME ..]   (models; text/NAME: texts; default: all)\n"
                "environment: CHECK_BACKEND=reference\n");
        return 2;
    }
    run r = {.dir = argv[1]};
    ggl_error err = {0};
    char *models[256], *texts[256], path[4096];
    int n_models = 0, n_texts = 0, failed = 0;
    DIR *there = opendir(r.dir);
    if (!there) {
        puts(
            "skipped: reference models that are files: not part of the repository, and found in no "
            "folder GGL_SHARED");
        return 77;
    }
    closedir(there);
    snprintf(path, sizeof path, "%s/text", r.dir);
    if (argc == 2) {
        n_models = list(r.dir, ".gguf", models, 256);
        n_texts = list(path, ".json", texts, 256);
    }
    for (int i = 2; i < argc; i++) {
        bool text = strncmp(argv[i], "text/", 5) == 0;
        if (text)
            texts[n_texts++] = strdup(argv[i] + 5);
        else
            models[n_models++] = strdup(argv[i]);
    }
    if (ggl_backend_open(&r.backend, backend ? backend : "cpu", NULL, &err) != GGL_OK ||
        ggl_backend_open(&r.reference, "reference", NULL, &err) != GGL_OK) {
        fprintf(stderr, "%s\n", err.msg);
        failed = err.status == GGL_UNSUPPORTED || err.status == GGL_NOT_FOUND ? 77 : 1;
        if (failed == 77)
            printf("skipped: %s\n", err.msg);
        for (int i = 0; i < n_models; i++)
            free(models[i]);
        for (int i = 0; i < n_texts; i++)
            free(texts[i]);
        return failed;
    }
    for (int i = 0; i < n_models; i++, free(models[i - 1]))
        failed += !check_logits(&r, models[i]);
    for (int i = 0; i < n_texts; i++, free(texts[i - 1]))
        failed += !check_text(&r, texts[i]);
    free(r.logits);
    ggl_backend_close(r.backend);
    ggl_backend_close(r.reference);
    printf("%d of %d past their limits\n", failed, n_models + n_texts);
    return failed > 0;
}
