/* Calls with mistakes (llm/internal/calls.h). Whatever a model writes, the parts are the same in a stream and of the whole answer, the
 * arguments of calls are JSON objects, and each byte of the answer is in exactly one part, or is a mark of the format, or white space. */
#include "calls/calls_impl.h"
#include "calls_answers.h"
#include "common/json.h"

enum { MOST_TEXT = 4096, MOST_CALLS = 64 };

/* What was read, as text; of calls that were given in pieces, the pieces. */
typedef struct reading {
    char s[4 * MOST_TEXT];
    size_t n;
} reading;

typedef struct open_call {
    char args[2 * MOST_TEXT];
    char name[MOST_TEXT];
} open_call;

static void note(reading *r, const char *s, size_t n) {
    n = n < sizeof r->s - 1 - r->n ? n : sizeof r->s - 1 - r->n;
    memcpy(r->s + r->n, s, n);
    r->n += n;
    r->s[r->n] = '\0';
}

static bool is_object(ggl_str s) {
    llm_json *doc;
    if (llm_json_parse_answer(&doc, s.s, s.n, "arguments", &err) != GGL_OK)
        return false;
    const bool is = doc->root.kind == JSON_OBJECT;
    llm_json_free(doc);
    return is;
}

/* All texts of a format that are no text of an answer. */
static size_t marks_of(const call_format *f, ggl_str marks[128]) {
    size_t n = 0;
    for (int k = 0; k < f->n_marks; k++) {
        marks[n++] = f->mark[k].text;
        if (f->mark[k].close.n > 0)
            marks[n++] = f->mark[k].close;
        if (f->mark[k].other_close.n > 0)
            marks[n++] = f->mark[k].other_close;
    }
    for (int k = 0; k <= f->n_calls; k++) {
        const pattern *p = k < f->n_calls ? &f->call[k] : &f->arg;
        for (int i = 0; i < p->n; i++)
            if (p->piece[i].kind == PIECE_TEXT)
                marks[n++] = p->piece[i].text;
    }
    return n;
}

/* Where a mark begins in a text, from some place on; SIZE_MAX: nowhere. */
static size_t find_mark(const ggl_str *marks, size_t n, const char *text, size_t length,
                        size_t from, ggl_str *is) {
    for (size_t i = from; i < length; i++) {
        *is = (ggl_str){0};
        for (size_t k = 0; k < n; k++)
            if (marks[k].n > is->n && marks[k].n <= length - i &&
                memcmp(text + i, marks[k].s, marks[k].n) == 0)
                *is = marks[k];
        if (is->n > 0)
            return i;
    }
    return SIZE_MAX;
}

/* --- the bytes of an answer ----------------------------------------------------------------------- */

typedef struct walk {
    const ggl_str *marks;
    size_t n_marks, at;
    span last; /* of a call: those of one field have the same text */
    bool good;
} walk;

/* Checks that only marks and white space stand between `at` and the next part, or between calls a semicolon. */
static void walk_to(walk *w, const llm_calls *c, size_t begin) {
    ggl_str is;
    if (begin < w->at)
        w->good = false;
    while (w->at < begin && w->good)
        if (strchr(" \n\r\t;", c->text[w->at]))
            w->at++;
        else if ((w->good = find_mark(w->marks, w->n_marks, c->text, c->n, w->at, &is) == w->at))
            w->at += is.n;
}

static void walk_over(walk *w, const llm_calls *c, const llm_calls_part *part) {
    const size_t begin = (size_t)(part->text.s - c->text), end = begin + part->text.n;
    const bool is_call = part->kind == LLM_CALLS_CALL;
    if (is_call && begin == w->last.begin && end == w->last.end)
        return;
    w->last = is_call ? (span){begin, end} : (span){0};
    walk_to(w, c, begin);
    w->at = end;
}

/* --- reading -------------------------------------------------------------------------------------- */

static open_call opened[MOST_CALLS];

