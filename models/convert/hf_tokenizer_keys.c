/* Finds the tokenizer's special tokens, flags and pre-tokenizer, and writes all of its keys. */
#include <stdio.h>
#include <string.h>

#include "conversion.h"
#include "hf_tokenizer_impl.h"
#include "text/tokenizer_table.h"

#define MAX_ENDS 64

static const struct {
    const char *token, *id, *key;
} specials[N_ID] = {{"bos_token", "bos_token_id", "tokenizer.ggml.bos_token_id"},
                    {"eos_token", "eos_token_id", "tokenizer.ggml.eos_token_id"},
                    {"unk_token", "unk_token_id", "tokenizer.ggml.unknown_token_id"},
                    {"pad_token", "pad_token_id", "tokenizer.ggml.padding_token_id"},
                    {"eot_token", "eot_token_id", "tokenizer.ggml.eot_token_id"},
                    {"eom_token", "eom_token_id", "tokenizer.ggml.eom_token_id"},
                    {"cls_token", "cls_token_id", "tokenizer.ggml.cls_token_id"},
                    {"sep_token", "sep_token_id", "tokenizer.ggml.seperator_token_id"},
                    {"mask_token", "mask_token_id", LLM_HF_MASK_KEY}};

/* Writes a string of a file to buf, "" if it has none; returns buf. */
static const char *string_of(const json_value *root, const char *name, char *buf, size_t size) {
    const json_value *v = llm_json_get_kind(root, name, JSON_STRING);
    snprintf(buf, size, "%.*s", v ? llm_hf_shown(json_str(v)) : 0, v ? v->s : "");
    return buf;
}

/* Returns the class that a file names, in buf; "" if none does. */
static const char *class_of(const llm_hf_tokenizer *t, char *buf, size_t size) {
    if (!string_of(t->config ? &t->config->root : NULL, "tokenizer_class", buf, size)[0])
        (void)string_of(t->model_config, "tokenizer_class", buf, size);
    return buf;
}

const char *llm_hf_class_or_kind(const llm_hf_tokenizer *t, char *buf, size_t size) {
    return class_of(t, buf, size)[0] ? buf : string_of(t->model_config, "model_type", buf, size);
}

/* Looks up the class of a tokenizer without a tokenizer.json. A folder that does not name it has
 * the class of its kind of model. */
static bool find_class(const llm_hf_tokenizer *t, ggl_str *pre, bool *both_ends) {
    char name[128];
    return llm_hf_pre_of_class(llm_hf_class_or_kind(t, name, sizeof name), pre, both_ends);
}

ggl_status llm_hf_set_pre(llm_hf_tokenizer *t, ggl_error *err) {
    char found[4096] = "";
    bool both_ends;
    if (!t->bytes) {
        t->pre = (ggl_str){"default", 7};
        return GGL_OK;
    }
    if (!t->file) {
        if (find_class(t, &t->pre, &both_ends))
            return GGL_OK;
        llm_hf_note(t,
                    "vocab.json and merges.txt do not define how text is cut into words, and the "
                    "tokenizer's class is unknown, too: tokenizer.ggml.pre is not written");
        return GGL_OK;
    }
    if (llm_hf_find_pre(&t->file->root, found, sizeof found, &t->pre))
        return GGL_OK;
    bool noted =
        llm_hf_note(t, ggl_arena_printf(&t->arena,
                                        "no tokenizer.ggml.pre is known for the way this tokenizer "
                                        "cuts text into words, %s: the key is not written",
                                        found[0] ? found : "which is not a pattern"));
    return noted ? GGL_OK : llm_hf_no_memory(err);
}

/* Of Unigram: whether text becomes lower case and loses its accents before SentencePiece's own normalizer, as tokenizer.json
 * says (`file`); without it, as the class does that says so in its configuration. */
