/* The steps of opening a model, from its file to the engine. */
#include "opening.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter_list.h"
#include "common/amounts.h"
#include "context.h"
#include "copies.h"
#include "generation.h"
#include "opening_impl.h"
#include "ggl/internal/show.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/pass.h"
#include "llm/internal/convert.h"
#include "llm/internal/load.h"
#include "voice.h"
#include "senses.h"

enum { CHEAP_SLOTS = 64, CHEAP_SLOTS_WITH_STATES = 4 };
/* The most positions of contexts that share no pages. Without a limit, the tables of their pages would take gigabytes before
 * anything checks whether there is room. */
#define MOST_POSITIONS (INT64_C(1) << 31)

/* Bytes of texts, and what they became, that a model's tokenizer remembers: most prompts begin as others did. */
enum { MOST_REMEMBERED = 16 << 20 };

/* --- the model -------------------------------------------------------------------------------- */

/* A model without a tokenizer or a template can run; the calls that need them report why they are missing. */
static ggl_status open_chat(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    const char *template = o->how->params.chat_template;
    llm_chat_template with = {.name = template};
    if (template && strpbrk(template, "{\n"))
        with = (llm_chat_template){.name = "chat_template", .text = {template, strlen(template)}};
    const ggl_status st = llm_chat_new(&c->chat, llm_model_file(c->model), c->tokenizer,
                                       template ? &with : NULL, &c->why_no_chat);
    if (c->chat)
        llm_chat_leave_bos_out(c->chat, o->how->params.no_chat_bos);
    if (c->chat)
        llm_chat_parse_special(c->chat, o->how->params.parse_special_in_messages);
    if (st == GGL_NOT_FOUND && !template)
        (void)ggl_fail(
            &c->why_no_chat, st,
            "%s; chat_template (--chat-template) gives one: its text, or a name such as \"chatml\"",
            c->why_no_chat.msg);
    if (st == GGL_FORMAT && template) /* of the caller's text, and not of the file */
        c->why_no_chat.status = GGL_USAGE;
    return st == GGL_NOMEM || (st != GGL_OK && template) ? ggl_pass(err, &c->why_no_chat) : GGL_OK;
}

static bool is_eye(const llm_context *c) {
    return llm_arch_is_sense(llm_model_arch(c->model));
}

static ggl_status fail_for_eye(const llm_context *c, ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s reads no text: it makes rows of pictures or sound for a model that does; "
                    "open that one, with this file beside it (-m MODEL --mmproj FILE)",
                    ggl_gguf_name(llm_model_file(c->model)));
}

static ggl_status open_model(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    ggl_status st = o->how->beside ? llm_model_beside(&c->model, o->how->beside, err)
                                   : llm_load_named(&c->model, &o->loading, err);
    if (st != GGL_OK)
        return st;
    llm_file_sampling_read(&c->file_sampling,
                           llm_sampling_file(&o->how->params, llm_model_file(c->model)), NULL,
                           NULL);
    if (o->how->no_tokenizer)
        return GGL_OK;
    st = llm_model_tokenizer(c->model, &c->tokenizer, &c->why_no_tokenizer);
    if (st == GGL_NOMEM)
        return ggl_pass(err, &c->why_no_tokenizer);
    if (!c->tokenizer && is_eye(c))
        (void)fail_for_eye(c, &c->why_no_tokenizer);
    st = llm_model_remember_texts(c->model, MOST_REMEMBERED, err);
    if (st != GGL_OK)
        return st;
    return o->how->no_chat ? GGL_OK : open_chat(c, o, err);
}

/* --- where it runs ---------------------------------------------------------------------------- */

static ggl_status open_backends(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    const ggl_status st =
        o->how->copies && llm_copies_are_chosen(&o->placement)
            ? llm_copies_open(c, &o->placement, &o->backend, o->how->params.mmproj != NULL, err)
            : llm_placement_new(&c->placement, &o->placement, &o->backend, err);
    c->misused = st == GGL_USAGE || st == GGL_NOT_FOUND;
    return st;
}