/* Reads an answer in pieces of 1 to `most` bytes (0: whole), as a stream or not. */
static void read_as(const answer *a, size_t most, bool stream, uint64_t *state, walk *w,
                    reading *r) {
    llm_calls *c = NULL;
    llm_calls_part part;
    int n_opened = 0, n_called = 0;
    llm_calls_kind last = LLM_CALLS_CALL;
    const llm_calls_params params = {.size = sizeof params,
                                     .format = str(a->format),
                                     .prompt = str(a->prompt),
                                     .tools = value_of(a->tools),
                                     .partial = stream};
    *r = (reading){.n = 0};
    r->s[0] = '\0';
    if (!CHECK_OK(llm_calls_new(&c, &params, &err), &err))
        return;
    const size_t n = strlen(a->text);
    for (size_t i = 0, k; i <= n; i += k) {
        k = most ? 1 + test_random(state) % most : n;
        k = i == n ? 1 : k < n - i ? k : n - i;
        CHECK_OK(i < n ? llm_calls_add(c, a->text + i, k, &err) : llm_calls_finish(c, &err), &err);
        while (llm_calls_next(c, &part)) {
            if (part.kind == LLM_CALLS_BEGINS) {
                CHECK(stream && n_opened < MOST_CALLS);
                open_call *o = &opened[n_opened++ % MOST_CALLS];
                o->args[0] = '\0';
                snprintf(o->name, sizeof o->name, "%.*s", (int)part.name.n, part.name.s);
                continue;
            }
            if (part.kind == LLM_CALLS_PIECE) {
                CHECK(stream && n_opened > 0);
                strncat(opened[(n_opened - 1) % MOST_CALLS].args, part.arguments.s,
                        part.arguments.n);
                continue;
            }
            if (w)
                walk_over(w, c, &part);
            const bool goes_on = !part.begins && (part.kind == last || last == LLM_CALLS_BROKEN);
            if (part.kind == LLM_CALLS_CALL) {
                CHECK_MSG(is_object(part.arguments), "%s: '%s': arguments %.*s: %s", a->format,
                          a->text, (int)part.arguments.n, part.arguments.s, err.msg);
                if (part.has_begun) {
                    const open_call *o = &opened[n_called++ % MOST_CALLS];
                    CHECK_MSG(n_called <= n_opened && ggl_str_is(part.name, o->name) &&
                                  strncmp(part.arguments.s, o->args, strlen(o->args)) == 0,
                              "%s: '%s': begun as %s%s, called %.*s%.*s", a->format, a->text,
                              o->name, o->args, (int)part.name.n, part.name.s,
                              (int)part.arguments.n, part.arguments.s);
                }
                note(r, "\n# ", 3);
                note(r, part.name.s, part.name.n);
                note(r, part.arguments.s, part.arguments.n);
                note(r, part.id.s, part.id.n);
            } else {
                const bool thinks = part.kind == LLM_CALLS_REASONING;
                if (!goes_on || (part.kind == LLM_CALLS_BROKEN && part.begins))
                    note(r, thinks ? "\n( " : "\n\" ", 3);
                note(r, part.text.s, part.text.n);
            }
            last = part.kind;
        }
    }
    CHECK_MSG(n_called == n_opened, "%s: '%s': %d calls were begun, %d came", a->format, a->text,
              n_opened, n_called);
    if (w)
        walk_to(w, c, c->n);
    llm_calls_free(c);
}

/* Checks an answer; returns the number of its calls. */
static int check_answer(const answer *a, const ggl_str *marks, size_t n_marks, uint64_t *state) {
    static reading whole, cut;
    walk w = {.marks = marks, .n_marks = n_marks, .good = true};
    read_as(a, 0, false, state, &w, &whole);
    CHECK_MSG(w.good, "%s: '%s' is not in its parts from byte %zu on:%s", a->format, a->text, w.at,
              whole.s);
    for (size_t most = 1; most <= 7; most += 3) {
        read_as(a, most, true, state, NULL, &cut);
        if (!CHECK_STR(cut.s, whole.s))
            fprintf(stderr, "  %s, pieces of %zu: %s\n", a->format, most, a->text);
    }
    int n = 0;
    for (const char *at = whole.s; (at = strstr(at, "\n# ")); at++)
        n++;
    return n;
}

/* Writes an answer with a mistake in it: a mark is deleted, doubled or replaced, the end is cut off, a bracket or a quote is deleted,
 * or a line break is added. */
