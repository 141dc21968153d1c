/* Answers whose reasoning the prompt begins. */
#ifndef TRAIN_DATA_THOUGHT_H
#define TRAIN_DATA_THOUGHT_H

#include "common/json_write.h"
#include "llm/internal/talk.h"

/* Some templates end the prompt with "<think>", and show an answer without its reasoning (DeepSeek R1's distillations, QwQ). Appends what the
 * model shall then write: the reasoning of the message, its closing tag, and the answer as the template shows it. prompt: what the
 * template asks with; whole: what it shows with the answer. False: the prompt ends with no tag that is missing in `whole`, or the message
 * has no reasoning. */
bool llm_train_thought(llm_json_out *out, ggl_str prompt, ggl_str whole,
                       const llm_talk_message *message);

#endif