/* What the draft guesses for. */
static llm_guessing_target target_of(const llm_context *c, const llm_open_parts *o) {
    return (llm_guessing_target){.model = c->model,
                                 .running = c->session,
                                 .tokenizer = c->tokenizer,
                                 .placement = c->placement,
                                 .session = c->session_params,
                                 .n_sequences = o->how->n_guessers > 0 ? o->how->n_guessers : 1,
                                 .n_ctx = llm_session_n_ctx(c->session),
                                 .loading = o->loading,
                                 .placed = o->how->placed,
                                 .ctx = o->how->ctx};
}

/* Says that weights are not repacked. */
static void note_copies(void *ctx, const llm_fit_memory *m) {
    const llm_loading *l = ctx;
    char copies[AMOUNT_TEXT], all[AMOUNT_TEXT], text[256];
    if (!l->note)
        return;
    snprintf(text, sizeof text,
             "the weights are used as they are in the file, because %s has %s available, and their "
             "repacked copy takes %s; "
             "generating is slower",
             m->name, llm_amount_bytes(all, (uint64_t)m->available),
             llm_amount_bytes(copies, (uint64_t)m->copies));
    l->note(l->ctx, text);
}

/* Leaves weights as they are, and makes the context smaller, if they do not fit into memory. */
static ggl_status fit_session(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    llm_fitting f = {.placement = c->placement,
                     .model = c->model,
                     .params = &c->session_params,
                     .is_asked = o->session.n_ctx > 0 && !o->how->n_ctx_is_most,
                     .others = {.taken = o->how->taken, .taken_ctx = o->how->ctx},
                     .may_leave = !o->session.repack_cache && !o->backend.f16_as_bf16,
                     .leaves = note_copies,
                     .leaves_ctx = (void *)(uintptr_t)&o->loading,
                     .refuses = o->how->refuses,
                     .lacks = o->how->lacks,
                     .ctx = o->how->ctx};
    const llm_guessing_target t = target_of(c, o);
    llm_guessing_memory(&o->guessing, &t, &f.others.draft_fixed, &f.others.draft_row);
    return llm_fit_session(&f, &c->session, err);
}

static ggl_status make_session(llm_context *c, const llm_open_parts *o, int64_t n_kept,
                               ggl_error *err) {
    llm_session_free(c->session);
    c->session = NULL;
    if (!llm_arch_sees_all(llm_model_arch(c->model)) &&
        !llm_arch_reads_text(llm_model_arch(
            c->model))) /* what is kept of ended sequences is of no use to later ones */
        c->session_params.n_slots = o->session.n_slots + n_kept;
    return llm_placement_session(c->placement, &c->session, c->model, &c->session_params, err);
}

/* Makes a session with as many slots for ended sequences as are cheap: many if all slots share the pages of one cache, few
 * if the model has states or windows, for which each slot takes memory. */
static ggl_status make_cheap_session(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    const ggl_status st = make_session(c, o, CHEAP_SLOTS, err);
    if (st != GGL_OK ||
        (!llm_session_has_states(c->session) && llm_session_cut_limit(c->session) == INT64_MAX))
        return st;
    return make_session(c, o, CHEAP_SLOTS_WITH_STATES, err);
}

/* Copies the name of the file, which sessions with other scales of adapters use, too. */
static ggl_status keep_repack_cache(llm_context *c, ggl_error *err) {
    const char *name = c->session_params.repack_cache;
    const size_t size = name ? strlen(name) + 1 : 0;
    if (!name)
        return GGL_OK;
    ggl_free(c->repack_cache);
    c->repack_cache = ggl_calloc(size, 1);
    if (!c->repack_cache)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    memcpy(c->repack_cache, name, size);
    c->session_params.repack_cache = c->repack_cache;
    return GGL_OK;
}

static ggl_status check_has_output(const llm_context *c, ggl_error *err) {
    const llm_arch *a = llm_model_arch(c->model);
    if (is_eye(c))
        return fail_for_eye(c, err);
    if (llm_arch_has_output(a, "logits") || llm_arch_has_output(a, "embedding") ||
        llm_arch_has_output(a, "score"))
        return GGL_OK;
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "the model guesses for another one, and does nothing alone: open that one, "
                    "with this one as its draft (--draft)");
}

/* Returns the unknown token by its usual names; -1: there is none. */
static int64_t find_unknown(const llm_tokenizer *t) {
    const int64_t n = t ? llm_tokenizer_n_vocab(t) : 0;
    for (int64_t id = 0; id < n; id++) {
        const ggl_str name = llm_token_piece(t, (int32_t)id);
        if (ggl_str_is(name, "[UNK]") || ggl_str_is(name, "<unk>"))
            return id;
    }
    return -1;
}

