/* Writes an adapter as a folder of PEFT; see llm/internal/lora_folder.h.
 *
 * A module of the folder gets one pair. If several tensors of the model are made from its weight, such as queries, keys and values
 * from one matrix, their pairs come together: equal columns share their ranks, and other ones get ranks of their own. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "ggl/graph.h"
#include "ggl/internal/text.h"
#include "lora_back.h"
#include "safetensors_write.h"

typedef struct module {
    char *name; /* of the module, without ".weight" */
    bool
        embedding; /* its rows are looked up: PEFT has other names, and the halves the other way round */
    bool turned; /* its weight is stored as [in, out] */
    int64_t n_in, n_out, rank;
    double scale;     /* B A is added so many times */
    float *a, *b;     /* [rank][n_in], [rank][n_out] */
    float *magnitude; /* [n_out], if has_lengths */
    bool has_lengths;
} module;

typedef struct exporting {
    lora_back back;
    const llm_adapter *a;
    const llm_converter *c; /* of the modules that are being made */
    module *module;
    size_t n, cap;
    ggl_error *err;
} exporting;

static ggl_status refuse(const exporting *x, const char *name, const char *why) {
    return ggl_fail(x->err, GGL_UNSUPPORTED, "%s: %.300s: PEFT has no form for this pair: %s",
                    x->back.folder, name, why);
}

static ggl_status no_memory(const exporting *x) {
    return ggl_fail(x->err, GGL_NOMEM, "out of memory");
}

/* --- modules ---------------------------------------------------------------------------------- */

/* Returns the prefix that the weights of a model that writes have in memory, but not in some folders; "". */
static const char *lost_prefix(const llm_converter *c, const char *name) {
    bool known = false;
    const char *lost = NULL;
    if (!llm_arch_has_output(c->arch, "logits"))
        return "";
    for (const arch_mapping *m = c->conv.section->map; m; m = m->next) {
        if (m->kind != MAP_PREFIX)
            continue;
        known |= strncmp(name, m->name, strlen(m->name)) == 0;
        if (!m->other[0] && !lost)
            lost = m->name;
    }
    return known || !lost || strncmp(name, "lm_head", 7) == 0 ? "" : lost;
}

/* Sets m->name. */
static ggl_status name_module(exporting *x, module *m, const st_tensor *weight) {
    static const char end[] = ".weight";
    const size_t n = weight->name.n, n_end = sizeof end - 1;
    if (n <= n_end || memcmp(weight->name.s + n - n_end, end, n_end) != 0)
        return refuse(x, weight->name.s, "it is a parameter, and not the weight of a module");
    m->name = ggl_arena_printf(&x->back.arena, "%s%.*s", lost_prefix(x->c, weight->name.s),
                               (int)(n - n_end), weight->name.s);
    return m->name ? GGL_OK : no_memory(x);
}

/* Returns how many times a pair's change counts. */
static double scale_of(const exporting *x, const llm_adapter_pair *p) {
    const double alpha = llm_adapter_describe(x->a).alpha;
    return alpha != 0 ? alpha / (double)p->rank : 1;
}

/* Adds ranks to a module, whose columns are a[rank][n_in]; sets *first to the first of them, which are those of an equal pair if
 * there is one. */
static ggl_status add_ranks(exporting *x, module *m, const float *a, int64_t rank, int64_t *first) {
    const size_t n_in = (size_t)m->n_in, n_out = (size_t)m->n_out, more = (size_t)rank;
    const size_t size = more * n_in * sizeof *a;
    for (*first = 0; *first + rank <= m->rank; *first += rank)
        if (memcmp(m->a + (size_t)*first * n_in, a, size) == 0)
            return GGL_OK;
    const size_t old = (size_t)m->rank, all = old + more;
    float *grown_a = ggl_calloc(all * n_in, sizeof *a),
          *grown_b = ggl_calloc(all * n_out, sizeof *a);
    if (grown_a && grown_b && old > 0) {
        memcpy(grown_a, m->a, old * n_in * sizeof *a);
        memcpy(grown_b, m->b, old * n_out * sizeof *a);
    }
    ggl_free(m->a);
    ggl_free(m->b);
    m->a = grown_a;
    m->b = grown_b;
    if (!m->a || !m->b)
        return no_memory(x);
    memcpy(m->a + old * n_in, a, size);
    *first = m->rank;
    m->rank = (int64_t)all;
    return GGL_OK;
}

