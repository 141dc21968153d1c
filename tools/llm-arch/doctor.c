/* llm-arch doctor: runs a model by its descriptor, and by the descriptor with one choice
 * changed, and prints how well each reading predicts a text, or how close each comes to another
 * engine's logits. Where families differ and a descriptor is wrong, a reading with the other
 * choice agrees better with the weights. Each reading is a change of the descriptor's text, so
 * that no code here knows any architecture. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/input.h"
#include "common/load.h"
#include "common/npy.h"
#include "common/progress.h"
#include "flips.h"
#include "ggl/alloc.h"
#include "ggl/internal/show.h"
#include "tool.h"
#include "llm/internal/text_inputs.h"

#define TOOL     "llm-arch doctor"
#define N_ERRORS 3.0 /* how many standard errors better a reading must be */

/* Differences between correct implementations, measured as parts of the logits' range
 * (docs/tools.md). */
#define ROUNDING  2e-5 /* f32 arithmetic, in another order */
#define HALF_GELU 2e-3 /* GELU from a half-precision table */
#define EIGHT_BIT 5e-2 /* activations rounded to 8 bits, for quantized weights */

/* A reading's logits compared with those of another engine. */
typedef struct difference {
    /* the largest difference, overall and of the first token; NaN: a logit is NaN */
    double most, first;
    double squares; /* the sum of all squared differences */
    /* sums of products of both engines' logits, and of squares of the model's own */
    double product, own;
    int64_t at; /* place of the largest */
    float got;
} difference;

typedef struct doctor {
    tool_ignore ignore;
    const char *arch, *text_file, *logits_file, *ids;
    int64_t n_tokens, n_ctx, n_threads;
    bool n_given, ctx_given;
    double significant;
    const struct method *by;
    llm_model *model;
    ggl_backend *cpu, *reference;
    llm_tokens tokens;
    int32_t bos; /* negative: none, or tokens are given */
    bool adds_bos;
    int64_t n_vocab;
    const ggl_graph *graph; /* of the current reading */
    /* by text: nats of each predicted token, of this reading and of the descriptor's */
    double *nats, *as_described;
    int64_t n_nats;
    npy_array want; /* by logits: those of the other engine */
    double range;   /* their largest less their smallest */
    difference now, described, nearest;
    flips flips;
    double base, least; /* scores: the descriptor's own, and the best reading's */
    int n_better, n_numbers, best;
} doctor;

/* A way to judge readings. The lower a score the better; NaN: the logits are NaN. */
typedef struct method {
    const char *word; /* the name of the score */
    double (*score)(const doctor *d);
    void (*keep)(doctor *d);       /* stores the run as the descriptor's own */
    bool (*same)(const doctor *d); /* whether the run has the same bits as the descriptor's own */
    void (*print_head)(const doctor *d);
    void (*print_row)(const doctor *d, const char *what, const char *reading, double score,
                      const char *mark);
    /* returns a remark on a reading; sets *better if the weights agree better with it */
    const char *(*mark)(const doctor *d, double score, bool *better);
    void (*conclude)(const doctor *d);
} method;

/* --- running ---------------------------------------------------------------------------------- */

/* Returns -log of the probability that the logits give to id. */
static double nats(const float *logits, int64_t n, int32_t id) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) /* not fmax: gcc 12 for ARM fails on a loop of it */
        most = (double)logits[i] > most ? (double)logits[i] : most;
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - most);
    return most + log(sum) - (double)logits[id];
}

/* Compares the logits of a token with the other engine's. */
static void compare(doctor *d, const float *logits) {
    difference x = {0};
    for (int64_t i = 0; i < d->want.n_rows * d->n_vocab; i++) {
        double e = fabs((double)logits[i] - (double)d->want.data[i]);
        if (e > x.most || (isnan(e) && !isnan(x.most))) {
            x.most = e;
            x.at = i;
            x.got = logits[i];
        }
        x.squares += e * e;
        x.product += (double)logits[i] * (double)d->want.data[i];
        x.own += (double)logits[i] * (double)logits[i];
        if (i + 1 == d->n_vocab)
            x.first = x.most;
    }
    d->now = x;
}

