/* Spans of tensors in the weights of a folder; see lora_back.h. */
#include "lora_back.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/graph.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/pass.h"

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory");
}

static ggl_status refuse(const lora_back *b, const converted_tensor *t, const char *why,
                         ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s: a change of %.200s cannot be taken back to the folder's weights: %s",
                    b->folder, t->name, why);
}

/* --- what is looked up ------------------------------------------------------------------------ */

/* Calls f for each tensor of the folder that the recipe reads. */
typedef void source_fn(void *ctx, size_t i);
static void walk_sources(const llm_safetensors *from, const recipe *r, source_fn *f, void *ctx) {
    if (r->source)
        f(ctx, (size_t)(r->source - from->tensor));
    for (int k = 0; k < r->n_part; k++)
        walk_sources(from, r->part[k], f, ctx);
}

static void count_source(void *ctx, size_t i) {
    ((size_t *)ctx)[i]++;
}

typedef struct reader_walk {
    const lora_lookup *l;
    size_t *end; /* of the readers of tensor i so far */
    size_t tensor;
} reader_walk;

static void add_reader(void *ctx, size_t i) {
    const reader_walk *w = ctx;
    if (w->end[i] == w->l->first[i] || w->l->reader[w->end[i] - 1] != w->tensor)
        w->l->reader[w->end[i]++] = w->tensor;
}

static void free_lookup(lora_lookup *l) {
    ggl_index_fini(&l->by_name);
    ggl_free(l->name);
    ggl_free(l->first);
    ggl_free(l->n_reader);
    ggl_free(l->reader);
    *l = (lora_lookup){0};
}

static ggl_status find_readers(lora_lookup *l, const llm_converter *c, ggl_error *err) {
    const size_t n = c->source->n_tensor;
    size_t all = 0;
    size_t *end = ggl_calloc(n + 1, sizeof *end);
    l->first = ggl_calloc(n + 1, sizeof *l->first);
    if (!end || !l->first) {
        ggl_free(end);
        return no_memory(err);
    }
    for (size_t i = 0; i < c->conv.n_tensor; i++)
        walk_sources(c->source, c->conv.tensor[i].recipe, count_source, end);
    for (size_t i = 0; i <= n; i++) {
        const size_t own = end[i];
        l->first[i] = end[i] = all;
        all += own;
    }
    l->reader = ggl_calloc(all + 1, sizeof *l->reader);
    for (size_t i = 0; i < c->conv.n_tensor && l->reader; i++) {
        reader_walk w = {l, end, i};
        walk_sources(c->source, c->conv.tensor[i].recipe, add_reader, &w);
    }
    l->n_reader = end;
    for (size_t i = 0; i < n; i++)
        end[i] -= l->first[i];
    return l->reader ? GGL_OK : no_memory(err);
}

static ggl_status make_lookup(lora_lookup *l, const llm_converter *c, ggl_error *err) {
    const size_t n = c->conv.n_tensor;
    l->name = ggl_calloc(n + 1, sizeof *l->name);
    if (!l->name)
        return no_memory(err);
    const ggl_status s = ggl_index_init(&l->by_name, n, sizeof *l->name, GGL_INDEX_STRINGS, err);
    for (size_t i = 0; i < n && s == GGL_OK; i++) {
        l->name[i] = (ggl_str){c->conv.tensor[i].name, strlen(c->conv.tensor[i].name)};
        (void)ggl_index_put(&l->by_name, l->name, i);
    }
    return s == GGL_OK ? find_readers(l, c, err) : s;
}

static const lora_lookup *lookup_of(const lora_back *b, const llm_converter *c) {
    return c == b->eye ? &b->of_eye : &b->of_text;
}

const size_t *llm_lora_back_readers(const lora_back *b, const llm_converter *c,
                                    const st_tensor *weight, size_t *n) {
    const lora_lookup *l = lookup_of(b, c);
    const size_t i = (size_t)(weight - c->source->tensor);
    *n = l->n_reader[i];
    return l->reader + l->first[i];
}

/* --- the folder ------------------------------------------------------------------------------- */

static ggl_status open_part(llm_converter **out, const lora_back *b, bool eye,
                            const llm_lora_folder_params *params, ggl_error *err) {
    llm_convert_params p = llm_convert_default();
    p.arch_path = eye ? NULL : params->arch_path;
    p.backend = params->backend;
    p.eye = eye;
    p.no_tokenizer = true;
    p.for_adapter = true;
    return llm_converter_open(out, b->folder, &p, err);
}

