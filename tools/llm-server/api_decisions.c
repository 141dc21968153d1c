/* Questions that are answered by probabilities: OpenAI's /v1/decisions, and /v1/systemone of TypeSafe, llama.cpp and Ollama. A
 * question becomes a message of the user, whose answer is one of its labels. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api_openai.h"
#include "server.h"

enum { MOST_QUESTIONS = 400, MOST_CHOICES = 255 };

/* A place in the request, for messages. */
typedef struct place {
    char s[160];
} place;

static place at_index(const char *name, size_t i, const char *more) {
    place p;
    snprintf(p.s, sizeof p.s, "%.100s[%zu]%.40s", name, i, more);
    return p;
}

static ggl_status wrong(const place *at, const char *what, ggl_error *err) {
    return ggl_fail(err, GGL_USAGE, "\"%s\" %s", at->s, what);
}

static bool is_text(const json_value *v) {
    return v && v->kind == JSON_STRING && v->n > 0;
}

/* --- texts -------------------------------------------------------------------------------------- */

/* Writes a text, or anything else as JSON. */
static void put_any(llm_json_out *out, const json_value *v) {
    if (v->kind == JSON_STRING)
        llm_json_put(out, v->s, v->n);
    else
        llm_json_put_value(out, v);
}

/* Writes a part of a content: a text, or JSON. */
static ggl_status put_part(llm_json_out *out, const json_value *v, const place *at,
                           ggl_error *err) {
    const json_value *type = v->kind == JSON_OBJECT ? llm_json_get(v, "type") : NULL;
    const json_value *text = NULL;
    if (type && llm_json_is(type, "input_json"))
        text = llm_json_get(v, "data");
    else if (type && llm_json_is(type, "refusal"))
        text = llm_json_get_kind(v, "refusal", JSON_STRING);
    else if (type && (llm_json_is(type, "input_text") || llm_json_is(type, "output_text")))
        text = llm_json_get_kind(v, "text", JSON_STRING);
    else if (type && llm_json_is(type, "input_image"))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "\"%s\" is a picture, but decisions are made of texts and JSON alone",
                        at->s);
    if (!text)
        return wrong(at,
                     "must be a part of type \"input_text\" or \"input_json\", with its \"text\" "
                     "or \"data\"",
                     err);
    put_any(out, text);
    return GGL_OK;
}

/* Writes a content: a text, or a list of parts, with line breaks between them. */
static ggl_status put_content(llm_json_out *out, const json_value *v, const place *at,
                              ggl_error *err) {
    ggl_status st = GGL_OK;
    if (!v || (v->kind != JSON_STRING && v->kind != JSON_ARRAY) || v->n == 0)
        return wrong(at, "must be a text, or a list of parts, and not empty", err);
    if (v->kind == JSON_STRING)
        put_any(out, v);
    for (size_t i = 0; v->kind == JSON_ARRAY && i < v->n && st == GGL_OK; i++) {
        const place part = at_index(at->s, i, "");
        llm_json_put_text(out, i > 0 ? "\n" : "");
        st = put_part(out, &v->item[i], &part, err);
    }
    return st;
}

/* Copies what was written to the arena, and empties it. */
static ggl_status take_text(ask *a, llm_json_out *out, ggl_str *text, ggl_error *err) {
    char *s = out->failed ? NULL : ggl_arena_strndup(&a->arena, out->s ? out->s : "", out->n);
    *text = (ggl_str){s, out->n};
    ggl_free(out->s);
    *out = (llm_json_out){0};
    return s ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
}

/* --- OpenAI's input ----------------------------------------------------------------------------- */

static ggl_status put_message(llm_json_out *out, const json_value *v, bool alone, const place *at,
                              ggl_error *err) {
    const json_value *role = llm_json_get(v, "role");
    const bool known = role && (llm_json_is(role, "user") || llm_json_is(role, "developer") ||
                                llm_json_is(role, "system") || llm_json_is(role, "assistant"));
    place content;
    snprintf(content.s, sizeof content.s, "%.140s.content", at->s);
    if (!known)
        return ggl_fail(err, GGL_USAGE,
                        "\"%s.role\" must be \"user\", \"developer\", \"system\" or \"assistant\"",
                        at->s);
    if (!alone || !llm_json_is(role, "user"))
        llm_json_format(out, "%.*s: ", (int)role->n, role->s);
    return put_content(out, llm_json_get(v, "content"), &content, err);
}