/* Reads what texts of tables of vectors lack. */
static ggl_status find_dropped(llm_context *c, ggl_error *err) {
    const ggl_gguf *file = llm_model_file(c->model);
    bool adds = true, drops = false;
    int64_t unknown = -1;
    c->dropped = -1;
    if (ggl_gguf_get_bool(file, "sentence_transformers.add_special_tokens", &adds, err) < 0 ||
        ggl_gguf_get_bool(file, "sentence_transformers.drop_unknown_tokens", &drops, err) < 0 ||
        ggl_gguf_get_integer(file, "tokenizer.ggml.unknown_token_id", &unknown, err) < 0)
        return GGL_FORMAT;
    c->no_special_tokens = !adds;
    if (drops && unknown < 0)
        unknown = find_unknown(c->tokenizer);
    if (drops && unknown >= 0 && unknown <= INT32_MAX)
        c->dropped = (int32_t)unknown;
    return GGL_OK;
}

/* Refuses a pooling that was asked for if a dense layer that the model itself computes (dense_2) follows the file's own: its result would be
 * another one than of the rows that are pooled so. */
static ggl_status check_dense(const llm_context *c, const char *asked, ggl_error *err) {
    char key[128];
    ggl_str arch = {"", 0}, act = {"identity", 8};
    llm_pooling own;
    const ggl_gguf *file = llm_model_file(c->model);
    if (!asked || c->pooling == LLM_POOL_RANK || !ggl_gguf_find_tensor(file, "dense_2.weight") ||
        llm_pooling_find(&own, NULL, file, NULL) != GGL_OK || own == c->pooling)
        return GGL_OK;
    (void)ggl_gguf_get_string(file, "general.architecture", &arch, NULL);
    snprintf(key, sizeof key, "%.*s.dense_2_activation", (int)ggl_utf8_cut(arch.s, arch.n, 64),
             arch.s);
    (void)ggl_gguf_get_string(file, key, &act, NULL);
    const bool is_sum = c->pooling != LLM_POOL_MAX && c->pooling != LLM_POOL_SQRT;
    if (ggl_str_is(act, "identity") && is_sum) /* a mean of products is the product of a mean */
        return GGL_OK;
    return ggl_fail(
        err, GGL_UNSUPPORTED,
        "pooling %s: the model has a dense layer for what its own pooling, %s, gives, which "
        "it cannot compute after another one",
        asked, llm_pooling_name(own));
}

/* Texts of sentence-transformers end where its settings say, unless another context is asked for. */
static ggl_status limit_texts(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    static const char key[] = "sentence_transformers.max_seq_length";
    const ggl_gguf *file = llm_model_file(c->model);
    llm_session_params *sp = &c->session_params;
    int64_t most = 0;
    const int found = ggl_gguf_get_integer(file, key, &most, err);
    const bool is_free = sp->n_ctx <= 0 || o->how->n_ctx_is_most;
    if (found <= 0)
        return found < 0 ? GGL_FORMAT : GGL_OK;
    if (most < 1)
        return ggl_fail(err, GGL_FORMAT, "%s: key %s is %" PRId64 ", but 1 or more is expected",
                        ggl_gguf_name(file), key, most);
    const int64_t own = sp->n_ctx > 0 ? sp->n_ctx : llm_model_n_ctx(c->model);
    c->limit_is_file = is_free && (own <= 0 || most < own);
    if (c->limit_is_file)
        sp->n_ctx = most;
    return GGL_OK;
}

/* Finds the pooling, and by it which outputs the session computes. A model that sees texts whole gets slots for many
 * of them. */
