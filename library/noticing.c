/* What eyes and ears notice, as parts whose rows are kept, and its marks in texts. */
#include "noticing.h"

#include <stdio.h>
#include <string.h>

#include "context.h"
#include "ggl/internal/gguf.h"

/* A mark is these two texts with the 64 hexadecimal digits of a digest between them. */
static const char mark_begin[] = "<__media:", mark_end[] = "__>";
enum {
    MARK_BEGIN = sizeof mark_begin - 1,
    MARK_END = sizeof mark_end - 1,
    DIGITS = SHA256_HEX - 1,
    MARK = MARK_BEGIN + DIGITS + MARK_END
};
_Static_assert(MARK + 1 == LLM_IMAGE_MARK, "the public size");

/* --- texts with marks ------------------------------------------------------------------------- */

static int hex_value(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool llm_eye_digest(const char *hex, uint8_t id[LLM_MEDIA_ID]) {
    for (int i = 0; i < LLM_MEDIA_ID; i++) {
        const int high = hex_value(hex[2 * i]), low = high < 0 ? -1 : hex_value(hex[2 * i + 1]);
        if (low < 0)
            return false;
        id[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* Finds the first mark from *from on; *from becomes its place. */
static bool find_mark(const char *text, size_t n, size_t *from, uint8_t id[LLM_MEDIA_ID]) {
    const char *end = text + n, *at = text + *from;
    while ((size_t)(end - at) >= MARK && (at = memchr(at, '<', (size_t)(end - at) - MARK + 1))) {
        if (memcmp(at, mark_begin, MARK_BEGIN) == 0 &&
            memcmp(at + MARK_BEGIN + DIGITS, mark_end, MARK_END) == 0 &&
            llm_eye_digest(at + MARK_BEGIN, id)) {
            *from = (size_t)(at - text);
            return true;
        }
        at++;
    }
    return false;
}

static bool find_any(void *ctx, const char *text, size_t n, size_t *at, size_t *size) {
    uint8_t id[LLM_MEDIA_ID];
    (void)ctx;
    *size = MARK;
    return find_mark(text, n, at, id);
}

void llm_eye_part_id(const uint8_t id[LLM_MEDIA_ID], int64_t k, uint8_t out[LLM_MEDIA_ID]) {
    char hex[SHA256_HEX];
    sha256 sum;
    memcpy(out, id, LLM_MEDIA_ID);
    if (k == 0)
        return;
    llm_sha256_begin(&sum);
    llm_sha256_add(&sum, id, LLM_MEDIA_ID);
    llm_sha256_add(&sum, &k, sizeof k);
    llm_sha256_end(&sum, hex);
    (void)llm_eye_digest(hex, out);
}

ggl_status llm_eye_append_text(const llm_tokenizer *t, const char *text, int64_t y, int64_t x,
                               int32_t row, llm_tokens *ids, ggl_error *err) {
    char all[8 * LLM_ARCH_TEXT];
    size_t n = 0;
    ggl_status st = GGL_OK;
    for (; *text && st == GGL_OK; text++) {
        const bool is_place = text[0] == '{' && text[1] && text[2] == '}',
                   is_row = row != 0 && llm_arch_row_named(text) >= 0;
        if (is_row) {
            st = llm_tokenize(t, all, n, LLM_TOKENIZE_SPECIAL, ids, err);
            if (st == GGL_OK)
                st = llm_tokens_append(ids, row - llm_arch_row_named(text), err);
            n = 0;
        } else if (is_place && text[1] == 'n')
            all[n++] = '\n';
        else if (is_place && (text[1] == 'y' || text[1] == 'x'))
            n += (size_t)snprintf(all + n, sizeof all - n, "%d", (int)(text[1] == 'y' ? y : x));
        else
            all[n++] = *text;
        text += is_row || (is_place && strchr("nyx", text[1])) ? 2 : 0;
    }
    return st == GGL_OK ? llm_tokenize(t, all, n, LLM_TOKENIZE_SPECIAL, ids, err) : st;
}

ggl_status llm_eye_find_part(const llm_eye *e, const uint8_t id[LLM_MEDIA_ID], int64_t k,
                             int32_t *first, int64_t *n, ggl_error *err) {
    uint8_t own[LLM_MEDIA_ID];
    llm_eye_part_id(id, k, own);
    if (llm_media_find(e->media, own, first, n))
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE, "the text names a %s that is not there any more: show it again",
                    e->kind->what);
}

ggl_status llm_eye_append_part(const llm_eye *e, const uint8_t id[LLM_MEDIA_ID], int64_t k,
                               llm_tokens *ids, ggl_error *err) {
    int32_t first;
    int64_t n;
    ggl_status st = llm_eye_find_part(e, id, k, &first, &n, err);
    if (st != GGL_OK)
        return st;
    for (int64_t i = 0; i < n && st == GGL_OK; i++)
        st = llm_tokens_append(ids, (int32_t)(first - i), err);
    llm_media_release(e->media, first);
    return st;
}

enum {
    SOUND = 0x80
}; /* in the last byte, where a picture's has the higher byte of a number of tiles */

void llm_eye_set_sound(uint8_t id[LLM_MEDIA_ID]) {
    id[LLM_MEDIA_ID - 1] |= SOUND;
}

bool llm_eye_is_sound(const uint8_t id[LLM_MEDIA_ID]) {
    return (id[LLM_MEDIA_ID - 1] & SOUND) != 0;
}

/* The one of an eye and the ear beside it that has made the rows of this id. */
static const llm_eye *maker_of(const llm_eye *e, const uint8_t id[LLM_MEDIA_ID]) {
    return e->other && llm_eye_is_sound(id) ? e->other : e;
}

static ggl_status append_marked(void *ctx, const llm_tokenizer *t, const char *mark,
                                llm_tokens *ids, ggl_error *err) {
    const llm_eye *e = ctx;
    uint8_t id[LLM_MEDIA_ID];
    (void)llm_eye_digest(mark + MARK_BEGIN, id);
    e = maker_of(e, id);
    return e->kind->append(e, t, id, ids, err);
}

ggl_status llm_eye_count_rows(const llm_eye *e, const char *mark, size_t *n, ggl_error *err) {
    uint8_t id[LLM_MEDIA_ID];
    ggl_status st = GGL_OK;
    (void)llm_eye_digest(mark + MARK_BEGIN, id);
    e = maker_of(e, id);
    *n = 0;
    for (int64_t k = 0; k < e->kind->n_parts(id) && st == GGL_OK; k++) {
        int32_t first;
        int64_t of_part;
        st = llm_eye_find_part(e, id, k, &first, &of_part, err);
        if (st != GGL_OK)
            break;
        *n += (size_t)of_part;
        llm_media_release(e->media, first);
    }
    return st;
}

void llm_eye_set_marks(llm_eye *e, int64_t most) {
    e->marks = (llm_marks){.find = find_any,
                           .append = append_marked,
                           .ctx = e,
                           .most = most,
                           .what = e->other ? "picture or sound" : e->kind->what};
}

const llm_marks *llm_eye_marks(const llm_eye *e) {
    return &e->marks;
}

/* --- parts ------------------------------------------------------------------------------------ */

int64_t llm_eye_origin(const llm_eye *e, int64_t i, int64_t n) {
    for (int k = e->n_rows - 1; k != e->input; k = e->rows[k].over)
        i = llm_rows_below(&e->rows[k], i >= 0 && i < e->rows[k].ends ? e->rows[k].ends : i,
                           llm_rows_made(e->rows, e->rows[k].over, n));
    return i;
}

int64_t llm_eye_rows_made(const llm_eye *e, int64_t n) {
    return llm_rows_made(e->rows, e->n_rows - 1, n);
}

bool llm_eye_sees(const llm_eye *e) {
    return e && e->rows[e->input].picture.patch > 0;
}

bool llm_eye_hears(const llm_eye *e) {
    return e && (e->rows[e->input].sound.rate > 0 || llm_eye_hears(e->other));
}

const llm_arch_sound *llm_eye_sound(const llm_eye *e) {
    for (; e; e = e->other)
        if (e->rows[e->input].sound.rate > 0)
            return &e->rows[e->input].sound;
    return NULL;
}

const char *llm_sense_lack(const llm_context *c) {
    return c->eye ? c->eye->why_not.msg : c->why_no_eye.msg;
}

ggl_status llm_eye_need(const llm_context *c, const llm_eye_kind *kind, llm_eye **out,
                        ggl_error *err) {
    const llm_eye_kind *has = c->eye ? c->eye->kind : NULL;
    *out = NULL;
    for (llm_eye *e = c->eye; e && !*out; e = e->other)
        *out = e->kind == kind ? e : NULL;
    if (*out)
        return GGL_OK;
    if (*llm_sense_lack(c))
        return ggl_fail(err, GGL_UNSUPPORTED, "the model %s no %ss: %s", kind->senses, kind->what,
                        llm_sense_lack(c));
    return has ? ggl_fail(err, GGL_UNSUPPORTED,
                          "the model was opened with an %s, which %s %ss and %s no %ss: %s",
                          has->organ, has->senses, has->what, kind->senses, kind->what,
                          ggl_gguf_name(llm_model_file(c->eye->model)))
               : ggl_fail(err, GGL_UNSUPPORTED,
                          "the model was opened without an %s, so it %s no %ss: open it with its "
                          "file mmproj-*.gguf (mmproj, or --mmproj FILE)",
                          kind->organ, kind->senses, kind->what);
}

/* Gives back so many holds of the first n parts. */
static void release(const llm_eye *e, const uint8_t id[LLM_MEDIA_ID], int64_t n, int holds) {
    for (int64_t k = 0; k < n; k++) {
        uint8_t own[LLM_MEDIA_ID];
        int32_t first;
        int64_t rows;
        llm_eye_part_id(id, k, own);
        if (!llm_media_find(e->media, own, &first, &rows))
            continue;
        for (int h = 0; h <= holds; h++) /* one is that of llm_media_find */
            llm_media_release(e->media, first);
    }
}

ggl_status llm_eye_keep(llm_eye *e, const uint8_t id[LLM_MEDIA_ID], llm_eye_make *make, void *ctx,
                        char mark[LLM_IMAGE_MARK], ggl_error *err) {
    const int64_t n = e->kind->n_parts(id);
    ggl_status st = GGL_OK;
    int64_t k = 0;
    for (; k < n && st == GGL_OK; k++) {
        uint8_t own[LLM_MEDIA_ID];
        int32_t first;
        int64_t n_rows;
        llm_eye_part_id(id, k, own);
        if (!llm_media_find(e->media, own, &first, &n_rows))
            st = make(e, ctx, k, own, err);
    }
    if (st != GGL_OK) {
        release(e, id, k - 1, 1);
        return st;
    }
    llm_eye_mark(id, mark);
    return GGL_OK;
}

void llm_eye_mark(const uint8_t id[LLM_MEDIA_ID], char mark[LLM_IMAGE_MARK]) {
    char hex[SHA256_HEX];
    for (int i = 0; i < LLM_MEDIA_ID; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    snprintf(mark, LLM_IMAGE_MARK, "%s%s%s", mark_begin, hex, mark_end);
}

void llm_unsee(llm_context *c, const char *mark) {
    uint8_t id[LLM_MEDIA_ID];
    size_t from = 0;
    if (c->eye && find_mark(mark, strlen(mark), &from, id))
        release(c->eye, id, maker_of(c->eye, id)->kind->n_parts(id), 1);
}
