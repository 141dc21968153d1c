#include "serve_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../../models/common/json.h"
#include "common/json_text.h"

static const char *const words[] = {
    "about",   "above",   "after",   "again",    "almost",   "along",   "answer",  "apple",
    "around",  "autumn",  "balance", "basket",   "before",   "begin",   "behind",  "between",
    "bird",    "bottle",  "bread",   "bridge",   "bright",   "bring",   "brother", "build",
    "butter",  "candle",  "carry",   "castle",   "chair",    "change",  "circle",  "city",
    "clear",   "climb",   "clock",   "cloud",    "coffee",   "cold",    "colour",  "corner",
    "country", "cover",   "danger",  "daughter", "deep",     "desert",  "doctor",  "door",
    "dress",   "early",   "earth",   "eight",    "empty",    "engine",  "enough",  "evening",
    "every",   "family",  "farmer",  "father",   "field",    "finger",  "fire",    "flower",
    "follow",  "forest",  "forget",  "friend",   "garden",   "gather",  "gentle",  "glass",
    "grain",   "green",   "ground",  "hammer",   "happy",    "harbour", "heart",   "heavy",
    "hidden",  "history", "holiday", "honest",   "horse",    "hunger",  "iron",    "island",
    "journey", "kitchen", "ladder",  "lamp",     "language", "large",   "laugh",   "leather",
    "letter",  "light",   "listen",  "little",   "machine",  "market",  "meadow",  "measure",
    "member",  "middle",  "minute",  "mirror",   "money",    "morning", "mother",  "mountain",
    "music",   "narrow",  "nature",  "never",    "north",    "number",  "ocean",   "office",
    "orange",  "paper",   "pencil",  "people",   "picture",  "planet",  "pocket",  "question",
    "quiet",   "river",   "summer",  "table",    "travel",   "window",  "winter"};
enum { N_WORDS = sizeof words / sizeof *words };

/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t serve_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t serve_seed(uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t more[] = {a, b, c};
    for (size_t i = 0; i < 3; i++) {
        uint64_t state = seed ^ (more[i] + 1) * 0xd6e8feb86659fd93u;
        seed = serve_random(&state);
    }
    return seed;
}

double serve_gap(uint64_t *state, double rate) {
    double u = ((double)(serve_random(state) >> 11) + 0.5) * 0x1p-53; /* 0 < u < 1 */
    return -log(u) / rate;
}

void serve_put_words(FILE *out, uint64_t seed, size_t n) {
    for (size_t i = 0; i < n; i++) {
        fputs(i ? " " : "", out);
        fputs(words[serve_random(&seed) % N_WORDS], out);
    }
}

/* --- bodies ----------------------------------------------------------------------------------- */

static void put_prompt(FILE *out, const serve_body *b) {
    if (b->chat) {
        fputs(", \"messages\": [", out);
        fwrite(b->prompt, 1, b->n_prompt, out);
        putc(']', out);
    } else {
        fputs(", \"prompt\": ", out);
        json_put_string(out, b->prompt, b->n_prompt);
    }
}

void serve_put_body(FILE *out, const serve_body *b) {
    fputs("{\"model\": ", out);
    json_put_string(out, b->model, strlen(b->model));
    put_prompt(out, b);
    fprintf(out,
            ", \"max_tokens\": %" PRId64 ", \"temperature\": %g, \"seed\": %" PRIu64
            ", \"stream\": true, \"stream_options\": {\"include_usage\": true}",
            b->max_tokens, b->temperature, b->seed);
    if (b->ignore_eos)
        fputs(", \"ignore_eos\": true", out);
    for (size_t i = 0; i < b->n_fields; i++) {
        const char *equals = strchr(b->field[i], '=');
        fputs(", ", out);
        json_put_string(out, b->field[i], (size_t)(equals - b->field[i]));
        fprintf(out, ": %s", equals + 1);
    }
    putc('}', out);
}

const char *serve_check_field(const char *s) {
    static const char *const own[] = {"model",      "messages",       "prompt",
                                      "max_tokens", "temperature",    "seed",
                                      "stream",     "stream_options", "ignore_eos"};
    const char *equals = strchr(s, '=');
    llm_json *doc;
    if (!equals || equals == s)
        return "is not NAME=JSON, such as cache_prompt=false";
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (ggl_str_is((ggl_str){s, (size_t)(equals - s)}, own[i]))
            return "is set by llm-bench itself; see --help";
    if (llm_json_parse(&doc, equals + 1, strlen(equals + 1), "value", NULL) != GGL_OK)
        return "has a value that is not JSON; texts need their quotes: 'user=\"me\"'";
    llm_json_free(doc);
    return NULL;
}
