#include "safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/little_endian.h"
#include "common/text_file.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "pickle.h"

#define INDEX      "model.safetensors.index.json"
#define MAX_HEADER ((uint64_t)100 << 20) /* the format's own limit */
#define MAX_INDEX  ((size_t)100 << 20)
#define MAX_FILES  4096
#define MAX_NAME   500

static const struct {
    const char *name;
    size_t size;
    int type;
} dtypes[] = {{"F32", 4, GGL_F32}, {"F16", 2, GGL_F16}, {"BF16", 2, GGL_BF16}, {"F64", 8, GGL_F64},
              {"I64", 8, -1},      {"I32", 4, -1},      {"I16", 2, -1},        {"I8", 1, -1},
              {"U64", 8, -1},      {"U32", 4, -1},      {"U16", 2, -1},        {"U8", 1, -1},
              {"BOOL", 1, -1},     {"F8_E5M2", 1, -1},  {"F8_E4M3", 1, -1},    {"C64", 8, -1},
              {"F8_E8M0", 1, -1}};

/* Returns a length for %.*s. */
static int shown(ggl_str s) {
    return (int)ggl_utf8_cut(s.s, s.n, 120);
}

/* --- by name ---------------------------------------------------------------------------------- */

st_tensor *llm_safetensors_find(const llm_safetensors *st, const char *name) {
    size_t i = ggl_index_find(&st->by_name, st->tensor, (ggl_str){name, strlen(name)});
    return i == SIZE_MAX ? NULL : &st->tensor[i];
}

void llm_safetensors_drop(const llm_safetensors *st, const st_tensor *t) {
    if (st->map)
        ggl_file_map_drop(&st->map[t->file], t->data, t->size);
}

ggl_status llm_safetensors_index(llm_safetensors *st, ggl_error *err) {
    ggl_status s =
        ggl_index_init(&st->by_name, st->n_tensor, sizeof *st->tensor, GGL_INDEX_STRINGS, err);
    for (size_t i = 0; s == GGL_OK && i < st->n_tensor; i++) {
        const st_tensor *t = &st->tensor[i],
                        *first = &st->tensor[ggl_index_put(&st->by_name, st->tensor, i)];
        if (first != t)
            s = ggl_fail(err, GGL_FORMAT, "%s: tensor '%s' occurs twice, also in %s",
                         st->file[t->file].s, t->name.s, st->file[first->file].s);
    }
    return s;
}

/* --- one file --------------------------------------------------------------------------------- */

static ggl_status read_shape(st_tensor *t, const json_value *shape, size_t each, size_t *size,
                             ggl_error *err) {
    if (!shape)
        return ggl_fail(err, GGL_FORMAT, "its array 'shape' is missing");
    if (shape->n > LLM_ST_MAX_DIMS)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "it has %" PRIu32 " dimensions, at most %d are supported", shape->n,
                        LLM_ST_MAX_DIMS);
    t->n_dims = (int)shape->n;
    *size = each;
    for (int d = 0; d < t->n_dims; d++) {
        const json_value *x = &shape->item[t->n_dims - 1 - d];
        if (x->kind != JSON_NUMBER || !x->whole || x->number < 0)
            return ggl_fail(err, GGL_FORMAT, "a dimension is not a whole number");
        t->ne[d] = (int64_t)x->number;
        if (!ggl_size_mul(*size, (uint64_t)t->ne[d], size))
            return ggl_fail(err, GGL_LIMIT, "its size is too large");
    }
    return GGL_OK;
}

static ggl_status read_offsets(const json_value *at, size_t n_data, size_t *begin, size_t *end,
                               ggl_error *err) {
    uint64_t x[2];
    if (!at || at->n != 2)
        return ggl_fail(err, GGL_FORMAT, "its array 'data_offsets' of two numbers is missing");
    for (int k = 0; k < 2; k++) {
        const json_value *v = &at->item[k];
        if (v->kind != JSON_NUMBER || !v->whole || v->number < 0)
            return ggl_fail(err, GGL_FORMAT, "an offset is not a whole number");
        x[k] = (uint64_t)v->number;
    }
    if (x[0] > x[1] || x[1] > n_data)
        return ggl_fail(
            err, GGL_FORMAT,
            "its data is at %" PRIu64 " to %" PRIu64 ", but the file has %zu bytes of data%s", x[0],
            x[1], n_data, x[0] > x[1] ? "" : "; it may be truncated: download it again");
    *begin = (size_t)x[0];
    *end = (size_t)x[1];
    return GGL_OK;
}

