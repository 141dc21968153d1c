#include "speech_form.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "dialect.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "multipart.h"
#include "opening.h"

/* Bytes of a text. A model sees some hundred tokens of a prompt, and tokens take more memory than a form's account has for them. */
enum { MOST_TEXT = 1 << 16 };

/* --- values ----------------------------------------------------------------------------------- */

static ggl_status wrong(const speech_field *f, const char *wanted, ggl_str v, ggl_error *err) {
    const int n = (int)ggl_utf8_cut(v.s, v.n, 40);
    return ggl_fail(err, GGL_USAGE, "\"%s\" must be %s, but is '%.*s%s'", f->name, wanted, n, v.s,
                    (size_t)n < v.n ? ".." : "");
}

/* Reads a number of at least `least` and at most `most`; *out stays as it is if it is none. */
static ggl_status read_number(const speech_field *f, ggl_str v, double least, double most,
                              double *out, ggl_error *err) {
    char text[32] = "", wanted[80], *end = text;
    double x = 0;
    if (v.n < sizeof text)
        memcpy(text, v.s, v.n);
    if (strspn(text, "+-.0123456789eE") == v.n) /* strtod knows more */
        x = strtod(text, &end);
    if (end != text && (size_t)(end - text) == v.n && x >= least && x <= most) {
        *out = x;
        return GGL_OK;
    }
    snprintf(wanted, sizeof wanted, "a number from %g to %g", least, most);
    return wrong(f, wanted, v, err);
}

/* The same, of a number that is whole. */
static ggl_status read_whole(const speech_field *f, ggl_str v, double least, double most,
                             double *out, ggl_error *err) {
    char wanted[80];
    const ggl_status st = read_number(f, v, least, most, out, err);
    if (st != GGL_OK || *out == floor(*out))
        return st;
    snprintf(wanted, sizeof wanted, "a whole number from %g to %g", least, most);
    return wrong(f, wanted, v, err);
}

static bool is_word(ggl_str v, const char *word) {
    return v.n == strlen(word) && ggl_case_compare_n(v.s, word, v.n) == 0;
}

static ggl_status read_bool(const speech_field *f, ggl_str v, bool *out, ggl_error *err) {
    *out = is_word(v, "true") || is_word(v, "1");
    return *out || is_word(v, "false") || is_word(v, "0") ? GGL_OK
                                                          : wrong(f, "true or false", v, err);
}

/* Names a field that has no effect, or, if nothing may be ignored, refuses it. */
static ggl_status ignore(speech_ask *a, const speech_field *f, const char *why, ggl_error *err) {
    if (a->ignored.strict)
        return ggl_fail(err, GGL_UNSUPPORTED, "\"%s\" would have no effect: %s", f->name, why);
    return fields_ignore(&a->ignored, NULL, (ggl_str){f->name, strlen(f->name)}, err);
}

/* Copies a text, and ends it with a NUL. */
static ggl_status read_text(const speech_field *f, ggl_str v, const char **out, ggl_error *err) {
    if (v.n > MOST_TEXT)
        return ggl_fail(err, GGL_LIMIT, "\"%s\" has %zu bytes; at most %d are read", f->name, v.n,
                        (int)MOST_TEXT);
    if (memchr(v.s, '\0', v.n) || !ggl_utf8_is_valid(v.s, v.n))
        return ggl_fail(err, GGL_USAGE, "\"%s\" must be a text in UTF-8 without a NUL", f->name);
    char *text = ggl_calloc(v.n + 1, 1);
    if (!text)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    memcpy(text, v.s, v.n);
    *out = text;
    return GGL_OK;
}

/* --- fields ----------------------------------------------------------------------------------- */

static ggl_status set_file(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    a->how.data = v.s;
    a->how.n_data = v.n;
    return v.n > 0 ? GGL_OK
                   : ggl_fail(err, GGL_USAGE, "\"%s\" is empty: the bytes of a sound", f->name);
}

