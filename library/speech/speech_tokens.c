#include "speech_tokens.h"

#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/text.h"

/* --- languages -------------------------------------------------------------------------------- */

/* Codes of ISO 639 as the models' tokens have them (jw: Javanese), and the names that the published program takes. */
static const char *const languages[][2] = {
    {"en", "english"},        {"zh", "chinese"},     {"de", "german"},        {"es", "spanish"},
    {"ru", "russian"},        {"ko", "korean"},      {"fr", "french"},        {"ja", "japanese"},
    {"pt", "portuguese"},     {"tr", "turkish"},     {"pl", "polish"},        {"ca", "catalan"},
    {"nl", "dutch"},          {"ar", "arabic"},      {"sv", "swedish"},       {"it", "italian"},
    {"id", "indonesian"},     {"hi", "hindi"},       {"fi", "finnish"},       {"vi", "vietnamese"},
    {"he", "hebrew"},         {"uk", "ukrainian"},   {"el", "greek"},         {"ms", "malay"},
    {"cs", "czech"},          {"ro", "romanian"},    {"da", "danish"},        {"hu", "hungarian"},
    {"ta", "tamil"},          {"no", "norwegian"},   {"th", "thai"},          {"ur", "urdu"},
    {"hr", "croatian"},       {"bg", "bulgarian"},   {"lt", "lithuanian"},    {"la", "latin"},
    {"mi", "maori"},          {"ml", "malayalam"},   {"cy", "welsh"},         {"sk", "slovak"},
    {"te", "telugu"},         {"fa", "persian"},     {"lv", "latvian"},       {"bn", "bengali"},
    {"sr", "serbian"},        {"az", "azerbaijani"}, {"sl", "slovenian"},     {"kn", "kannada"},
    {"et", "estonian"},       {"mk", "macedonian"},  {"br", "breton"},        {"eu", "basque"},
    {"is", "icelandic"},      {"hy", "armenian"},    {"ne", "nepali"},        {"mn", "mongolian"},
    {"bs", "bosnian"},        {"kk", "kazakh"},      {"sq", "albanian"},      {"sw", "swahili"},
    {"gl", "galician"},       {"mr", "marathi"},     {"pa", "punjabi"},       {"si", "sinhala"},
    {"km", "khmer"},          {"sn", "shona"},       {"yo", "yoruba"},        {"so", "somali"},
    {"af", "afrikaans"},      {"oc", "occitan"},     {"ka", "georgian"},      {"be", "belarusian"},
    {"tg", "tajik"},          {"sd", "sindhi"},      {"gu", "gujarati"},      {"am", "amharic"},
    {"yi", "yiddish"},        {"lo", "lao"},         {"uz", "uzbek"},         {"fo", "faroese"},
    {"ht", "haitian creole"}, {"ps", "pashto"},      {"tk", "turkmen"},       {"nn", "nynorsk"},
    {"mt", "maltese"},        {"sa", "sanskrit"},    {"lb", "luxembourgish"}, {"my", "myanmar"},
    {"bo", "tibetan"},        {"tl", "tagalog"},     {"mg", "malagasy"},      {"as", "assamese"},
    {"tt", "tatar"},          {"haw", "hawaiian"},   {"ln", "lingala"},       {"ha", "hausa"},
    {"ba", "bashkir"},        {"jw", "javanese"},    {"su", "sundanese"},     {"yue", "cantonese"},
    {"fil", "filipino"}, /* of text models with an ear; Whisper has Tagalog */
};
enum { N_LANGUAGES = sizeof languages / sizeof *languages };

const char *llm_speech_language_code(const speech_tokens *t, int32_t id, size_t *n) {
    const ggl_str s = llm_token_text(t->tokenizer, id, true);
    *n = s.n - 4; /* <| and |> */
    return s.s + 2;
}

const char *llm_speech_language_name(const char *code) {
    for (int k = 0; k < N_LANGUAGES; k++)
        if (strcmp(languages[k][0], code) == 0)
            return languages[k][1];
    return NULL;
}

const char *llm_speech_code_of(const char *name, size_t n) {
    for (int k = 0; k < N_LANGUAGES; k++)
        for (int i = 0; i < 2; i++)
            if (strlen(languages[k][i]) == n && ggl_case_compare_n(languages[k][i], name, n) == 0)
                return languages[k][0];
    return NULL;
}

int32_t llm_speech_find_language(const speech_tokens *t, const char *name) {
    for (int k = 0; k < N_LANGUAGES; k++)
        name = ggl_case_compare(languages[k][1], name) == 0 ? languages[k][0] : name;
    for (int32_t id = t->first_language; id < t->first_language + t->n_languages; id++) {
        size_t n;
        const char *code = llm_speech_language_code(t, id, &n);
        if (n == strlen(name) && ggl_case_compare_n(code, name, n) == 0)
            return id;
    }
    return -1;
}

