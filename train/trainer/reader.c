/* What tokens read, as graphs: the stages of an eye or an ear, whose rows stand in place of tokens; or the stage of the tokens' own descriptor, whose keys and
 * values they attend to. Each stage is a graph of its own, and so are the tokens: rows pass from one to the next through the program's memory, and
 * gradients by these rows back (reading.c). All of them share the weights that learn. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/compose.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "trainer_impl.h"

/* --- what there is ------------------------------------------------------------------------------ */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for what the tokens of a trainer read");
}

/* Asks the descriptor, by a graph that is not run. */
static ggl_status ask(train_reader *r, const llm_train_params *p, llm_arch_result *built,
                      ggl_error *err) {
    const ggl_graph_params of = ggl_graph_default();
    const llm_arch_params params = {.size = sizeof params,
                                    .n_ctx = p->n_ctx,
                                    .ignore = r->is.is_own ? (llm_arch_ignore){0} : p->eye_ignore};
    ggl_graph *g = ggl_graph_new(&of);
    if (!g)
        return no_memory(err);
    const ggl_status st = llm_arch_build(r->arch, r->source, &params, g, built, err);
    ggl_graph_free(g);
    return st;
}

/* Finds the input, and how many rows each stage has at most. */
static ggl_status size_stages(train_reader *r, int64_t n_read, ggl_error *err) {
    int n_inputs = 0;
    for (int k = 0; k < r->n_sources; k++)
        if (r->of[k].is_input) {
            n_inputs++;
            r->is.input = r->of[k];
            r->is.n_input = ggl_extents(r->of[k].ne, 0, r->of[k].n_dims, 1);
            r->is.n_most =
                n_read && !(r->of[k].most && r->of[k].most < n_read) ? n_read : r->of[k].most;
        }
    if (n_inputs != 1)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: the model has %d inputs of rows",
                        llm_arch_name(r->arch), n_inputs);
    if (r->is.n_most < 1)
        return ggl_fail(err, GGL_USAGE,
                        "%s does not say how many rows its input has at most, so the program must",
                        llm_arch_name(r->arch));
    for (int k = 0; k < r->n_sources; k++) {
        train_stage *s = &r->stage[k];
        s->n_row = ggl_extents(r->of[k].ne, 0, r->of[k].n_dims, 1);
        s->n_most = llm_rows_run(&r->of[k], llm_rows_made(r->of, k, r->is.n_most));
        if (s->n_most < 1)
            return ggl_fail(err, GGL_USAGE,
                            "an input of %" PRId64 " rows, of which the stage '%s' makes none",
                            r->is.n_most, r->of[k].name);
    }
    return GGL_OK;
}

ggl_status llm_reader_init(llm_trainer *t, ggl_error *err) {
    train_reader *r = &t->reader;
    const bool is_own = !t->p.eye && llm_arch_reads_text(t->arch) && !t->p.output;
    if (!t->p.eye && !is_own)
        return GGL_OK;
    if (t->p.output || t->p.guess)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "a model that reads pictures, sounds or another text learns through its "
                        "logits alone");
    r->arch = is_own ? t->arch : t->p.eye;
    r->source = is_own ? t->source : t->p.eye_source;
    r->is.is_there = true;
    r->is.is_own = is_own;
    r->adapter = ggl_calloc(t->p.n_adapters + 1, sizeof *r->adapter);
    if (!r->adapter)
        return no_memory(err);
    for (size_t i = 0; i < t->p.n_adapters; i++)
        if (t->p.adapter[i].beside)
            r->adapter[r->n_adapters++] = t->p.adapter[i];
    llm_arch_result built;
    ggl_status st = ask(r, &t->p, &built, err);
    if (st == GGL_OK) {
        memcpy(r->of, built.source, sizeof r->of);
        r->n_sources = built.n_sources;
        r->is.of_text = is_own && built.n_sources == 0;
        if (!is_own && (built.n_sources == 0 || built.rows.n == 0 || built.reads_text))
            st = ggl_fail(err, GGL_UNSUPPORTED,
                          "%s: no eye or ear: it does not make rows for another model",
                          built.family);
    }
    const int64_t n_rows = st == GGL_OK ? built.rows.n : 0;
    llm_arch_result_fini(&built);
    if (st == GGL_OK && r->is.of_text) {
        r->n_sources = 1;
        r->is.n_most = r->stage[0].n_most = t->p.n_read ? t->p.n_read : t->p.n_ctx;
    } else if (st == GGL_OK) {
        st = size_stages(r, t->p.n_read, err);
        if (!is_own)
            r->stage[r->n_sources - 1].n_row = n_rows;
    }
    return st;
}