/* It chose the server. */
static ggl_status set_model(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    (void)a, (void)f, (void)v, (void)err;
    return GGL_OK;
}

static ggl_status set_language(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_text(f, v, &a->how.language, err);
}

static ggl_status set_prompt(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_text(f, v, &a->how.prompt, err);
}

static ggl_status set_format(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    static const char *const names[N_SPEECH_FORMATS] = {"json", "text", "srt", "vtt",
                                                        "verbose_json"};
    for (int k = 0; k < N_SPEECH_FORMATS; k++)
        if (ggl_str_is(v, names[k])) {
            a->format = (speech_format)k;
            return GGL_OK;
        }
    return wrong(f, "json, text, srt, vtt or verbose_json", v, err);
}

static ggl_status set_stream(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_bool(f, v, &a->streams, err);
}

static ggl_status set_times(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    const bool is_word = ggl_str_is(v, "word"), is_segment = ggl_str_is(v, "segment");
    a->how.words |= is_word;
    a->has_segments |= is_segment;
    return is_word || is_segment ? GGL_OK : wrong(f, "word or segment", v, err);
}

static ggl_status set_temperature(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    double x = 0;
    const ggl_status st = read_number(f, v, 0, 1, &x, err);
    a->how.temperature = (float)x;
    return st;
}

static ggl_status set_step(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    double x = 0;
    const ggl_status st = read_number(f, v, 0, 1, &x, err);
    a->how.temperature_step = (float)x;
    return st;
}

static ggl_status set_entropy(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    double x = 0;
    const ggl_status st = read_number(f, v, -1e6, 1e6, &x, err);
    a->how.least_entropy = (float)x;
    return st;
}

static ggl_status set_logprob(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    double x = 0;
    const ggl_status st = read_number(f, v, -1e6, 1e6, &x, err);
    a->how.least_logprob = x < 0 ? (float)x : 0;
    return st;
}

static ggl_status set_no_speech(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    double x = 0;
    const ggl_status st = read_number(f, v, -1e6, 1e6, &x, err);
    a->how.no_speech = x > 0 ? (float)x : 0;
    return st;
}

enum { MOST_TEXTS = 64 }; /* as --beam-size of llm-transcribe */

/* Reads how many texts are tried at once. More than the server has room for are ignored. */
static ggl_status read_texts(speech_ask *a, const speech_field *f, ggl_str v, int32_t *out,
                             ggl_error *err) {
    double x = 0;
    const ggl_status st = read_whole(f, v, -1, MOST_TEXTS, &x, err);
    if (st != GGL_OK || x > LLM_SPEECH_TEXTS)
        return st == GGL_OK ? ignore(a, f, "at most 5 texts are tried at once", err) : st;
    *out = x > 0 ? (int32_t)x : 0;
    return GGL_OK;
}

static ggl_status set_beams(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_texts(a, f, v, &a->how.n_beams, err);
}

static ggl_status set_best(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_texts(a, f, v, &a->how.n_best, err);
}

static ggl_status set_translate(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_bool(f, v, &a->how.translate, err);
}

static ggl_status set_no_times(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_bool(f, v, &a->how.no_times, err);
}

static ggl_status set_no_context(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    bool no = false;
    const ggl_status st = read_bool(f, v, &no, err);
    a->how.no_context |= no;
    return st;
}

/* How many tokens of what was written a window sees: all that fit (-1), or none. */
static ggl_status set_context(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    a->how.no_context |= ggl_str_is(v, "0");
    return ggl_str_is(v, "0") || ggl_str_is(v, "-1") ? GGL_OK : wrong(f, "-1 or 0", v, err);
}

static const double most_ms = 1e11;

static ggl_status set_offset(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    double x = 0;
    const ggl_status st = read_number(f, v, 0, most_ms, &x, err);
    a->how.offset = x / 1000;
    return st;
}

