/* Fields of forms with a sound (tools/llm-server/speech_form.c): what they set, what is refused, by sentences that name the field, and that the documents
 * list them all. */
#include "llm-server/speech_form.h"

#include <math.h>
#include <stdlib.h>

#include "test.h"

static ggl_error err;
static const char *param;
static speech_ask asked;

/* Reads a form of names and values in turn, after a sound if the first name is not "file"; NULL ends them. */
static ggl_status read_with(speech_api api, speech_vad vad, bool strict, const char *const *field) {
    char body[4096];
    size_t n = 0;
    const bool has_file = *field && strcmp(*field, "file") == 0;
    err = (ggl_error){0};
    speech_ask_fini(&asked);
    if (!has_file)
        n += (size_t)snprintf(body, sizeof body,
                              "--b\r\nContent-Disposition: form-data; name=\"file\"; "
                              "filename=\"a.wav\"\r\n\r\nsound\r\n");
    for (; field[0]; field += 2)
        n += (size_t)snprintf(body + n, sizeof body - n,
                              "--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n",
                              field[0], field[1]);
    n += (size_t)snprintf(body + n, sizeof body - n, "--b--\r\n");
    const ggl_status st =
        speech_ask_read(&asked, api, vad, strict, "multipart/form-data; boundary=b",
                        (ggl_str){body, n}, &param, &err);
    asked.how.data = NULL; /* it lies in `body` */
    return st;
}

#define READ_VAD(api_, vad_, ...)                                                                  \
    read_with(api_, vad_, false, (const char *const[]){__VA_ARGS__, NULL})
#define READ(api_, ...) READ_VAD(api_, SPEECH_VAD_ASKED, __VA_ARGS__)

TEST(fields_are_read) {
    REQUIRE_OK(READ(SPEECH_TRANSCRIPTIONS, "model", "m", "language", "de", "prompt", "Names",
                    "response_format", "verbose_json", "temperature", "0.25",
                    "timestamp_granularities[]", "segment", "timestamp_granularities[]", "segment",
                    "stream", "False", "chunking_strategy", "auto"),
               &err);
    CHECK_STR(asked.how.language, "de");
    CHECK_STR(asked.how.prompt, "Names");
    CHECK(asked.format == SPEECH_VERBOSE && !asked.streams && !asked.how.translate);
    CHECK(asked.how.temperature == 0.25f && asked.how.n_data == 5 && asked.ignored.n == 0);
    REQUIRE_OK(READ(SPEECH_TRANSLATIONS, "stream", "true", "response_format", "text"), &err);
    CHECK(asked.how.translate && asked.streams && asked.format == SPEECH_TEXT &&
          !asked.how.language);
    REQUIRE_OK(READ(SPEECH_INFERENCE, "temperature_inc", "0", "entropy_thold", "2.8",
                    "logprob_thold", "-0.5", "no_speech_thold", "0", "beam_size", "-1", "best_of",
                    "2", "translate", "1", "no_timestamps", "true", "max_context", "0", "offset_t",
                    "1500", "duration", "250"),
               &err);
    const llm_transcribe_params *p = &asked.how;
    CHECK(p->temperature_step == 0 && p->least_entropy == 2.8f && p->least_logprob == -0.5f);
    CHECK(p->no_speech == 0 && p->n_beams == 0 && p->n_best == 2);
    CHECK(p->translate && p->no_times && p->no_context && p->offset == 1.5 && p->duration == 0.25);
    REQUIRE_OK(READ(SPEECH_INFERENCE, "max_context", "-1", "no_context", "true"), &err);
    CHECK(p->no_context && p->temperature_step == 0.2f && p->least_logprob == -1);
    speech_ask_fini(&asked);
}

TEST(empty_values_are_as_absent) {
    for (speech_api api = 0; api < N_SPEECH_APIS; api++)
        for (const speech_field *f = speech_fields(api); f->name; f++)
            if (strcmp(f->name, "file") != 0) {
                CHECK_OK(READ(api, f->name, ""), &err);
                CHECK(!asked.how.language && !asked.how.prompt && asked.how.temperature == 0);
            }
    CHECK_INT(READ(SPEECH_TRANSCRIPTIONS, "file", ""), GGL_USAGE);
    CHECK_HAS(err.msg, "\"file\" is empty");
}