bool llm_reader_gives(const llm_trainer *t, const char *input) {
    static const char *const own[] = {"stage.", "read."}, *const of_eye[] = {"given_row",
                                                                             "given_more",
                                                                             "is_given", "pos."};
    const train_reader *r = &t->reader;
    bool gives = false;
    for (int k = 0; k < 2 && r->is.is_own; k++)
        gives |= strncmp(input, own[k], strlen(own[k])) == 0;
    for (int k = 0; k < 4 && r->is.is_there && !r->is.is_own; k++)
        gives |= strncmp(input, of_eye[k], strlen(of_eye[k])) == 0;
    return gives;
}

/* --- stages ------------------------------------------------------------------------------------- */

static bool is_last(const train_reader *r, int k) {
    return k + 1 == r->n_sources;
}

/* Returns the name that an input of the stage's graph has. */
static const char *named(const train_reader *r, const char *name, char buf[64]) {
    snprintf(buf, 64, "%s%s", r->is.is_own ? "stage." : "", name);
    return buf;
}

/* Makes the graph of stage k, with its rows as the only output. */
static ggl_status build_rows(llm_trainer *t, int k, ggl_graph **out, llm_arch_result *built,
                             ggl_error *err) {
    train_reader *r = &t->reader;
    const int64_t n = r->stage[k].n_most;
    const bool reads = r->is.is_own && is_last(r, k);
    const ggl_graph_params of = {.size = sizeof of,
                                 .n_pos = n,
                                 .n_batch = n,
                                 .n_slots = 1,
                                 .type_k = GGL_F32,
                                 .type_v = GGL_F32};
    const llm_arch_params params = {
        .size = sizeof params,
        .n_ctx = r->is.of_text || !r->is.is_own ? n : t->p.n_ctx,
        .n_read = reads ? n : 0,
        .read_only = reads,
        .only = reads           ? NULL
                : is_last(r, k) ? "rows"
                                : r->of[k].name,
        .ignore = r->is.is_own ? (llm_arch_ignore){0} : t->p.eye_ignore,
        .adapter = r->is.is_own ? t->p.adapter : r->adapter,
        .n_adapters = r->is.is_own ? t->p.n_adapters : r->n_adapters,
    };
    ggl_graph *g = *out = ggl_graph_new(&of);
    if (!g) {
        *built = (llm_arch_result){0};
        return no_memory(err);
    }
    const ggl_status st = llm_arch_build(r->arch, r->source, &params, g, built, err);
    if (st == GGL_OK)
        llm_trainer_flatten(g);
    return st;
}

ggl_status llm_reader_build(llm_trainer *t, int k, ggl_graph **g, ggl_tensor **out,
                            ggl_error *err) {
    train_reader *r = &t->reader;
    char name[64];
    llm_arch_result built;
    const ggl_status st = build_rows(t, k, g, &built, err);
    const int64_t n = built.n_row ? built.n_row : built.rows.n;
    llm_arch_result_fini(&built);
    if (st != GGL_OK)
        return st;
    r->stage[k].n_row = n;
    *out = llm_trainer_of_gradient(*g, named(r, "gradient", name), ggl_graph_get_output(*g, 0), n);
    ggl_graph_replace_output(*g, 0, "loss", *out);
    return ggl_graph_error(*g, err);
}

/* Lists the rows that the graph reads of stages before. Returns their number, -1: too many. */
static int rows_before(const train_reader *r, const ggl_graph *g, int most, ggl_tensor **out) {
    int n = 0;
    for (int i = 0; i < ggl_graph_n_inputs(g); i++) {
        const ggl_tensor *x = ggl_graph_get_input(g, i);
        const char *name = x->name + (r->is.is_own ? strlen("stage.") : 0);
        bool is_rows = x->type == GGL_F32 && strncmp(name, "rows.", 5) == 0;
        for (int k = 0; k < r->n_sources; k++) {
            const size_t length = strlen(r->of[k].name);
            if (is_rows && r->of[k].is_input && strncmp(name + 5, r->of[k].name, length) == 0 &&
                (name[5 + length] == 0 || name[5 + length] == '.'))
                is_rows = false;
        }
        if (is_rows && n == most)
            return -1;
        if (is_rows)
            out[n++] = ggl_graph_find_input(g, x->name);
    }
    return n;
}

