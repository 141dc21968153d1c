/* Tokenizers of the kind Unigram in tokenizer.json: an exported model of SentencePiece. Its pieces and scores are in
 * "model", in the order of ids; what SentencePiece does to a text first is written as steps:
 *
 *     normalizer      Precompiled                  the charsmap, in base64
 *                     Replace " {2,}" by " "       of several spaces one remains (remove_extra_whitespaces)
 *                     Strip                        spaces at the ends are removed, which that flag does, too
 *                     Lowercase, NFD StripAccents  before the charsmap (hf_tokenizer_keys.c sets these flags)
 *                     Prepend, Replace " "         spaces become U+2581, as Metaspace does
 *     pre_tokenizer   WhitespaceSplit              as Replace " {2,}" with Strip
 *                     Metaspace                    spaces become U+2581, and one is added in front
 *
 * A step that is not listed, or one in another order, is refused: texts would silently get other tokens. */
#include <math.h>
#include <string.h>

#include "common/base64.h"
#include "hf_tokenizer_impl.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"

#define LEAVE_OUT "--no-tokenizer leaves the tokenizer out"

/* What the steps so far do. */
typedef struct steps {
    llm_hf_tokenizer *t;
    bool mapped;          /* by a charsmap */
    bool decomposed;      /* canonically, for StripAccents */
    bool stripped;        /* accents are gone */
    bool merges, trims;   /* several spaces become one; those at the end are removed */
    bool splits, escapes; /* WhitespaceSplit; spaces become U+2581 */
    bool within_words;    /* no piece goes beyond a space */
} steps;

typedef ggl_status step_fn(steps *x, const json_value *v, ggl_error *err);

static ggl_status refuse(const char *why, ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED, "%s, which is not supported; " LEAVE_OUT, why);
}

/* --- steps of the normalizer ------------------------------------------------------------------ */

static ggl_status decode_base64(ggl_arena *arena, ggl_str text, ggl_str *out, ggl_error *err) {
    unsigned char *to = ggl_arena_alloc(arena, llm_base64_room(text.n) + 1, 1);
    size_t n = 0, wrong;
    if (!to)
        return llm_hf_no_memory(err);
    if (!llm_base64_decode(to, &n, text, &wrong))
        return ggl_fail(err, GGL_FORMAT, "precompiled_charsmap is not base64: %s %zu",
                        wrong < text.n ? "no digit at" : "its length is", wrong);
    *out = (ggl_str){(const char *)to, n};
    return GGL_OK;
}

static ggl_status do_precompiled(steps *x, const json_value *v, ggl_error *err) {
    sentence_pieces *p = &x->t->pieces;
    const json_value *map = llm_json_get(v, "precompiled_charsmap");
    if (!map || map->kind == JSON_NULL || (map->kind == JSON_STRING && map->n == 0))
        return GGL_OK;
    if (map->kind != JSON_STRING)
        return ggl_fail(err, GGL_FORMAT, "precompiled_charsmap is %s, not a string",
                        llm_json_kind_text(map->kind));
    if (x->mapped)
        return refuse("a second step 'Precompiled'", err);
    x->mapped = true;
    const ggl_status s = decode_base64(&p->arena, json_str(map), &p->charsmap, err);
    return s == GGL_OK ? llm_sentence_pieces_check_charsmap(p, err) : s;
}

static ggl_status do_lowercase(steps *x, const json_value *v, ggl_error *err) {
    (void)v;
    return x->mapped ? refuse("a step 'Lowercase' after 'Precompiled'", err) : GGL_OK;
}

static ggl_status do_decompose(steps *x, const json_value *v, ggl_error *err) {
    (void)v;
    (void)err;
    x->decomposed = true;
    return GGL_OK;
}

static ggl_status do_strip_accents(steps *x, const json_value *v, ggl_error *err) {
    (void)v;
    x->stripped = true;
    return x->mapped || !x->decomposed
               ? refuse("a step 'StripAccents' after 'Precompiled', or without 'NFD' or 'NFKD'",
                        err)
               : GGL_OK;
}

static ggl_status do_strip(steps *x, const json_value *v, ggl_error *err) {
    (void)err;
    x->trims |= llm_hf_flag(v, "strip_right", false);
    return GGL_OK;
}

static const char space_mark[] = "\u2581";

static ggl_status do_prepend(steps *x, const json_value *v, ggl_error *err) {
    (void)x;
    return llm_json_is(llm_json_get(v, "prepend"), space_mark)
               ? GGL_OK
               : refuse("a step 'Prepend' of other text than \u2581", err);
}

