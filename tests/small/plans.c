/* Writes plans for boards, and the logits that the CPU gives for the same tokens, into a folder; compare.py compiles and compares them.
 *
 *     test-small-plans FOLDER toys [N [VARIANTS [NAMES]]]   made-up models of N of the built-in descriptors, other ones each day, in so many
 *                                                           variants; or of these (llama.arch)
 *     test-small-plans FOLDER files [TYPE[:CACHE]]=MODEL..   models by llm_open: q8_0:f16=model.gguf, =builtin:stories
 *
 * FOLDER/NAME.c and .h are a plan, FOLDER/NAME.bits its logits; FOLDER/list names them, with the number of tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../models/toy_run.h"
#include "llm/internal/small.h"
#include "llm/llm.h"
#include "llm/small.h"
#include "opening.h"
#include "sample.h"

enum { N_TOKENS = 70 /* beyond a page */, N_STORY = 5 };

static FILE *list;
static int failures;

static void fail(const char *name, const char *text) {
    fprintf(stderr, "%s: %s\n", name, text);
    failures++;
}

/* The tokens and the logits of a plan. */
static void put(const char *folder, const char *name, const int32_t *token, int n,
                const float *logits, int64_t n_vocab) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.bits", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(logits, sizeof *logits, (size_t)(n * n_vocab), f) != (size_t)(n * n_vocab))
        fail(name, "the logits cannot be written");
    if (f)
        fclose(f);
    fprintf(list, "%s", name);
    for (int i = 0; i < n; i++)
        fprintf(list, " %d", (int)token[i]);
    fputc('\n', list);
}

/* --- made-up models --------------------------------------------------------------------------- */

static int32_t toy_token(int64_t n_tokens, int i) { /* as toy_eval */
    const int32_t id = (int32_t)((uint32_t)i * 2654435761u >> 7) % (int32_t)n_tokens;
    return id < 0 ? id + (int32_t)n_tokens : id;
}

static void one_toy(const char *folder, ggl_backend *cpu, ggl_backend *fold, const char *name,
                    const char *text, size_t size, int variant, ggl_type kv, int number) {
    toy_model t;
    toy_run r = {0};
    ggl_error err = {0};
    if (!toy_open(&t, name, text, size, variant, &err)) {
        fail(name, err.msg);
        return;
    }
    char plan[64], path[1024];
    snprintf(plan, sizeof plan, "toy%d", number);
    snprintf(path, sizeof path, "%s/%s.c", folder, plan);
    const llm_small_source s = {.arch = t.arch,
                                .weights = llm_arch_toy_source(t.toy),
                                .name = name,
                                .n_ctx = TOY_CTX,
                                .type_k = kv,
                                .type_v = kv,
                                .fold = fold,
                                .fold_products = cpu};
    llm_small_bytes bytes;
    const ggl_status st = llm_small_write(&s, path, &bytes, &err);
    if (st != GGL_OK) {
        /* no text token by token, or heads too short for a cache with blocks */
        if (st != GGL_UNSUPPORTED && kv == GGL_F16)
            fail(name, err.msg);
        printf("%s (%s): %s\n", name, llm_arch_toy_text(t.toy), err.msg);
        toy_close(&t);
        return;
    }
    int32_t token[N_TOKENS];
    float *logits = NULL;
    if (!toy_start(&r, &t, &cpu, 1, fold, -1, kv, &err) ||
        !(logits = malloc(N_TOKENS * (size_t)r.n_vocab * sizeof *logits)) ||
        !toy_prompt(&r, 0, N_TOKENS, 7, logits, &err)) {
        fail(name, err.msg);
    } else {
        for (int i = 0; i < N_TOKENS; i++)
            token[i] = toy_token(r.n_tokens, i);
        put(folder, plan, token, N_TOKENS, logits, r.n_vocab);
        printf("%s is %s (%s)\n", plan, name, llm_arch_toy_text(t.toy));
    }
    free(logits);
    toy_stop(&r);
    toy_close(&t);
}

