/* Fields of OpenAI's APIs, by their tables: each wrong value is refused by a message with the field's name, each
 * field without effect changes nothing, and docs/server-openai.md lists them all. */
#include "test.h"

#include <stddef.h>
#include <stdlib.h>

#include "llm-server/server.h"

static const struct api {
    const dialect *d;
    const char *path;
    const char *needed; /* members without which a request is incomplete */
} apis[] = {
    {&api_openai_chat, "/v1/chat/completions",
     "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]"},
    {&api_openai_completions, "/v1/completions", "\"prompt\": \"Hi\""},
    {&api_openai_responses, "/v1/responses", "\"input\": \"Hi\""},
    {&api_openai_embeddings, "/v1/embeddings", "\"input\": \"Hi\""},
};
enum { N_APIS = sizeof apis / sizeof *apis };

static const server_facts facts = {.strict_fields = true,
                                   .model = "m",
                                   .n_vocab = 100,
                                   .n_predict = -1,
                                   .n_embd = 4,
                                   .has_chat = true};
static ggl_error err;
static const char *param;
static char param_text[100];

/* Reads a request; the ask is freed by the caller. */
static ggl_status read_request(const dialect *d, const char *text, ask **a) {
    err = (ggl_error){0};
    param = NULL;
    *a = ask_new(&facts);
    ggl_status st =
        *a ? llm_json_parse(&(*a)->doc, text, strlen(text), "request", &err) : GGL_NOMEM;
    return st == GGL_OK ? d->read(*a, &facts, &param, &err) : st;
}

/* Reads the needed members and one more. */
static ggl_status read_with(const struct api *api, const char *name, const char *value) {
    char text[512];
    ask *a;
    if (strncmp(api->needed + 1, name, strlen(name)) == 0)
        snprintf(text, sizeof text, "{\"%s\": %s}", name, value);
    else
        snprintf(text, sizeof text, "{%s, \"%s\": %s}", api->needed, name, value);
    const ggl_status st = read_request(api->d, text, &a);
    if (param) { /* unknown names lie in the ask's arena */
        snprintf(param_text, sizeof param_text, "%s", param);
        param = param_text;
    }
    ask_free(a);
    return st;
}

/* Values of all kinds. At least one of them is wrong for any field that is read. */
static const char *const values[] = {"true",          "-7.5",  "\"\\u0000x\"", "[{}]",
                                     "{\"tpye\": 1}", "1e300", "[[]]",         "\"\""};
enum { N_VALUES = sizeof values / sizeof *values };

static bool is_named(const char *name) {
    char quoted[80];
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    return (param && strcmp(param, name) == 0) || strstr(err.msg, quoted);
}

static void check_row(const struct api *api, const field *f) {
    int n_refused = 0;
    CHECK_MSG(read_with(api, f->name, "null") == GGL_OK || strstr(api->needed, f->name),
              "%s: null: %s", f->name, err.msg);
    for (int i = 0; i < N_VALUES; i++) {
        const ggl_status st = read_with(api, f->name, values[i]);
        n_refused += st != GGL_OK;
        CHECK_MSG(st == GGL_OK || st == GGL_USAGE || st == GGL_UNSUPPORTED, "%s: %s: %d, %s",
                  f->name, values[i], st, err.msg);
        CHECK_MSG(st == GGL_OK || is_named(f->name), "%s: %s: \"%s\" (%s)", f->name, values[i],
                  err.msg, param ? param : "no field");
        CHECK_MSG(f->kind != FIELD_IGNORED || st == GGL_OK, "%s: %s: %s", f->name, values[i],
                  err.msg);
        CHECK_MSG(f->kind != FIELD_REFUSED || st == GGL_OK || strstr(err.msg, f->why), "%s: %s",
                  f->name, err.msg);
    }
    if (f->kind == FIELD_REFUSED)
        CHECK_MSG(n_refused >= N_VALUES - 2, "%s accepts too much", f->name);
    else
        CHECK_MSG(f->kind == FIELD_IGNORED || n_refused > 0, "%s accepts all", f->name);
}

TEST(each_wrong_value) {
    for (int k = 0; k < N_APIS; k++)
        for (const field *f = apis[k].d->fields; f->name; f++)
            check_row(&apis[k], f);
}

TEST(each_name_once) {
    for (int k = 0; k < N_APIS; k++)
        for (const field *f = apis[k].d->fields; f->name; f++)
            for (const field *g = f + 1; g->name; g++)
                CHECK_MSG(strcmp(f->name, g->name) != 0, "%s: two rows for %s", apis[k].path,
                          f->name);
}

TEST(unknown_names) {
    CHECK(read_with(&apis[0], "temprature", "1") == GGL_USAGE);
    CHECK_STR(err.msg, "unknown field \"temprature\"; did you mean \"temperature\"?");
    CHECK_STR(param, "temprature");
    CHECK(read_with(&apis[2], "max_tokens", "1") == GGL_USAGE);
    CHECK(read_with(&apis[3], "inptu", "1") == GGL_USAGE);
    CHECK_STR(err.msg, "unknown field \"inptu\"; did you mean \"input\"?");
}

/* --- docs/server-openai.md ---------------------------------------------------------------------- */

static char want[1 << 16], have[1 << 17];
static size_t n_want;

static void add(const char *format, const char *s, const char *t) {
    n_want += (size_t)snprintf(want + n_want, sizeof want - n_want, format, s, t);
}

/* One line for each field would be long: those of a kind stand in one paragraph. */
static void add_names(const field *f, const char *title, bool ignored) {
    const char *before = title;
    for (; f->name; f++)
        if (f->kind != FIELD_REFUSED && (f->kind == FIELD_IGNORED) == ignored) {
            add("%s`%s`", before, f->name);
            before = ", ";
        }
    add(before == title ? "%s%s" : ".\n%s%s", "", "");
}

static void add_api(const struct api *api) {
    const field *f = api->d->fields;
    add("\n### POST %s%s\n\n", api->path, "");
    add_names(f, "**Have:** ", false);
    add("%s%s", "\n", "");
    add_names(f, "**Without effect on the answer:** ", true);
    bool first = true;
    for (; f->name; f++)
        if (f->kind == FIELD_REFUSED) {
            if (first)
                add("\n| refused | what to do |\n|---|---|\n%s%s", "", "");
            add("| `%s` | %s |\n", f->name, f->why);
            first = false;
        }
}

/* The lists are printed if they differ; put them after the line "## Fields". */
TEST(docs) {
    FILE *f = fopen(DOCS, "rb");
    REQUIRE(f);
    const size_t n = fread(have, 1, sizeof have - 1, f);
    fclose(f);
    have[n] = '\0';
    for (int k = 0; k < N_APIS; k++)
        add_api(&apis[k]);
    const char *fields = strstr(have, "## Fields\n");
    REQUIRE(fields);
    if (!CHECK_MSG(strcmp(fields + strlen("## Fields\n"), want) == 0,
                   DOCS ": the lists after \"## Fields\" should be as they are printed here"))
        printf("%s", want);
}
