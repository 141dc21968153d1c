/* The lines of a conversation that begin with '/'. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chat_impl.h"
#include "common/amounts.h"
#include "common/json_write.h"
#include "common/input.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "ggl/internal/os_process.h"

enum { MOST_FILE = 16 << 20 }; /* bytes of a conversation, or of a file for /read */

typedef struct command {
    const char *name, *argument, *help;
    chat_next (*run)(chat *c, const char *argument, size_t *keep);
    bool takes_file;
} command;

static const command *all_commands(void); /* the last one has no name */

static chat_next wants(const char *name, const char *argument) {
    (void)tool_error(TOOL, 0, "write /%s %s", name, argument);
    return CHAT_READ;
}

static const char *plural(size_t n) {
    return n == 1 ? "" : "s";
}

/* --- turns ------------------------------------------------------------------------------------ */

static chat_next do_clear(chat *c, const char *argument, size_t *keep) {
    (void)argument;
    (void)keep;
    llm_talk_cut(c->talk, llm_talk_begin(c->talk));
    c->first = llm_talk_begin(c->talk);
    c->told_shift = false;
    c->attached.n = c->missing.n = 0;
    chat_count_used(c);
    chat_say(c,
             llm_talk_n(c->talk) ? "(begins again; the system message stays)" : "(begins again)");
    return CHAT_READ;
}

/* Returns the index of the last message of a user; the number of messages if none. */
static size_t last_turn(const llm_talk *t) {
    for (size_t i = llm_talk_n(t); i-- > 0;)
        if (ggl_str_is(llm_talk_at(t, i)->role, "user"))
            return i;
    return llm_talk_n(t);
}

/* Removes the messages from n on; older ones that were left out may fit again. */
static void cut(chat *c, size_t n) {
    llm_talk_cut(c->talk, n);
    if (c->first >= n)
        c->first = llm_talk_begin(c->talk);
    chat_count_used(c);
}

static chat_next do_undo(chat *c, const char *argument, size_t *keep) {
    (void)argument;
    (void)keep;
    const size_t at = last_turn(c->talk);
    if (at == llm_talk_n(c->talk)) {
        chat_say(c, "(there is nothing to take back)");
        return CHAT_READ;
    }
    const ggl_str text = chat_shown(c->talk, at);
    const char *line_end = text.n ? memchr(text.s, '\n', text.n) : NULL;
    const size_t n_line = line_end ? (size_t)(line_end - text.s) : text.n;
    const size_t n = ggl_utf8_cut(text.s ? text.s : "", n_line, 50);
    chat_say(c, "(taken back: %.*s%s)", (int)n, text.s ? text.s : "", n < text.n ? " .." : "");
    free((char *)text.s);
    cut(c, at);
    return CHAT_READ;
}

static chat_next do_regen(chat *c, const char *argument, size_t *keep) {
    (void)argument;
    const size_t at = last_turn(c->talk);
    if (at == llm_talk_n(c->talk)) {
        chat_say(c, "(there is no message to answer)");
        return CHAT_READ;
    }
    cut(c, at + 1);
    *keep = at + 1;
    return CHAT_ANSWER;
}

static chat_next do_system(chat *c, const char *argument, size_t *keep) {
    ggl_error err = {0};
    (void)keep;
    if (!*argument) {
        const bool has = llm_talk_begin(c->talk) > 0;
        const ggl_str text = has ? llm_talk_at(c->talk, 0)->content : (ggl_str){"", 0};
        chat_say(c, has ? "%.*s" : "(there is no system message%.*s)", (int)text.n,
                 text.s ? text.s : "");
        return CHAT_READ;
    }
    const bool removes = strcmp(argument, "-") == 0;
    const ggl_str text = {argument, removes ? 0 : strlen(argument)};
    const size_t begin = llm_talk_begin(c->talk);
    if (llm_talk_set_system(c->talk, text, &err) != GGL_OK)
        (void)tool_error(TOOL, 0, "%s", err.msg);
    else
        chat_say(c, removes ? "(no system message)" : "(system message set)");
    c->first += llm_talk_begin(c->talk) - begin;
    chat_count_used(c);
    return CHAT_READ;
}

