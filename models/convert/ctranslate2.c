#include "ctranslate2.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json_write.h"
#include "common/little_endian.h"
#include "common/model_folder.h"
#include "common/text_file.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "ggl/internal/types.h"

#define MODEL        "model.bin"
#define MAX_SETTINGS ((size_t)16 << 20)
#define TRUNCATED    "; the file may be truncated: download it again"
enum { LEAST_VERSION = 2, MOST_VERSION = 6, ALIASES = 3, TYPES = 4 }; /* versions of the format */
enum { MOST_TEXT = 500, MOST_PARTS = 16 };

static const struct {
    const char *dtype;
    int type;
    size_t size;
} types[] = {{"F32", GGL_F32, 4}, {"I8", -1, 1},       {"I16", -1, 2},
             {"I32", -1, 4},      {"F16", GGL_F16, 2}, {"BF16", GGL_BF16, 2}};
enum { N_TYPES = sizeof types / sizeof *types };

/* How many layers a part of the model has, such as the encoder. */
typedef struct part {
    ggl_str name;
    int64_t n;
} part;

typedef struct reader {
    const char *data;
    size_t size, at;
    uint32_t version;
    llm_safetensors *st;
    part part[MOST_PARTS];
    int n_part;
    llm_json_out variables, aliases; /* members of the objects */
} reader;

/* --- reading ---------------------------------------------------------------------------------- */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the table of variables");
}

/* Reads an unsigned integer of n bytes. */
static ggl_status read_number(reader *r, size_t n, uint64_t *out, ggl_error *err) {
    if (r->size - r->at < n)
        return ggl_fail(err, GGL_FORMAT, "it ends after %zu bytes, within its table" TRUNCATED,
                        r->size);
    *out = llm_little_endian(r->data + r->at, n);
    r->at += n;
    return GGL_OK;
}

/* Reads a text, which lies in the file, without its NUL. */
static ggl_status read_text(reader *r, ggl_str *out, ggl_error *err) {
    uint64_t n = 0;
    const size_t begin = r->at;
    const ggl_status s = read_number(r, 2, &n, err);
    if (s != GGL_OK)
        return s;
    if (n < 2 || n > MOST_TEXT || r->size - r->at < n || r->data[r->at + n - 1] ||
        memchr(r->data + r->at, 0, n - 1))
        return ggl_fail(err, GGL_FORMAT,
                        "at byte %zu, a name should begin: the file is truncated or damaged; "
                        "download it again",
                        begin);
    *out = (ggl_str){r->data + r->at, n - 1};
    r->at += n;
    return GGL_OK;
}

/* Writes a name with `sign` for each '/', to be valid while the arena is. NULL: out of memory. */
static char *named(reader *r, ggl_str name, char sign) {
    char *own = ggl_arena_strndup(&r->st->arena, name.s, name.n);
    for (size_t k = 0; own && k < name.n; k++)
        own[k] = own[k] == '/' ? sign : own[k];
    return own;
}

/* --- tensors ---------------------------------------------------------------------------------- */

static ggl_status add(reader *r, ggl_str name, const st_tensor *of, ggl_error *err) {
    static const char scale[] = "_scale";
    llm_safetensors *st = r->st;
    st_tensor t = *of;
    const bool divides = name.n > sizeof scale && ggl_ends_with(name.s, scale);
    const int n = (int)(name.n - (divides ? sizeof scale - 1 : 0));
    char *own = ggl_arena_printf(&st->arena, "%.*s%s", n, name.s, divides ? "_divisor" : "");
    if (!own || !ggl_grow(&st->tensor, &st->cap_tensor, st->n_tensor + 1, sizeof t))
        return no_memory(err);
    for (char *c = own; *c; c++)
        *c = *c == '/' ? '.' : *c;
    t.name = (ggl_str){own, strlen(own)};
    st->tensor[st->n_tensor++] = t;
    return GGL_OK;
}

/* Finds a variable by its name in the file, with an end. NULL: there is none. */
static const st_tensor *find(const reader *r, ggl_str name, const char *end) {
    char own[MOST_TEXT + 16];
    snprintf(own, sizeof own, "%.*s%s", (int)name.n, name.s, end);
    for (char *c = own; *c; c++)
        *c = *c == '/' ? '.' : *c;
    return llm_safetensors_find(r->st, own);
}

