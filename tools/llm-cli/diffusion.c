#include "diffusion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/report.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_stream.h"
#include "ggl/internal/os_terminal.h"

#define TOOL "llm-cli"

typedef struct view {
    const completion_setup *s;
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
        size_t at, size;
    } numbers[] = {
#define SAMPLER_NUMBER(kind, name, value, at_0, member, low, high, must, field, flags, ...)        \
    {#name, flags, offsetof(sampling_options, name), sizeof sampling_defaults.name},
#include "llm/internal/samplers.def"
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        bool is_read = false;
        for (size_t k = 0; k < sizeof read / sizeof *read; k++)
            is_read = is_read || strcmp(read[k], numbers[i].name) == 0;
        if (!is_read &&
            memcmp((const char *)o + numbers[i].at,
                   (const char *)&sampling_defaults + numbers[i].at, numbers[i].size) != 0)
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

/* Returns {"messages": [{"role": "user", "content": text}]}, to free(); NULL: out of memory. */
static char *conversation(const char *text, size_t n) {
    os_memory_stream json;
    if (!ggl_os_memory_stream_open(&json))
        return NULL;
    fputs("{\"messages\": [{\"role\": \"user\", \"content\": ", json.to);
    json_put_string(json.to, text, n);
    fputs("}]}", json.to);
    return ggl_os_memory_stream_close(&json) ? json.text : NULL;
}

int diffusion_prompt(llm_context *c, const char *text, size_t n, bool chats, llm_tokens *ids) {
    ggl_error err = {0};
    const bool formats = chats && llm_context_has_chat(c);
    char *json = formats ? conversation(text, n) : NULL, *formed = NULL;
    size_t n_formed;
    ggl_status st = GGL_OK;
    if (formats)
        st = json ? llm_chat_format(c, json, true, &formed, &n_formed, &err)
                  : ggl_fail(&err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = llm_encode(c, formed ? formed : text, formed ? n_formed : n,
                        formed ? LLM_READ_SPECIAL : LLM_ADD_SPECIAL | LLM_READ_SPECIAL, &ids->id,
                        &ids->n, &err);
    ids->cap = ids->n;
    free(json);
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

static llm_diffuse_params params(view *v) {
    const cli_options *o = v->s->o;
    llm_diffusion d = diffusion_schedule(&o->diffusion);
    llm_diffusion_sample(&d, &v->s->generation->sampling);
    return (llm_diffuse_params){
        .size = sizeof(llm_diffuse_params),
        .n_length = (int32_t)(o->n_predict > 0 ? o->n_predict : LLM_DIFFUSION_LENGTH),
        .n_steps = (int32_t)d.n_steps,
        .n_block = (int32_t)d.n_block,
        .eps = d.eps,
        .order = llm_diffusion_order_name(d.order),
        .order_temp = d.order_temp,
        .temp = d.temp,
        .top_k = (int32_t)d.top_k,
        .top_p = d.top_p,
        .cfg_scale = d.cfg_scale,
        .seed = (uint64_t)o->seed,
        .step = on_step,
        .user = v};
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
static int print(const completion_setup *s, const int32_t *id, size_t n) {
    ggl_error err = {0};
    char *text = NULL;
    size_t size = 0;
    if (!llm_opened_tokenizer(s->ctx)) {
        for (size_t i = 0; i < n; i++)
            printf("%s%" PRId32, i ? "," : "", id[i]);
        putchar('\n');
        return -1;
    }
    if (llm_decode(s->ctx, id, n, 0, &text, &size, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    const int code = put(s->o, text, size);
    ggl_free(text);
    return code;
}

int diffusion_run(const completion_setup *s) {
    view v = {.s = s,
              .visual = s->o->diffusion_visual && ggl_os_is_terminal(OS_STDOUT) && !s->o->output};
    const llm_diffuse_params p = params(&v);
    ggl_error err = {0};
    int32_t *id = NULL;
    size_t n = 0;
    const double t = ggl_os_seconds();
    progress_begin("steps", p.n_steps > 0 ? p.n_steps : p.n_length, "diffusion");
    const ggl_status st =
        llm_diffuse_tokens(s->ctx, s->prompt->id, s->prompt->n, &p, &id, &n, &err);
    progress_end();
    if (v.drawn)
        fputs("\033[u\033[J", stdout);
    if (process_stopped) {
        ggl_free(id);
        return process_stop_code();
    }
    if (st != GGL_OK)
        return tool_error(TOOL, st == GGL_USAGE ? 2 : 1, "%s", err.msg);
    const int code = print(s, id, n);
    ggl_free(id);
    const double seconds = ggl_os_seconds() - t;
    if (code < 0 && !tool_is_quiet())
        fprintf(stderr, "\ndiffusion   %9.1f ms %7zu tokens %10.1f t/s\n", seconds * 1e3, n,
                seconds > 0 ? (double)n / seconds : 0);
    return code;
}