static ggl_status set_duration(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    double x = 0;
    const ggl_status st = read_number(f, v, 0, most_ms, &x, err);
    a->how.duration = x / 1000;
    return st;
}

/* --- speech that is found first ---------------------------------------------------------------- */

static ggl_status set_vad(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_bool(f, v, &a->needs_vad, err);
}

static ggl_status set_vad_threshold(speech_ask *a, const speech_field *f, ggl_str v,
                                    ggl_error *err) {
    double x = 0;
    const ggl_status st = read_number(f, v, 0, 1, &x, err);
    a->how.vad_threshold = (float)x;
    return st;
}

static ggl_status read_ms(const speech_field *f, ggl_str v, int32_t *out, ggl_error *err) {
    double x = 0;
    const ggl_status st = read_whole(f, v, 0, 1e9, &x, err);
    *out = (int32_t)x;
    return st;
}

static ggl_status set_vad_speech(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_ms(f, v, &a->how.vad_min_speech_duration_ms, err);
}

static ggl_status set_vad_silence(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_ms(f, v, &a->how.vad_min_silence_duration_ms, err);
}

static ggl_status set_vad_pad(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    return read_ms(f, v, &a->how.vad_speech_pad_ms, err);
}

/* whisper.cpp's clients send FLT_MAX for no limit. */
static ggl_status set_vad_most(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    double x = 0;
    const ggl_status st = read_number(f, v, 0, 1e39, &x, err);
    a->how.vad_max_speech_duration_s = x < 1e8 ? (float)x : 0;
    return st;
}

static ggl_status set_vad_overlap(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    double x = 0;
    const ggl_status st = read_number(f, v, 0, 1e6, &x, err);
    a->how.vad_samples_overlap = (float)x;
    return st;
}

/* "auto", or what finds speech, as a word or in an object's member. */
static ggl_status set_strategy(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    a->wants_vad = true;
    return is_word(v, "auto") || is_word(v, "server_vad") ? GGL_OK
                                                          : wrong(f, "auto or server_vad", v, err);
}

static const speech_field of_strategy[] = {
    {.name = "chunking_strategy[type]", .read = set_strategy},
    {.name = "chunking_strategy[threshold]", .read = set_vad_threshold},
    {.name = "chunking_strategy[prefix_padding_ms]", .read = set_vad_pad},
    {.name = "chunking_strategy[silence_duration_ms]", .read = set_vad_silence}};

/* Reads a member of an object, as if the form had it under a name of its own. */
static ggl_status read_member(speech_ask *a, ggl_str name, const json_value *v, ggl_error *err) {
    char own[96], number[32];
    snprintf(own, sizeof own, "chunking_strategy[%.*s]", (int)(name.n < 60 ? name.n : 60), name.s);
    snprintf(number, sizeof number, "%.17g", v->kind == JSON_NUMBER ? v->number : 0);
    const ggl_str text = v->kind == JSON_STRING ? json_str(v) : (ggl_str){number, strlen(number)};
    for (size_t k = 0; k < sizeof of_strategy / sizeof *of_strategy; k++)
        if (strcmp(of_strategy[k].name, own) == 0 &&
            (v->kind == JSON_STRING || v->kind == JSON_NUMBER))
            return of_strategy[k].read(a, &of_strategy[k], text, err);
    return ggl_fail(err, GGL_USAGE,
                    "\"%s\" is not known, or no number or text; an object has type, threshold, "
                    "prefix_padding_ms and silence_duration_ms",
                    own);
}

static ggl_status set_chunking(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    llm_json *doc;
    if (v.s[0] != '{')
        return set_strategy(a, f, v, err);
    ggl_status st = llm_json_parse(&doc, v.s, v.n, f->name, err);
    if (st != GGL_OK)
        return st;
    a->wants_vad = true;
    for (size_t k = 0; k < doc->root.n && st == GGL_OK; k++)
        st = read_member(a, json_name(&doc->root, k), &doc->root.item[k], err);
    llm_json_free(doc);
    return st;
}