static void set_folding(llm_hf_tokenizer *t, const llm_json *file, const char *class_name) {
    const json_value *config = t->config ? &t->config->root : NULL,
                     *normalizer = llm_json_get(file ? &file->root : NULL, "normalizer");
    const bool folds = !file && llm_hf_class_folds(class_name);
    t->lower = llm_hf_step(normalizer, "Lowercase") ||
               (folds && llm_hf_flag(config, "do_lower_case", true));
    t->strip = llm_hf_step(normalizer, "StripAccents") ||
               (folds && !llm_hf_flag(config, "keep_accents", false));
    t->lower = t->lower ? 1 : -1; /* false is the default of files */
    t->strip = t->strip ? 1 : -1;
}

static bool is_typed(const llm_hf_tokenizer *t) {
    char name[128];
    const json_value *names =
        llm_json_get_kind(t->config ? &t->config->root : NULL, "model_input_names", JSON_ARRAY);
    if (!names) /* a tokenizer.json alone says what it says */
        return t->is_alone || llm_hf_class_is_typed(llm_hf_class_or_kind(t, name, sizeof name));
    bool found = false;
    for (size_t i = 0; i < names->n; i++)
        found = found || llm_json_is(&names->item[i], "token_type_ids");
    return found;
}

void llm_hf_set_flags(llm_hf_tokenizer *t) {
    t->is_typed = is_typed(t);
    const json_value *config = t->config ? &t->config->root : NULL,
                     *file = t->file ? &t->file->root : NULL;
    const llm_json *ends_of = t->file ? t->file : t->beside;
    const json_value *post = llm_json_get(ends_of ? &ends_of->root : NULL, "post_processor");
    const json_value *bos = llm_json_get_kind(config, "add_bos_token", JSON_BOOL);
    const json_value *eos = llm_json_get_kind(config, "add_eos_token", JSON_BOOL);
    const json_value *list =
        llm_json_get_kind(llm_hf_step(post, "TemplateProcessing"), "single", JSON_ARRAY);
    ggl_str pre;
    bool both_ends = llm_hf_step(post, "RobertaProcessing") || llm_hf_step(post, "BertProcessing");
    if (t->bytes && !file)
        (void)find_class(t, &pre, &both_ends);
    const bool languages = t->pieces.unigram && t->languages.n > 0;
    const int both = both_ends ? 1 : -1;
    t->has_ends = !bos && !eos && !languages &&
                  llm_json_get(ends_of ? &ends_of->root : NULL, "post_processor");
    t->add_bos = bos ? bos->flag : both;
    t->add_eos = eos ? eos->flag : both;
    if (list && list->n > 0 && !languages) {
        if (!bos)
            t->add_bos = llm_json_get(&list->item[0], "SpecialToken") != NULL;
        if (!eos)
            t->add_eos = llm_json_get(&list->item[list->n - 1], "SpecialToken") != NULL;
    }
    if (t->pieces.unigram) {
        char class_name[128], kind[128];
        int ends[2];
        const bool known = llm_hf_unigram_ends(
            class_of(t, class_name, sizeof class_name),
            string_of(t->model_config, "model_type", kind, sizeof kind), &ends[0], &ends[1]);
        if (languages)
            (void)llm_hf_note(t, ends[1] ? "a text begins with the token of its language"
                                         : "a text ends with </s> and the token of its language, "
                                           "which its writer adds");
        else if (file) /* without a post_processor it adds nothing */
            ends[0] = ends[1] = 0;
        else if (!known && (t->add_bos < 0 || t->add_eos < 0))
            (void)llm_hf_note(t, "no tokenizer_config.json names the tokenizer's class: texts end "
                                 "with </s> and do not begin with <s>, as T5's; its "
                                 "\"tokenizer_class\" or \"add_bos_token\" would change that");
        t->add_bos = t->add_bos < 0 ? ends[0] : t->add_bos;
        t->add_eos = t->add_eos < 0 ? ends[1] : t->add_eos;
        set_folding(t, ends_of, class_name);
    }
    const json_value *space = llm_hf_step(llm_json_get(file, "pre_tokenizer"), "Metaspace");
    bool prepended = llm_hf_step(llm_json_get(file, "normalizer"), "Prepend") != NULL;
    bool never = llm_json_is(llm_json_get(space, "prepend_scheme"), "never") ||
                 !llm_hf_flag(space, "add_prefix_space", true);
    t->add_space = t->bytes ? -1 : prepended || (space && !never);
}

