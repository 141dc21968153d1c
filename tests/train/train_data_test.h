/* Helpers of the tests of training data: models whose tokenizer they use, files, and items as texts. */
#ifndef TRAIN_DATA_TEST_H
#define TRAIN_DATA_TEST_H

#include "training/data.h"

#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "test.h"

static ggl_error err;
static char notes[4096];

/* --- models ----------------------------------------------------------------------------------- */

typedef struct model {
    ggl_gguf *file;
    llm_tokenizer *t;
    llm_chat *chat;
} model;

static inline void model_fini(model *m) {
    llm_chat_free(m->chat);
    llm_tokenizer_free(m->t);
    ggl_gguf_close(m->file);
}

/* The model of a file, with a template in place of its own; NULL: its own. "": none. */
static inline bool model_open(model *m, const char *path, const char *template_text) {
    const ggl_gguf_params params = {.size = sizeof params, .meta_only = true};
    const llm_chat_template with = {"test",
                                    {template_text, template_text ? strlen(template_text) : 0}};
    *m = (model){0};
    if (!CHECK_OK(ggl_gguf_open(&m->file, path, &params, &err), &err) ||
        !CHECK_OK(llm_tokenizer_new(&m->t, m->file, &err), &err))
        return false;
    return (template_text && !template_text[0]) ||
           CHECK_OK(llm_chat_new(&m->chat, m->file, m->t, template_text ? &with : NULL, &err),
                    &err);
}

#define CHAT_MODEL MODELS "/builtin/stories-chat.gguf" /* SentencePiece, with a template */
#define TEXT_MODEL DATA "/stories-qwen2.gguf" /* byte-level BPE, which begins texts with nothing */

/* --- data ------------------------------------------------------------------------------------- */

static inline void note(void *user, const char *text) {
    (void)user;
    const size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", text);
}

static inline train_data_params params_of(const model *m, int64_t n_ctx) {
    notes[0] = '\0';
    return (train_data_params){.tokenizer = m->t, .chat = m->chat, .n_ctx = n_ctx, .note = note};
}

/* Writes a file, in which a ' stands for a ". */
static inline const char *file_of(const char *name, const char *text) {
    const char *path = test_path(name);
    char *copy = strdup(text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    CHECK(test_write_file(path, copy, strlen(copy)));
    free(copy);
    return path;
}

static inline train_data *data_new(const train_data_params *p) {
    train_data *d = NULL;
    CHECK_OK(llm_train_data_new(&d, p, &err), &err);
    return d;
}

/* The data of a file; NULL: it cannot be read, which is a failure. */
static inline train_data *data_of(const train_data_params *p, const char *name, const char *text) {
    train_data *d = data_new(p);
    if (CHECK_OK(llm_train_data_read(d, file_of(name, text), &err), &err))
        return d;
    llm_train_data_free(d);
    return NULL;
}

/* Reading fails; the message has these words. */
static inline void refuse(const train_data_params *p, const char *name, const char *text,
                          ggl_status status, const char *words) {
    train_data *d = data_new(p);
    memset(&err, 0, sizeof err);
    CHECK_INT(llm_train_data_read(d, file_of(name, text), &err), status);
    CHECK_HAS(err.msg, words);
    llm_train_data_free(d);
}

/* The texts of the tokens; those that count between brackets. Valid until the 4th next call. */
static inline const char *shown(const train_data *d, const llm_tokenizer *t, int64_t k) {
    static char text[4][8192];
    static int next;
    char *out = text[next++ % 4];
    int32_t token[1024], target[1024];
    float weight[1024];
    size_t used = 0;
    bool inside = false;
    const int64_t n = llm_train_data_length(d, k);
    if (!CHECK(k < llm_train_data_n(d) && n <= 1024))
        return "";
    llm_train_data_get(d, k, token, target, weight);
    int64_t counted = 0;
    for (int64_t i = -1; i < n; i++) {
        const bool counts = i >= 0 && weight[i] > 0;
        const ggl_str s = llm_token_text(t, i < 0 ? token[0] : target[i], true);
        CHECK(i < 0 || i + 1 == n || target[i] == token[i + 1]);
        counted += counts;
        used += (size_t)snprintf(out + used, 8192 - used, "%s%.*s",
                                 counts == inside ? ""
                                 : counts         ? "["
                                                  : "]",
                                 (int)s.n, s.s);
        inside = counts;
    }
    snprintf(out + used, 8192 - used, "%s", inside ? "]" : "");
    CHECK_INT(counted, llm_train_data_counted(d, k));
    return out;
}

/* A model whose template is plain, so that what is expected can be read. */
#define PLAIN                                                                                      \
    "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ '</s>' if m.role == 'assistant' else " \
    "'' }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"

#endif
