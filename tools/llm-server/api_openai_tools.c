/* Reads the tools of OpenAI's requests, and which of them may or must be called. */
#include <string.h>

#include "api_openai.h"
#include "api_shape.h"
#include "ggl/internal/index.h"

enum { MAX_NAME = 256 };

/* What "tool_choice" says. */
typedef struct tool_rule {
    ask_tools choice;
    ggl_str name;              /* ASK_TOOLS_NAMED */
    const json_value *allowed; /* a list of tools; NULL: all of them */
} tool_rule;

/* The object that describes a function, or a tool with free text. */
static const json_value *function_of(const json_value *tool, openai_style style) {
    return style == OPENAI_FLAT
               ? tool
               : llm_json_get_kind(tool,
                                   llm_json_has(tool, "type", "custom") ? "custom" : "function",
                                   JSON_OBJECT);
}

/* True for tools that this server does not know, such as those that OpenAI's servers would run. Coding agents send some with
 * each request. The model is not shown them; with strict fields they are errors, except for the search of the web. */
static bool is_left_out(const ask *a, const json_value *tool, openai_style style) {
    static const char search[] = "web_search";
    const json_value *type = llm_json_get_kind(tool, "type", JSON_STRING);
    if (!type || llm_json_is(type, "function") || llm_json_is(type, "custom") ||
        (style == OPENAI_FLAT && llm_json_is(type, "namespace")))
        return false;
    return !a->ignored.strict || (style == OPENAI_FLAT && type->n >= sizeof search - 1 &&
                                  memcmp(type->s, search, sizeof search - 1) == 0);
}

ggl_str openai_shown_name(ask *a, ggl_str space, ggl_str name) {
    if (space.n == 0)
        return name;
    char *s = ggl_arena_alloc(&a->arena, space.n + name.n + 3, 1);
    if (!s)
        return (ggl_str){NULL, 0};
    memcpy(s, space.s, space.n);
    memcpy(s + space.n, "__", 2);
    if (name.n > 0)
        memcpy(s + space.n + 2, name.s, name.n);
    return (ggl_str){s, space.n + name.n + 2};
}

/* Says where the name of a function belongs. */
static ggl_status no_name(const json_value *tool, bool is_custom, openai_style style,
                          ggl_error *err) {
    const char *inner = is_custom ? "custom" : "function";
    const bool is_flat = llm_json_get_kind(tool, "name", JSON_STRING) != NULL,
               is_nested =
                   llm_json_get_kind(llm_json_get(tool, inner), "name", JSON_STRING) != NULL;
    char where[160] = "";
    if (style == OPENAI_NESTED && is_flat)
        snprintf(where, sizeof where,
                 ", which belongs in \"%s\": {\"type\": \"%s\", \"%s\": {\"name\": ..}}", inner,
                 inner, inner);
    else if (style == OPENAI_FLAT && is_nested)
        snprintf(where, sizeof where, ", which belongs beside \"type\", not in \"%s\"", inner);
    return ggl_fail(err, GGL_USAGE, "a function needs a \"name\" of 1 to %d bytes%s", MAX_NAME,
                    where);
}

/* Reads the names of a tool, or of one that "tool_choice" names. */
static ggl_status read_names(ask *a, const json_value *tool, openai_style style, openai_tool *t,
                             ggl_error *err) {
    const json_value *type = llm_json_get_kind(tool, "type", JSON_STRING);
    const json_value *v = llm_json_get_kind(function_of(tool, style), "name", JSON_STRING);
    if (!type)
        return ggl_fail(err, GGL_USAGE, "a tool must be an object with a \"type\"");
    t->is_custom = llm_json_is(type, "custom");
    if (!t->is_custom && !llm_json_is(type, "function"))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "tools of type \"%.*s\" are not supported; the server runs no tools, give "
                        "functions",
                        (int)(type->n < 40 ? type->n : 40), type->s);
    if (!v || v->n == 0 || v->n > MAX_NAME)
        return no_name(tool, t->is_custom, style, err);
    t->tool = tool;
    t->name = json_str(v);
    t->shown = openai_shown_name(a, t->space, t->name);
    return t->shown.s ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for tools");
}

/* --- tools -------------------------------------------------------------------------------------- */

static ggl_status check_bool(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    (void)a, (void)facts;
    return v->kind == JSON_BOOL
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "\"strict\" and \"defer_loading\" must be true or false");
}

static ggl_status check_string(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)a, (void)facts;
    return v->kind == JSON_STRING
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "\"name\" and \"description\" must be strings");
}

static ggl_status check_schema(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)a, (void)facts;
    return v->kind == JSON_OBJECT
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "\"parameters\" must be a schema, an object");
}