/* Runs one stretch of the text, and judges the predictions of all tokens after the first. */
static ggl_status read_stretch(doctor *d, ggl_sched *s, const int32_t *id, int n, bool bos,
                               ggl_error *err) {
    int32_t *in = calloc((size_t)(n + 1), sizeof *in);
    if (!in)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    int m = 0;
    if (bos)
        in[m++] = d->bos;
    for (int i = 0; i < n; i++)
        in[m++] = id[i];
    const llm_text_inputs x = {.token = in, .n = m};
    ggl_status st = ggl_sched_clear_slot(s, 0, err);
    if (st == GGL_OK)
        st = llm_text_inputs_set(&x, s, d->graph, err);
    if (st == GGL_OK)
        st = ggl_sched_run(s, m, NULL, 0, err);
    const float *logits = ggl_sched_output(s, 0);
    if (d->want.data && st == GGL_OK)
        compare(d, logits);
    for (int i = bos; !d->want.data && i + 1 < m && st == GGL_OK; i++)
        /* the same tokens are predicted with and without bos */
        d->nats[d->n_nats++] = nats(logits + (size_t)i * (size_t)d->n_vocab, d->n_vocab, in[i + 1]);
    free(in);
    return st;
}

/* Checks what is known only after the model is built, by the size of its vocabulary. */
static ggl_status check_vocabulary(const doctor *d, ggl_error *err) {
    if (d->want.data && d->want.n_columns != d->n_vocab)
        return ggl_fail(err, GGL_FORMAT,
                        "%s has %" PRId64
                        " logits for each token, but the model has a vocabulary of %" PRId64,
                        d->logits_file, d->want.n_columns, d->n_vocab);
    /* the tokenizer's own are below it: a model with fewer rows than tokens is refused at load */
    for (size_t i = 0; d->ids && i < d->tokens.n; i++)
        if (d->tokens.id[i] >= d->n_vocab)
            return ggl_fail(err, GGL_USAGE,
                            "--tokens: token %" PRId32 " is not in the vocabulary of %" PRId64,
                            d->tokens.id[i], d->n_vocab);
    return GGL_OK;
}

/* Runs all tokens. A text is run in stretches, each after an empty cache. Given logits are
 * computed in one run, as the other engine did, with a cache of f32 to round as little as
 * possible. */
static ggl_status run_tokens(doctor *d, const llm_arch *arch, bool bos, ggl_error *err) {
    llm_arch_source source = llm_arch_source_gguf(llm_model_file(d->model));
    const bool whole = d->want.data != NULL;
    const size_t stretch = whole ? d->tokens.n : (size_t)d->n_ctx;
    arch_built b = {0};
    ggl_sched *s = NULL;
    ggl_sched_params p = {.size = sizeof p, .backend = &d->cpu, .n_backends = 1};
    ggl_graph_params g = ggl_graph_default();
    g.n_pos = d->n_ctx + !whole; /* one more for a BOS before a stretch */
    g.n_batch = (int64_t)stretch + !whole;
    if (whole)
        g.type_k = g.type_v = GGL_F32;
    d->n_nats = 0;
    ggl_status st =
        arch_build_graph(&b, arch, &source, &d->ignore, NULL, false, &g, 0, d->reference, err);
    if (st == GGL_OK)
        st = ggl_sched_new(&s, b.graph, &p, err);
    if (st == GGL_OK)
        st = ggl_sched_alloc(s, err);
    if (d->n_vocab == 0) { /* the first reading */
        arch_print_notes(&b);
        d->n_vocab = b.result.n_vocab;
    }
    d->graph = b.graph;
    if (st == GGL_OK)
        st = check_vocabulary(d, err);
    for (size_t i = 0; i + !whole < d->tokens.n && st == GGL_OK; i += stretch)
        st = read_stretch(d, s, d->tokens.id + i,
                          (int)(d->tokens.n - i < stretch ? d->tokens.n - i : stretch), bos, err);
    ggl_sched_free(s);
    arch_built_fini(&b);
    return st;
}

