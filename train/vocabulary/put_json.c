/* Writes trained tokenizers as Hugging Face's tokenizer.json and tokenizer_config.json. */
#include <string.h>

#include "common/json_write.h"
#include "convert/hf_tokenizer.h"
#include "trainer_impl.h"

#define SPACE_MARK "\u2581"

static void put_added(const llm_tokenizer_trainer *t, llm_json_out *o) {
    llm_json_put_text(o, "  \"added_tokens\": [");
    for (size_t i = 0; i < t->n_special; i++)
        llm_json_format(
            o,
            "%s\n    {'id': %zu, 'content': %.*s, 'single_word': false, 'lstrip': false, "
            "'rstrip': false, 'normalized': false, 'special': true}",
            i > 0 ? "," : "", i, LLM_JSON_STR(t->special[i]));
    llm_json_put_text(o, t->n_special > 0 ? "\n  ],\n" : "],\n");
}

/* The steps that turn spaces into U+2581 and back; bytes keep them as they are. */
static void put_normalizer(const llm_tokenizer_trainer *t, llm_json_out *o) {
    if (t->p.kind == LLM_VOCABULARY_BPE)
        llm_json_put_text(o, "  \"normalizer\": null,\n");
    else
        llm_json_format(
            o,
            "  'normalizer': {'type': 'Sequence', 'normalizers': [%s"
            "{'type': 'Replace', 'pattern': {'String': ' '}, 'content': '" SPACE_MARK "'}]},\n",
            t->p.no_space_prefix ? ""
                                 : "{\"type\": \"Prepend\", \"prepend\": \"" SPACE_MARK "\"}, ");
}

static void put_pre_tokenizer(const llm_tokenizer_trainer *t, llm_json_out *o) {
    llm_json_put_text(o, "  \"pre_tokenizer\": ");
    if (t->p.kind == LLM_VOCABULARY_BPE)
        llm_hf_put_pre(o, t->pre_name, &t->pre);
    else
        llm_json_put_text(o, "null");
    llm_json_put_text(o, ",\n");
}

static void put_special(llm_json_out *o, ggl_str token, int text, const char *before) {
    llm_json_format(o, "%s{'SpecialToken': {'id': %.*s, 'type_id': %d}}", before,
                    LLM_JSON_STR(token), text);
}

/* What is added to the texts of a pair, or to the first alone. */
static void put_template(const llm_tokenizer_trainer *t, llm_json_out *o, int n_texts) {
    const char *before = "";
    for (int i = 0; i < n_texts; i++) {
        if (t->p.add_bos) {
            put_special(o, t->special[t->role[TRAIN_BOS]], i, before);
            before = ", ";
        }
        llm_json_format(o, "%s{'Sequence': {'id': '%s', 'type_id': %d}}", before, i ? "B" : "A", i);
        before = ", ";
        if (t->p.add_eos)
            put_special(o, t->special[t->role[TRAIN_EOS]], i, before);
    }
}

static void put_post_processor(const llm_tokenizer_trainer *t, llm_json_out *o) {
    const int32_t id[] = {t->p.add_bos ? t->role[TRAIN_BOS] : -1,
                          t->p.add_eos ? t->role[TRAIN_EOS] : -1};
    llm_json_put_text(o, "  \"post_processor\": ");
    if (id[0] < 0 && id[1] < 0) {
        llm_json_format(o, t->p.kind == LLM_VOCABULARY_BPE
                               ? "{'type': 'ByteLevel', 'add_prefix_space': false, 'trim_offsets': "
                                 "false, 'use_regex': true},\n"
                               : "null,\n");
        return;
    }
    llm_json_format(o, "{'type': 'TemplateProcessing', 'single': [");
    put_template(t, o, 1);
    llm_json_format(o, "], 'pair': [");
    put_template(t, o, 2);
    llm_json_format(o, "], 'special_tokens': {");
    const char *before = "";
    for (int k = 0; k < 2; k++) {
        if (id[k] < 0 || (k == 1 && id[1] == id[0]))
            continue;
        llm_json_format(o, "%s%.*s: {'id': %.*s, 'ids': [%d], 'tokens': [%.*s]}", before,
                        LLM_JSON_STR(t->special[id[k]]), LLM_JSON_STR(t->special[id[k]]),
                        (int)id[k], LLM_JSON_STR(t->special[id[k]]));
        before = ", ";
    }
    llm_json_put_text(o, "}},\n");
}

