/* System and developer messages: whatever a template does with them, each word of each message is in the prompt, in the order of the
 * conversation, and a conversation that goes on keeps its beginning. Drawn conversations go through templates of all kinds: those below, the built-in
 * and the published ones (../shared/chat, ../shared/found). */
#include "llm/internal/chat.h"

#include "common/json.h"
#include "each_template.h"
#include "test.h"

static ggl_error err;

/* --- templates -------------------------------------------------------------------------------- */

#define CALLS "{% for c in m.tool_calls or [] %}({{ c.function.name }}){% endfor %}"
#define LOOP(condition)                                                                            \
    "{% for m in messages %}" condition "<{{ m.role }}>{{ m.content }}" CALLS "</>{% endfor %}"
#define REFUSE(why) "{{ raise_exception('" why "') }}"
static const char *const own[] = {
    LOOP(""), /* shows all */
    LOOP("{% if m.role == 'system' and not loop.first %}" REFUSE("must be first") "{% endif %}"),
    LOOP("{% if m.role == 'system' and not loop.first %}{% continue %}{% endif %}"),
    LOOP("{% if m.role in ('system', 'developer') %}" REFUSE("no such role") "{% endif %}"),
    LOOP("{% if m.role not in ('user', 'assistant') %}{% continue %}{% endif %}"),
    LOOP("{% if m.role == 'developer' %}" REFUSE("no developer") "{% endif %}"),
    LOOP("{% if m.role in ('system', 'developer') and not loop.first %}{% continue %}{% endif %}"),
    LOOP("{% if m.role == 'system' and loop.previtem and loop.previtem.role == "
         "'tool' %}{% continue %}{% endif %}"),
    /* the last one counts, and all are in front */
    "{% for m in messages if m.role == 'system' %}{% if loop.last %}{{ m.content }}{% endif "
    "%}{% endfor %}" LOOP("{% if m.role == 'system' %}{% continue %}{% endif %}"),
    "{% for m in messages if m.role == 'system' %}{{ m.content }}{% endfor "
    "%}" LOOP("{% if m.role == 'system' %}{% continue %}{% endif %}"),
    /* the tools stand in the first system message, wherever that is */
    "{% set ns = namespace(at=-1) %}{% for m in messages if ns.at < 0 and m.role == 'system' %}"
    "{% set ns.at = loop.index0 %}{% endfor %}{% if ns.at < 0 %}{{ tools | tojson }}{% endif "
    "%}{% set ns.done = false %}" LOOP("{% if m.role == 'system' and not ns.done %}{% set ns.done "
                                       "= true %}{{ tools | tojson }}{% endif %}"),
    /* turns alternate, and calls and results do not count */
    "{% set ns = namespace(n=0) %}" LOOP("{% if m.role == 'system' and not loop.first %}" REFUSE(
        "first") "{% endif %}{% if m.role "
                 "in ('user', 'assistant') and not m.tool_calls %}{% if (m.role == 'user') != "
                 "(ns.n % 2 == "
                 "0) %}" REFUSE("alternate") "{% endif %}{% set ns.n = ns.n + 1 %}{% endif %}"),
};
enum { N_OWN = sizeof own / sizeof *own };

static llm_chat *open_text(const char *text, size_t n) {
    const llm_chat_template with = {"t", {text, n}};
    llm_chat *chat = NULL;
    CHECK_OK(llm_chat_new(&chat, NULL, NULL, &with, &err), &err);
    return chat;
}

/* --- conversations ------------------------------------------------------------------------------ */

enum { MOST_MESSAGES = 40, MOST_PROMPT = 65536 };
typedef enum role { SYSTEM, DEVELOPER, USER, ASSISTANT, CALL, TOOL } role;

typedef struct conversation {
    role role[MOST_MESSAGES];
    int n;
} conversation;

static uint64_t seed;