/* Adds the lengths of a span's rows, which are whole rows of the module. */
static ggl_status add_magnitudes(exporting *x, module *m, const lora_span *s,
                                 const llm_adapter_pair *p) {
    if (s->n_column != m->n_in)
        return refuse(x, m->name, "lengths are given of parts of its rows (\"use_dora\")");
    for (int64_t o = 0; o < m->n_out && !m->has_lengths; o++)
        m->magnitude[o] = NAN; /* check_all finds rows without a length */
    m->has_lengths = true;
    for (int64_t o = 0; o < s->t->ne[1]; o++)
        if (s->row[o] >= 0)
            m->magnitude[s->row[o]] = (float)(llm_adapter_magnitude(p, s->m, o) / fabs(s->factor));
    return GGL_OK;
}

/* Memory for a pair, and for the parts of its halves that a module gets. */
typedef struct halves {
    float *columns; /* [rank][in of the matrix] */
    float *rows;    /* [rank][out of the matrix] */
    float *a;       /* [rank][in of the module] */
} halves;

/* Reads both halves of the pair. */
static bool read_halves(const lora_span *s, const llm_adapter_pair *p, halves *h) {
    const int64_t n_out = s->t->ne[1];
    float *ranks = ggl_calloc((size_t)p->rank, sizeof *ranks);
    bool ok = ranks && llm_adapter_columns(p, s->m, s->t->ne[0], h->columns);
    for (int64_t o = 0; o < n_out && ok; o++) {
        llm_adapter_row(p, s->m, o, ranks);
        for (int64_t r = 0; r < p->rank; r++)
            h->rows[r * n_out + o] = ranks[r];
    }
    ggl_free(ranks);
    return ok;
}

/* Adds the pair of a span to the module. Where the matrix has the module's columns as rows, the halves change places. */
static ggl_status add_pair(exporting *x, module *m, const lora_span *s, const llm_adapter_pair *p,
                           halves *h) {
    const bool changes = s->turned != m->turned;
    const int64_t n_in = s->t->ne[changes], n_out = s->t->ne[!changes];
    const int64_t *in = changes ? s->row : s->column, *out = changes ? s->column : s->row;
    int64_t first;
    if (!read_halves(s, p, h))
        return no_memory(x);
    const float *from_a = changes ? h->rows : h->columns, *from_b = changes ? h->columns : h->rows;
    for (int64_t r = 0; r < p->rank; r++)
        for (int64_t i = 0; i < n_in; i++)
            if (in[i] >= 0)
                h->a[r * m->n_in + in[i]] = from_a[r * n_in + i];
    if (m->rank == 0)
        m->scale = scale_of(x, p);
    const ggl_status st = add_ranks(x, m, h->a, p->rank, &first);
    const double factor = scale_of(x, p) / m->scale / s->factor;
    for (int64_t r = 0; r < p->rank && st == GGL_OK; r++)
        for (int64_t o = 0; o < n_out; o++)
            if (out[o] >= 0)
                m->b[(first + r) * m->n_out + out[o]] =
                    (float)((double)from_b[r * n_out + o] * factor);
    if (st != GGL_OK || !p->magnitude)
        return st;
    return changes ? refuse(x, m->name, "lengths are given of its columns (\"use_dora\")")
                   : add_magnitudes(x, m, s, p);
}