static void put_decoder(const llm_tokenizer_trainer *t, llm_json_out *o) {
    if (t->p.kind == LLM_VOCABULARY_BPE)
        llm_json_format(o, "  'decoder': {'type': 'ByteLevel', 'add_prefix_space': false, "
                           "'trim_offsets': true, 'use_regex': true},\n");
    else
        llm_json_format(
            o,
            "  'decoder': {'type': 'Sequence', 'decoders': [{'type': 'Replace', 'pattern': "
            "{'String': '" SPACE_MARK "'}, 'content': ' '}, {'type': 'ByteFallback'}, "
            "{'type': 'Fuse'}%s]},\n",
            t->p.no_space_prefix
                ? ""
                : ", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}");
}

/* --- the model -------------------------------------------------------------------------------- */

static void put_merge(llm_json_out *o, bool first, ggl_str left, ggl_str right, ggl_arena *arena) {
    char *both = ggl_arena_alloc(arena, left.n + right.n + 1, 1);
    if (!both) {
        o->failed = true;
        return;
    }
    memcpy(both, left.s, left.n);
    both[left.n] = ' ';
    memcpy(both + left.n + 1, right.s, right.n);
    llm_json_put_text(o, first ? "\n      " : ",\n      ");
    llm_json_put_string(o, (ggl_str){both, left.n + right.n + 1});
}

/* The kind of SentencePiece joins whatever two neighbours spell a piece, the one that was learned first before others. Here the pairs
 * are listed: for each piece, in that order, all ways to divide it. */
static bool put_divisions(const llm_tokenizer_trainer *t, llm_json_out *o, ggl_arena *arena) {
    bool first = true;
    for (size_t i = 0; i < t->n; i++) {
        const ggl_str s = t->token[i].s;
        for (size_t k = 1; t->token[i].n > 1 && k < s.n; k++) {
            const ggl_str part[] = {{s.s, k}, {s.s + k, s.n - k}};
            if (((unsigned char)s.s[k] & 0xc0) == 0x80) /* within a character */
                continue;
            const int32_t left = llm_vocabulary_find_token(t, part[0]),
                          right = llm_vocabulary_find_token(t, part[1]);
            if (left < 0 || right < 0 || t->token[left].n == 0 || t->token[right].n == 0)
                continue;
            put_merge(o, first, part[0], part[1], arena);
            first = false;
        }
    }
    return first;
}

static void put_bpe(const llm_tokenizer_trainer *t, llm_json_out *o) {
    const bool is_bytes = t->p.kind == LLM_VOCABULARY_BPE;
    const int32_t unknown = t->role[TRAIN_UNKNOWN];
    ggl_arena arena = {0};
    llm_json_format(o, "  'model': {\n    'type': 'BPE',\n    'dropout': null,\n    'unk_token': ");
    if (unknown >= 0 && !is_bytes)
        llm_json_put_string(o, t->special[unknown]);
    else
        llm_json_put_text(o, "null");
    llm_json_format(o,
                    ",\n    'continuing_subword_prefix': null,\n    'end_of_word_suffix': null,\n"
                    "    'fuse_unk': %s,\n    'byte_fallback': %s,\n    'ignore_merges': %s,\n"
                    "    'vocab': {",
                    is_bytes ? "false" : "true", is_bytes ? "false" : "true",
                    is_bytes && t->pre.ignore_merges ? "true" : "false");
    for (size_t i = 0; i < t->n; i++)
        llm_json_format(o, "%s\n      %.*s: %zu", i > 0 ? "," : "", LLM_JSON_STR(t->token[i].s), i);
    llm_json_put_text(o, "\n    },\n    \"merges\": [");
    bool none = true;
    if (!is_bytes)
        none = put_divisions(t, o, &arena);
    for (size_t i = 0; i < t->n_merge && is_bytes; i++, none = false)
        put_merge(o, i == 0, t->token[t->merge[i].left].s, t->token[t->merge[i].right].s, &arena);
    llm_json_put_text(o, none ? "]\n  }\n" : "\n    ]\n  }\n");
    ggl_arena_fini(&arena);
}

