/* Stages over rows: those of an input that the caller prepares, or those that another stage has returned. Each of these stages
 * is a graph of its own, run one after the other; in each, the rows that it reads of its source are inputs, which
 * the caller fills. So one build makes the nodes of all stages, and keeps those of the one that is asked for. */
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "compile.h"
#include "llm/internal/rows_gather.h"

/* Adds a source of rows. NULL: too many, reported. */
static arch_source *add_source(arch_eval *ev, const arch_target *t) {
    if (ev->n_sources == LLM_ARCH_MAX_SOURCES) {
        llm_arch_error(ev, t->place, "more than %d inputs and stages", LLM_ARCH_MAX_SOURCES);
        return NULL;
    }
    arch_source *s = &ev->source[ev->n_sources++];
    *s = (arch_source){.row = {.name = t->name, .over = -1, .every = 1}};
    return s;
}

static arch_value rows_value(const arch_eval *ev) {
    return (arch_value){.kind = VAL_ROWS, .source = ev->n_sources};
}

bool llm_arch_run_rows_input(arch_eval *ev, const arch_stmt *s) {
    if (llm_arch_target_slot(ev, &s->target[0])->bound) {
        llm_arch_error(ev, s->target[0].place,
                       "'%s' already has a value: an input needs a new name", s->target[0].name);
        return false;
    }
    arch_source *to = add_source(ev, &s->target[0]);
    if (!to)
        return false;
    if (s->n_expr >= GGL_MAX_DIMS) { /* `around` adds one */
        llm_arch_error(ev, s->place, "a row of an input has at most %d dimensions",
                       GGL_MAX_DIMS - 1);
        return false;
    }
    for (int d = 0; d < s->n_expr; d++) {
        const arch_value v = llm_arch_eval_expr(ev, s->expr[d]);
        if (v.kind == VAL_FAIL ||
            !llm_arch_want_whole(ev, s->expr[d], &v, 1, ARCH_MAX_DIM, &to->row.ne[d]))
            return false;
        to->dim_name[d] = v.text;
    }
    to->row.n_dims = s->n_expr;
    to->row.is_input = true;
    ev->preparing = to;
    const bool ok = llm_arch_eval_expr(ev, s->other).kind == VAL_PREPARED;
    ev->preparing = NULL;
    to->row.is_plane = llm_arch_picture_is_plane(&to->row.picture);
    if (!ok)
        return false;
    const arch_value v = rows_value(ev);
    return llm_arch_bind(ev, &s->target[0], &v);
}

static arch_value prepared(arch_eval *ev, const arch_expr *e, int64_t rows) {
    if (!ev->preparing)
        return llm_arch_error(ev, e->mark,
                              "this says how the rows of an input are prepared: input NAME [n] "
                              "from %s(..)",
                              e->name);
    ev->preparing->row.most = rows;
    return (arch_value){.kind = VAL_PREPARED};
}

arch_value llm_arch_from_floats(arch_eval *ev, const arch_expr *e, int64_t rows) {
    return prepared(ev, e, rows);
}

/* Returns the input with these dimensions that gives rows of the source to the stage that runs; NULL: reported. The source's
 * result counts as used if the input is. */
static ggl_tensor *rows_input(arch_eval *ev, arch_place p, const arch_source *from,
                              const char *name, int n_dims, const int64_t *ne) {
    ggl_tensor *t = llm_arch_input(ev, p, name, GGL_F32, n_dims, ne);
    for (int d = 0; t && d < from->row.n_dims; d++)
        t->dim_name[d] = from->dim_name[d];
    return t && from->result && !llm_arch_add_edge(ev, t, from->result) ? NULL : t;
}

/* The beginning of the names of a stage's inputs. */
static const char *before(const arch_eval *ev) {
    return ev->arch->has_tokens ? "stage." : "";
}

