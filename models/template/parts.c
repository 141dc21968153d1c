/* Contents that are lists of parts, as texts. */
#include "parts.h"

#include <string.h>

#include "common/base64.h"
#include "common/json_write.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/text.h"

typedef enum part_kind { OTHER, PICTURE, SOUND } part_kind;

/* Types of parts, and the member with their text; NULL: they are not text. */
static const struct {
    const char *type, *text;
    part_kind kind; /* of those that a model can be shown */
} types[] = {{"text", "text", OTHER},
             {"input_text", "text", OTHER},
             {"output_text", "text", OTHER},
             {"summary_text", "text", OTHER},
             {"reasoning_text", "text", OTHER},
             {"refusal", "refusal", OTHER},
             {"image", NULL, PICTURE},
             {"image_url", NULL, PICTURE},
             {"input_image", NULL, PICTURE},
             {"computer_screenshot", NULL, PICTURE},
             {"audio", NULL, OTHER},
             {"input_audio", NULL, SOUND},
             {"audio_url", NULL, OTHER},
             {"video", NULL, OTHER},
             {"input_video", NULL, OTHER},
             {"video_url", NULL, OTHER},
             {"file", NULL, OTHER},
             {"input_file", NULL, OTHER}};
enum { N_TYPES = sizeof types / sizeof *types };

/* The row of a part's type; N_TYPES: there is none. */
static size_t type_of(const json_value *part) {
    const json_value *type = llm_json_get_kind(part, "type", JSON_STRING);
    size_t k = 0;
    while (k < N_TYPES && !(type && llm_json_is(type, types[k].type)))
        k++;
    return k;
}

static bool is_kind(const json_value *part, part_kind kind) {
    const size_t k = type_of(part);
    return k < N_TYPES && types[k].kind == kind;
}

ggl_str llm_part_left_out(bool is_picture) {
    static const char picture[] = "[picture left out: this model reads only text]",
                      file[] = "[file left out: this model reads only text]";
    return is_picture ? (ggl_str){picture, sizeof picture - 1} : (ggl_str){file, sizeof file - 1};
}

/* The names of parts that are read, for messages. */
static const char *type_names(const llm_part_marks *marks) {
    static const char *const names[2][2] = {
        {"\"text\"", "\"text\" or \"input_audio\""},
        {"\"text\" or \"image_url\"", "\"text\", \"image_url\" or \"input_audio\""}};
    return names[marks->pictures][marks->sounds];
}

ggl_status llm_part_read(llm_text_part *out, const json_value *part, bool in_result,
                         const llm_part_marks *marks, ggl_error *err) {
    const json_value *type = llm_json_get_kind(part, "type", JSON_STRING);
    const size_t k = type_of(part);
    if (!type)
        return ggl_fail(err, GGL_USAGE, "a part must be an object with a \"type\"");
    if (k == N_TYPES)
        return ggl_fail(err, GGL_USAGE, "\"%.*s\" is not a type of part; use %s",
                        (int)(type->n < 40 ? type->n : 40), type->s, type_names(marks));
    if (!types[k].text && in_result) {
        *out = (llm_text_part){llm_part_left_out(types[k].kind == PICTURE), true};
        return GGL_OK;
    }
    if (!types[k].text && types[k].kind == OTHER && (marks->pictures || marks->sounds))
        return ggl_fail(err, GGL_UNSUPPORTED, "\"%s\" is not supported; use %s", types[k].type,
                        type_names(marks));
    if (!types[k].text)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "\"%s\" is not supported: the model reads only text%s", types[k].type,
                        types[k].kind == PICTURE ? ", unless it is opened with an eye (mmproj)"
                        : types[k].kind == SOUND ? ", unless it is opened with an ear (mmproj)"
                                                 : "");
    const json_value *v = llm_json_get_kind(part, types[k].text, JSON_STRING);
    if (!v)
        return ggl_fail(err, GGL_USAGE, "a part of type \"%s\" needs \"%s\", a string",
                        types[k].type, types[k].text);
    *out = (llm_text_part){json_str(v), false};
    return GGL_OK;
}

/* --- pictures and sounds ------------------------------------------------------------------------ */

bool llm_part_is_reference(const json_value *part) {
    return llm_json_has(part, "type", "tool_reference");
}

bool llm_part_is_picture(const json_value *part) {
    return is_kind(part, PICTURE);
}

bool llm_part_is_sound(const json_value *part) {
    return is_kind(part, SOUND);
}

ggl_status llm_part_address(ggl_str *out, const json_value *part, ggl_error *err) {
    static const char *const names[] = {"image_url", "url", "image"};
    const json_value *v = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !v; i++)
        v = llm_json_get(part, names[i]);
    if (v && v->kind == JSON_OBJECT)
        v = llm_json_get(v, "url");
    if (!v || v->kind != JSON_STRING)
        return ggl_fail(
            err, GGL_USAGE,
            "a picture needs \"image_url\": {\"url\": ..}, data:image/TYPE;base64,DIGITS or "
            "an address");
    *out = json_str(v);
    return GGL_OK;
}

ggl_status llm_part_sound(ggl_str *digits, const json_value *part, ggl_error *err) {
    const json_value *audio = llm_json_get_kind(part, "input_audio", JSON_OBJECT),
                     *data = audio ? llm_json_get_kind(audio, "data", JSON_STRING) : NULL;
    if (!data)
        return ggl_fail(
            err, GGL_USAGE,
            "a sound needs \"input_audio\": {\"data\": .., \"format\": ..}, the file as "
            "base64");
    *digits = json_str(data);
    return GGL_OK;
}

