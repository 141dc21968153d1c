/* Chat templates: any text, with some variables. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ggl/alloc.h"
#include "llm/internal/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char json[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi \\u00e9\"}, "
                               "{\"role\": \"assistant\", \"content\": null, \"n\": 1.5}], "
                               "\"tools\": null, \"b\": true, \"n\": 3, \"now\": "
                               "\"2025-03-09T14:05:06\"}";
    const ggl_str vars = {json, sizeof json - 1};
    const llm_template_params p = {
        .size = sizeof p, .vars = &vars, .n_vars = 1, .max_steps = 200000, .max_memory = 4 << 20};
    llm_template *t;
    char *text;
    size_t n;
    if (llm_template_new(&t, (const char *)data, size, "fuzz", NULL) != GGL_OK)
        return 0;
    if (llm_template_render(t, &p, &text, &n, NULL) == GGL_OK && strlen(text) > n)
        abort();
    else
        ggl_free(text);
    llm_template_free(t);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const text[] = {
        "{{ 'a'|map(*(['map', 'upper'] * n)) }}{{ dict(*[b], **{'x': 1}) }}{{ "
        "'abc'.removeprefix(('a',))"
        " }}{{ 'a'.startswith(('b', ('a', ((), 'c')))) }}{{ 'aba'.rfind('a', 0, -1) }}",
        "{{ 'a'.ljust(n, 'é') }}{{ 'a'.center(9, '') }}{{ '-1'.zfill(-n) }}{{ 'x y'.strip('yx ') "
        "}}{% "
        "filter e|upper|replace('A', 'b')|trim('b')|e %}a{% endfilter %}{{ '0x_1f'|int(base=n - 3) "
        "}}",
        "{%- for m in messages if m.content %}\n  {{- '<|' ~ m['role'] ~ '|>' + m.content | trim }}"
        "{%- endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}{# c #}",
        "{% macro f(a, b=[1, 2.5e1]) %}{{ a|tojson(indent=2) }}{{ b[::-1] }}{% endmacro %}{{ "
        "f(messages[0], b={'x': 1}) }}{% set ns = namespace(i=0) %}{% for x in range(3) %}{% set "
        "ns.i = ns.i + loop.index %}{% else %}{% endfor %}{{ ns.i // 2 ** 2 % 3 }}",
        "{{ 'a,b'.split(',')|map('upper')|join('-') }}{{ '%5.1f|%s'|format(1, none) }}{{ "
        "messages|selectattr('role', 'eq', 'user')|list|length }}{{ 'x' if b is defined and not n "
        "in [1] else 'y' }}{{ strftime_now('%d %b') }}{% raw %}{{ }}{% endraw %}",
        "{% set x %}a{% endset %}{% filter upper|replace('A', 'b') %}{{ x }}{% endfilter %}{% with "
        "a = 1, b = 2 %}{{ a < b <= 2 }}{% endwith %}{% generation %}{% break %}{% endgeneration "
        "%}{% call(q) f() %}{% endcall %}",
    };
    if (k >= (int)(sizeof text / sizeof *text))
        return false;
    *size = strlen(text[k]);
    *data = malloc(*size);
    if (!*data)
        abort();
    memcpy(*data, text[k], *size);
    return true;
}
