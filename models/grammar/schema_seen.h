/* What the cases of a schema evaluate: the basis of unevaluatedProperties and unevaluatedItems. */
#ifndef LLM_GRAMMAR_SCHEMA_SEEN_H
#define LLM_GRAMMAR_SCHEMA_SEEN_H

#include "schema_impl.h"

/* A case that says that nothing is evaluated. Cases of traced literals always have a facet of this sort. */
const cases *llm_seen_none(schema *s);
/* True if the second case evaluates something that the first does not. */
bool llm_seen_adds(schema *s, const facet *first, const facet *second);
/* Makes each case's elements that are not evaluated fit `lit`, the value of the keyword in `node`. Removes the
 * facets of what is evaluated; if `traced`, all is evaluated now. */
const cases *llm_seen_others(schema *s, const json_value *node, schema_type t, const cases *all,
                             literal lit, bool traced);
/* The negation for one case: an element that is not evaluated does not fit `lit`. NULL: all are evaluated, or the
 * status is set. */
const cases *llm_seen_violated(schema *s, const json_value *node, schema_type t, const facet *own,
                               literal lit);
/* True if the schema of an EXTRA facet (or its value, or what is evaluated) lists the name; if it has patterns of
 * names. */
bool llm_facet_names(schema *s, const facet *f, ggl_str name);
bool llm_facet_has_patterns(schema *s, const facet *f);

#endif
