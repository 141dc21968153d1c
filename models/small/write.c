/* Writes a program as C. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/text.h"
#include "program.h"

/* Operands as they are written: equal ones once. */
typedef struct view {
    ggl_operand o;
    size_t at; /* after the leaf, or in RAM */
    int leaf;  /* -1: it is in RAM */
} view;

typedef struct writer {
    FILE *f;
    const small_program *p;
    const llm_tokenizer *words;
    view *view;
    size_t n_views, cap_views;
    int *of_step; /* [n_step * (GGL_MAX_SRC + 1)]: the views of a step; -1: absent */
    bool *stores; /* [n_stores]: those that operators use */
    bool used[GGL_TYPE_LIMIT];
    llm_small_words tables; /* of the tokenizer */
    char name[64];          /* of the plan */
    const char *header;     /* the header's name, without folders */
    ggl_error *err;
} writer;

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
}

/* --- names ------------------------------------------------------------------------------------ */

static bool is_word_of(const char *words, const char *name, size_t n) {
    char word[72];
    snprintf(word, sizeof word, " %.*s ", (int)n, name);
    return strstr(words, word) != NULL;
}

/* Returns true if a plan cannot have that name: C has it, or a compiler, or a program, or the plan's own tables, or a header that it includes. */
static bool is_taken(const char *name) {
    static const char taken[] =
        " auto break case char const continue default do double else enum extern float for goto if "
        "inline int long register restrict return short signed sizeof static struct switch typedef "
        "union unsigned void volatile while asm typeof bool true false linux unix main small types "
        "ops text text_at other flags pieces starts special byte_token score units replacements "
        "map merges splits words set range instruction op charsmap properties NULL NO_LIMIT STRAY "
        "MAX_COPIES MAX_LOOKAHEAD MAX_NESTING offsetof va_list va_start va_arg va_end va_copy "
        "memchr memcmp memcpy memmove memset strcat strchr strcmp strcoll strcpy strcspn strerror "
        "strlen strncat strncmp strncpy strpbrk strrchr strspn strstr strtok strxfrm ";
    static const char numbered[] = " leaf v s o t ranges sets code program ";
    static const char *const begin[] = {"small_", "pretok_", "ggl_",    "llm_", "SMALL_",
                                        "GGL_",   "LLM_",    "PRETOK_", "OP_",  "CHARSMAP_"};
    static const char *const end[] = {"_t", "_MAX", "_MIN", "_C", "_H"}; /* of <stdint.h> */
    const size_t n = strlen(name), stem = strcspn(name, "0123456789");
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncmp(name, begin[i], strlen(begin[i])) == 0)
            return true;
    for (size_t i = 0; i < sizeof end / sizeof *end; i++)
        if (ggl_ends_with(name, end[i]))
            return true;
    return is_word_of(taken, name, n) ||
           (stem < n && stem + strspn(name + stem, "0123456789_") == n &&
            is_word_of(numbered, name, stem));
}

/* Sets the plan's name to that of the file, without folders and .c, as far as C allows its letters; and *header to the path of the
 * header. */