static ggl_status do_replace(steps *x, const json_value *v, ggl_error *err) {
    const json_value *pattern = llm_json_get(v, "pattern"),
                     *regex = llm_json_get_kind(pattern, "Regex", JSON_STRING),
                     *string = llm_json_get_kind(pattern, "String", JSON_STRING),
                     *by = llm_json_get(v, "content"), *shown = regex ? regex : string;
    const bool marks = llm_json_is(by, space_mark);
    if (regex && llm_json_is(regex, " {2,}") && (marks || llm_json_is(by, " "))) {
        x->merges = true;
        return GGL_OK;
    }
    if (string && llm_json_is(string, " ") && marks) {
        x->escapes = true;
        return GGL_OK;
    }
    char what[300];
    const ggl_str s = shown ? json_str(shown) : (ggl_str){"", 0};
    ggl_show(what, sizeof what, s.s, (size_t)llm_hf_shown(s));
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "a step 'Replace' of '%s', which is not supported; " LEAVE_OUT, what);
}

/* --- steps of the pre-tokenizer --------------------------------------------------------------- */

static ggl_status do_split(steps *x, const json_value *v, ggl_error *err) {
    (void)v;
    (void)err;
    x->splits = x->within_words = true;
    return GGL_OK;
}

static ggl_status do_metaspace(steps *x, const json_value *v, ggl_error *err) {
    const json_value *mark = llm_json_get_kind(v, "replacement", JSON_STRING),
                     *scheme = llm_json_get_kind(v, "prepend_scheme", JSON_STRING);
    if (mark && !llm_json_is(mark, space_mark))
        return refuse("a step 'Metaspace' whose replacement is not \u2581", err);
    /* after WhitespaceSplit, words without a space in front would be joined */
    if (x->splits &&
        (!llm_hf_flag(v, "add_prefix_space", true) || (scheme && !llm_json_is(scheme, "always"))))
        return refuse("a step 'Metaspace' after 'WhitespaceSplit' that does not prepend always",
                      err);
    x->within_words |= llm_hf_flag(v, "split", true);
    x->escapes = true;
    return GGL_OK;
}

static const struct {
    const char *list, *type; /* list: where the step may be */
    step_fn *run;
} known[] = {
    {"normalizers", "Precompiled", do_precompiled},
    {"normalizers", "Lowercase", do_lowercase},
    {"normalizers", "NFD", do_decompose},
    {"normalizers", "NFKD", do_decompose},
    {"normalizers", "StripAccents", do_strip_accents},
    {"normalizers", "Strip", do_strip},
    {"normalizers", "Prepend", do_prepend},
    {"normalizers", "Replace", do_replace},
    {"pretokenizers", "WhitespaceSplit", do_split},
    {"pretokenizers", "Metaspace", do_metaspace},
};

/* Runs a step, or those of a Sequence, whose list is called `list`. */
static ggl_status run(steps *x, const json_value *v, const char *list, ggl_error *err) {
    if (!v || v->kind == JSON_NULL)
        return GGL_OK;
    const json_value *type = llm_json_get_kind(v, "type", JSON_STRING),
                     *parts = llm_json_get_kind(v, list, JSON_ARRAY);
    if (llm_json_is(type, "Sequence") && parts) {
        ggl_status s = GGL_OK;
        for (size_t i = 0; i < parts->n && s == GGL_OK; i++)
            s = run(x, &parts->item[i], list, err);
        return s;
    }
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(known[k].list, list) == 0 && llm_json_is(type, known[k].type))
            return known[k].run(x, v, err);
    const ggl_str name = type ? json_str(type) : (ggl_str){"none", 4};
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s: a step '%.*s' of Unigram is not supported; " LEAVE_OUT,
                    list[0] == 'n' ? "normalizer" : "pre_tokenizer", llm_hf_shown(name), name.s);
}