static void make_mistake(char *to, const char *from, const ggl_str *marks, size_t n_marks,
                         uint64_t *state) {
    const size_t n = strlen(from), from_at = test_random(state) % (n + 1);
    ggl_str is = {0};
    size_t at = find_mark(marks, n_marks, from, n, from_at, &is);
    if (at == SIZE_MAX)
        at = find_mark(marks, n_marks, from, n, 0, &is);
    const uint64_t what = test_random(state) % 8;
    const ggl_str other = n_marks > 0 ? marks[test_random(state) % n_marks] : (ggl_str){"<x>", 3};
    const char *sign = strpbrk(from + from_at, "{}[]\"':,<>");
    if (what < 2 && at != SIZE_MAX) /* deleted */
        snprintf(to, MOST_TEXT, "%.*s%s", (int)at, from, from + at + is.n);
    else if (what < 4 && at != SIZE_MAX) /* doubled, or another in its place */
        snprintf(to, MOST_TEXT, "%.*s%.*s%.*s%s", (int)at, from, (int)is.n, is.s,
                 (int)(what == 2 ? is.n : other.n), what == 2 ? is.s : other.s, from + at + is.n);
    else if (what == 4 && at != SIZE_MAX)
        snprintf(to, MOST_TEXT, "%.*s%.*s%s", (int)at, from, (int)other.n, other.s,
                 from + at + is.n);
    else if (what == 5 && sign)
        snprintf(to, MOST_TEXT, "%.*s%s", (int)(sign - from), from, sign + 1);
    else if (what == 6)
        snprintf(to, MOST_TEXT, "%.*s\n%s", (int)from_at, from, from + from_at);
    else
        snprintf(to, MOST_TEXT, "%.*s", (int)from_at, from);
}

TEST(mistakes_in_all_formats) {
    enum { TIMES = TEST_SANITIZED ? 4 : 60 };
    uint64_t state = sample_seed() + 4;
    for (int i = 0; i < N_ANSWERS; i++) {
        char one[MOST_TEXT], two[MOST_TEXT];
        ggl_str marks[128];
        call_format f;
        REQUIRE_OK(llm_call_format_load(&f, str(answers[i].format), &err), &err);
        const size_t n_marks = marks_of(&f, marks);
        for (int k = 0; k < TIMES; k++) {
            answer a = answers[i];
            a.tools = a.tools || k % 2 ? A_STRING : NULL;
            make_mistake(one, a.text, marks, n_marks, &state);
            make_mistake(two, one, marks, n_marks, &state);
            a.text = k % 3 ? one : two;
            (void)check_answer(&a, marks, n_marks, &state);
            if (test_failures > 0)
                break;
        }
        llm_call_format_fini(&f);
    }
}