/* --- tables ----------------------------------------------------------------------------------- */

/* clang-format off */
#define OF_ALL \
    {.name = "file", .read = set_file}, \
    {.name = "model", .read = set_model}, \
    {.name = "language", .read = set_language}, \
    {.name = "prompt", .read = set_prompt}, \
    {.name = "response_format", .read = set_format}, \
    {.name = "temperature", .read = set_temperature}
/* whisper.cpp's names, and faster-whisper's of the first */
#define OF_VAD \
    {.name = "vad", .read = set_vad}, \
    {.name = "vad_filter", .read = set_vad}, \
    {.name = "vad_threshold", .read = set_vad_threshold, .is_of_vad = true}, \
    {.name = "vad_min_speech_duration_ms", .read = set_vad_speech, .is_of_vad = true}, \
    {.name = "vad_min_silence_duration_ms", .read = set_vad_silence, .is_of_vad = true}, \
    {.name = "vad_max_speech_duration_s", .read = set_vad_most, .is_of_vad = true}, \
    {.name = "vad_speech_pad_ms", .read = set_vad_pad, .is_of_vad = true}, \
    {.name = "vad_samples_overlap", .read = set_vad_overlap, .is_of_vad = true}
#define OF_OPENAI \
    {.name = "stream", .read = set_stream}, \
    {.name = "timestamp_granularities[]", .read = set_times, .is_list = true}, \
    {.name = "timestamp_granularities", .read = set_times, .is_list = true}, \
    {.name = "chunking_strategy", .read = set_chunking, .is_of_vad = true}, \
    {.name = "chunking_strategy[type]", .read = set_strategy, .is_of_vad = true}, \
    {.name = "chunking_strategy[threshold]", .read = set_vad_threshold, .is_of_vad = true}, \
    {.name = "chunking_strategy[prefix_padding_ms]", .read = set_vad_pad, .is_of_vad = true}, \
    {.name = "chunking_strategy[silence_duration_ms]", .read = set_vad_silence, .is_of_vad = true}, \
    {.name = "include[]", .treatment = SPEECH_REFUSED, .why = "verbose_json has the mean of a piece's log-probabilities", .is_list = true}, \
    {.name = "include", .treatment = SPEECH_REFUSED, .why = "verbose_json has the mean of a piece's log-probabilities", .is_list = true}, \
    {.name = "known_speaker_names[]", .treatment = SPEECH_REFUSED, .why = "speakers are not told apart", .is_list = true}, \
    {.name = "known_speaker_references[]", .treatment = SPEECH_REFUSED, .why = "speakers are not told apart", .is_list = true}

static const speech_field openai[] = {OF_ALL, OF_VAD, OF_OPENAI, {0}};