static void toys(const char *folder, int wanted, int n_variants, const char *only) {
    ggl_backend *cpu = NULL, *fold = NULL;
    ggl_error err = {0};
    const char *name, *text;
    size_t size;
    static const ggl_type types[] = {GGL_F16, GGL_F32, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
    const uint64_t seed = sample_seed();
    int number = 0;
    if (ggl_backend_open(&cpu, "cpu", NULL, &err) != GGL_OK ||
        ggl_backend_open(&fold, "reference", NULL, &err) != GGL_OK)
        fail("a backend", err.msg);
    for (int k = 0; !failures && llm_arch_builtin(k, &name, &text, &size); k++) {
        if (*only ? !strstr(only, name) : !sampled(k, wanted))
            continue;
        llm_arch *arch = NULL;
        if (llm_arch_parse(&arch, text, size, name, &err) != GGL_OK) {
            fail(name, err.msg);
            break;
        }
        const int n = llm_arch_toy_n_variants(arch);
        llm_arch_free(arch);
        for (int v = 0; v < n_variants; v++) {
            const uint64_t h = sample_mix(seed + (uint64_t)k * 64 + (uint64_t)v);
            one_toy(folder, cpu, fold, name, text, size,
                    n_variants > 1 && v < 2 ? v : (int)(h % (uint64_t)n),
                    n_variants > 1 && v < 2 ? GGL_F16 : types[h / 64 % 5], number++);
        }
    }
    ggl_backend_close(cpu);
    ggl_backend_close(fold);
}

/* Writes the tokens of all texts, and the texts of these, as run_plans.c prints them. */
static void put_words(const char *folder, const char *name, const llm_tokenizer *t) {
    static const char *const texts[] = {
#define TEXT(text) text,
#include "texts.h"
    };
    char path[1024];
    ggl_error err = {0};
    snprintf(path, sizeof path, "%s/%s.words", folder, name);
    FILE *f = fopen(path, "w");
    for (unsigned k = 0; f && k < 4 * (sizeof texts / sizeof *texts); k++) {
        llm_tokens ids = {0};
        if (llm_tokenize(t, texts[k / 4], strlen(texts[k / 4]), k % 4, &ids, &err) != GGL_OK)
            fail(name, err.msg);
        for (size_t i = 0; i < ids.n; i++)
            fprintf(f, "%d ", (int)ids.id[i]);
        fprintf(f, "|");
        for (size_t i = 0; i < ids.n; i++) {
            const ggl_str s = llm_token_text(t, ids.id[i], false);
            for (size_t j = 0; j < s.n; j++)
                fprintf(f, "%02x", (unsigned char)s.s[j]);
        }
        fprintf(f, "\n");
        llm_tokens_fini(&ids);
    }
    if (!f || fclose(f) != 0)
        fail(name, "the tokens cannot be written");
}

/* --- files ------------------------------------------------------------------------------------ */

/* what: [TYPE[:CACHE]]=MODEL */
static void one_file(const char *folder, const char *what, int number) {
    char type[64] = "", plan[32], path[1024];
    const char *model = strchr(what, '=') + 1;
    snprintf(type, sizeof type, "%.*s", (int)(model - 1 - what), what);
    char *cache = strchr(type, ':');
    if (cache)
        *cache++ = 0;
    ggl_error err = {0};
    llm_context *c = NULL;
    llm_small_result result = {.size = sizeof result};
    const llm_small_params p = {.size = sizeof p,
                                .n_ctx = 64,
                                .type = *type ? type : NULL,
                                .cache_type_k = cache,
                                .cache_type_v = cache};
    const llm_open_params o = {.size = sizeof o,
                               .n_ctx = 64,
                               .type = *type ? type : NULL,
                               .device = "cpu",
                               .cache_type_k = cache,
                               .cache_type_v = cache};
    snprintf(plan, sizeof plan, "model%d", number);
    snprintf(path, sizeof path, "%s/%s.c", folder, plan);
    const float *logits = NULL;
    int32_t token[N_STORY];
    if (llm_write_small(model, path, &p, &result, &err) != GGL_OK ||
        llm_open(&c, model, &o, &err) != GGL_OK) {
        fail(what, err.msg);
        return;
    }
    for (int i = 0; i < N_STORY; i++)
        token[i] = (i * 37 + 1) % llm_context_facts(c)->n_vocab;
    if (llm_eval(c, token, N_STORY, true, &logits, &err) != GGL_OK)
        fail(what, err.msg);
    else
        put(folder, plan, token, N_STORY, logits, llm_context_facts(c)->n_vocab);
    if (result.words > 0)
        put_words(folder, plan, llm_opened_tokenizer(c));
    printf("%s is %s\n", plan, what);
    llm_close(c);
}

int main(int argc, char **argv) {
    char path[1024];
    if (argc < 3)
        return 2;
    snprintf(path, sizeof path, "%s/list", argv[1]);
    list = fopen(path, "w");
    if (!list)
        return 1;
    if (strcmp(argv[2], "toys") == 0)
        toys(argv[1], argc > 3 ? atoi(argv[3]) : SAMPLE_MOST, argc > 4 ? atoi(argv[4]) : 1,
             argc > 5 ? argv[5] : "");
    for (int i = 3; i < argc && strcmp(argv[2], "files") == 0; i++)
        one_file(argv[1], argv[i], i - 3);
    return fclose(list) != 0 || failures ? 1 : 0;
}