/* Accepts ["direct"]: the model alone calls tools. */
static ggl_status check_callers(ask *a, const json_value *v, const server_facts *facts,
                                ggl_error *err) {
    (void)a, (void)facts;
    return v->kind == JSON_ARRAY && v->n == 1 && llm_json_is(v->item, "direct")
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED, "not supported");
}

static const char defer[] = "defer_loading";

static const field tool_fields[] = {{"type", .kind = FIELD_IGNORED},
                                    {"defer_loading", FIELD_FN, .fn = check_bool},
                                    {"function", .kind = FIELD_IGNORED},
                                    {"cache_control", .kind = FIELD_IGNORED},
                                    {0}};

static const field function_fields[] = {
    {"type", .kind = FIELD_IGNORED},
    {"name", FIELD_FN, .fn = check_string},
    {"description", FIELD_FN, .fn = check_string},
    {"parameters", FIELD_FN, .fn = check_schema},
    {"strict", FIELD_FN, .fn = check_bool},
    {"output_schema", .kind = FIELD_IGNORED},
    {"defer_loading", FIELD_FN, .fn = check_bool},
    {"allowed_callers", FIELD_REFUSED, .fn = check_callers, .why = "the model alone calls tools"},
    {0}};

ggl_status openai_make_tool(ask *a, json_value *out, ggl_str name, const json_value *description,
                            const json_value *parameters, bool deferred, ggl_error *err) {
    llm_json_member f[3] = {{{"name", 4}, llm_json_of_str(name)}};
    size_t n = 1;
    json_value function;
    if (description && description->kind != JSON_NULL)
        f[n++] = llm_json_member_of("description", *description);
    f[n++] = llm_json_member_of("parameters", *parameters);
    bool made = llm_json_make_object(&function, &a->arena, f, n);
    const llm_json_member m[] = {{{"type", 4}, llm_json_of_text("function")},
                                 {{"function", 8}, function},
                                 {{"defer_loading", 13}, llm_json_of_bool(true)}};
    made = made && llm_json_make_object(out, &a->arena, m, deferred ? 3 : 2);
    return made ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for tools");
}

/* {"type": "object", "properties": {}}; input: with one string, "input", that is required. */
static bool make_parameters(ask *a, json_value *out, bool input) {
    ggl_arena *arena = &a->arena;
    json_value type = {0}, properties = {0}, required = {0}, name = llm_json_of_text("input");
    const llm_json_member string = {{"type", 4}, llm_json_of_text("string")};
    bool made = llm_json_make_object(&type, arena, &string, 1);
    const llm_json_member one = {{"input", 5}, type};
    made = made && llm_json_make_object(&properties, arena, &one, input) &&
           llm_json_make_array(&required, arena, &name, 1);
    const llm_json_member m[] = {{{"type", 4}, llm_json_of_text("object")},
                                 {{"properties", 10}, properties},
                                 {{"required", 8}, required}};
    return made && llm_json_make_object(out, arena, m, input ? 3 : 2);
}

static const field custom_fields[] = {{"type", .kind = FIELD_IGNORED},
                                      {"name", FIELD_FN, .fn = check_string},
                                      {"description", FIELD_FN, .fn = check_string},
                                      {"format", .kind = FIELD_IGNORED},
                                      {"defer_loading", .kind = FIELD_IGNORED},
                                      {0}};

/* Makes a function with one string of a tool with free text. The model is told the grammar of the text, if there is one. */
static ggl_status make_custom(ask *a, json_value *out, const openai_tool *t, openai_style style,
                              ggl_error *err) {
    const json_value *own = function_of(t->tool, style);
    const json_value *description = llm_json_get_kind(own, "description", JSON_STRING);
    const json_value *format = llm_json_get_kind(own, "format", JSON_OBJECT);
    const json_value *inner = llm_json_get_kind(format, "grammar", JSON_OBJECT);
    const json_value *grammar =
        llm_json_get_kind(inner ? inner : format, "definition", JSON_STRING);
    const char *param;
    llm_json_out text = {0};
    ggl_str kept = {"", 0};
    json_value parameters;
    const size_t outer = fields_enter(&a->ignored, style == OPENAI_NESTED ? "custom" : "");
    ggl_status st = read_fields(a, own, custom_fields, NULL, &param, err);
    if (st != GGL_OK)
        return st;
    fields_leave(&a->ignored, outer);
    if (description && description->n > 0)
        llm_json_put(&text, description->s, description->n);
    if (grammar && grammar->n > 0) {
        llm_json_put_text(&text, "\n\nThe input must match this grammar:\n");
        llm_json_put(&text, grammar->s, grammar->n);
    }
    st = ask_keep(a, &text, &kept, err);
    if (st == GGL_OK && !make_parameters(a, &parameters, true))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for tools");
    const json_value shown = llm_json_of_str(kept);
    return st == GGL_OK ? openai_make_tool(a, out, t->shown, &shown, &parameters, false, err) : st;
}