bool llm_part_digits(ggl_str *digits, ggl_str address) {
    static const char begin[] = "data:image/", coding[] = ";base64";
    enum { MOST_HEAD = 200, BEGIN = sizeof begin - 1, CODING = sizeof coding - 1 };
    const size_t n_head = address.n < MOST_HEAD ? address.n : MOST_HEAD;
    const char *comma = n_head > 0 ? memchr(address.s, ',', n_head) : NULL;
    if (!comma || (size_t)(comma - address.s) < BEGIN + CODING ||
        ggl_case_compare_n(address.s, begin, BEGIN) != 0 ||
        ggl_case_compare_n(comma - CODING, coding, CODING) != 0)
        return false;
    *digits = (ggl_str){comma + 1, address.n - (size_t)(comma + 1 - address.s)};
    return true;
}

ggl_status llm_part_bytes(unsigned char **bytes, size_t *n, ggl_str digits, bool is_sound,
                          ggl_error *err) {
    const char *what = is_sound ? "sound" : "picture";
    size_t wrong = 0;
    *bytes = NULL;
    *n = 0;
    if (digits.n == 0)
        return ggl_fail(err, GGL_USAGE, "a %s has no bytes", what);
    unsigned char *to = ggl_calloc(llm_base64_room(digits.n) + 1, 1);
    if (!to)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a %s", what);
    if (llm_base64_decode(to, n, digits, &wrong)) {
        *bytes = to;
        return GGL_OK;
    }
    ggl_free(to);
    return wrong < digits.n
               ? ggl_fail(err, GGL_USAGE, "a %s is not base64: character %zu does not belong there",
                          what, wrong)
               : ggl_fail(err, GGL_USAGE,
                          "a %s is not base64: it has %zu characters, which is no multiple of 4",
                          what, digits.n);
}

/* Shows a picture or a sound. */
static ggl_status show(const llm_part_marks *marks, const json_value *part, bool is_sound,
                       ggl_str *mark, ggl_error *err) {
    ggl_str given = {0}, digits = {0};
    unsigned char *bytes = NULL;
    size_t n = 0;
    ggl_status st =
        is_sound ? llm_part_sound(&digits, part, err) : llm_part_address(&given, part, err);
    if (st == GGL_OK && !is_sound && !llm_part_digits(&digits, given))
        st = ggl_fail(err, GGL_USAGE,
                      "a picture must be data:image/TYPE;base64,DIGITS, and nothing is downloaded, "
                      "but it is '%.*s'%s",
                      (int)(given.n < 40 ? given.n : 40), given.s, given.n > 40 ? ".." : "");
    if (st == GGL_OK)
        st = llm_part_bytes(&bytes, &n, digits, is_sound, err);
    if (st == GGL_OK)
        st = marks->show(marks->ctx, is_sound, bytes, n, mark, err);
    ggl_free(bytes);
    return st;
}

/* True if a text is the mark of something that was shown before, and nothing else. */
static bool is_mark(const llm_part_marks *marks, ggl_str text) {
    const llm_marks *m = marks->in_text;
    size_t at = 0, size = 0;
    return m && m->find(m->ctx, text.s, text.n, &at, &size) && at == 0 && size == text.n;
}

static ggl_status read_part(void *ctx, const json_value *part, bool in_result, ggl_str *text,
                            bool *stands, ggl_error *err) {
    const llm_part_marks *marks = ctx;
    const bool is_sound = is_kind(part, SOUND);
    *stands = (is_sound && marks->sounds) || (is_kind(part, PICTURE) && marks->pictures);
    if (*stands)
        return show(marks, part, is_sound, text, err);
    llm_text_part p = {0};
    const ggl_status st = llm_part_read(&p, part, in_result, marks, err);
    *text = p.text;
    *stands = st == GGL_OK && is_mark(marks, p.text);
    return st;
}

llm_part_reader llm_part_marks_reader(const llm_part_marks *marks) {
    return (llm_part_reader){.part = read_part, .ctx = (void *)marks};
}

/* --- contents ----------------------------------------------------------------------------------- */

ggl_status llm_parts_text(ggl_str *out, ggl_arena *arena, const json_value *list, bool in_result,
                          const llm_part_reader *reader, ggl_error *err) {
    static const llm_part_marks none;
    const llm_part_reader r = reader ? *reader : llm_part_marks_reader(&none);
    llm_json_out text = {0};
    ggl_status st = GGL_OK;
    bool after_text = false, stands = false;
    for (size_t i = 0; i < list->n && st == GGL_OK; i++) {
        ggl_str s = {0};
        if (in_result && llm_part_is_reference(&list->item[i]))
            continue;
        st = r.part(r.ctx, &list->item[i], in_result, &s, &stands, err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "content[%zu]", i);
        llm_json_put(&text, "\n", after_text && !stands);
        llm_json_put(&text, s.s, s.n);
        after_text = !stands;
    }
    if (st == GGL_OK && text.n > UINT32_MAX)
        st = ggl_fail(err, GGL_LIMIT, "a content has at most 4 GiB");
    *out = (ggl_str){ggl_arena_strndup(arena, text.s ? text.s : "", text.n), text.n};
    if (st == GGL_OK && (text.failed || !out->s))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a conversation");
    ggl_free(text.s);
    return st;
}
