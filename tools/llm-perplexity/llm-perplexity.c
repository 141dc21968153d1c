/* llm-perplexity: measures how well a model predicts a text, and how far its predictions are
 * from another model's. See docs/tools.md. It counts like llama.cpp's tool of that name: in
 * independent chunks of n_ctx tokens, of which the second half is scored. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/adapters.h"
#include "common/calibration.h"
#include "common/amounts.h"
#include "common/args.h"
#include "common/cache_types.h"
#include "common/chart.h"
#include "common/hints.h"
#include "common/machine_options.h"
#include "common/hub_options.h"
#include "common/ignore.h"
#include "common/override_options.h"
#include "common/paths.h"
#include "common/placement_options.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/load.h"
#include "common/open_context.h"
#include "common/work_threads.h"
#include "llm/internal/session.h"
#include "ggl/internal/file.h"
#include "measure/scores.h"
#include "ppl_plot.h"
#include "ppl_print.h"

#define TOOL "llm-perplexity"

enum { DEFAULT_CTX = TEXT_CHUNK_SIZE };

typedef struct options {
    tool_ignore ignore;
    tool_overrides overrides;
    tool_adapters adapters;
    hub_options hub;
    int type; /* --type */
    const char *model, *text, *arch, *mask, *base, *plot;
    placement_options placement;
    int64_t n_ctx, n_chunk, n_batch, n_ubatch, n_threads;
    int type_k, type_v, format;
    bool compare, no_mmap, f16_as_bf16, ctx_given;
} options;

enum { FORMAT_TEXT, FORMAT_JSON };

typedef struct ppl {
    options o;
    ggl_gguf_params file; /* how it is read */
    llm_opening opening;
    llm_context *ctx;
    text_chunks text; /* without tokens if these are the other file's */
    logits_head head;
    logits_reader base;
    logits_writer save;
    scores *scores;
    bool shows_values; /* running values, on the terminal's last line */
} ppl;

/* --- options ---------------------------------------------------------------------------------- */

static int read_options(options *o, int argc, char **argv) {
    static const char *const formats[] = {"text", "json", NULL};
    *o = (options){.n_ctx = DEFAULT_CTX, .n_chunk = -1, .n_batch = 2048, .n_ubatch = 512};
    const arg_option table[] = {
        {NULL, .help = "model and text"},
        {"-m --model", ARG_STRING, &o->model, .value = "FILE",
         .help = "a GGUF file or a Hugging Face folder (default: the built-in model "
                 "builtin:stories; builtin:chat is another)"},
        HUB_OPTIONS(o->hub),
        LOAD_TYPE_OPTION(o->type),
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
        ONE_THREADS_OPTION(o),
        BATCH_OPTIONS(o),
        ARCH_OPTION(o),
        ADAPTER_OPTIONS(o->adapters),
        IGNORE_OPTIONS(o->ignore),
        OVERRIDE_OPTIONS(o->overrides),
        NO_MMAP_OPTION(o),
        F16_OPTION(o),
        PLACEMENT_OPTIONS(o->placement),
        ISA_OPTION(o),
        {0}};
    static const args_example examples[] = {
        {"llm-perplexity -m model.gguf -f text.txt",
         "the perplexity of a text, in chunks of 512 tokens"},
        {"llm-perplexity -m f16.gguf -f text.txt --kl-divergence-base f16.kld",
         "saves a model's log-probabilities"},
        {"llm-perplexity -m q4.gguf --kl-divergence-base f16.kld --kl-divergence",
         "compares a quantized model with them"},
        {0}};
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
        code = overrides_read(TOOL, &o->overrides);
    if (code >= 0)
        return code;
    if (o->compare && !o->base)
        return tool_error(
            TOOL, 2, "--kl-divergence needs the file to compare with: --kl-divergence-base FILE");
    if (!o->compare && !o->text && !tool_hub_only_lists(&o->hub))
        return tool_error(TOOL, 2, "-f TEXT is missing; see --help");
    if (o->n_ubatch > o->n_batch)
        o->n_ubatch = o->n_batch;
    return -1;
}

/* --- the text --------------------------------------------------------------------------------- */