/* Mistakes that users of other programs have reported, and what they become. */
TEST(known_mistakes) {
#define READ                                                                                       \
    "[{\"function\": {\"name\": \"Read\", \"parameters\": {\"properties\": {\"file_path\": "       \
    "{\"type\": \"string\"}, \"n\": {\"type\": \"integer\"}}}}}, {\"name\": \"Bash\"}]"
#define BEGIN "<tool_call>\n<function=Read>\n<parameter=file_path>\n"
#define ENDS  "\n</function>\n</tool_call>"
    static const answer row[] = {
        {"qwen3-coder", BEGIN "/a.md\n</parameter>\n</parameter>" ENDS,
         "Read{\"file_path\":\"/a.md\"}", 0, READ},
        {"qwen3-coder", BEGIN "x = \"</parameter>\"\ny\n</parameter>" ENDS,
         "Read{\"file_path\":\"x = \\\"</parameter>\\\"\\ny\"}", 0, READ},
        {"qwen3-coder", BEGIN "/a.md\n</parameter>\n</tool_call>", "Read{\"file_path\":\"/a.md\"}",
         0, READ},
        {"qwen3-coder", BEGIN "/a.md" ENDS, "Read{\"file_path\":\"/a.md\"}", 0, READ},
        {"qwen3-coder", BEGIN "/a.md\n<parameter=n>\n5\n</parameter>" ENDS,
         "Read{\"file_path\":\"/a.md\",\"n\":5}", 0, READ},
        {"qwen3-coder", BEGIN "/a.md</parameter></function></tool_call>" BEGIN "/b.md</parameter>",
         "Read{\"file_path\":\"/a.md\"} Read{\"file_path\":\"/b.md\"}", 0, READ},
        {"qwen3-coder", BEGIN "a <parameter=x> b\n</parameter>" ENDS,
         "Read{\"file_path\":\"a <parameter=x> b\"}", 0, READ},
        {"qwen3-coder",
         "<tool_call>\n<function=Read>\n<parameter=file_path\n/a.md\n</parameter>" ENDS,
         "Read{\"file_path\":\"/a.md\"}", 0, READ},
        {"glm",
         "<tool_call>Read<arg_key>file_path<arg_value>/a</arg_value><arg_key>n</"
         "arg_key><arg_value>5"
         "</tool_call>",
         "Read{\"file_path\":\"/a\",\"n\":5}", 0, READ},
        {"hermes",
         "<tool_call>{\"name\": \"Read\", \"arguments\": {\"file_path\": \"a\nb\"}}</tool_call>",
         "Read{\"file_path\":\"a\\nb\"}", 0, READ},
        {"hermes",
         "<tool_call>{'name': 'Read', 'arguments': {'file_path': 'it\\'s', 'n': "
         "None,}}</tool_call>",
         "Read{\"file_path\":\"it's\",\"n\":null}", 0, READ},
        {"hermes",
         "<tool_call>{\"name\": \"Read\", \"arguments\": {\"file_path\": \"a\"}</tool_call>.",
         "Read{\"file_path\":\"a\"} \".", 0, READ},
        {"hermes",
         "<tool_call>{\"name\": \"Read\", \"arguments\": {\"file_path\": \"a\"}}}</tool_call>.",
         "Read{\"file_path\":\"a\"} \".", 0, READ},
        {"hermes",
         "<tool_call>{{\"name\": \"Read\", \"arguments\": {\"file_path\": \"say \"hi\" "
         "\\d\"}}}}</tool_call>",
         "Read{\"file_path\":\"say \\\"hi\\\" \\\\d\"}", 0, READ},
        {"hermes",
         "<tool_call>[{\"name\": \"Bash\", \"arguments\": {}}, {\"name\": \"Read\", \"arguments\": "
         "{\"n\": 1}]</tool_call>",
         "Bash{} Read{\"n\":1}", 0, READ},
        {"hermes", "<tool_call>{\"name\": \"Bash\", \"arguments\": \"\"}</tool_call>", "Bash{}", 0,
         READ},
        {"hermes", "<tool_call>{\"name\": \"Bash\"",
         "!<tool_call>{\"name\": \"Bash\": the call is not complete!", 0, READ},
        {"hermes", "<tools>{\"name\": \"Bash\", \"arguments\": {}}</tools>",
         "\"<tools>{\"name\": \"Bash\", \"arguments\": {}}</tools>", 0, READ},
        {"hermes", "<tool_call>{\"name\": \"functions.Bash\", \"arguments\": {}}</tool_call>",
         "Bash{}", 0, READ},
        {"hermes", "<tool_call>{\"name\": \"functions_Bash_2\", \"arguments\": {}}</tool_call>",
         "Bash{}", 0, READ},
        {"kimi-k2",
         "<|tool_call_begin|>functions_Bash_2<|tool_call_argument_begin|>{}<|tool_call_end|>",
         "Bash{}#functions_Bash_2", 0, READ},
        {"kimi-k2", "<|tool_call_begin|>functions.Bash:2<|tool_call_argument_begin|>{}",
         "Bash{}#functions.Bash:2", 0, READ},
        {"kimi-k2", "<|tool_call_begin|>functions.a_2:3<|tool_call_argument_begin|>{}",
         "a_2{}#functions.a_2:3", 0, READ},
        {"lfm2", "<|tool_call_start|>[Read(n=1<|tool_call_end|>.", "Read{\"n\":1} \".", 0, READ},
        {"lfm2", "<|tool_call_start|>[Read(n=[1), Bash()", "Read{\"n\":[1]} Bash{}", 0, READ},
        {"gemma4", "<|tool_call>call:Read{file_path:<|\"|>a<|\"|><tool_call|>",
         "Read{\"file_path\":\"a\"}", 0, READ},
        {"llama3", "{\"name\": \"Read\", \"parameters\": {\"n\": 1}", "Read{\"n\":1}", 0, READ},
    };
    uint64_t state = sample_seed() + 5;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        parts p;
        ggl_str marks[128];
        call_format f;
        REQUIRE(read_answer(&row[i], 0, NULL, &p));
        if (!CHECK_STR(p.s, row[i].want))
            fprintf(stderr, "  %s\n", row[i].text);
        REQUIRE_OK(llm_call_format_load(&f, str(row[i].format), &err), &err);
        (void)check_answer(&row[i], marks, marks_of(&f, marks), &state);
        llm_call_format_fini(&f);
    }
}

