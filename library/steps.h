/* The steps of opening a model. */
#ifndef LIBRARY_STEPS_H
#define LIBRARY_STEPS_H

/* How far a context is opened by opening.h. */
typedef enum llm_opened {
    LLM_OPENED_NOTHING,
    LLM_OPENED_MODEL,    /* the file, its tokenizer and chat template */
    LLM_OPENED_BACKENDS, /* where it runs */
    LLM_OPENED_EYE,      /* the eye or ear, if there is one */
    LLM_OPENED_ADAPTERS,
    LLM_OPENED_SESSION, /* what runs where, and the size of the context */
    LLM_OPENED_GUESSES, /* the draft, with its weights */
    LLM_OPENED_WEIGHTS, /* all memory */
    LLM_OPENED_ALL
} llm_opened;

#endif