/* Returns the input that has n rows of the source for each row of the stage; `part` ends its name. */
static arch_value several(arch_eval *ev, const arch_expr *e, const arch_source *from, int64_t n,
                          const char *part) {
    char name[2 * ARCH_MAX_NAME + 64];
    int64_t ne[GGL_MAX_DIMS];
    memcpy(ne, from->row.ne, sizeof from->row.ne);
    ne[from->row.n_dims] = n;
    snprintf(name, sizeof name, "%srows.%s.%s", before(ev), from->row.name, part);
    return llm_arch_tensor_value(rows_input(ev, e->mark, from, name, from->row.n_dims + 1, ne));
}

/* True if the value is the row of a stage that reads rows of its source in their own order, so that others can be given with it. */
static bool has_neighbours(arch_eval *ev, const arch_expr *e, const arch_value *rows) {
    const bool is_row = rows->kind == VAL_TENSOR && rows->source;
    if (!is_row)
        llm_arch_error(ev, e->mark, "%s needs the name that the stage is over",
                       strcmp(e->name, "around") == 0 ? "around(rows, first, k)"
                                                      : "plane_around(rows, k)");
    else if (ev->source[ev->n_sources - 1].row.filled || ev->source[ev->n_sources - 1].row.asks)
        llm_arch_error(ev, e->mark, "rows that fill windows, or ask, have none around them");
    else
        return true;
    return false;
}

arch_value llm_arch_around(arch_eval *ev, const arch_expr *e, const arch_value *rows, int64_t first,
                           int64_t k) {
    char part[64];
    if (!has_neighbours(ev, e, rows))
        return ARCH_FAIL;
    snprintf(part, sizeof part, "%lld.%lld", (long long)first, (long long)k);
    return several(ev, e, &ev->source[rows->source - 1], k, part);
}

arch_value llm_arch_plane_around(arch_eval *ev, const arch_expr *e, const arch_value *rows,
                                 int64_t k) {
    char part[64];
    if (!has_neighbours(ev, e, rows))
        return ARCH_FAIL;
    const arch_source *from = &ev->source[rows->source - 1];
    if (!from->row.is_plane || k % 2 == 0)
        return llm_arch_error(ev, e->mark, "%s",
                              from->row.is_plane ? "a row is in the middle of an odd number"
                                                 : LLM_ARCH_NO_PLANE);
    snprintf(part, sizeof part, "plane.%lld", (long long)k);
    return several(ev, e, from, k * k, part);
}

/* Returns the source that the stage is over; NULL: reported. */
static const arch_source *find_source(arch_eval *ev, const arch_stmt *s) {
    const arch_value v = llm_arch_eval_expr(ev, s->expr[0]);
    char text[256];
    if (v.kind == VAL_ROWS)
        return &ev->source[v.source - 1];
    if (v.kind == VAL_TENSOR && ggl_is_batched(v.t) && llm_arch_rows(ev, v.t) == ROWS_EACH)
        llm_arch_error(ev, s->expr[0]->place,
                       "a stage over a value of each token guesses ahead: over %s(ahead = 1)",
                       s->expr[0]->name);
    else if (v.kind != VAL_FAIL)
        llm_arch_error(ev, s->expr[0]->place, "a stage is over an input or a stage before it: %s",
                       llm_arch_value_text(&v, text, sizeof text));
    return NULL;
}

/* True for the last stage. In an `if`, another branch may have one of its name. */
static bool is_last(const arch_eval *ev, const arch_stmt *s) {
    return strcmp(s->target[0].name, ev->arch->last_stage->target[0].name) == 0;
}

const char *llm_arch_only_stage(const arch_eval *ev) {
    const char *only = ev->params ? ev->params->only : NULL, *stage = NULL;
    for (int k = 0; only && (stage = llm_arch_rows_stage(ev->arch, k)); k++)
        if (strcmp(stage, only) == 0)
            break;
    return stage;
}

