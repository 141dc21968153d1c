/* llm-perplexity: measures how well a model predicts a text, and how far its predictions are
 * from another model's. See docs/tools.md. It counts like llama.cpp's tool of that name: in
 * independent chunks of n_ctx tokens, of which the second half is scored. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/calibration.h"
#include "common/amounts.h"
#include "common/args.h"
#include "common/hints.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/open_context.h"
#include "common/open_options.h"
#include "common/ranks.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "ppl_plot.h"
#include "ppl_print.h"

#define TOOL "llm-perplexity"

enum { ROWS = 64 }; /* of logits that are computed together, at most */

typedef struct options {
    open_options open;
    const char *text, *base, *plot;
    int64_t n_ctx, n_chunk;
    int format;
    bool compare, ctx_given;
} options;

enum { FORMAT_TEXT, FORMAT_JSON };

typedef struct ppl {
    options o;
    llm_opening opening;
    llm_context *ctx;
    calibration text; /* without tokens if these are the other file's */
    int64_t n_vocab;  /* of the other file */
    int64_t n_done;   /* chunks */
    bool begun;
    ppl_chunk *chunk; /* [text.n_chunk] */
    llm_perplexity_result result;
    bool shows_values; /* running values, on the terminal's last line */
} ppl;

/* --- options ---------------------------------------------------------------------------------- */

static int read_options(options *o, int argc, char **argv) {
    static const char *const formats[] = {"text", "json", NULL};
    *o = (options){.n_ctx = CALIBRATION_WINDOW, .n_chunk = -1, .open = open_options_default()};
    const arg_option own[] = {
        {NULL, .help = "model and text"},
        {"-m --model", ARG_STRING, &o->open.how.path, .value = "FILE",
         .help = "a GGUF file or a Hugging Face folder (default: the built-in model "
                 "builtin:stories; builtin:chat is another)"},
        HUB_OPTIONS(o->open.hub),
        {"-f --file", ARG_STRING, &o->text, .value = "FILE", .help = "the text; -: standard input"},
        {"-c --ctx-size", ARG_INT, &o->n_ctx, .value = "N",
         .help = "tokens of a chunk (default 512)", .min = 4, .max = 1 << 24,
         .given = &o->ctx_given},
        {"--chunks", ARG_INT, &o->n_chunk, .value = "N", .help = "chunks to run (default -1: all)",
         .min = -1, .max = INT32_MAX},
        {"--kl-divergence-base", ARG_STRING, &o->base, .value = "FILE",
         .help = "save the model's log-probabilities in FILE; with --kl-divergence: compare with "
                 "those in FILE"},
        {"--kl-divergence", ARG_FLAG, &o->compare,
         .help =
             "compare with the file of --kl-divergence-base, on the text that it was made from"},
        {"-o --output", ARG_CHOICE, &o->format, .value = "FORMAT", .choices = formats,
         .help = "text (default), json"},
        {"--plot", ARG_STRING, &o->plot, .value = "FILE",
         .help = "draw the perplexity over the text as an SVG file; with --kl-divergence also the "
                 "quantiles of the divergence"},
        {NULL, .help = "machine"},
        OPEN_ROWS(MODEL),
        OPEN_ROWS(MACHINE),
        OPEN_ROWS(PLACE),
        OPEN_ROWS(PLAN),
        {0}};
    static const args_example examples[] = {
        {"llm-perplexity -m model.gguf -f text.txt",
         "the perplexity of a text, in chunks of 512 tokens"},
        {"llm-perplexity -m f16.gguf -f text.txt --kl-divergence-base f16.kld",
         "saves a model's log-probabilities"},
        {"llm-perplexity -m q4.gguf --kl-divergence-base f16.kld --kl-divergence",
         "compares a quantized model with them"},
        {0}};
    arg_option table[OPEN_MOST_ROWS];
    open_options_table(table, own, PERPLEXITY, &o->open);
    const args_spec spec = {
        TOOL,
        "[-m MODEL | -hf USER/REPO] -f TEXT [options]",
        "Measures how well a model predicts a text. The perplexity is exp of the mean of -log "
        "p(token), over the second half of each chunk. Results are printed to standard "
        "output, everything else to standard error.",
        table,
        NULL,
        &perplexity_hints,
        .examples = examples};
    int code = args_parse(&spec, argc, argv);
    if (code < 0)
        code = open_options_check(TOOL, &o->open, false);
    if (code >= 0)
        return code;
    if (o->compare && !o->base)
        return tool_error(
            TOOL, 2, "--kl-divergence needs the file to compare with: --kl-divergence-base FILE");
    if (!o->compare && !o->text && !tool_hub_only_lists(&o->open.hub))
        return tool_error(TOOL, 2, "-f TEXT is missing; see --help");
    open_options_limit_batch(&o->open);
    return -1;
}

/* --- the text --------------------------------------------------------------------------------- */

