/* Opens a model: the file, and the descriptor that interprets it. */
#include "llm/internal/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/gguf.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/repacked.h"
#include "ggl/internal/show.h"
#include "host_ranges.h"
#include "llm/internal/adapter.h"
#include "llm/internal/mtp.h"
#include "override.h"

struct llm_model {
    llm_model *of; /* llm_model_beside: has everything but `tokenizer`; NULL: of another one */
    atomic_int n_beside;
    ggl_gguf *file;
    llm_arch *arch;
    char *arch_origin;
    ggl_arena arena;
    const char *mtp; /* as in llm_model_params */
    llm_arch_ignore ignore;
    ggl_repacked *repacked;           /* of the weights that its sessions read */
    llm_tokenizer *_Atomic tokenizer; /* made by the first call of llm_model_tokenizer */
};

static char *print(const char *a, const char *b) {
    size_t n = strlen(a) + strlen(b) + 1;
    char *s = ggl_calloc(n, 1);
    if (s)
        snprintf(s, n, "%s%s", a, b);
    return s;
}

static ggl_status arch_given(llm_model *m, const char *given, ggl_error *err) {
    bool builtin;
    ggl_status st = llm_arch_open_given(&m->arch, given, &builtin, err);
    if (st == GGL_OK)
        m->arch_origin = builtin ? print("built-in ", llm_arch_name(m->arch)) : print(given, "");
    return st;
}

/* Of a family that a descriptor for each kind of projector has: where a file has the kind, and what its name ends with. A file with two towers has a kind for each,
 * or one for both, whose ear has a name of its own. */
static const struct kind_place {
    const char *tower, *end;
} kind_places[] = {{"", ""}, {".vision", ""}, {".audio", ".audio"}, {".audio", ""}},
  ear_places[] = {{".audio", ".audio"}, {".audio", ""}, {"", ".audio"}};

/* Appends ":KIND" to the family's name. False: the file has no kind in this place. */
static bool add_kind(const llm_model *m, const struct kind_place *p, char *name, size_t size) {
    char key[2 * (4 * 64 + 1) + 32];
    ggl_str kind;
    const size_t n = strcspn(name, ":");
    snprintf(key, sizeof key, "%.*s%s.projector_type", (int)n, name, p->tower);
    if (ggl_gguf_get_string(m->file, key, &kind, NULL) != 1)
        return false;
    name[n] = ':';
    ggl_show(name + n + 1, size - n - 1, kind.s, kind.n < 64 ? kind.n : 64);
    const size_t used = strlen(name);
    snprintf(name + used, size - used, "%s", p->end);
    return true;
}

/* Opens the descriptor of the first kind that there is, by the first of its names that has one. */
static ggl_status open_kind(llm_model *m, bool ear, char *name, size_t size, ggl_error *err) {
    const struct kind_place *p = ear ? ear_places : kind_places;
    const size_t n = ear ? sizeof ear_places / sizeof *p : sizeof kind_places / sizeof *p;
    ggl_status st = GGL_NOT_FOUND;
    bool any = false;
    for (size_t k = 0; k < n && st == GGL_NOT_FOUND; k++) {
        if (any && strcmp(p[k].tower, p[k - 1].tower) != 0)
            break;
        if (add_kind(m, &p[k], name, size)) {
            any = true;
            st = llm_arch_open(&m->arch, name, err);
        }
    }
    return any ? st : llm_arch_open(&m->arch, name, err);
}

/* Files of a family for which another descriptor may be than for the others: NAME is that for "FAMILY:KIND". */
static bool sees_all(const ggl_gguf_value *v) {
    bool causal = true;
    return v && !v->is_array && ggl_gguf_bool(v, 0, &causal) && !causal;
}
static bool is_there(const ggl_gguf_value *v) {
    return v != NULL;
}
static const struct file_kind {
    const char *kind, *key;
    bool (*is)(const ggl_gguf_value *v);
} file_kinds[] = {
    {"encoder", "attention.causal", sees_all},      /* where the others write */
    {"hyper", "hyper_connection.count", is_there}}; /* where the others have one residual row */

