/* A conversation, shared by the files chat*.c. */
#ifndef TOOLS_CHAT_IMPL_H
#define TOOLS_CHAT_IMPL_H

#include "chat.h"
#include "chat_input.h"
#include "chat_show.h"
#include "common/json.h"
#include "common/word_wrap.h"
#include "llm/internal/chat.h"
#include "llm/internal/talk.h"

#define TOOL "llm-cli"

/* Bytes. */
typedef struct chat_text {
    char *s;
    size_t n, cap;
} chat_text;

typedef struct chat_times {                         /* of answers */
    int64_t n_answers, n_prompt, n_reused, n_drawn; /* tokens */
    double t_prompt, t_draw, t_repack;              /* seconds; t_repack is a part of t_draw */
} chat_times;

typedef struct chat {
    const chat_setup *setup;
    cli_options o; /* a copy: /set changes it */
    llm_talk *talk;
    size_t first;  /* messages between the system message and this one no longer fit */
    size_t n_used; /* tokens of the conversation as far as it is kept; 0: not known */
    llm_context *ctx;
    llm_chat_changes
        told_changes; /* what was said of prompts that do not show all as it was given */
    bool is_fresh;    /* the next answer begins with a new sampler */
    chat_input in;
    text_stream out;
    word_wrap wrap;  /* of answers on a terminal */
    chat_show *show; /* of the answer that is drawn */
    size_t n_read,
        n_shown;          /* bytes of the tokens' texts, and of those that were given to be shown */
    bool has_told;        /* that a line from a pipe is no command */
    bool has_looks;       /* answers are on a terminal that can dim text */
    llm_json *tools;      /* of --tools: a list; NULL: none */
    chat_text tools_text; /* its text */
    /* Marks of calls or reasoning may be control tokens; the answer has some. */
    bool has_marks, marked;
    bool has_begun;      /* of llm_token_next_text: the answer goes on in the prompt's text */
    bool ends_reasoning; /* the mark that ends the reasoning of this answer was forced */
    bool shifts, told_shift, told_nan, interrupted;
    chat_text answer;      /* what the model says now */
    record record;         /* the same for --json-output */
    const char *finish;    /* why the answer ended, as in the record */
    llm_tokens drawn;      /* its tokens */
    llm_tokens forced;     /* the mark that ends reasoning */
    struct prompt *prompt; /* of the answer that is drawn */
    ggl_status full;       /* why no room could be made in a full context; full_err says more */
    ggl_error full_err;
    bool lacks_memory, is_incomplete; /* is_incomplete: by its grammar */
    chat_text attached;               /* by /read, for the next message */
    chat_text missing;                /* marks of pictures that a loaded conversation lacks */
    char **setting;                   /* values of /set, which the options borrow */
    size_t n_settings, cap_settings;
    char *saved_as; /* file of the last /save or /load */
    chat_times last, all;
} chat;

typedef enum chat_next { CHAT_READ, CHAT_ANSWER, CHAT_END } chat_next;

bool chat_text_add(chat_text *t, const char *s, size_t n); /* false: out of memory */

/* Lets the model answer the last message, shows the answer, and adds it to the conversation; also if
 * Ctrl-C ended it. If it cannot begin, because the template refuses the conversation, it does not fit, or
 * Ctrl-C comes before the first token, the messages after `keep` are removed. Returns -1, or an exit code
 * after an error message. */
int chat_answer(chat *c, size_t keep);
/* Renders the messages from `first` on, and the beginning of an answer if asks is set. The caller frees *text by ggl_free. */
ggl_status chat_render(const chat *c, const llm_talk *talk, size_t first, bool asks,
                       llm_chat_made *made, char **text, size_t *n, ggl_error *err);
/* Sets the variables that the command line gives the template. */
ggl_status chat_set_variables(const chat *c, llm_talk *talk, ggl_error *err);
/* Sets n_used after messages were added or removed without an answer. */
void chat_count_used(chat *c);

/* Returns a message's text with <__media__> in place of the marks of pictures, which the caller frees by free(); s NULL: the message has none, or memory
 * is out. */
ggl_str chat_shown(const llm_talk *talk, size_t message);
/* Says of a conversation that was saved that its pictures were not. */
void chat_tell_unsaved(chat *c);
/* Sets c->missing after a conversation was loaded, and says what its pictures need. */
void chat_find_missing(chat *c);
/* Removes the mark of a picture that was shown from c->missing. False: it was not missing. */
bool chat_found_missing(chat *c, const char *mark);

/* Runs a line that begins with '/'. keep: set for CHAT_ANSWER, as in chat_answer. */
chat_next chat_command(chat *c, ggl_str line, size_t *keep);
/* True for a line that is a command on a terminal. */
bool chat_is_command(ggl_str line);
void chat_complete(void *ctx, const char *text, size_t cursor, line_words *words);
/* Prints a line on stderr, dimmed on a terminal; arguments of %s are escaped. */
void chat_say(const chat *c, const char *fmt, ...) GGL_PRINTF(2, 3);

/* Prints the speed of answers. */
void chat_say_times(const chat *c, const char *of, const chat_times *t);

/* Has the next answer use the options for sampling as they are now. -1, or an exit code. */
int chat_new_sampler(chat *c);

#endif