static ggl_status choose_outputs(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    llm_session_params *sp = &c->session_params;
    const bool sees_all =
        llm_arch_sees_all(llm_model_arch(c->model)) ||
        (sp->embeddings &&
         llm_arch_reads_text(llm_model_arch(c->model))); /* the text that is read */
    const ggl_gguf *file = llm_model_file(c->model);
    ggl_status st = check_has_output(c, err);
    if (st == GGL_OK)
        st = find_dropped(c, err);
    if (st != GGL_OK)
        return st;
    if (sees_all)
        st = llm_pooling_find(&c->pooling, o->how->params.pooling, file, err);
    else if (sp->embeddings || o->how->params.pooling)
        st = (o->how->params.pooling && strcmp(o->how->params.pooling, "rank") == 0) ||
                     llm_arch_has_output(llm_model_arch(c->model), "score")
                 ? llm_pooling_find(&c->pooling, o->how->params.pooling, file, err)
                 : llm_pooling_find_vector(&c->pooling, o->how->params.pooling, file, err);
    if (st == GGL_OK && c->pooling == LLM_POOL_RANK &&
        !llm_arch_has_output(llm_model_arch(c->model), "score"))
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "the model gives no score: it is no reranker or classifier");
    if (st == GGL_OK)
        st = check_dense(c, o->how->params.pooling, err);
    if (st != GGL_OK)
        return st;
    if (sees_all || sp->embeddings || c->pooling == LLM_POOL_RANK) {
        st = limit_texts(c, o, err);
        if (st != GGL_OK)
            return st;
    }
    if (c->pooling == LLM_POOL_RANK) {
        sp->only = "score";
        sp->embeddings = false;
    } else if (sees_all && sp->embeddings) {
        sp->only = "embedding";
    }
    /* vectors and scores are compared with others', and short texts need little room: nothing is rounded unless asked for */
    const llm_arch *arch = llm_model_arch(c->model);
    const bool hears = llm_arch_reads_text(arch) && llm_arch_reads_rows(arch); /* long inputs */
    if (hears) {
        sp->n_inputs = 1; /* which all slots hear */
        if (o->how->chooses_slots)
            sp->n_slots = LLM_SPEECH_TEXTS;
    }
    if (!sp->types_given && (sp->only || (llm_arch_reads_text(arch) && !hears)))
        sp->type_k = sp->type_v = GGL_F32;
    if (llm_arch_reads_text(llm_model_arch(c->model)) && !(sees_all && sp->embeddings)) {
        sp->n_pool = 0; /* a text comes whole: each slot has room for it, and for an answer */
        if (sp->n_ctx > 0 && sp->n_slots > MOST_POSITIONS / sp->n_ctx)
            return ggl_fail(err, GGL_LIMIT,
                            "%" PRId64 " texts at once (n_parallel, or -np), each in a context "
                            "of %" PRId64 " tokens (n_ctx, or -c): lower one of the two",
                            sp->n_slots, sp->n_ctx);
    }
    if (sees_all && sp->n_slots < CHEAP_SLOTS)
        sp->n_slots = CHEAP_SLOTS;
    return GGL_OK;
}

/* Leaves out an eye that came by itself and is of no use here, as of a kind that is not known. False: that is an error. */
static bool leave_eye_out(llm_context *c, const llm_open_parts *o, ggl_status why,
                          const ggl_error *err) {
    char text[sizeof err->msg + 100];
    const bool is_sized =
        !o->how->image_tokens_for_all && (o->how->params.image_min_tokens > 0 ||
                                          o->how->params.image_max_tokens > 0); /* asks for it */
    bool is_adapted = false;
    for (size_t i = 0; i < c->n_adapters; i++)
        is_adapted |= c->adapter[i].beside;
    if (!o->how->mmproj_came || is_sized || is_adapted ||
        (why != GGL_UNSUPPORTED && why != GGL_NOT_FOUND && why != GGL_FORMAT))
        return false;
    c->why_no_eye = *err;
    c->why_no_eye.msg[strcspn(err->msg, "\n")] = '\0';
    snprintf(text, sizeof text, "the model %s: %s", llm_eye_lack(c->eye, o->how->params.mmproj),
             c->why_no_eye.msg);
    if (c->eye)
        llm_model_set_marks(c->model, NULL);
    llm_eye_close(c->eye);
    c->eye = NULL;
    c->eye_left_out = true;
    if (o->loading.note)
        o->loading.note(o->loading.ctx, text);
    return true;
}

enum { SIZE_TEXT = 64 };