/* --- judging by a text ------------------------------------------------------------------------ */

static double perplexity(const doctor *d) {
    double sum = 0;
    for (int64_t i = 0; i < d->n_nats; i++)
        sum += d->nats[i];
    return d->n_nats ? exp(sum / (double)d->n_nats) : NAN;
}

static void keep_nats(doctor *d) {
    memcpy(d->as_described, d->nats, (size_t)d->n_nats * sizeof *d->nats);
}

static bool same_nats(const doctor *d) {
    return memcmp(d->as_described, d->nats, (size_t)d->n_nats * sizeof *d->nats) == 0;
}

static void print_text_head(const doctor *d) {
    ggl_fprint(stdout, "text         %s, %zu tokens in stretches of %" PRId64 "\n\n", d->text_file,
               d->tokens.n, d->n_ctx);
    printf("  %-20s %-32s %12s  %11s\n", "choice", "read as", "perplexity", "change");
}

static void print_text_row(const doctor *d, const char *what, const char *reading, double ppl,
                           const char *mark) {
    ggl_fprint(stdout, "  %-20s %-32s %12.5g  %+9.2f %%  %s\n", what, reading, ppl,
               100 * (ppl / d->base - 1), mark);
}

/* Returns whether this reading's tokens are likelier than as described, beyond chance; with
 * `than` NULL, than by a guess. Tokens that become likelier are weighed against those that
 * become less likely. */
static bool is_likelier(const doctor *d, const double *than) {
    double n = (double)d->n_nats, guess = log((double)d->n_vocab), sum = 0, squares = 0;
    for (int64_t i = 0; i < d->n_nats; i++) {
        double x = d->nats[i] - (than ? than[i] : guess);
        sum += x;
        squares += x * x;
    }
    /* spread: standard error of the mean */
    double mean = sum / n, spread = sqrt(fmax(0, squares / n - mean * mean) / n);
    return mean < -d->significant && mean < -N_ERRORS * spread;
}

/* Returns the remark for a score. A text that a reading predicts no better than a guess does
 * says nothing about it: the weights are random, or the text is in another language. */
static const char *mark_by_text(const doctor *d, double ppl, bool *better) {
    double r = log(ppl / d->base);
    if (isnan(r))
        return "no verdict";
    if (!is_likelier(d, d->as_described))
        return r < d->significant ? "within chance" : "";
    *better = is_likelier(d, NULL);
    return *better ? "<- the weights agree better with this" : "no better than a guess: no verdict";
}

static void conclude_by_text(const doctor *d) {
    const flip *f = &d->flips.at[d->best < 0 ? 0 : d->best];
    if (d->best >= 0)
        ggl_fprint(stdout, "\nthe best is %s: %s; make this change first, then run doctor again\n",
                   f->what, f->reading);
    else if (d->n_better > 0)
        printf("\nthe descriptor's readings are the best, except for the first token\n");
    else if (d->base > (double)d->n_vocab)
        printf("\nthe perplexity is above that of a guess among %" PRId64
               " tokens: these weights allow no verdict\n",
               d->n_vocab);
    else
        printf("\nno reading is better than the descriptor's\n");
}

static const method by_text = {"perplexity",    perplexity,     keep_nats,    same_nats,
                               print_text_head, print_text_row, mark_by_text, conclude_by_text};

/* --- judging by logits ------------------------------------------------------------------------ */

static double largest_difference(const doctor *d) {
    return d->now.most;
}

static void keep_difference(doctor *d) {
    d->described = d->nearest = d->now;
}

static bool same_difference(const doctor *d) {
    return d->now.most == d->described.most && d->now.at == d->described.at &&
           d->now.squares == d->described.squares;
}

static void print_logits_head(const doctor *d) {
    ggl_fprint(stdout, "logits       %s, %zu tokens, a range of %.4g\n\n", d->logits_file,
               d->tokens.n, d->range);
    printf("  %-20s %-32s %12s  %12s\n", "choice", "read as", "difference", "of the range");
}