/* True if an adapter has pairs for an eye or an ear. */
static bool has_sense(const llm_adapter_use *use, size_t n_use) {
    for (size_t i = 0; i < n_use; i++) {
        const ggl_gguf *f = llm_adapter_file(use[i].adapter);
        for (size_t k = 0; k < ggl_gguf_n_tensors(f); k++)
            if (llm_adapter_is_of_sense(ggl_gguf_tensor_at(f, k)->name.s))
                return true;
    }
    return false;
}

ggl_status llm_lora_back_open(lora_back *b, const char *folder, const llm_adapter_use *use,
                              size_t n_use, const llm_lora_folder_params *params, ggl_error *err) {
    b->folder = folder;
    if (llm_converter_is_file(folder))
        return ggl_fail(err, GGL_USAGE, "%s: a Hugging Face folder is needed, not a file", folder);
    ggl_status s = open_part(&b->text, b, false, params, err);
    if (s == GGL_OK && has_sense(use, n_use) && llm_convert_finds_eye(folder, NULL))
        s = open_part(&b->eye, b, true, params, err);
    if (s == GGL_OK)
        s = make_lookup(&b->of_text, b->text, err);
    if (s == GGL_OK && b->eye)
        s = make_lookup(&b->of_eye, b->eye, err);
    for (size_t i = 0; i < n_use && s == GGL_OK; i++)
        s = llm_lora_back_check(b, use[i].adapter, err);
    return s;
}

void llm_lora_back_fini(lora_back *b) {
    llm_converter_free(b->text);
    llm_converter_free(b->eye);
    free_lookup(&b->of_text);
    free_lookup(&b->of_eye);
    for (size_t i = 0; i < b->n_span; i++) {
        ggl_free(b->span[i].row);
        ggl_free(b->span[i].column);
    }
    ggl_free(b->span);
    ggl_arena_fini(&b->arena);
}

ggl_status llm_lora_back_make(llm_new_folder *f, const char *out, const char *base,
                              ggl_error *err) {
    os_stat of_out, of_base;
    *f = (llm_new_folder){0};
    if (ggl_os_stat(out, &of_out) && ggl_os_stat(base, &of_base) &&
        ggl_os_is_same(&of_out, &of_base))
        return ggl_fail(err, GGL_USAGE, "%s is the model's own folder; give another one", out);
    return llm_new_folder_open(f, out, err);
}

/* --- the adapter's pairs ---------------------------------------------------------------------- */

static const converted_tensor *find_tensor(const lora_back *b, const llm_converter *c,
                                           ggl_str name) {
    if (!c)
        return NULL;
    const lora_lookup *l = lookup_of(b, c);
    const size_t i = ggl_index_find(&l->by_name, l->name, name);
    return i == SIZE_MAX ? NULL : &c->conv.tensor[i];
}

static bool find_pair(const converted_tensor *t, const llm_adapter *a, llm_adapter_pair *p) {
    return llm_adapter_find_pair(llm_adapter_file(a), (ggl_str){t->name, strlen(t->name)}, p);
}

bool llm_lora_back_changes(const converted_tensor *t, const llm_adapter_use *use, size_t n_use) {
    llm_adapter_pair p;
    bool any = false;
    for (size_t i = 0; i < n_use; i++)
        any |= use[i].scale != 0 && find_pair(t, use[i].adapter, &p);
    return any;
}

/* Checks the shapes of a pair, and that the model does not multiply the weight by another tensor. */
static ggl_status check_pair(const lora_back *b, const llm_converter *c, const converted_tensor *t,
                             const llm_adapter *a, ggl_error *err) {
    char scale[300];
    llm_adapter_pair p;
    (void)find_pair(t, a, &p);
    const int64_t n_in = p.columns->ne[p.flipped], n = p.rows->ne[2];
    const bool stack = p.columns->ne[2] == 1 || p.columns->ne[2] == n;
    if (n_in != t->ne[0] || p.rows->ne[1] != t->ne[1] || n != t->ne[2] || t->ne[3] != 1 || !stack)
        return ggl_fail(err, GGL_SHAPE,
                        "%s: the pair of %.200s is for a matrix of [%" PRId64 ", %" PRId64
                        ", %" PRId64 "], but that of %s has [%" PRId64 ", %" PRId64 ", %" PRId64
                        "]",
                        ggl_gguf_name(llm_adapter_file(a)), t->name, n_in, p.rows->ne[1], n,
                        b->folder, t->ne[0], t->ne[1], t->ne[2]);
    const size_t n_stem = strlen(t->name) - (sizeof ".weight" - 1);
    snprintf(scale, sizeof scale, "%.*s.scale", (int)n_stem, t->name);
    const converted_tensor *by = find_tensor(b, c, (ggl_str){scale, strlen(scale)});
    /* One number for each input is another thing: it multiplies what the matrix reads, and the folder has it, too. */
    const bool is_of_inputs =
        by && by->n_dims == 1 && by->ne[0] == t->ne[0] && t->ne[0] != t->ne[1];
    return by && !is_of_inputs ? refuse(b, t, "the model multiplies it by a tensor NAME.scale", err)
                               : GGL_OK;
}

