#include "diffusion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/process.h"
#include "common/progress.h"
#include "common/report.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"

#define TOOL "llm-cli"

typedef struct view {
    const completion_setup *s;
    llm_tokens answer;
    char *text; /* [n_text] of it, up to a stop text */
    size_t n_text, cap_text;
    bool visual; /* the text is drawn again after each step */
    bool drawn;
} view;

bool diffusion_is(const llm_context *c) {
    const llm_arch *arch = llm_model_arch(llm_opened_model(c));
    return llm_arch_sees_all(arch) && llm_arch_has_output(arch, "logits");
}

/* --- options ---------------------------------------------------------------------------------- */

/* Notes which samplers are set in vain. */
static void note_samplers(const sampling_options *o) {
    static const char *const read[] = {"temp", "top_k", "top_p"};
    static const struct {
        const char *name, *flags;
    } numbers[] = {
#define SAMPLER_NUMBER(kind, name, value, at_0, member, low, high, must, field, flags, ...)        \
    {#name, flags},
#include "llm/internal/samplers.def"
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        bool is_read = false;
        for (size_t k = 0; k < sizeof read / sizeof *read; k++)
            is_read = is_read || strcmp(read[k], numbers[i].name) == 0;
        if (!is_read && o->given[i])
            tool_note(TOOL,
                      "%s has no effect: a text by diffusion is drawn with --temp, --top-k, "
                      "--top-p and -s",
                      numbers[i].flags);
    }
}

int diffusion_check(const cli_options *o) {
    const int code = cli_options_check_job(o, true);
    if (code >= 0)
        return code;
    note_samplers(&o->sampling);
    return -1;
}

/* --- the prompt ------------------------------------------------------------------------------- */

int diffusion_prompt(llm_context *c, const char *text, size_t n, bool chats, llm_tokens *ids) {
    llm_chat_made made = {0};
    const llm_chat_params asks = {.end = LLM_CHAT_ASKS, .made = &made};
    ggl_error err = {0};
    const bool formats = chats && llm_context_facts(c)->has_chat;
    llm_talk *talk = NULL;
    char *formed = NULL;
    size_t n_formed;
    ggl_status st = llm_talk_new(&talk, &err);
    if (st == GGL_OK && formats)
        st = llm_talk_add(talk, "user", (ggl_str){text, n}, &err);
    if (st == GGL_OK && formats)
        st = llm_chat_prompt(llm_opened_chat(c), talk, &asks, &formed, &n_formed, &err);
    if (st == GGL_OK)
        st = formed ? llm_tokenize_given(llm_opened_tokenizer(c), &made.given, formed, n_formed,
                                         LLM_TOKENIZE_SPECIAL, ids, &err)
                    : llm_encode(c, text, n, LLM_ADD_SPECIAL | LLM_READ_SPECIAL, &ids->id, &ids->n,
                                 &err);
    llm_chat_made_fini(&made);
    llm_talk_free(talk);
    ggl_free(formed);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

/* --- as it unmasks ---------------------------------------------------------------------------- */

/* Draws the tokens so far; masks are dots. */
static void draw(view *v, const int32_t *id, size_t n, int32_t mask) {
    const llm_tokenizer *t = llm_opened_tokenizer(v->s->ctx);
    fputs(v->drawn ? "\033[u\033[J" : "\033[s", stdout); /* back to where the text begins */
    v->drawn = true;
    for (size_t i = 0; t && i < n; i++) {
        const ggl_str piece =
            id[i] == mask ? (ggl_str){"\xc2\xb7", 2} : llm_token_text(t, id[i], false);
        fwrite(piece.s, 1, piece.n, stdout);
    }
    fflush(stdout);
}

static bool on_step(void *user, int32_t n_done, int32_t n_steps, const int32_t *id, size_t n,
                    int32_t mask) {
    view *v = user;
    (void)n_steps;
    progress_set(n_done);
    if (v->visual)
        draw(v, id, n, mask);
    return !process_stopped;
}

/* --- the text --------------------------------------------------------------------------------- */

static bool keep(void *user, int32_t id, const float *logits) {
    view *v = user;
    (void)logits;
    v->answer.id[v->answer.n++] = id;
    return true;
}

static ggl_status keep_text(view *v, const char *piece, size_t n, ggl_error *err) {
    if (!ggl_grow(&v->text, &v->cap_text, v->n_text + n, 1))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the text");
    if (n > 0)
        memcpy(v->text + v->n_text, piece, n);
    v->n_text += n;
    return GGL_OK;
}

/* Writes the answer's tokens and its text. */
static ggl_status diffuse(view *v, ggl_error *err) {
    const cli_options *o = v->s->o;
    const llm_diffusion d = diffusion_schedule(&o->diffusion);
    const llm_diffuse_params schedule = {.size = sizeof schedule,
                                         .n_steps = (int32_t)d.n_steps,
                                         .n_block = (int32_t)d.n_block,
                                         .eps = d.eps,
                                         .order = llm_diffusion_order_name(d.order),
                                         .order_temp = d.order_temp,
                                         .cfg_scale = d.cfg_scale,
                                         .step = on_step,
                                         .user = v};
    llm_generate_params p = v->s->generation->p;
    p.n_max = o->n_predict > 0 ? o->n_predict : LLM_DIFFUSION_LENGTH;
    p.diffuse = &schedule;
    p.token = keep;
    p.user = v;
    v->answer.id = ggl_calloc((size_t)p.n_max, sizeof *v->answer.id);
    if (!v->answer.id)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %" PRId64 " tokens", p.n_max);
    progress_begin("steps", d.n_steps > 0 ? (double)d.n_steps : (double)p.n_max, "diffusion");
    const char *piece;
    size_t n;
    ggl_status st = llm_begin(v->s->ctx, v->s->prompt->id, v->s->prompt->n, &p, err);
    while (st == GGL_OK && (st = llm_next(v->s->ctx, &piece, &n, err)) == GGL_OK && piece)
        st = keep_text(v, piece, n, err);
    progress_end();
    return st;
}

static int put(const cli_options *o, const char *text, size_t n) {
    ggl_error err = {0};
    ggl_new_file *f = NULL;
    if (!o->output) {
        fwrite(text, 1, n, stdout);
        putchar('\n');
        return -1;
    }
    ggl_status st = ggl_new_file_open(&f, o->output, &err);
    if (st == GGL_OK) {
        fwrite(text, 1, n, ggl_new_file_stream(f));
        st = ggl_new_file_commit(f, &err);
    }
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "-o: %s", err.msg);
}

/* Prints the answer's text; without a tokenizer, its ids. */
static int print(const view *v) {
    ggl_error err = {0};
    char *alone = NULL;
    size_t n_alone = 0;
    const llm_tokens *a = &v->answer;
    if (!llm_opened_tokenizer(v->s->ctx)) {
        for (size_t i = 0; i < a->n; i++)
            printf("%s%" PRId32, i ? "," : "", a->id[i]);
        putchar('\n');
        return -1;
    }
    if (llm_decode(v->s->ctx, a->id, a->n, 0, &alone, &n_alone, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    /* the space before its first word joins it to the prompt, which is not printed */
    const bool joins = v->n_text > 0 && v->text[0] == ' ' && (n_alone == 0 || alone[0] != ' ');
    ggl_free(alone);
    return put(v->s->o, v->text + joins, v->n_text - joins);
}

int diffusion_run(const completion_setup *s) {
    view v = {.s = s,
              .visual = s->o->diffusion_visual && ggl_os_is_terminal(OS_STDOUT) && !s->o->output};
    ggl_error err = {0};
    const double t = ggl_os_seconds();
    const ggl_status st = diffuse(&v, &err);
    if (v.drawn)
        fputs("\033[u\033[J", stdout);
    const int code = process_stopped ? process_stop_code()
                     : st != GGL_OK  ? tool_error(TOOL, st == GGL_USAGE ? 2 : 1, "%s", err.msg)
                                     : print(&v);
    ggl_free(v.answer.id);
    ggl_free(v.text);
    const double seconds = ggl_os_seconds() - t;
    if (code < 0 && !tool_is_quiet())
        fprintf(stderr, "\ndiffusion   %9.1f ms %7zu tokens %10.1f t/s\n", seconds * 1e3,
                v.answer.n, seconds > 0 ? (double)v.answer.n / seconds : 0);
    return code;
}
