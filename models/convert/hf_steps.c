/* Decides whether GGUF's own keys say what a tokenizer.json says. If they do not, tokenizer.ggl.steps has it (text/steps.h). */
#include <string.h>

#include "hf_tokenizer_impl.h"
#include "text/byte_spelling.h"
#include "text/steps.h"

/* True if v is a step of this type, or a Sequence of nothing but that. */
static bool is_only(const json_value *v, const char *type, const char *list) {
    const json_value *parts = llm_json_get_kind(v, list, JSON_ARRAY);
    return parts && parts->n == 1 ? is_only(&parts->item[0], type, list)
                                  : llm_json_is(llm_json_get(v, "type"), type);
}

static bool is_null(const json_value *v) {
    return !v || v->kind == JSON_NULL;
}

/* True if the member is missing, null, or the empty string. */
static bool is_empty(const json_value *v, const char *name) {
    const json_value *x = llm_json_get(v, name);
    return is_null(x) || (x->kind == JSON_STRING && x->n == 0);
}

/* True if tokens are looked for in any order and without regard to what is beside them. changes: the normalizer changes texts. */
static bool plain_added(const json_value *root, bool changes) {
    const json_value *list = llm_json_get_kind(root, "added_tokens", JSON_ARRAY);
    bool plain = true, before = false;
    for (size_t i = 0; list && i < list->n && plain; i++) {
        const json_value *v = &list->item[i];
        const bool normalized = llm_hf_flag(v, "normalized", false);
        plain = !llm_hf_flag(v, "single_word", false) && !llm_hf_flag(v, "lstrip", false) &&
                !llm_hf_flag(v, "rstrip", false) && !(changes && normalized) &&
                (i == 0 || normalized == before);
        before = normalized;
    }
    return plain;
}

/* True if no word can be an added token: each has a punctuation mark, and more. */
static bool no_words_added(const json_value *root) {
    const json_value *list = llm_json_get_kind(root, "added_tokens", JSON_ARRAY);
    bool none = true;
    for (size_t i = 0; list && i < list->n && none; i++) {
        const json_value *content = llm_json_get_kind(&list->item[i], "content", JSON_STRING);
        bool mark = false;
        for (size_t k = 0; content && k < content->n; k++)
            mark = mark || (content->s[k] > ' ' && content->s[k] < 0x7f &&
                            strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", content->s[k]));
        none = mark && content->n > 1;
    }
    return none;
}

/* BERT's own rules are those of the model "bert". */
static bool plain_words(const json_value *root) {
    const json_value *model = llm_json_get(root, "model"),
                     *normalizer = llm_json_get(root, "normalizer"),
                     *decoder = llm_json_get(root, "decoder"),
                     *most = llm_json_get(model, "max_input_chars_per_word");
    return is_only(normalizer, "BertNormalizer", "normalizers") &&
           llm_hf_flag(normalizer, "clean_text", true) &&
           llm_hf_flag(normalizer, "handle_chinese_chars", true) &&
           is_only(llm_json_get(root, "pre_tokenizer"), "BertPreTokenizer", "pretokenizers") &&
           plain_added(root, true) && no_words_added(root) &&
           llm_json_is(llm_json_get(model, "continuing_subword_prefix"), "##") && most &&
           most->kind == JSON_NUMBER && most->number == 100 &&
           llm_json_is(llm_json_get(decoder, "type"), "WordPiece") &&
           llm_json_is(llm_json_get(decoder, "prefix"), "##") &&
           llm_hf_flag(decoder, "cleanup", false);
}

bool llm_hf_composes(const json_value *root) {
    const json_value *type = llm_json_get(llm_json_get(root, "model"), "type");
    return (is_null(type) || llm_json_is(type, "BPE")) &&
           is_only(llm_json_get(root, "normalizer"), "NFC", "normalizers");
}

/* Byte-level BPE with a known pre-tokenizer, also of texts in NFC, is the model "gpt2". */
static bool plain_bytes(const json_value *root) {
    const json_value *model = llm_json_get(root, "model"),
                     *dropout = llm_json_get(model, "dropout"),
                     *bytes = llm_hf_step(llm_json_get(root, "pre_tokenizer"), "ByteLevel");
    char found[4096];
    ggl_str pre;
    const bool composes = llm_hf_composes(root);
    return (is_null(llm_json_get(root, "normalizer")) || composes) && bytes &&
           !llm_hf_flag(bytes, "add_prefix_space", false) &&
           is_only(llm_json_get(root, "decoder"), "ByteLevel", "decoders") &&
           plain_added(root, composes) && is_empty(model, "continuing_subword_prefix") &&
           is_empty(model, "end_of_word_suffix") && (is_null(dropout) || dropout->number == 0) &&
           llm_hf_find_pre(root, found, sizeof found, &pre);
}

bool llm_hf_needs_steps(const llm_hf_tokenizer *t) {
    const json_value *root = &t->file->root,
                     *type = llm_json_get(llm_json_get(root, "model"), "type");
    return llm_json_is(type, "WordPiece")
               ? !plain_words(root)
               : !(is_null(type) || llm_json_is(type, "BPE")) || !plain_bytes(root);
}

/* Checks flags of a part of the file, which its reader may take for missing if they are of another kind. what: "a step" or the like, which may
 * have a type. */
static ggl_status check_flags(const json_value *v, const char *what, ggl_error *err) {
    static const char *const flags[] = {"clean_text",
                                        "handle_chinese_chars",
                                        "lowercase",
                                        "strip_accents",
                                        "strip_left",
                                        "strip_right",
                                        "add_prefix_space",
                                        "use_regex",
                                        "individual_digits",
                                        "invert",
                                        "split",
                                        "cleanup",
                                        "lstrip",
                                        "rstrip",
                                        "single_word",
                                        "normalized",
                                        "special",
                                        "fuse_unk",
                                        "byte_fallback",
                                        "ignore_merges"};
    static const char *const lists[] = {"normalizers", "pretokenizers", "decoders"};
    const json_value *type = llm_json_get_kind(v, "type", JSON_STRING);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const json_value *x = llm_json_get(v, flags[i]);
        if (!is_null(x) && x->kind != JSON_BOOL)
            return ggl_fail(err, GGL_FORMAT, "'%s' of %s%s%.*s%s is %s; it should be true or false",
                            flags[i], what, type ? " '" : "",
                            type ? llm_hf_shown(json_str(type)) : 0, type ? type->s : "",
                            type ? "'" : "", llm_json_kind_text(x->kind));
    }
    ggl_status s = GGL_OK;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const json_value *part = llm_json_get_kind(v, lists[k], JSON_ARRAY);
        for (size_t i = 0; part && i < part->n && s == GGL_OK; i++)
            s = check_flags(&part->item[i], what, err);
    }
    return s;
}