/* Calls of tools, and their results. */
static ggl_status put_call(llm_json_out *out, const json_value *v, const json_value *type,
                           const place *at, ggl_error *err) {
    const bool is_function = llm_json_is(type, "function_call"),
               is_custom = llm_json_is(type, "custom_tool_call");
    const json_value *name = llm_json_get(v, "name");
    place output;
    snprintf(output.s, sizeof output.s, "%.140s.output", at->s);
    if (!is_function && !is_custom) {
        llm_json_put_text(out, "result: ");
        return put_content(out, llm_json_get(v, "output"), &output, err);
    }
    const json_value *given =
        llm_json_get_kind(v, is_function ? "arguments" : "input", JSON_STRING);
    if (!is_text(name) || !given)
        return wrong(at, "must have a \"name\", and its \"arguments\" or \"input\", as texts", err);
    llm_json_put_text(out, "call: ");
    put_any(out, name);
    llm_json_put_text(out, " ");
    put_any(out, given);
    return GGL_OK;
}

static ggl_status put_item(llm_json_out *out, const json_value *v, bool alone, const place *at,
                           ggl_error *err) {
    static const char *const calls[] = {"function_call", "function_call_output", "custom_tool_call",
                                        "custom_tool_call_output"};
    const json_value *type = v->kind == JSON_OBJECT ? llm_json_get(v, "type") : NULL;
    for (size_t i = 0; type && i < sizeof calls / sizeof *calls; i++)
        if (llm_json_is(type, calls[i]))
            return put_call(out, v, type, at, err);
    if (v->kind != JSON_OBJECT || (type && !llm_json_is(type, "message")))
        return wrong(at, "must be a message, or a call of a tool or its output", err);
    return put_message(out, v, alone, at, err);
}

static ggl_status read_input(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    llm_json_out out = {0};
    ggl_status st = GGL_OK;
    (void)facts;
    if ((v->kind != JSON_STRING && v->kind != JSON_ARRAY) || v->n == 0)
        return ggl_fail(err, GGL_USAGE,
                        "\"input\" must be a text, or a list of messages, and not empty");
    if (v->kind == JSON_STRING)
        put_any(&out, v);
    for (size_t i = 0; v->kind == JSON_ARRAY && i < v->n && st == GGL_OK; i++) {
        const place at = at_index("input", i, "");
        llm_json_put_text(&out, i > 0 ? "\n\n" : "");
        st = put_item(&out, &v->item[i], v->n == 1, &at, err);
    }
    if (st == GGL_OK)
        return take_text(a, &out, &a->query, err);
    ggl_free(out.s);
    return st;
}

/* --- questions ---------------------------------------------------------------------------------- */

static void put_option(llm_json_out *out, ggl_str name, const json_value *description) {
    llm_json_put_text(out, "\n- ");
    llm_json_put(out, name.s, name.n);
    if (description && description->kind != JSON_NULL) {
        llm_json_put_text(out, ": ");
        put_any(out, description);
    }
}

static ggl_status make_labels(ask *a, ask_question *q, size_t n, ggl_error *err) {
    q->label = ggl_arena_alloc(&a->arena, n, sizeof *q->label);
    q->n_labels = n;
    return q->label ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
}

static ggl_str number(ask *a, size_t k) {
    char text[24];
    const size_t n = (size_t)snprintf(text, sizeof text, "%zu", k);
    return (ggl_str){ggl_arena_strndup(&a->arena, text, n), n};
}

static ggl_status yes_or_no(ask *a, ask_question *q, llm_json_out *out, ggl_error *err) {
    const ggl_status st = make_labels(a, q, 2, err);
    if (st != GGL_OK)
        return st;
    q->label[0] = (ggl_str){"Yes", 3};
    q->label[1] = (ggl_str){"No", 2};
    llm_json_put_text(out, "\nIs that so? Answer with Yes or No, and nothing else.");
    return GGL_OK;
}

/* The number of options: 2 to 255. */
static ggl_status check_options(const place *at, const json_value *v, json_kind kind,
                                ggl_error *err) {
    if (v && v->kind == kind && v->n >= 2 && v->n <= MOST_CHOICES)
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE, "\"%s\" must be %s of 2 to %d, not %u", at->s,
                    kind == JSON_ARRAY ? "a list" : "an object", (int)MOST_CHOICES,
                    v && v->kind == kind ? (unsigned)v->n : 0u);
}

