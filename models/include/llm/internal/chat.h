/* Conversations as prompts: the chat template of a model file, with the variables that the file's
 * tokenizer gives it. What the template wants of conversations, such as arguments of calls as a text, and which marks its answers have,
 * is found out once, when it is opened.
 *
 *     llm_chat *chat;
 *     if (llm_chat_new(&chat, file, tokenizer, NULL, &err) != GGL_OK) ...  // GGL_NOT_FOUND: none
 *     llm_chat_made made = {0};
 *     const llm_chat_params p = {.end = LLM_CHAT_ASKS, .made = &made};
 *     if (llm_chat_prompt(chat, talk, &p, &text, &n, &err) != GGL_OK) ...  // talk: llm/internal/talk.h
 *     llm_tokenize_given(tokenizer, &made.given, text, n, LLM_TOKENIZE_SPECIAL, &ids, &err);
 *     llm_chat_made_fini(&made);
 *     ggl_free(text);
 *     llm_chat_free(chat);
 *
 * Threads: an opened llm_chat does not change, so any number of threads may use it at the same
 * time. */
#ifndef LLM_CHAT_H
#define LLM_CHAT_H

#include "llm/internal/calls.h"
#include "llm/internal/talk.h"
#include "llm/internal/template.h"
#include "llm/internal/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_chat llm_chat;

/* A template to use in place of the file's. */
typedef struct llm_chat_template {
    /* For messages; with text.s NULL: the file's template of this name, such as "tool_use"
     * (tokenizer.chat_template.tool_use), or else the built-in one, such as "chatml". */
    const char *name;
    ggl_str text;
} llm_chat_template;

/* Gets the k-th built-in template: its name, and its text. They are for files without a template, and
 * render plain conversations. False: there are k or fewer. */
bool llm_chat_named(int k, ggl_str *name, ggl_str *text);

/* Parses a template. file and t are needed during the call only; both may be NULL if `with` has a
 * text, or names a built-in template. with NULL: the file's template (tokenizer.chat_template). GGL_NOT_FOUND: the file has no
 * such template; else as llm_template_new. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_chat_new(llm_chat **out, const ggl_gguf *file, const llm_tokenizer *t,
                                      const llm_chat_template *with, ggl_error *err);
void llm_chat_free(llm_chat *c);
const llm_template *llm_chat_get_template(const llm_chat *c);
/* Returns the template's text. Valid until llm_chat_free. */
ggl_str llm_chat_text(const llm_chat *c);

/* Sets variables for all conversations, the text of a JSON object; later ones, and those of llm_chat_prompt, have
 * priority. name: their source, for messages. Not while another thread uses c. GGL_FORMAT: not an object; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_chat_set(llm_chat *c, ggl_str vars, const char *name, ggl_error *err);
/* Returns the token's text that is put before prompts because the file demands it (add_bos_token) and the template does not
 * write it; empty: nothing is. Hugging Face's apply_chat_template leaves it out, llama.cpp adds it. */
ggl_str llm_chat_added_bos(const llm_chat *c);
/* leave true: nothing but the template decides, as with Hugging Face. Not while another thread uses c. */
void llm_chat_leave_bos_out(llm_chat *c, bool leave);

/* parse true: control tokens that stand in messages, tools and documents are control tokens. Not while another thread uses c. */
void llm_chat_parse_special(llm_chat *c, bool parse);

/* True if the template refuses ids of calls that are not nine letters and digits. Calls that a model writes without an id get such ones then. */
bool llm_chat_has_short_ids(const llm_chat *c);
/* True if the template shows a conversation's tools. */
GGL_INTERNAL_API bool llm_chat_shows_tools(const llm_chat *c);
/* True for a role of messages: system, developer, user, assistant, tool, function, and those that stand between quotes in the template. */
GGL_INTERNAL_API bool llm_chat_knows_role(const llm_chat *c, ggl_str role);
/* Returns how answers are read: format, template_text and size are set. Prompt, tools and the rest are the caller's. Valid until
 * llm_chat_free. */
llm_calls_params llm_chat_answers(const llm_chat *c);

/* How a prompt ends. */
typedef enum llm_chat_end {
    LLM_CHAT_AS_SAID, /* as the variable add_generation_prompt says; without it, after the last message */
    LLM_CHAT_ASKS, /* with the beginning of an answer */
    LLM_CHAT_ENDS  /* after the last message */
} llm_chat_end;