ggl_status llm_hf_check_file(const llm_hf_tokenizer *t, ggl_error *err) {
    static const char *const steps[] = {"normalizer", "pre_tokenizer", "decoder"};
    const json_value *root = &t->file->root, *version = llm_json_get(root, "version"),
                     *added = llm_json_get_kind(root, "added_tokens", JSON_ARRAY);
    if (version && !llm_json_is(version, "1.0"))
        return ggl_fail(err, GGL_UNSUPPORTED, "'version' is %s%s%.*s%s; only '1.0' is known",
                        llm_json_kind_text(version->kind), version->kind == JSON_STRING ? " '" : "",
                        version->kind == JSON_STRING ? llm_hf_shown(json_str(version)) : 0,
                        version->kind == JSON_STRING ? version->s : "",
                        version->kind == JSON_STRING ? "'" : "");
    ggl_status s = check_flags(llm_json_get(root, "model"), "the model", err);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && s == GGL_OK; i++)
        s = check_flags(llm_json_get(root, steps[i]), "a step", err);
    for (size_t i = 0; added && i < added->n && s == GGL_OK; i++)
        s = check_flags(&added->item[i], "an added token", err);
    return s;
}

bool llm_hf_has_all_bytes(const llm_hf_tokenizer *t) {
    char s[2];
    bool all = true;
    for (unsigned b = 0; b < 256 && all; b++)
        all = llm_hf_find_piece(t, (ggl_str){s, llm_spell_byte(b, s)}) >= 0;
    return all;
}

ggl_status llm_hf_check_steps(llm_hf_tokenizer *t, ggl_error *err) {
    const json_value *root = &t->file->root, *model = llm_json_get(root, "model"),
                     *dropout = llm_json_get(model, "dropout");
    step_list list;
    step_reader r = {.arena = &t->arena, .err = err};
    ggl_status s = llm_steps_read_normalizer(&list, &r, llm_json_get(root, "normalizer"));
    if (s == GGL_OK)
        s = llm_steps_read_cutter(&list, &r, llm_json_get(root, "pre_tokenizer"));
    if (s == GGL_OK)
        s = llm_steps_read_decoder(&list, &r, llm_json_get(root, "decoder"));
    if (s == GGL_OK && dropout && dropout->kind == JSON_NUMBER && dropout->number != 0)
        s = ggl_fail(err, GGL_UNSUPPORTED,
                     "model: a 'dropout' of %g, by which a text becomes other tokens each time, is "
                     "not supported; 0 or null is",
                     dropout->number);
    return s;
}