/* Makes a tool of the nested form, with the members that templates read. */
static ggl_status make_tool(ask *a, json_value *out, const openai_tool *t, openai_style style,
                            ggl_error *err) {
    const json_value *f = function_of(t->tool, style);
    const char *param;
    ggl_status st = GGL_OK;
    if (t->is_custom)
        return make_custom(a, out, t, style, err);
    const json_value *given = llm_json_get_kind(f, "parameters", JSON_OBJECT);
    json_value parameters;
    if (style == OPENAI_NESTED)
        st = read_fields(a, t->tool, tool_fields, NULL, &param, err);
    const size_t outer = fields_enter(&a->ignored, style == OPENAI_NESTED ? "function" : "");
    if (st == GGL_OK)
        st = read_fields(a, f, function_fields, NULL, &param, err);
    fields_leave(&a->ignored, outer);
    if (st == GGL_OK && !given && !make_parameters(a, &parameters, false))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for tools");
    if (st != GGL_OK)
        return st;
    return openai_make_tool(a, out, t->shown, llm_json_get(f, "description"),
                            given ? given : &parameters,
                            style == OPENAI_NESTED && (json_is_true(llm_json_get(t->tool, defer)) ||
                                                       json_is_true(llm_json_get(f, defer))),
                            err);
}

/* --- the choice --------------------------------------------------------------------------------- */

static ggl_status bad_choice(const json_value *v, ggl_error *err) {
    return field_wrong(
        err, "tool_choice", v->kind == JSON_OBJECT ? NULL : v,
        "\"none\", \"auto\", \"required\", or an object that names a function or the "
        "allowed tools");
}

static bool read_mode(const json_value *v, ask_tools *choice) {
    static const struct {
        const char *name;
        ask_tools choice;
    } rows[] = {
        {"none", ASK_TOOLS_NONE}, {"auto", ASK_TOOLS_AUTO}, {"required", ASK_TOOLS_REQUIRED}};
    for (size_t k = 0; v && k < sizeof rows / sizeof *rows; k++)
        if (llm_json_is(v, rows[k].name)) {
            *choice = rows[k].choice;
            return true;
        }
    return false;
}

/* The namespace of a tool that is named. */
static ggl_str space_of(const json_value *v) {
    const json_value *space = llm_json_get_kind(v, "namespace", JSON_STRING);
    return space ? json_str(space) : (ggl_str){"", 0};
}

static ggl_status read_choice(ask *a, const json_value *v, openai_style style, tool_rule *rule,
                              ggl_error *err) {
    const json_value *type = llm_json_get_kind(v, "type", JSON_STRING);
    if (read_mode(v, &rule->choice))
        return GGL_OK;
    if (type && llm_json_is(type, "allowed_tools")) {
        const json_value *o = style == OPENAI_FLAT ? v : llm_json_get(v, "allowed_tools");
        rule->allowed = llm_json_get_kind(o, "tools", JSON_ARRAY);
        if (!rule->allowed || !read_mode(llm_json_get(o, "mode"), &rule->choice))
            return ggl_fail(err, GGL_USAGE,
                            "a \"tool_choice\" of type \"allowed_tools\" needs \"mode\", which is "
                            "\"auto\" or \"required\", and a list \"tools\"");
        return GGL_OK;
    }
    if (!type)
        return bad_choice(v, err);
    rule->choice = ASK_TOOLS_NAMED;
    openai_tool named = {.space = space_of(v)};
    const ggl_status st = read_names(a, v, style, &named, err);
    rule->name = named.shown;
    return st == GGL_OK ? st : ggl_within(err, st, "tool_choice");
}

/* --- both together ------------------------------------------------------------------------------ */

typedef struct tool_set {
    openai_tool *tool; /* [n]; each begins with the key of the index */
    size_t n;
    ggl_index index;
    bool replaces; /* a tool takes the place of one of the same name */
} tool_set;

/* The tools of a namespace; NULL: it is no namespace. */
static const json_value *inner_tools(const json_value *tool, openai_style style) {
    const json_value *type = llm_json_get_kind(tool, "type", JSON_STRING);
    const bool is_space = style == OPENAI_FLAT && type && llm_json_is(type, "namespace");
    return is_space ? llm_json_get_kind(tool, "tools", JSON_ARRAY) : NULL;
}

