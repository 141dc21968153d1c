#include "abilities.h"

#include "server_impl.h"

/* By the model's kind and the options. */
static abilities abilities_of_card(const model_card *c, const server_options *o, llm_senses has) {
    llm_arch *arch = NULL;
    const bool is_known = llm_arch_open(&arch, c->family, NULL) == GGL_OK;
    const bool only_reads = is_known && server_only_reads(arch, o);
    const bool is_named = o->pooling >= 0;
    const bool may_rank =
        only_reads || is_named || (is_known && llm_arch_has_output(arch, "score"));
    const bool has_rows = only_reads || o->open.how.params.embeddings;
    const bool scores =
        has_rows && may_rank && (is_named ? o->pooling == LLM_POOL_RANK : c->scores);
    const bool hears = is_known && model_card_hears(arch);
    llm_arch_free(arch);
    return (abilities){.is_known = true,
                       .writes = !only_reads && !scores && !hears,
                       .has_tools = c->shows_tools,
                       .has_thinking = c->shows_thinking,
                       .embeds = has_rows && !scores && !hears,
                       .ranks = scores && c->ranks && !hears,
                       .sees = has.sees,
                       .listens = has.hears};
}

abilities abilities_of_server(const server *s) {
    const llm_chat *chat = llm_opened_chat(s->ctx);
    const llm_template *t = chat ? llm_chat_get_template(chat) : NULL;
    return (abilities){.is_known = true,
                       .writes = s->facts.writes,
                       .has_tools = t && llm_chat_shows_tools(chat),
                       .has_thinking = t && llm_template_mentions(t, "enable_thinking"),
                       .embeds = s->facts.n_embd > 0,
                       .ranks = s->facts.n_score > 0 && !*s->facts.why_no_rank.msg,
                       .sees = server_sees(&s->facts),
                       .listens = s->facts.listens};
}

abilities abilities_of(model *m, const server *s) {
    const server_options *o = model_options(m);
    const model_card *c = model_get_card(m);
    if (s && (!c->is_known || open_options_names_template(&o->open)))
        return abilities_of_server(s);
    const llm_senses has = s ? server_senses(&s->facts) : model_get_status(m).has;
    if (c->is_known)
        return abilities_of_card(c, o, has);
    const bool any = has.sees || has.hears;
    return (abilities){.is_known = any, .writes = any, .sees = has.sees, .listens = has.hears};
}

const char *model_other(model *own, ask_kind kind) {
    const model_list *l = models_get_list(model_table(own));
    for (size_t i = 0; i < l->n; i++) {
        model *m = l->at[i];
        server *seen = m == own ? NULL : model_peek(m);
        const abilities x = m == own ? (abilities){0} : abilities_of(m, seen);
        if (seen)
            model_unpeek(seen);
        if (kind == ASK_EMBED ? x.embeds : kind == ASK_RANK ? x.ranks : x.writes)
            return model_name(m);
    }
    return NULL;
}
