#include "grammar_source.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ggl/internal/show.h"
#include "input.h"

enum {
    MOST_BYTES = 16 << 20, /* of a file */
    MOST_NOTES = 5
};

/* The text to read, or the file that has it. */
typedef struct place {
    const char *text, *file; /* one of them; file: NULL if the text was given */
    const char *name;        /* for messages */
    bool is_schema;
} place;

static bool is_schema_text(const char *s) {
    static const char white[] = " \t\r\n";
    s += strspn(s, white);
    size_t n = strlen(s);
    while (n > 0 && strchr(white, s[n - 1]))
        n--;
    return *s == '{' || (n == 4 && memcmp(s, "true", n) == 0) ||
           (n == 5 && memcmp(s, "false", n) == 0);
}

static place find_place(const grammar_source *s) {
    if (s->json)
        return (place){.text = "true", .name = "JSON", .is_schema = true};
    if (s->schema && is_schema_text(s->schema))
        return (place){.text = s->schema, .name = "--json-schema", .is_schema = true};
    if (s->grammar && strstr(s->grammar, "::="))
        return (place){.text = s->grammar, .name = "--grammar"};
    const char *schema = s->schema_file ? s->schema_file : s->schema;
    const char *file = schema ? schema : s->grammar_file ? s->grammar_file : s->grammar;
    return (place){
        .file = file, .name = strcmp(file, "-") == 0 ? "stdin" : file, .is_schema = schema != NULL};
}

int grammar_find(grammar_text *out, const char *tool, const grammar_source *s) {
    const place p = find_place(s);
    size_t n = 0;
    *out = (grammar_text){.text = p.text, .name = p.name, .is_schema = p.is_schema};
    if (!p.file)
        return -1;
    out->read = tool_read_text(tool, p.file, MOST_BYTES, &n);
    out->text = out->read;
    return out->read ? -1 : 1;
}

void grammar_note(void *notes, const char *text) {
    grammar_notes *n = notes;
    if (n->n++ >= MOST_NOTES)
        return;
    tool_begin_line();
    tool_note(n->tool, "%s", text); /* names may have any characters */
}

void grammar_notes_end(const grammar_notes *n) {
    if (n->n > MOST_NOTES)
        tool_note(n->tool, "%zu more of these", n->n - MOST_NOTES);
}

int grammar_read(llm_grammar **out, const char *tool, const grammar_source *s, bool compact) {
    ggl_error err = {0};
    grammar_notes noted = {.tool = tool};
    grammar_text t;
    *out = NULL;
    const int code = grammar_find(&t, tool, s);
    if (code >= 0)
        return code;
    const llm_schema_params params = {
        .size = sizeof params, .note = grammar_note, .note_arg = &noted, .compact = compact};
    const size_t n = strlen(t.text);
    const ggl_status st = t.is_schema
                              ? llm_grammar_from_schema_with(out, t.text, n, t.name, &params, &err)
                              : llm_grammar_from_gbnf(out, t.text, n, t.name, &err);
    free(t.read);
    grammar_notes_end(&noted);
    return st == GGL_OK ? -1 : tool_error(tool, st == GGL_NOMEM ? 1 : 2, "%s", err.msg);
}