/* Checks the pairs for the converter's tensors, and adds their number to *n. */
static ggl_status check_pairs(const lora_back *b, const llm_converter *c, const llm_adapter *a,
                              size_t *n, ggl_error *err) {
    ggl_status s = GGL_OK;
    llm_adapter_pair p;
    for (size_t i = 0; c && i < c->conv.n_tensor && s == GGL_OK; i++) {
        if (!find_pair(&c->conv.tensor[i], a, &p))
            continue;
        s = check_pair(b, c, &c->conv.tensor[i], a, err);
        ++*n;
    }
    return s;
}

/* Names the first pair that is for no tensor. */
static ggl_status name_other(const lora_back *b, const llm_adapter *a, ggl_error *err) {
    const ggl_gguf *f = llm_adapter_file(a);
    static const char end[] = ".lora_a";
    const size_t n = sizeof end - 1;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        ggl_str name = ggl_gguf_tensor_at(f, i)->name;
        if (name.n <= n || memcmp(name.s + name.n - n, end, n) != 0)
            continue;
        name.n -= n;
        const bool is_none = !find_tensor(b, b->text, name) && !find_tensor(b, b->eye, name);
        if (is_none && ggl_str_is(name, "output.weight") &&
            find_tensor(b, b->text, (ggl_str){"token_embd.weight", sizeof "token_embd.weight" - 1}))
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s has a pair for output.weight, but the output of %s is its "
                            "embedding, which the pair must not change: convert the folder, and "
                            "merge into the GGUF file, which then has an output of its own",
                            ggl_gguf_name(f), b->folder);
        if (is_none)
            return ggl_fail(err, GGL_NOT_FOUND,
                            "%s has a pair for %.*s, which is made from no weight of %s",
                            ggl_gguf_name(f), (int)name.n, name.s, b->folder);
    }
    return ggl_fail(err, GGL_FORMAT, "%s has two pairs for one tensor", ggl_gguf_name(f));
}

ggl_status llm_lora_back_check(const lora_back *b, const llm_adapter *a, ggl_error *err) {
    const llm_adapter_info x = llm_adapter_describe(a);
    const bool of_text = ggl_str_is(x.architecture, b->text->conv.family);
    size_t n = 0;
    if (!of_text && !(b->eye && ggl_str_is(x.architecture, b->eye->conv.family)))
        return ggl_fail(err, GGL_FORMAT, "%s is for the architecture %.*s; %s has %s",
                        ggl_gguf_name(llm_adapter_file(a)), (int)x.architecture.n, x.architecture.s,
                        b->folder, b->text->conv.family);
    ggl_status s = check_pairs(b, b->text, a, &n, err);
    if (s == GGL_OK)
        s = check_pairs(b, b->eye, a, &n, err);
    return s == GGL_OK && n != x.n_pairs ? name_other(b, a, err) : s;
}

/* --- rows ------------------------------------------------------------------------------------- */

ggl_status llm_lora_back_row(const lora_back *b, const converted_tensor *t, int64_t row,
                             lora_run_fn *f, void *ctx, ggl_error *err) {
    ggl_status s = GGL_OK;
    for (int64_t i = 0, k; i < t->ne[0] && s == GGL_OK; i += k) {
        recipe_spot at;
        if (!llm_recipe_find(t->recipe, row * t->ne[0] + i, &at))
            return refuse(b, t, "its numbers are not only rearranged", err);
        const int64_t left = at.leaf->ne[0] - at.at % at.leaf->ne[0];
        k = at.run < t->ne[0] - i ? at.run : t->ne[0] - i;
        k = k < left ? k : left;
        s = f(ctx, row, i, k, &at, err);
    }
    return s;
}

static int64_t n_rows(const converted_tensor *t) {
    return ggl_extents(t->ne, 1, GGL_MAX_DIMS, 1);
}

/* --- spans ------------------------------------------------------------------------------------ */