static ggl_status read_tensor(st_tensor *t, const json_value *v, const char *data, size_t n_data,
                              ggl_error *err) {
    const json_value *dtype = llm_json_get_kind(v, "dtype", JSON_STRING);
    size_t each = 0, size = 0, begin = 0, end = 0;
    if (!dtype)
        return ggl_fail(err, GGL_FORMAT, "its string 'dtype' is missing");
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        if (llm_json_is(dtype, dtypes[k].name)) {
            t->dtype = dtypes[k].name;
            t->type = dtypes[k].type;
            each = dtypes[k].size;
        }
    if (each == 0)
        return ggl_fail(err, GGL_UNSUPPORTED, "its dtype '%.*s' is unknown", shown(json_str(dtype)),
                        dtype->s);
    ggl_status s = read_shape(t, llm_json_get_kind(v, "shape", JSON_ARRAY), each, &size, err);
    if (s == GGL_OK)
        s = read_offsets(llm_json_get_kind(v, "data_offsets", JSON_ARRAY), n_data, &begin, &end,
                         err);
    if (s != GGL_OK)
        return s;
    if (end - begin != size)
        return ggl_fail(err, GGL_FORMAT, "its type and shape need %zu bytes, but its data has %zu",
                        size, end - begin);
    t->data = data + begin;
    t->size = size;
    return GGL_OK;
}

static int by_place(const void *a, const void *b) {
    const st_tensor *const *x = a, *const *y = b;
    const char *p = (*x)->data, *q = (*y)->data;
    return p != q ? (p < q ? -1 : 1) : ((*x)->size > (*y)->size) - ((*x)->size < (*y)->size);
}

/* Checks that the tensors' data fill the file without gaps or overlaps. */
static ggl_status check_places(llm_safetensors *st, size_t first, const char *data, size_t n_data,
                               ggl_error *err) {
    size_t n = st->n_tensor - first;
    const st_tensor **t = ggl_calloc(n + 1, sizeof *t);
    const char *at = data;
    ggl_status s = t ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t i = 0; t && i < n; i++)
        t[i] = &st->tensor[first + i];
    if (t && n > 0)
        qsort(t, n, sizeof *t, by_place);
    for (size_t i = 0; s == GGL_OK && i < n; i++) {
        const char *begin = t[i]->data;
        if (begin < at)
            s = ggl_fail(err, GGL_FORMAT, "the data of '%s' overlaps that of '%s'", t[i]->name.s,
                         t[i - 1]->name.s);
        else if (begin > at)
            s = ggl_fail(err, GGL_FORMAT, "%zu bytes before the data of '%s' belong to no tensor",
                         (size_t)(begin - at), t[i]->name.s);
        at = begin + t[i]->size;
    }
    if (s == GGL_OK && at < data + n_data)
        s = ggl_fail(err, GGL_FORMAT, "%zu bytes at the end belong to no tensor",
                     (size_t)(data + n_data - at));
    ggl_free(t);
    return s;
}

static ggl_status read_header(llm_safetensors *st, const json_value *root, const char *data,
                              size_t n_data, ggl_error *err) {
    size_t first = st->n_tensor;
    if (root->kind != JSON_OBJECT)
        return ggl_fail(err, GGL_FORMAT, "the header is %s, not an object",
                        llm_json_kind_text(root->kind));
    for (size_t i = 0; i < root->n; i++) {
        ggl_str name = json_name(root, i);
        st_tensor t = {.file = st->n_file - 1, .ne = {1, 1, 1, 1, 1, 1, 1, 1}};
        if (name.n == 12 && memcmp(name.s, "__metadata__", 12) == 0)
            continue;
        if (name.n == 0 || name.n > MAX_NAME || memchr(name.s, 0, name.n))
            return ggl_fail(err, GGL_FORMAT,
                            "a tensor's name is empty, longer than %d bytes, or has a NUL",
                            MAX_NAME);
        ggl_status s = read_tensor(&t, &root->item[i], data, n_data, err);
        if (s != GGL_OK)
            return ggl_within(err, s, "tensor '%.*s'", shown(name), name.s);
        t.name = (ggl_str){ggl_arena_strndup(&st->arena, name.s, name.n), name.n};
        if (!t.name.s || !ggl_grow(&st->tensor, &st->cap_tensor, st->n_tensor + 1, sizeof t))
            return ggl_fail(err, GGL_NOMEM, "out of memory for the table of tensors");
        st->tensor[st->n_tensor++] = t;
    }
    return check_places(st, first, data, n_data, err);
}