/* A limit of reasoning forces its end; what the model does then. */
TEST(reasoning_that_goes_on) {
    static const struct {
        const char *before, *after, *want;
    } row[] = {
        {"First I think about", " while.</think>Hello", "(First I think about while. \"Hello"},
        {"First I think about ", "\n\nHello </think> you", "(First I think about \"Hello \"you"},
        {"So", " Hello <b", "(So \"Hello <b"},
        {"So", " a</think> b</think>\nc</think>", "(So a \"b \"c"},
        {"", "a</think>b", "(a \"b"},
        {"So", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "(So f{}"},
        {"So", "Hm<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "(So \"Hm f{}"},
        {"So", "", "(So"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (size_t most = 1; most < 80; most += 40) {
            llm_calls *c;
            llm_calls_kind last = LLM_CALLS_CALL;
            parts p = {0};
            const llm_calls_params params = {
                .size = sizeof params, .format = str("hermes"), .prompt = str("<think>\n")};
            const size_t n = strlen(row[i].after);
            REQUIRE_OK(llm_calls_new(&c, &params, &err), &err);
            CHECK_OK(llm_calls_add(c, row[i].before, strlen(row[i].before), &err), &err);
            CHECK(ggl_str_is(llm_calls_reasoning_end(c), "</think>"));
            llm_calls_force_end(c);
            CHECK_OK(llm_calls_add(c, "</think>", 8, &err), &err);
            for (size_t k = 0; k < n; k += most) {
                drain(c, &p, &last);
                CHECK_OK(llm_calls_add(c, row[i].after + k, most < n - k ? most : n - k, &err),
                         &err);
            }
            CHECK_OK(llm_calls_finish(c, &err), &err);
            drain(c, &p, &last);
            llm_calls_free(c);
            CHECK_STR(p.s, row[i].want);
        }
}

/* Where one call is wanted, nothing comes after it. */
TEST(one_call) {
    static const answer row[] = {
        {"hermes",
         "A <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call> B "
         "<tool_call>{\"name\": "
         "\"g\", \"arguments\": {}}</tool_call>",
         "\"A f{\"a\":1}", 0, 0},
        {"hermes",
         "<tool_call>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", "
         "\"arguments\": "
         "{}}]</tool_call>",
         "f{\"a\":1}", 0, 0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (size_t most = 1; most < 400; most += 300) {
            llm_calls *c;
            llm_calls_part part;
            llm_calls_kind last = LLM_CALLS_CALL;
            parts p = {0};
            int n_begun = 0;
            const llm_calls_params params = {.size = sizeof params,
                                             .format = str(row[i].format),
                                             .partial = most == 1,
                                             .one_call = true};
            const size_t n = strlen(row[i].text);
            REQUIRE_OK(llm_calls_new(&c, &params, &err), &err);
            for (size_t k = 0; k <= n; k += most) {
                CHECK_OK(k < n
                             ? llm_calls_add(c, row[i].text + k, most < n - k ? most : n - k, &err)
                             : llm_calls_finish(c, &err),
                         &err);
                while (llm_calls_next(c, &part))
                    if (part.kind == LLM_CALLS_BEGINS || part.kind == LLM_CALLS_PIECE)
                        n_begun += part.kind == LLM_CALLS_BEGINS;
                    else
                        put_part(&p, &part, &last);
            }
            CHECK(llm_calls_is_over(c));
            llm_calls_free(c);
            CHECK_STR(p.s, row[i].want);
            CHECK_INT(n_begun, most == 1);
        }
}