static ggl_status name_plan(writer *w, const char *path, char **header) {
    const size_t n = strlen(path);
    const char *last = ggl_os_last_separator(path), *base = last ? last + 1 : path;
    if (n < 3 || strcmp(path + n - 2, ".c") != 0 || strlen(base) < 3)
        return ggl_fail(w->err, GGL_USAGE, "%s: the name of the file must end with .c", path);
    for (const char *c = base; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            return ggl_fail(w->err, GGL_USAGE,
                            "%s: the name of the file must have no quotes, backslashes and control "
                            "characters, because it stands in an #include",
                            path);
    size_t k = 0;
    for (const char *c = base; c < path + n - 2 && k + 1 < sizeof w->name; c++)
        w->name[k++] = isalnum((unsigned char)*c) && (unsigned char)*c < 128 ? *c : '_';
    if (isdigit((unsigned char)w->name[0]))
        w->name[0] = '_';
    w->name[k] = 0;
    if (is_taken(w->name))
        return ggl_fail(
            w->err, GGL_USAGE,
            "%s: a plan has the name of its file, and %s means something else in C or in plans; "
            "choose another name, such as plan.c",
            path, w->name);
    *header = ggl_calloc(n + 1, 1);
    if (!*header)
        return no_memory(w->err);
    memcpy(*header, path, n - 1);
    (*header)[n - 1] = 'h';
    w->header = *header + (base - path);
    return GGL_OK;
}

/* --- operands --------------------------------------------------------------------------------- */

static bool same_view(const view *a, const view *b) {
    return a->leaf == b->leaf && a->at == b->at && a->o.type == b->o.type &&
           memcmp(a->o.ne, b->o.ne, sizeof a->o.ne) == 0 &&
           memcmp(a->o.nb, b->o.nb, sizeof a->o.nb) == 0;
}

/* Returns the number of the view of an operand, -1 if it is absent, -2 without memory, -3 if it is too large. */
static int view_of(writer *w, const ggl_operand *o) {
    const small_program *p = w->p;
    if (o->region < 0)
        return -1;
    view v = {.o = *o, .at = o->offset, .leaf = -1};
    for (int d = 0; d < GGL_MAX_DIMS; d++) {
        v.o.ne[d] = o->ne[d] == GGL_N ? 1 : o->ne[d];
        if (v.o.ne[d] > INT32_MAX || v.o.nb[d] > INT32_MAX)
            return -3;
    }
    if (o->region >= SMALL_FIRST_LEAF)
        v.leaf = o->region - SMALL_FIRST_LEAF;
    else if (o->region == GGL_REGION_ARENA)
        v.at += p->arena;
    if (v.at > INT32_MAX)
        return -3;
    for (size_t i = 0; i < w->n_views; i++)
        if (same_view(&w->view[i], &v))
            return (int)i;
    if (!ggl_grow(&w->view, &w->cap_views, w->n_views + 1, sizeof *w->view))
        return -2;
    w->view[w->n_views] = v;
    w->used[o->type] = true;
    return (int)w->n_views++;
}

/* Collects the views, the stores and the types. */
static ggl_status collect(writer *w) {
    enum { MOST_STEPS = 1 << 14 };
    const small_program *p = w->p;
    if (p->program.n_step > MOST_STEPS)
        return ggl_fail(w->err, GGL_LIMIT, "the model has %d operators; a plan has at most %d",
                        p->program.n_step, MOST_STEPS);
    w->of_step = ggl_calloc((size_t)p->program.n_step * (GGL_MAX_SRC + 1) + 1, sizeof *w->of_step);
    w->stores = ggl_calloc((size_t)ggl_graph_n_stores(p->graph) + 1, sizeof *w->stores);
    if (!w->of_step || !w->stores)
        return no_memory(w->err);
    w->used[GGL_F32] = true;
    for (int i = 0; i < p->program.n_step; i++) {
        const ggl_step *s = &p->program.step[i];
        int *of = w->of_step + (size_t)i * (GGL_MAX_SRC + 1);
        small_call call = {0};
        if (s->kind != GGL_STEP_NODE && s->kind != GGL_STEP_FORM)
            continue;
        const ggl_status st = llm_small_call(s, &call, w->err);
        if (st != GGL_OK)
            return st;
        for (int k = 0; k < call.n_views; k++) {
            const int from = k == 2 && call.squares ? 1 : k;
            of[k] = from == 0          ? view_of(w, &s->dst)
                    : from <= s->n_src ? view_of(w, &s->src[from - 1])
                                       : -1;
            if (of[k] == -2)
                return no_memory(w->err);
            if (of[k] == -3)
                return ggl_fail(w->err, GGL_LIMIT, "%s does not fit into 2^31 bytes",
                                s->node->name ? s->node->name : "a value");
        }
        for (int k = 0; k < 2; k++)
            if (call.store[k]) {
                w->stores[call.store[k]->id] = true;
                w->used[call.store[k]->type] = true;
            }
    }
    return GGL_OK;
}

/* --- tables ----------------------------------------------------------------------------------- */

/* Writes bytes as words, the lowest byte first. */
static void put_words(FILE *f, const void *data, size_t size) {
    const uint8_t *p = data;
    for (size_t i = 0; i < size; i += 4) {
        uint32_t u = 0;
        for (size_t k = 0; k < 4 && i + k < size; k++)
            u |= (uint32_t)p[i + k] << (8 * k);
        fprintf(f, i % 32 == 0 ? "\n0x%" PRIx32 "," : "0x%" PRIx32 ",", u);
    }
}

static ggl_status put_leaves(writer *w, size_t *size) {
    for (size_t k = 0; k < w->p->n_leaves; k++) {
        const ggl_tensor *t = w->p->leaf[k];
        bool is_read = false;
        for (size_t i = 0; i < w->n_views && !is_read; i++)
            is_read = w->view[i].leaf == (int)k;
        if (!is_read)
            continue;
        if (t->size > INT32_MAX)
            return ggl_fail(w->err, GGL_LIMIT, "%s has %zu bytes, at most 2^31 are supported",
                            t->name ? t->name : "a constant", t->size);
        fprintf(w->f, "static const SMALL_ALIGNED uint32_t leaf%zu[] = {", k);
        put_words(w->f, t->data, t->size);
        fprintf(w->f, "};\n");
        *size += (t->size + 15) / 16 * 16;
    }
    return GGL_OK;
}

static void put_types(const writer *w) {
    for (int k = 0; k < GGL_TYPE_LIMIT; k++)
        if (w->used[k])
            fprintf(w->f, "extern const struct ggl_type_info small_type_%s;\n",
                    ggl_type_get(k)->name);
    fprintf(w->f, "static const struct ggl_type_info *const types[] = {");
    for (int k = 0; k < GGL_TYPE_LIMIT; k++)
        if (w->used[k])
            fprintf(w->f, "&small_type_%s, ", ggl_type_get(k)->name);
    fprintf(w->f, "0};\n");
}

static void put_views(const writer *w) {
    for (size_t i = 0; i < w->n_views; i++) {
        const view *v = &w->view[i];
        fprintf(w->f, "static const small_view v%zu = {", i);
        if (v->leaf >= 0)
            fprintf(w->f, "leaf%d", v->leaf);
        else
            fprintf(w->f, "0");
        fprintf(w->f, ", %zu, &small_type_%s, {%d, %d, %d, %d}, {%d, %d, %d, %d}};\n", v->at,
                ggl_type_get(v->o.type)->name, (int)v->o.ne[0], (int)v->o.ne[1], (int)v->o.ne[2],
                (int)v->o.ne[3], (int)v->o.nb[0], (int)v->o.nb[1], (int)v->o.nb[2],
                (int)v->o.nb[3]);
    }
}

static void put_stores(const writer *w) {
    for (int i = 0; i < ggl_graph_n_stores(w->p->graph); i++) {
        const ggl_store *s = ggl_graph_store(w->p->graph, i);
        if (!w->stores[s->id])
            continue;
        fprintf(w->f,
                "static const small_store s%d = {%zu, %zu, %d, {%d, %d}, %d, &small_type_%s};\n",
                s->id, w->p->stores + w->p->store_loc[s->id].offset,
                s->kind == GGL_STORE_STATE ? 0 : s->page_size,
                s->kind == GGL_STORE_STATE ? 1 : (int)(s->n_pos / GGL_PAGE), (int)s->ne[0],
                (int)s->ne[1], (int)s->kind, ggl_type_get(s->type)->name);
    }
}

/* Writes the operators of the program, in order. Each name is declared before it is used; C allows that more than once. */
static ggl_status put_ops(writer *w, size_t *n_ops) {
    const small_program *p = w->p;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1)
            fprintf(w->f, "static const small_op ops[] = {\n");
        for (int i = 0; i < p->program.n_step; i++) {
            const ggl_step *s = &p->program.step[i];
            const int *of = w->of_step + (size_t)i * (GGL_MAX_SRC + 1);
            small_call c;
            if (s->kind != GGL_STEP_NODE && s->kind != GGL_STEP_FORM)
                continue;
            const ggl_status st = llm_small_call(s, &c, w->err);
            if (st != GGL_OK)
                return st;
            if (c.scratch > 0)
                c.n[1] = (int64_t)p->scratch;
            if (pass == 0) {
                fprintf(w->f, "void small_op_%s(const small_op *, char *);\n", c.run);
                if (c.kernel[0])
                    fprintf(w->f, "void small_%s();\n", c.kernel);
                fprintf(w->f, "static const small_view *const o%d[] = {", i);
                for (int k = 0; k < c.n_views; k++)
                    fprintf(w->f, of[k] < 0 ? "0, " : "&v%d, ", of[k]);
                fprintf(w->f, "};\n");
                if (c.store[0])
                    fprintf(w->f, "static const small_store *const t%d[] = {&s%d, ", i,
                            c.store[0]->id);
                if (c.store[0] && c.store[1])
                    fprintf(w->f, "&s%d", c.store[1]->id);
                if (c.store[0])
                    fprintf(w->f, "%s};\n", c.store[1] ? "" : "0");
                continue;
            }
            char f0[64], f1[64], d[64];
            fprintf(w->f, "{small_op_%s, ", c.run);
            if (c.kernel[0])
                fprintf(w->f, "(void (*)(void))small_%s, ", c.kernel);
            else
                fprintf(w->f, "0, ");
            fprintf(w->f, "o%d, ", i);
            if (c.store[0])
                fprintf(w->f, "t%d, ", i);
            else
                fprintf(w->f, "0, ");
            fprintf(w->f, "{%d, %d, %d}, {(float)%s, (float)%s}, %s},\n", (int)c.n[0], (int)c.n[1],
                    (int)c.n[2], llm_small_number(c.f[0], f0), llm_small_number(c.f[1], f1),
                    llm_small_number(c.d, d));
            ++*n_ops;
        }
    }
    fprintf(w->f, "};\n");
    return GGL_OK;
}