/* Labels that are the same text cannot be told from each other. */
static ggl_status check_label(const place *at, const ask_question *q, size_t k, ggl_error *err) {
    for (size_t i = 0; i < k; i++)
        if (q->label[i].n == q->label[k].n &&
            memcmp(q->label[i].s, q->label[k].s, q->label[k].n) == 0)
            return wrong(at, "is the same text as one before it", err);
    return q->label[k].n > 0 ? GGL_OK : wrong(at, "must not be empty", err);
}

static void end_choice(llm_json_out *out) {
    llm_json_put_text(out, "\nAnswer with one of these options, word for word, and nothing else.");
}

/* OpenAI's "choices": [{"value": .., "description": ..}]. */
static ggl_status read_choices(ask *a, ask_question *q, llm_json_out *out, const place *at,
                               ggl_error *err) {
    const json_value *list = llm_json_get(q->from, "choices");
    place choices;
    snprintf(choices.s, sizeof choices.s, "%.140s.choices", at->s);
    ggl_status st = check_options(&choices, list, JSON_ARRAY, err);
    if (st == GGL_OK)
        st = make_labels(a, q, list->n, err);
    llm_json_put_text(out, "\nOptions:");
    for (size_t k = 0; st == GGL_OK && k < list->n; k++) {
        const place value = at_index(choices.s, k, ".value");
        const json_value *c = &list->item[k];
        const json_value *v = c->kind == JSON_OBJECT ? llm_json_get(c, "value") : NULL;
        if (!v || (v->kind != JSON_STRING && v->kind != JSON_BOOL))
            return wrong(&value, "must be a text, true or false", err);
        q->label[k] = v->kind == JSON_STRING ? json_str(v)
                      : v->flag              ? (ggl_str){"true", 4}
                                             : (ggl_str){"false", 5};
        st = check_label(&value, q, k, err);
        put_option(out, q->label[k], llm_json_get(c, "description"));
    }
    end_choice(out);
    return st;
}

/* "criteria": {NAME: DESCRIPTION, ..}. */
static ggl_status read_named(ask *a, ask_question *q, llm_json_out *out, const place *at,
                             ggl_error *err) {
    const json_value *all = llm_json_get(q->from, "criteria");
    place criteria;
    snprintf(criteria.s, sizeof criteria.s, "%.140s.criteria", at->s);
    ggl_status st = check_options(&criteria, all, JSON_OBJECT, err);
    if (st == GGL_OK)
        st = make_labels(a, q, all->n, err);
    llm_json_put_text(out, "\nOptions:");
    for (size_t k = 0; st == GGL_OK && k < all->n; k++) {
        q->label[k] = json_name(all, k);
        st = check_label(&criteria, q, k, err);
        put_option(out, q->label[k], &all->item[k]);
    }
    end_choice(out);
    return st;
}

/* Levels of a score are answered by their numbers. */
static ggl_status read_levels(ask *a, ask_question *q, llm_json_out *out, const place *at,
                              const char *name, ggl_error *err) {
    const json_value *list = llm_json_get(q->from, name);
    place levels;
    snprintf(levels.s, sizeof levels.s, "%.140s.%.10s", at->s, name);
    ggl_status st = check_options(&levels, list, JSON_ARRAY, err);
    if (st == GGL_OK)
        st = make_labels(a, q, list->n, err);
    llm_json_put_text(out, "\nLevels, from the lowest to the highest:");
    for (size_t k = 0; st == GGL_OK && k < list->n; k++) {
        const json_value *v = &list->item[k];
        const json_value *label = v->kind == JSON_OBJECT ? llm_json_get(v, "label") : v;
        const place level = at_index(levels.s, k, v->kind == JSON_OBJECT ? ".label" : "");
        if (!is_text(label))
            return wrong(&level, "must be a text, and not empty", err);
        q->label[k] = number(a, k);
        if (!q->label[k].s)
            return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
        put_option(out, q->label[k], label);
        const json_value *more = v->kind == JSON_OBJECT ? llm_json_get(v, "description") : NULL;
        if (more && more->kind == JSON_STRING) {
            llm_json_put_text(out, ". ");
            put_any(out, more);
        }
    }
    llm_json_put_text(out, "\nAnswer with the number of one level, and nothing else.");
    return st;
}

/* One kind of questions, by its names in the two APIs. */
typedef ggl_status read_fn(ask *a, ask_question *q, llm_json_out *out, const place *at,
                           ggl_error *err);

