/* The models linked into tools (models/builtin), so that they run without a file. */
#ifndef LLM_BUILTIN_MODEL_H
#define LLM_BUILTIN_MODEL_H

#include <stddef.h>

/* Tells stories; also in llm-bench and llm-perplexity. */
extern const unsigned char llm_builtin_model[];
extern const size_t llm_builtin_model_size;
/* Answers in a conversation: its file has a chat template. */
extern const unsigned char llm_builtin_chat_model[];
extern const size_t llm_builtin_chat_model_size;

/* Says which shapes a picture has: its text model, and its eye. */
extern const unsigned char llm_builtin_shapes_model[];
extern const size_t llm_builtin_shapes_model_size;
extern const unsigned char llm_builtin_shapes_eye[];
extern const size_t llm_builtin_shapes_eye_size;
/* Writes down spoken digits and words. */
extern const unsigned char llm_builtin_words_model[];
extern const size_t llm_builtin_words_model_size;

#endif