/* How many tokens the published models have that know English alone; others have more. */
enum { N_VOCAB_OF_ENGLISH = 51864 };

/* --- what the file says ------------------------------------------------------------------------ */

ggl_status llm_speech_keys_read(speech_keys *k, const ggl_gguf *file, const char *family,
                                ggl_error *err) {
    char key[160];
    *k = (speech_keys){.is_multilingual = -1};
    snprintf(key, sizeof key, "%.100s.multilingual", family);
    bool is_multilingual;
    const int found = ggl_gguf_get_bool(file, key, &is_multilingual, err);
    if (found < 0)
        return GGL_FORMAT;
    if (found)
        k->is_multilingual = is_multilingual;
    snprintf(key, sizeof key, "%.100s.suppress_tokens", family);
    return llm_token_list_read(&k->never, file, key, err);
}

void llm_speech_keys_fini(speech_keys *k) {
    llm_token_list_fini(&k->never);
    *k = (speech_keys){0};
}

/* --- finding the tokens ----------------------------------------------------------------------- */

static bool is_language(ggl_str s) {
    bool ok = s.n == 6 || s.n == 7;
    for (size_t i = 2; ok && i < s.n - 2; i++)
        ok = s.s[i] >= 'a' && s.s[i] <= 'z';
    return ok && strncmp(s.s, "<|", 2) == 0 && strncmp(s.s + s.n - 2, "|>", 2) == 0;
}

/* Notes the token if it is one of those that are sought. */
static void note(speech_tokens *t, int32_t id, ggl_str s) {
    const struct {
        const char *text;
        int32_t *to;
    } sought[] = {{"<|endoftext|>", &t->end},        {"<|startoftranscript|>", &t->start},
                  {"<|translate|>", &t->translate},  {"<|transcribe|>", &t->transcribe},
                  {"<|startofprev|>", &t->previous}, {"<|nospeech|>", &t->no_speech},
                  {"<|nocaptions|>", &t->no_speech}, {"<|notimestamps|>", &t->no_times},
                  {"<|0.00|>", &t->first_time}};
    for (size_t k = 0; k < sizeof sought / sizeof *sought; k++)
        if (s.n == strlen(sought[k].text) && memcmp(s.s, sought[k].text, s.n) == 0)
            *sought[k].to = id;
}

static void count_times(speech_tokens *t) {
    char text[24];
    for (int32_t k = 0; t->first_time + k < t->n_vocab; k++) {
        const ggl_str s = llm_token_text(t->tokenizer, t->first_time + k, true);
        const int ms = k * SPEECH_MS_PER_TOKEN;
        const int n = snprintf(text, sizeof text, "<|%d.%02d|>", ms / 1000, ms % 1000 / 10);
        if (s.n != (size_t)n || memcmp(s.s, text, s.n) != 0)
            return;
        t->n_times = k + 1;
    }
}

static void count_languages(speech_tokens *t) {
    t->first_language = t->start + 1;
    while (t->first_language + t->n_languages < t->n_vocab &&
           is_language(llm_token_text(t->tokenizer, t->first_language + t->n_languages, true)))
        t->n_languages++;
}

/* --- tokens that are never written -------------------------------------------------------------- */

static void forbid(speech_tokens *t, int32_t id) {
    if (id >= 0 && id < t->n_vocab)
        t->is_never[id] = 1;
}

/* Forbids the token of a text that is one, or, `first`, the first token of any. */
static ggl_status forbid_text(speech_tokens *t, const char *text, size_t n, bool first,
                              ggl_error *err) {
    llm_tokens ids = {0};
    const ggl_status st = llm_tokenize(t->tokenizer, text, n, 0, &ids, err);
    if (st == GGL_OK && ids.n > 0 && (first || ids.n == 1))
        forbid(t, ids.id[0]);
    llm_tokens_fini(&ids);
    return st;
}

/* Signs that people who write down speech use for notes; a space between two. */
static const char notes[] = "\" # ( ) * + / : ; < = > @ [ \\ ] ^ _ ` { | } ~ \u300c \u300d \u300e "
                            "\u300f << >> <<< >>> -- --- -( -[ "
                            "(' (\" (( )) ((( ))) [[ ]] {{ }} \u266a\u266a \u266a\u266a\u266a";
/* Of these the first token counts, even if there are several. */
static const char music[] = "\u2669 \u266a \u266b \u266c \u266d \u266e \u266f";

