#include "data_reads.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "template/parts.h"

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for what a model reads");
}

static void free_file(train_file *f) {
    ggl_free(f->path);
    ggl_free(f->data);
    *f = (train_file){.path = NULL};
}

void llm_train_reads_fini(train_data *d) {
    train_read_table *r = &d->reads;
    llm_train_reads_let_go(d);
    for (size_t i = 0; i < r->n_files; i++)
        free_file(&r->file[i]);
    ggl_free(r->file);
    ggl_free(r->place);
    ggl_free(r->reading);
    ggl_free(r->shown);
    ggl_free(r->shown_file);
    ggl_free(d->folder);
    d->folder = NULL;
    *r = (train_read_table){.file = NULL};
}

/* --- where a file is -------------------------------------------------------------------------- */

static int hex_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Resolves the escapes of an address. */
static void unescape(char *s) {
    char *to = s;
    for (; *s; s++) {
        const int high = *s == '%' ? hex_of(s[1]) : -1, low = high < 0 ? -1 : hex_of(s[2]);
        *to++ = low < 0 ? *s : (char)(high * 16 + low);
        s += low < 0 ? 0 : 2;
    }
    *to = '\0';
}

/* Makes the path of an address: one that is relative begins in the folder of the data. */
static ggl_status path_of(const train_data *d, ggl_str address, char **out, ggl_error *err) {
    const bool is_url = ggl_case_str_begins_with(address, "file://");
    const ggl_str rest = is_url ? (ggl_str){address.s + 7, address.n - 7}
                                : address; /* file:///path has no host, as file://localhost/path */
    const char *folder = d->folder ? d->folder : "./";
    const size_t n = strlen(folder);
    *out = NULL;
    if (rest.n == 0 || memchr(rest.s, 0, rest.n))
        return ggl_fail(err, GGL_FORMAT, "the path of a file is empty, or has a NUL");
    char *path = *out = ggl_calloc(n + rest.n + 1, 1);
    if (!path)
        return no_memory(err);
    memcpy(path, folder, n);
    memcpy(path + n, rest.s, rest.n);
    if (is_url)
        unescape(path + n);
    const char *own = path + n;
    if (own[0] == '/' && ggl_os_is_absolute(own + 1)) /* file:///C:/path */
        own++;
    if (ggl_os_is_absolute(own))
        memmove(path, own, strlen(own) + 1);
    return GGL_OK;
}

/* A folder, a device or a pipe is no file that can be read again. */
static ggl_status check_path(const char *path, ggl_error *err) {
    os_stat s;
    if (!ggl_os_stat(path, &s))
        return ggl_fail(err, GGL_IO, "%s: %s", path, strerror(errno));
    return s.kind == OS_FILE ? GGL_OK
                             : ggl_fail(err, GGL_FORMAT, "%s: this is %s, and no file", path,
                                        s.kind == OS_FOLDER ? "a folder" : "a device or a pipe");
}

/* The base64 of data:TYPE;base64,DIGITS. */
static bool digits_of(ggl_str address, ggl_str *digits) {
    enum { MOST_HEAD = 200 };
    static const char coding[] = ";base64";
    const size_t n_head = address.n < MOST_HEAD ? address.n : MOST_HEAD, n = sizeof coding - 1;
    const char *comma =
        ggl_case_str_begins_with(address, "data:") ? memchr(address.s, ',', n_head) : NULL;
    if (!comma || (size_t)(comma - address.s) < 5 + n ||
        ggl_case_compare_n(comma - n, coding, n) != 0)
        return false;
    *digits = (ggl_str){comma + 1, address.n - (size_t)(comma + 1 - address.s)};
    return true;
}

static ggl_status find_file(const train_data *d, train_file_kind kind, const json_value *v,
                            train_file *out, ggl_error *err) {
    static const char *const name[] = {"path", "url"};
    const char *what = kind == TRAIN_SOUND ? "sound" : "picture";
    ggl_str digits;
    *out = (train_file){.is_sound = kind == TRAIN_SOUND};
    for (size_t i = 0; v && v->kind == JSON_OBJECT && i < sizeof name / sizeof *name; i++)
        if (llm_json_get_kind(v, name[i], JSON_STRING))
            v = llm_json_get(v, name[i]);
    if (!v || v->kind != JSON_STRING)
        return ggl_fail(err, GGL_FORMAT,
                        "a %s must be a path, or an object with a \"path\" or a \"url\", not %s",
                        what, v ? llm_json_kind_text((json_kind)v->kind) : "missing");
    if (ggl_case_str_begins_with(json_str(v), "data:"))
        return digits_of(json_str(v), &digits)
                   ? llm_part_bytes(&out->data, &out->n_data, digits, kind == TRAIN_SOUND, err)
                   : ggl_fail(err, GGL_FORMAT, "a %s as data: must be data:TYPE;base64,DIGITS",
                              what);
    if (ggl_case_str_begins_with(json_str(v), "http://") ||
        ggl_case_str_begins_with(json_str(v), "https://"))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "nothing is downloaded, but a %s is '%.*s': give the path of a file", what,
                        (int)ggl_utf8_cut(v->s, v->n, 80), v->s);
    const ggl_status st = path_of(d, json_str(v), &out->path, err);
    return st == GGL_OK ? check_path(out->path, err) : st;
}