static ggl_status add_span(exporting *x, module *m, const lora_span *s) {
    llm_adapter_pair p;
    if (!llm_adapter_find_pair(llm_adapter_file(x->a), (ggl_str){s->t->name, strlen(s->t->name)},
                               &p))
        return GGL_OK;
    const size_t rank = (size_t)p.rank;
    halves h = {ggl_calloc(rank, (size_t)s->t->ne[0] * sizeof *h.columns),
                ggl_calloc(rank, (size_t)s->t->ne[1] * sizeof *h.rows),
                ggl_calloc(rank, (size_t)m->n_in * sizeof *h.a)};
    const ggl_status st = h.columns && h.rows && h.a ? add_pair(x, m, s, &p, &h) : no_memory(x);
    ggl_free(h.columns);
    ggl_free(h.rows);
    ggl_free(h.a);
    return st;
}

/* In the order of the folder's tensors; spans of one weight in that in which they were made. */
static int by_weight(const void *a, const void *b) {
    const lora_span *x = a, *y = b;
    const st_tensor *s = x->leaf->source, *t = y->leaf->source;
    if (s != t)
        return s < t ? -1 : 1;
    return x->t != y->t ? (x->t < y->t ? -1 : 1) : (x->m > y->m) - (x->m < y->m);
}

static ggl_status begin_module(exporting *x, const lora_span *s) {
    if (!ggl_grow(&x->module, &x->cap, x->n + 1, sizeof *x->module))
        return no_memory(x);
    module *m = &x->module[x->n++];
    m->turned = s->turned && llm_lora_back_is_turned(&x->back, x->c, s->leaf->source);
    m->embedding = s->t->by_rows;
    m->n_in = s->leaf->ne[m->turned];
    m->n_out = s->leaf->ne[!m->turned];
    if (!(m->magnitude = ggl_calloc((size_t)m->n_out, sizeof *m->magnitude)))
        return no_memory(x);
    const ggl_status st = name_module(x, m, s->leaf->source);
    if (st == GGL_OK && m->embedding && s->t->by_product)
        return refuse(
            x, m->name,
            "the model also makes its output from this embedding, which PEFT leaves as it "
            "is");
    return st;
}

/* Makes the modules of the spans from `first` on. */
static ggl_status make_modules(exporting *x, size_t first) {
    lora_span *span = x->back.span;
    ggl_status s = GGL_OK;
    if (x->back.n_span > first)
        qsort(span + first, x->back.n_span - first, sizeof *span, by_weight);
    for (size_t k = first; k < x->back.n_span && s == GGL_OK; k++) {
        const bool begins = k == first || span[k].leaf->source != span[k - 1].leaf->source;
        if (begins)
            s = begin_module(x, &span[k]);
        if (s == GGL_OK)
            s = add_span(x, &x->module[x->n - 1], &span[k]);
    }
    return s;
}

static ggl_status add_modules(exporting *x, const llm_converter *c) {
    const llm_adapter_use use = {.adapter = x->a, .scale = 1};
    const size_t first = x->back.n_span;
    if (!c)
        return GGL_OK;
    x->c = c;
    ggl_status s = llm_lora_back_check_alone(&x->back, c, &use, 1, x->err);
    for (size_t i = 0; i < c->conv.n_tensor && s == GGL_OK; i++)
        if (llm_lora_back_changes(&c->conv.tensor[i], &use, 1))
            s = llm_lora_back_spans(&x->back, &c->conv.tensor[i], x->err);
    return s == GGL_OK ? make_modules(x, first) : s;
}

/* True if each row of the module has a length, or none has. */
static bool has_all_lengths(const module *m) {
    bool all = true;
    for (int64_t o = 0; o < m->n_out && m->has_lengths; o++)
        all &= !isnan(m->magnitude[o]);
    return all;
}

/* Checks what PEFT has one value for. */
static ggl_status check_all(exporting *x) {
    for (size_t i = 0; i < x->n; i++)
        if (!has_all_lengths(&x->module[i]))
            return refuse(x, x->module[i].name,
                          "only some of its rows have lengths (\"use_dora\")");
    for (size_t i = 1; i < x->n; i++) {
        if (x->module[i].has_lengths != x->module[0].has_lengths)
            return refuse(x, x->module[i].name,
                          "only some modules have lengths of their rows (\"use_dora\")");
        if (x->module[i].turned != x->module[0].turned && !x->module[i].embedding &&
            !x->module[0].embedding)
            return refuse(x, x->module[i].name,
                          "it is stored the other way round than others (\"fan_in_fan_out\")");
    }
    return GGL_OK;
}