/* Opens the descriptor for the file's kind, if there is one. GGL_NOT_FOUND, without a message: the family's own is to be opened. */
static ggl_status open_variant(llm_model *m, const char *family, ggl_error *err) {
    ggl_status st = GGL_NOT_FOUND;
    for (size_t k = 0; k < sizeof file_kinds / sizeof *file_kinds && st == GGL_NOT_FOUND; k++) {
        const struct file_kind *f = &file_kinds[k];
        char name[2 * (4 * 64 + 1) + 64];
        ggl_error none = {0};
        snprintf(name, sizeof name, "%s.%s", family, f->key);
        if (!f->is(ggl_gguf_find(m->file, name)))
            continue;
        snprintf(name, sizeof name, "%s:%s", family, f->kind);
        st = llm_arch_open(&m->arch, name, &none);
        if (st != GGL_OK && st != GGL_NOT_FOUND)
            return ggl_pass(err, &none);
    }
    return st;
}

static ggl_status arch_builtin(llm_model *m, bool ear, ggl_error *err) {
    const char *file = ggl_gguf_name(m->file);
    ggl_str family;
    int found = ggl_gguf_get_string(m->file, "general.architecture", &family, err);
    if (found < 0)
        return GGL_FORMAT;
    if (found == 0)
        return ggl_fail(
            err, GGL_FORMAT,
            "%s: the key general.architecture is missing, so the kind of model is unknown", file);
    char name[2 * (4 * 64 + 1) + 16]; /* the family's name, cut and escaped for messages */
    ggl_show(name, sizeof name, family.s, family.n < 64 ? family.n : 64);
    ggl_status st = open_variant(m, name, err);
    if (st == GGL_NOT_FOUND)
        st = open_kind(m, ear, name, sizeof name, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", file);
    m->arch_origin = print("built-in ", llm_arch_name(m->arch));
    return GGL_OK;
}

/* True for names that cannot lead out of a folder. The name comes from an untrusted file. */
static bool is_plain_name(ggl_str name) {
    bool plain = name.n > 0 && name.n <= 64 && name.s[0] != '.';
    for (size_t i = 0; i < name.n && plain; i++) {
        char c = name.s[i];
        plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '_' || c == '-' || c == '.';
    }
    return plain;
}

/* Looks for NAME.arch in the folders. GGL_NOT_FOUND, without a message: no folder has it. */
static ggl_status arch_from_dirs(llm_model *m, const char *dirs, ggl_error *err) {
    ggl_str family;
    if (!dirs || ggl_gguf_get_string(m->file, "general.architecture", &family, NULL) != 1 ||
        !is_plain_name(family))
        return GGL_NOT_FOUND;
    while (*dirs) {
        size_t n = strcspn(dirs, ":");
        char path[4096];
        int used = snprintf(path, sizeof path, "%.*s/%.*s.arch", (int)(n < 4000 ? n : 4000), dirs,
                            (int)family.n, family.s);
        if (n > 0 && used > 0 && (size_t)used < sizeof path && ggl_os_exists(path)) {
            ggl_status st = arch_given(m, path, err);
            if (st != GGL_OK)
                return st;
            ggl_free(m->arch_origin);
            m->arch_origin = print(path, " (search path)");
            return GGL_OK;
        }
        dirs += n + (dirs[n] == ':');
    }
    return GGL_NOT_FOUND;
}

/* Opens the model's descriptor; the order is described at llm_model_open. */
static ggl_status arch_choose(llm_model *m, const llm_model_params *params, ggl_error *err) {
    ggl_str own;
    const char *path = params ? params->arch_path : NULL, *dirs = params ? params->arch_dirs : NULL;
    ggl_status st =
        path ? GGL_NOT_FOUND : arch_from_dirs(m, dirs ? dirs : getenv("LLM_ARCH_PATH"), err);
    if (st != GGL_NOT_FOUND)
        return st == GGL_OK && !m->arch_origin ? ggl_fail(err, GGL_NOMEM, "out of memory") : st;
    int found = path ? 0 : ggl_gguf_get_string(m->file, "general.descriptor", &own, err);
    if (found < 0)
        return GGL_FORMAT;
    if (path) {
        st = arch_given(m, path, err);
    } else if (found) {
        m->arch_origin = print("general.descriptor of ", ggl_gguf_name(m->file));
        st = llm_arch_parse(&m->arch, own.s, own.n, "general.descriptor", err);
    } else {
        st = arch_builtin(m, params && params->ear, err);
    }
    return st == GGL_OK && !m->arch_origin ? ggl_fail(err, GGL_NOMEM, "out of memory") : st;
}

static bool copy_patterns(llm_model *m, const char *const **out, const char *const *list,
                          size_t n) {
    const char **copy = ggl_arena_alloc(&m->arena, n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++)
        if (!(copy[i] = ggl_arena_strndup(&m->arena, list[i], strlen(list[i]))))
            return false;
    *out = copy;
    return copy != NULL;
}

static ggl_status copy_ignore(llm_model *m, const llm_model_params *params, ggl_error *err) {
    if (!params)
        return GGL_OK;
    const llm_arch_ignore *from = &params->ignore;
    m->ignore.n_key = from->n_key;
    m->ignore.n_tensor = from->n_tensor;
    m->ignore.is_fixed = from->is_fixed;
    m->ignore.are_members = from->are_members;
    return copy_patterns(m, &m->ignore.key, from->key, from->n_key) &&
                   copy_patterns(m, &m->ignore.tensor, from->tensor, from->n_tensor)
               ? GGL_OK
               : ggl_fail(err, GGL_NOMEM, "out of memory");
}

/* Refuses files that belong to a model, but are none. */
static ggl_status check_type(const llm_model *m, ggl_error *err) {
    static const struct {
        const char *type, *what, *use;
    } others[] = {
        {"adapter", "an adapter", "it is applied to the model that it was made for"},
        {"imatrix", "an importance matrix",
         "llm-quantize --imatrix uses it, and llm-imatrix --in-file FILE --show-statistics shows "
         "it"},
        {"training", "a saved training",
         "llm-train --resume goes on with it, and its -o is the model"},
        {"probabilities", "the recorded probabilities of a model",
         "llm-train --teacher learns them"},
    };
    ggl_str type;
    if (llm_file_is_control(m->file))
        return ggl_fail(err, GGL_FORMAT,
                        "%s: this is a control vector (general.architecture), not a model; it is "
                        "applied to the model that it was made for",
                        ggl_gguf_name(m->file));
    if (ggl_gguf_get_string(m->file, "general.type", &type, NULL) == 1)
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (ggl_str_is(type, others[i].type))
                return ggl_fail(err, GGL_FORMAT, "%s: this is %s (general.type), not a model; %s",
                                ggl_gguf_name(m->file), others[i].what, others[i].use);
    return GGL_OK;
}

/* Makes the table of the weights that lie in the file's parts. */
static ggl_status make_repacked(llm_model *m, ggl_error *err) {
    ggl_host_range *part = ggl_calloc((size_t)ggl_gguf_n_parts(m->file), sizeof *part);
    if (!part)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const int n = llm_host_ranges(part, m->file);
    const ggl_status st = ggl_repacked_new(&m->repacked, part, n, err);
    ggl_free(part);
    return st;
}

/* Joins the file of layers that guess, if there is one. */
static ggl_status join_mtp(llm_model *m, const llm_model_params *params, ggl_error *err) {
    if (!params || !params->mtp)
        return GGL_OK;
    m->mtp = ggl_arena_strndup(&m->arena, params->mtp, strlen(params->mtp));
    return m->mtp ? llm_mtp_join(&m->file, params->mtp, params->gguf, err)
                  : ggl_fail(err, GGL_NOMEM, "out of memory");
}

static ggl_status open_rest(llm_model **out, llm_model *m, ggl_status st,
                            const llm_model_params *params, ggl_error *err) {
    if (st == GGL_OK)
        st = join_mtp(m, params, err);
    if (st == GGL_OK && params)
        st = llm_override_keys(m->file, params->override, params->n_override, err);
    if (st == GGL_OK)
        st = check_type(m, err);
    if (st == GGL_OK)
        st = arch_choose(m, params, err);
    if (st == GGL_OK)
        st = copy_ignore(m, params, err);
    if (st == GGL_OK)
        st = make_repacked(m, err);
    if (st != GGL_OK) {
        llm_model_free(m);
        return st;
    }
    *out = m;
    return GGL_OK;
}

ggl_status llm_model_open(llm_model **out, const char *path, const llm_model_params *params,
                          ggl_error *err) {
    *out = NULL;
    llm_model *m = ggl_calloc(1, sizeof *m);
    if (!m)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    llm_model_params own = {.size = sizeof own};
    llm_load_params load = {.size = sizeof load};
    ggl_status st = GGL_READ_PARAMS(llm_model_params, &own, params, err);
    if (st == GGL_OK)
        st = GGL_READ_PARAMS(llm_load_params, &load, own.load, err);
    load.arch_path = load.arch_path ? load.arch_path : own.arch_path;
    if (st == GGL_OK)
        st = llm_load(&m->file, path, own.gguf, &load, err);
    return open_rest(out, m, st, params ? &own : NULL, err);
}

ggl_status llm_model_open_memory(llm_model **out, const void *data, size_t size, const char *name,
                                 const llm_model_params *params, ggl_error *err) {
    *out = NULL;
    llm_model *m = ggl_calloc(1, sizeof *m);
    if (!m)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    llm_model_params own = {.size = sizeof own};
    ggl_status st = GGL_READ_PARAMS(llm_model_params, &own, params, err);
    if (st == GGL_OK)
        st = llm_load_memory(&m->file, data, size, name, own.load, err);
    return open_rest(out, m, st, params ? &own : NULL, err);
}

ggl_status llm_model_open_file(llm_model **out, ggl_gguf *file, const llm_model_params *params,
                               ggl_error *err) {
    *out = NULL;
    llm_model *m = ggl_calloc(1, sizeof *m);
    if (!m) {
        ggl_gguf_close(file);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    m->file = file;
    llm_model_params own = {.size = sizeof own};
    const ggl_status st = GGL_READ_PARAMS(llm_model_params, &own, params, err);
    return open_rest(out, m, st, params ? &own : NULL, err);
}

ggl_status llm_model_beside(llm_model **out, llm_model *m, ggl_error *err) {
    llm_model *of = m->of ? m->of : m, *n = *out = ggl_calloc(1, sizeof *n);
    if (!n)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    n->of = of;
    n->file = of->file;
    n->arch = of->arch;
    n->arch_origin = of->arch_origin;
    n->mtp = of->mtp;
    n->ignore = of->ignore;
    n->repacked = of->repacked;
    atomic_fetch_add(&of->n_beside, 1);
    return GGL_OK;
}

/* Frees the model, unless there are others beside it. */
static void leave(llm_model *m) {
    if (atomic_fetch_sub(&m->n_beside, 1) > 0)
        return;
    llm_tokenizer_free(m->tokenizer);
    ggl_repacked_free(m->repacked);
    llm_arch_free(m->arch);
    ggl_gguf_close(m->file);
    ggl_free(m->arch_origin);
    ggl_arena_fini(&m->arena);
    ggl_free(m);
}

void llm_model_free(llm_model *m) {
    llm_model *of = m ? m->of : NULL;
    if (of) {
        llm_tokenizer_free(m->tokenizer);
        ggl_free(m);
    }
    if (m)
        leave(of ? of : m);
}

const ggl_gguf *llm_model_file(const llm_model *m) {
    return m->file;
}

const llm_arch *llm_model_arch(const llm_model *m) {
    return m->arch;
}

const char *llm_model_mtp(const llm_model *m) {
    return m->mtp;
}

/* Returns the name of the descriptor that is this one; NULL: none. */
static const char *family_named(const llm_model *m, const char *name) {
    const char *f;
    for (int k = 0; (f = llm_arch_family(m->arch, k)) && strcmp(f, name) != 0; k++)
        ;
    return f;
}

const char *llm_model_family(const llm_model *m) {
    char name[2 * (4 * 64 + 1) + 16];
    ggl_str family;
    const char *found = NULL;
    if (ggl_gguf_get_string(m->file, "general.architecture", &family, NULL) != 1)
        return llm_arch_family(m->arch, 0);
    ggl_show(name, sizeof name, family.s, family.n < 64 ? family.n : 64);
    const size_t n = strlen(name);
    for (size_t k = 0; k < sizeof kind_places / sizeof *kind_places && !found; k++) {
        name[n] = 0;
        if (add_kind(m, &kind_places[k], name, sizeof name))
            found = family_named(m, name);
    }
    name[n] = 0;
    found = found ? found : family_named(m, name);
    return found ? found : llm_arch_family(m->arch, 0);
}

const char *llm_model_arch_origin(const llm_model *m) {
    return m->arch_origin;
}

llm_arch_ignore llm_model_ignore(const llm_model *m) {
    return m->ignore;
}

ggl_repacked *llm_model_repacked(const llm_model *m) {
    return m->repacked;
}

int64_t llm_model_n_ctx(const llm_model *m) {
    return llm_model_file_n_ctx(m->file);
}

int64_t llm_model_file_n_ctx(const ggl_gguf *file) {
    ggl_str family;
    char key[128];
    double n = 0;
    if (ggl_gguf_get_string(file, "general.architecture", &family, NULL) != 1 || family.n > 64)
        return 0;
    snprintf(key, sizeof key, "%.*s.context_length", (int)family.n, family.s);
    bool found = ggl_gguf_get_number(file, key, &n, NULL) == 1;
    return found && n >= 1 && n <= 0x1p53 && n == floor(n) ? (int64_t)n : 0;
}

int64_t llm_model_max_images(const llm_model *m) {
    int64_t n = 0;
    return ggl_gguf_get_integer(m->file, "general.max_images", &n, NULL) == 1 && n > 0 ? n : 0;
}

void llm_model_set_marks(llm_model *m, const llm_marks *marks) {
    llm_tokenizer *t = atomic_load(&m->tokenizer);
    if (t)
        llm_tokenizer_set_marks(t, marks);
}

ggl_status llm_model_remember_texts(llm_model *m, size_t most, ggl_error *err) {
    llm_tokenizer *t = atomic_load(&m->tokenizer);
    return t ? llm_tokenizer_remember(t, most, err) : GGL_OK;
}

/* Makes a tokenizer for the model: beside another one, by the tables of that one's. */
static ggl_status make_tokenizer(llm_tokenizer **out, llm_model *m, ggl_error *err) {
    const llm_tokenizer *t;
    if (!m->of)
        return llm_tokenizer_new(out, m->file, err);
    const ggl_status st = llm_model_tokenizer(m->of, &t, err);
    return st == GGL_OK ? llm_tokenizer_beside(out, t, err) : st;
}

ggl_status llm_model_tokenizer(llm_model *m, const llm_tokenizer **out, ggl_error *err) {
    llm_tokenizer *made = NULL, *there = atomic_load(&m->tokenizer);
    *out = NULL;
    ggl_status st = there ? GGL_OK : make_tokenizer(&made, m, err);
    if (st != GGL_OK)
        return st;
    if (made && atomic_compare_exchange_strong(&m->tokenizer, &there, made))
        there = made;
    else
        /* another thread was faster; or made is NULL, because there was one */
        llm_tokenizer_free(made);
    *out = there;
    return GGL_OK;
}

ggl_status llm_model_rows(const llm_model *m, llm_arch_rows_of out[LLM_ARCH_MAX_SOURCES], int *n,
                          ggl_error *err) {
    llm_arch_result built;
    const ggl_graph_params gp = ggl_graph_default();
    ggl_graph *g = ggl_graph_new(&gp);
    const llm_arch_source source = llm_arch_source_gguf(m->file);
    const llm_arch_params ap = {.size = sizeof ap, .n_ctx = 1, .ignore = m->ignore};
    *n = 0;
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the stages of a model");
    const ggl_status st = llm_arch_build(m->arch, &source, &ap, g, &built, err);
    *n = st == GGL_OK ? built.n_sources : 0;
    memcpy(out, built.source, (size_t)*n * sizeof *out);
    llm_arch_result_fini(&built);
    ggl_graph_free(g);
    return st;
}

ggl_status llm_model_start_token(const llm_model *m, const char *family, int64_t n_vocab,
                                 int32_t *out, ggl_error *err) {
    char key[160];
    int64_t id = 0;
    snprintf(key, sizeof key, "%.128s.decoder_start_token_id", family);
    int found = ggl_gguf_get_integer(m->file, key, &id, err);
    if (found == 0)
        found = ggl_gguf_get_integer(m->file, "tokenizer.ggml.bos_token_id", &id, err);
    if (found < 0)
        return GGL_FORMAT;
    if (id < 0 || id >= n_vocab)
        return ggl_fail(err, GGL_FORMAT, "%s: key %s is %" PRId64 ", which is no token",
                        ggl_gguf_name(m->file), key, id);
    *out = (int32_t)id;
    return GGL_OK;
}