static ggl_status put_all(writer *w, llm_small_bytes *out) {
    const small_program *p = w->p;
    ggl_status st = collect(w);
    if (st != GGL_OK)
        return st;
    fprintf(w->f, "/* Made by llm-arch compile: do not edit. */\n#include \"%s\"\n\n", w->header);
    put_types(w);
    st = put_leaves(w, &out->weights);
    put_views(w);
    put_stores(w);
    size_t n_ops = 0;
    if (st == GGL_OK)
        st = put_ops(w, &n_ops);
    if (st == GGL_OK && w->words)
        st = llm_small_put_words(w->f, w->words, &w->tables, w->err);
    const bool has_words = w->words && !*w->tables.why;
    out->words = w->tables.size;
    memcpy(out->no_words, w->tables.why, sizeof out->no_words);
    fprintf(w->f,
            "\nconst small_plan %s = {ops, %zu, types, %zu, %zu, %d, %" PRId64 ", %" PRId64
            ", %s};\n",
            w->name, n_ops, p->stores, p->ram, SMALL_LOGITS, ggl_count(p->logits), p->n_ctx,
            has_words ? "&words" : "0");
    out->n_ops = (int64_t)n_ops;
    return st;
}

static void put_header(const writer *w, FILE *f) {
    char name[64];
    size_t k = 0;
    for (; w->name[k]; k++)
        name[k] = (char)toupper((unsigned char)w->name[k]);
    name[k] = 0;
    fprintf(f,
            "/* Made by llm-arch compile: do not edit. */\n#ifndef %s_PLAN_H\n#define %s_PLAN_H\n\n"
            "#include \"small.h\"\n\n#define %s_RAM %zu\n#define %s_N_CTX %" PRId64
            "\n#define %s_N_VOCAB %" PRId64 "\n",
            name, name, name, w->p->ram, name, w->p->n_ctx, name, ggl_count(w->p->logits));
    if (w->tables.size > 0)
        fprintf(f, "#define %s_WORK(n) (%zu * (size_t)(n) + %zu) /* small_encode */\n", name,
                w->tables.work_each, w->tables.work);
    fprintf(f, "\nextern const small_plan %s;\n\n#endif\n", w->name);
}