/* Writes the numbers of rows that a picture may become as keys of the eye's file, and returns how many there are. */
static size_t put_sizes(char text[2][SIZE_TEXT], const llm_open_parts *o) {
    const int64_t n[2] = {o->how->params.image_min_tokens, o->how->params.image_max_tokens};
    size_t n_texts = 0;
    for (int i = 0; i < 2; i++)
        if (n[i] > 0)
            snprintf(text[n_texts++], SIZE_TEXT, ".vision.image_%s_tokens=int:%" PRId64,
                     i == 0 ? "min" : "max", n[i]);
    return n_texts;
}

/* Opens the eye, with the sizes that are asked for. One that nothing else is wrong with sees all pictures in sizes of its own. */
static ggl_status open_sized(llm_context *c, const llm_open_parts *o, const llm_loading *l,
                             ggl_error *why) {
    llm_loading plain = *l;
    plain.model.n_override = 0;
    const ggl_status st = llm_eye_open(&c->eye, l, why);
    if (st == GGL_OK || l->model.n_override == 0 || llm_eye_open(&c->eye, &plain, NULL) != GGL_OK)
        return st;
    if (o->how->image_tokens_for_all) {
        if (l->note)
            l->note(l->ctx, "the eye sees all pictures in sizes of its own: --image-min-tokens "
                            "and --image-max-tokens have no effect on it");
        return GGL_OK;
    }
    llm_eye_close(c->eye);
    c->eye = NULL;
    return ggl_fail(why, GGL_UNSUPPORTED,
                    "the eye sees all pictures in sizes of its own, so the tokens of one cannot be "
                    "limited (--image-min-tokens, --image-max-tokens, or the members of these "
                    "names): leave that out");
}

/* Opens the eye, whose rows the session reads. */
static ggl_status open_eye(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    llm_loading l = o->loading;
    l.model.mtp = NULL;
    char size[2][SIZE_TEXT];
    const char *const sizes[2] = {size[0], size[1]};
    const size_t n_sizes = put_sizes(size, o);
    if (o->how->why_no_eye && !c->why_no_eye.msg[0])
        (void)ggl_fail(&c->why_no_eye, GGL_UNSUPPORTED, "%s", o->how->why_no_eye);
    if (!o->how->params.mmproj || c->eye || c->eye_left_out)
        return GGL_OK;
    l.path = o->how->params.mmproj;
    l.eye = true; /* of a folder */
    l.type = NULL;
    l.model.arch_path = NULL;
    l.model.override = sizes;
    l.model.n_override = n_sizes;
    ggl_error why = {0};
    ggl_status st =
        c->tokenizer
            ? open_sized(c, o, &l, &why)
            : ggl_fail(&why, GGL_UNSUPPORTED,
                       "pictures stand in a text, which needs a tokenizer, and the model has none");
    if (st == GGL_OK) {
        llm_eye_choose_texts(c->eye, c->tokenizer);
        llm_eye_note_other(c->eye, c->model, c->tokenizer, o->loading.note, o->loading.ctx);
        llm_eye_set_marks(c->eye, llm_model_max_images(c->model));
    }
    if (st == GGL_OK && !o->how->sees_apart)
        llm_model_set_marks(c->model, llm_eye_marks(c->eye));
    if (st == GGL_OK || leave_eye_out(c, o, st, &why))
        return GGL_OK;
    (void)ggl_pass(err, &why);
    return st;
}

llm_senses llm_senses_of(const char *mmproj) {
    const llm_loading l = {.path = mmproj, .eye = true};
    llm_senses x = {false, false};
    ggl_error unread;
    llm_eye *e;
    if (!mmproj)
        return x;
    if (llm_load_converts(mmproj)) /* without its weights */
        return (llm_senses){!llm_convert_finds_ear_alone(mmproj), llm_convert_finds_ear(mmproj)};
    if (llm_eye_open(&e, &l, &unread) == GGL_OK)
        x = (llm_senses){llm_eye_sees(e), llm_eye_hears(e)};
    llm_eye_close(e);
    return x;
}

/* Opens the adapters, which may have pairs for the eye. */
static ggl_status open_adapters(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    const ggl_status st =
        llm_adapter_list_open(&c->adapter, &c->n_adapters, &o->how->params, o->how->vary_adapters,
                              c->model, c->eye ? c->eye->model : NULL, err);
    for (size_t i = 0; st == GGL_OK && o->how->vary_from_0 && i < c->n_adapters; i++)
        if (c->adapter[i].varies)
            c->adapter[i].scale = 0;
    return st == GGL_OK && c->eye ? llm_eye_adapt(c->eye, c->adapter, c->n_adapters, err) : st;
}