/* --- ids of added tokens -------------------------------------------------------------------------- */

ggl_status llm_hf_check_added(const llm_hf_tokenizer *t, ggl_error *err) {
    const json_value *list = llm_json_get_kind(&t->file->root, "added_tokens", JSON_ARRAY);
    int64_t next = t->n_model;
    for (size_t i = 0; list && i < list->n; i++) {
        const json_value *v = &list->item[i];
        const int64_t id = (int64_t)llm_json_get(v, "id")->number;
        if (id >= t->n || t->in_model[id])
            continue;
        if (id != next)
            return ggl_fail(err, GGL_FORMAT,
                            "added_tokens: '%.*s' is listed with the id %lld, but the library that "
                            "defines this file gives it %lld, the "
                            "first one behind the model's tokens; write it with that id, or put it "
                            "into the model's vocabulary",
                            llm_hf_shown(t->piece[id]), t->piece[id].s, (long long)id,
                            (long long)next);
        next++;
    }
    return GGL_OK;
}

/* --- the key --------------------------------------------------------------------------------------- */

static void put_added(const llm_hf_tokenizer *t, llm_json_out *out) {
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized", "special"};
    const json_value *list = llm_json_get_kind(&t->file->root, "added_tokens", JSON_ARRAY);
    llm_json_put_text(out, "\"added_tokens\": [");
    bool any = false;
    for (size_t i = 0; list && i < list->n; i++) {
        const json_value *v = &list->item[i];
        const int64_t id = (int64_t)llm_json_get(v, "id")->number;
        if (id >= t->n) /* dropped */
            continue;
        llm_json_format(out, "%s{'id': %lld", any ? ", " : "", (long long)id);
        for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
            if (llm_hf_flag(v, flags[k], false))
                llm_json_format(out, ", '%s': true", flags[k]);
        if (!t->in_model[id])
            llm_json_format(out, ", 'in_model': false");
        llm_json_put_text(out, "}");
        any = true;
    }
    llm_json_put_text(out, "]");
}

static void put_model(const llm_hf_tokenizer *t, llm_json_out *out) {
    const json_value *model = llm_json_get(&t->file->root, "model");
    llm_json_format(out, ", 'model': {'marked': %s", t->is_marked ? "true" : "false");
    if (!llm_json_get(model, "type"))
        llm_json_format(out, ", 'type': 'BPE'");
    for (size_t i = 0; i < model->n; i++) {
        const ggl_str name = json_name(model, i);
        if (ggl_str_is(name, "vocab") || ggl_str_is(name, "merges"))
            continue;
        llm_json_put_text(out, ", ");
        llm_json_put_string(out, name);
        llm_json_put_text(out, ": ");
        llm_json_put_value(out, &model->item[i]);
    }
    llm_json_put_text(out, "}}");
}

ggl_status llm_hf_make_steps(llm_hf_tokenizer *t, ggl_error *err) {
    static const char *const parts[] = {"normalizer", "pre_tokenizer", "decoder"};
    llm_json_out out = {0};
    llm_json_put_text(&out, "{");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const json_value *v = llm_json_get(&t->file->root, parts[i]);
        if (is_null(v))
            continue;
        llm_json_format(&out, "'%s': ", parts[i]);
        llm_json_put_value(&out, v);
        llm_json_put_text(&out, ", ");
    }
    put_added(t, &out);
    put_model(t, &out);
    char *own = out.failed ? NULL : ggl_arena_strndup(&t->arena, out.s, out.n);
    t->steps = (ggl_str){own, out.n};
    ggl_free(out.s);
    return own ? GGL_OK : llm_hf_no_memory(err);
}

void llm_hf_put_steps(const llm_hf_tokenizer *t, ggl_gguf_writer *w) {
    ggl_gguf_put_string(w, "tokenizer.ggl.steps", t->steps.s, t->steps.n);
    if (t->merge_id)
        ggl_gguf_put(w, "tokenizer.ggl.merges", GGL_GGUF_I32, true, t->merge_id, 2 * t->n_merge_id);
    if (t->exact_score)
        ggl_gguf_put(w, "tokenizer.ggl.scores", GGL_GGUF_F64, true, t->exact_score, (uint64_t)t->n);
}
