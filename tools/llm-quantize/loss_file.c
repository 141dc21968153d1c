#include "loss_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/json_text.h"
#include "ggl/internal/file.h"
#include "ggl/internal/show.h"

enum { VERSION = 1, MOST = 64 << 20 }; /* bytes of a file */

void loss_list_fini(loss_list *l) {
    ggl_free(l->record);
    ggl_index_fini(&l->by_name);
    *l = (loss_list){0};
}

loss_record *loss_list_get(loss_list *l, const char *name, size_t *index) {
    loss_record new = {0};
    const size_t n = strlen(name);
    if (n >= sizeof new.name)
        return NULL;
    memcpy(new.name, name, n);
    *index = ggl_index_find(&l->by_name, l->record, (ggl_str){new.name, sizeof new.name});
    if (*index != SIZE_MAX)
        return &l->record[*index];
    const bool room =
        l->by_name.slots
            ? ggl_index_reserve(&l->by_name, l->record, l->n + 1, NULL) == GGL_OK
            : ggl_index_init(&l->by_name, 64, sizeof new, sizeof new.name, NULL) == GGL_OK;
    if (!room || !ggl_grow(&l->record, &l->cap, l->n + 1, sizeof *l->record))
        return NULL;
    *index = l->n++;
    l->record[*index] = new;
    ggl_index_put(&l->by_name, l->record, *index);
    return &l->record[*index];
}

const double *loss_record_error(const loss_record *r, const ggl_type_info *t) {
    for (int k = 0; k < r->n; k++)
        if (r->of[k].type == t)
            return &r->of[k].error;
    return NULL;
}

void loss_record_add(loss_record *r, const ggl_type_info *t, double error) {
    if (loss_record_error(r, t) || r->n == LOSS_MAX_TYPES)
        return;
    r->of[r->n].type = t;
    r->of[r->n++].error = error;
}

/* --- reading ---------------------------------------------------------------------------------- */

static ggl_status wrong(ggl_error *err, const char *where, const char *what) {
    char shown[200];
    ggl_show(shown, sizeof shown, where, strlen(where));
    return ggl_fail(err, GGL_FORMAT,
                    "'%s' is %s; the file is damaged or not one of llm-quantize --loss", shown,
                    what);
}

/* Copies a digest: size - 1 hexadecimal digits, or nothing. */
static ggl_status read_digest(const json_value *root, const char *name, char *out, size_t size,
                              ggl_error *err) {
    const json_value *v = llm_json_get_kind(root, name, JSON_STRING);
    bool good = v && (v->n == 0 || v->n == size - 1);
    for (size_t i = 0; good && i < v->n; i++)
        good = (v->s[i] >= '0' && v->s[i] <= '9') || (v->s[i] >= 'a' && v->s[i] <= 'f');
    if (!good)
        return wrong(err, name, "missing, or not a digest");
    memcpy(out, v->s, v->n);
    out[v->n] = '\0';
    return GGL_OK;
}

static ggl_status read_count(const json_value *root, const char *name, int64_t most, int64_t *out,
                             ggl_error *err) {
    const json_value *v = llm_json_get_kind(root, name, JSON_NUMBER);
    if (!v || !v->whole || v->number < 0 || v->number > (double)most)
        return wrong(err, name, "missing, or not such a number");
    *out = (int64_t)v->number;
    return GGL_OK;
}

static bool is_loss(const json_value *v) {
    return v->kind == JSON_NUMBER && isfinite(v->number) && v->number >= 0;
}

/* Types that this build does not know are left out; their errors are found again if they are needed. */
static const ggl_type_info *type_of(ggl_str name) {
    char text[32];
    if (name.n >= sizeof text)
        return NULL;
    memcpy(text, name.s, name.n);
    text[name.n] = '\0';
    return ggl_type_find(text);
}

