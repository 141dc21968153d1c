/* llm-embed: makes vectors of texts, and ranks texts by similarity or by a reranker's scores. See docs/tools.md. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "batch.h"
#include "common/amounts.h"
#include "common/open_context.h"
#include "common/npy.h"
#include "common/paths.h"
#include "common/max_sim.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/ranks.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "labels.h"
#include "llm/internal/arch.h"
#include "llm/steps.h"
#include "options.h"
#include "output.h"
#include "source.h"

enum { ROWS = 64, NAME = 256 };

/* Vectors of the queries: one for each, or with the pooling none one for each token. */
typedef struct queries {
    float *row;  /* [n_rows][n_dims] */
    size_t *end; /* [n]: the row after the query's last */
    size_t n, n_rows, n_dims, cap, cap_end;
    bool cosine;       /* the model's vectors of tokens have any length */
    float *similarity; /* [n], of one text */
} queries;

typedef struct job {
    options o;
    llm_opening opening;
    llm_context *ctx;
    source source;
    batch batch;
    prompt query_prompt, line_prompt;
    labels labels;
    queries queries;
    output *out;
    size_t n_done; /* texts of this run, and those before them */
} job;

/* --- opening ---------------------------------------------------------------------------------- */

static int open_model(job *j) {
    const options *o = &j->o;
    j->opening = open_options_opening(&j->o.open);
    j->opening.params.embeddings = !o->dump;
    j->opening.copies = true;
    j->opening.n_kept_slots = -1; /* more texts at once, if that is cheap */
    llm_session_params *sp = &j->opening.session;
    sp->only =
        o->dump ? NULL : "embedding"; /* of a reranker, the library computes its scores alone */
    sp->n_rows = sp->n_ubatch < ROWS ? sp->n_ubatch : ROWS;
    return tool_open_named(&j->ctx, TOOL, &j->opening);
}

/* Texts that are computed together share the cache of one. */
static int open_session(job *j) {
    llm_session_params *sp = &j->opening.session;
    const llm_model *m = llm_opened_model(j->ctx);
    const llm_arch *arch = llm_model_arch(m);
    const int64_t n_ctx = j->opening.params.n_ctx;
    if (!llm_arch_sees_all(arch) && !llm_arch_reads_text(arch))
        sp->n_pool = n_ctx > 0 ? n_ctx : llm_model_n_ctx(m);
    const int code =
        tool_open_weights(j->ctx, TOOL, &j->opening, &j->o.open.adapters, j->o.open.plan);
    return code < 0 ? tool_open_context(j->ctx, TOOL, &j->opening, NULL, LLM_OPENED_ALL) : code;
}

/* Whether the options go with what the model makes. Returns -1, or an exit code. */
static int check_pooling(const job *j) {
    const options *o = &j->o;
    const llm_pooling pooling = llm_opened_pooling(j->ctx);
    const char *rank_flag = o->query.n > 0  ? "--query"
                            : o->n_dims > 0 ? "--dimensions"
                                            : NULL; /* scores are never normalized */
    const char *none_flag = o->resume                                      ? "--resume"
                            : o->format == FORMAT_TABLE && o->query.n == 0 ? "--format table"
                                                                           : NULL;
    if (pooling == LLM_POOL_RANK && rank_flag && !o->rerank)
        return tool_error(TOOL, 2,
                          "%s is for vectors, but the model's pooling is rank: it gives scores "
                          "(--rerank QUERY ranks the lines)",
                          rank_flag);
    ggl_error err = {0};
    if (o->rerank && o->format != FORMAT_NPY && llm_check_ranks(j->ctx, &err) != GGL_OK)
        return tool_error(TOOL, 1, "--rerank: %s%s", err.msg,
                          pooling == LLM_POOL_RANK
                              ? "; with --rerank, -o FILE.npy has all of them for each line"
                              : "");
    if (pooling == LLM_POOL_NONE && none_flag)
        return tool_error(TOOL, 2,
                          "%s needs one vector for each text, but the pooling is none: choose "
                          "--pooling mean, cls or last",
                          none_flag);
    return -1;
}