static int draw(int n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static void add(conversation *c, role r) {
    c->role[c->n++] = r;
}

static void add_systems(conversation *c, int of) {
    if (draw(of) == 0)
        for (int k = 1 + draw(2); k > 0; k--)
            add(c, draw(3) ? SYSTEM : DEVELOPER);
}

static conversation drawn(void) {
    conversation c = {.n = 0};
    add_systems(&c, 1 + draw(2));
    for (int turns = 1 + draw(3); turns > 0; turns--) {
        add(&c, USER);
        add_systems(&c, 2);
        if (draw(3) == 0) {
            add(&c, CALL);
            add(&c, TOOL);
            add_systems(&c, 2);
        }
        if (turns > 1 || draw(2))
            add(&c, ASSISTANT);
        if (turns > 1)
            add_systems(&c, 2);
    }
    return c;
}

static bool is_system(role r) {
    return r <= DEVELOPER;
}

/* Marks the system messages from message `from` on as holes: the others keep their words. */
static void leave_out(const conversation *c, int from, bool hole[MOST_MESSAGES]) {
    for (int i = 0; i < c->n; i++)
        hole[i] = i >= from && is_system(c->role[i]);
}

/* Makes the prompt of the first n messages; their words are w0w, w1w, .. False: it is refused. */
static bool prompt(const llm_chat *chat, const conversation *c, int n, const bool *hole, char *to) {
    static const char *const names[] = {"system",    "developer", "user",
                                        "assistant", "assistant", "tool"};
    static char json[16384];
    const llm_chat_params ends = {.end = LLM_CHAT_ENDS};
    size_t at = 0, size = 0;
    llm_talk *talk = NULL;
    char *text = NULL;
    at += (size_t)snprintf(json, sizeof json,
                           "{\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", "
                           "\"description\": \"d\", \"parameters\": {\"type\": \"object\", "
                           "\"properties\": {}}}}], \"messages\": [");
    for (int i = 0, k = 0; i < n; i++) {
        if (hole && hole[i])
            continue;
        at += (size_t)snprintf(json + at, sizeof json - at, "%s{\"role\": \"%s\", \"content\": \"",
                               k++ > 0 ? ", " : "", names[c->role[i]]);
        if (c->role[i] == CALL)
            at += (size_t)snprintf(json + at, sizeof json - at,
                                   "\", \"tool_calls\": [{\"id\": \"abcdefghi\", \"type\": "
                                   "\"function\", \"function\": {\"name\": \"f\", \"arguments\": "
                                   "{}}}]}");
        else
            at += (size_t)snprintf(
                json + at, sizeof json - at, "w%dw\"%s}", i,
                c->role[i] == TOOL ? ", \"name\": \"f\", \"tool_call_id\": \"abcdefghi\"" : "");
    }
    snprintf(json + at, sizeof json - at, "]}");
    ggl_status st = llm_talk_read(&talk, (ggl_str){json, strlen(json)}, NULL, NULL, &err);
    if (st == GGL_OK)
        st = llm_chat_prompt(chat, talk, &ends, &text, &size, &err);
    snprintf(to, MOST_PROMPT, "%s", st == GGL_OK ? text : "");
    ggl_free(text);
    llm_talk_free(talk);
    return st == GGL_OK;
}

/* Returns where the word of message i is; NULL: nowhere. */
static const char *word(const char *text, int i) {
    char w[16];
    snprintf(w, sizeof w, "w%dw", i);
    return strstr(text, w);
}

/* --- checks ------------------------------------------------------------------------------------- */

static int n_checked, n_kept;

/* All words are there, in their order, if those of the other roles are. */
static void check_words(const char *name, const conversation *c, const char *plain,
                        const char *text) {
    const char *before = text;
    for (int i = 0; i < c->n; i++) {
        const char *at = word(text, i);
        if (c->role[i] == CALL || (!is_system(c->role[i]) && !word(plain, i)))
            continue;
        CHECK_MSG(at && at >= before, "%s: message %d of %d is %s: %s", name, i, c->n,
                  at ? "not in its place" : "not there", text);
        before = at ? at : before;
    }
}

/* The prompt of the first n messages, which an answer follows, begins the whole one, as far as their last word. False: it does not. */
static bool keeps(const llm_chat *chat, const conversation *c, int n, const bool *hole,
                  const char *whole) {
    static char part[MOST_PROMPT];
    size_t same = 0;
    int last = n - 1;
    while (last > 0 && hole && hole[last])
        last--;
    if (!prompt(chat, c, n, hole, part))
        return true;
    while (part[same] && part[same] == whole[same])
        same++;
    const char *at = word(part, last);
    return !at || same >= (size_t)(at - part) + 3;
}

static void check_conversation(const char *name, const llm_chat *chat, const conversation *c) {
    static char text[MOST_PROMPT], plain[MOST_PROMPT], first[MOST_PROMPT];
    bool none[MOST_MESSAGES], later[MOST_MESSAGES];
    int n_first = 0;
    while (n_first < c->n && is_system(c->role[n_first]))
        n_first++;
    leave_out(c, 0, none);
    leave_out(c, n_first > 0, later);
    if (!prompt(chat, c, c->n, none, plain))
        return;
    if (!CHECK_MSG(prompt(chat, c, c->n, NULL, text), "%s: %s", name, err.msg))
        return;
    n_checked++;
    check_words(name, c, plain, text);
    if (!prompt(chat, c, c->n, later, first))
        return;
    for (int n = n_first + 1; n < c->n; n++) {
        const bool asks = c->role[n] == ASSISTANT || c->role[n] == CALL;
        if (!asks || !keeps(chat, c, n, later, first))
            continue;
        n_kept++;
        CHECK_MSG(keeps(chat, c, n, NULL, text), "%s: %d of %d messages do not begin %s", name, n,
                  c->n, text);
    }
}

static void check_template(void *ctx, const char *name, ggl_str text) {
    (void)ctx;
    llm_chat *chat = open_text(text.s, text.n);
    if (!chat)
        return;
    seed = 7;
    for (int i = 0; i < (TEST_SANITIZED ? 10 : 40); i++) {
        const conversation c = drawn();
        check_conversation(name, chat, &c);
    }
    llm_chat_free(chat);
}

TEST(own_templates) {
    char name[32];
    n_checked = n_kept = 0;
    for (int i = 0; i < N_OWN; i++) {
        snprintf(name, sizeof name, "own template %d", i);
        check_template(NULL, name, (ggl_str){own[i], strlen(own[i])});
    }
    CHECK_MSG(n_checked >= 8 * N_OWN && n_kept >= 8 * N_OWN, "%d, %d", n_checked, n_kept);
}

TEST(built_in_templates) {
    each_built_in(TEST_SANITIZED ? 7 : 1, check_template, NULL);
}

TEST(published_templates) {
    if (!has_published_templates())
        SKIP_NOT_SHIPPED("published chat templates");
    n_checked = 0;
    each_published(check_template, NULL);
    CHECK_MSG(n_checked >= 100, "%d", n_checked);
}

/* --- places ------------------------------------------------------------------------------------- */

#define M(role, content) "{\"role\": \"" role "\", \"content\": \"" content "\"}"

/* Where texts stand, and what is said of it. */
TEST(places) {
    static const char first_only[] =
        LOOP("{% if m.role == 'system' and not loop.first %}" REFUSE("first") "{% endif %}"),
                      users_only[] =
                          LOOP("{% if m.role == 'system' %}" REFUSE("none") "{% endif %}");
    /* as Gemma 2's */
    static const char alternate[] = LOOP(
        "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}" REFUSE("alternate") "{% endif %}");
#define RESULT(text) "[Result of a tool]\n" text "\n[End of result]"
#define BEGIN        "[System message]\n"
#define END          "\n[End of system message]"
    const struct {
        const char *text, *messages, *want, *notes;
    } rows[] = {
        {own[0], M("system", "a") ", " M("system", "b") ", " M("user", "c"),
         "<system>a</><system>b</><user>c</>", ""},
        {first_only, M("system", "a") ", " M("user", "c"), "<system>a</><user>c</>", ""},
        {first_only, M("system", "a") ", " M("developer", "b") ", " M("user", "c"),
         "<system>a\n\nb</><user>c</>",
         "2 system messages at the beginning are one, because the chat template shows only one"},
        {first_only, M("user", "a") ", " M("system", "b") ", " M("system", "c"),
         "<user>a\n\n" BEGIN "b" END "\n\n" BEGIN "c" END "</>",
         "2 system messages stand in messages of other roles, because the chat template shows "
         "none there"},
        {first_only,
         M("user", "a") ", " M("assistant", "b") ", " M("system", "c") ", " M("user", "d"),
         "<user>a</><assistant>b</><user>" BEGIN "c" END "\n\nd</>",
         "a system message stands in a message of another role, because the chat template shows "
         "none there"},
        {first_only,
         M("system", "s") ", " M("system", "t") ", " M("user", "a") ", " M("assistant", "b") ", " M(
             "system", "c"),
         "<system>s\n\nt</><user>a</><assistant>b</><user>" BEGIN "c" END "</>",
         "2 system messages at the beginning are one, because the chat template shows only one; "
         "a system message stands in a message of another role, because the chat template shows "
         "none there"},
        {users_only, M("system", "a") ", " M("developer", "b") ", " M("user", "c"),
         "<user>a\n\nb\n\nc</>",
         "2 system messages stand in messages of other roles, because the chat template shows "
         "none there"},
        {users_only, M("system", "a") ", " M("assistant", "c"), "<user>a</><assistant>c</>",
         "a system message stands in a message of another role, because the chat template shows "
         "none there"},
        {first_only, M("system", "") ", " M("user", "c") ", " M("system", ""),
         "<system></><user>c</>", ""},
        {own[4], M("user", "a") ", " M("tool", "b") ", " M("tool", "b") ", " M("system", "c"),
         "<user>a</><user>" RESULT("b") "</><user>" RESULT("b") "\n\n" BEGIN "c" END "</>",
         "a system message stands in a message of another role, because the chat template shows "
         "none there; 2 results of tools stand in messages of the user, because the chat template "
         "shows none"},
        {alternate,
         M("user", "a") ", " M("user", "b") ", " M("user", "c") ", " M("assistant",
                                                                       "d") ", " M("user", "e"),
         "<user>a\n\nb\n\nc</><assistant>d</><user>e</>",
         "2 messages of the user are part of the ones before them, because the chat template takes "
         "no two in a row"},
        {alternate, M("user", "a") ", " M("assistant", "d") ", " M("tool", "b") ", " M("user", "e"),
         "<user>a</><assistant>d</><user>" RESULT("b") "\n\ne</>",
         "two messages of the user are one, because the chat template takes no two in a row; the "
         "result of a tool stands in a message of the user, because the chat template shows none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[1024], notes[LLM_CHAT_NOTES];
        llm_chat_made made = {0};
        const llm_chat_params p = {.made = &made};
        llm_chat *chat = open_text(rows[i].text, strlen(rows[i].text));
        llm_talk *talk = NULL;
        char *text = NULL;
        size_t n = 0;
        snprintf(json, sizeof json, "{\"messages\": [%s]}", rows[i].messages);
        REQUIRE_OK(llm_talk_read(&talk, (ggl_str){json, strlen(json)}, NULL, NULL, &err), &err);
        CHECK_OK(llm_chat_prompt(chat, talk, &p, &text, &n, &err), &err);
        CHECK_STR(text, rows[i].want);
        CHECK(llm_chat_notes(&made.changes, "; ", notes) == (rows[i].notes[0] != '\0'));
        CHECK_STR(notes, rows[i].notes);
        llm_chat_made_fini(&made);
        ggl_free(text);
        llm_talk_free(talk);
        llm_chat_free(chat);
    }
}

/* --- efforts and ids ---------------------------------------------------------------------------- */

/* Renders a conversation of JSON, and checks the prompt and the note. */
static void check_prompt(const char *template_text, const char *json, const char *want,
                         const char *note) {
    char notes[LLM_CHAT_NOTES];
    llm_chat_made made = {0};
    const llm_chat_params p = {.made = &made};
    llm_chat *chat = open_text(template_text, strlen(template_text));
    llm_talk *talk = NULL;
    char *text = NULL;
    size_t n = 0;
    REQUIRE_OK(llm_talk_read(&talk, (ggl_str){json, strlen(json)}, NULL, NULL, &err), &err);
    CHECK_OK(llm_chat_prompt(chat, talk, &p, &text, &n, &err), &err);
    CHECK_STR(text ? text : "", want);
    (void)llm_chat_notes(&made.changes, "; ", notes);
    CHECK_STR(notes, note);
    llm_chat_made_fini(&made);
    ggl_free(text);
    llm_talk_free(talk);
    llm_chat_free(chat);
}

#define EFFORT(x) "{\"reasoning_effort\": " x ", \"messages\": [" M("user", "a") "]}"

/* An effort that the template refuses becomes the nearest that it takes, the lower one of two. */
TEST(efforts) {
    static const char two[] = "{% if reasoning_effort is defined and reasoning_effort not in "
                              "['no_think', 'low', 'high'] %}"
                              "{{ raise_exception('no such effort') }}{% endif %}{{ "
                              "messages[0].content }}{{ reasoning_effort }}",
                      all[] = "{{ messages[0].content }}{{ reasoning_effort }}";
    check_prompt(two, EFFORT("\"medium\""), "alow",
                 "the effort of reasoning is low, because the chat template does not know medium");
    check_prompt(two, EFFORT("\"max\""), "ahigh",
                 "the effort of reasoning is high, because the chat template does not know max");
    check_prompt(two, EFFORT("\"none\""), "alow",
                 "the effort of reasoning is low, because the chat template does not know none");
    check_prompt(two, EFFORT("\"high\""), "ahigh", "");
    check_prompt(two, EFFORT("\"no_think\""), "ano_think", "");
    check_prompt(all, EFFORT("\"medium\""), "amedium", "");
    check_prompt(all, EFFORT("\"odd\""), "aodd", "");
}

/* Ids of calls that another program gave become such that the template takes, the same in a call and in its result. */
TEST(ids) {
    static const char nine[] =
        "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}"
        "{{ raise_exception('ids have nine letters') }}{% endif %}{{ c.id }}{{ "
        "c.function.arguments|tojson }}"
        "{% endfor %}{% if m.role == 'tool' %}{{ '=' if m.tool_call_id == "
        "messages[1].tool_calls[0].id else '!' }}"
        "{{ m.tool_call_id|length }}{% endif %}{{ m.content }}{% endfor %}";
#define ID(id)                                                                                     \
    "{\"messages\": [" M(                                                                          \
        "user", "a") ", {\"role\": \"assistant\", \"content\": \"\", "                             \
                     "\"tool_calls\": [{\"id\": \"" id                                             \
                     "\", \"type\": \"function\", \"function\": {\"name\": "                       \
                     "\"f\", \"arguments\": {}}}]}, {\"role\": \"tool\", \"tool_call_id\": \"" id  \
                     "\", \"content\": \"b\"}]}"
    check_prompt(nine, ID("abcABC019"), "aabcABC019{}=9b", "");
    char *text = NULL;
    size_t n = 0;
    llm_talk *talk = NULL;
    llm_chat *chat = open_text(nine, strlen(nine));
    const char *json = ID("call_0123456789abcdefghijklmn");
    REQUIRE_OK(llm_talk_read(&talk, (ggl_str){json, strlen(json)}, NULL, NULL, &err), &err);
    CHECK_OK(llm_chat_prompt(chat, talk, NULL, &text, &n, &err), &err);
    CHECK(text && n == 15 && strcmp(text + 10, "{}=9b") == 0 &&
          strspn(text + 1, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == 9);
    ggl_free(text);
    llm_talk_free(talk);
    llm_chat_free(chat);
}

/* Calls that the template does not show are text, behind what their message says. */
TEST(calls_as_text) {
    static const char plain[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
    check_prompt(
        plain,
        "{\"messages\": [" M(
            "user", "a") ", {\"role\": \"assistant\", \"content\": \"I look.\", "
                         "\"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", \"function\": "
                         "{\"name\": \"f\", "
                         "\"arguments\": \"{\\\"n\\\": 12345678901234567890}\"}}, {\"id\": \"2\", "
                         "\"type\": "
                         "\"function\", \"function\": {\"name\": \"g\", \"arguments\": {}}}]}]}",
        "<user>a<assistant>I look.\n\n[Call of a tool]\nf {\"n\": 12345678901234567890}\n[End of "
        "call]\n\n[Call of a tool]\ng {}\n[End of call]",
        "2 calls of tools are text, because the chat template shows none");
}