/* The name of an effort of reasoning as a constant text: none, minimal, low, medium, high, xhigh or max; NULL: v is none of these. */
const char *llm_chat_effort(const struct json_value *v);

typedef enum llm_chat_change {
    LLM_CHAT_JOINED, /* system messages at the beginning that are one */
    LLM_CHAT_MOVED, /* system messages whose texts stand in messages of the user or results of tools */
    LLM_CHAT_USERS,    /* messages of the user that are one with the one before them */
    LLM_CHAT_CALLS,    /* calls of tools that stand in the contents of their messages */
    LLM_CHAT_RESULTS,  /* results of tools that stand in messages of the user */
    LLM_CHAT_NO_TOOLS, /* 1: there are tools, but the template shows none */
    LLM_CHAT_N_CHANGES
} llm_chat_change;

/* What the template cannot show of a conversation as it was given, and what the prompt has in its place. */
typedef struct llm_chat_changes {
    size_t n[LLM_CHAT_N_CHANGES]; /* how many of each */
    const char *effort,
        *effort_asked; /* of reasoning, in place of the one that was asked for; NULL: none */
} llm_chat_changes;

/* What else is known of a prompt that was made. Zero it before the first use. */
typedef struct llm_chat_made {
    llm_chat_changes changes;
    llm_spans
        given; /* what stems from messages, tools and documents; empty after llm_chat_parse_special */
} llm_chat_made;
static inline void llm_chat_made_fini(llm_chat_made *m) {
    llm_spans_fini(&m->given);
}

enum { LLM_CHAT_NOTES = 1024 };
/* Writes what has changed as sentences, with `between` between two. False: nothing has, and text is "". */
bool llm_chat_notes(const llm_chat_changes *c, const char *between, char text[LLM_CHAT_NOTES]);
/* True if something has changed more than it had before. */
bool llm_chat_has_more(const llm_chat_changes *now, const llm_chat_changes *before);

/* Zero is what is usual. */
typedef struct llm_chat_params {
    llm_chat_end end;
    size_t
        first; /* messages after the system's at the beginning, and before this one, are left out */
    size_t n;  /* the first n messages alone; 0: all */
    const char *
        name; /* the conversation's source, such as a file, with which messages begin; NULL: nothing */
    llm_chat_made *made; /* is set; NULL: nobody asks */
} llm_chat_params;

/* Renders a conversation. Unless its variables or llm_chat_set
 * say otherwise, tools and documents are none, add_generation_prompt is false, enable_thinking is true, and bos_token,
 * eos_token, unk_token, pad_token, sep_token, cls_token and mask_token are those of the tokenizer;
 * tokens that it lacks are undefined. If the variable tool_choice is "none", tools are none, too. For templates that read them, `functions` is the text of
 * tools, and `datetime` the date. Messages are as the template wants them: the roles developer and function become system and tool where it does not know
 * the former, and the reasoning has the name that it reads. No text of a system message is left out: those at the beginning are joined if the
 * template shows only one, and those that it does not show stand in the message of the user, or the result of a tool, that is before them, or else after them, or are
 * a turn of the user. A conversation that goes on keeps its beginning.
 * The text has all special tokens that the prompt needs, bos
 * included, as the file demands it: tokenize it with LLM_TOKENIZE_SPECIAL alone, and with p->made->given (llm_tokenize_given), so that what looks like a control token
 * in a message is text. p may be NULL. Statuses
 * of llm_template_render; an error that a message has caused names it: "messages[2]: ..". The caller frees *text, of *size bytes and a NUL, by ggl_free. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_chat_prompt(const llm_chat *c, const llm_talk *talk,
                                                          const llm_chat_params *p, char **text,
                                                          size_t *size, ggl_error *err);
/* Calls each() for every variable of a conversation that the template does not read, which may be a typing
 * error. Names that conversations often have anyway (tools, documents, add_generation_prompt, now, and
 * those of tokens) are passed over. The name is valid during the call. */
void llm_chat_unread(const llm_chat *c, const llm_talk *talk, void (*each)(void *arg, ggl_str name),
                     void *arg);

#ifdef __cplusplus
}
#endif
#endif
