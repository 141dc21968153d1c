#include "answer_marks.h"

ggl_str answer_marks_format(ggl_str template_text) {
    static const char reasoning[] = "reasoning";
    const ggl_str format = llm_calls_format(template_text);
    return ggl_str_is(format, "plain") ? (ggl_str){reasoning, sizeof reasoning - 1} : format;
}

answer_marks answer_marks_of(ggl_str format) {
    static const char *const without_calls[] = {"plain", "reasoning", "reasoning-tags"};
    for (size_t i = 0; i < sizeof without_calls / sizeof *without_calls; i++)
        if (ggl_str_is(format, without_calls[i]))
            return MARKS_THINK;
    return MARKS_SHOWN;
}

bool answer_marks_show(answer_marks marks, ggl_str control_token) {
    return marks == MARKS_SHOWN ||
           (marks == MARKS_THINK &&
            (ggl_str_is(control_token, "<think>") || ggl_str_is(control_token, "</think>")));
}
