/* Writes the tables of tokenizers for boards, and what the large engine's tokenizers give for the same texts, into a folder; words.py compiles
 * and compares them.
 *
 *     test-small-words FOLDER TEXTS NAME=MODEL..    TEXTS: texts, each after its length in 4 bytes; MODEL: a GGUF file
 *
 * FOLDER/NAME.c has a plan with the tokenizer alone, and the texts with their tokens (run_words.h). Prints the bytes of each tokenizer's tables,
 * or why it cannot be on a board. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/gguf.h"
#include "small/program.h"

enum { MOST_TEXTS = 4096 };

static char *text[MOST_TEXTS];
static size_t text_size[MOST_TEXTS], n_texts;

static int fail(const char *name, const char *why) {
    fprintf(stderr, "%s: %s\n", name, why);
    return 1;
}

static bool read_texts(const char *path) {
    FILE *f = fopen(path, "rb");
    unsigned char n[4];
    while (f && n_texts < MOST_TEXTS && fread(n, 1, 4, f) == 4) {
        const size_t size = n[0] | (size_t)n[1] << 8 | (size_t)n[2] << 16;
        text[n_texts] = malloc(size + 1);
        if (!text[n_texts] || fread(text[n_texts], 1, size, f) != size)
            return false;
        text_size[n_texts++] = size;
    }
    return f && fclose(f) == 0;
}

/* FNV-1a of the texts of all tokens, each after its length; first: as the first of a text. */
static uint32_t hash_of_texts(const llm_tokenizer *t, bool first) {
    uint32_t h = 2166136261u;
    for (int32_t id = 0; id < llm_tokenizer_n_vocab(t); id++) {
        bool has_begun = !first;
        const ggl_str s = llm_token_next_text(t, id, false, &has_begun);
        h = (h ^ (uint32_t)s.n) * 16777619u;
        for (size_t i = 0; i < s.n; i++)
            h = (h ^ (unsigned char)s.s[i]) * 16777619u;
    }
    return h;
}

static void put_cases(FILE *f, const char *name, const llm_tokenizer *t,
                      const llm_small_words *size) {
    llm_tokens all = {0};
    ggl_error err = {0};
    fprintf(f, "static const int32_t want_at[] = {0,");
    for (size_t i = 0; i < n_texts; i++) {
        if (llm_tokenize(t, text[i], text_size[i], i % 4, &all, &err) != GGL_OK)
            exit(fail(name, err.msg));
        fprintf(f, "%zu,", all.n);
    }
    fprintf(f, "};\nstatic const int32_t want[] = {");
    for (size_t i = 0; i < all.n; i++)
        fprintf(f, "%d,", (int)all.id[i]);
    fprintf(f,
            "0};\nstatic const small_plan plan = {.words = &words};\nconst struct word_cases %s = "
            "{&plan, want, want_at, %zu, %zu, {%uu, %uu}};\n",
            name, size->work_each, size->work, (unsigned)hash_of_texts(t, false),
            (unsigned)hash_of_texts(t, true));
    llm_tokens_fini(&all);
}

static int write_words(const char *folder, const char *name, const char *model) {
    const ggl_gguf_params params = {.size = sizeof params, .meta_only = true};
    char path[1024];
    ggl_gguf *file = NULL;
    llm_tokenizer *t = NULL;
    ggl_error err = {0};
    llm_small_words size;
    ggl_status st = ggl_gguf_open(&file, model, &params, &err);
    if (st == GGL_OK)
        st = llm_tokenizer_new(&t, file, &err);
    if (st != GGL_OK)
        return fail(model, err.msg);
    snprintf(path, sizeof path, "%s/%s.c", folder, name);
    FILE *f = fopen(path, "w");
    if (!f)
        return fail(path, "cannot be written");
    fprintf(f, "#include \"run_words.h\"\n");
    st = llm_small_put_words(f, t, &size, &err);
    if (st != GGL_OK)
        return fail(model, err.msg);
    if (!*size.why)
        put_cases(f, name, t, &size);
    printf("%s: %s %d tokens, %zu bytes, %zu n + %zu of memory%s%s\n", name,
           llm_tokenizer_kind_name(t), (int)llm_tokenizer_n_vocab(t), size.size, size.work_each,
           size.work, *size.why ? "; none: " : "", size.why);
    llm_tokenizer_free(t);
    ggl_gguf_close(file);
    return fclose(f) != 0;
}

int main(int argc, char **argv) {
    int code = 0;
    if (argc < 4 || !read_texts(argv[2]))
        return fail("test-small-words", "the texts cannot be read");
    for (int i = 3; i < argc; i++) {
        char *model = strchr(argv[i], '=');
        if (!model)
            return 2;
        *model++ = 0;
        code |= write_words(argv[1], argv[i], model);
    }
    for (size_t i = 0; i < n_texts; i++)
        free(text[i]);
    return code;
}