/* Detects a text in place of the file: a Git LFS pointer, or a web server's error page. */
static ggl_status check_text(const char *bytes, size_t n, ggl_error *err) {
    if (llm_is_lfs_pointer(bytes, n))
        return ggl_fail(err, GGL_FORMAT, "%s", LLM_LFS_ADVICE);
    for (size_t k = 0; k < 8; k++)
        if (n < 8 || bytes[k] < ' ' || bytes[k] > '~')
            return GGL_OK;
    return ggl_fail(err, GGL_FORMAT, "this is text, not safetensors: '%.*s'",
                    (int)(n < 60 ? n : 60), bytes);
}

static ggl_status read_file(llm_safetensors *st, const char *bytes, size_t n, ggl_error *err) {
    llm_json *head;
    ggl_status s = check_text(bytes, n, err);
    if (s != GGL_OK)
        return s;
    const uint64_t n_head = n >= 8 ? llm_little_endian(bytes, 8) : 0;
    if (n < 8 || n_head > n - 8)
        return ggl_fail(err, GGL_FORMAT, "the file has %zu bytes, too few for its header", n);
    if (n_head > MAX_HEADER)
        return ggl_fail(err, GGL_LIMIT,
                        "a header of %" PRIu64 " bytes, at most %" PRIu64 " are supported", n_head,
                        MAX_HEADER);
    s = llm_json_parse(&head, bytes + 8, (size_t)n_head, "header", err);
    if (s != GGL_OK)
        return s;
    s = read_header(st, &head->root, bytes + 8 + n_head, n - 8 - (size_t)n_head, err);
    llm_json_free(head);
    return s;
}

/* --- the folder ------------------------------------------------------------------------------- */

static bool is_file(const char *folder, const char *name) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && ggl_os_exists(path);
}

static ggl_status add_file(llm_safetensors *st, const char *folder, const char *name,
                           ggl_error *err) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return ggl_fail(err, GGL_LIMIT, "%s: the path is too long", folder);
    st->file[st->n_file] = (ggl_str){name, strlen(name)};
    ggl_status s = ggl_file_map_open_how(&st->map[st->n_file], path, &st->how, err);
    st->n_file++; /* closed with the others from here on */
    if (s != GGL_OK)
        return s;
    s = read_file(st, st->map[st->n_file - 1].data, st->map[st->n_file - 1].size, err);
    return s == GGL_OK ? s : ggl_within(err, s, "%s", path);
}

static ggl_status make_room(llm_safetensors *st, size_t n_file, ggl_error *err) {
    st->map = ggl_arena_alloc(&st->arena, n_file, sizeof *st->map);
    st->file = ggl_arena_alloc(&st->arena, n_file, sizeof *st->file);
    if (!st->map || !st->file)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    return ggl_index_init(&st->by_file, n_file, sizeof *st->file, GGL_INDEX_STRINGS, err);
}