static void put_unigram(const llm_tokenizer_trainer *t, llm_json_out *o) {
    llm_json_format(o, "  'model': {\n    'type': 'Unigram',\n    'unk_id': ");
    if (t->role[TRAIN_UNKNOWN] >= 0)
        llm_json_format(o, "%d", (int)t->role[TRAIN_UNKNOWN]);
    else
        llm_json_put_text(o, "null");
    llm_json_format(o, ",\n    'byte_fallback': %s,\n    'vocab': [",
                    t->p.no_byte_fallback ? "false" : "true");
    for (size_t i = 0; i < t->n; i++)
        llm_json_format(o, "%s\n      [%.*s, %.9g]", i > 0 ? "," : "", LLM_JSON_STR(t->token[i].s),
                        (double)t->token[i].score);
    llm_json_put_text(o, "\n    ]\n  }\n");
}

/* --- the files -------------------------------------------------------------------------------- */

static ggl_status finish(llm_json_out *o, char **text, size_t *n, ggl_error *err) {
    if (o->failed) {
        ggl_free(o->s);
        return llm_vocabulary_no_memory(err);
    }
    *text = o->s;
    *n = o->n;
    return GGL_OK;
}

ggl_status llm_tokenizer_trainer_json(const llm_tokenizer_trainer *t, char **text, size_t *n,
                                      ggl_error *err) {
    llm_json_out o = {0};
    *text = NULL;
    *n = 0;
    llm_json_format(&o, "{\n  'version': '1.0',\n  'truncation': null,\n  'padding': null,\n");
    put_added(t, &o);
    put_normalizer(t, &o);
    put_pre_tokenizer(t, &o);
    put_post_processor(t, &o);
    put_decoder(t, &o);
    if (t->p.kind == LLM_VOCABULARY_UNIGRAM)
        put_unigram(t, &o);
    else
        put_bpe(t, &o);
    llm_json_put_text(&o, "}\n");
    return finish(&o, text, n, err);
}

ggl_status llm_tokenizer_trainer_config(const llm_tokenizer_trainer *t, char **text, size_t *n,
                                        ggl_error *err) {
    static const char *const name[TRAIN_N_ROLES] = {[TRAIN_UNKNOWN] = "unk_token",
                                                    [TRAIN_BOS] = "bos_token",
                                                    [TRAIN_EOS] = "eos_token",
                                                    [TRAIN_PAD] = "pad_token"};
    llm_json_out o = {0};
    *text = NULL;
    *n = 0;
    llm_json_format(&o, "{\n  'tokenizer_class': 'PreTrainedTokenizerFast',\n");
    for (int k = 0; k < TRAIN_N_ROLES; k++)
        if (t->role[k] >= 0)
            llm_json_format(&o, "  '%s': %.*s,\n", name[k], LLM_JSON_STR(t->special[t->role[k]]));
    llm_json_format(&o,
                    "  'add_bos_token': %s,\n  'add_eos_token': %s,\n"
                    "  'clean_up_tokenization_spaces': false\n}\n",
                    t->p.add_bos ? "true" : "false", t->p.add_eos ? "true" : "false");
    return finish(&o, text, n, err);
}