/* --- files ------------------------------------------------------------------------------------ */

static llm_noticed_file noticed_of(const train_file *f) {
    return (llm_noticed_file){.path = f->path,
                              .data = f->data,
                              .n = f->n_data,
                              .offset = f->offset,
                              .duration = f->duration};
}

/* The place of a file in the table of ids: one that is free, or has it. */
static uint32_t *place_in(const train_read_table *r, const uint8_t id[LLM_MEDIA_ID]) {
    uint64_t word;
    memcpy(&word, id, sizeof word);
    size_t k = (size_t)(word % r->n_places);
    while (r->place[k] && memcmp(r->file[r->place[k] - 1].id, id, LLM_MEDIA_ID) != 0)
        k = (k + 1) % r->n_places;
    return &r->place[k];
}

/* Makes room in the table of ids for one more. */
static bool widen(train_read_table *r) {
    if (2 * (r->n_files + 1) < r->n_places)
        return true;
    const size_t n = r->n_places ? 2 * r->n_places : 64;
    uint32_t *place = ggl_calloc(n, sizeof *place);
    if (!place)
        return false;
    ggl_free(r->place);
    r->place = place;
    r->n_places = n;
    for (size_t i = 0; i < r->n_files; i++)
        *place_in(r, r->file[i].id) = (uint32_t)i + 1;
    return true;
}

/* Adds the file, whose memory it takes, with its parts, or finds one of the same contents. *number: which it is. */
static ggl_status keep(train_data *d, train_file *f, const llm_shown_file *shown, uint32_t *number,
                       ggl_error *err) {
    train_read_table *r = &d->reads;
    memcpy(f->id, shown->id, sizeof f->id);
    if (!widen(r) || !ggl_grow(&r->file, &r->cap_files, r->n_files + 1, sizeof *r->file) ||
        !ggl_grow(&r->reading, &r->cap, r->n + (size_t)shown->n_parts, sizeof *r->reading))
        return no_memory(err);
    uint32_t *place = place_in(r, f->id);
    *number = *place - 1;
    if (*place)
        return GGL_OK;
    f->first = (uint32_t)r->n;
    f->n_parts = (uint32_t)shown->n_parts;
    for (int64_t k = 0; k < shown->n_parts; k++) {
        const llm_shown_part *p = &shown->part[k];
        if (r->n_rows + (uint64_t)p->n_made > INT32_MAX || r->n >= INT32_MAX)
            return ggl_fail(err, GGL_LIMIT,
                            "pictures and sounds have more than %d rows together: train on less "
                            "of them at a time",
                            INT32_MAX);
        r->reading[r->n++] =
            (train_reading){.at = r->n_rows, .n = p->n, .file = (uint32_t)r->n_files};
        r->n_rows += (uint64_t)p->n_made;
    }
    for (int i = 0; i < LLM_MEDIA_ID; i += 8) {
        uint64_t word = 0;
        for (int k = 0; k < 8; k++)
            word |= (uint64_t)f->id[i + k] << 8 * k;
        train_digest_number(d, word);
    }
    *number = (uint32_t)r->n_files;
    r->file[r->n_files++] = *f;
    *place = (uint32_t)r->n_files;
    f->path = NULL;
    f->data = NULL;
    return GGL_OK;
}

/* Shows the file, and frees it. *number: which it is; *mark may be NULL. */
static ggl_status show(train_data *d, train_file *f, ggl_status st, uint32_t *number, ggl_str *mark,
                       ggl_error *err) {
    const llm_file_senses *s = d->p.senses;
    train_read_table *r = &d->reads;
    if (st == GGL_OK &&
        (!ggl_grow(&r->shown, &r->cap_shown, r->n_shown + 1, sizeof *r->shown) ||
         !ggl_grow(&r->shown_file, &r->cap_shown_file, r->n_shown + 1, sizeof *r->shown_file)))
        st = no_memory(err);
    if (st == GGL_OK) {
        const llm_noticed_file of = noticed_of(f);
        llm_shown_file *shown = &r->shown[r->n_shown];
        *shown = (llm_shown_file){.n_parts = 0};
        st = s->show(s->ctx, &of, shown, err);
        if (st == GGL_OK) {
            r->n_shown++;
            st = keep(d, f, shown, number, err);
            r->shown_file[r->n_shown - 1] = st == GGL_OK ? *number : 0;
        } else {
            ggl_free(shown->part);
        }
        if (st == GGL_OK && mark)
            *mark = (ggl_str){shown->mark, strlen(shown->mark)};
    }
    free_file(f);
    return st;
}

