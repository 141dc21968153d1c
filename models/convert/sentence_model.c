/* Reads SentencePiece's tokenizer.model: see sentence_pieces.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/little_endian.h"
#include "common/text_file.h"
#include "sentence_pieces.h"
#include "text/charsmap.h"

/* --- Protocol Buffers ------------------------------------------------------------------------- */

typedef enum wire_form { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 } wire_form;

/* A message that is read field by field. */
typedef struct message {
    const unsigned char *data;
    size_t at, end; /* bytes from the file's beginning */
} message;

typedef struct field {
    uint64_t number;
    wire_form form;
    uint64_t value; /* VARINT, FIXED32, FIXED64 */
    message inner;  /* BYTES */
    size_t at;      /* where it begins */
} field;

static ggl_status read_varint(message *m, uint64_t *out, ggl_error *err) {
    *out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (m->at == m->end)
            return ggl_fail(err, GGL_FORMAT, "a number is cut off at byte %zu", m->at);
        const uint64_t byte = m->data[m->at++];
        *out |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return GGL_OK;
    }
    return ggl_fail(err, GGL_FORMAT, "a number before byte %zu has more than 64 bits", m->at);
}

static ggl_status read_fixed(message *m, size_t n, uint64_t *out, ggl_error *err) {
    *out = 0;
    if (m->end - m->at < n)
        return ggl_fail(err, GGL_FORMAT, "a number is cut off at byte %zu", m->end);
    *out = llm_little_endian(m->data + m->at, n);
    m->at += n;
    return GGL_OK;
}

static ggl_status read_bytes(message *m, message *out, ggl_error *err) {
    uint64_t n;
    ggl_status s = read_varint(m, &n, err);
    if (s == GGL_OK && n > m->end - m->at)
        s = ggl_fail(err, GGL_FORMAT,
                     "a field at byte %zu has %" PRIu64 " bytes, but %zu are left; the file may be "
                     "truncated",
                     m->at, n, m->end - m->at);
    if (s != GGL_OK)
        return s;
    *out = (message){m->data, m->at, m->at + (size_t)n};
    m->at += (size_t)n;
    return GGL_OK;
}

static ggl_status next_field(message *m, field *f, ggl_error *err) {
    uint64_t key;
    *f = (field){.at = m->at};
    ggl_status s = read_varint(m, &key, err);
    if (s != GGL_OK)
        return s;
    f->number = key >> 3;
    f->form = (wire_form)(key & 7);
    if (f->form == VARINT)
        return read_varint(m, &f->value, err);
    if (f->form == BYTES)
        return read_bytes(m, &f->inner, err);
    if (f->form == FIXED32 || f->form == FIXED64)
        return read_fixed(m, f->form == FIXED32 ? 4 : 8, &f->value, err);
    return ggl_fail(err, GGL_FORMAT, "the field at byte %zu has the unknown form %d", f->at,
                    (int)(key & 7));
}

static ggl_str text_of(const message *m) {
    return (ggl_str){(const char *)m->data + m->at, m->end - m->at};
}

/* --- the model -------------------------------------------------------------------------------- */

enum { PIECES = 1, TRAINER = 2, NORMALIZER = 3 }; /* fields of the model */
enum { UNIGRAM = 1, BPE = 2 };                    /* model_type */

/* Fields of a part that are numbers or texts: where they go, and in which form. */
typedef struct part_field {
    uint64_t number;
    wire_form form;
    int64_t *value; /* of VARINT */
    ggl_str *text;  /* of BYTES */
} part_field;

static ggl_status read_part(message m, const part_field *known, size_t n, ggl_error *err) {
    ggl_status s = GGL_OK;
    field f;
    while (s == GGL_OK && m.at < m.end) {
        s = next_field(&m, &f, err);
        for (size_t k = 0; s == GGL_OK && k < n; k++) {
            if (known[k].number != f.number)
                continue;
            if (known[k].form != f.form)
                s = ggl_fail(err, GGL_FORMAT, "field %" PRIu64 " at byte %zu has a wrong form",
                             f.number, f.at);
            else if (f.form == BYTES)
                *known[k].text = text_of(&f.inner);
            else
                *known[k].value = (int64_t)f.value;
        }
    }
    return s;
}

/* Reads piece `id` at byte `at` into the tables. */
static ggl_status read_piece(sentence_pieces *p, int64_t id, message m, ggl_error *err) {
    const size_t at = m.at;
    ggl_str text = {NULL, 0};
    int64_t bits = 0, type = LLM_TOKEN_NORMAL;
    const part_field fields[] = {
        {1, BYTES, NULL, &text}, {2, FIXED32, &bits, NULL}, {3, VARINT, &type, NULL}};
    ggl_status s = read_part(m, fields, 3, err);
    const uint32_t low = (uint32_t)bits;
    float score;
    memcpy(&score, &low, sizeof score);
    if (s == GGL_OK && (!text.s || text.n == 0))
        s = ggl_fail(err, GGL_FORMAT, "it has no text");
    else if (s == GGL_OK && (type < LLM_TOKEN_NORMAL || type > LLM_TOKEN_BYTE))
        s = ggl_fail(err, GGL_FORMAT, "it has the unknown type %" PRId64, type);
    else if (s == GGL_OK && !isfinite(score))
        s = ggl_fail(err, GGL_FORMAT, "its score is no number");
    else if (s == GGL_OK && type == LLM_TOKEN_BYTE && !llm_is_byte_piece(text))
        s = ggl_fail(err, GGL_FORMAT, "it is a byte, but is not called <0xNN>");
    if (s != GGL_OK)
        return ggl_within(err, s, "piece %" PRId64 ", at byte %zu", id, at);
    p->piece[id] = text;
    p->score[id] = score;
    p->type[id] = (int32_t)type;
    return GGL_OK;
}

