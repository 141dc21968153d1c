/* The members of a context that tools read while they open it in steps, and what all callers may know of it. */
#include "context.h"
#include "copies.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "noticing.h"
#include "opening.h"
#include "senses.h"

llm_opened llm_opened_step(const llm_context *c) {
    return c->opened;
}

bool llm_opened_misused(const llm_context *c) {
    return c->misused;
}

llm_model *llm_opened_model(const llm_context *c) {
    return c->model;
}

const llm_tokenizer *llm_opened_tokenizer(const llm_context *c) {
    return c->tokenizer;
}

const ggl_error *llm_opened_why_no_tokenizer(const llm_context *c) {
    return &c->why_no_tokenizer;
}

llm_chat *llm_opened_chat(const llm_context *c) {
    return c->chat;
}

void llm_opened_set_chat(llm_context *c, llm_chat *chat) {
    llm_chat_free(c->chat);
    c->chat = chat;
    llm_context_note_facts(c);
}

llm_placement *llm_opened_placement(const llm_context *c) {
    return c->placement;
}

int llm_opened_n_copies(const llm_context *c) {
    return llm_copies_n(c);
}

const char *llm_opened_copies_text(const llm_context *c) {
    return llm_copies_text(c);
}

llm_placement *llm_opened_copy_placement(const llm_context *c, int k) {
    return llm_copies_placement(c, k);
}

llm_session *llm_opened_copy_session(const llm_context *c, int k) {
    return llm_copies_session(c, k);
}

const llm_adapter_use *llm_opened_adapter(const llm_context *c) {
    return c->adapter;
}

size_t llm_opened_n_adapters(const llm_context *c) {
    return c->n_adapters;
}

llm_pooling llm_opened_pooling(const llm_context *c) {
    return c->pooling;
}

const llm_head *llm_opened_head(const llm_context *c) {
    return c->head;
}

llm_session *llm_opened_session(const llm_context *c) {
    return c->session;
}

const llm_session_params *llm_opened_session_params(const llm_context *c) {
    return &c->session_params;
}

void llm_opened_print_stages(const llm_context *c, FILE *out, bool nodes) {
    const llm_stages *s = c->eye ? llm_eye_stages(c->eye) : NULL;
    llm_stages *own = NULL;
    if (s)
        ggl_fprint(out, "\nmmproj       %s\n", ggl_gguf_name(llm_model_file(c->eye->model)));
    else if (llm_arch_reads_rows(llm_model_arch(c->model)) &&
             llm_stages_plan_before(&own, c->model, &c->session_params, c->session, NULL) == GGL_OK)
        ggl_fprint(out, "\n");
    if (s || own)
        llm_stages_print(s ? s : own, out, nodes);
    if (s && llm_eye_other(c->eye))
        llm_stages_print(llm_eye_stages(llm_eye_other(c->eye)), out, nodes);
    llm_stages_free(own);
}

llm_guessing *llm_opened_guessing(const llm_context *c) {
    return c->guessing;
}

ggl_status llm_seen_tokens(const llm_context *c, const char *mark, llm_tokens *ids,
                           ggl_error *err) {
    const llm_marks *m = llm_eye_marks(c->eye);
    return m->append(m->ctx, c->tokenizer, mark, ids, err);
}

ggl_status llm_seen_rows(const llm_context *c, const char *mark, size_t *n, ggl_error *err) {
    return llm_eye_count_rows(c->eye, mark, n, err);
}

const llm_file_sampling *llm_opened_sampling(const llm_context *c) {
    return &c->file_sampling;
}

const ggl_gguf *llm_sampling_file(const llm_open_params *p, const ggl_gguf *file) {
    return p->no_file_sampling ? NULL : file;
}

/* Where the sentences about a file's values go. */
typedef struct telling {
    const char *file;
    void (*note)(void *user, const char *text);
    void *user;
} telling;

static void tell(void *ctx, bool is_foreign, const char *what) {
    const telling *t = ctx;
    char text[1024];
    (void)is_foreign;
    snprintf(text, sizeof text, "%.500s: %s", t->file, what);
    t->note(t->user, text);
}

void llm_note_sampling(const llm_context *c, const llm_opening *o, const llm_file_sampling *s,
                       void (*note)(void *user, const char *text), void *user) {
    llm_file_sampling unused;
    telling t = {ggl_gguf_name(llm_model_file(c->model)), note, user};
    char set[400], text[512];
    if (!note)
        return;
    llm_file_sampling_read(&unused, llm_sampling_file(&o->params, llm_model_file(c->model)), tell,
                           &t);
    if (*llm_file_sampling_text(s, set, sizeof set) == 0)
        return;
    snprintf(text, sizeof text, "the model's file sets %s; %s ignores that", set,
             llm_open_name(o, LLM_OPEN_no_file_sampling));
    note(user, text);
}

void llm_opened_set_sampling(llm_context *c, const llm_sampler_params *sampling) {
    c->sampling = sampling;
}

void llm_opened_read_as(llm_context *c, const llm_calls_params *p) {
    c->answers = p;
}

void llm_opened_end(llm_context *c) {
    llm_context_end(c);
}

void llm_context_note_facts(llm_context *c) {
    const llm_session *s = c->session;
    const char *copies = llm_copies_text(c);
    c->facts = (llm_facts){.n_ctx = s ? llm_session_n_ctx(s) : 0,
                           .n_vocab = s ? (int32_t)llm_session_n_vocab(s) : 0,
                           .n_embd = c->head ? (int32_t)c->n_dims
                                     : s     ? (int32_t)llm_session_n_embd(s)
                                             : 0,
                           .bos = c->tokenizer ? llm_tokenizer_bos(c->tokenizer) : -1,
                           .eos = c->tokenizer ? llm_tokenizer_eos(c->tokenizer) : -1,
                           .has_chat = c->chat != NULL,
                           .sees = llm_eye_sees(c->eye),
                           .hears = llm_eye_hears(c->eye),
                           .pooling = c->head ? llm_head_pooling_name(c->head)
                                              : llm_pooling_name(c->pooling),
                           .placement = c->opened < LLM_OPENED_BACKENDS ? ""
                                        : copies                        ? copies
                                                 : llm_placement_text(c->placement)};
}

const char *llm_opened_lack(const llm_context *c) {
    return llm_sense_lack(c);
}

const llm_facts *llm_context_facts(const llm_context *c) {
    return &c->facts;
}