/* True if a value of a file is the id of a token. */
static bool is_id(const llm_hf_tokenizer *t, const json_value *v) {
    return v->kind == JSON_NUMBER && v->whole && v->number >= 0 && v->number < (double)t->n;
}

/* True if a value says that there is no such token: null, and the -1 of Llama's first folders. */
static bool is_none(const json_value *v) {
    return v->kind == JSON_NULL || (v->kind == JSON_NUMBER && v->number == -1);
}

/* Notes what is no token of one value or a list: the first one, and how many others. */
static ggl_status check_ids(llm_hf_tokenizer *t, const char *file, const char *name,
                            const json_value *v, ggl_error *err) {
    const json_value *item = v && v->kind == JSON_ARRAY ? v->item : v;
    const size_t n = v && v->kind == JSON_ARRAY ? v->n : v != NULL;
    char shown[120], others[60] = " is no token";
    size_t first = 0, n_bad = 0;
    for (size_t i = n; i-- > 0;)
        if (!is_id(t, &item[i]) && !is_none(&item[i])) {
            first = i;
            n_bad++;
        }
    if (n_bad == 0)
        return GGL_OK;
    if (n_bad > 1)
        snprintf(others, sizeof others, " and %zu more of the list are no tokens", n_bad - 1);
    const char *text =
        ggl_arena_printf(&t->arena, "%s: %s = %s%s: there are %lld, from 0 on; %s", file, name,
                         llm_arch_json_text(&item[first], shown, sizeof shown), others,
                         (long long)t->n, n_bad > 1 ? "they are left out" : "it is left out");
    return llm_hf_note(t, text) ? GGL_OK : llm_hf_no_memory(err);
}

/* Notes if config.json begins texts with another token than the tokenizer does. */
static ggl_status check_begin(llm_hf_tokenizer *t, const json_value *id, ggl_error *err) {
    const int64_t bos = t->id[BOS];
    if (bos < 0 || !id || !is_id(t, id) || (int64_t)id->number == bos)
        return GGL_OK;
    const char *text = ggl_arena_printf(
        &t->arena,
        "config.json: bos_token_id = %lld, but tokenizer_config.json: bos_token = "
        "'%.*s', which is %lld: the latter is taken",
        (long long)id->number, llm_hf_shown(t->piece[bos]), t->piece[bos].s, (long long)bos);
    return llm_hf_note(t, text) ? GGL_OK : llm_hf_no_memory(err);
}

ggl_status llm_hf_set_ids(llm_hf_tokenizer *t, ggl_error *err) {
    const json_value *config = t->config ? &t->config->root : NULL;
    ggl_status s = GGL_OK;
    for (int k = 0; k < N_ID && s == GGL_OK; k++) {
        const json_value *v = llm_json_get(config, specials[k].token),
                         *id = llm_json_get(t->model_config, specials[k].id);
        if (v && v->kind == JSON_OBJECT)
            v = llm_json_get(v, "content");
        t->id[k] = v && v->kind == JSON_STRING ? llm_hf_find_piece(t, json_str(v)) : -1;
        s = check_ids(t, "config.json", specials[k].id, id, err);
        if (id && id->kind == JSON_ARRAY && id->n > 0)
            id = id->item;
        if (s == GGL_OK && k == BOS)
            s = check_begin(t, id, err);
        if (t->id[k] < 0 && id && is_id(t, id))
            t->id[k] = (int64_t)id->number;
        /* vocab.json does not say which of its tokens are special: those that have a use are */
        if (t->id[k] >= 0 && t->vocab && t->type[t->id[k]] == LLM_TOKEN_NORMAL)
            t->type[t->id[k]] = LLM_TOKEN_CONTROL;
    }
    /* where encoders name the ends of a text otherwise */
    t->id[BOS] = t->id[BOS] < 0 ? t->id[CLS] : t->id[BOS];
    t->id[EOS] = t->id[EOS] < 0 ? t->id[SEP] : t->id[EOS];
    if (!t->bytes && !t->words && t->id[UNK] >= 0)
        t->type[t->id[UNK]] = LLM_TOKEN_UNKNOWN;
    return s;
}