/* Opens each file that weight_map names, once. The files must be in the folder itself. */
static ggl_status add_indexed(llm_safetensors *st, const char *folder, const char *index,
                              const json_value *map, ggl_error *err) {
    ggl_status s = make_room(st, MAX_FILES, err);
    for (size_t i = 0; s == GGL_OK && i < map->n; i++) {
        const json_value *v = &map->item[i];
        const bool text = v->kind == JSON_STRING,
                   plain = text && v->n > 0 && v->n < 256 && !memchr(v->s, '/', v->n) &&
                           !memchr(v->s, '\\', v->n) && !memchr(v->s, 0, v->n) && v->s[0] != '.';
        if (!plain)
            return ggl_fail(
                err, GGL_FORMAT,
                "%s: weight_map: tensor '%.*s' is not in any file of this folder%s%.*s%s", index,
                shown(json_name(map, i)), json_name(map, i).s, text ? ", but in '" : "",
                text ? shown(json_str(v)) : 0, text ? v->s : "", text ? "'" : "");
        if (ggl_index_find(&st->by_file, st->file, json_str(v)) != SIZE_MAX)
            continue;
        if (st->n_file == MAX_FILES)
            return ggl_fail(err, GGL_LIMIT, "%s: more than %d files", index, MAX_FILES);
        const char *name = ggl_arena_strndup(&st->arena, v->s, v->n);
        if (name && !is_file(folder, name))
            return ggl_fail(err, GGL_IO, "%s/%s: no such file, but " INDEX " names it: download it",
                            folder, name);
        s = name ? add_file(st, folder, name, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
        if (s == GGL_OK)
            ggl_index_put(&st->by_file, st->file, (size_t)st->n_file - 1);
    }
    return s;
}

static ggl_status check_map(const llm_safetensors *st, const json_value *map, ggl_error *err) {
    for (size_t i = 0; i < map->n; i++) {
        ggl_str name = json_name(map, i);
        size_t k = ggl_index_find(&st->by_name, st->tensor, name);
        if (k == SIZE_MAX || !llm_json_is(&map->item[i], st->file[st->tensor[k].file].s))
            return ggl_fail(err, GGL_FORMAT, "weight_map: tensor '%.*s' is not in '%.*s'",
                            shown(name), name.s, shown(json_str(&map->item[i])), map->item[i].s);
    }
    return map->n == st->n_tensor
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT,
                          "weight_map has %" PRIu32 " tensors, but the files have %zu", map->n,
                          st->n_tensor);
}

static bool names_file(const json_value *map, const char *name) {
    for (size_t i = 0; i < map->n; i++)
        if (llm_json_is(&map->item[i], name))
            return true;
    return false;
}

/* Reports two models in a folder, one probably left from another download. */
static ggl_status refuse_both(const char *folder, const char *other, ggl_error *err) {
    return ggl_fail(
        err, GGL_FORMAT,
        "%s: there are model.safetensors and %s: either may be the model; move one away", folder,
        other);
}

static ggl_status open_indexed(llm_safetensors *st, const char *folder, ggl_error *err) {
    char path[4096];
    llm_json *index;
    if ((size_t)snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder) >=
        sizeof path)
        return ggl_fail(err, GGL_LIMIT, "%s: the path is too long", folder);
    ggl_status s = llm_json_read(&index, path, MAX_INDEX, err);
    if (s != GGL_OK)
        return s;
    const json_value *map = llm_json_get_kind(&index->root, "weight_map", JSON_OBJECT);
    if (!map || map->n == 0)
        s = ggl_fail(err, GGL_FORMAT, "%s: the object 'weight_map' with tensors is missing", path);
    if (s == GGL_OK && is_file(folder, "model.safetensors") &&
        !names_file(map, "model.safetensors"))
        s = refuse_both(folder, "model.safetensors.index.json, which does not name it", err);
    if (s == GGL_OK)
        s = add_indexed(st, folder, path, map, err);
    if (s == GGL_OK)
        s = llm_safetensors_index(st, err);
    if (s == GGL_OK && (s = check_map(st, map, err)) != GGL_OK)
        s = ggl_within(err, s, "%s", path);
    llm_json_free(index);
    return s;
}

/* --- parts without an index ------------------------------------------------------------------- */

/* Files like model-00002-of-00005.safetensors. */
typedef struct parts {
    int n, n_other; /* the total in the names; another total in some names, 0: none */
    int n_there;
    bool there[MAX_FILES + 1];
} parts;

static const char *part_name(int k, int n, char *buf, size_t size) {
    snprintf(buf, size, "model-%05d-of-%05d.safetensors", k, n);
    return buf;
}

static void add_part(parts *p, const char *name) {
    char want[64];
    int k, n;
    if (sscanf(name, "model-%5d-of-%5d", &k, &n) != 2 || k < 1 || k > n || n > MAX_FILES ||
        strcmp(name, part_name(k, n, want, sizeof want)) != 0)
        return;
    if (p->n > 0 && n != p->n) {
        p->n_other = n;
        return;
    }
    p->n = n;
    p->n_there++;
    p->there[k] = true;
}