/* Counts the layer that a variable belongs to: encoder/layer_3/.. *is_other: it is not the first one. */
static ggl_status count_layer(reader *r, ggl_str name, bool *is_other, ggl_error *err) {
    static const char mark[] = "/layer_";
    const char *at = ggl_find_bytes(name.s, name.n, mark, sizeof mark - 1), *end = name.s + name.n;
    int64_t n = 0;
    *is_other = false;
    if (!at)
        return GGL_OK;
    const ggl_str of = {name.s, (size_t)(at - name.s)};
    const char *digit = at + sizeof mark - 1;
    for (; digit < end && *digit >= '0' && *digit <= '9' && n < 100000; digit++)
        n = 10 * n + (*digit - '0');
    if (digit == at + sizeof mark - 1 || digit == end || *digit != '/')
        return GGL_OK; /* layer_norm */
    *is_other = n > 0;
    int k = 0;
    while (k < r->n_part &&
           !(r->part[k].name.n == of.n && memcmp(r->part[k].name.s, of.s, of.n) == 0))
        k++;
    if (k == MOST_PARTS)
        return ggl_fail(err, GGL_LIMIT, "more than %d parts have layers", MOST_PARTS);
    r->n_part += k == r->n_part;
    r->part[k].name = of;
    r->part[k].n = n + 1 > r->part[k].n ? n + 1 : r->part[k].n;
    return GGL_OK;
}

static void begin_member(reader *r, llm_json_out *out, ggl_str name) {
    const char *own = named(r, name, '_');
    out->failed |= !own;
    llm_json_put_text(out, out->n > 0 ? ", " : "");
    llm_json_put_string(out, (ggl_str){own ? own : "", own ? name.n : 0});
    llm_json_put_text(out, ": ");
}

static double number_of(const st_tensor *t) {
    const uint64_t bits = llm_little_endian(t->data, t->size);
    float x = 0;
    if (t->type >= 0)
        ggl_type_get(t->type)->to_float(t->data, &x, 1);
    else
        x = t->size == 1   ? (float)(int8_t)bits
            : t->size == 2 ? (float)(int16_t)bits
                           : (float)(int32_t)bits;
    return isfinite(x) ? (double)x : 0;
}

/* Lists what a variable is: a number, or its shape, outermost first. */
static void list(reader *r, ggl_str name, const st_tensor *t) {
    begin_member(r, &r->variables, name);
    if (t->n_dims == 0) {
        llm_json_format(&r->variables, "%.9g", number_of(t));
        return;
    }
    for (int d = t->n_dims - 1; d >= 0; d--)
        llm_json_format(&r->variables, "%s%lld", d == t->n_dims - 1 ? "[" : ", ",
                        (long long)t->ne[d]);
    llm_json_put_text(&r->variables, "]");
}

/* --- the table --------------------------------------------------------------------------------- */

/* Sets type and size by what the file says of them. */
static ggl_status read_type(reader *r, st_tensor *t, int64_t count, ggl_error *err) {
    static const int by_size[] = {[1] = 1, [2] = 2, [4] = 0};
    uint64_t type = 0, size = 0;
    ggl_status s = read_number(r, 1, &type, err);
    if (s == GGL_OK)
        s = read_number(r, 4, &size, err);
    if (s != GGL_OK)
        return s;
    const bool is_old = r->version < TYPES;
    if (is_old ? type != 1 && type != 2 && type != 4 : type >= N_TYPES)
        return ggl_fail(err, GGL_FORMAT, "it has the %s %" PRIu64 ", which is unknown",
                        is_old ? "size" : "type", type);
    const int k = is_old ? by_size[type] : (int)type;
    t->dtype = types[k].dtype;
    t->type = types[k].type;
    t->size = (size_t)count * types[k].size;
    size *= is_old ? types[k].size : 1;
    return size == t->size ? GGL_OK
                           : ggl_fail(err, GGL_FORMAT,
                                      "it has %" PRIu64 " bytes; its shape and type %s need %zu",
                                      size, t->dtype, t->size);
}

static ggl_status read_shape(reader *r, st_tensor *t, int64_t *count, ggl_error *err) {
    uint64_t n = 0, x = 0;
    ggl_status s = read_number(r, 1, &n, err);
    if (s == GGL_OK && n > LLM_ST_MAX_DIMS)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "it has %" PRIu64 " dimensions, at most %d are supported", n,
                        LLM_ST_MAX_DIMS);
    t->n_dims = (int)n;
    *count = 1;
    for (int d = 0; d < LLM_ST_MAX_DIMS; d++)
        t->ne[d] = 1;
    for (int d = t->n_dims - 1; d >= 0 && s == GGL_OK; d--) {
        s = read_number(r, 4, &x, err);
        t->ne[d] = (int64_t)x;
        if (s == GGL_OK && (x == 0 || (uint64_t)*count > r->size / x))
            return ggl_fail(err, GGL_FORMAT,
                            "its dimension of %" PRIu64 " does not fit into the file" TRUNCATED, x);
        *count *= (int64_t)x;
    }
    return s;
}