static ggl_status add_tool(ask *a, tool_set *s, const json_value *tool, ggl_str space,
                           openai_style style, ggl_error *err) {
    openai_tool *t = &s->tool[s->n];
    if (is_left_out(a, tool, style))
        return fields_ignore(&a->ignored, "tools", json_str(llm_json_get(tool, "type")), err);
    *t = (openai_tool){.space = space, .used = true};
    const ggl_status st = read_names(a, tool, style, t, err);
    if (st != GGL_OK)
        return st;
    const size_t k = ggl_index_put(&s->index, s->tool, s->n);
    if (k != s->n && s->replaces) {
        s->tool[k] = *t;
        return GGL_OK;
    }
    if (k != s->n)
        return ggl_fail(err, GGL_USAGE, "two functions have the name \"%.*s\"", (int)t->shown.n,
                        t->shown.s);
    a->whole_calls = a->whole_calls || (t->is_custom && style == OPENAI_NESTED);
    s->n++;
    return GGL_OK;
}

/* Lists the tools, those of namespaces too, and indexes their names. Of those behind the first n_own a later one takes the place of
 * an earlier one of the same name. */
static ggl_status index_tools(ask *a, tool_set *s, const json_value *list, size_t n_own,
                              openai_style style, ggl_error *err) {
    size_t most = list->n;
    for (size_t i = 0; i < list->n; i++)
        most += inner_tools(&list->item[i], style) ? inner_tools(&list->item[i], style)->n : 0;
    s->tool = ggl_arena_alloc(&a->arena, most + 1, sizeof *s->tool);
    ggl_status st =
        s->tool ? ggl_index_init(&s->index, most + 1, sizeof *s->tool, GGL_INDEX_STRINGS, err)
                : ggl_fail(err, GGL_NOMEM, "out of memory for tools");
    for (size_t i = 0; i < list->n && st == GGL_OK; i++) {
        s->replaces = i >= n_own;
        const json_value *tool = &list->item[i], *inner = inner_tools(tool, style);
        const json_value *name = llm_json_get_kind(tool, "name", JSON_STRING);
        if (inner && !name)
            st = ggl_fail(err, GGL_USAGE, "a namespace needs a \"name\"");
        else if (!inner)
            st = add_tool(a, s, tool, (ggl_str){"", 0}, style, err);
        for (size_t k = 0; inner && k < inner->n && st == GGL_OK; k++)
            st = add_tool(a, s, &inner->item[k], json_str(name), style, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "tools[%zu]", i);
    }
    return st;
}

static ggl_status missing(ggl_str name, ggl_error *err) {
    return ggl_fail(err, GGL_USAGE, "\"tool_choice\" names \"%.*s\", which is not in \"tools\"",
                    (int)name.n, name.s);
}

/* Drops tools that are not allowed, and checks that all tools that are named exist. */
static ggl_status apply_choice(ask *a, tool_set *s, const tool_rule *rule, openai_style style,
                               ggl_error *err) {
    const json_value *allowed = rule->allowed;
    if (rule->choice == ASK_TOOLS_NAMED &&
        ggl_index_find(&s->index, s->tool, rule->name) == SIZE_MAX)
        return missing(rule->name, err);
    for (size_t i = 0; i < s->n && allowed; i++)
        s->tool[i].used = false;
    for (size_t i = 0; allowed && i < allowed->n; i++) {
        openai_tool named = {.space = space_of(&allowed->item[i])};
        const ggl_status st = read_names(a, &allowed->item[i], style, &named, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "tool_choice: tools[%zu]", i);
        const size_t k = ggl_index_find(&s->index, s->tool, named.shown);
        if (k == SIZE_MAX)
            return missing(named.shown, err);
        s->tool[k].used = true;
    }
    return GGL_OK;
}

/* Makes all tools, so that each is checked, and keeps those that are shown to the model. */
static ggl_status keep_tools(ask *a, const tool_set *s, openai_style style, ggl_error *err) {
    json_value *list = ggl_arena_alloc(&a->arena, 1, sizeof *list),
               *tool = ggl_arena_alloc(&a->arena, s->n, sizeof *tool);
    ggl_status st = list && tool ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for tools");
    uint32_t n_used = 0;
    openai_own_of(a)->tool = s->tool;
    openai_own_of(a)->n_tools = s->n;
    const size_t outer = fields_enter(&a->ignored, "tools");
    for (size_t i = 0; i < s->n && st == GGL_OK; i++) {
        st = make_tool(a, &tool[n_used], &s->tool[i], style, err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "tools[%zu]", i);
        n_used += s->tool[i].used;
    }
    fields_leave(&a->ignored, outer);
    if (st == GGL_OK && n_used == 0 && a->tool_choice >= ASK_TOOLS_REQUIRED)
        st = ggl_fail(err, GGL_USAGE, "\"tool_choice\" demands a call, but allows no tool");
    if (n_used == 0)
        a->tool_choice = ASK_TOOLS_NONE;
    if (st != GGL_OK || a->tool_choice == ASK_TOOLS_NONE)
        return st;
    *list = (json_value){.kind = JSON_ARRAY, .n = n_used, .item = tool};
    a->tools = list;
    return GGL_OK;
}