static void print_logits_row(const doctor *d, const char *what, const char *reading, double most,
                             const char *mark) {
    ggl_fprint(stdout, "  %-20s %-32s %12.3g  %12.1e  %s\n", what, reading, most, most / d->range,
               mark);
}

/* Returns the remark for a difference. Correct readings differ by rounding only, so a reading
 * that comes closer by less than half proves nothing. */
static const char *mark_by_logits(const doctor *d, double most, bool *better) {
    if (isnan(most))
        return "NaN: no verdict";
    *better = d->base > ROUNDING * d->range && most < d->base / 2;
    return *better                                             ? "<- nearer to these logits"
           : most < 2 * d->base || most <= ROUNDING * d->range ? "no clear difference"
                                                               : "";
}

static bool has_quantized(const doctor *d) {
    const ggl_gguf *f = llm_model_file(d->model);
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++)
        if (ggl_type_get((int)ggl_gguf_tensor_at(f, i)->type)->quantized)
            return true;
    return false;
}

/* Returns the factor between all logits of both engines, by least squares, if only rounding
 * remains after it; else 0. A scale of the logits that no key holds would hide every other
 * difference. */
static double common_factor(const doctor *d, const difference *x) {
    const double factor = x->own > 0 ? x->product / x->own : 0, off = 1 - factor;
    const double left = x->squares - off * off * x->own; /* the sum of (theirs - factor * own)^2 */
    const double mean = sqrt(left > 0 ? left / (double)(d->want.n_rows * d->n_vocab) : 0);
    return fabs(off) > 1e-3 && mean <= ROUNDING * d->range ? factor : 0;
}

/* Prints what may cause the remaining difference. `text`: the nearest reading's; `changed`: it
 * is not the descriptor's own. */
static void explain(const doctor *d, const char *text, size_t n, bool changed) {
    const difference *x = &d->nearest;
    const double part = x->most / d->range, factor = common_factor(d, x);
    const char *with = changed ? "with this change " : "";
    if (part <= ROUNDING) {
        printf("%sthe logits agree: %.1e of the range is explained by rounding\n", with, part);
        return;
    }
    printf("%sthe largest difference is at token %" PRId64 " of %zu, logit %" PRId64
           ":\nhere %.6g, there %.6g\n",
           with, x->at / d->n_vocab, d->tokens.n, x->at % d->n_vocab, (double)x->got,
           (double)d->want.data[x->at]);
    if (factor != 0)
        printf("all logits there are %.6g times those here: look for a scale of the logits,\nwhich "
               "may be a number that is in no key of the file\n",
               factor);
    else if (part <= EIGHT_BIT && has_quantized(d))
        printf("with quantized weights, engines round activations to 8 bits in different ways, "
               "which makes differences of this\nsize (up to 5e-2 of the range): compare with "
               "weights in f32\n");
    else if (part <= HALF_GELU &&
             (flips_reads(text, n, "gelu") || flips_reads(text, n, "gelu_quick")))
        printf("a GELU in half precision, which some engines have, makes differences of this size "
               "(1e-4 to 2e-3 of the range):\nonly logits of exact arithmetic can show whether "
               "more is wrong\n");
    else if (d->want.n_rows > 1 && x->first <= ROUNDING * d->range)
        printf("the first token agrees (%.1e of the range): look for the fault in whatever joins "
               "tokens (positions, mask, window,\nscale, a state)\n",
               x->first / d->range);
    else if (d->want.n_rows > 1)
        printf("the first token, which sees no other, is off by %.1e of the range: look in "
               "whatever\ncomputes single tokens (norms, activations, experts, scales, sinks), "
               "also for\nnumbers that are in no key of the file\n",
               x->first / d->range);
}

static void conclude_by_logits(const doctor *d) {
    if (d->best < 0) {
        printf("\nno reading is nearer than the descriptor's\n");
        explain(d, d->flips.s, d->flips.n, false);
    } else {
        const flip *f = &d->flips.at[d->best];
        ggl_fprint(stdout,
                   "\nthe nearest is %s: %s; make this change first, then run doctor again\n",
                   f->what, f->reading);
        explain(d, f->s, f->n, true);
    }
}