typedef struct span_walk {
    lora_back *b;
    const converted_tensor *t;
    size_t first; /* the first span of the matrix */
} span_walk;

/* True if rows of t's matrix are columns of the weight, where the number at (row, i) is `at`. */
static bool is_turned(const converted_tensor *t, int64_t row, int64_t i, int64_t n,
                      const recipe_spot *at) {
    const int64_t width = at->leaf->ne[0];
    recipe_spot next;
    if (n > 1)
        return false;
    if (i + 1 < t->ne[0] && llm_recipe_find(t->recipe, row * t->ne[0] + i + 1, &next) &&
        next.leaf->source == at->leaf->source)
        return next.at / width != at->at / width;
    return row % t->ne[1] + 1 < t->ne[1] &&
           llm_recipe_find(t->recipe, (row + 1) * t->ne[0] + i, &next) &&
           next.leaf->source == at->leaf->source && next.at % width != at->at % width;
}

static ggl_status new_span(span_walk *w, int64_t row, int64_t i, int64_t n, const recipe_spot *at,
                           lora_span **out, ggl_error *err) {
    lora_back *b = w->b;
    const converted_tensor *t = w->t;
    if (llm_recipe_count(at->leaf) != ggl_extents(at->leaf->ne, 0, 2, 1))
        return refuse(b, t, "the weight that it is made from is no matrix", err);
    if (!ggl_grow(&b->span, &b->cap_span, b->n_span + 1, sizeof *b->span))
        return no_memory(err);
    lora_span *x = &b->span[b->n_span];
    *x = (lora_span){.t = t,
                     .m = row / t->ne[1],
                     .leaf = at->leaf,
                     .turned = is_turned(t, row, i, n, at),
                     .factor = at->factor,
                     .row = ggl_calloc((size_t)t->ne[1], sizeof *x->row),
                     .column = ggl_calloc((size_t)t->ne[0], sizeof *x->column)};
    b->n_span++;
    if (!x->row || !x->column)
        return no_memory(err);
    for (int64_t k = 0; k < t->ne[1]; k++)
        x->row[k] = -1;
    for (int64_t k = 0; k < t->ne[0]; k++)
        x->column[k] = -1;
    *out = x;
    return GGL_OK;
}

/* Records that a row or column is this one of the weight. False: it was another one before. */
static bool settle(int64_t *at, int64_t *n, int64_t value) {
    *n += *at < 0;
    if (*at < 0)
        *at = value;
    return *at == value;
}

static ggl_status add_run(void *ctx, int64_t row, int64_t first, int64_t n, const recipe_spot *at,
                          ggl_error *err) {
    span_walk *w = ctx;
    lora_back *b = w->b;
    lora_span *x = NULL;
    for (size_t k = b->n_span; k > w->first && !x; k--)
        if (b->span[k - 1].leaf->source == at->leaf->source && b->span[k - 1].factor == at->factor)
            x = &b->span[k - 1];
    if (!x) {
        const ggl_status s = new_span(w, row, first, n, at, &x, err);
        if (s != GGL_OK)
            return s;
    }
    const int64_t o = row % w->t->ne[1], width = at->leaf->ne[0];
    const int64_t r = at->at / width, c = at->at % width;
    bool fits = settle(&x->row[o], &x->n_row, x->turned ? c : r);
    for (int64_t k = 0; k < n && fits; k++)
        fits = settle(&x->column[first + k], &x->n_column, x->turned ? r : c + k);
    x->n_seen += n;
    return fits ? GGL_OK
                : refuse(b, w->t, "its rows and columns are not rows and columns of a weight", err);
}

ggl_status llm_lora_back_spans(lora_back *b, const converted_tensor *t, ggl_error *err) {
    span_walk w = {b, t, b->n_span};
    ggl_status s = GGL_OK;
    for (int64_t row = 0; row < n_rows(t) && s == GGL_OK; row++) {
        if (row % t->ne[1] == 0)
            w.first = b->n_span;
        s = llm_lora_back_row(b, t, row, add_run, &w, err);
        if ((row + 1) % t->ne[1] != 0)
            continue;
        for (size_t k = w.first; k < b->n_span && s == GGL_OK; k++)
            if (b->span[k].n_row * b->span[k].n_column != b->span[k].n_seen)
                s = refuse(b, t, "its parts are no whole rows and columns of a weight", err);
    }
    return s;
}