/* Numbers of the parts that describe the tokenizer. */
typedef struct traits {
    int64_t kind, suffix, add_space, remove_spaces, escape;
} traits;

/* Counts the pieces, or, with room for them, reads them, and reads the other parts. */
static ggl_status read_parts(sentence_pieces *p, message m, bool has_room, traits *t,
                             ggl_error *err) {
    const part_field trainer[] = {{3, VARINT, &t->kind, NULL},     {24, VARINT, &t->suffix, NULL},
                                  {40, VARINT, &p->unknown, NULL}, {41, VARINT, &p->bos, NULL},
                                  {42, VARINT, &p->eos, NULL},     {43, VARINT, &p->pad, NULL}};
    const part_field normalizer[] = {{1, BYTES, NULL, &p->normalizer},
                                     {2, BYTES, NULL, &p->charsmap},
                                     {3, VARINT, &t->add_space, NULL},
                                     {4, VARINT, &t->remove_spaces, NULL},
                                     {5, VARINT, &t->escape, NULL}};
    ggl_status s = GGL_OK;
    field f;
    for (p->n = 0; s == GGL_OK && m.at < m.end;) {
        s = next_field(&m, &f, err);
        if (s != GGL_OK || f.number < PIECES || f.number > NORMALIZER)
            continue;
        if (f.form != BYTES)
            s = ggl_fail(err, GGL_FORMAT, "field %" PRIu64 " at byte %zu is not a message",
                         f.number, f.at);
        else if (f.number == TRAINER)
            s = read_part(f.inner, trainer, 6, err);
        else if (f.number == NORMALIZER)
            s = read_part(f.inner, normalizer, 5, err);
        else if (has_room)
            s = read_piece(p, p->n, f.inner, err);
        p->n += f.number == PIECES;
    }
    return s;
}

/* Ids beyond the pieces are none, as SentencePiece writes -1 for an absent one. */
static void limit_id(const sentence_pieces *p, int64_t *id) {
    *id = *id >= 0 && *id < p->n ? *id : -1;
}

static ggl_status check_traits(const traits *t, ggl_error *err) {
    if (t->kind != UNIGRAM && t->kind != BPE)
        return ggl_fail(err, GGL_UNSUPPORTED, "its model_type is %s; Unigram and BPE are supported",
                        t->kind == 3   ? "WORD"
                        : t->kind == 4 ? "CHAR"
                                       : "unknown");
    if (t->suffix || !t->escape)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s, which files cannot say",
                        t->suffix ? "its spaces are at the end of words"
                                  : "its spaces stay spaces");
    return GGL_OK;
}

ggl_status llm_sentence_pieces_check_charsmap(sentence_pieces *p, ggl_error *err) {
    charsmap m;
    if (p->charsmap.n == 0)
        return GGL_OK;
    const ggl_status s = llm_charsmap_parse(&m, &p->arena, "its precompiled_charsmap",
                                            p->charsmap.s, p->charsmap.n, err);
    return s == GGL_OK ? llm_charsmap_check(&m, NULL, err) : s;
}

ggl_status llm_sentence_pieces_read_model(sentence_pieces *p, const void *data, size_t size,
                                          ggl_error *err) {
    const message m = {data, 0, size};
    traits t = {.kind = UNIGRAM, .add_space = 1, .remove_spaces = 1, .escape = 1};
    *p = (sentence_pieces){.bos = 1, .eos = 2, .unknown = 0, .pad = -1};
    if (llm_is_lfs_pointer(data, size))
        return ggl_fail(err, GGL_FORMAT, "%s", LLM_LFS_ADVICE);
    if (size == 0 || m.data[0] != (PIECES << 3 | BYTES))
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "it is not SentencePiece's; a tokenizer.json with BPE can be read (save_pretrained of "
            "transformers' fast tokenizers writes one)");
    ggl_status s = read_parts(p, m, false, &t, err);
    if (s == GGL_OK)
        s = check_traits(&t, err);
    if (s == GGL_OK)
        s = llm_sentence_pieces_make_room(p, p->n, err);
    if (s == GGL_OK)
        s = read_parts(p, m, true, &t, err);
    if (s == GGL_OK && t.kind == UNIGRAM)
        s = llm_sentence_pieces_check_charsmap(p, err);
    int64_t *const ids[] = {&p->bos, &p->eos, &p->unknown, &p->pad};
    for (int k = 0; k < 4; k++)
        limit_id(p, ids[k]);
    p->unigram = t.kind == UNIGRAM;
    p->add_space = t.add_space != 0;
    p->remove_spaces = t.remove_spaces != 0;
    return s;
}
