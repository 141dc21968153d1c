/* How a text model with an ear is asked to write down what is said, by the speech sections of the ear's descriptor, and how its answer is read. */
#ifndef LIBRARY_ASKING_H
#define LIBRARY_ASKING_H

#include "context.h"
#include "noticing.h"

/* What is asked for. */
typedef struct asking_wishes {
    const char *language, *prompt; /* a code, and words to expect; NULL: none */
    bool translate;
} asking_wishes;

/* The tokens of a prompt are those before the sound, its rows, and those behind it. */
typedef struct asking {
    llm_context *c;
    const llm_arch_speech *how;
    asking_wishes wishes;
    const char *mark; /* that stands for the sound */
    int n_marks;      /* of the sound in the prompt that is being made */
} asking;

/* Finds the section for these wishes: the first whose tokens the model has, and whose text is not empty. GGL_UNSUPPORTED: it takes no prompt; GGL_USAGE: the section refuses
 * the wishes; and as asking_prompt. */
GGL_NODISCARD ggl_status llm_asking_open(asking *a, llm_context *c, const llm_eye *ear,
                                         const asking_wishes *wishes, ggl_error *err);
/* True if the text that asks says the language. */
bool llm_asking_tells_language(const asking *a);
/* Makes the prompt for a sound, which its mark names (llm_listen). GGL_UNSUPPORTED: the chat template leaves the sound out; statuses of llm_template_render,
 * llm_chat_prompt and llm_tokenize_marked. */
GGL_NODISCARD ggl_status llm_asking_prompt(asking *a, const char *mark, llm_tokens *ids,
                                           ggl_error *err);
/* True if an answer is the written text and nothing else but spaces around it, so that its beginning can be given before it ends. */
bool llm_asking_is_plain(const asking *a);
/* Finds what is said in an answer of n bytes: sets *text and *n_text to that part of it, without spaces around it. code: the language that the answer
 * names; NULL: none. */
void llm_asking_read(const asking *a, const char *answer, size_t n, const char **text,
                     size_t *n_text, const char **code);

#endif