static const method by_logits = {"difference",    largest_difference, keep_difference,
                                 same_difference, print_logits_head,  print_logits_row,
                                 mark_by_logits,  conclude_by_logits};

/* --- readings of a model ---------------------------------------------------------------------- */

static int check_options(const doctor *d) {
    if (!d->text_file && !d->logits_file)
        return tool_error(
            TOOL, 2,
            d->ids ? "--tokens needs the logits of these tokens: --logits FILE"
                   : "a text is needed: --text FILE; or logits: --logits FILE --tokens IDS");
    if (d->text_file && d->logits_file)
        return tool_error(TOOL, 2, "--text and --logits cannot be used together");
    if (d->text_file && d->ids)
        return tool_error(TOOL, 2, "--text and --tokens cannot be used together");
    if (d->logits_file && !d->ids)
        return tool_error(TOOL, 2, "--logits needs the tokens of these logits: --tokens IDS");
    if (d->logits_file && d->n_given)
        return tool_error(TOOL, 2, "-n works only with --text: with --logits, all tokens are run");
    return -1;
}

static ggl_status check_logits(doctor *d, ggl_error *err) {
    const npy_array *a = &d->want;
    float least = a->data[0], most = a->data[0];
    if (a->n_rows != (int64_t)d->tokens.n)
        return ggl_fail(err, GGL_FORMAT,
                        "%s has logits of %" PRId64 " tokens, but --tokens has %zu", d->logits_file,
                        a->n_rows, d->tokens.n);
    for (int64_t i = 0; i < a->n_rows * a->n_columns; i++) {
        if (!isfinite(a->data[i]))
            return ggl_fail(err, GGL_FORMAT,
                            "%s: logit %" PRId64 " of token %" PRId64
                            " is %s, which is not a finite number",
                            d->logits_file, i % a->n_columns, i / a->n_columns,
                            isnan(a->data[i]) ? "NaN"
                            : a->data[i] > 0  ? "inf"
                                              : "-inf");
        least = a->data[i] < least ? a->data[i] : least;
        most = a->data[i] > most ? a->data[i] : most;
    }
    d->range = (double)most - (double)least;
    return d->range > 0
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT, "%s: all logits are %.9g", d->logits_file, (double)most);
}

static int read_logits(doctor *d) {
    ggl_error err = {0};
    int code = tool_read_ids(TOOL, "--tokens", d->ids, &d->tokens.id, &d->tokens.n);
    if (code >= 0)
        return code;
    if (npy_read(&d->want, d->logits_file, &err) != GGL_OK || check_logits(d, &err) != GGL_OK)
        return tool_error(TOOL, 1, "--logits: %s", err.msg);
    if (d->ctx_given && d->n_ctx < (int64_t)d->tokens.n)
        return tool_error(TOOL, 2, "-c %" PRId64 ": less than the %zu tokens of --tokens", d->n_ctx,
                          d->tokens.n);
    if (!d->ctx_given)
        d->n_ctx = (int64_t)d->tokens.n;
    return -1;
}

/* Reads the text's tokens, and whether the model puts a BOS before them. */
static int read_text(doctor *d) {
    ggl_error err = {0};
    const llm_tokenizer *t;
    llm_tokens with = {0};
    size_t n;
    char *s = tool_read_any_text(TOOL, d->text_file, &n);
    if (!s)
        return 1;
    ggl_status st = llm_model_tokenizer(d->model, &t, &err);
    if (st == GGL_OK)
        st = llm_tokenize(t, s, n < 1 << 20 ? n : 1 << 20, 0, &d->tokens, &err);
    free(s);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (d->tokens.n > (size_t)d->n_tokens)
        d->tokens.n = (size_t)d->n_tokens;
    if (d->tokens.n < 2)
        return tool_error(TOOL, 2, "%s has %zu token%s; at least 2 are needed", d->text_file,
                          d->tokens.n, llm_amount_s((int64_t)d->tokens.n));
    d->nats = calloc(d->tokens.n, sizeof *d->nats);
    d->as_described = calloc(d->tokens.n, sizeof *d->as_described);
    if (!d->nats || !d->as_described)
        return tool_error(TOOL, 1, "out of memory");
    d->bos = llm_tokenizer_bos(t);
    d->adds_bos = d->bos >= 0 && llm_tokenize(t, "", 0, LLM_TOKENIZE_BOS, &with, &err) == GGL_OK &&
                  with.n > 0;
    llm_tokens_fini(&with);
    return -1;
}

