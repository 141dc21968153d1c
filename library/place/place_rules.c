#include "place_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/glob.h"
#include "common/pattern.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"

/* The names of weights of all experts of a layer, as in llama.cpp's --cpu-moe. */
static const char EXPERTS[] = "\\.ffn_(up|down|gate|gate_up)_(ch)?exps";

/* Adds a rule without a pattern. NULL: out of memory, reported in *err. */
static place_rule *add(place_rules *r, const char *flag, const char *text, size_t n,
                       ggl_error *err) {
    place_rule *grown = realloc(r->rule, (r->n + 1) * sizeof *grown);
    if (!grown) {
        (void)ggl_fail(err, GGL_NOMEM, "out of memory");
        return NULL;
    }
    r->rule = grown;
    grown[r->n] = (place_rule){.flag = flag, .text = text, .n_text = n, .n_layers = -1};
    return &grown[r->n];
}

/* Copies the backend's name, in lower case if `lower` and it is no path. False: it is empty or too long. */
static bool set_backend(place_rule *rule, const char *name, size_t n, bool lower) {
    if (n == 0 || n >= sizeof rule->backend)
        return false;
    lower = lower && !ggl_os_has_separator(name, n);
    for (size_t i = 0; i < n; i++)
        rule->backend[i] =
            (char)(lower && name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 'a' - 'A' : name[i]);
    return true;
}

/* Reads PATTERN=NAME from the n bytes at s. */
static ggl_status read_rule(place_rules *r, const char *flag, const char *example, bool glob,
                            const char *s, size_t n, ggl_error *err) {
    size_t eq = n;
    while (eq > 0 && s[eq - 1] != '=')
        eq--;
    place_rule *rule = add(r, flag, s, n, err);
    if (!rule)
        return GGL_NOMEM;
    if (eq < 2 || !set_backend(rule, s + eq, n - eq, !glob))
        return ggl_fail(err, GGL_USAGE, "%s: '%.*s' is not PATTERN=NAME, as in '%s'", flag, (int)n,
                        s, example);
    const ggl_str pattern = {s, eq - 1};
    rule->of_experts = !glob && eq > 4 && ggl_find_bytes(s, eq, "exps", 4);
    rule->glob = glob ? pattern : (ggl_str){NULL, 0};
    const ggl_status st = glob ? GGL_OK : llm_pattern_read(&rule->regex, pattern, err);
    r->n += st == GGL_OK;
    return st == GGL_OK ? st : ggl_within(err, st, "%s", flag);
}

/* Adds the rule for the experts of the first n layers; -1: of all. */
static ggl_status add_experts(place_rules *r, const char *flag, int64_t n, ggl_error *err) {
    place_rule *rule = add(r, flag, "", 0, err);
    if (!rule)
        return GGL_NOMEM;
    rule->n_layers = n;
    rule->optional = true;
    (void)set_backend(rule, "cpu", 3, false);
    const ggl_status st =
        llm_pattern_read(&rule->regex, (ggl_str){EXPERTS, sizeof EXPERTS - 1}, err);
    r->n += st == GGL_OK;
    return st;
}

ggl_status llm_place_rules_read(place_rules *r, const place_rule_options *o, ggl_error *err) {
    ggl_status st = GGL_OK;
    *r = (place_rules){0};
    for (size_t i = 0; i < o->place.n && st == GGL_OK; i++)
        st = read_rule(r, o->are_members ? "place" : "--place", "blk.*.ffn_*exps*=cpu", true,
                       o->place.s[i], strlen(o->place.s[i]), err);
    for (size_t i = 0; i < o->override.n; i++)
        for (const char *s = o->override.s[i]; *s && st == GGL_OK;) {
            const size_t n = strcspn(s, ",");
            st = read_rule(r, "-ot", "ffn_.*_exps=CPU", false, s, n, err);
            s += n + (s[n] == ',');
        }
    if (st == GGL_OK && o->cpu_moe)
        st = add_experts(r, o->are_members ? "cpu_moe" : "--cpu-moe", -1, err);
    else if (st == GGL_OK && o->n_cpu_moe > 0)
        st = add_experts(r, o->are_members ? "n_cpu_moe" : "--n-cpu-moe", o->n_cpu_moe, err);
    return st;
}

void llm_place_rules_fini(place_rules *r) {
    for (size_t i = 0; i < r->n; i++)
        llm_pattern_free(r->rule[i].regex);
    free(r->rule);
    *r = (place_rules){0};
}

bool llm_place_rules_name_backends(const place_rule_options *o) {
    return o->place.n > 0 || o->override.n > 0;
}

void llm_place_rules_begin(place_rules *r) {
    r->has_experts = false;
    for (size_t i = 0; i < r->n; i++)
        r->rule[i].used = r->rule[i].hidden = false;
}

static bool matches(const place_rule *rule, const char *weight) {
    int layer;
    const ggl_str name = {weight, strlen(weight)};
    if (!rule->regex)
        return llm_glob_matches(rule->glob, name);
    if (rule->n_layers >= 0 && (sscanf(weight, "blk.%9d.", &layer) != 1 || layer >= rule->n_layers))
        return false;
    return llm_pattern_matches(rule->regex, name);
}

const place_rule *llm_place_rules_find(place_rules *r, const char *weight) {
    place_rule *first = NULL;
    r->has_experts = r->has_experts || strstr(weight, "exps");
    for (size_t i = 0; i < r->n; i++)
        if (matches(&r->rule[i], weight)) {
            *(first ? &r->rule[i].hidden : &r->rule[i].used) = true;
            first = first ? first : &r->rule[i];
        }
    return first;
}

/* True for a rule that may have matched nothing. */
static bool is_optional(const place_rules *r, const place_rule *rule) {
    return rule->optional || (rule->of_experts && !r->has_experts);
}

ggl_status llm_place_rules_check(const place_rules *r, ggl_error *err) {
    for (size_t i = 0; i < r->n; i++) {
        const place_rule *rule = &r->rule[i];
        if (!rule->used && !is_optional(r, rule))
            return ggl_fail(
                err, GGL_USAGE, "%s '%.*s': %s", rule->flag, (int)rule->n_text, rule->text,
                rule->hidden ? "earlier patterns match all its weights; the first match "
                               "counts, so put it before them"
                             : "no weight that is read has a matching name");
    }
    return GGL_OK;
}

const char *llm_place_rules_unused(const place_rules *r) {
    for (size_t i = 0; i < r->n; i++)
        if (is_optional(r, &r->rule[i]) && !r->rule[i].used && !r->rule[i].hidden)
            return r->rule[i].flag;
    return NULL;
}