/* Plans the eye, and reserves the memory that it will take beside the text model. */
static void reserve_for_eye(llm_context *c) {
    ggl_error ignored; /* starting the eye reports it */
    llm_session_params sp = c->session_params;
    llm_placement_lend(c->placement, &sp);
    const bool is_planned = c->eye && llm_eye_plan(c->eye, &sp, &ignored) == GGL_OK;
    for (int k = 0; k < sp.n_backends; k++) {
        ggl_memory m = {0};
        if (is_planned)
            llm_eye_memory(c->eye, k, llm_placement_is_host(sp.backend[k]), &m);
        llm_placement_reserve(c->placement, k, &m);
    }
}

static ggl_status make_any_session(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    return o->how->n_kept_slots < 0 ? make_cheap_session(c, o, err)
                                    : make_session(c, o, o->how->n_kept_slots, err);
}

static ggl_status open_session(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    llm_session_params *sp = &c->session_params;
    const int64_t n_rows = llm_guessing_n_max(&o->guessing) + 1;
    *sp = o->session;
    sp->n_rows = sp->n_rows > n_rows ? sp->n_rows : n_rows;
    sp->rows = o->guessing.own;
    sp->n_taps = llm_guessing_taps(&o->guessing, c->model, &o->loading, c->tap);
    sp->tap = sp->n_taps > 0 ? c->tap : NULL;
    sp->adapter = c->adapter;
    sp->n_adapters = c->n_adapters;
    sp->cancelled = llm_context_is_cancelled;
    sp->cancelled_ctx = c;
    llm_copies_watch_loading(c, sp);
    ggl_status st = keep_repack_cache(c, err);
    if (st == GGL_OK)
        st = choose_outputs(c, o, err);
    if (st != GGL_OK)
        return st;
    ggl_error why = {0};
    sp->media = c->eye ? llm_eye_media(c->eye) : NULL;
    reserve_for_eye(c);
    st = make_any_session(c, o, &why);
    if (st == GGL_OK && c->eye)
        st = llm_eye_fits(c->eye, llm_session_n_given(c->session), &why);
    if (st != GGL_OK && c->eye && leave_eye_out(c, o, st, &why)) {
        sp->media = NULL;
        reserve_for_eye(c);
        st = make_any_session(c, o, &why);
    }
    if (st != GGL_OK)
        (void)ggl_pass(err, &why);
    c->misused = st == GGL_USAGE || st == GGL_NOT_FOUND;
    if (st == GGL_UNSUPPORTED && sp->rows)
        return ggl_within(err, st, "%s %s", o->guessing.name,
                          o->loading.model.mtp ? o->loading.model.mtp : "without a model");
    if ((st == GGL_UNSUPPORTED || st == GGL_LIMIT) && sp->tap)
        return ggl_within(err, st, "%s %s", o->guessing.name, o->guessing.draft);
    if (st == GGL_OK && o->how->placed)
        o->how->placed(o->how->ctx, c->placement, c->session);
    if (st == GGL_OK)
        st = fit_session(c, o, err);
    if (st == GGL_OK && o->how->copies && c->copies)
        st = llm_copies_plan(c, o->how->copy, o->how->copy_ctx,
                             o->session.n_ctx > 0 && !o->how->n_ctx_is_most, err);
    return st;
}

/* --- running ---------------------------------------------------------------------------------- */

static ggl_status open_guesses(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    const llm_guessing_target t = target_of(c, o);
    c->n_guess_max = llm_guessing_n_max(&o->guessing);
    return llm_guessing_open(&c->guessing, &o->guessing, &t, &c->misused, err);
}

/* Makes the eye ready to look, on the session's backends or on some of its own. */
static ggl_status start_eye(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    llm_session_params sp = c->session_params;
    const int64_t n_given = llm_session_n_given(c->session);
    const ggl_status fits =
        llm_eye_begin_text(c->eye, llm_session_adds(c->session), c->tokenizer, err);
    if (fits != GGL_OK)
        return fits;
    if (!o->how->sees_apart)
        return llm_eye_start(c->eye, &sp, n_given, err);
    llm_placement_choice quiet = o->placement;
    quiet.note = quiet.measured = NULL;
    quiet.trace = quiet.shadow = NULL; /* a file has one writer */
    const ggl_status st = llm_placement_new(&c->eye_placement, &quiet, &o->backend, err);
    if (st != GGL_OK)
        return st;
    sp.backend = llm_placement_backends(c->eye_placement);
    sp.n_backends = llm_placement_n_backends(c->eye_placement);
    sp.cancelled = o->how->stops_seeing;
    sp.cancelled_ctx = o->how->ctx;
    return llm_eye_start(c->eye, &sp, n_given, err);
}