static ggl_status forbid_each(speech_tokens *t, const char *list, bool first, ggl_error *err) {
    char with_space[32] = " ";
    ggl_status st = GGL_OK;
    for (size_t n; *list && st == GGL_OK; list += n + (list[n] == ' ')) {
        n = strcspn(list, " ");
        memcpy(with_space + 1, list, n);
        st = forbid_text(t, list, n, first, err);
        if (st == GGL_OK)
            st = forbid_text(t, with_space, n + 1, first, err);
    }
    return st;
}

static ggl_status forbid_notes(speech_tokens *t, ggl_error *err) {
    ggl_status st = forbid_text(t, " -", 2, true, err);
    if (st == GGL_OK)
        st = forbid_text(t, " '", 2, true, err);
    if (st == GGL_OK)
        st = forbid_each(t, notes, false, err);
    return st == GGL_OK ? forbid_each(t, music, true, err) : st;
}

/* True for <|..|>, of whatever kind the file says it is. */
static bool is_order(ggl_str s) {
    return s.n > 4 && memcmp(s.s, "<|", 2) == 0 && memcmp(s.s + s.n - 2, "|>", 2) == 0;
}

/* Tokens that tell the model what to do are never written, and neither are those that no text has. */
static void forbid_orders(speech_tokens *t) {
    for (int32_t id = 0; id < t->n_vocab; id++)
        if (id != t->end && !speech_is_time(t, id) &&
            (id >= llm_tokenizer_n_vocab(t->tokenizer) ||
             llm_tokenizer_is_control(t->tokenizer, id) ||
             is_order(llm_token_text(t->tokenizer, id, true))))
            forbid(t, id);
}

static ggl_status find_blank(speech_tokens *t, ggl_error *err) {
    llm_tokens ids = {0};
    const ggl_status st = llm_tokenize(t->tokenizer, " ", 1, 0, &ids, err);
    t->blank = st == GGL_OK && ids.n == 1 ? ids.id[0] : -1;
    llm_tokens_fini(&ids);
    return st;
}

/* What the tokens lack that every speech model has; NULL: nothing. */
static const char *missing(const speech_tokens *t) {
    return t->start < 0                              ? "<|startoftranscript|>"
           : t->end < 0                              ? "<|endoftext|>"
           : t->no_times < 0                         ? "<|notimestamps|>"
           : t->first_time < 0                       ? "<|0.00|>"
           : t->n_languages > 0 && t->transcribe < 0 ? "<|transcribe|>"
                                                     : NULL;
}

/* Finds the tokens by their texts. */
static void find(speech_tokens *t, const speech_keys *keys) {
    const int32_t n = llm_tokenizer_n_vocab(t->tokenizer);
    for (int32_t id = 0; id < n && id < t->n_vocab; id++) {
        const ggl_str s = llm_token_text(t->tokenizer, id, true);
        if (s.n > 4 && s.s[0] == '<' && s.s[1] == '|')
            note(t, id, s);
    }
    const bool is_multilingual =
        keys->is_multilingual < 0 ? t->n_vocab != N_VOCAB_OF_ENGLISH : keys->is_multilingual > 0;
    if (t->start >= 0 && is_multilingual)
        count_languages(t);
    if (t->first_time >= 0)
        count_times(t);
}

ggl_status llm_speech_tokens_init(speech_tokens *t, const llm_tokenizer *tokenizer, int32_t n_vocab,
                                  const uint32_t *writable, const speech_keys *keys,
                                  ggl_error *err) {
    *t = (speech_tokens){.tokenizer = tokenizer,
                         .n_vocab = n_vocab,
                         .end = -1,
                         .start = -1,
                         .translate = -1,
                         .transcribe = -1,
                         .previous = -1,
                         .no_speech = -1,
                         .no_times = -1,
                         .first_time = -1};
    find(t, keys);
    if (missing(t))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model's tokens are not those of a model that writes down speech: "
                        "there is no %s",
                        missing(t));
    t->is_never = ggl_calloc((size_t)n_vocab, 1);
    if (!t->is_never)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokens of speech");
    ggl_status st = find_blank(t, err);
    if (st == GGL_OK && keys->never.n == 0)
        st = forbid_notes(t, err);
    for (size_t k = 0; k < keys->never.n; k++)
        forbid(t, keys->never.id[k]);
    for (int32_t id = 0; id < n_vocab && writable; id++)
        if (!(writable[id / 32] >> id % 32 & 1))
            forbid(t, id);
    forbid_orders(t);
    return st;
}

void llm_speech_tokens_fini(speech_tokens *t) {
    ggl_free(t->is_never);
    *t = (speech_tokens){0};
}