TEST(wrong_values_are_named) {
    static const struct {
        speech_api api;
        const char *name, *value, *words;
    } cases[] = {
        {0, "response_format", "diarized_json", "json, text, srt, vtt or verbose_json"},
        {0, "response_format", "JSON", "but is 'JSON'"},
        {0, "temperature", "1.5", "from 0 to 1"},
        {0, "temperature", "-0.1", "from 0 to 1"},
        {0, "temperature", "nan", "from 0 to 1"},
        {0, "temperature", "0x1p-1", "from 0 to 1"},
        {0, "temperature", "0.5 ", "from 0 to 1"},
        {0, "temperature", "0.00000000000000000000000000000000000001", "from 0 to 1"},
        {0, "temperature", "+", "from 0 to 1"},
        {0, "stream", "yes", "true or false"},
        {0, "timestamp_granularities[]", "letter", "must be word or segment"},
        {0, "timestamp_granularities[]", "word", "need the \"response_format\" verbose_json"},
        {0, "language", "\xff", "UTF-8"},
        {0, "prompt", "\xc3", "UTF-8"},
        {2, "beam_size", "1.5", "whole number"},
        {2, "beam_size", "65", "from -1 to 64"},
        {2, "best_of", "-2", "from -1 to 64"},
        {2, "max_context", "64", "-1 or 0"},
        {2, "offset_t", "-1", "from 0"},
        {2, "duration", "1e12", "from 0"},
        {2, "translate", "maybe", "true or false"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(READ(cases[i].api, cases[i].name, cases[i].value) != GGL_OK);
        CHECK_HAS(err.msg, cases[i].words);
        CHECK_HAS(err.msg, cases[i].name);
        CHECK_STR(param, cases[i].name);
    }
    for (speech_api api = 0; api < N_SPEECH_APIS; api++)
        for (const speech_field *f = speech_fields(api); f->name; f++) {
            if (f->treatment == SPEECH_REFUSED) {
                CHECK_INT(READ(api, f->name, "x"), GGL_UNSUPPORTED);
                CHECK_HAS(err.msg, f->why);
                CHECK_STR(param, f->name);
            }
            if (!f->is_list && strcmp(f->name, "file") != 0) {
                CHECK_INT(READ(api, f->name, "", f->name, ""), GGL_USAGE);
                CHECK_HAS(err.msg, "given twice");
            }
        }
    CHECK_INT(READ(SPEECH_TRANSCRIPTIONS, "stream", "1", "response_format", "srt"), GGL_USAGE);
    CHECK_STR(param, "response_format");
    CHECK_INT(READ(SPEECH_TRANSCRIPTIONS, "file", "x", "file", "x"), GGL_USAGE);
    speech_ask_fini(&asked);
}

TEST(texts_have_a_length) {
    static char text[(1 << 16) + 2], body[sizeof text + 1024];
    for (size_t n = 1 << 16; n <= (1 << 16) + 1; n++) {
        memset(text, 'a', n);
        const int n_body =
            snprintf(body, sizeof body,
                     "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\ns\r\n"
                     "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n"
                     "%s\r\n--b--\r\n",
                     text);
        const ggl_status st = speech_ask_read(&asked, SPEECH_TRANSCRIPTIONS, SPEECH_VAD_NONE, false,
                                              "multipart/form-data; boundary=b",
                                              (ggl_str){body, (size_t)n_body}, &param, &err);
        CHECK_INT(st, n > 1 << 16 ? GGL_LIMIT : GGL_OK);
        speech_ask_fini(&asked);
    }
    CHECK_HAS(err.msg, "\"prompt\" has 65537 bytes");
    CHECK_STR(param, "prompt");
}

TEST(words_are_asked_for) {
    REQUIRE_OK(READ(SPEECH_TRANSCRIPTIONS, "timestamp_granularities[]", "word", "response_format",
                    "verbose_json"),
               &err);
    CHECK(asked.how.words && !asked.has_segments);
    REQUIRE_OK(READ(SPEECH_TRANSLATIONS, "timestamp_granularities[]", "segment",
                    "timestamp_granularities[]", "word", "response_format", "verbose_json"),
               &err);
    CHECK(asked.how.words && asked.has_segments);
    speech_ask_fini(&asked);
}

TEST(unknown_names_are_told) {
    REQUIRE_OK(READ(SPEECH_TRANSCRIPTIONS, "color", "red", "c\x1b", "1"), &err);
    CHECK_STR(asked.ignored.names, "color, c?");
    const char *const near[] = {"promt", "x", NULL};
    CHECK_INT(read_with(SPEECH_TRANSCRIPTIONS, SPEECH_VAD_NONE, true, near), GGL_USAGE);
    CHECK_HAS(err.msg, "did you mean \"prompt\"");
    const char *const none[] = {"file", "x", NULL};
    REQUIRE_OK(read_with(SPEECH_TRANSCRIPTIONS, SPEECH_VAD_NONE, true, none), &err);
    speech_ask_fini(&asked);
}

/* Fields about how speech is found are named if it is not, and change nothing. */
TEST(fields_without_a_model_for_speech_are_named) {
    const llm_transcribe_params plain = llm_transcribe_default();
    REQUIRE_OK(READ_VAD(SPEECH_TRANSCRIPTIONS, SPEECH_VAD_NONE, "chunking_strategy",
                        "{\"type\": \"server_vad\", \"threshold\": 0.75}", "color", "red"),
               &err);
    CHECK_STR(asked.ignored.names, "color, chunking_strategy");
    CHECK(!asked.finds_speech && asked.how.vad_threshold == plain.vad_threshold);
    CHECK_INT(READ_VAD(SPEECH_TRANSCRIPTIONS, SPEECH_VAD_NONE, "chunking_strategy", "x"),
              GGL_USAGE);
    REQUIRE_OK(READ_VAD(SPEECH_TRANSCRIPTIONS, SPEECH_VAD_ASKED, "chunking_strategy", "auto"),
               &err);
    CHECK(asked.finds_speech && asked.ignored.n == 0);
    CHECK_INT(READ_VAD(SPEECH_TRANSCRIPTIONS, SPEECH_VAD_NONE, "vad_filter", "true"),
              GGL_UNSUPPORTED);
    CHECK_STR(param, "vad_filter");
    CHECK_INT(READ_VAD(SPEECH_INFERENCE, SPEECH_VAD_NONE, "vad", "1"), GGL_UNSUPPORTED);
    CHECK_STR(param, "vad");
    CHECK_INT(READ_VAD(SPEECH_INFERENCE, SPEECH_VAD_NONE, "vad_filter", "1"), GGL_UNSUPPORTED);
    CHECK_STR(param, "vad_filter");
    for (int k = 0; k < 2 * (SPEECH_VAD_ALL + 1); k++) {
        const speech_vad vad = k / 2;
        REQUIRE_OK(READ_VAD(k % 2 ? SPEECH_INFERENCE : SPEECH_TRANSCRIPTIONS, vad, "vad", "false",
                            "vad_threshold", "0.75", "vad_min_speech_duration_ms", "1",
                            "vad_min_silence_duration_ms", "2", "vad_max_speech_duration_s", "3",
                            "vad_speech_pad_ms", "4", "vad_samples_overlap", "5"),
                   &err);
        const llm_transcribe_params *p = &asked.how;
        const bool finds = vad == SPEECH_VAD_ALL;
        CHECK(asked.finds_speech == finds && asked.ignored.n == (finds ? 0 : 6));
        CHECK(p->vad_threshold == (finds ? 0.75f : plain.vad_threshold));
        CHECK(p->vad_min_speech_duration_ms == (finds ? 1 : plain.vad_min_speech_duration_ms));
        CHECK(p->vad_min_silence_duration_ms == (finds ? 2 : plain.vad_min_silence_duration_ms));
        CHECK(p->vad_max_speech_duration_s == (finds ? 3 : plain.vad_max_speech_duration_s));
        CHECK(p->vad_speech_pad_ms == (finds ? 4 : plain.vad_speech_pad_ms));
        CHECK(p->vad_samples_overlap == (finds ? 5 : plain.vad_samples_overlap));
    }
    speech_ask_fini(&asked);
}

TEST(too_many_texts_are_named) {
    REQUIRE_OK(READ(SPEECH_INFERENCE, "beam_size", "6", "best_of", "5"), &err);
    CHECK_STR(asked.ignored.names, "beam_size");
    CHECK(asked.how.n_beams == 0 && asked.how.n_best == 5);
    speech_ask_fini(&asked);
}

TEST(nothing_without_effect_passes_if_strict) {
    const char *const fields[][4] = {
        {"chunking_strategy", "auto"}, {"vad_threshold", "0.75"}, {"beam_size", "6"}};
    for (int i = 0; i < 3; i++) {
        CHECK_INT(read_with(i == 0 ? SPEECH_TRANSCRIPTIONS : SPEECH_INFERENCE, SPEECH_VAD_NONE,
                            true, fields[i]),
                  GGL_UNSUPPORTED);
        CHECK_HAS(err.msg, "would have no effect");
        CHECK_STR(param, fields[i][0]);
    }
    REQUIRE_OK(read_with(SPEECH_TRANSCRIPTIONS, SPEECH_VAD_ASKED, true, fields[0]), &err);
    speech_ask_fini(&asked);
}

TEST(forms_need_a_sound) {
    const ggl_str body = {"--b--\r\n", 7};
    CHECK_INT(speech_ask_read(&asked, SPEECH_TRANSCRIPTIONS, SPEECH_VAD_NONE, false,
                              "multipart/form-data; boundary=b", body, &param, &err),
              GGL_USAGE);
    CHECK_HAS(err.msg, "\"file\" is missing");
    CHECK_INT(speech_ask_read(&asked, SPEECH_TRANSCRIPTIONS, SPEECH_VAD_NONE, false,
                              "application/json", body, &param, &err),
              GGL_USAGE);
    CHECK_HAS(err.msg, "multipart/form-data");
    CHECK_INT(speech_ask_read(&asked, SPEECH_TRANSCRIPTIONS, SPEECH_VAD_NONE, false,
                              "multipart/form-data; boundary=c", body, &param, &err),
              GGL_FORMAT);
}

/* --- documents -------------------------------------------------------------------------------- */

/* Returns the section of a page that begins with a heading, to be freed. */
static char *section_of(const char *path, const char *heading, const char *next) {
    static char text[1 << 17];
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    char *at = strstr(text, heading), *end = at ? strstr(at + 1, next) : NULL;
    if (end)
        *end = '\0';
    return at;
}

/* Returns the line of a section with that text; NULL: there is none, or several. */
static const char *line_with(const char *section, const char *words, char *line, size_t size) {
    const char *at = strstr(section, words);
    if (!at || strstr(at + 1, words))
        return NULL;
    while (at > section && at[-1] != '\n')
        at--;
    snprintf(line, size, "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

/* The names between backticks in the lines that begin with `begin`. */
static size_t count_names(const char *section, const char *begin) {
    size_t n = 0;
    for (const char *at = section; (at = strstr(at, begin)); at++)
        for (const char *c = at; *c && *c != '\n'; c++)
            n += *c == '`';
    return n / 2;
}

static void check_section(const char *section, speech_api api, const char *have,
                          const char *no_effect) {
    char quoted[80], line[4096];
    size_t n_read = 0, n_ignored = 0;
    for (const speech_field *f = speech_fields(api); f->name; f++) {
        snprintf(quoted, sizeof quoted, "`%s`", f->name);
        const char *at = line_with(section, quoted, line, sizeof line);
        CHECK_MSG(at, "%s is not documented once", f->name);
        if (!at)
            continue;
        n_read += f->treatment == SPEECH_READ;
        n_ignored += f->treatment == SPEECH_IGNORED;
        CHECK_MSG(f->treatment != SPEECH_READ || strncmp(at, have, strlen(have)) == 0,
                  "%s is not among those that are read", f->name);
        CHECK_MSG(f->treatment != SPEECH_IGNORED || strncmp(at, no_effect, strlen(no_effect)) == 0,
                  "%s is not among those without effect", f->name);
        CHECK_MSG(f->treatment != SPEECH_REFUSED || strstr(at, f->why),
                  "%s is not documented as refused: %s", f->name, f->why);
    }
    CHECK_INT(count_names(section, have), n_read);
    CHECK_INT(count_names(section, no_effect), n_ignored);
}

TEST(all_fields_are_documented) {
    const char *section =
        section_of(DOCS "/server-openai.md", "\n## POST /v1/audio/transcriptions", "\n## ");
    REQUIRE(section);
    check_section(section, SPEECH_TRANSCRIPTIONS, "**Have:**", "**Without effect on the answer:**");
    section = section_of(DOCS "/server-apis.md", "\n## POST /inference", "\n## ");
    REQUIRE(section);
    check_section(section, SPEECH_INFERENCE, "**Have:**", "**Without effect on the answer:**");
}