/* Makes the plan of stage k that adds up the gradients of its weights, with those by its rows as outputs behind the first one. */
static ggl_status plan_learn(llm_trainer *t, int k, ggl_error *err) {
    train_reader *r = &t->reader;
    train_plan *p = &r->stage[k].plan[READ_LEARN];
    const size_t most = (size_t)t->weights.n + LLM_MAX_ROWS_INPUTS;
    ggl_tensor **by = ggl_calloc(4 * most, sizeof(ggl_tensor *)), *through;
    if (!by)
        return no_memory(err);
    ggl_tensor **into = by + most, **grad = into + most, **copy = grad + most;
    ggl_status st = llm_reader_build(t, k, &p->g, &through, err);
    const int n = st == GGL_OK ? llm_trainer_let_learn(t, p->g, by, copy) : 0;
    for (int i = 0; i < n; i++) {
        const llm_train_weight *w = llm_train_weights_find(&t->weights, by[i]->name);
        into[i] = ggl_graph_variable(p->g, w->name, GGL_F32, w->n_dims, w->ne, w->grad);
    }
    const int n_rows =
        st == GGL_OK && r->stage[k].passes ? rows_before(r, p->g, LLM_MAX_ROWS_INPUTS, by + n) : 0;
    if (st == GGL_OK && n_rows < 0)
        st = ggl_fail(err, GGL_LIMIT, "a stage reads more than %d inputs", LLM_MAX_ROWS_INPUTS);
    if (st == GGL_OK) {
        const ggl_grad_params of = {
            .size = sizeof of, .keep = t->p.keep, .into = into, .copy = copy, .bf16 = t->p.bf16};
        ggl_graph_grad(p->g, through, by, n + n_rows, &of, grad);
        for (int i = 0; i < n; i++)
            if (grad[i])
                ggl_graph_assign(p->g, into[i], grad[i]);
        for (int i = n; i < n + n_rows; i++)
            if (grad[i])
                ggl_graph_output(p->g, by[i]->name, grad[i]);
        st = ggl_graph_error(p->g, err);
    }
    ggl_free(by);
    return st == GGL_OK ? llm_train_plan(p, &t->p, r->stage[k].n_most, err) : st;
}

static ggl_status plan_look(llm_trainer *t, int k, ggl_error *err) {
    train_plan *p = &t->reader.stage[k].plan[READ_LOOK];
    const size_t most = (size_t)t->weights.n + 1;
    ggl_tensor **by = ggl_calloc(2 * most, sizeof(ggl_tensor *));
    llm_arch_result built = {0};
    ggl_status st = by ? build_rows(t, k, &p->g, &built, err) : no_memory(err);
    if (st == GGL_OK)
        llm_trainer_let_learn(t, p->g, by, by + most);
    llm_arch_result_fini(&built);
    ggl_free(by);
    return st == GGL_OK ? llm_train_plan(p, &t->p, t->reader.stage[k].n_most, err) : st;
}

static ggl_status find_inputs(train_reader *r, int k, int which, ggl_error *err) {
    llm_arch_result names = {.n_sources = r->n_sources};
    memcpy(names.source, r->of, sizeof r->of);
    const int n = llm_rows_inputs(r->stage[k].plan[which].g, &names, r->stage[k].input[which]);
    r->stage[k].n_inputs[which] = n < 0 ? 0 : n;
    return n >= 0
               ? GGL_OK
               : ggl_fail(err, GGL_LIMIT, "a stage reads more than %d inputs", LLM_MAX_ROWS_INPUTS);
}

ggl_status llm_reader_plan(llm_trainer *t, ggl_error *err) {
    train_reader *r = &t->reader;
    ggl_status st = GGL_OK;
    bool before = false;
    for (int k = 0; k < r->n_sources && st == GGL_OK; k++) {
        train_stage *s = &r->stage[k];
        if (!r->is.of_text && r->of[k].is_input)
            continue;
        s->passes = before;
        before |= s->learns;
        st = plan_look(t, k, err);
        if (st == GGL_OK && before)
            st = plan_learn(t, k, err);
        for (int i = 0; i < READ_PLANS && st == GGL_OK && !r->is.of_text; i++)
            st = s->plan[i].g ? find_inputs(r, k, i, err) : GGL_OK;
    }
    r->learns = before;
    return st;
}

/* --- what tokens read --------------------------------------------------------------------------- */

static bool is_kept(const ggl_tensor *w) {
    return w->op == GGL_OP_WEIGHT && w->name && strncmp(w->name, "read.", 5) == 0;
}