static const speech_field inference[] = {
    OF_ALL,
    {.name = "temperature_inc", .read = set_step},
    {.name = "entropy_thold", .read = set_entropy},
    {.name = "logprob_thold", .read = set_logprob},
    {.name = "no_speech_thold", .read = set_no_speech},
    {.name = "beam_size", .read = set_beams},
    {.name = "best_of", .read = set_best},
    {.name = "translate", .read = set_translate},
    {.name = "no_timestamps", .read = set_no_times},
    {.name = "no_context", .read = set_no_context},
    {.name = "max_context", .read = set_context},
    {.name = "offset_t", .read = set_offset},
    {.name = "duration", .read = set_duration},
    {.name = "debug_mode", .treatment = SPEECH_IGNORED},
    {.name = "no_language_probabilities", .treatment = SPEECH_IGNORED},
    {.name = "token_timestamps", .treatment = SPEECH_IGNORED},
    {.name = "word_thold", .treatment = SPEECH_IGNORED},
    OF_VAD,
    {.name = "detect_language", .treatment = SPEECH_REFUSED, .why = "leave \"language\" out: verbose_json says which was found"},
    {.name = "carry_initial_prompt", .treatment = SPEECH_REFUSED, .why = "only the first window sees the prompt as a whole"},
    {.name = "max_len", .treatment = SPEECH_REFUSED, .why = "pieces are those of the model"},
    {.name = "split_on_word", .treatment = SPEECH_REFUSED, .why = "pieces are those of the model"},
    {.name = "offset_n", .treatment = SPEECH_REFUSED, .why = "pieces are counted from the first"},
    {.name = "audio_ctx", .treatment = SPEECH_REFUSED, .why = "a window is as long as the model has learned"},
    {.name = "diarize", .treatment = SPEECH_REFUSED, .why = "speakers are not told apart"},
    {.name = "tinydiarize", .treatment = SPEECH_REFUSED, .why = "speakers are not told apart"},
    {.name = "suppress_nst", .treatment = SPEECH_REFUSED, .why = "the model's file lists what is never written"},
    {.name = "suppress_non_speech", .treatment = SPEECH_REFUSED, .why = "the model's file lists what is never written"},
    {0}};
/* clang-format on */

const speech_field *speech_fields(speech_api api) {
    return api == SPEECH_INFERENCE ? inference : openai;
}

/* --- forms ------------------------------------------------------------------------------------ */

enum { MOST_FIELDS = 64 };

/* True for values that ask for nothing; whisper.cpp's -1 stands for its default. */
static bool asks_nothing(ggl_str v) {
    static const char *const words[] = {"false", "0", "0.0", "-1"};
    bool is = v.n == 0;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        is |= is_word(v, words[k]);
    return is;
}

static ggl_status read_one(speech_ask *a, const speech_field *f, ggl_str v, ggl_error *err) {
    if (f->treatment == SPEECH_IGNORED || (f->treatment == SPEECH_REFUSED && asks_nothing(v)))
        return GGL_OK;
    if (f->treatment == SPEECH_REFUSED)
        return ggl_fail(err, GGL_UNSUPPORTED, "\"%s\" is not supported: %s", f->name, f->why);
    if (v.n == 0 && f->read != set_file) /* as if it were absent */
        return GGL_OK;
    return f->read(a, f, v, err);
}

static ggl_status unknown(const speech_field *table, ggl_str name, ggl_error *err) {
    char shown[80];
    ggl_show(shown, sizeof shown, name.s, name.n);
    ggl_nearest near = ggl_nearest_to(shown);
    for (const speech_field *f = table; f->name; f++)
        if (f->treatment != SPEECH_REFUSED)
            ggl_nearest_try(&near, f->name, SIZE_MAX);
    return ggl_fail(err, GGL_USAGE, "unknown field \"%s\"%s%s%s", shown,
                    near.best ? "; did you mean \"" : "", near.best ? near.best : "",
                    near.best ? "\"?" : "");
}

/* Speech is not found first: names the given fields about that as ignored, and takes their effect away. */
static ggl_status ignore_vad(speech_ask *a, const char *why, const bool given[MOST_FIELDS],
                             const char **param, ggl_error *err) {
    const llm_transcribe_params plain = llm_transcribe_default();
    llm_transcribe_params *how = &a->how;
    how->vad_threshold = plain.vad_threshold;
    how->vad_min_speech_duration_ms = plain.vad_min_speech_duration_ms;
    how->vad_min_silence_duration_ms = plain.vad_min_silence_duration_ms;
    how->vad_max_speech_duration_s = plain.vad_max_speech_duration_s;
    how->vad_speech_pad_ms = plain.vad_speech_pad_ms;
    how->vad_samples_overlap = plain.vad_samples_overlap;
    const speech_field *f = speech_fields(a->api);
    ggl_status st = GGL_OK;
    for (size_t k = 0; f[k].name && st == GGL_OK; k++) {
        *param = f[k].name;
        if (given[k] && f[k].is_of_vad)
            st = ignore(a, &f[k], why, err);
    }
    if (st == GGL_OK)
        *param = NULL;
    return st;
}

