/* The built-in chat templates, from named.txt. */
#include <string.h>

#include "common/lines.h"
#include "llm/internal/chat.h"

extern const unsigned char llm_embedded_named_templates[];
extern const size_t llm_embedded_named_templates_size;

static const char mark[] = "=== ";
enum { N_MARK = sizeof mark - 1 };

bool llm_chat_named(int k, ggl_str *name, ggl_str *text) {
    ggl_str rest = {(const char *)llm_embedded_named_templates, llm_embedded_named_templates_size};
    ggl_str line;
    bool found = false;
    *name = *text = (ggl_str){"", 0};
    while (llm_take_line(&rest, &line)) {
        const bool begins = line.n > N_MARK && memcmp(line.s, mark, N_MARK) == 0;
        if (begins && found)
            break;
        if (begins && k-- == 0) {
            found = true;
            *name = (ggl_str){line.s + N_MARK, line.n - N_MARK};
            *text = (ggl_str){rest.s, 0};
        } else if (found) {
            text->n = (size_t)(line.s + line.n - text->s);
        }
    }
    return found;
}