static ggl_status read_record(loss_list *l, ggl_str name, const json_value *v, ggl_error *err) {
    char text[sizeof l->record->name];
    size_t index;
    if (name.n >= sizeof text || memchr(name.s, 0, name.n))
        return wrong(err, "tensors", "with a name that is too long");
    memcpy(text, name.s, name.n);
    text[name.n] = '\0';
    const json_value *errors = llm_json_get_kind(v, "errors", JSON_OBJECT);
    if (!errors)
        return wrong(err, text, "without errors");
    loss_record *r =
        loss_list_get(l, text, &index); /* the parser refuses a name that is there twice */
    if (!r)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t i = 0; i < errors->n; i++) {
        const ggl_type_info *t = type_of(json_name(errors, i));
        if (!is_loss(&errors->item[i]))
            return wrong(err, text, "with an error that is no number");
        if (t)
            loss_record_add(r, t, errors->item[i].number);
    }
    const json_value *kl = llm_json_get(v, "kl");
    const json_value *probe = llm_json_get_kind(v, "probe", JSON_STRING);
    if (!kl && !probe)
        return GGL_OK;
    if (!kl || !probe || !is_loss(kl))
        return wrong(err, text, "with a divergence that is no number, or without its type");
    r->probe = type_of(json_str(probe));
    r->kl = kl->number;
    return r->probe && loss_record_error(r, r->probe)
               ? GGL_OK
               : wrong(err, text, "measured in a type without an error");
}

static ggl_status read_all(loss_list *l, const json_value *root, ggl_error *err) {
    loss_head *h = &l->head;
    int64_t version = 0;
    ggl_status st = read_count(root, "version", 1 << 20, &version, err);
    if (st == GGL_OK && version != VERSION)
        return ggl_fail(err, GGL_UNSUPPORTED, "has version %" PRId64 ", %d is expected", version,
                        VERSION);
    if (st == GGL_OK)
        st = read_digest(root, "model", h->model, sizeof h->model, err);
    if (st == GGL_OK)
        st = read_digest(root, "imatrix", h->imatrix, sizeof h->imatrix, err);
    if (st == GGL_OK)
        st = read_digest(root, "text", h->text, sizeof h->text, err);
    if (st == GGL_OK)
        st = read_count(root, "n_ctx", INT32_MAX, &h->n_ctx, err);
    if (st == GGL_OK)
        st = read_count(root, "n_chunk", INT32_MAX, &h->n_chunk, err);
    const json_value *t = llm_json_get_kind(root, "tensors", JSON_OBJECT);
    if (st == GGL_OK && !t)
        return wrong(err, "tensors", "missing");
    if (st == GGL_OK && t->n > LOSS_MAX_TENSORS)
        return ggl_fail(err, GGL_LIMIT,
                        "has %" PRIu32
                        " tensors, at most %d are supported; the file is damaged or not one of "
                        "llm-quantize --loss",
                        t->n, LOSS_MAX_TENSORS);
    for (size_t i = 0; st == GGL_OK && i < t->n; i++)
        st = read_record(l, json_name(t, i), &t->item[i], err);
    return st;
}

ggl_status loss_file_read(loss_list *l, const char *path, ggl_error *err) {
    llm_json *doc;
    *l = (loss_list){0};
    ggl_status st = llm_json_read(&doc, path, MOST, err);
    if (st != GGL_OK)
        return st;
    st = read_all(l, &doc->root, err);
    llm_json_free(doc);
    if (st == GGL_OK)
        return st;
    loss_list_fini(l);
    return ggl_within(err, st, "%s", path);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_record(FILE *out, const loss_record *r, bool first) {
    fputs(first ? "\n    " : ",\n    ", out);
    json_put_string(out, r->name, strlen(r->name));
    fputs(": {\"errors\": {", out);
    bool comma = false;
    for (int k = 0; k < r->n; k++) {
        if (!isfinite(r->of[k].error)) /* cannot be encoded; found again quickly */
            continue;
        fprintf(out, "%s\"%s\": %.17g", comma ? ", " : "", r->of[k].type->name, r->of[k].error);
        comma = true;
    }
    fputc('}', out);
    if (r->probe)
        fprintf(out, ", \"probe\": \"%s\", \"kl\": %.17g", r->probe->name, r->kl);
    fputc('}', out);
}

ggl_status loss_file_write(const loss_list *l, const char *path, ggl_error *err) {
    ggl_new_file *f;
    const loss_head *h = &l->head;
    ggl_status st = ggl_new_file_open(&f, path, err);
    if (st != GGL_OK)
        return st;
    FILE *out = ggl_new_file_stream(f);
    fprintf(out,
            "{\"version\": %d, \"model\": \"%s\", \"imatrix\": \"%s\", \"text\": \"%s\",\n"
            " \"n_ctx\": %" PRId64 ", \"n_chunk\": %" PRId64 ",\n \"tensors\": {",
            VERSION, h->model, h->imatrix, h->text, h->n_ctx, h->n_chunk);
    for (size_t i = 0; i < l->n; i++)
        put_record(out, &l->record[i], i == 0);
    fputs("}}\n", out);
    ggl_new_file_note(f);
    return ggl_new_file_commit(f, err);
}