/* Decides whether speech is found first. */
static ggl_status choose_vad(speech_ask *a, speech_vad vad, const bool given[MOST_FIELDS],
                             const char **param, ggl_error *err) {
    const bool is_asked = a->wants_vad || a->needs_vad;
    a->finds_speech = vad == SPEECH_VAD_ALL || (vad == SPEECH_VAD_ASKED && is_asked);
    if (a->finds_speech)
        return GGL_OK;
    if (!a->needs_vad)
        return ignore_vad(a,
                          is_asked ? "the server has no model that finds speech (--vad-model)"
                                   : "the request does not ask for speech alone",
                          given, param, err);
    const speech_field *f = speech_fields(a->api);
    while (f->read != set_vad || !*given) {
        f++;
        given++;
    }
    *param = f->name;
    return ggl_fail(
        err, GGL_UNSUPPORTED,
        "\"%s\" needs a model that finds speech: start the server with --vad-model FILE", f->name);
}

static ggl_status read_part(speech_ask *a, const multipart_part *p, bool seen[MOST_FIELDS],
                            bool given[MOST_FIELDS], const char **param, ggl_error *err) {
    const speech_field *table = speech_fields(a->api);
    size_t k = 0;
    while (table[k].name && !ggl_str_is(p->name, table[k].name))
        k++;
    const speech_field *f = &table[k];
    *param = f->name;
    if (!f->name)
        return a->ignored.strict ? unknown(table, p->name, err)
                                 : fields_ignore(&a->ignored, NULL, p->name, err);
    if (seen[k] && !f->is_list)
        return ggl_fail(err, GGL_USAGE, "\"%s\" is given twice", f->name);
    seen[k] = true;
    given[k] |= p->data.n > 0;
    return read_one(a, f, p->data, err);
}

ggl_status speech_ask_read(speech_ask *a, speech_api api, speech_vad vad, bool strict,
                           const char *type, ggl_str body, const char **param, ggl_error *err) {
    char boundary[MULTIPART_BOUNDARY + 1];
    multipart_part part[MULTIPART_MOST];
    bool seen[MOST_FIELDS] = {false}, given[MOST_FIELDS] = {false}; /* given: not empty */
    size_t n = 0;
    *a = (speech_ask){.api = api, .ignored = {.strict = strict}, .how = llm_transcribe_default()};
    a->how.translate = api == SPEECH_TRANSLATIONS;
    *param = NULL;
    if (!multipart_is_type(type))
        return ggl_fail(err, GGL_USAGE, "the request must be a form: multipart/form-data");
    ggl_status st = multipart_boundary(type, boundary, err);
    if (st == GGL_OK)
        st = multipart_read(part, MULTIPART_MOST, &n, boundary, body, err);
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        st = read_part(a, &part[i], seen, given, param, err);
    if (st != GGL_OK)
        return st;
    *param = "file";
    if (!a->how.data)
        return ggl_fail(err, GGL_USAGE, "\"file\" is missing: the bytes of a sound");
    *param = "response_format";
    if (a->streams && a->format > SPEECH_TEXT)
        return ggl_fail(err, GGL_USAGE, "\"response_format\" must be json or text of a stream");
    *param = "timestamp_granularities[]";
    if (a->how.words && a->format != SPEECH_VERBOSE)
        return ggl_fail(err, GGL_USAGE,
                        "times of words (\"timestamp_granularities[]\") need the "
                        "\"response_format\" verbose_json");
    *param = NULL;
    return choose_vad(a, vad, given, param, err);
}

void speech_ask_fini(speech_ask *a) {
    ggl_free((char *)a->how.language);
    ggl_free((char *)a->how.prompt);
    a->how.language = a->how.prompt = NULL;
}
