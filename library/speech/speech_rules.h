/* Which tokens a speech model may write next. The rules are those of the published program (openai/whisper, decoding.py): SuppressTokens,
 * SuppressBlank and ApplyTimestampRules. With times, a text is a row of segments, each between two times: <|0.00|> words <|2.40|>; the end of one
 * segment and the beginning of the next stand side by side, and times do not go back. */
#ifndef LIBRARY_SPEECH_RULES_H
#define LIBRARY_SPEECH_RULES_H

#include "speech_tokens.h"

typedef struct speech_rules {
    const speech_tokens *tokens;
    bool times; /* the text has times */
    int32_t
        most_first; /* the first one is at most so many steps after the window's beginning; -1: any */
} speech_rules;

/* Sets the logits [n_vocab] of tokens that may not follow id[0 .. n), what was written so far, to -INFINITY. */
void llm_speech_rules_apply(const speech_rules *r, const int32_t *id, size_t n, float *logits);

/* A logit that is so far from the largest counts as -INFINITY: exp(-40) is less than the last digit of a double. */
#define SPEECH_NOTHING (-40.0f)

/* Sets to[0 .. n) to the exponentials of (logits - the largest) / temperature, in f32, and returns their sum. */
double llm_speech_shares(const float *logits, int32_t n, double temperature, float *to);

/* log(sum(exp(logits[0 .. n)))), of such exponentials; -INFINITY if all logits are. */
double llm_speech_log_sum(const float *logits, int32_t n);

#endif