/* Prints a text without white space at its start, indented. Newlines stay; other control characters are
 * escaped. */
static void show_lines(ggl_str text) {
    while (text.n > 0 && memchr(" \t\r\n", *text.s, 4)) {
        text.s++;
        text.n--;
    }
    while (text.n > 0) {
        const char *end = memchr(text.s, '\n', text.n);
        const size_t n = end ? (size_t)(end - text.s) : text.n;
        ggl_fprint(stderr, "  %.*s\n", (int)n, text.s);
        text = (ggl_str){text.s + n + (end != NULL), text.n - n - (end != NULL)};
    }
}

/* Prints the calls of a message, each as a line of JSON. */
static void show_calls(const llm_talk_message *m) {
    for (size_t i = 0; i < m->n_calls; i++) {
        llm_json_out line = {0};
        llm_json_format(&line, "{'name': %.*s, 'arguments': ", LLM_JSON_STR(m->call[i].name));
        llm_json_put_value(&line, m->call[i].arguments);
        llm_json_put_text(&line, "}");
        show_lines((ggl_str){line.s ? line.s : "", line.n});
        ggl_free(line.s);
    }
}

static chat_next do_show(chat *c, const char *argument, size_t *keep) {
    (void)argument;
    (void)keep;
    const size_t begin = llm_talk_begin(c->talk);
    for (size_t i = 0; i < llm_talk_n(c->talk); i++) {
        const llm_talk_message *m = llm_talk_at(c->talk, i);
        const ggl_str role = m->role, text = chat_shown(c->talk, i);
        const bool left_out = i >= begin && i < c->first;
        chat_say(c, "%.*s%s", (int)role.n, role.s, left_out ? " (left out)" : "");
        show_lines(text);
        show_calls(m);
        free((char *)text.s);
    }
    if (llm_talk_n(c->talk) == 0)
        chat_say(c, "(nothing was said yet)");
    return CHAT_READ;
}

