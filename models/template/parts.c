/* Contents that are lists of parts, as texts. */
#include "parts.h"

#include <inttypes.h>
#include <string.h>

#include "common/json_write.h"
#include "llm/internal/talk.h"

/* Types of parts, and the member with their text; NULL: they are not text. */
static const struct {
    const char *type, *text;
} types[] = {{"text", "text"},         {"input_text", "text"},     {"output_text", "text"},
             {"summary_text", "text"}, {"reasoning_text", "text"}, {"refusal", "refusal"},
             {"image", NULL},          {"image_url", NULL},        {"input_image", NULL},
             {"audio", NULL},          {"input_audio", NULL},      {"audio_url", NULL},
             {"video", NULL},          {"input_video", NULL},      {"video_url", NULL},
             {"file", NULL},           {"input_file", NULL},       {"computer_screenshot", NULL}};

ggl_str llm_part_left_out(bool is_picture) {
    static const char picture[] = "[picture left out: this model reads only text]",
                      file[] = "[file left out: this model reads only text]";
    return is_picture ? (ggl_str){picture, sizeof picture - 1} : (ggl_str){file, sizeof file - 1};
}

ggl_status llm_part_read(llm_part *out, const json_value *part, bool in_result, ggl_error *err) {
    enum { N = sizeof types / sizeof *types };
    const json_value *type = llm_json_get_kind(part, "type", JSON_STRING);
    size_t k = 0;
    if (!type)
        return ggl_fail(err, GGL_USAGE, "a part must be an object with a \"type\"");
    while (k < N && !llm_json_is(type, types[k].type))
        k++;
    if (k == N)
        return ggl_fail(err, GGL_USAGE, "\"%.*s\" is not a type of part; use \"text\"",
                        (int)(type->n < 40 ? type->n : 40), type->s);
    if (!types[k].text && in_result) {
        *out = (llm_part){llm_part_left_out(strstr(types[k].type, "image") || k + 1 == N), true};
        return GGL_OK;
    }
    if (!types[k].text)
        return ggl_fail(
            err, GGL_UNSUPPORTED, "\"%s\" is not supported: the model reads only text%s",
            types[k].type,
            strstr(types[k].type, "image") ? ", unless it is opened with an eye (mmproj)" : "");
    const json_value *v = llm_json_get_kind(part, types[k].text, JSON_STRING);
    if (!v)
        return ggl_fail(err, GGL_USAGE, "a part of type \"%s\" needs \"%s\", a string",
                        types[k].type, types[k].text);
    *out = (llm_part){json_str(v), false};
    return GGL_OK;
}

/* Writes a list of parts as one text, a line for each. */
static ggl_status put_parts(llm_json_out *out, const json_value *list, bool in_result,
                            ggl_error *err) {
    llm_json_out text = {0};
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < list->n && st == GGL_OK; i++) {
        llm_part part;
        st = llm_part_read(&part, &list->item[i], in_result, err);
        if (st != GGL_OK) {
            (void)ggl_within(err, st, "content[%zu]", i);
            break;
        }
        llm_json_put(&text, "\n", i > 0);
        llm_json_put(&text, part.text.s, part.text.n);
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

static ggl_status put_message(llm_json_out *out, const json_value *message, ggl_error *err) {
    const bool in_result = llm_json_is(llm_json_get(message, "role"), "tool");
    ggl_status st = check_content(message, err);
    llm_json_put_text(out, "{");
    for (uint32_t i = 0; i < message->n && st == GGL_OK; i++) {
        const json_value *v = &message->item[i];
        llm_json_put_text(out, i > 0 ? ", " : "");
        llm_json_put_string(out, json_name(message, i));
        llm_json_put_text(out, ": ");
        if (v->kind == JSON_ARRAY && ggl_str_is(json_name(message, i), "content"))
            st = put_parts(out, v, in_result, err);
        else if (v->kind == JSON_ARRAY && ggl_str_is(json_name(message, i), "tool_calls"))
            put_calls(out, v, 0);
        else
            llm_json_put_value(out, v);
    }
    llm_json_put_text(out, "}");
    return st;
}

static ggl_status put_talk(llm_json_out *out, const json_value *root, ggl_error *err) {
    const json_value *messages = llm_json_get_kind(root, "messages", JSON_ARRAY);
    ggl_status st = GGL_OK;
    if (!messages || messages->n == 0)
        return ggl_fail(err, GGL_FORMAT, "a conversation needs \"messages\", at least one");
    llm_json_put_text(out, "{\"messages\": [");
    for (uint32_t i = 0; i < messages->n && st == GGL_OK; i++) {
        llm_json_put_text(out, i > 0 ? ", " : "");
        st = put_message(out, &messages->item[i], err);
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

ggl_status llm_talk_texts(ggl_str json, const char *name, char **text, size_t *n, ggl_error *err) {
    llm_json *doc = NULL;
    llm_json_out out = {0};
    *text = NULL;
    *n = 0;
    ggl_status st = llm_json_parse(&doc, json.s, json.n, name, err);
    if (st == GGL_OK)
        st = put_talk(&out, &doc->root, err);
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
