/* docs/server-apis.md says of every field of these APIs what the program does with it. */
#include "dialect_test.h"
#include "llm-server/api_anthropic.h"
#include "llm-server/api_ollama.h"

static const struct page {
    const char *heading;
    const dialect *dialect;
    const field *fields;
    const char *also[2]; /* further sections with fields of this table */
} pages[] = {
    {"## POST /v1/messages\n", &api_anthropic_messages, NULL, {NULL}},
    {"## POST /v1/messages/count_tokens\n", NULL, anthropic_count_fields, {NULL}},
    {"## POST /api/chat\n", &api_ollama_chat, NULL, {NULL}},
    {"## POST /api/generate\n", &api_ollama_generate, NULL, {NULL}},
    {"## Options of Ollama's API\n", NULL, ollama_option_fields, {"## Fields of sampling\n"}},
    {"## POST /api/embed\n", &api_ollama_embed, NULL, {NULL}},
    {"## POST /api/embeddings\n", &api_ollama_embeddings, NULL, {NULL}},
    {"## POST /embedding\n", &api_llamacpp_embedding, NULL, {NULL}},
    {"## POST /embed\n", &api_tei_embed, NULL, {NULL}},
    {"## POST /v1/rerank\n", &api_rerank, NULL, {NULL}},
    {"## POST /v1/decisions\n", &api_decisions, NULL, {NULL}},
    {"## POST /v1/systemone\n", &api_systemone, NULL, {NULL}},
    {"## POST /completion\n",
     &api_llamacpp_completion,
     NULL,
     {"## Fields of sampling\n", "## llama.cpp's further fields\n"}},
    {"## POST /infill\n",
     &api_llamacpp_infill,
     NULL,
     {"## Fields of sampling\n", "## llama.cpp's further fields\n"}},
};

static char *text_of(const char *path) {
    static char text[1 << 17];
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    return text;
}

/* Calls see() for each row of the section's table, with its first column and the rest of the line. False: no such section. */
static bool each_row(const char *text, const char *heading,
                     void (*see)(void *ctx, ggl_str names, ggl_str rest), void *ctx) {
    const char *at = strstr(text, heading), *end = at ? strstr(at + 1, "\n## ") : NULL;
    if (!at)
        return TEST_SAY("there is no section %s", heading);
    while ((at = strstr(at, "\n| `")) && (!end || at < end)) {
        const char *bar = strstr(at + 2, " |"), *line = strchr(at + 1, '\n');
        see(ctx, (ggl_str){at + 3, (size_t)(bar - at - 3)}, (ggl_str){bar, (size_t)(line - bar)});
        at = line;
    }
    return true;
}

static bool has(ggl_str s, const char *words) {
    char copy[4096];
    snprintf(copy, sizeof copy, "%.*s", (int)s.n, s.s);
    return strstr(copy, words) != NULL;
}

/* A field that is looked for, and how often it was found. */
typedef struct search {
    const field *f;
    int n;
    bool right;
} search;

static void find_field(void *ctx, ggl_str names, ggl_str rest) {
    search *s = ctx;
    char quoted[80];
    snprintf(quoted, sizeof quoted, "`%s`", s->f->name);
    if (!has(names, quoted))
        return;
    s->n++;
    const bool refused = has(rest, "| refused"), ignored = has(rest, "| no effect");
    s->right = refused == (s->f->kind == FIELD_REFUSED) && ignored == (s->f->kind == FIELD_IGNORED);
}

TEST(every_field_is_documented) {
    const char *text = text_of(DOCUMENT);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        for (const field *f = pages[i].dialect ? pages[i].dialect->fields : pages[i].fields;
             f->name; f++) {
            search s = {.f = f};
            CHECK(each_row(text, pages[i].heading, find_field, &s));
            for (int k = 0; k < 2 && pages[i].also[k] && s.n == 0; k++)
                CHECK(each_row(text, pages[i].also[k], find_field, &s));
            CHECK_MSG(s.n == 1, "%s: the field %s is there %d times", pages[i].heading, f->name,
                      s.n);
            CHECK_MSG(s.n == 0 || s.right, "%s: the field %s is not described as it is treated",
                      pages[i].heading, f->name);
        }
}

/* Sees to it that each name in a row is a field. */
static void check_names(void *ctx, ggl_str names, ggl_str rest) {
    const field *table = ctx;
    (void)rest;
    for (const char *at = names.s, *end = at + names.n; at < end;) {
        const char *from = memchr(at, '`', (size_t)(end - at)),
                   *to = from ? memchr(from + 1, '`', (size_t)(end - from - 1)) : NULL;
        if (!to)
            return;
        const ggl_str name = {from + 1, (size_t)(to - from - 1)};
        const field *f = table;
        while (f->name && !ggl_str_is(name, f->name))
            f++;
        CHECK_MSG(f->name, "%.*s is documented, but is no field", (int)name.n, name.s);
        at = to + 1;
    }
}

TEST(nothing_else_is_documented) {
    const char *text = text_of(DOCUMENT);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        const field *table = pages[i].dialect ? pages[i].dialect->fields : pages[i].fields;
        CHECK(each_row(text, pages[i].heading, check_names, (void *)table));
        for (int k = 0; k < 2 && pages[i].also[k]; k++)
            CHECK(each_row(text, pages[i].also[k], check_names, (void *)table));
    }
}

/* --- docs/server-openai.md ---------------------------------------------------------------------- */

static char want[1 << 16];
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

static void add_api(const dialect *d, const char *path) {
    const field *f = d->fields;
    add("\n### POST %s%s\n\n", path, "");
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
TEST(fields_of_openai) {
    add_api(&api_openai_chat, "/v1/chat/completions");
    add_api(&api_openai_completions, "/v1/completions");
    add_api(&api_openai_responses, "/v1/responses");
    add_api(&api_openai_embeddings, "/v1/embeddings");
    const char *fields = strstr(text_of(OPENAI_DOCUMENT), "## Fields\n");
    REQUIRE(fields);
    if (!CHECK_MSG(strcmp(fields + strlen("## Fields\n"), want) == 0, OPENAI_DOCUMENT
                   ": the lists after \"## Fields\" should be as they are printed here"))
        printf("%s", want);
}