static ggl_status alloc_copies(llm_context *c, bool *is_own, ggl_error *err) {
    llm_session **session;
    ggl_status st = llm_copies_list(c, &session, err);
    if (st != GGL_OK)
        return st;
    st = llm_copies_alloc(c, session, is_own, err);
    ggl_free(session);
    return st;
}

/* Makes what pools, and finds how many numbers of a vector are given. */
static ggl_status make_head(llm_context *c, ggl_error *err) {
    static const char key[] = "sentence_transformers.truncate_dim";
    const ggl_gguf *file = llm_model_file(c->model);
    int64_t n = 0;
    const ggl_status st =
        llm_head_new(&c->head, c->pooling, file, llm_session_n_embd(c->session), err);
    if (st != GGL_OK || !c->head)
        return st;
    c->n_dims = llm_head_n_out(c->head);
    const int found = ggl_gguf_get_integer(file, key, &n, err);
    if (found < 0)
        return GGL_FORMAT;
    if (found > 0 && n < 1)
        return ggl_fail(err, GGL_FORMAT, "%s: key %s is %" PRId64 ", but 1 or more is expected",
                        ggl_gguf_name(file), key, n);
    if (found > 0 && n < c->n_dims && c->pooling != LLM_POOL_NONE)
        c->n_dims = n;
    return GGL_OK;
}

/* Refuses pairs for a reranker with types that it does not know, before a batch has them. */
static ggl_status check_pair_types(const llm_context *c, ggl_error *err) {
    const int64_t n = llm_session_built(c->session)->n_token_types;
    const int32_t most = c->tokenizer ? llm_tokenizer_most_pair_type(c->tokenizer) : 0;
    if (c->pooling != LLM_POOL_RANK || n < 2 || most < n)
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT,
                    "%s: key tokenizer.ggl.pair_types has the type %" PRId32
                    "; the model knows the types 0 to %" PRId64,
                    ggl_gguf_name(llm_model_file(c->model)), most, n - 1);
}

static ggl_status open_weights(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    char advice[128];
    llm_session_params *sp = &c->session_params;
    bool is_own = true; /* a failure is that of c->session */
    ggl_status st = o->how->copies && c->copies ? alloc_copies(c, &is_own, err)
                                                : llm_session_alloc(c->session, err);
    if (st != GGL_OK && st != GGL_CANCELLED && is_own)
        return ggl_fail(
            err, st, "%s%s", err->msg,
            llm_placement_advice(c->placement, c->model, sp, st, advice, sizeof advice));
    sp->n_ctx = llm_session_n_ctx(c->session);
    if (st == GGL_OK && llm_session_n_embd(c->session) > 0)
        st = make_head(c, err);
    if (st == GGL_OK)
        st = check_pair_types(c, err);
    if (st == GGL_OK && c->eye)
        st = start_eye(c, o, err);
    if (st == GGL_OK && llm_arch_reads_rows(llm_model_arch(c->model)))
        st = llm_stages_before(&c->stages, c->model, sp, c->session, err);
    sp->progress = NULL; /* of another one, with other scales of adapters */
    return st;
}

static ggl_status open_engine(llm_context *c, const llm_open_parts *o, ggl_error *err) {
    (void)o;
    return llm_context_make_engine(&c->engine, c, c->session, err);
}

/* --- all steps -------------------------------------------------------------------------------- */

typedef ggl_status step_fn(llm_context *c, const llm_open_parts *o, ggl_error *err);

/* By what is opened after them. */
static step_fn *const step[] = {
    [LLM_OPENED_MODEL] = open_model,     [LLM_OPENED_BACKENDS] = open_backends,
    [LLM_OPENED_EYE] = open_eye,         [LLM_OPENED_ADAPTERS] = open_adapters,
    [LLM_OPENED_SESSION] = open_session, [LLM_OPENED_GUESSES] = open_guesses,
    [LLM_OPENED_WEIGHTS] = open_weights, [LLM_OPENED_ALL] = open_engine};