/* True if the graph is this stage's. Of others, nothing is known of how many rows they have. */
static bool is_meant(const arch_eval *ev, const arch_stmt *s) {
    const char *only = llm_arch_only_stage(ev);
    return only ? strcmp(s->target[0].name, only) == 0 : is_last(ev, s);
}

/* Returns below which number the positions of the stage's rows are. */
static int64_t n_pos(const arch_eval *ev, const arch_stmt *s, const arch_source *to) {
    const int64_t most = llm_rows_run(&to->row, to->row.most);
    if (!is_meant(ev, s))
        return 1;
    if (!ev->arch->has_tokens || !is_last(ev, s))
        return most ? most : ev->n_ctx;
    return ev->params && ev->params->n_read ? ev->params->n_read : most ? most : ev->n_ctx;
}

/* Gives `pos` of the stage, and no token. False: reported. */
static bool begin(arch_eval *ev, const arch_stmt *s, const arch_source *to) {
    /* all stages are built into one graph, of which only what the meant one needs stays: what "end" is there for decides how that attends */
    static const char *const name[] = {"pos", "slot", "end"};
    const int n = is_meant(ev, s) && !to->row.causal ? 3 : 2;
    char full[32];
    for (int k = 0; k < n; k++) {
        snprintf(full, sizeof full, "%s%s", before(ev), name[k]);
        ggl_tensor *t = llm_arch_input(ev, s->place, full, GGL_I32, 0, NULL);
        if (k == 0)
            ev->global[SLOT_POS].v.t = t;
    }
    ev->global[SLOT_POS].v.range = n_pos(ev, s, to);
    ev->stage_pos = ev->global[SLOT_POS].v;
    if (ev->arch->has_tokens && is_last(ev, s)) { /* where the rows are that tokens read */
        ggl_graph_input(ev->g, "read.slot", GGL_I32, 0, NULL, true);
        ggl_graph_input(ev->g, "read.end", GGL_I32, 0, NULL, true);
    }
    ev->global[SLOT_TOKEN].v =
        llm_arch_none("a stage over rows has no token: only one of a text has");
    return llm_arch_graph_ok(ev, s->place);
}

/* Reads the options of a stage over rows. */
static bool read_options(arch_eval *ev, const arch_stmt *s, llm_arch_rows_of *to) {
    int64_t filled = 0, asks = 0, causal = 0;
    const struct {
        int64_t *to, least, most;
    } option[ARCH_ROW_OPTIONS] = {{&to->every, 1, ARCH_MAX_DIM},
                                  {&to->from, -1024, ARCH_MAX_DIM},
                                  {&to->count, 0, ARCH_MAX_DIM},
                                  {&to->windows, 0, ARCH_MAX_DIM},
                                  {&to->block, 0, ARCH_MAX_DIM},
                                  {&to->beyond, 0, 1},
                                  {&to->ends, 0, 1},
                                  {&filled, 0, 1},
                                  {&to->step, 0, ARCH_MAX_DIM},
                                  {&asks, 0, 1},
                                  {&causal, 0, 1}};
    for (int k = 0; k < ARCH_ROW_OPTIONS; k++) {
        const arch_value v = llm_arch_eval_expr(ev, s->expr[1 + k]);
        if (v.kind == VAL_FAIL || !llm_arch_want_whole(ev, s->expr[1 + k], &v, option[k].least,
                                                       option[k].most, option[k].to))
            return false;
    }
    to->filled = filled == 1;
    to->asks = asks == 1;
    to->causal = causal == 1;
    return true;
}