/* --- the config ------------------------------------------------------------------------------- */

static const char *last_name(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* True if the name, or an end of it that follows a dot, is `end`. */
static bool ends_with(const char *name, size_t n, const char *end) {
    const size_t n_end = strlen(end);
    return n >= n_end && memcmp(name + n - n_end, end, n_end) == 0 &&
           (n == n_end || name[n - n_end - 1] == '.');
}

/* True if PEFT would find only modules that have pairs by the last part of the name. */
static bool is_enough(const exporting *x, const char *name) {
    const char *last = last_name(name);
    const llm_safetensors *st = x->back.text->source;
    size_t with = 0, all = 0;
    for (size_t i = 0; i < x->n; i++)
        with += ends_with(x->module[i].name, strlen(x->module[i].name), last);
    for (size_t i = 0; i < st->n_tensor; i++) {
        const ggl_str s = st->tensor[i].name;
        static const char end[] = ".weight";
        const size_t n_end = sizeof end - 1;
        all += s.n > n_end && memcmp(s.s + s.n - n_end, end, n_end) == 0 &&
               ends_with(s.s, s.n - n_end, last);
    }
    return with == all;
}

/* The last part of some modules' names. */
typedef struct last_part {
    const char *name;
    bool is_enough;
} last_part;

static void put_target(llm_json_out *out, const char *name, bool *any) {
    llm_json_format(out, "%s\n    %.*s", *any ? "," : "", LLM_JSON_TEXT(name));
    *any = true;
}

/* Writes the last parts of names, which are few, or whole names where these are not enough. False: out of memory. */
static bool put_targets(llm_json_out *out, const exporting *x) {
    last_part *part = NULL;
    size_t n = 0, cap = 0;
    bool any = false, ok = true;
    llm_json_format(out, "  'target_modules': [");
    for (size_t i = 0; i < x->n && ok; i++) {
        const char *name = x->module[i].name, *last = last_name(name);
        size_t k = 0;
        while (k < n && strcmp(part[k].name, last) != 0)
            k++;
        if (k == n && (ok = ggl_grow(&part, &cap, n + 1, sizeof *part))) {
            part[n++] = (last_part){last, is_enough(x, name)};
            if (part[k].is_enough)
                put_target(out, last, &any);
        }
        if (ok && !part[k].is_enough)
            put_target(out, name, &any);
    }
    ggl_free(part);
    llm_json_format(out, "\n  ],\n");
    return ok;
}

static int by_rank(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the rank that most modules have, the smallest of these; 0: out of memory. */
static int64_t common_rank(const exporting *x) {
    int64_t *rank = ggl_calloc(x->n + 1, sizeof *rank), best = 0;
    for (size_t i = 0; i < x->n && rank; i++)
        rank[i] = x->module[i].rank;
    if (rank)
        qsort(rank, x->n, sizeof *rank, by_rank);
    for (size_t i = 0, n = 0, most = 0; i < x->n && rank; i++) {
        n = i > 0 && rank[i] == rank[i - 1] ? n + 1 : 1;
        best = n > most ? rank[i] : best;
        most = n > most ? n : most;
    }
    ggl_free(rank);
    return best;
}

/* Writes an object of the modules whose number differs from `common`. */
static void put_pattern(llm_json_out *out, const exporting *x, const char *key, double common,
                        double (*of)(const module *m)) {
    bool any = false;
    llm_json_format(out, "  '%s': {", key);
    for (size_t i = 0; i < x->n; i++) {
        if (of(&x->module[i]) == common)
            continue;
        llm_json_format(out, "%s\n    %.*s: %.17g", any ? "," : "",
                        LLM_JSON_TEXT(x->module[i].name), of(&x->module[i]));
        any = true;
    }
    llm_json_format(out, "%s},\n", any ? "\n  " : "");
}

static double rank_of(const module *m) {
    return (double)m->rank;
}

static double alpha_of(const module *m) {
    return m->scale * (double)m->rank;
}

/* Returns lora_alpha of modules with the common rank. */
static double common_alpha(const exporting *x, int64_t rank) {
    for (size_t i = 0; i < x->n; i++)
        if (x->module[i].rank == rank)
            return alpha_of(&x->module[i]);
    return 0;
}

static bool is_causal(const llm_converter *c) {
    const char *name = llm_converter_class(c);
    static const char *const end[] = {"ForCausalLM", "LMHeadModel"};
    bool any = false;
    for (size_t k = 0; k < sizeof end / sizeof *end; k++) {
        const size_t n = strlen(name), n_end = strlen(end[k]);
        any |= n >= n_end && strcmp(name + n - n_end, end[k]) == 0;
    }
    return any;
}

static ggl_status write_text(const char *path, const llm_json_out *text, ggl_error *err) {
    ggl_new_file *f;
    ggl_status s = ggl_new_file_open(&f, path, err);
    if (s != GGL_OK)
        return s;
    fwrite(text->s, 1, text->n, ggl_new_file_stream(f));
    ggl_new_file_note(f);
    return ggl_new_file_commit(f, err);
}

static ggl_status write_config(const exporting *x, const char *out, const char *base_name) {
    llm_json_out text = {0};
    char path[4096];
    const int64_t rank = common_rank(x);
    const double alpha = common_alpha(x, rank);
    const bool turned = x->module[0].turned || x->module[x->n - 1].turned;
    llm_json_format(&text, "{\n");
    put_pattern(&text, x, "alpha_pattern", alpha, alpha_of);
    llm_json_format(&text, "  'base_model_name_or_path': %.*s,\n  'bias': 'none',\n",
                    LLM_JSON_TEXT(base_name));
    llm_json_format(&text, "  'fan_in_fan_out': %s,\n  'inference_mode': true,\n",
                    turned ? "true" : "false");
    llm_json_format(&text, "  'init_lora_weights': true,\n  'lora_alpha': %.17g,\n", alpha);
    llm_json_format(&text,
                    "  'lora_dropout': 0.0,\n  'modules_to_save': null,\n"
                    "  'peft_type': 'LORA',\n  'r': %lld,\n",
                    (long long)rank);
    put_pattern(&text, x, "rank_pattern", (double)rank, rank_of);
    const bool ok = rank > 0 && put_targets(&text, x);
    llm_json_format(&text, "  'task_type': %s,\n",
                    is_causal(x->back.text) ? "\"CAUSAL_LM\"" : "null");
    llm_json_format(&text, "  'use_dora': %s,\n  'use_rslora': false\n}\n",
                    x->module[0].has_lengths ? "true" : "false");
    const int n = snprintf(path, sizeof path, "%s/adapter_config.json", out);
    ggl_status s = text.failed || !ok ? no_memory(x)
                   : n < 0 || (size_t)n >= sizeof path
                       ? ggl_fail(x->err, GGL_USAGE, "%s: the path is too long", out)
                       : write_text(path, &text, x->err);
    ggl_free(text.s);
    return s;
}

/* --- the pairs -------------------------------------------------------------------------------- */

static ggl_type type_of(const exporting *x, llm_convert_type type) {
    static const ggl_type given[] = {GGL_F32, GGL_F32, GGL_F16, GGL_BF16, GGL_F32};
    if (type != LLM_CONVERT_AUTO)
        return given[type];
    const ggl_gguf *f = llm_adapter_file(x->a);
    int common = -1;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        if (t->n_dims < 2) /* lengths of rows are f32 in any case */
            continue;
        if (common >= 0 && common != (int)t->type)
            return GGL_F32;
        common = (int)t->type;
    }
    return common == GGL_F16 || common == GGL_BF16 ? (ggl_type)common : GGL_F32;
}

/* Exchanges rows and columns, in place: [n][m] becomes [m][n]. False: out of memory. */
static bool turn(float **x, int64_t n, int64_t m) {
    float *to = ggl_calloc((size_t)(n * m), sizeof *to);
    for (int64_t i = 0; i < n && to; i++)
        for (int64_t k = 0; k < m; k++)
            to[k * n + i] = (*x)[i * m + k];
    if (to) {
        ggl_free(*x);
        *x = to;
    }
    return to != NULL;
}

static ggl_status add_out(exporting *x, st_out *to, const module *m, const char *end, ggl_type type,
                          int64_t ne0, int64_t ne1, const float *data) {
    *to = (st_out){.name = ggl_arena_printf(&x->back.arena, "base_model.model.%s.%s", m->name, end),
                   .type = type,
                   .n_dims = ne1 > 0 ? 2 : 1,
                   .ne = {ne0, ne1},
                   .data = data};
    return to->name ? GGL_OK : no_memory(x);
}

static ggl_status write_pairs(exporting *x, const char *out, ggl_type type, size_t *size) {
    st_out *all = ggl_calloc(3 * x->n + 1, sizeof *all);
    char path[4096];
    size_t n = 0;
    ggl_status s = all ? GGL_OK : no_memory(x);
    for (size_t i = 0; i < x->n && s == GGL_OK; i++) {
        module *m = &x->module[i];
        /* lora_A [rank, in] and lora_B [out, rank]; an embedding's are [rank, rows] and [columns, rank] */
        const bool e = m->embedding;
        float **b = e ? &m->a : &m->b;
        const float *a = e ? m->b : m->a;
        const int64_t width = e ? m->n_out : m->n_in, height = e ? m->n_in : m->n_out;
        if (!turn(b, m->rank, height))
            s = no_memory(x);
        if (s == GGL_OK)
            s = add_out(x, &all[n++], m, e ? "lora_embedding_A" : "lora_A.weight", type, width,
                        m->rank, a);
        if (s == GGL_OK)
            s = add_out(x, &all[n++], m, e ? "lora_embedding_B" : "lora_B.weight", type, m->rank,
                        height, *b);
        if (s == GGL_OK && m->has_lengths)
            s = add_out(x, &all[n++], m, "lora_magnitude_vector", GGL_F32, m->n_out, 0,
                        m->magnitude);
    }
    const int length = snprintf(path, sizeof path, "%s/adapter_model.safetensors", out);
    if (s == GGL_OK && (length < 0 || (size_t)length >= sizeof path))
        s = ggl_fail(x->err, GGL_USAGE, "%s: the path is too long", out);
    if (s == GGL_OK)
        s = llm_safetensors_write(path, all, n, size, x->err);
    ggl_free(all);
    return s;
}

ggl_status llm_lora_export(const llm_adapter *a, const char *base, const char *out,
                           const llm_lora_folder_params *params, llm_lora_folder_result *result,
                           ggl_error *err) {
    ggl_error own = {0};
    exporting x = {.a = a, .err = err ? err : &own};
    const llm_adapter_use use = {.adapter = a, .scale = 1};
    llm_new_folder folder = {0};
    *result = (llm_lora_folder_result){0};
    ggl_status s = llm_lora_back_open(&x.back, base, &use, 1, params, x.err);
    if (s == GGL_OK)
        s = add_modules(&x, x.back.text);
    if (s == GGL_OK)
        s = add_modules(&x, x.back.eye);
    if (s == GGL_OK)
        s = check_all(&x);
    if (s == GGL_OK)
        s = llm_lora_back_make(&folder, out, base, x.err);
    if (s == GGL_OK)
        s = write_pairs(&x, folder.path, type_of(&x, params->type), &result->bytes);
    if (s == GGL_OK)
        s = write_config(&x, folder.path, params->base_name ? params->base_name : base);
    if (s == GGL_OK)
        s = llm_new_folder_commit(&folder, x.err);
    llm_new_folder_discard(&folder);
    result->n_modules = x.n;
    for (size_t i = 0; i < x.n; i++) {
        ggl_free(x.module[i].a);
        ggl_free(x.module[i].b);
        ggl_free(x.module[i].magnitude);
    }
    ggl_free(x.module);
    llm_lora_back_fini(&x.back);
    return s;
}