static int open_all(doctor *d, const char *path) {
    ggl_error err = {0};
    llm_model_params mp = {
        .size = sizeof mp, .arch_path = d->arch, .ignore = ignore_of(&d->ignore)};
    ggl_backend_params bp = {.size = sizeof bp, .n_threads = (int)d->n_threads};
    int code = d->logits_file ? read_logits(d) : -1;
    if (code >= 0)
        return code;
    ggl_status st = tool_load_model(&d->model, path, &mp, 0, &err);
    if (st == GGL_OK)
        st = ggl_backend_open(&d->cpu, "cpu", &bp, &err);
    if (st == GGL_OK)
        st = ggl_backend_open(&d->reference, "reference", NULL, &err);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    const llm_arch *arch = llm_model_arch(d->model);
    if (d->text_file && (!llm_arch_has_output(arch, "logits") || llm_arch_sees_all(arch) ||
                         llm_arch_reads_text(arch)))
        return tool_error(TOOL, 1,
                          "--text: %s, so no reading predicts a text better than another; --logits "
                          "and --tokens compare with another program",
                          llm_arch_reads_text(arch) ? "the model reads a text and writes another"
                          : llm_arch_has_output(arch, "logits")
                              ? "each token of this model sees those after it"
                              : "the model gives no logits");
    if (!d->ctx_given && !d->logits_file) /* a BOS needs a position, too */
        d->n_ctx = arch_context(llm_model_file(d->model), d->n_ctx + 1) - 1;
    return d->logits_file ? -1 : read_text(d);
}

/* Reports NaN as described, which leaves nothing to compare with; a reading that gives numbers
 * may be the right one. */
static int report_nan(const doctor *d) {
    char some[96];
    snprintf(some, sizeof some, "only the readings above that have a %s give numbers", d->by->word);
    return tool_error(
        TOOL, 1, "with the descriptor as it is, the model's logits are NaN: %s",
        d->n_numbers > 0
            ? some
            : "no other reading gives numbers; llm-arch verify names the first node with a NaN");
}

/* Prints a row of the table. k: the reading's number; -1: it is not a change of the text. */
static void judge(doctor *d, int k, const char *what, const char *reading) {
    bool better = false;
    double score = d->by->score(d);
    const char *mark = d->by->mark(d, score, &better);
    progress_clear();
    d->by->print_row(d, what, reading, score, mark);
    d->n_better += better;
    d->n_numbers += !isnan(score);
    if (k >= 0 && better && score < d->least) {
        d->least = score;
        d->best = k;
        d->nearest = d->now;
    }
}

static void visit_flip(doctor *d, int k) {
    const flip *f = &d->flips.at[k];
    progress_say("reading %s: %s", f->what, f->reading);
    progress_set(k);
    ggl_error err = {0};
    llm_arch *arch = NULL;
    ggl_status st =
        llm_arch_parse(&arch, f->s, f->n, llm_arch_name(llm_model_arch(d->model)), &err);
    if (st == GGL_OK)
        st = run_tokens(d, arch, d->adds_bos, &err);
    if (st != GGL_OK) {
        progress_clear();
        ggl_fprint(stdout, "  %-20s %-32s cannot be built\n", f->what, f->reading);
    } else if (!d->by->same(d) && !(isnan(d->base) && isnan(d->by->score(d))))
        /* a reading with the same results, or also NaN, gets no row */
        judge(d, k, f->what, f->reading);
    fflush(stdout);
    llm_arch_free(arch);
}