/* Checks that the options go together. False: reported. */
static bool check_options(arch_eval *ev, const arch_stmt *s, const arch_source *from,
                          llm_arch_rows_of *to) {
    const bool is_all =
        to->every == 1 && to->from == 0 && to->count == 0 && to->block == 0 && to->ends == 0;
    const char *wrong = NULL;
    to->is_plane = from->row.is_plane && is_all && !to->asks;
    if (to->asks && (!is_all || to->windows > 0 || to->step > 1 || is_last(ev, s)))
        wrong = "a stage that asks has no other options, and is not the last one";
    else if (to->causal && (to->asks || to->windows > 0 || ev->arch->has_tokens))
        wrong = "a causal stage is one of an eye or ear, without 'asks' and 'windows'";
    else if (to->windows > 0 && from->row.picture.patch == 0 && !from->row.is_plane)
        wrong = "only rows of an input from a picture have windows: squares of it";
    else if (to->windows > 0 && (from->row.picture.first > 0 || to->from < 0))
        wrong = "rows before the patches are in no window of the picture";
    else if (to->block > 0 && (to->from != 0 || to->count > 0 || to->windows > 0 || to->ends > 0))
        wrong = "rows in blocks have no 'from', 'count', 'windows' or 'ends'";
    else if (to->block > 0 && is_last(ev, s) && ev->arch->has_tokens)
        wrong = "the stage that tokens read has no blocks, whose last one may be filled";
    else if (to->windows > 0 && !to->filled && !from->row.is_input)
        wrong = "windows of rows of a stage are filled: filled = 1";
    else if (to->filled && (to->windows == 0 || !to->is_plane || to->windows > 1024))
        wrong = to->is_plane ? "only windows of at most 1024 lines and columns can be filled"
                             : LLM_ARCH_NO_PLANE;
    else if (to->step > 1 && (!to->is_plane || to->windows > 0))
        wrong = to->is_plane ? "rows in windows have no 'step'" : LLM_ARCH_NO_PLANE;
    if (wrong)
        llm_arch_error(ev, s->place, "%s", wrong);
    return !wrong;
}

bool llm_arch_run_rows_stage(arch_eval *ev, const arch_stmt *s, arch_slot *outer) {
    const arch_source *from = find_source(ev, s);
    char name[2 * ARCH_MAX_NAME + 16];
    if (!from)
        return false;
    const int over = (int)(from - ev->source);
    int n_before = 0;
    for (int k = 0; k < ev->n_sources; k++)
        n_before += ev->source[k].result != NULL;
    if (ev->n_stages > n_before) {
        llm_arch_error(ev, s->place, LLM_ARCH_ONE_TEXT);
        return false;
    }
    arch_source *to = add_source(ev, &s->target[0]);
    if (!to)
        return false;
    if (!read_options(ev, s, &to->row) || !check_options(ev, s, from, &to->row))
        return false;
    to->row.over = over;
    to->row.most = from->row.most ? llm_arch_rows_over(&to->row, from->row.most) : 0;
    if (!begin(ev, s, to))
        return false;
    snprintf(name, sizeof name, "%srows.%s", before(ev), from->row.name);
    arch_value v =
        llm_arch_tensor_value(rows_input(ev, s->place, from, name, from->row.n_dims, from->row.ne));
    if (v.kind == VAL_FAIL)
        return false;
    v.source = over + 1;
    ev->global[s->expr[0]->global].v = v;
    if (!llm_arch_run_block(ev, s, outer))
        return false;
    ggl_tensor *t = ev->stage_result.t;
    if (t->n_dims >= GGL_MAX_DIMS) {
        llm_arch_error(ev, s->place, "a stage returns rows of at most %d dimensions",
                       GGL_MAX_DIMS - 1);
        return false;
    }
    to->result = t;
    to->row.n_dims = t->n_dims;
    for (int d = 0; d < t->n_dims; d++) {
        to->row.ne[d] = t->ne[d];
        to->dim_name[d] = t->dim_name[d];
    }
    ev->n_stages++;
    ev->is_causal |= to->row.causal && is_meant(ev, s);
    if (ev->arch->has_tokens && is_last(ev, s))
        ggl_graph_set_group(ev->g, -1); /* the tokens' part before their first layer */
    if (is_last(ev, s))
        ev->stage_result.is_stage = true;
    else
        ev->stage_result = (arch_value){.kind = VAL_ROWS, .source = (int)(to - ev->source) + 1};
    return true;
}