bool llm_lora_back_is_turned(const lora_back *b, const llm_converter *c, const st_tensor *weight) {
    size_t n;
    const size_t *reader = llm_lora_back_readers(b, c, weight, &n);
    bool turned = false;
    for (size_t i = 0; i < n; i++) {
        const converted_tensor *t = &c->conv.tensor[reader[i]];
        recipe_spot at;
        for (int64_t row = 0; row < n_rows(t); row++) {
            if (!llm_recipe_find(t->recipe, row * t->ne[0], &at) || at.leaf->source != weight)
                continue;
            if (!is_turned(t, row, 0, at.run, &at))
                return false;
            turned = true;
            break;
        }
    }
    return turned;
}

/* --- weights that change ---------------------------------------------------------------------- */

static void mark_source(void *ctx, size_t i) {
    ((bool *)ctx)[i] = true;
}

static bool reads_any(const llm_safetensors *from, const recipe *r, const bool *marks) {
    bool any = r->source && marks[r->source - from->tensor];
    for (int k = 0; k < r->n_part && !any; k++)
        any = reads_any(from, r->part[k], marks);
    return any;
}

void llm_lora_back_changed(const llm_converter *c, const llm_adapter_use *use, size_t n_use,
                           bool *changed) {
    for (size_t i = 0; i < c->conv.n_tensor; i++)
        if (llm_lora_back_changes(&c->conv.tensor[i], use, n_use))
            walk_sources(c->source, c->conv.tensor[i].recipe, mark_source, changed);
}

typedef struct alone_walk {
    const lora_back *b;
    const llm_converter *c;
    const converted_tensor *t;
    const bool *shared;
    unsigned char *
        *seen; /* [n_tensor] of the folder: a bit for each number of those that are shared */
} alone_walk;

static ggl_status see_run(void *ctx, int64_t row, int64_t first, int64_t n, const recipe_spot *at,
                          ggl_error *err) {
    alone_walk *w = ctx;
    const size_t i = (size_t)(at->leaf->source - w->c->source->tensor);
    (void)row;
    (void)first;
    if (!w->shared[i])
        return GGL_OK;
    if (!w->seen[i] && !(w->seen[i] = ggl_calloc((size_t)(llm_recipe_count(at->leaf) / 8 + 1), 1)))
        return no_memory(err);
    for (int64_t k = at->at; k < at->at + n; k++) {
        const unsigned char bit = (unsigned char)(1U << (k & 7));
        if (w->seen[i][k >> 3] & bit)
            return ggl_fail(
                err, GGL_UNSUPPORTED,
                "%s: a change of %.300s would change more than what the adapter has a pair "
                "for: the model reads it more than once, also as %.200s",
                w->b->folder, at->leaf->source->name.s, w->t->name);
        w->seen[i][k >> 3] |= bit;
    }
    return GGL_OK;
}

/* Sets shared[i] for the tensors of the folder that change and are read more than once. One that is read once
 * is only rearranged, so that no number of it is read twice. */
static ggl_status find_shared(const llm_converter *c, const llm_adapter_use *use, size_t n_use,
                              bool *shared, ggl_error *err) {
    size_t *n = ggl_calloc(c->source->n_tensor + 1, sizeof *n);
    if (!n)
        return no_memory(err);
    llm_lora_back_changed(c, use, n_use, shared);
    for (size_t i = 0; i < c->conv.n_tensor; i++)
        walk_sources(c->source, c->conv.tensor[i].recipe, count_source, n);
    for (size_t i = 0; i < c->source->n_tensor; i++)
        shared[i] = shared[i] && n[i] > 1;
    ggl_free(n);
    return GGL_OK;
}

ggl_status llm_lora_back_check_alone(const lora_back *b, const llm_converter *c,
                                     const llm_adapter_use *use, size_t n_use, ggl_error *err) {
    if (!c)
        return GGL_OK;
    const size_t n = c->source->n_tensor;
    bool *shared = ggl_calloc(n + 1, sizeof *shared);
    alone_walk w = {b, c, NULL, shared, ggl_calloc(n + 1, sizeof *w.seen)};
    ggl_status s = shared && w.seen ? find_shared(c, use, n_use, shared, err) : no_memory(err);
    for (size_t i = 0; i < c->conv.n_tensor && s == GGL_OK; i++) {
        w.t = &c->conv.tensor[i];
        if (!reads_any(c->source, w.t->recipe, shared))
            continue;
        for (int64_t row = 0; row < n_rows(w.t) && s == GGL_OK; row++)
            s = llm_lora_back_row(b, w.t, row, see_run, &w, err);
    }
    for (size_t i = 0; w.seen && i < n; i++)
        ggl_free(w.seen[i]);
    ggl_free(w.seen);
    ggl_free(shared);
    return s;
}