/* Says how files of this kind can be read, if they cannot. */
static ggl_status check_kind(const train_data *d, train_file_kind kind, ggl_error *err) {
    const llm_file_senses *s = d->p.senses;
    const bool sees = s && s->pictures, hears = s && s->sounds;
    if (kind == TRAIN_SOUND ? hears : sees)
        return GGL_OK;
    if (sees || hears)
        return ggl_fail(err, GGL_UNSUPPORTED, "the model %s, and %s no %s: leave them out",
                        sees ? "sees pictures" : "hears sounds", sees ? "hears" : "sees",
                        sees ? "sounds" : "pictures");
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "the model was opened without an %s, so it %s: give its file mmproj-*.gguf "
                    "(mmproj, or --mmproj FILE)",
                    kind == TRAIN_SOUND ? "ear" : "eye",
                    kind == TRAIN_SOUND ? "hears no sounds" : "sees no pictures");
}

ggl_status llm_train_show(train_data *d, train_file_kind kind, const json_value *v, ggl_str *mark,
                          ggl_error *err) {
    train_file f = {.path = NULL};
    uint32_t number;
    ggl_status st = check_kind(d, kind, err);
    if (st == GGL_OK)
        st = find_file(d, kind, v, &f, err);
    return show(d, &f, st, &number, mark, err);
}

ggl_status llm_train_show_digits(train_data *d, train_file_kind kind, ggl_str digits, ggl_str *mark,
                                 ggl_error *err) {
    train_file f = {.is_sound = kind == TRAIN_SOUND};
    uint32_t number;
    ggl_status st = check_kind(d, kind, err);
    if (st == GGL_OK)
        st = llm_part_bytes(&f.data, &f.n_data, digits, kind == TRAIN_SOUND, err);
    return show(d, &f, st, &number, mark, err);
}

ggl_status llm_train_hear(train_data *d, const json_value *v, double offset, double seconds,
                          uint32_t *reading, ggl_error *err) {
    train_file f = {.path = NULL};
    uint32_t number = 0;
    ggl_status st = find_file(d, TRAIN_SOUND, v, &f, err);
    f.offset = offset;
    f.duration = seconds;
    st = show(d, &f, st, &number, NULL, err);
    if (st == GGL_OK)
        *reading = d->reads.file[number].first;
    return st;
}

void llm_train_reads_let_go(train_data *d) {
    train_read_table *r = &d->reads;
    const llm_file_senses *s = d->p.senses;
    while (r->n_shown > 0) {
        llm_shown_file *shown = &r->shown[--r->n_shown];
        s->let_go(s->ctx, shown);
        ggl_free(shown->part);
    }
}

int32_t llm_train_row_in_pool(const train_data *d, int32_t id) {
    const train_read_table *r = &d->reads;
    for (size_t i = 0; i < r->n_shown; i++)
        for (int64_t k = 0; k < r->shown[i].n_parts; k++) {
            const llm_shown_part *p = &r->shown[i].part[k];
            const int64_t row = (int64_t)p->first - id;
            if (row >= 0 && row < p->n_made) {
                const uint32_t first = r->file[r->shown_file[i]].first;
                return (int32_t)(-1 - (int64_t)r->reading[first + (size_t)k].at - row);
            }
        }
    return 0;
}

ggl_status llm_train_data_read_part(const train_data *d, int64_t r, llm_noticed *x, int64_t *file,
                                    llm_noticed_part *out, ggl_error *err) {
    const llm_file_senses *s = d->p.senses;
    const train_reading *of = &d->reads.reading[r];
    const train_file *f = &d->reads.file[of->file];
    ggl_status st = GGL_OK;
    *out = (llm_noticed_part){.row = NULL};
    if (*file != (int64_t)of->file) {
        const llm_noticed_file again = noticed_of(f);
        s->forget(s->ctx, x);
        *file = -1;
        st = s->read(s->ctx, &again, x, err);
        if (st == GGL_OK && memcmp(x->id, f->id, LLM_MEDIA_ID) != 0)
            st = ggl_fail(err, GGL_FORMAT,
                          "%s has changed since the data were read: a training needs its files "
                          "as they were",
                          f->path ? f->path : "a file");
        if (st == GGL_OK)
            *file = (int64_t)of->file;
    }
    return st == GGL_OK ? s->part(s->ctx, x, r - f->first, out, err) : st;
}