ggl_status llm_small_write(const llm_small_source *source, const char *path, llm_small_bytes *out,
                           ggl_error *err) {
    small_program p = {0};
    writer w = {.p = &p, .words = source->words, .err = err};
    char *header = NULL;
    ggl_new_file *c = NULL, *h = NULL;
    *out = (llm_small_bytes){0};
    ggl_status st = name_plan(&w, path, &header);
    if (st == GGL_OK)
        st = llm_small_program(&p, source, err);
    if (st == GGL_OK)
        st = ggl_new_file_open(&c, path, err);
    if (st == GGL_OK)
        st = ggl_new_file_open(&h, header, err);
    if (st == GGL_OK) {
        w.f = ggl_new_file_stream(c);
        st = put_all(&w, out);
    }
    if (st == GGL_OK) {
        put_header(&w, ggl_new_file_stream(h));
        st = ggl_new_file_commit(c, err);
        c = NULL;
    }
    if (st == GGL_OK) {
        st = ggl_new_file_commit(h, err);
        h = NULL;
        out->ram = p.ram;
        out->stores = p.ram - p.stores;
        out->n_ctx = p.n_ctx;
        out->n_vocab = ggl_count(p.logits);
    }
    ggl_new_file_discard(c);
    ggl_new_file_discard(h);
    ggl_free(header);
    ggl_free(w.view);
    ggl_free(w.of_step);
    ggl_free(w.stores);
    llm_small_program_fini(&p);
    return st;
}