static ggl_status read_steps(steps *x, ggl_error *err) {
    const json_value *root = &x->t->file->root;
    ggl_status s = run(x, llm_json_get(root, "normalizer"), "normalizers", err);
    if (s == GGL_OK)
        s = run(x, llm_json_get(root, "pre_tokenizer"), "pretokenizers", err);
    if (s != GGL_OK)
        return s;
    if (x->decomposed && !x->stripped)
        return refuse("a step 'NFD' or 'NFKD' without 'StripAccents'", err);
    if (!x->escapes)
        return refuse("spaces do not become \u2581 (there is no step 'Metaspace')", err);
    x->t->pieces.remove_spaces = x->merges || x->splits;
    return x->trims && !x->t->pieces.remove_spaces
               ? refuse("a step 'Strip' without one that makes one space of several", err)
               : GGL_OK;
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* True if the piece has a space after its first character. */
static bool spans_words(ggl_str s) {
    return s.n > 3 && ggl_find_bytes(s.s + 1, s.n - 1, space_mark, sizeof space_mark - 1) != NULL;
}

/* Reads entry `id` of the vocabulary, ["piece", score]. */
static ggl_status read_piece(steps *x, const json_value *v, int64_t id, bool bytes,
                             ggl_error *err) {
    sentence_pieces *p = &x->t->pieces;
    if (v->kind != JSON_ARRAY || v->n != 2 || v->item[0].kind != JSON_STRING ||
        v->item[1].kind != JSON_NUMBER || v->item[0].n == 0 || !isfinite((float)v->item[1].number))
        return ggl_fail(err, GGL_FORMAT, "entry %lld of the vocabulary is not [\"piece\", score]",
                        (long long)id);
    const ggl_str s = p->piece[id] = json_str(&v->item[0]);
    p->score[id] = (float)v->item[1].number;
    p->type[id] = id == p->unknown                    ? LLM_TOKEN_UNKNOWN
                  : bytes && llm_is_byte_piece(s)     ? LLM_TOKEN_BYTE
                  : x->within_words && spans_words(s) ? LLM_TOKEN_UNUSED
                                                      : LLM_TOKEN_NORMAL;
    return GGL_OK;
}

ggl_status llm_hf_read_unigram(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    sentence_pieces *p = &t->pieces;
    const json_value *model = llm_json_get(&t->file->root, "model"),
                     *vocab = llm_json_get_kind(model, "vocab", JSON_ARRAY),
                     *unknown = llm_json_get_kind(model, "unk_id", JSON_NUMBER);
    steps x = {.t = t};
    *p = (sentence_pieces){.bos = -1, .eos = -1, .unknown = -1, .pad = -1, .unigram = true};
    if (!vocab)
        return ggl_fail(err, GGL_FORMAT, "the array 'vocab' is missing");
    if (unknown) {
        if (!unknown->whole || unknown->number < 0 || unknown->number >= (double)vocab->n)
            return ggl_fail(err, GGL_FORMAT, "unk_id is %g, but the vocabulary has %u entries",
                            unknown->number, vocab->n);
        p->unknown = (int64_t)unknown->number;
    }
    ggl_status s = read_steps(&x, err);
    if (s == GGL_OK)
        s = llm_sentence_pieces_make_room(p, (int64_t)vocab->n, err);
    const bool bytes = llm_hf_flag(model, "byte_fallback", false);
    for (; s == GGL_OK && p->n < (int64_t)vocab->n; p->n++)
        s = read_piece(&x, &vocab->item[p->n], p->n, bytes, err);
    return s == GGL_OK ? llm_hf_read_sentence_pieces(t, p, size, err) : s;
}

/* --- ends ------------------------------------------------------------------------------------- */

/* Makes this token the one that texts begin or end with. */
static ggl_status put_end(llm_hf_tokenizer *t, int k, const json_value *name, ggl_error *err) {
    const bool is_name = name && name->kind == JSON_STRING;
    const int64_t id = is_name ? llm_hf_find_piece(t, json_str(name)) : -1;
    if (id < 0)
        return ggl_fail(err, GGL_FORMAT, "post_processor adds '%.*s', which is no token",
                        is_name ? llm_hf_shown(json_str(name)) : 0, is_name ? name->s : "");
    t->id[k] = id;
    return GGL_OK;
}

/* "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": ..}, ..] */
static ggl_status read_template(llm_hf_tokenizer *t, const json_value *single, ggl_error *err) {
    ggl_status s = GGL_OK;
    int n[2] = {0, 0}, after = 0;
    for (size_t i = 0; single && i < single->n && s == GGL_OK; i++) {
        const json_value *special = llm_json_get(&single->item[i], "SpecialToken");
        if (!special)
            after = 1;
        else if (n[after]++ > 0)
            s = refuse("post_processor adds several tokens to one end of a text", err);
        else
            s = put_end(t, after ? EOS : BOS, llm_json_get(special, "id"), err);
    }
    return s;
}

ggl_status llm_hf_set_template_ends(llm_hf_tokenizer *t, ggl_error *err) {
    const json_value *post = llm_json_get(&t->file->root, "post_processor"),
                     *by_template = llm_hf_step(post, "TemplateProcessing"),
                     *both = llm_hf_step(post, "RobertaProcessing");
    both = both ? both : llm_hf_step(post, "BertProcessing");
    if (by_template)
        return read_template(t, llm_json_get_kind(by_template, "single", JSON_ARRAY), err);
    const json_value *cls = llm_json_get_kind(both, "cls", JSON_ARRAY),
                     *sep = llm_json_get_kind(both, "sep", JSON_ARRAY);
    ggl_status s = cls && cls->n > 0 ? put_end(t, BOS, cls->item, err) : GGL_OK;
    return s == GGL_OK && sep && sep->n > 0 ? put_end(t, EOS, sep->item, err) : s;
}

ggl_status llm_hf_set_unigram_ends(llm_hf_tokenizer *t, ggl_error *err) {
    if (t->pieces.unknown >= 0 && t->pieces.unknown < t->n) {
        t->id[UNK] = t->pieces.unknown;
        t->type[t->id[UNK]] = LLM_TOKEN_UNKNOWN;
    }
    /* a template has one language of many */
    return t->languages.n > 0 ? GGL_OK : llm_hf_set_template_ends(t, err);
}