static ggl_status read_openai(ask *a, ask_question *q, llm_json_out *out, const place *at,
                              ggl_error *err) {
    return q->type == ASK_YES_NO   ? yes_or_no(a, q, out, err)
           : q->type == ASK_OPTION ? read_choices(a, q, out, at, err)
                                   : read_levels(a, q, out, at, "levels", err);
}

static ggl_status read_systemone(ask *a, ask_question *q, llm_json_out *out, const place *at,
                                 ggl_error *err) {
    const json_value *criteria = llm_json_get(q->from, "criteria");
    if (q->type == ASK_OPTION)
        return read_named(a, q, out, at, err);
    if (q->type == ASK_LEVEL)
        return read_levels(a, q, out, at, "criteria", err);
    for (size_t k = 0; criteria && criteria->kind == JSON_OBJECT && k < criteria->n; k++)
        put_option(out, json_name(criteria, k), &criteria->item[k]);
    return yes_or_no(a, q, out, err);
}

static const char *const openai_types[] = {"predicate", "choice", "score"};
static const char *const systemone_types[] = {"noul", "choice", "score"};

static ggl_status read_type(ask_question *q, const char *const type[3], const place *at,
                            ggl_error *err) {
    const json_value *v = q->from->kind == JSON_OBJECT ? llm_json_get(q->from, "type") : NULL;
    for (int k = 0; v && k < 3; k++)
        if (llm_json_is(v, type[k])) {
            q->type = k;
            return GGL_OK;
        }
    return ggl_fail(err, GGL_USAGE, "\"%s.type\" must be \"%s\", \"%s\" or \"%s\"", at->s, type[0],
                    type[1], type[2]);
}

static ggl_status read_question(ask *a, ask_question *q, bool is_openai, const place *at,
                                ggl_error *err) {
    llm_json_out out = {0};
    place place_of;
    snprintf(place_of.s, sizeof place_of.s, "%.140s.instructions", at->s);
    ggl_status st = read_type(q, is_openai ? openai_types : systemone_types, at, err);
    if (st != GGL_OK)
        return st;
    const json_value *said = llm_json_get(q->from, "instructions");
    if (is_openai)
        st = put_content(&out, said, &place_of, err);
    else if (!said || said->kind < JSON_STRING || said->n == 0)
        st = wrong(&place_of, "must be a text, an object or a list, and not empty", err);
    else
        put_any(&out, said);
    if (st == GGL_OK)
        st = (is_openai ? read_openai : read_systemone)(a, q, &out, at, err);
    if (st == GGL_OK)
        return take_text(a, &out, &q->text, err);
    ggl_free(out.s);
    return st;
}

/* --- requests ----------------------------------------------------------------------------------- */

/* The questions are read last, since their texts begin with the input. */
static ggl_status keep_questions(ask *a, const json_value *v, json_kind kind, ggl_error *err) {
    if (v->kind != kind || v->n == 0 || v->n > MOST_QUESTIONS)
        return ggl_fail(err, GGL_USAGE, "\"questions\" must be %s of 1 to %d questions",
                        kind == JSON_ARRAY ? "a list" : "an object", (int)MOST_QUESTIONS);
    a->question = ggl_arena_alloc(&a->arena, v->n, sizeof *a->question);
    if (!a->question)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    for (size_t i = 0; i < v->n; i++)
        a->question[i] = (ask_question){
            .from = &v->item[i], .name = kind == JSON_OBJECT ? json_name(v, i) : (ggl_str){0}};
    a->n_prompts = v->n;
    return GGL_OK;
}

static ggl_status read_list(ask *a, const json_value *v, const server_facts *facts,
                            ggl_error *err) {
    (void)facts;
    return keep_questions(a, v, JSON_ARRAY, err);
}

static ggl_status read_map(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)facts;
    return keep_questions(a, v, JSON_OBJECT, err);
}

static ggl_status read_state(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    llm_json_out out = {0};
    (void)facts;
    if ((v->kind != JSON_STRING && v->kind != JSON_ARRAY && v->kind != JSON_OBJECT) || v->n == 0)
        return ggl_fail(err, GGL_USAGE,
                        "\"state\" must be a text, an object or a list, and not empty");
    put_any(&out, v);
    return take_text(a, &out, &a->query, err);
}

static const field openai_fields[] = {{"model", FIELD_FN, .fn = openai_field_model},
                                      {"input", FIELD_FN, .fn = read_input},
                                      {"questions", FIELD_FN, .fn = read_list},
                                      {"prompt_cache_key", .kind = FIELD_IGNORED},
                                      {"prompt_cache_options", .kind = FIELD_IGNORED},
                                      {"safety_identifier", .kind = FIELD_IGNORED},
                                      {0}};