static chat_next do_tool(chat *c, const char *argument, size_t *keep) {
    ggl_error err = {0};
    if (!*argument)
        return wants("tool", "RESULT");
    *keep = llm_talk_n(c->talk);
    if (llm_talk_add(c->talk, "tool", (ggl_str){argument, strlen(argument)}, &err) == GGL_OK)
        return CHAT_ANSWER;
    (void)tool_error(TOOL, 0, "%s", err.msg);
    return CHAT_READ;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Removes quotes and backslashes as a shell does. False: a quote does not end, so it is none. */
static bool unquote(char *s) {
    char *to = s, quote = '\0';
    for (; *s; s++) {
        const bool is_quote = quote ? *s == quote : *s == '"' || *s == '\'';
        if (is_quote) {
            quote = quote ? '\0' : *s;
            continue;
        }
        s += *s == '\\' && quote != '\'' && s[1];
        *to++ = *s;
    }
    *to = '\0';
    return !quote;
}

/* Returns the path of "~/x"; the caller frees it. */
static char *path_in_home(const char *argument) {
    const char *home = ggl_os_home();
    const bool in_home = argument[0] == '~' && ggl_os_separates(argument[1]) && home;
    const size_t size = strlen(argument) + (in_home ? strlen(home) : 0) + 1;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s%s", in_home ? home : "", argument + in_home);
    return path;
}

/* Returns the path that a person means: as it stands, or as a shell would read it. The caller frees it. */
static char *path_of(const char *argument) {
    char *path = path_in_home(argument), *plain = ggl_copy_text(argument);
    if (path && plain && !ggl_os_exists(path) && unquote(plain)) {
        free(path);
        path = path_in_home(plain);
    }
    free(plain);
    return path;
}

static void set_saved_as(chat *c, char *path) {
    free(c->saved_as);
    c->saved_as = path;
}

/* Fails if the path is a file with something else than a conversation, which /save is not to replace. */
static ggl_status check_replaced(const char *path, ggl_error *err) {
    os_stat st;
    ggl_file_map m;
    llm_talk *talk = NULL;
    if (!ggl_os_stat(path, &st) || st.kind != OS_FILE || st.size == 0 ||
        ggl_file_map_open(&m, path, NULL) != GGL_OK)
        return GGL_OK;
    const bool is_talk = m.size <= MOST_FILE && llm_talk_read(&talk, (ggl_str){m.data, m.size},
                                                              path, NULL, NULL) == GGL_OK;
    ggl_file_map_close(&m);
    llm_talk_free(talk);
    return is_talk ? GGL_OK
                   : ggl_fail(err, GGL_USAGE,
                              "%s: this file is no conversation, and stays as it is; save under "
                              "another name, or remove it first",
                              path);
}

static ggl_status write_talk(const chat *c, const char *path, ggl_error *err) {
    char *json = NULL;
    size_t n = 0;
    ggl_new_file *f = NULL;
    ggl_status st = check_replaced(path, err);
    if (st == GGL_OK)
        st = llm_talk_json(c->talk, &json, &n, err);
    if (st == GGL_OK)
        st = ggl_new_file_open(&f, path, err);
    if (st == GGL_OK) {
        if (fwrite(json, 1, n, ggl_new_file_stream(f)) != n)
            ggl_new_file_note(f);
        st = ggl_new_file_commit(f, err);
    }
    ggl_free(json);
    return st;
}

static chat_next do_save(chat *c, const char *argument, size_t *keep) {
    ggl_error err = {0};
    (void)keep;
    if (!*argument && !c->saved_as)
        return wants("save", "FILE");
    char *path = *argument ? path_of(argument) : ggl_copy_text(c->saved_as);
    if (!path || write_talk(c, path, &err) != GGL_OK) {
        (void)tool_error(TOOL, 0, "%s", path ? err.msg : "out of memory");
        free(path);
        return CHAT_READ;
    }
    const size_t n = llm_talk_n(c->talk);
    chat_say(c, "(%zu message%s saved in %s)", n, plural(n), path);
    chat_tell_unsaved(c);
    set_saved_as(c, path);
    return CHAT_READ;
}

/* Reads a conversation that the template accepts. */
static ggl_status read_talk(chat *c, const char *path, llm_talk **talk, ggl_error *err) {
    char *prompt = NULL;
    ggl_file_map m;
    size_t n;
    ggl_status st = ggl_file_map_open(&m, path, err);
    if (st != GGL_OK)
        return st;
    if (m.size > MOST_FILE)
        st = ggl_fail(err, GGL_LIMIT, "%s: a conversation has at most %d MiB", path,
                      MOST_FILE >> 20);
    if (st == GGL_OK)
        st = llm_talk_read(talk, (ggl_str){m.data, m.size}, path, NULL, err);
    ggl_file_map_close(&m);
    if (st != GGL_OK)
        return st;
    st = llm_talk_n(*talk) > 0
             ? chat_set_variables(c, *talk, err)
             : ggl_fail(err, GGL_FORMAT, "%s: the list \"messages\" is empty", path);
    if (st == GGL_OK) {
        st = chat_render(c, *talk, 0, true, NULL, &prompt, &n, err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "%s", path);
    }
    ggl_free(prompt);
    if (st != GGL_OK)
        llm_talk_free(*talk);
    return st;
}

static chat_next do_load(chat *c, const char *argument, size_t *keep) {
    ggl_error err = {0};
    llm_talk *talk;
    (void)keep;
    if (!*argument)
        return wants("load", "FILE");
    char *path = path_of(argument);
    if (!path || read_talk(c, path, &talk, &err) != GGL_OK) {
        (void)tool_error(TOOL, 0, "%s; the conversation stays as it is",
                         path ? err.msg : "out of memory");
        free(path);
        return CHAT_READ;
    }
    llm_talk_free(c->talk);
    c->talk = talk;
    c->first = llm_talk_begin(talk);
    c->told_shift = false;
    chat_count_used(c);
    const size_t n = llm_talk_n(talk);
    const bool waits = n > 0 && ggl_str_is(llm_talk_at(talk, n - 1)->role, "user");
    chat_say(c, "(%zu message%s from %s%s)", n, plural(n), path,
             waits ? "; /regen answers the last one" : "; /show prints them");
    chat_find_missing(c);
    set_saved_as(c, path);
    return CHAT_READ;
}

static chat_next do_read(chat *c, const char *argument, size_t *keep) {
    size_t n;
    (void)keep;
    if (!*argument)
        return wants("read", "FILE");
    char *path = path_of(argument);
    char *text = path ? tool_read_text(TOOL, path, MOST_FILE, &n) : NULL;
    if (text && chat_text_add(&c->attached, text, n) && chat_text_add(&c->attached, "\n", 1))
        chat_say(c, "(%zu bytes of %s will precede your next message)", n, path);
    free(text);
    free(path);
    return CHAT_READ;
}

/* Shows a picture, or plays a sound. */
static chat_next do_media(chat *c, const char *argument, bool sound) {
    char mark[LLM_IMAGE_MARK];
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    if (!*argument)
        return wants(sound ? "audio" : "image", "FILE");
    if (!llm_context_facts(c->ctx)->hears && !llm_context_facts(c->ctx)->sees) {
        const char *lack = llm_opened_lack(c->ctx);
        (void)(*lack ? tool_error(TOOL, 0, "the model %s: %s",
                                  sound ? "hears no sounds" : "sees no pictures", lack)
                     : tool_error(TOOL, 0,
                                  sound ? "/audio needs the model's ear: llm-cli --mmproj FILE"
                                        : "/image needs the model's eye: llm-cli --mmproj FILE"));
        return CHAT_READ;
    }
    char *path = path_of(argument);
    progress_begin(NULL, 0, "%s %s", sound ? "listening to" : "looking at", path ? path : "");
    if (path)
        st = sound ? llm_listen(c->ctx, &(llm_audio){.path = path}, mark, &err)
                   : llm_see(c->ctx, &(llm_image){.path = path}, mark, &err);
    progress_end();
    if (st == GGL_CANCELLED && process_go_on()) /* Ctrl-C stops only this */
        chat_say(c, "(stopped: nothing was %s)", sound ? "heard" : "seen");
    else if (path && st != GGL_OK)
        (void)tool_error(TOOL, 0, "%s", err.msg);
    else if (path && chat_found_missing(c, mark))
        chat_say(c, "(%s is in the conversation again)", path);
    else if (path && chat_text_add(&c->attached, mark, strlen(mark)))
        chat_say(c, "(%s will precede your next message)", path);
    free(path);
    return CHAT_READ;
}

static chat_next do_image(chat *c, const char *argument, size_t *keep) {
    (void)keep;
    return do_media(c, argument, false);
}

static chat_next do_audio(chat *c, const char *argument, size_t *keep) {
    (void)keep;
    return do_media(c, argument, true);
}

/* --- settings --------------------------------------------------------------------------------- */

/* Prints a setting, or all of them. */
static chat_next show_settings(chat *c, char *flag) {
    char *argv[] = {(char *)TOOL, flag, NULL};
    fflush(stdout);
    tool_begin_line();
    (void)cli_options_set(&c->o, flag ? 2 : 1, argv);
    if (!flag)
        chat_say(c, "/set NAME VALUE changes one");
    return CHAT_READ;
}

/* Returns what follows `word` and white space at the start of s; NULL: s begins otherwise. */
static const char *after_word(const char *s, const char *word) {
    const size_t n = strlen(word);
    return strncmp(s, word, n) == 0 && (s[n] == ' ' || !s[n]) ? s + n + strspn(s + n, " ") : NULL;
}

static chat_next do_set(chat *c, const char *argument, size_t *keep) {
    char name[128], flag[140];
    const char *rest =
        after_word(argument, "system"); /* `system` and `parameter` are ollama's words */
    if (rest)
        return do_system(c, rest, keep);
    if ((rest = after_word(argument, "parameter")))
        argument = rest;
    const size_t n = strcspn(argument, " =");
    const char *value = argument + n + strspn(argument + n, " =");
    if (n >= sizeof name)
        return wants("set", "NAME VALUE, such as /set temp 0.5");
    snprintf(name, sizeof name, "%.*s", (int)n, argument);
    snprintf(flag, sizeof flag, "--%s", name + strspn(name, "-"));
    if (!*value)
        return show_settings(c, n > 0 ? flag : NULL);
    char *copy = ggl_grow(&c->setting, &c->cap_settings, c->n_settings + 1, sizeof *c->setting)
                     ? ggl_copy_text(value)
                     : NULL;
    char *argv[] = {(char *)TOOL, flag, copy, NULL};
    const cli_options before = c->o;
    if (!copy || cli_options_set(&c->o, 3, argv) >= 0 || chat_new_sampler(c) >= 0) {
        c->o = before;
        free(copy);
        return CHAT_READ;
    }
    c->setting[c->n_settings++] = copy; /* options borrow their texts */
    c->shifts = c->o.shift;
    if (c->o.chat.reasoning >= N_REASONING) { /* how to show it stays */
        chat_options_settle(&c->o.chat);
        c->o.chat.reasoning = before.chat.reasoning;
        const template_settings settings = {
            .reasoning = c->o.chat.thinks, .budget = -1, .is_quiet = true};
        (void)tool_set_template(llm_opened_chat(c->ctx), TOOL, &settings);
    }
    chat_say(c, "(%s = %s)", flag + 2, value);
    return CHAT_READ;
}

static chat_next do_stats(chat *c, const char *argument, size_t *keep) {
    (void)argument;
    (void)keep;
    if (c->all.n_answers > 0) {
        chat_say_times(c, "last answer", &c->last);
        chat_say_times(c, "all answers", &c->all);
    } else {
        chat_say(c, "(there is no answer yet)");
    }
    const size_t n = llm_talk_n(c->talk);
    chat_say(c, "context      %zu of %" PRId64 " tokens, %zu message%s", c->n_used,
             llm_context_facts(c->ctx)->n_ctx, n, plural(n));
    return CHAT_READ;
}

/* --- help ------------------------------------------------------------------------------------- */

static chat_next do_help(chat *c, const char *argument, size_t *keep) {
    (void)argument;
    (void)keep;
    for (const command *k = all_commands(); k->name; k++)
        if (k->help)
            chat_say(c, "/%s %s%*s%s", k->name, k->argument,
                     (int)(18 - strlen(k->name) - strlen(k->argument)), "", k->help);
    chat_say(c, "//text              a message that begins with a slash");
    chat_say(c, "Ctrl-C stops an answer; Ctrl-D ends. A backslash at the end of a line, or");
    chat_say(c, "Alt-Enter, begins a new line. Ctrl-R searches, Tab completes.");
    return CHAT_READ;
}

static chat_next do_quit(chat *c, const char *argument, size_t *keep) {
    (void)c;
    (void)argument;
    (void)keep;
    return CHAT_END;
}

static const command commands[] = {
    {"help", "", "this list", do_help, false},
    {"clear", "", "begin again; the system message stays", do_clear, false},
    {"undo", "", "take the last message and its answer back", do_undo, false},
    {"regen", "", "answer the last message again", do_regen, false},
    {"system", "TEXT", "set the system message; - removes it", do_system, false},
    {"set", "NAME VALUE", "change a setting: /set temp 0.5; alone, list them", do_set, false},
    {"save", "FILE", "save the conversation as JSON", do_save, true},
    {"load", "FILE", "go on with a saved one", do_load, true},
    {"read", "FILE", "put a text file before your next message", do_read, true},
    {"image", "FILE", "show a picture before your next message", do_image, true},
    {"audio", "FILE", "play a sound before your next message", do_audio, true},
    {"tool", "RESULT", "answer with the result of a tool that was called", do_tool, false},
    {"show", "", "print the conversation", do_show, false},
    {"stats", "", "speed and size", do_stats, false},
    {"quit", "", "end", do_quit, false},
    {"history", "", NULL, do_show, false},
    {"exit", "", NULL, do_quit, false},
    {"bye", "", NULL, do_quit, false},
    {"?", "", NULL, do_help, false},
    {NULL, NULL, NULL, NULL, false},
};

static const command *all_commands(void) {
    return commands;
}

/* Names the commands that begin with what was typed. False if none. */
static bool say_beginnings(const char *name) {
    char names[200] = "";
    size_t n = 0;
    for (const command *k = commands; k->name; k++)
        if (*name && k->help && strncmp(k->name, name, strlen(name)) == 0)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s/%s", n ? " or " : "", k->name);
    if (n > 0)
        (void)tool_error(TOOL, 0, "there is no command /%s; did you mean %s?", name, names);
    return n > 0;
}

static void say_unknown(const char *name) {
    const command *best = NULL;
    size_t least = 3;
    if (!*name) {
        (void)tool_error(TOOL, 0, "a command's name is missing; /help lists them");
        return;
    }
    if (say_beginnings(name))
        return;
    for (const command *k = commands; k->name; k++) {
        const size_t d = args_distance(name, strlen(name), k->name, strlen(k->name));
        if (d < least) {
            least = d;
            best = k;
        }
    }
    if (best)
        (void)tool_error(TOOL, 0, "there is no command /%s; did you mean /%s?", name, best->name);
    else
        (void)tool_error(
            TOOL, 0, "there is no command /%s; /help lists them, and //%s sends it as a message",
            name, name);
}

bool chat_is_command(ggl_str line) {
    bool is = false;
    for (const command *k = commands; k->name; k++) {
        const size_t n = strlen(k->name) + 1;
        is = is || (line.n >= n && line.s[0] == '/' && memcmp(line.s + 1, k->name, n - 1) == 0 &&
                    (line.n == n || strchr(" \t\n", line.s[n])));
    }
    return is;
}

chat_next chat_command(chat *c, ggl_str line, size_t *keep) {
    char name[64];
    char *text = ggl_copy_text_n(line.s + 1, line.n - 1);
    if (!text)
        return CHAT_READ;
    const size_t n = strcspn(text, " \t\n"), from = n + strspn(text + n, " \t");
    for (size_t end = strlen(text); end > from && strchr(" \t\n", text[end - 1]);)
        text[--end] = '\0';
    ggl_show(name, sizeof name, text, n);
    const command *k = commands;
    while (k->name && strcmp(k->name, name) != 0)
        k++;
    chat_next next = CHAT_READ;
    if (k->name && !*k->argument && text[from])
        (void)tool_error(TOOL, 0, "/%s takes no argument; '%s' is one too many", k->name,
                         text + from);
    else if (k->name)
        next = k->run(c, text + from, keep);
    else
        say_unknown(name);
    free(text);
    return next;
}

/* --- completion ------------------------------------------------------------------------------- */

static void complete_files(const char *s, size_t n, line_words *words) {
    char *typed = ggl_copy_text_n(s, n), *slash = typed ? ggl_os_last_separator(typed) : NULL;
    const char *begin = slash ? slash + 1 : typed;
    char *folder = NULL;
    if (slash)
        folder = ggl_copy_text_n(typed, (size_t)(slash - typed) + 1);
    char *path = path_of(folder ? folder : "./");
    os_folder *dir = typed && path ? ggl_os_folder_open(path) : NULL;
    for (const char *e; dir && (e = ggl_os_folder_next(dir));) {
        char word[1024], full[2048];
        if (strncmp(e, begin, strlen(begin)) != 0 || (e[0] == '.' && *begin != '.'))
            continue;
        snprintf(full, sizeof full, "%s%s/.", path, e);
        os_folder *is_folder = ggl_os_folder_open(full);
        snprintf(word, sizeof word, "%s%s%s", folder ? folder : "", e, is_folder ? "/" : "");
        if (is_folder)
            ggl_os_folder_close(is_folder);
        line_words_add(words, word);
    }
    if (dir)
        ggl_os_folder_close(dir);
    free(path);
    free(folder);
    free(typed);
}

void chat_complete(void *ctx, const char *text, size_t cursor, line_words *words) {
    (void)ctx;
    if (cursor == 0 || text[0] != '/')
        return;
    for (const command *k = commands; k->name; k++) {
        const size_t n = strlen(k->name);
        char word[64];
        snprintf(word, sizeof word, "/%s ", k->name);
        if (k->help && strncmp(text, word, cursor) == 0)
            line_words_add(words, word);
        if (k->takes_file && cursor > n + 1 && strncmp(text + 1, k->name, n) == 0 &&
            text[n + 1] == ' ') {
            words->start = n + 2;
            complete_files(text + n + 2, cursor - n - 2, words);
        }
    }
}
