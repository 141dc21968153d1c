/* Contents that are lists of parts, as texts. */
#include "parts.h"

#include <inttypes.h>
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

/* Reads a part. *stands: it is a picture or a sound, and *text its mark. */
static ggl_status read_part(const llm_part_marks *marks, const json_value *part, bool in_result,
                            ggl_str *text, bool *stands, ggl_error *err) {
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

/* --- conversations ------------------------------------------------------------------------------ */

/* Writes a list of parts as one text, with line breaks between those that are texts. */
static ggl_status put_parts(llm_json_out *out, const llm_part_marks *marks, const json_value *list,
                            bool in_result, ggl_error *err) {
    llm_json_out text = {0};
    ggl_status st = GGL_OK;
    bool after_text = false, stands = false;
    for (size_t i = 0; i < list->n && st == GGL_OK; i++) {
        ggl_str s = {0};
        st = read_part(marks, &list->item[i], in_result, &s, &stands, err);
        if (st != GGL_OK) {
            (void)ggl_within(err, st, "content[%zu]", i);
            break;
        }
        llm_json_put(&text, "\n", after_text && !stands);
        llm_json_put(&text, s.s, s.n);
        after_text = !stands;
    }
    llm_json_put_string(out, (ggl_str){text.s ? text.s : "", text.n});
    out->failed |= text.failed;
    ggl_free(text.s);
    return st;
}

/* A content is a text or a list of parts. It may be missing, or null, beside calls of tools. */
static ggl_status check_content(const json_value *message, ggl_error *err) {
    const json_value *content = llm_json_get(message, "content");
    const json_value *calls = llm_json_get_kind(message, "tool_calls", JSON_ARRAY);
    if (message->kind != JSON_OBJECT || !llm_json_get_kind(message, "role", JSON_STRING))
        return ggl_fail(err, GGL_FORMAT,
                        "a message must be an object with a \"role\", such as {\"role\": \"user\", "
                        "\"content\": \"Hi\"}");
    if (content && (content->kind == JSON_STRING || content->kind == JSON_ARRAY))
        return GGL_OK;
    if ((!content || content->kind == JSON_NULL) && calls && calls->n > 0)
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT, "the \"content\" must be a string or a list of parts, not %s",
                    content ? llm_json_kind_text((json_kind)content->kind) : "missing");
}

/* Writes calls of tools; arguments that are a text with a JSON object, as in OpenAI's form, become the object, because
 * templates show them. */
static void put_calls(llm_json_out *out, const json_value *v, int depth) {
    enum { CALLS, CALL, FUNCTION, ARGUMENTS };
    const bool is_list = depth == CALLS && v->kind == JSON_ARRAY;
    llm_json *doc = NULL;
    if (depth == ARGUMENTS && v->kind == JSON_STRING &&
        llm_json_parse(&doc, v->s, v->n, "arguments", NULL) == GGL_OK &&
        doc->root.kind == JSON_OBJECT)
        v = &doc->root;
    if (depth == ARGUMENTS || !(is_list || v->kind == JSON_OBJECT)) {
        llm_json_put_value(out, v);
        llm_json_free(doc);
        return;
    }
    llm_json_put_text(out, is_list ? "[" : "{");
    for (uint32_t i = 0; i < v->n; i++) {
        llm_json_put_text(out, i > 0 ? ", " : "");
        if (is_list) {
            put_calls(out, &v->item[i], CALL);
            continue;
        }
        const ggl_str name = json_name(v, i);
        llm_json_format(out, "%.*s: ", LLM_JSON_STR(name));
        if (ggl_str_is(name, "arguments"))
            put_calls(out, &v->item[i], ARGUMENTS);
        else if (depth == CALL && ggl_str_is(name, "function"))
            put_calls(out, &v->item[i], FUNCTION);
        else
            llm_json_put_value(out, &v->item[i]);
    }
    llm_json_put_text(out, is_list ? "]" : "}");
}

static ggl_status put_message(llm_json_out *out, const llm_part_marks *marks,
                              const json_value *message, ggl_error *err) {
    const bool in_result = llm_json_is(llm_json_get(message, "role"), "tool");
    ggl_status st = check_content(message, err);
    llm_json_put_text(out, "{");
    for (uint32_t i = 0; i < message->n && st == GGL_OK; i++) {
        const json_value *v = &message->item[i];
        llm_json_put_text(out, i > 0 ? ", " : "");
        llm_json_put_string(out, json_name(message, i));
        llm_json_put_text(out, ": ");
        if (v->kind == JSON_ARRAY && ggl_str_is(json_name(message, i), "content"))
            st = put_parts(out, marks, v, in_result, err);
        else if (v->kind == JSON_ARRAY && ggl_str_is(json_name(message, i), "tool_calls"))
            put_calls(out, v, 0);
        else
            llm_json_put_value(out, v);
    }
    llm_json_put_text(out, "}");
    return st;
}

static ggl_status put_talk(llm_json_out *out, const llm_part_marks *marks, const json_value *root,
                           ggl_error *err) {
    const json_value *messages = llm_json_get_kind(root, "messages", JSON_ARRAY);
    ggl_status st = GGL_OK;
    if (!messages || messages->n == 0)
        return ggl_fail(err, GGL_FORMAT, "a conversation needs \"messages\", at least one");
    llm_json_put_text(out, "{\"messages\": [");
    for (uint32_t i = 0; i < messages->n && st == GGL_OK; i++) {
        llm_json_put_text(out, i > 0 ? ", " : "");
        st = put_message(out, marks, &messages->item[i], err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "messages[%" PRIu32 "]", i);
    }
    llm_json_put_text(out, "]");
    for (uint32_t i = 0; i < root->n; i++) {
        if (&root->item[i] == messages)
            continue;
        llm_json_put_text(out, ", ");
        llm_json_put_string(out, json_name(root, i));
        llm_json_put_text(out, ": ");
        llm_json_put_value(out, &root->item[i]);
    }
    llm_json_put_text(out, "}");
    return st;
}

ggl_status llm_talk_texts(ggl_str json, const char *name, const llm_part_marks *marks, char **text,
                          size_t *n, ggl_error *err) {
    static const llm_part_marks none;
    llm_json *doc = NULL;
    llm_json_out out = {0};
    *text = NULL;
    *n = 0;
    ggl_status st = llm_json_parse(&doc, json.s, json.n, name, err);
    if (st == GGL_OK)
        st = put_talk(&out, marks ? marks : &none, &doc->root, err);
    if (st == GGL_OK && out.failed)
        st = ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
    llm_json_free(doc);
    if (st != GGL_OK) {
        ggl_free(out.s);
        return st;
    }
    *text = out.s;
    *n = out.n;
    return GGL_OK;
}