/* Adds the ids of a number or list to end[], unless they are there or in t->id. Returns the new
 * count. */
static int add_ends(const llm_hf_tokenizer *t, const json_value *v, int64_t *end, int n) {
    const json_value *item = v && v->kind == JSON_ARRAY ? v->item : v;
    const size_t n_item = v && v->kind == JSON_ARRAY ? v->n : v != NULL;
    for (size_t i = 0; i < n_item && i < MAX_ENDS; i++) {
        bool known = !is_id(t, &item[i]);
        for (int k = 0; !known && k < n; k++)
            known = end[k] == (int64_t)item[i].number;
        for (int k = 0; !known && k < N_ID; k++)
            known = (k == EOS || k == EOT || k == EOM) && t->id[k] == (int64_t)item[i].number;
        if (!known && n < MAX_ENDS)
            end[n++] = (int64_t)item[i].number;
    }
    return n;
}

/* True if readers recognize this end token by its spelling: <|eot_id|> and similar ones. */
static bool ends_by_name(ggl_str piece) {
    ggl_str name;
    for (int k = 0; llm_table_name("end", k, &name); k++)
        if (name.n == piece.n && memcmp(name.s, piece.s, name.n) == 0)
            return true;
    return false;
}

static bool is_eom(ggl_str piece) {
    for (size_t i = 0; i + 3 <= piece.n; i++)
        if (memcmp(piece.s + i, "eom", 3) == 0)
            return true;
    return false;
}

/* GGUF has keys for three tokens that end a text: eos, eot (of a turn) and eom (of a message).
 * Assigns them first to tokens that readers do not recognize by name. Notes those left over. */