/* Makes the memory that the stacks of the tokens' graph are in. */
static bool make_kept(train_reader *r, const ggl_graph *g, int64_t n_reads) {
    size_t cap = 0;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *w = ggl_graph_node(g, i);
        if (!is_kept(w))
            continue;
        if (!ggl_grow(&r->kept, &cap, (size_t)r->n_kept + 1, sizeof *r->kept))
            return false;
        train_kept *k = &r->kept[r->n_kept];
        const size_t n = (size_t)ggl_count(w), length = strlen(w->name);
        *k = (train_kept){.is_values = strcmp(w->name + length - 7, ".values") == 0,
                          .ne = {w->ne[0], w->ne[1], w->ne[2]},
                          .n_heads = w->ne[2] / n_reads,
                          .name = ggl_calloc(length + 1, 1),
                          .data = ggl_calloc(n, sizeof(float)),
                          .grad = ggl_calloc(n, sizeof(float))};
        r->n_kept++;
        if (!k->name || !k->data || !k->grad)
            return false;
        memcpy(k->name, w->name, length);
    }
    return true;
}

int llm_reader_keep(llm_trainer *t, ggl_graph *g, ggl_tensor **kept, ggl_tensor **into) {
    train_reader *r = &t->reader;
    int n = 0;
    for (int i = 0; i < ggl_graph_n_nodes(g) && n < r->n_kept; i++) {
        ggl_tensor *w = ggl_graph_node(g, i);
        if (!is_kept(w) || w->variable)
            continue;
        train_kept *k = &r->kept[n];
        w->data = k->data;
        w->variable = true;
        kept[n] = w;
        if (into)
            into[n] = ggl_graph_variable(g, k->name, GGL_F32, 3, k->ne, k->grad);
        n++;
    }
    return n;
}

ggl_status llm_reader_note(llm_trainer *t, const ggl_graph *g, const llm_arch_result *built,
                           ggl_error *err) {
    train_reader *r = &t->reader;
    const size_t n = (size_t)t->p.n_batch;
    if (!r->is.is_there || r->n_kept > 0 || r->given)
        return GGL_OK;
    if (r->is.is_own)
        return make_kept(r, g, t->p.n_slots) ? GGL_OK : no_memory(err);
    if (built->given_together && ggl_graph_find_input(g, "begin"))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "rows of a picture see each other beyond windows in this text model, which "
                        "is not trained with pictures");
    r->n_given = built->n_given;
    r->n_more = built->n_given_more;
    r->is.has_places = built->has_places;
    r->is.together = built->given_together;
    if (built->given_added)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "rows of a sound are added to the tokens of the text model, which does "
                        "not learn with them");
    if (r->n_given + r->n_more != r->stage[r->n_sources - 1].n_row)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the eye or ear makes rows of %" PRId64
                        " numbers, but those of the text model have %" PRId64,
                        r->stage[r->n_sources - 1].n_row, r->n_given + r->n_more);
    r->given = ggl_calloc(n * (size_t)r->n_given + 1, sizeof *r->given);
    r->more = ggl_calloc(n * (size_t)r->n_more + 1, sizeof *r->more);
    r->is_given = ggl_calloc(n, sizeof *r->is_given);
    r->seen = ggl_calloc(n, sizeof *r->seen);
    return r->given && r->more && r->is_given && r->seen ? GGL_OK : no_memory(err);
}

size_t llm_reader_bytes(const llm_trainer *t) {
    const train_reader *r = &t->reader;
    size_t sum = 0;
    for (int k = 0; k < r->n_sources; k++)
        for (int i = 0; i < READ_PLANS; i++)
            sum += llm_train_plan_bytes(&r->stage[k].plan[i]);
    for (int k = 0; k < r->n_kept; k++)
        sum += 2 * sizeof(float) * (size_t)ggl_extents(r->kept[k].ne, 0, 3, 1);
    return sum;
}

llm_train_reader llm_trainer_reader(const llm_trainer *t) {
    return t->reader.is;
}

int64_t llm_trainer_n_rows(const llm_trainer *t, int64_t n) {
    const train_reader *r = &t->reader;
    if (r->n_sources == 0 || r->is.of_text)
        return r->n_sources == 1 ? n : 0;
    return llm_rows_made(r->of, r->n_sources - 1, n);
}

void llm_reader_fini(llm_trainer *t) {
    train_reader *r = &t->reader;
    for (int k = 0; k < r->n_sources; k++)
        for (int i = 0; i < READ_PLANS; i++)
            llm_train_plan_fini(&r->stage[k].plan[i]);
    for (int k = 0; k < r->n_kept; k++) {
        ggl_free(r->kept[k].name);
        ggl_free(r->kept[k].data);
        ggl_free(r->kept[k].grad);
    }
    ggl_free(r->kept);
    ggl_free(r->adapter);
    ggl_free(r->given);
    ggl_free(r->more);
    ggl_free(r->is_given);
    ggl_free(r->seen);
}
