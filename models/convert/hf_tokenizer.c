#include "hf_tokenizer_impl.h"

#include <stdio.h>
#include <string.h>

#include "common/text_file.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "ggl/internal/os_fs.h"

/* Sets the chat template: tokenizer_config.json's (the one called "default" of several), else
 * chat_template.jinja. */
static ggl_status find_template(llm_hf_tokenizer *t, ggl_error *err) {
    const json_value *v = llm_json_get(t->config ? &t->config->root : NULL, "chat_template");
    for (size_t i = 0; v && v->kind == JSON_ARRAY && i < v->n; i++)
        if (llm_json_is(llm_json_get(&v->item[i], "name"), "default"))
            v = llm_json_get(&v->item[i], "template");
    if (v && v->kind == JSON_STRING) {
        t->chat = json_str(v);
        return GGL_OK;
    }
    ggl_status s =
        llm_hf_read_text(t, "chat_template.jinja", &t->template_text, &t->template_n, err);
    if (s == GGL_OK && t->template_text)
        t->chat = (ggl_str){t->template_text, t->template_n};
    return s;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* BPE: of bytes, or of characters. */
static ggl_status read_merging(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    const json_value *root = &t->file->root, *model = llm_json_get(root, "model"),
                     *merges = llm_json_get_kind(model, "merges", JSON_ARRAY);
    if (!merges)
        return ggl_fail(err, GGL_FORMAT, "the array 'merges' is missing");
    t->bytes = llm_hf_step(llm_json_get(root, "pre_tokenizer"), "ByteLevel") ||
               llm_hf_step(llm_json_get(root, "decoder"), "ByteLevel") ||
               llm_hf_step(llm_json_get(root, "normalizer"), "ByteLevel");
    const json_value *prefix = llm_json_get_kind(model, "continuing_subword_prefix", JSON_STRING);
    t->is_odd =
        (!t->bytes && !llm_hf_flag(model, "byte_fallback", false)) || (prefix && prefix->n > 0);
    ggl_status s = llm_hf_read_pieces(t, llm_json_get_kind(model, "vocab", JSON_OBJECT), size, err);
    if (s == GGL_OK)
        t->needs_steps = t->needs_steps || !llm_hf_has_all_bytes(t);
    if (s == GGL_OK)
        s = llm_hf_merges_from_json(t, merges, err);
    return s == GGL_OK && !t->bytes ? llm_hf_make_scores(t, err) : s;
}

static ggl_status read_model(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    const json_value *model = llm_json_get(&t->file->root, "model"),
                     *type = llm_json_get(model, "type");
    t->needs_steps = llm_hf_needs_steps(t);
    ggl_status s = llm_hf_check_file(t, err);
    if (s != GGL_OK)
        return s;
    if (llm_json_is(type, "Unigram"))
        s = llm_hf_read_unigram(t, size, err);
    else if (llm_json_is(type, "WordPiece"))
        s = llm_hf_read_words(t, size, err);
    else if (llm_json_is(type, "WordLevel"))
        s = llm_hf_read_levels(t, size, err);
    else if (model && (!type || llm_json_is(type, "BPE")))
        s = read_merging(t, size, err);
    else
        s = ggl_fail(err, GGL_UNSUPPORTED,
                     "the tokenizer's type '%.*s' is not supported, only BPE, Unigram, WordLevel "
                     "and WordPiece are",
                     type && type->kind == JSON_STRING ? llm_hf_shown(json_str(type)) : 4,
                     type && type->kind == JSON_STRING ? type->s : "none");
    if (s == GGL_OK)
        s = llm_hf_check_added(t, err);
    if (s == GGL_OK && t->needs_steps)
        s = llm_hf_check_steps(t, err);
    return s;
}

/* Reads vocab.txt, if the folder has it. */
static ggl_status read_word_list(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    size_t n;
    const ggl_status s = llm_hf_read_text(t, "vocab.txt", &t->merges_text, &n, err);
    return s == GGL_OK && t->merges_text ? llm_hf_read_word_list(t, t->merges_text, n, size, err)
                                         : s;
}

static ggl_status read_two_files(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    size_t n;
    t->bytes = true;
    ggl_status s = llm_hf_read_optional(t, "added_tokens.json", &t->added, err);
    if (s == GGL_OK)
        s = llm_hf_read_text(t, "merges.txt", &t->merges_text, &n, err);
    if (s == GGL_OK && !t->merges_text)
        s = ggl_fail(err, GGL_NOT_FOUND, "there is a vocab.json but no merges.txt");
    if (s == GGL_OK)
        s = llm_hf_read_pieces(t, t->vocab->root.kind == JSON_OBJECT ? &t->vocab->root : NULL, size,
                               err);
    return s == GGL_OK ? llm_hf_merges_from_text(t, t->merges_text, n, err) : s;
}

/* Sets *path to the folder's file of SentencePiece, whose name depends on the class; NULL: it has
 * none. */
static ggl_status find_sentence_model(llm_hf_tokenizer *t, char **path, ggl_error *err) {
    static const char *const names[] = {"tokenizer.model", "sentencepiece.bpe.model",
                                        "spiece.model", "spm.model"};
    *path = NULL;
    for (size_t i = 0; !*path && i < sizeof names / sizeof *names; i++) {
        if (!(*path = llm_hf_path(t, names[i])))
            return llm_hf_no_memory(err);
        if (!llm_hf_is_there(*path))
            *path = NULL;
    }
    return GGL_OK;
}

/* Sets *name to the folder's file of tiktoken, whose name depends on the class, if there is neither tokenizer.json nor vocab.json; NULL: it
 * has none. */
static ggl_status find_ranks(llm_hf_tokenizer *t, const char **name, ggl_error *err) {
    static const char *const names[] = {"tiktoken.model", "qwen.tiktoken", "tokenizer.tiktoken",
                                        "tokenizer.model"};
    *name = NULL;
    for (size_t i = 0; !t->file && !t->vocab && !*name && i < sizeof names / sizeof *names; i++) {
        const char *path = llm_hf_path(t, names[i]);
        if (!path)
            return llm_hf_no_memory(err);
        if (llm_hf_is_there(path) &&
            (i + 1 < sizeof names / sizeof *names || llm_hf_is_ranks(path)))
            *name = names[i];
    }
    return GGL_OK;
}

/* True if SentencePiece's file is read where the folder has it: the others are missing, or made from it. But if the class gives
 * tokens an order of its own that is not known, tokenizer.json has it. */
static bool prefers_sentence_model(const llm_hf_tokenizer *t) {
    const json_value *model = llm_json_get(t->file ? &t->file->root : NULL, "model");
    char name[128];
    ggl_str ids;
    if (!t->file)
        return !t->vocab;
    return llm_json_is(llm_json_get(model, "type"), "Unigram") &&
           !(llm_hf_ids_of_class(llm_hf_class_or_kind(t, name, sizeof name), &ids) &&
             ggl_str_is(ids, "-"));
}

/* Puts the file's name before the message of an error, unless it names a file of the folder: it could not be read. */
static ggl_status within_file(const llm_hf_tokenizer *t, const char *path, ggl_status s,
                              ggl_error *err) {
    const size_t n = strlen(t->folder);
    const bool named = err && strncmp(err->msg, t->folder, n) == 0 && err->msg[n] == '/';
    return named ? s : ggl_within(err, s, "%s", path);
}

/* Checks the tokens that were read from the file, with the status s, and finds the rest. */
static ggl_status finish_reading(llm_hf_tokenizer *t, const char *path, ggl_status s,
                                 ggl_error *err) {
    if (s == GGL_OK)
        s = t->n_cut > 0 ? llm_hf_cut_merges(t, err) : llm_hf_check_merges(t, err);
    if (s == GGL_OK && !t->tekken)
        s = llm_hf_set_pre(t, err);
    if (s != GGL_OK)
        return within_file(t, path, s, err);
    if ((s = llm_hf_set_ids(t, err)) != GGL_OK)
        return s;
    llm_hf_set_flags(t);
    if (t->tekken)
        llm_hf_set_tekken_ids(t);
    if ((s = llm_hf_complete_speech(t, err)) != GGL_OK)
        return ggl_within(err, s, "%s", path);
    if (t->words)
        llm_hf_set_words(t);
    if (t->pieces.unigram)
        s = llm_hf_set_unigram_ends(t, err);
    else if (t->file)
        s = llm_hf_set_template_ends(t, err);
    if (s != GGL_OK)
        return ggl_within(err, s, "%s", path);
    s = llm_hf_set_ends(t, err);
    if (s == GGL_OK && t->words && !t->is_odd)
        s = llm_hf_spell_words(t, err);
    return s == GGL_OK && t->needs_steps ? llm_hf_make_steps(t, err) : s;
}

/* Of RWKV: id 0 ends a text, and an empty line a turn, whatever the configuration says. */
static ggl_status read_world(llm_hf_tokenizer *t, const char *path, const char *name,
                             const llm_hf_vocab *size, ggl_error *err) {
    const ggl_status s = finish_reading(t, path, llm_hf_read_world(t, name, size, err), err);
    for (int k = 0; k < N_ID && s == GGL_OK; k++)
        t->id[k] = -1;
    if (s == GGL_OK) {
        t->id[BOS] = t->id[EOS] = 0;
        t->id[EOT] = llm_hf_find_piece(t, (ggl_str){"\\n\\n", 4});
        t->add_space = -1;
        t->pre = (ggl_str){NULL, 0};
    }
    return s;
}

static ggl_status read_all(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    ggl_status s = llm_hf_read_optional(t, "tokenizer_config.json", &t->config, err);
    if (s == GGL_OK && t->config && (s = llm_hf_check_config(&t->config->root, err)) != GGL_OK)
        s = ggl_within(err, s, "%s/tokenizer_config.json", t->folder);
    if (s == GGL_OK)
        s = llm_hf_read_optional(t, "generation_config.json", &t->generation, err);
    if (s == GGL_OK)
        s = llm_hf_read_optional(t, "tokenizer.json", &t->file, err);
    if (s == GGL_OK && !t->file)
        s = llm_hf_read_optional(t, "vocab.json", &t->vocab, err);
    char *path = NULL, name[128];
    (void)llm_hf_after_pieces(llm_hf_class_or_kind(t, name, sizeof name), &t->after);
    if (llm_hf_languages_of_class(name, &t->languages) && t->vocab && s == GGL_OK)
        s = find_sentence_model(t, &path, err);
    if (s == GGL_OK && t->vocab && !path && !(path = llm_hf_path(t, "source.spm")))
        return llm_hf_no_memory(err);
    if (s == GGL_OK && path && llm_hf_is_there(path))
        return llm_hf_read_source_model(t, path, size, err);
    path = NULL;
    const char *ranks = NULL;
    if (s == GGL_OK)
        s = find_ranks(t, &ranks, err);
    if (s == GGL_OK && ranks) {
        path = llm_hf_path(t, ranks);
        return path ? finish_reading(t, path, llm_hf_read_ranks(t, ranks, size, err), err)
                    : llm_hf_no_memory(err);
    }
    if (s == GGL_OK && !t->file && !t->vocab) {
        static const char world[] = "rwkv_vocab_v20230424.txt";
        if (!(path = llm_hf_path(t, world)))
            return llm_hf_no_memory(err);
        if (llm_hf_is_there(path))
            return read_world(t, path, world, size, err);
        path = NULL;
    }
    if (s == GGL_OK && !t->file && !t->vocab)
        s = llm_hf_read_optional(t, "tekken.json", &t->tekken, err);
    if (s == GGL_OK && t->tekken) {
        path = llm_hf_path(t, "tekken.json");
        return path ? finish_reading(t, path, llm_hf_read_tekken(t, size, err), err)
                    : llm_hf_no_memory(err);
    }
    if (s == GGL_OK && prefers_sentence_model(t))
        s = find_sentence_model(t, &path, err);
    if (s == GGL_OK && path) {
        t->beside = t->file;
        t->file = NULL;
        return llm_hf_read_sentence_model(t, path, size, err);
    }
    if (s != GGL_OK)
        return s;
    s = t->file    ? read_model(t, size, err)
        : t->vocab ? read_two_files(t, size, err)
                   : read_word_list(t, size, err);
    if (s == GGL_OK && t->n == 0)
        return s;
    path = llm_hf_path(t, t->file ? "tokenizer.json" : t->vocab ? "vocab.json" : "vocab.txt");
    return path ? finish_reading(t, path, s, err) : llm_hf_no_memory(err);
}

ggl_status llm_hf_tokenizer_open(llm_hf_tokenizer **out, const char *folder,
                                 const json_value *config, const llm_hf_vocab *vocab,
                                 ggl_error *err) {
    *out = NULL;
    llm_hf_tokenizer *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return llm_hf_no_memory(err);
    t->folder = folder;
    t->model_config = config;
    ggl_status s = read_all(t, vocab, err);
    if (s == GGL_OK && t->n > 0)
        s = find_template(t, err);
    if (s != GGL_OK || t->n == 0) {
        llm_hf_tokenizer_free(t);
        return s;
    }
    *out = t;
    return GGL_OK;
}

/* --- a tokenizer.json alone ------------------------------------------------------------------- */

bool llm_hf_tokenizer_is_file(const char *path) {
    static const char mark[] = "\"added_tokens\"";
    char head[4096];
    if (!ggl_ends_with(path, ".json"))
        return false;
    return ggl_find_bytes(head, llm_read_head(path, head, sizeof head), mark, sizeof mark - 1) !=
           NULL;
}

/* Sets ids and flags that no tokenizer_config.json has named: as the file's own library does, which adds to texts what the
 * post_processor says, and nothing else. */
static void set_own_ends(llm_hf_tokenizer *t) {
    const json_value *unknown =
        llm_json_get_kind(llm_json_get(&t->file->root, "model"), "unk_token", JSON_STRING);
    const bool plain = !t->bytes && !t->words;
    if (plain && t->id[UNK] < 0 && unknown)
        t->id[UNK] = llm_hf_find_piece(t, json_str(unknown));
    if (plain && t->id[UNK] >= 0)
        t->type[t->id[UNK]] = LLM_TOKEN_UNKNOWN;
    t->add_bos = t->add_bos < 0 ? 0 : t->add_bos;
    t->add_eos = t->add_eos < 0 ? 0 : t->add_eos;
}

static ggl_status read_alone(llm_hf_tokenizer *t, const char *path, ggl_error *err) {
    static const char config[] = "tokenizer_config.json";
    const char *slash = ggl_os_last_separator(path);
    const int n_folder = slash ? (int)(slash - path) + 1 : 0;
    t->is_alone = true;
    t->folder = ggl_arena_printf(&t->arena, "%.*s.", n_folder, path);
    if (!t->folder)
        return llm_hf_no_memory(err);
    ggl_status s = GGL_OK;
    if (strcmp(path + n_folder, "tokenizer.json") == 0)
        s = llm_hf_read_optional(t, config, &t->config, err);
    if (s == GGL_OK && t->config && (s = llm_hf_check_config(&t->config->root, err)) != GGL_OK)
        return ggl_within(err, s, "%.*s%s", n_folder, path, config);
    if (s == GGL_OK)
        s = llm_json_read(&t->file, path, LLM_HF_MAX_FILE, err);
    if (s != GGL_OK)
        return s;
    s = finish_reading(t, path, read_model(t, &(llm_hf_vocab){0}, err), err);
    if (s == GGL_OK)
        set_own_ends(t);
    return s == GGL_OK ? find_template(t, err) : s;
}

ggl_status llm_hf_tokenizer_open_file(llm_hf_tokenizer **out, const char *path, ggl_error *err) {
    *out = NULL;
    llm_hf_tokenizer *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return llm_hf_no_memory(err);
    const ggl_status s = read_alone(t, path, err);
    if (s == GGL_OK)
        *out = t;
    else
        llm_hf_tokenizer_free(t);
    return s;
}

const char *llm_hf_tokenizer_note(const llm_hf_tokenizer *t, int k) {
    return k < t->n_note ? t->note[k] : NULL;
}