static const field systemone_fields[] = {
    {"model", FIELD_FN, .fn = openai_field_model},
    {"state", FIELD_FN, .fn = read_state},
    {"questions", FIELD_FN, .fn = read_map},
    {"keep_alive", .kind = FIELD_IGNORED},
    {"images", FIELD_REFUSED, .fn = field_is_empty, .why = "decisions are made of texts alone"},
    {0}};

static ggl_status read_all(ask *a, bool is_openai, const server_facts *facts, const char **param,
                           ggl_error *err) {
    *param = NULL;
    ggl_status st = openai_begin(a, ASK_CHOOSE, err);
    a->talk_name = "questions";
    if (st == GGL_OK)
        st = read_fields(a, &a->doc->root, is_openai ? openai_fields : systemone_fields, facts,
                         param, err);
    if (st != GGL_OK)
        return st;
    *param = a->query.s ? "questions" : is_openai ? "input" : "state";
    if (!a->query.s || a->n_prompts == 0)
        return ggl_fail(err, GGL_USAGE, "\"%s\" is missing", *param);
    for (size_t i = 0; i < a->n_prompts && st == GGL_OK; i++) {
        ask_question *q = &a->question[i];
        place at = at_index("questions", i, "");
        if (!is_openai)
            snprintf(at.s, sizeof at.s, "questions.%.*s", (int)(q->name.n < 60 ? q->name.n : 60),
                     q->name.s);
        st = read_question(a, q, is_openai, &at, err);
        const json_value *name = st == GGL_OK && is_openai ? llm_json_get(q->from, "name") : NULL;
        if (name && name->kind != JSON_STRING && name->kind != JSON_NULL)
            return ggl_fail(err, GGL_USAGE, "\"%s.name\" must be a text", at.s);
        if (name && name->kind == JSON_STRING)
            q->name = json_str(name);
    }
    if (st == GGL_OK)
        *param = NULL;
    return st;
}

static ggl_status read_decisions(ask *a, const server_facts *facts, const char **param,
                                 ggl_error *err) {
    return read_all(a, true, facts, param, err);
}

static ggl_status read_systemone_request(ask *a, const server_facts *facts, const char **param,
                                         ggl_error *err) {
    return read_all(a, false, facts, param, err);
}

/* --- answers ------------------------------------------------------------------------------------ */

static void put_number(llm_json_out *out, const char *name, double x) {
    char text[80];
    snprintf(text, sizeof text, ",\"%s\":%.9g", name, x);
    llm_json_put_text(out, text);
}

static size_t likeliest(const float *p, size_t n) {
    size_t best = 0;
    for (size_t k = 1; k < n; k++)
        best = p[k] > p[best] ? k : best;
    return best;
}

/* 1 if one label has all of the probability, 0 if all have the same: 1 - entropy / log n. */
static double confidence(const float *p, size_t n) {
    double h = 0;
    for (size_t k = 0; k < n; k++)
        h -= p[k] > 0 ? (double)p[k] * log((double)p[k]) : 0;
    const double c = 1 - h / log((double)n);
    return c < 0 ? 0 : c > 1 ? 1 : c;
}

static double mean(const float *p, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (double)k * (double)p[k];
    return sum;
}

static const json_value *level_label(const json_value *v) {
    return v->kind == JSON_OBJECT ? llm_json_get(v, "label") : v;
}

/* The elements of OpenAI's "probabilities". */
static void put_probabilities(llm_json_out *out, const ask_question *q, const float *p) {
    const bool is_score = q->type == ASK_LEVEL;
    const json_value *list = llm_json_get(q->from, is_score ? "levels" : "choices");
    llm_json_put_text(out, ",\"probabilities\":[");
    for (size_t k = 0; k < q->n_labels; k++) {
        llm_json_put_text(out, k > 0 ? ",{\"value\":" : "{\"value\":");
        if (is_score) {
            llm_json_put(out, q->label[k].s, q->label[k].n);
            llm_json_put_text(out, ",\"label\":");
            llm_json_put_value(out, level_label(&list->item[k]));
        } else {
            llm_json_put_value(out, llm_json_get(&list->item[k], "value"));
        }
        put_number(out, "probability", p[k]);
        llm_json_put_text(out, "}");
    }
    llm_json_put_text(out, "]");
}