static ggl_status read_variable(reader *r, ggl_str name, ggl_error *err) {
    st_tensor t = {0};
    int64_t count = 1;
    bool is_other = false;
    ggl_status s = read_shape(r, &t, &count, err);
    if (s == GGL_OK)
        s = read_type(r, &t, count, err);
    if (s == GGL_OK && r->size - r->at < t.size)
        return ggl_fail(err, GGL_FORMAT, "it has %zu bytes, but %zu follow" TRUNCATED, t.size,
                        r->size - r->at);
    t.data = r->data + r->at;
    r->at += s == GGL_OK ? t.size : 0;
    if (s == GGL_OK)
        s = count_layer(r, name, &is_other, err);
    if (s != GGL_OK)
        return s;
    if (!is_other)
        list(r, name, &t);
    return t.n_dims > 0 || ggl_ends_with(name.s, "_scale") ? add(r, name, &t, err) : GGL_OK;
}

static ggl_status read_variables(reader *r, ggl_error *err) {
    uint64_t n = 0;
    ggl_status s = read_number(r, 4, &n, err);
    for (uint64_t k = 0; k < n && s == GGL_OK; k++) {
        ggl_str name;
        char shown[4 * 120 + 1];
        s = read_text(r, &name, err);
        if (s != GGL_OK)
            return ggl_within(err, s, "variable %" PRIu64 " of %" PRIu64, k + 1, n);
        ggl_show(shown, sizeof shown, name.s, ggl_utf8_cut(name.s, name.n, 120));
        s = read_variable(r, name, err);
        if (s != GGL_OK)
            return ggl_within(err, s, "variable '%s'", shown);
    }
    return s;
}

/* Gives the variable `of` another name, and its divisors, too, if it has them. */
static ggl_status read_alias(reader *r, ggl_error *err) {
    ggl_str name, of;
    ggl_status s = read_text(r, &name, err);
    if (s == GGL_OK)
        s = read_text(r, &of, err);
    if (s != GGL_OK)
        return s;
    const st_tensor *t = find(r, of, "");
    if (!t)
        return ggl_fail(err, GGL_FORMAT, "a second name stands for '%.*s', which is missing",
                        (int)ggl_utf8_cut(of.s, of.n, 120), of.s);
    const st_tensor copy = *t;
    s = add(r, name, &copy, err);
    bool is_other = false;
    if (s == GGL_OK)
        s = count_layer(r, name, &is_other, err);
    if (s == GGL_OK && !is_other) {
        list(r, name, &copy);
        begin_member(r, &r->aliases, name);
        llm_json_put_string(&r->aliases, of);
    }
    t = s == GGL_OK ? find(r, of, "_divisor") : NULL;
    if (!t)
        return s;
    char text[MOST_TEXT + 16];
    const st_tensor divisor = *t;
    const int n = snprintf(text, sizeof text, "%.*s_scale", (int)name.n, name.s);
    return add(r, (ggl_str){text, (size_t)n}, &divisor, err);
}

static ggl_status read_aliases(reader *r, ggl_error *err) {
    uint64_t n = 0;
    ggl_status s = llm_safetensors_index(r->st, err);
    if (s == GGL_OK && r->version >= ALIASES)
        s = read_number(r, 4, &n, err);
    for (uint64_t k = 0; k < n && s == GGL_OK; k++)
        s = read_alias(r, err);
    ggl_index_fini(&r->st->by_name);
    if (s == GGL_OK && r->at < r->size)
        s = ggl_fail(err, GGL_FORMAT, "%zu bytes follow its end: the file is damaged",
                     r->size - r->at);
    return s;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Writes what the file says, but its end, behind which the folder's settings belong. */
static void put_config(const reader *r, llm_json_out *out, ggl_str kind, uint64_t revision) {
    llm_json_format(out, "{'architectures': [%.*s], 'version': %u, 'revision': %u, 'layers': {",
                    LLM_JSON_STR(kind), (unsigned)r->version, (unsigned)revision);
    for (int k = 0; k < r->n_part; k++)
        llm_json_format(out, "%s%.*s: %lld", k ? ", " : "", LLM_JSON_STR(r->part[k].name),
                        (long long)r->part[k].n);
    llm_json_put_text(out, "}, \"variables\": {");
    llm_json_put(out, r->variables.s ? r->variables.s : "", r->variables.n);
    llm_json_put_text(out, "}, \"aliases\": {");
    llm_json_put(out, r->aliases.s ? r->aliases.s : "", r->aliases.n);
    llm_json_put_text(out, "}");
    out->failed |= r->variables.failed || r->aliases.failed;
}

static ggl_status parse(llm_json **config, llm_json_out *text, const char *name, ggl_error *err) {
    const ggl_status s =
        text->failed ? no_memory(err) : llm_json_parse(config, text->s, text->n, name, err);
    if (s == GGL_OK)
        (*config)->text = text->s; /* freed with the document */
    else
        ggl_free(text->s);
    return s;
}

static ggl_status read_all(reader *r, llm_json_out *text, ggl_error *err) {
    uint64_t version = 0, revision = 0;
    ggl_str kind;
    ggl_status s = read_number(r, 4, &version, err);
    if (s == GGL_OK && (version < LEAST_VERSION || version > MOST_VERSION))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "it has version %" PRIu64 " of CTranslate2's format; %d to %d are "
                        "supported: convert the original model again, or give its own folder",
                        version, LEAST_VERSION, MOST_VERSION);
    r->version = (uint32_t)version;
    if (s == GGL_OK)
        s = read_text(r, &kind, err);
    if (s == GGL_OK)
        s = read_number(r, 4, &revision, err);
    if (s == GGL_OK)
        s = read_variables(r, err);
    if (s == GGL_OK)
        s = read_aliases(r, err);
    if (s == GGL_OK)
        put_config(r, text, kind, revision);
    return s;
}