ggl_status llm_hf_set_ends(llm_hf_tokenizer *t, ggl_error *err) {
    const json_value *more =
        llm_json_get(t->generation ? &t->generation->root : NULL, "eos_token_id");
    int64_t end[MAX_ENDS], left = -1;
    int n = add_ends(t, llm_json_get(t->model_config, "eos_token_id"), end, 0), n_left = 0,
        first = 0;
    n = add_ends(t, more, end, n);
    const ggl_status s = check_ids(t, "generation_config.json", "eos_token_id", more, err);
    if (s != GGL_OK)
        return s;
    if (t->id[EOS] < 0 && n > 0)
        t->id[EOS] = end[first++];
    for (int by_name = 0; by_name < 2; by_name++)
        for (int i = first; i < n; i++) {
            const ggl_str piece = t->piece[end[i]];
            int key = is_eom(piece) ? EOM : EOT;
            if (ends_by_name(piece) != by_name)
                continue;
            if (!by_name && t->id[key] >= 0)
                key = key == EOM ? EOT : EOM;
            if (t->id[key] < 0) {
                t->id[key] = end[i];
            } else if (!by_name) {
                left = n_left++ ? left : end[i];
            }
        }
    if (n_left == 0)
        return GGL_OK;
    const ggl_str piece = t->piece[left];
    return llm_hf_note(t,
                       ggl_arena_printf(
                           &t->arena,
                           "'%.*s' also ends a text, but files have no key for it (%d such tokens)",
                           llm_hf_shown(piece), piece.s, n_left))
               ? GGL_OK
               : llm_hf_no_memory(err);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_flag(ggl_gguf_writer *w, const char *key, int value) {
    if (value >= 0)
        ggl_gguf_put(w, key, GGL_GGUF_BOOL, false, &(uint8_t){value != 0}, 1);
}

/* True if texts are put into NFC: by the file, or by the class of a folder without one. */
static bool composes(const llm_hf_tokenizer *t) {
    char name[128];
    return t->file ? llm_hf_composes(&t->file->root)
                   : t->bytes && llm_hf_class_composes(llm_hf_class_or_kind(t, name, sizeof name));
}

void llm_hf_tokenizer_forget_mask(llm_hf_tokenizer *t) {
    t->id[MASK] = -1;
}

void llm_hf_tokenizer_put(const llm_hf_tokenizer *t, ggl_gguf_writer *w) {
    const bool unigram = t->pieces.unigram;
    ggl_str model = llm_table_model_of_kind(t->is_world ? "rwkv"
                                            : t->bytes  ? "bpe"
                                            : t->words  ? "wordpiece"
                                            : unigram   ? "unigram"
                                                        : "spm");
    if (t->is_odd)
        model = (ggl_str){"steps", 5};
    ggl_gguf_put_string(w, "tokenizer.ggml.model", model.s, model.n);
    if (t->steps.n > 0)
        llm_hf_put_steps(t, w);
    llm_hf_put_ends(t, w);
    if (t->pre.s)
        ggl_gguf_put_string(w, "tokenizer.ggml.pre", t->pre.s, t->pre.n);
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", t->piece, (uint64_t)t->n);
    if (t->n_source > 0) {
        ggl_gguf_put_strings(w, "tokenizer.ggml.source_pieces", t->source, (uint64_t)t->n_source);
        ggl_gguf_put(w, "tokenizer.ggml.source_scores", GGL_GGUF_F32, true, t->source_score,
                     (uint64_t)t->n_source);
    } else if (t->score && !t->bytes && !t->words && !t->is_world) {
        ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, t->score, (uint64_t)t->n);
    }
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, t->type, (uint64_t)t->n);
    if (t->bytes || (t->steps.n > 0 && t->merge))
        ggl_gguf_put_strings(w, "tokenizer.ggml.merges", t->merge, t->n_merge);
    for (int k = 0; k < N_ID; k++)
        if (t->id[k] >= 0 ||
            (t->is_alone && k <= UNK)) /* -1 as a number of 32 bits: none, not the default */
            ggl_gguf_put(w, specials[k].key, GGL_GGUF_U32, false, &(uint32_t){(uint32_t)t->id[k]},
                         1);
    put_flag(w, "tokenizer.ggml.add_bos_token", t->add_bos);
    put_flag(w, "tokenizer.ggml.add_eos_token", t->add_eos);
    put_flag(w, "tokenizer.ggml.add_space_prefix", t->add_space);
    put_flag(w, "tokenizer.ggml.normalizer.nfc", composes(t) ? 1 : -1);
    put_flag(w, "tokenizer.ggml.normalizer.lowercase", t->words || unigram ? t->lower : -1);
    put_flag(w, "tokenizer.ggml.normalizer.strip_accents", t->words || unigram ? t->strip : -1);
    /* of BPE, only for texts that name their language: other programs do not read it of the kind llama */
    put_flag(w, "tokenizer.ggml.remove_extra_whitespaces",
             unigram || t->languages.n > 0 ? t->pieces.remove_spaces : -1);
    if (unigram && t->pieces.charsmap.n > 0)
        ggl_gguf_put(w, "tokenizer.ggml.precompiled_charsmap", GGL_GGUF_U8, true,
                     t->pieces.charsmap.s, t->pieces.charsmap.n);
    if (t->chat.s)
        ggl_gguf_put_string(w, "tokenizer.chat_template", t->chat.s, t->chat.n);
}