static ggl_status check_parts(const parts *p, const char *folder, ggl_error *err) {
    char name[64];
    int k = 1;
    if (p->n_other)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: there are parts of a model of %d files and of one of %d: either may "
                        "be the model; move one away",
                        folder, p->n < p->n_other ? p->n : p->n_other,
                        p->n < p->n_other ? p->n_other : p->n);
    while (k <= p->n && p->there[k])
        k++;
    return k > p->n
               ? GGL_OK
               : ggl_fail(err, GGL_NOT_FOUND,
                          "%s: %s is missing: the folder has %d of the %d parts in their names",
                          folder, part_name(k, p->n, name, sizeof name), p->n_there, p->n);
}

static void find_parts(parts *p, const char *folder) {
    os_folder *dir = ggl_os_folder_open(folder);
    for (const char *e; dir && (e = ggl_os_folder_next(dir));)
        add_part(p, e);
    if (dir)
        ggl_os_folder_close(dir);
}

static ggl_status open_parts(llm_safetensors *st, const char *folder, const parts *p,
                             ggl_error *err) {
    ggl_status s = check_parts(p, folder, err);
    if (s == GGL_OK)
        s = make_room(st, (size_t)p->n, err);
    for (int k = 1; s == GGL_OK && k <= p->n; k++) {
        char *name = ggl_arena_alloc(&st->arena, 64, 1);
        s = name ? add_file(st, folder, part_name(k, p->n, name, 64), err)
                 : ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    return s == GGL_OK ? llm_safetensors_index(st, err) : s;
}

/* --- choosing the files ----------------------------------------------------------------------- */

static ggl_status open_one(llm_safetensors *st, const char *folder, ggl_error *err) {
    ggl_status s = make_room(st, 1, err);
    if (s == GGL_OK)
        s = add_file(st, folder, "model.safetensors", err);
    return s == GGL_OK ? llm_safetensors_index(st, err) : s;
}

static ggl_status open_folder(llm_safetensors *st, const char *folder, ggl_error *err) {
    parts p = {.n = 0};
    const bool one = is_file(folder, "model.safetensors");
    char name[64];
    if (is_file(folder, "model.safetensors.index.json"))
        return open_indexed(st, folder, err);
    find_parts(&p, folder);
    if (one && p.n > 0)
        return refuse_both(folder, part_name(1, p.n, name, sizeof name), err);
    if (one)
        return open_one(st, folder, err);
    if (p.n > 0)
        return open_parts(st, folder, &p, err);
    const char *pickle = llm_pickle_in(folder, name, sizeof name);
    char advice[LLM_PICKLE_ADVICE];
    return ggl_fail(err, GGL_NOT_FOUND,
                    "%s: there is no model.safetensors and no model.safetensors.index.json%s%s%s%s",
                    folder, pickle ? ", but " : "", pickle ? pickle : "", pickle ? ": " : "",
                    pickle ? llm_pickle_advice(pickle, advice) : "");
}

ggl_status llm_safetensors_open(llm_safetensors **out, const char *folder, const ggl_file_how *how,
                                ggl_error *err) {
    *out = NULL;
    llm_safetensors *st = ggl_calloc(1, sizeof *st);
    if (!st)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (how)
        st->how = *how;
    ggl_status s = open_folder(st, folder, err);
    if (s == GGL_OK)
        *out = st;
    else
        llm_safetensors_close(st);
    return s;
}

/* Moves the files and tensors of a folder in the folder to the end of st. */
static ggl_status take(llm_safetensors *st, llm_safetensors *own, const char *name,
                       const char *prefix, ggl_error *err) {
    const int n = st->n_file, n_own = own->n_file;
    const size_t n_all = (size_t)n + (size_t)n_own;
    ggl_file_map *map = ggl_arena_alloc(&st->arena, n_all, sizeof *map);
    ggl_str *file = ggl_arena_alloc(&st->arena, n_all, sizeof *file);
    bool ok =
        map && file &&
        ggl_grow(&st->tensor, &st->cap_tensor, st->n_tensor + own->n_tensor, sizeof *st->tensor);
    for (int k = 0; k < n && ok; k++) {
        map[k] = st->map[k];
        file[k] = st->file[k];
    }
    for (int k = 0; k < n_own && ok; k++) {
        char *path = ggl_arena_printf(&st->arena, "%s/%s", name, own->file[k].s);
        map[n + k] = own->map[k];
        file[n + k] = (ggl_str){path, path ? strlen(path) : 0};
        ok = path != NULL;
    }
    for (size_t i = 0; i < own->n_tensor && ok; i++) {
        st_tensor *t = &st->tensor[st->n_tensor + i];
        char *full = ggl_arena_printf(&st->arena, "%s%s", prefix, own->tensor[i].name.s);
        *t = own->tensor[i];
        t->text = ggl_arena_printf(&st->arena, "%s of %s", t->name.s, file[n + t->file].s);
        t->name = (ggl_str){full, full ? strlen(full) : 0};
        t->n_prefix = strlen(prefix);
        t->file += n;
        ok = full && t->text;
    }
    if (!ok)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    st->map = map;
    st->file = file;
    st->n_file += n_own;
    st->n_tensor += own->n_tensor;
    own->n_file = 0; /* the maps are st's now */
    ggl_index_fini(&st->by_name);
    return llm_safetensors_index(st, err);
}

ggl_status llm_safetensors_add(llm_safetensors *st, const char *folder, const char *name,
                               const char *prefix, ggl_error *err) {
    char path[4096];
    llm_safetensors *own;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return ggl_fail(err, GGL_LIMIT, "%s: the path is too long", folder);
    ggl_status s = llm_safetensors_open(&own, path, &st->how, err);
    if (s == GGL_OK)
        s = take(st, own, name, prefix, err);
    llm_safetensors_close(own);
    return s;
}

/* Makes an object with room for one file of that name, and no tensors. */
static ggl_status make_for_one(llm_safetensors **out, const char *name, ggl_error *err) {
    *out = NULL;
    llm_safetensors *st = ggl_calloc(1, sizeof *st);
    ggl_status s = st ? make_room(st, 1, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s != GGL_OK) {
        llm_safetensors_close(st);
        return s;
    }
    st->file[st->n_file++] = (ggl_str){name, strlen(name)};
    *out = st;
    return GGL_OK;
}

ggl_status llm_safetensors_read(llm_safetensors *st, const void *data, size_t size,
                                ggl_error *err) {
    const ggl_status s = read_file(st, data, size, err);
    return s == GGL_OK ? llm_safetensors_index(st, err) : s;
}

ggl_status llm_safetensors_open_memory(llm_safetensors **out, const void *data, size_t size,
                                       const char *name, ggl_error *err) {
    llm_safetensors *st;
    *out = NULL;
    ggl_status s = make_for_one(&st, name, err);
    if (s != GGL_OK)
        return s;
    s = llm_safetensors_read(st, data, size, err);
    s = s == GGL_OK ? s : ggl_within(err, s, "%s", name);
    if (s == GGL_OK)
        *out = st;
    else
        llm_safetensors_close(st);
    return s;
}

ggl_status llm_safetensors_open_other(llm_safetensors **out, llm_json **config, const char *path,
                                      const ggl_file_how *how, const ggl_str *bytes,
                                      st_reader *read, ggl_error *err) {
    llm_safetensors *st;
    *out = NULL;
    *config = NULL;
    ggl_status s = make_for_one(&st, path, err);
    if (s != GGL_OK)
        return s;
    if (!bytes)
        s = ggl_file_map_open_how(&st->map[0], path, how, err);
    if (s == GGL_OK) {
        s = bytes ? read(st, config, bytes->s, bytes->n, err)
                  : read(st, config, st->map[0].data, st->map[0].size, err);
        s = s == GGL_OK ? s : ggl_within(err, s, "%s", path);
    }
    if (s == GGL_OK)
        *out = st;
    else
        llm_safetensors_close(st);
    return s;
}

void llm_safetensors_close(llm_safetensors *st) {
    if (!st)
        return;
    for (int k = 0; k < st->n_file; k++)
        ggl_file_map_close(&st->map[k]);
    ggl_index_fini(&st->by_file);
    ggl_index_fini(&st->by_name);
    ggl_free(st->tensor);
    ggl_arena_fini(&st->arena);
    ggl_free(st);
}