static ggl_status read_model(llm_safetensors *st, llm_json **config, const void *data, size_t size,
                             ggl_error *err) {
    reader r = {.data = data, .size = size, .st = st};
    llm_json_out text = {0};
    ggl_status s = read_all(&r, &text, err);
    ggl_free(r.variables.s);
    ggl_free(r.aliases.s);
    if (s == GGL_OK)
        s = llm_safetensors_index(st, err);
    llm_json_put_text(&text, "}");
    if (s == GGL_OK)
        return parse(config, &text, "header", err);
    ggl_free(text.s);
    return s;
}

/* Returns the path of model.bin, or of a file beside it, to be freed. NULL: out of memory. */
static char *path_of(const char *path, const char *name) {
    const size_t size = strlen(path) + strlen(name) + 2;
    char *out = ggl_calloc(size, 1);
    const char *slash = ggl_os_last_separator(path);
    const bool is_folder = llm_is_folder(path);
    const int n = is_folder ? (int)strlen(path) : slash ? (int)(slash - path) : 0;
    if (out)
        snprintf(out, size, "%.*s%s%s", n, path, n > 0 ? "/" : "", name);
    return out;
}

/* Adds the folder's config.json, if there is one, to what model.bin says. */
static ggl_status add_settings(llm_json **config, const char *path, ggl_error *err) {
    char *beside = path_of(path, "config.json");
    llm_json *settings = NULL;
    llm_json_out text = {0};
    if (!beside)
        return no_memory(err);
    ggl_status s =
        ggl_os_exists(beside) ? llm_json_read(&settings, beside, MAX_SETTINGS, err) : GGL_OK;
    ggl_free(beside);
    if (s != GGL_OK)
        return s;
    llm_json_put_value(&text, &(*config)->root);
    text.n -= text.n > 0;
    llm_json_put_text(&text, ", \"settings\": ");
    if (settings && settings->root.kind == JSON_OBJECT)
        llm_json_put_value(&text, &settings->root);
    else
        llm_json_put_text(&text, "{}");
    llm_json_put_text(&text, "}");
    llm_json_free(settings);
    llm_json_free(*config);
    *config = NULL;
    return parse(config, &text, path, err);
}

ggl_status llm_ctranslate2_open(llm_safetensors **out, llm_json **config, const char *path,
                                const ggl_file_how *how, const ggl_str *bytes, ggl_error *err) {
    char *file = bytes ? NULL : path_of(path, MODEL);
    *out = NULL;
    *config = NULL;
    if (!bytes && !file)
        return no_memory(err);
    ggl_status s =
        llm_safetensors_open_other(out, config, bytes ? path : file, how, bytes, read_model, err);
    if (s == GGL_OK && !bytes)
        s = add_settings(config, path, err);
    if (s != GGL_OK) {
        llm_safetensors_close(*out);
        *out = NULL;
    }
    ggl_free(file);
    return s;
}

bool llm_ctranslate2_is(const char *path) {
    char head[128];
    const bool is_folder = llm_is_folder(path);
    if (!is_folder && !ggl_ends_with(path, MODEL))
        return false;
    char *file = path_of(path, MODEL);
    const size_t n = file ? llm_read_head(file, head, sizeof head) : 0;
    ggl_free(file);
    const size_t n_kind = n > 6 ? (size_t)llm_little_endian(head + 4, 2) : 0;
    const bool is = n_kind > 4 && 6 + n_kind + 4 < n && head[6 + n_kind - 1] == 0 &&
                    llm_little_endian(head, 4) < 100;
    return is && !memchr(head + 6, 0, n_kind - 1) && memcmp(head + 6 + n_kind - 5, "Spec", 4) == 0;
}
