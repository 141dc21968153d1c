#include "job_rules.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>

#include "llm/internal/beams.h"

static_assert(LLM_JOB_N_WISHES <= 32, "a set of wishes is a uint32_t");

#define NOTHING 0
#define JOB(id) (UINT32_C(1) << LLM_JOB_##id)

static const struct {
    uint32_t not_with;
    const char *what, *word[LLM_JOB_N_WORDS];
} rules[] = {
#define JOB_WISH(id, not_with, what, member, flag, field) {not_with, what, {member, flag, field}},
#include "job_rules.def"
};

const char *llm_job_word(llm_job_wish wish, llm_job_words words) {
    return rules[wish].word[words];
}

/* Returns the first of a set of wishes. */
static int first_of(uint32_t wishes) {
    int i = 0;
    while (!(wishes >> i & 1))
        i++;
    return i;
}

static ggl_status refuse(int a, int b, llm_job_words words, ggl_error *err) {
    if (a == LLM_JOB_DIFFUSION)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model writes by diffusion, all of a text at once, where %s (%s) "
                        "cannot be used",
                        rules[b].what, rules[b].word[words]);
    return ggl_fail(err, GGL_USAGE, "%s (%s) and %s (%s) cannot be used together", rules[a].what,
                    rules[a].word[words], rules[b].what, rules[b].word[words]);
}

ggl_status llm_job_check(uint32_t wishes, llm_job_words words, const char **word, ggl_error *err) {
    for (int i = 0; i < LLM_JOB_N_WISHES; i++) {
        const uint32_t against = wishes >> i & 1 ? wishes & rules[i].not_with : 0;
        if (against == 0)
            continue;
        if (word)
            *word = rules[i].word[words];
        return refuse(first_of(against), i, words, err);
    }
    return GGL_OK;
}

ggl_status llm_job_check_beams(int64_t n, int64_t n_places, llm_job_words words, ggl_error *err) {
    static const char *const places[LLM_JOB_N_WORDS] = {[LLM_JOB_MEMBERS] = "n_parallel",
                                                        [LLM_JOB_FLAGS] = "--beams",
                                                        [LLM_JOB_FIELDS] = "--parallel"};
    if (n < 0 || n > LLM_MAX_BEAMS)
        return ggl_fail(err, GGL_USAGE, "%s is %" PRId64 "; 0 to %d beams are possible",
                        llm_job_word(LLM_JOB_BEAMS, words), n, LLM_MAX_BEAMS);
    if (n > 1 && n > n_places)
        return ggl_fail(err, GGL_USAGE,
                        "%" PRId64 " beams need as many sequences (%s), but there are %" PRId64, n,
                        places[words], n_places);
    return GGL_OK;
}