/* The tools of an item of the input; NULL: it has none. */
static const json_value *additional_tools(const json_value *item) {
    return llm_json_has(item, "type", "additional_tools")
               ? llm_json_get_kind(item, "tools", JSON_ARRAY)
               : NULL;
}

/* The tools of the request, and those of items "additional_tools" of its input. n_own: of the request. */
static ggl_status gather_tools(ask *a, const json_value **list, size_t *n_own, ggl_error *err) {
    const json_value *own = llm_json_get(&a->doc->root, "tools"),
                     *input = llm_json_get_kind(&a->doc->root, "input", JSON_ARRAY);
    *list = own;
    if (own && own->kind != JSON_NULL && own->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_USAGE, "\"tools\" must be a list");
    size_t n = *n_own = own && own->kind == JSON_ARRAY ? own->n : 0;
    for (size_t i = 0; input && i < input->n; i++) {
        const json_value *more = additional_tools(&input->item[i]);
        n += more ? more->n : 0;
    }
    if (n == *n_own)
        return GGL_OK;
    json_value *all = ggl_arena_alloc(&a->arena, 1, sizeof *all),
               *item = ggl_arena_alloc(&a->arena, n, sizeof *item);
    if (!all || !item)
        return ggl_fail(err, GGL_NOMEM, "out of memory for tools");
    size_t at = *n_own;
    if (at > 0)
        memcpy(item, own->item, at * sizeof *item);
    for (size_t i = 0; i < input->n; i++) {
        const json_value *more = additional_tools(&input->item[i]);
        for (size_t k = 0; more && k < more->n; k++)
            item[at++] = more->item[k];
    }
    *all = (json_value){.kind = JSON_ARRAY, .n = (uint32_t)n, .item = item};
    *list = all;
    return GGL_OK;
}

ggl_status openai_read_tools(ask *a, openai_style style, const server_facts *facts,
                             const char **param, ggl_error *err) {
    const json_value *list = NULL;
    const json_value *choice = llm_json_get(&a->doc->root, "tool_choice");
    tool_rule rule = {0};
    size_t n_own = 0;
    (void)facts;
    *param = "tools";
    ggl_status st = gather_tools(a, &list, &n_own, err);
    if (st != GGL_OK)
        return st;
    const bool has_tools = list && list->kind == JSON_ARRAY && list->n > 0;
    if (choice && choice->kind != JSON_NULL) {
        *param = "tool_choice";
        st = read_choice(a, choice, style, &rule, err);
        if (st == GGL_OK && !has_tools && rule.choice >= ASK_TOOLS_REQUIRED)
            st = ggl_fail(err, GGL_USAGE,
                          "\"tool_choice\" demands a call, but there are no \"tools\"");
    }
    if (st != GGL_OK || !has_tools)
        return st;
    tool_set s = {0};
    a->tool_choice = rule.choice;
    a->tool = rule.name;
    *param = "tools";
    st = index_tools(a, &s, list, n_own, style, err);
    if (st == GGL_OK) {
        *param = "tool_choice";
        st = apply_choice(a, &s, &rule, style, err);
    }
    if (st == GGL_OK) {
        *param = "tools";
        st = keep_tools(a, &s, style, err);
    }
    ggl_index_fini(&s.index);
    return st;
}

const openai_tool *openai_find_tool(const ask *a, ggl_str shown) {
    const openai_own *own = openai_own_of(a);
    for (size_t i = 0; i < own->n_tools; i++)
        if (ggl_str_equal(own->tool[i].shown, shown))
            return &own->tool[i];
    return NULL;
}

bool openai_is_custom(const ask *a, ggl_str shown) {
    const openai_tool *t = openai_find_tool(a, shown);
    return t && t->is_custom;
}

ggl_status openai_make_input(ask *a, json_value *out, const json_value *input, ggl_error *err) {
    return llm_json_make_object(out, &a->arena, &(llm_json_member){{"input", 5}, *input}, 1)
               ? GGL_OK
               : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
}