static int visit(doctor *d, const char *path) {
    ggl_error err = {0};
    size_t n;
    const llm_arch *arch = llm_model_arch(d->model);
    progress_begin(NULL, 0, "running the descriptor as it is");
    const ggl_status st = run_tokens(d, arch, d->adds_bos, &err);
    progress_end();
    if (st != GGL_OK)
        return tool_error(TOOL, d->ids && err.status == GGL_USAGE ? 2 : 1, "%s", err.msg);
    const char *text = llm_arch_text(arch, &n);
    flips_find(&d->flips, text, n);
    d->by->keep(d);
    d->base = d->least = d->by->score(d);
    ggl_fprint(stdout, "model        %s\ndescriptor   %s\n", path, llm_model_arch_origin(d->model));
    d->by->print_head(d);
    d->by->print_row(d, "as described", "", d->base, "");
    if (d->bos >= 0 && run_tokens(d, arch, !d->adds_bos, &err) == GGL_OK)
        judge(d, -1, "first token", d->adds_bos ? "no BOS" : "BOS");
    progress_begin("readings", d->flips.n_at, "running");
    for (int i = 0; i < d->flips.n_at; i++)
        visit_flip(d, i);
    progress_end();
    if (d->flips.failed)
        return tool_error(TOOL, 1, "out of memory");
    if (isnan(d->base))
        return report_nan(d);
    d->by->conclude(d);
    return 0;
}

static void doctor_fini(doctor *d) {
    free(d->nats);
    free(d->as_described);
    flips_fini(&d->flips);
    npy_fini(&d->want);
    llm_tokens_fini(&d->tokens);
    ggl_backend_close(d->cpu);
    ggl_backend_close(d->reference);
    llm_model_free(d->model);
    ignore_fini(&d->ignore);
}

int arch_doctor(int argc, char **argv) {
    doctor d = {.n_tokens = 512, .n_ctx = 128, .significant = 0.01, .bos = -1, .best = -1};
    arg_list files = {0};
    const arg_option options[] = {
        {"--text", ARG_STRING, &d.text_file, .value = "FILE",
         .help = "a text of the kind that the model was trained on"},
        {"--logits", ARG_STRING, &d.logits_file, .value = "FILE",
         .help = "another engine's logits, .npy, float32 [n_tokens, n_vocab]"},
        {"--tokens", ARG_STRING, &d.ids, .value = "IDS",
         .help = "the tokens of these logits: 1,2,3"},
        {"--arch", ARG_STRING, &d.arch, .value = "FILE",
         .help = "the architecture descriptor to use"},
        IGNORE_OPTIONS(d.ignore),
        {"-n", ARG_INT, &d.n_tokens, .value = "N", .help = "tokens of the text (default 512)",
         .min = 2, .max = 1 << 24, .given = &d.n_given},
        {"-c --ctx-size", ARG_INT, &d.n_ctx, .value = "N",
         .help = "tokens of a stretch (default 128); with --logits, the context (default: their "
                 "tokens)",
         .min = 2, .max = 65536, .given = &d.ctx_given},
        {"-t --threads", ARG_INT, &d.n_threads, .value = "N", .help = "threads", .min = 1,
         .max = TOOL_MAX_THREADS},
        {0}};
    static const args_example examples[] = {
        {"llm-arch doctor model.gguf --text book.txt",
         "which reading of the descriptor predicts a text best?"},
        {0}};
    const args_spec spec = {
        TOOL,
        "MODEL --text FILE [options] | MODEL --logits FILE --tokens IDS [options]",
        "Changes one choice of the descriptor at a time, among those in which model families "
        "differ (which pairs are rotated,\nrope base, epsilon, activation, 1 + w, "
        "attention scale and window, BOS), and prints the perplexity, or the\nlargest "
        "difference from another engine's logits. If one choice gives a clearly lower value, the "
        "weights were most likely trained with it.",
        options,
        &files,
        NULL,
        .examples = examples};
    int code = arch_args(&spec, 1, 1, argc, argv);
    if (code >= 0)
        return code;
    d.by = d.logits_file ? &by_logits : &by_text;
    code = check_options(&d);
    if (code < 0)
        code = open_all(&d, files.s[0]);
    if (code < 0)
        code = visit(&d, files.s[0]);
    doctor_fini(&d);
    args_list_fini(&files);
    return code;
}