ggl_status llm_context_new(llm_context **out, ggl_error *err) {
    llm_context *c = *out = ggl_calloc(1, sizeof *c);
    if (!c)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    c->run.stop = -1;
    c->dropped = -1;
    return GGL_OK;
}

ggl_status llm_context_open(llm_context *c, const llm_opening *how, llm_opened until,
                            ggl_error *err) {
    llm_open_parts o;
    ggl_error own;
    err = err ? err : &own;
    ggl_status st = llm_open_check(how, err);
    if (st == GGL_OK)
        st = llm_open_parts_of(&o, how, err);
    c->misused = st != GGL_OK;
    c->asks = how->cancelled;
    c->asks_ctx = how->ctx;
    while (c->opened < until && st == GGL_OK) {
        st = step[c->opened + 1](c, &o, err);
        c->opened += st == GGL_OK;
    }
    llm_context_note_facts(c);
    return st;
}

/* Closes the model, and forgets it. */
static void close_model(llm_context *c) {
    llm_vocab_free(c->vocab);
    llm_chat_free(c->chat);
    llm_eye_close(c->eye);
    llm_voice_close(c->voice);
    c->eye = NULL;
    c->voice = NULL;
    ggl_free(c->shown);
    c->shown = NULL;
    c->n_shown = c->cap_shown = 0;
    llm_model_free(c->model);
    c->vocab = NULL;
    c->tokenizer = NULL;
    c->chat = NULL;
    c->model = NULL;
}

/* Closes what runs the session, and it. */
static void close_session(llm_context *c) {
    llm_context_end(c);
    (void)llm_context_end_jobs(c, NULL); /* slots that cannot be emptied are freed */
    free(c->prompt_folder);
    c->prompt_folder = NULL;
    llm_engine_free(c->engine);
    llm_sampler_free(c->sampler);
    llm_kept_grammar_free(c->kept);
    llm_guessing_close(c->guessing); /* it listens to the session */
    llm_stages_free(c->stages);
    llm_head_free(c->head);
    c->head = NULL;
    llm_copies_take(c, NULL);
    llm_session_free(c->session);
    llm_eye_stop(c->eye);
    (void)llm_placement_close(c->eye_placement, NULL); /* it has no trace, whose file could fail */
    c->eye_placement = NULL;
    c->stages = NULL;
    c->engine = NULL;
    c->sampler = NULL;
    c->kept = NULL;
    c->session = NULL;
    c->guessing = NULL;
    c->logits = NULL;
    c->ids.n = c->n_rows = 0;
    c->is_own = false;
}

ggl_status llm_context_return(llm_context *c, llm_opened to, ggl_error *err) {
    ggl_status st = GGL_OK;
    close_session(c);
    if (to < LLM_OPENED_BACKENDS) {
        llm_copies_close(c);
        st = llm_placement_close(c->placement, err);
        c->placement = NULL;
    }
    if (to < LLM_OPENED_ADAPTERS) {
        if (c->eye)
            (void)llm_eye_adapt(c->eye, NULL, 0, NULL); /* it has no stages, so nothing can fail */
        llm_adapter_list_close(c->adapter, c->n_adapters);
        c->adapter = NULL;
        c->n_adapters = 0;
    }
    if (to < LLM_OPENED_MODEL)
        close_model(c);
    c->opened = to < c->opened ? to : c->opened;
    return st;
}

ggl_status llm_context_close(llm_context *c, ggl_error *err) {
    if (!c)
        return GGL_OK;
    const ggl_status st = llm_context_return(c, LLM_OPENED_NOTHING, err);
    llm_tokens_fini(&c->ids);
    ggl_free(c->rows);
    ggl_free(c->rest);
    ggl_free(c->repack_cache);
    ggl_free(c);
    return st;
}

void llm_close(llm_context *c) {
    ggl_error err = {0};
    /* nothing is returned, and a timeline ("trace:cpu") that got lost has to be reported */
    if (llm_context_close(c, &err) != GGL_OK)
        fprintf(stderr, "%s\n", err.msg);
}