/* Gets the tokens, and determines the chunks. */
static int choose_chunks(ppl *p) {
    ggl_error err = {0};
    const llm_tokenizer *t = p->ctx->tokenizer;
    if (!t)
        return tool_error(TOOL, 1, "%s", p->ctx->why_no_tokenizer.msg);
    if (llm_text_chunks_find_bos(&p->text, t, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (p->o.compare) {
        if (llm_logits_open(&p->base, p->o.base, &err) != GGL_OK)
            return tool_error(TOOL, 1, "%s", err.msg);
        if (p->o.ctx_given && p->o.n_ctx != p->base.head.n_ctx)
            return tool_error(TOOL, 2, "-c %" PRId64 ": %s was written with -c %" PRId64,
                              p->o.n_ctx, p->o.base, p->base.head.n_ctx);
        if (p->o.text)
            tool_note(TOOL, "the text comes from %s; -f is not read", p->o.base);
        p->head = p->base.head;
    } else {
        calibration_choose(&p->text, TOOL, p->ctx->model, p->o.n_ctx, p->o.ctx_given);
        const int code = calibration_read(&p->text, TOOL, t, p->o.text, false);
        if (code >= 0)
            return code;
        p->head.n_ctx = p->text.n_ctx;
        p->head.n_chunk = p->text.n_chunk;
    }
    if (p->o.n_chunk >= 0 && p->o.n_chunk < p->head.n_chunk)
        p->head.n_chunk = p->o.n_chunk;
    return p->head.n_chunk > 0 ? -1 : tool_error(TOOL, 2, "--chunks 0 leaves nothing to do");
}

/* --- loading ---------------------------------------------------------------------------------- */

static int open_model(ppl *p) {
    const options *o = &p->o;
    p->file = (ggl_gguf_params){.size = sizeof p->file, .no_mmap = o->no_mmap, .willneed = true};
    const llm_model_params mp = {.size = sizeof mp,
                                 .arch_path = o->arch,
                                 .gguf = &p->file,
                                 .ignore = ignore_of(&o->ignore),
                                 .override = o->overrides.text,
                                 .n_override = o->overrides.n};
    p->opening = (llm_opening){.loading = tool_loading(o->model, &mp, o->type),
                               .no_chat = true,
                               .backend = {.size = sizeof p->opening.backend,
                                           .n_threads = (int)o->n_threads,
                                           .n_threads_batch = (int)o->n_threads,
                                           .mask = o->mask,
                                           .f16_as_bf16 = o->f16_as_bf16},
                               .placement = placement_choice(TOOL, &o->placement),
                               .session = llm_session_default(),
                               .placed = placement_say,
                               .cancelled = process_is_stopped,
                               .ctx = (void *)(uintptr_t)TOOL};
    llm_session_params *sp = &p->opening.session;
    sp->n_ubatch = o->n_ubatch;
    sp->n_rows = o->n_ubatch < SCORES_ROWS ? o->n_ubatch : SCORES_ROWS;
    sp->progress = progress_share;
    sp->type_k = tool_cache_type(o->type_k);
    sp->type_v = tool_cache_type(o->type_v);
    return tool_open_named(&p->ctx, TOOL, &p->opening);
}

static int open_session(ppl *p) {
    p->opening.session.n_ctx = p->head.n_ctx;
    const int code = tool_open_weights(p->ctx, TOOL, &p->opening, &p->o.adapters);
    if (code >= 0)
        return code;
    const int64_t n_vocab = llm_session_n_vocab(p->ctx->session);
    if (p->o.compare && n_vocab != p->head.n_vocab)
        return tool_error(TOOL, 1,
                          "%s has a vocabulary of %" PRId64 ", but the model's is %" PRId64,
                          p->o.base, p->head.n_vocab, n_vocab);
    p->head.n_vocab = n_vocab;
    return -1;
}

/* --- scoring ---------------------------------------------------------------------------------- */

static bool on_progress(void *ctx, double n_done) {
    (void)ctx;
    progress_set(n_done);
    return !process_stopped;
}

static int make_scores(ppl *p) {
    ggl_error err = {0};
    const scores_params sp = {.session = p->ctx->session,
                              .token = p->o.compare ? p->base.token : p->text.tokens.id,
                              .bos = p->text.bos,
                              .n_ctx = p->head.n_ctx,
                              .n_chunk = p->head.n_chunk,
                              .n_threads = p->o.n_threads ? (int)p->o.n_threads : work_threads(),
                              .save = p->o.base && !p->o.compare ? &p->save : NULL,
                              .base = p->o.compare ? &p->base : NULL,
                              .base_path = p->o.base,
                              .progress = on_progress};
    return llm_scores_new(&p->scores, &sp, &err) == GGL_OK ? -1
                                                           : tool_error(TOOL, 1, "%s", err.msg);
}

static int run_chunk(ppl *p) {
    ggl_error err = {0};
    const ggl_status st = llm_scores_next(p->scores, &err);
    if (st != GGL_OK && st != GGL_CANCELLED)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (process_stopped)
        return tool_error(
            TOOL, process_stop_code(), "interrupted after %" PRId64 " of %" PRId64 " chunk%s",
            p->scores->chunk - (st == GGL_OK), p->head.n_chunk, llm_amount_s(p->head.n_chunk));
    return -1;
}

/* --- what is printed -------------------------------------------------------------------------- */

static void print_chunk(const ppl *p) {
    const ppl_stats *s = &p->scores->stats;
    const int64_t n_done = p->scores->chunk;
    if (p->o.format != FORMAT_TEXT || tool_is_quiet())
        return;
    progress_clear();
    if (!p->o.compare) {
        printf("[%" PRId64 "]%.4f,", n_done, p->scores->running[n_done - 1].value);
        if (p->shows_values) /* they are the progress from now on */
            tool_set_line(TOOL_LINE_TEXT);
    } else {
        mean q = llm_ppl_value(s), ratio = llm_ppl_log_ratio(s), kld = llm_ppl_kld(s),
             rms = llm_ppl_p_rms(s), top = llm_ppl_same_top(s);
        if (n_done == 1)
            puts("chunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence  "
                 "            "
                 "Δp RMS            Same top p");
        printf("%4" PRId64 "    %9.4f ± %9.4f    %10.5f ± %10.5f    %10.5f ± %10.5f    %6.3f ± "
               "%6.3f %%    %6.3f ± %6.3f %%\n",
               n_done, q.value, q.error, ratio.value, ratio.error, kld.value, kld.error,
               100 * rms.value, 100 * rms.error, 100 * top.value, 100 * top.error);
    }
    fflush(stdout);
}

static void print_result(ppl *p) {
    const ppl_stats *s = &p->scores->stats;
    mean q = llm_ppl_value(s);
    if (p->o.format == FORMAT_TEXT) {
        if (!tool_is_quiet())
            putchar('\n');
        tool_set_line(TOOL_LINE_EMPTY);
        if (p->o.compare)
            ppl_print_compared(s, p->scores->kld, p->scores->p_diff, stdout);
        else
            printf("Final estimate: PPL = %.4f +/- %.5f\n", q.value, q.error);
        return;
    }
    printf("{\n  \"n_ctx\": %" PRId64 ", \"n_chunk\": %" PRId64 ", \"n_scored\": %zu,\n",
           p->head.n_ctx, p->head.n_chunk, s->n);
    printf("  \"nll\": %.9g, \"ppl\": %.9g, \"ppl_error\": %.9g,\n  \"running\": [",
           s->nll / (double)s->n, q.value, q.error);
    for (int64_t i = 0; i < p->head.n_chunk; i++)
        printf("%s%.9g", i ? ", " : "", p->scores->running[i].value);
    printf("]");
    if (p->o.compare)
        ppl_print_compared_json(s, p->scores->kld, p->scores->p_diff, stdout);
    printf("\n}\n");
}

/* Draws --plot, after print_result has sorted the divergences. Returns -1, or an exit code. */
static int draw_plot(const ppl *p) {
    ggl_error err = {0};
    ggl_new_file *f;
    char title[256];
    const char *model = p->o.model ? p->o.model : "the built-in model", *name = strrchr(model, '/');
    const mean q = llm_ppl_value(&p->scores->stats);
    snprintf(title, sizeof title, "Perplexity of %.120s: %.4f ± %.4f", name ? name + 1 : model,
             q.value, q.error);
    const ppl_plot plot = {.title = title,
                           .n_chunk = p->head.n_chunk,
                           .chunk = p->scores->by_chunk,
                           .running = p->scores->running,
                           .kld = p->scores->kld,
                           .n_kld = p->scores->kld ? p->scores->stats.n : 0};
    ggl_status st = ggl_new_file_open(&f, p->o.plot, &err);
    if (st == GGL_OK) {
        chart_note_suffix(TOOL, "--plot", p->o.plot);
        ppl_plot_draw(ggl_new_file_stream(f), &plot);
        st = ggl_new_file_commit(f, &err);
    }
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "--plot: %s", err.msg);
}

/* --- main ------------------------------------------------------------------------------------- */

/* Completes the file of log-probabilities, if there is one. Returns -1, or an exit code. */
static int finish_base(ppl *p) {
    ggl_error err = {0};
    if (!p->save.file || llm_logits_end(&p->save, &err) == GGL_OK)
        return -1;
    return tool_error(TOOL, 1, "--kl-divergence-base: %s", err.msg);
}

static int run_chunks(ppl *p) {
    int code = -1;
    progress_begin("chunks", (double)p->head.n_chunk, "perplexity");
    while (code < 0 && p->scores->chunk < p->head.n_chunk) {
        code = run_chunk(p);
        if (code >= 0)
            break;
        progress_say("perplexity %.4f", p->scores->running[p->scores->chunk - 1].value);
        print_chunk(p);
        if (p->save.file && ggl_new_file_error(p->save.file))
            code = finish_base(p);
    }
    progress_end();
    return code;
}

static int check_paths(const options *o) {
    const tool_path paths[] = {
        {"-m", o->model, .needed = true, .model = true},
        {"-f", o->text, .needed = true},
        {"--arch", o->arch, .needed = true, .or_name = true},
        {"--kl-divergence-base", o->base, .written = !o->compare, .needed = o->compare},
        {"--plot", o->plot, .written = true},
        {"--trace", placement_trace(&o->placement), .written = true},
    };
    return tool_check_paths(TOOL, paths, sizeof paths / sizeof *paths);
}

static int run(ppl *p) {
    ggl_error err = {0};
    int code = check_paths(&p->o);
    p->o.hub.arch = p->o.arch;
    if (code < 0)
        code = tool_hub_get(TOOL, &p->o.hub, &p->o.model);
    if (code < 0 && p->o.hub.path[0])
        code = check_paths(&p->o); /* now with the model's */
    progress_begin(NULL, 0, "loading %s", p->o.model ? p->o.model : "the model");
    if (code < 0)
        code = open_model(p);
    progress_end();
    if (code < 0)
        code = choose_chunks(p);
    if (code < 0)
        code = open_session(p);
    if (code < 0)
        code = make_scores(p);
    if (code < 0 && p->o.base && !p->o.compare &&
        llm_logits_begin(&p->save, p->o.base, &p->head, p->text.tokens.id, &err) != GGL_OK)
        code = process_stopped ? process_stop_code()
                               : tool_error(TOOL, 1, "--kl-divergence-base: %s", err.msg);
    if (code < 0 && !tool_is_quiet())
        fprintf(stderr, "%" PRId64 " chunk%s of %" PRId64 " tokens, %" PRId64 " of each scored\n",
                p->head.n_chunk, llm_amount_s(p->head.n_chunk), p->head.n_ctx,
                llm_logits_scored(p->head.n_ctx));
    if (code < 0)
        code = run_chunks(p);
    if (code < 0)
        code = finish_base(p);
    if (code >= 0) {
        if (p->scores && p->scores->stats.n > 0 && !p->o.compare && p->o.format == FORMAT_TEXT &&
            !tool_is_quiet())
            putchar('\n'); /* ends the line of running values */
        return code;
    }
    print_result(p);
    code = p->o.plot ? draw_plot(p) : -1;
    return code < 0 ? 0 : code;
}

int main(int argc, char **argv) {
    process_begin();
    ppl p = {.text.bos = -1};
    int code = read_options(&p.o, argc, argv);
    if (code < 0) {
        p.shows_values = isatty(STDOUT_FILENO) == 1;
        process_wait_for_stop();
        code = run(&p);
    }
    if (code == 0 && p.ctx && !llm_placement_report(p.ctx->placement, stderr))
        code = 1;
    llm_logits_abort(&p.save);
    llm_logits_close(&p.base);
    llm_scores_free(p.scores);
    llm_text_chunks_fini(&p.text);
    code = tool_close_context(p.ctx, TOOL, code);
    placement_options_fini(&p.o.placement);
    adapters_fini(&p.o.adapters);
    ignore_fini(&p.o.ignore);
    overrides_fini(&p.o.overrides);
    tool_hub_fini(&p.o.hub);
    return tool_finish(TOOL, code);
}