static int open_output(job *j) {
    ggl_error err = {0};
    const options *o = &j->o;
    const output_params p = {.o = o,
                             .labels = &j->labels,
                             .scores = llm_opened_pooling(j->ctx) == LLM_POOL_RANK,
                             .lists =
                                 llm_opened_pooling(j->ctx) == LLM_POOL_NONE && o->query.n == 0};
    const ggl_status st = o->format == FORMAT_NPY       ? output_npy(&j->out, &p, &err)
                          : o->query.n > 0 || o->rerank ? output_ranking(&j->out, &p, &err)
                          : o->format == FORMAT_TABLE   ? output_table(&j->out, &p, &err)
                                                        : output_json(&j->out, &p, &err);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

/* --- queries ---------------------------------------------------------------------------------- */

static ggl_status keep_query(void *user, const result *r, ggl_error *err) {
    queries *q = user;
    q->n_dims = r->n;
    if (!ggl_grow(&q->row, &q->cap, (q->n_rows + r->n_rows) * r->n, sizeof *q->row) ||
        !ggl_grow(&q->end, &q->cap_end, q->n + 1, sizeof *q->end))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the queries");
    memcpy(q->row + q->n_rows * r->n, r->row, r->n_rows * r->n * sizeof *r->row);
    q->end[q->n++] = q->n_rows += r->n_rows;
    return GGL_OK;
}

/* The name under which lines have their prompt and task; NULL: the default. */
static const char *line_kind(const options *o) {
    return o->task                         ? o->task
           : o->prompt_name                ? o->prompt_name
           : o->document || o->query.n > 0 ? "document"
                                           : NULL;
}

/* A prompt's name need not be that of a task. */
static const char *line_task(const job *j) {
    const char *kind = line_kind(&j->o);
    return j->o.task || llm_find_task(j->ctx, kind) > 0 ? kind : NULL;
}

static int embed_queries(job *j) {
    ggl_error err = {0};
    const arg_list *list = &j->o.query;
    ggl_status st = GGL_OK;
    j->queries.cosine = llm_opened_pooling(j->ctx) == LLM_POOL_NONE && !j->o.no_normalize;
    for (size_t k = 0; k < list->n && st == GGL_OK; k++) {
        char name[NAME];
        snprintf(name, sizeof name, "--query %zu", k + 1);
        st = batch_add(&j->batch, k, &(source_text){.s = list->s[k], .n = strlen(list->s[k])},
                       &j->query_prompt, name, &err);
    }
    j->batch.is_query = true;
    if (st == GGL_OK)
        st = batch_run(&j->batch, "query", keep_query, &j->queries, &err);
    if (st == GGL_OK && !(j->queries.similarity = ggl_calloc(list->n + 1, sizeof(float))))
        return tool_error(TOOL, 1, "out of memory");
    if (st == GGL_CANCELLED && process_stopped)
        return process_stop_code();
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

static void compare_with_queries(queries *q, const result *text) {
    for (size_t k = 0, begin = 0; k < q->n; begin = q->end[k++])
        q->similarity[k] = (float)tool_max_sim(q->row + begin * q->n_dims, q->end[k] - begin,
                                               text->row, text->n_rows, q->n_dims, q->cosine);
}

/* --- texts ------------------------------------------------------------------------------------ */

static ggl_status take(void *user, const result *r, ggl_error *err) {
    job *j = user;
    result similarities = *r;
    if (j->queries.n > 0) {
        compare_with_queries(&j->queries, r);
        similarities.row = j->queries.similarity;
        similarities.n_rows = 1;
        similarities.n = j->queries.n;
    }
    const ggl_status st = j->out->take(j->out, &similarities, err);
    if (st == GGL_OK)
        j->n_done = r->at + 1;
    return st == GGL_OK && process_stopped ? ggl_fail(err, GGL_CANCELLED, "interrupted") : st;
}

/* Reads texts until enough wait, or the end, at which *ends is set. Returns -1, or an exit code after an error; texts before it
 * wait in any case. */
static int fill(job *j, bool *ends) {
    ggl_error err = {0};
    source_text text;
    while (!batch_is_full(&j->batch)) {
        const size_t at = j->source.n;
        const int code = source_next(&j->source, &text);
        *ends = code >= 0;
        if (code >= 0)
            return code == 0 ? -1 : code;
        if (at < output_npy_has(j->out) && !output_npy_wants(j->out, at))
            continue;
        char name[NAME];
        source_name(&j->source, at, name, sizeof name);
        if (batch_add(&j->batch, at, &text, &j->line_prompt, name, &err) != GGL_OK) {
            *ends = true;
            return tool_error(TOOL, 1, "%s", err.msg);
        }
        if (process_stopped)
            return process_stop_code();
    }
    return -1;
}

/* Says why the run has ended early. Returns an exit code. */
static int tell_end(const job *j, ggl_status st, const ggl_error *err) {
    const size_t has = output_npy_has(j->out), /* rows of earlier runs */
        n = j->n_done > has ? j->n_done : has;
    if (process_stopped)
        return tool_error(TOOL, process_stop_code(), "interrupted after %zu text%s%s", n,
                          llm_amount_s((int64_t)n),
                          j->o.resume ? "; the same command goes on after them" : "");
    return st == GGL_CANCELLED ? 1 : tool_error(TOOL, 1, "%s", err->msg);
}

static int embed_texts(job *j) {
    ggl_error err = {0};
    j->batch.is_query = j->o.prompt_name && strcmp(j->o.prompt_name, "query") == 0;
    bool ends = false;
    int code = -1;
    while (!ends && code < 0) {
        code = fill(j, &ends);
        ggl_status st = batch_run(&j->batch, line_task(j), take, j, &err);
        if (st == GGL_OK && j->out->flush)
            st = j->out->flush(j->out, &err);
        if (st != GGL_OK || process_stopped)
            return tell_end(j, st, &err);
        progress_set(j->source.size > 0 ? j->source.n_bytes : (double)j->source.n);
    }
    return code;
}

/* Completes the output. Returns -1, or an exit code. */
static int finish(job *j) {
    ggl_error err = {0};
    const size_t has = output_npy_has(j->out);
    if (j->source.n == 0)
        return tool_error_about(TOOL, 1, "%s is empty: there is no text", j->source.path);
    if (j->source.n < has)
        return tool_error_about(TOOL, 1, "--resume: %s has %zu rows, but there %s only %zu text%s",
                                j->o.out, has, j->source.n == 1 ? "is" : "are", j->source.n,
                                llm_amount_s((int64_t)j->source.n));
    if (has > 0 && j->source.n == has)
        tool_note(TOOL, "%s has the rows of all %zu text%s already", j->o.out, has,
                  llm_amount_s((int64_t)has));
    const ggl_status st = j->out->end(j->out, &err);
    return st == GGL_OK ? -1 : tell_end(j, st, &err);
}

static int embed(job *j) {
    const source *s = &j->source;
    const bool shows =
        j->o.out || !ggl_os_is_terminal(OS_STDOUT) || j->o.query.n > 0 || j->o.rerank;
    if (shows && s->size > 0)
        progress_begin(PROGRESS_BYTES, s->size, "embedding");
    else if (shows)
        progress_begin("texts", s->arg ? (double)s->arg->n : 0, "embedding");
    const int code = embed_texts(j);
    if (shows)
        progress_end();
    return code < 0 ? finish(j) : code;
}

/* --- main ------------------------------------------------------------------------------------- */

static int check_paths(const void *ctx) {
    const options *o = ctx;
    const tool_path paths[] = {
        OPEN_PATHS(&o->open),
        {"-f", o->file, .needed = true},
        {"--arch", o->open.how.params.arch, .needed = true, .or_name = true},
        {"-o", o->out, .written = true},
        {"--image", o->image, .needed = true},
        {"--audio", o->audio, .needed = true},
    };
    return tool_check_paths(TOOL, paths, sizeof paths / sizeof *paths);
}

static int read_prompt(prompt *p, const llm_context *c, const char *name, bool is_task) {
    ggl_error err = {0};
    const ggl_status st = llm_embed_prompt(c, name, &p->s, &p->n, &err);
    if (st == GGL_OK || (st == GGL_NOT_FOUND && is_task)) /* embedding names the tasks there are */
        return -1;
    return tool_error(TOOL, 1, "%s%s", st == GGL_NOT_FOUND ? "--prompt-name: " : "", err.msg);
}

/* Gets what the model expects before queries and lines. Lists of tokens, and pairs of a reranker, are taken as they are. */
static int read_prompts(job *j) {
    const options *o = &j->o;
    int code = o->query.n > 0 ? read_prompt(&j->query_prompt, j->ctx, "query", false) : -1;
    if (code >= 0 || o->rerank || o->tokens.n > 0)
        return code;
    return read_prompt(&j->line_prompt, j->ctx, line_kind(o), o->task);
}

static int prepare(job *j) {
    int code = open_options_get_model(TOOL, &j->o.open, check_paths, &j->o);
    if (code < 0)
        code = open_model(j);
    if (code < 0)
        code = read_prompts(j);
    if (code < 0)
        code = labels_read(&j->labels, j->ctx);
    if (code < 0)
        code = open_session(j);
    return code < 0 ? check_pooling(j) : code;
}

/* Gets a step of looking at a picture or listening to a sound: its numbers, and how many there are in each dimension. */
static ggl_status get_step(const job *j, float **value, size_t n[3], ggl_error *err) {
    const llm_image image = {.path = j->o.image};
    const llm_audio audio = {.path = j->o.audio};
    n[2] = 1;
    if (j->o.dump == DUMP_MEL)
        return llm_audio_mel(j->ctx, &audio, value, &n[0], &n[1], err);
    if (j->o.audio)
        return llm_audio_rows(j->ctx, &audio, value, &n[0], &n[1], err);
    if (j->o.dump == DUMP_ROWS)
        return llm_image_rows(j->ctx, &image, value, &n[0], &n[1], err);
    n[2] = 3;
    return llm_image_pixels(j->ctx, &image, value, &n[0], &n[1], err);
}

/* --dump */
static int dump(job *j) {
    ggl_error err = {0};
    float *value = NULL;
    size_t n[3] = {0, 0, 1};
    npy_writer w = {0};
    const bool pixels = j->o.dump == DUMP_PIXELS;
    ggl_status st = get_step(j, &value, n, &err);
    const int64_t shape[3] = {(int64_t)n[0], (int64_t)n[1], (int64_t)n[2]};
    if (st == GGL_OK)
        st = npy_open_shape(&w, j->o.out, shape, pixels ? 3 : 2, &err);
    if (st == GGL_OK)
        npy_row(&w, value, (int64_t)(n[0] * n[1] * n[2]));
    if (st == GGL_OK)
        st = npy_close(&w, &err);
    ggl_free(value);
    if (process_stopped)
        return process_stop_code();
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    tool_note(TOOL, pixels ? "%s: %zu line%s of %zu pixels" : "%s: %zu row%s of %zu numbers",
              j->o.out, n[0], llm_amount_s((int64_t)n[0]), n[1]);
    return 0;
}

static int run(job *j) {
    int code = prepare(j);
    if (code < 0 && j->o.dump)
        return dump(j);
    if (code < 0)
        batch_init(&j->batch, j->ctx, llm_opened_tokenizer(j->ctx), &j->o,
                   llm_opened_n_copies(j->ctx));
    if (code < 0 && j->o.query.n > 0)
        code = embed_queries(j);
    if (code < 0)
        code = source_open(&j->source, &j->o);
    if (code < 0)
        code = open_output(j);
    if (code < 0)
        code = embed(j);
    return code < 0 ? 0 : code;
}

static void job_fini(job *j) {
    if (j->out)
        j->out->close(j->out);
    source_close(&j->source);
    batch_fini(&j->batch);
    ggl_free(j->query_prompt.s);
    ggl_free(j->line_prompt.s);
    labels_fini(&j->labels);
    ggl_free(j->queries.row);
    ggl_free(j->queries.end);
    ggl_free(j->queries.similarity);
}

int main(int argc, char **argv) {
    process_begin(&argc, &argv);
    job j = {0};
    int code = tool_join_job(TOOL);
    if (code < 0)
        code = embed_options_read(&j.o, argc, argv);
    if (code < 0) {
        process_wait_for_stop();
        code = run(&j);
    }
    job_fini(&j);
    if (code == 0 && j.ctx && !llm_placement_report(llm_opened_placement(j.ctx), stderr))
        code = 1;
    code = tool_close_context(j.ctx, TOOL, code);
    embed_options_fini(&j.o);
    return tool_finish(TOOL, code);
}
