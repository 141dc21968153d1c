/* Control tokens that belong to the text of an answer: marks around reasoning and calls of tools. */
#ifndef TOOLS_ANSWER_MARKS_H
#define TOOLS_ANSWER_MARKS_H

#include "llm/internal/calls.h"

/* Which control tokens are text for llm_calls_add. */
typedef enum answer_marks {
    MARKS_HIDDEN, /* none */
    MARKS_THINK,  /* <think> and </think> */
    MARKS_SHOWN   /* all: the format of calls uses them as marks */
} answer_marks;

/* Returns the format of answers for llm_calls_params.format. If nothing in the chat template shows one, it is that of
 * reasoning: the model may think all the same. */
ggl_str answer_marks_format(ggl_str template_text);
/* Returns which control tokens are text in answers of this format. */
answer_marks answer_marks_of(ggl_str format);
/* True if the control token with this text is part of the answer's text. */
bool answer_marks_show(answer_marks marks, ggl_str control_token);

#endif