static void put_answer(llm_json_out *out, const ask_question *q, const float *p) {
    llm_json_format(out, "{'type':'%s','name':", openai_types[q->type]);
    if (q->name.s)
        llm_json_put_string(out, q->name);
    else
        llm_json_put_text(out, "null");
    if (q->type == ASK_YES_NO) {
        put_number(out, "probability", p[0]);
    } else {
        const json_value *choices = llm_json_get(q->from, "choices");
        if (q->type == ASK_LEVEL) {
            put_number(out, "score", mean(p, q->n_labels));
        } else {
            llm_json_put_text(out, ",\"choice\":");
            llm_json_put_value(out,
                               llm_json_get(&choices->item[likeliest(p, q->n_labels)], "value"));
        }
        put_number(out, "confidence", confidence(p, q->n_labels));
        put_probabilities(out, q, p);
    }
    llm_json_put_text(out, "}");
}

static const float *shares_of(const answer *x, int i) {
    return x->embedding + x->choice[i].first_vector;
}

static void decisions_whole(const answer *x, llm_json_out *out) {
    const long long n = (long long)x->counts.n_prompt, n_cached = (long long)x->counts.n_reused;
    llm_json_put_text(out, "{\"model\":");
    openai_put_model(x, out);
    llm_json_put_text(out, ",\"answers\":[");
    for (int i = 0; i < x->n_choices; i++) {
        llm_json_put_text(out, i > 0 ? "," : "");
        put_answer(out, &x->ask->question[i], shares_of(x, i));
    }
    llm_json_format(out,
                    "],'usage':{'input_tokens':%lld,'input_tokens_details':{'cached_tokens':%lld,"
                    "'cache_write_tokens':0},'output_tokens':0,'output_tokens_details':"
                    "{'reasoning_tokens':0},'total_tokens':%lld}}",
                    n, n_cached, n);
}

/* {"NAME":P,..}: of a score, by the numbers of its levels. */
static void put_named(llm_json_out *out, const ask_question *q, const float *p) {
    char text[40];
    llm_json_put_text(out, ",\"probabilities\":{");
    for (size_t k = 0; k < q->n_labels; k++) {
        llm_json_put_text(out, k > 0 ? "," : "");
        llm_json_put_string(out, q->label[k]);
        snprintf(text, sizeof text, ":%.9g", (double)p[k]);
        llm_json_put_text(out, text);
    }
    llm_json_put_text(out, "}");
}

static void put_systemone(llm_json_out *out, const ask_question *q, const float *p) {
    llm_json_format(out, "{'type':'%s'", systemone_types[q->type]);
    if (q->type == ASK_YES_NO) {
        put_number(out, "noul", p[0]);
    } else {
        const json_value *criteria = llm_json_get(q->from, "criteria");
        if (q->type == ASK_LEVEL) {
            put_number(out, "score", mean(p, q->n_labels));
            llm_json_put_text(out, ",\"legend\":{");
            for (size_t k = 0; k < q->n_labels; k++) {
                llm_json_put_text(out, k > 0 ? "," : "");
                llm_json_put_string(out, q->label[k]);
                llm_json_put_text(out, ":");
                llm_json_put_value(out, level_label(&criteria->item[k]));
            }
            llm_json_put_text(out, "}");
        } else {
            llm_json_put_text(out, ",\"choice\":");
            llm_json_put_string(out, q->label[likeliest(p, q->n_labels)]);
        }
        put_named(out, q, p);
        put_number(out, "confidence", confidence(p, q->n_labels));
    }
    llm_json_put_text(out, "}");
}

static void systemone_whole(const answer *x, llm_json_out *out) {
    llm_json_put_text(out, "{\"model\":");
    openai_put_model(x, out);
    llm_json_put_text(out, ",\"answers\":{");
    for (int i = 0; i < x->n_choices; i++) {
        llm_json_put_text(out, i > 0 ? "," : "");
        llm_json_put_string(out, x->ask->question[i].name);
        llm_json_put_text(out, ":");
        put_systemone(out, &x->ask->question[i], shares_of(x, i));
    }
    llm_json_format(out, "},'usage':{'input_tokens':%lld,'output_tokens':0}}",
                    (long long)x->counts.n_prompt);
}

const dialect api_decisions = {.name = "openai_decisions",
                               .fields = openai_fields,
                               .read = read_decisions,
                               .whole = decisions_whole,
                               .error = openai_error};

const dialect api_systemone = {.name = "systemone",
                               .fields = systemone_fields,
                               .read = read_systemone_request,
                               .whole = systemone_whole,
                               .error = openai_error};