/* Takes the chunks of the file to compare with. */
static int choose_base(ppl *p) {
    ggl_error err = {0};
    llm_base_info base = {.size = sizeof base};
    if (llm_perplexity_base(p->o.base, &base, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (p->o.ctx_given && p->o.n_ctx != base.n_window)
        return tool_error(TOOL, 2, "-c %" PRId64 ": %s was written with -c %" PRId64, p->o.n_ctx,
                          p->o.base, base.n_window);
    if (p->o.text)
        tool_note(TOOL, "the text comes from %s; -f is not read", p->o.base);
    p->text.n_ctx = base.n_window;
    p->text.n_chunk = base.n_chunks;
    p->n_vocab = base.n_vocab;
    return -1;
}

/* Gets the tokens, and determines the chunks. */
static int choose_chunks(ppl *p) {
    int code = calibration_check(TOOL, p->ctx);
    if (code >= 0)
        return code;
    if (p->o.compare) {
        code = choose_base(p);
    } else {
        calibration_choose(&p->text, TOOL, llm_model_n_ctx(llm_opened_model(p->ctx)), p->o.n_ctx,
                           p->o.ctx_given);
        code = calibration_read(&p->text, TOOL, p->ctx, p->o.text, false);
    }
    if (code >= 0)
        return code;
    if (p->o.n_chunk >= 0 && p->o.n_chunk < p->text.n_chunk)
        p->text.n_chunk = p->o.n_chunk;
    if (p->text.n_chunk == 0)
        return tool_error(TOOL, 2, "--chunks 0 leaves nothing to do");
    p->chunk = ggl_calloc((size_t)p->text.n_chunk, sizeof *p->chunk);
    return p->chunk ? -1 : tool_error(TOOL, 1, "out of memory");
}

/* --- loading ---------------------------------------------------------------------------------- */

static int open_model(ppl *p) {
    p->opening = open_options_opening(&p->o.open);
    llm_session_params *sp = &p->opening.session;
    p->opening.copies = true;
    sp->n_rows = sp->n_ubatch < ROWS ? sp->n_ubatch : ROWS;
    return tool_open_named(&p->ctx, TOOL, &p->opening);
}

static int open_session(ppl *p) {
    p->opening.session.n_ctx = p->text.n_ctx;
    int code = tool_open_weights(p->ctx, TOOL, &p->opening, &p->o.open.adapters, p->o.open.plan);
    if (code < 0)
        code = tool_open_context(p->ctx, TOOL, &p->opening, NULL, LLM_OPENED_ALL);
    if (code < 0 && p->o.compare && llm_context_facts(p->ctx)->n_vocab != p->n_vocab)
        return tool_error(TOOL, 1,
                          "%s has a vocabulary of %" PRId64 ", but the model's is %" PRId32,
                          p->o.base, p->n_vocab, llm_context_facts(p->ctx)->n_vocab);
    return code;
}

/* --- what is printed -------------------------------------------------------------------------- */

static void print_chunk(const ppl *p, const llm_perplexity_result *r) {
    if (p->o.format != FORMAT_TEXT || tool_is_quiet())
        return;
    progress_clear();
    if (!p->o.compare) {
        printf("[%" PRId64 "]%.4f,", p->n_done, r->ppl);
        if (p->shows_values) /* they are the progress from now on */
            tool_set_line(TOOL_LINE_TEXT);
    } else {
        if (p->n_done == 1)
            puts("chunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence  "
                 "            "
                 "Δp RMS            Same top p");
        printf("%4" PRId64 "    %9.4f ± %9.4f    %10.5f ± %10.5f    %10.5f ± %10.5f    %6.3f ± "
               "%6.3f %%    %6.3f ± %6.3f %%\n",
               p->n_done, r->ppl, r->ppl_error, r->ln_ratio, r->ln_ratio_error, r->kld,
               r->kld_error, 100 * r->p_rms, 100 * r->p_rms_error, 100 * r->same_top,
               100 * r->same_top_error);
    }
    fflush(stdout);
}

static void print_result(ppl *p) {
    const llm_perplexity_result *r = &p->result;
    if (p->o.format == FORMAT_TEXT) {
        if (!tool_is_quiet())
            putchar('\n');
        tool_set_line(TOOL_LINE_EMPTY);
        if (p->o.compare)
            ppl_print_compared(r, stdout);
        else
            printf("Final estimate: PPL = %.4f +/- %.5f\n", r->ppl, r->ppl_error);
        return;
    }
    printf("{\n  \"n_ctx\": %" PRId64 ", \"n_chunk\": %" PRId64 ", \"n_scored\": %" PRId64 ",\n",
           r->n_window, r->n_chunks, r->n_scored);
    printf("  \"nll\": %.9g, \"ppl\": %.9g, \"ppl_error\": %.9g,\n  \"running\": [", r->nll, r->ppl,
           r->ppl_error);
    for (int64_t i = 0; i < r->n_chunks; i++)
        printf("%s%.9g", i ? ", " : "", p->chunk[i].running);
    printf("]");
    if (p->o.compare)
        ppl_print_compared_json(r, stdout);
    printf("\n}\n");
}

/* Draws --plot. Returns -1, or an exit code. */
static int draw_plot(const ppl *p) {
    drawing d = {0};
    const char *model = p->o.open.how.path ? p->o.open.how.path : "the built-in model",
               *name = ggl_os_last_separator(model);
    d.title = drawing_text(&d, "Perplexity of %.120s: %.4f ± %.4f", name ? name + 1 : model,
                           p->result.ppl, p->result.ppl_error);
    ppl_plot(&d, p->chunk, p->result.n_chunks, p->o.compare ? p->result.kld_quantile : NULL);
    return drawing_save(&d, TOOL, "--plot", p->o.plot) ? 1 : -1;
}

/* --- main ------------------------------------------------------------------------------------- */

static bool on_progress(void *user, size_t done, size_t total) {
    const ppl *p = user;
    (void)total;
    progress_set((double)done / (double)p->text.n_ctx);
    return !process_stopped;
}

static void begin(ppl *p, const llm_perplexity_window *w) {
    const int64_t n_ctx = p->text.n_ctx;
    p->begun = true;
    if (!tool_is_quiet())
        fprintf(stderr, "%" PRId64 " chunk%s of %" PRId64 " tokens, %" PRId64 " of each scored\n",
                w->n, llm_amount_s(w->n), n_ctx, n_ctx - 1 - n_ctx / 2);
    progress_begin("chunks", (double)w->n, "perplexity");
}

static bool on_chunk(void *user, const llm_perplexity_window *w) {
    ppl *p = user;
    if (w->n_done == 0) {
        begin(p, w);
        return true;
    }
    if (process_stopped)
        return false;
    p->n_done = w->n_done;
    p->chunk[w->n_done - 1] = (ppl_chunk){w->ppl, w->so_far->ppl, w->so_far->ppl_error};
    progress_say("perplexity %.4f", w->so_far->ppl);
    print_chunk(p, w->so_far);
    return true;
}

/* Says why the measurement ended. Returns an exit code. */
static int tell_end(const ppl *p, ggl_status st, const ggl_error *err) {
    const bool saves = p->o.base && !p->o.compare;
    if (process_stopped && (st == GGL_CANCELLED || !p->begun))
        return !p->begun ? process_stop_code()
                         : tool_error(TOOL, process_stop_code(),
                                      "interrupted after %" PRId64 " of %" PRId64 " chunk%s",
                                      p->n_done, p->text.n_chunk, llm_amount_s(p->text.n_chunk));
    return tool_error(TOOL, 1, "%s%s",
                      saves && (!p->begun || st == GGL_IO) ? "--kl-divergence-base: " : "",
                      err->msg);
}

static int measure(ppl *p) {
    ggl_error err = {0};
    const options *o = &p->o;
    const llm_perplexity_params params = {.size = sizeof params,
                                          .n_window = p->text.n_ctx,
                                          .n_chunks = p->text.n_chunk,
                                          .save = o->compare ? NULL : o->base,
                                          .base = o->compare ? o->base : NULL,
                                          .id = p->text.id,
                                          .n_id = p->text.n,
                                          .progress = on_progress,
                                          .each = on_chunk,
                                          .user = p};
    p->result.size = sizeof p->result;
    const ggl_status st = llm_perplexity(p->ctx, NULL, 0, &params, &p->result, &err);
    if (p->begun)
        progress_end();
    if (st == GGL_OK)
        return -1;
    const int code = tell_end(p, st, &err);
    if (p->n_done > 0 && !o->compare && o->format == FORMAT_TEXT && !tool_is_quiet())
        putchar('\n'); /* ends the line of running values */
    return code;
}

static int check_paths(const void *ctx) {
    const options *o = ctx;
    const tool_path paths[] = {
        OPEN_PATHS(&o->open),
        {"-f", o->text, .needed = true},
        {"--arch", o->open.how.params.arch, .needed = true, .or_name = true},
        {"--kl-divergence-base", o->base, .written = !o->compare, .needed = o->compare},
        {"--plot", o->plot, .written = true},
    };
    return tool_check_paths(TOOL, paths, sizeof paths / sizeof *paths);
}

static int run(ppl *p) {
    int code = open_options_get_model(TOOL, &p->o.open, check_paths, &p->o);
    if (code < 0)
        code = open_model(p);
    if (code < 0)
        code = choose_chunks(p);
    if (code < 0)
        code = open_session(p);
    if (code < 0)
        code = measure(p);
    if (code >= 0)
        return code;
    print_result(p);
    code = p->o.plot ? draw_plot(p) : -1;
    return code < 0 ? 0 : code;
}

int main(int argc, char **argv) {
    process_begin(&argc, &argv);
    ppl p = {0};
    int code = tool_join_job(TOOL);
    if (code < 0)
        code = read_options(&p.o, argc, argv);
    if (code < 0) {
        p.shows_values = ggl_os_is_terminal(OS_STDOUT);
        process_wait_for_stop();
        code = run(&p);
    }
    if (code == 0 && p.ctx && !llm_placement_report(llm_opened_placement(p.ctx), stderr))
        code = 1;
    calibration_fini(&p.text);
    ggl_free(p.chunk);
    code = tool_close_context(p.ctx, TOOL, code);
    open_options_fini(&p.o.open);
    return tool_finish(TOOL, code);
}
