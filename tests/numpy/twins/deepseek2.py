"""DeepSeek 2 and 3 (DeepSeek-AI 2024), after the papers and transformers' modeling_deepseek_v2.py and _v3.py."""
import functools

from mixtures import *
from nano import CASES, Weights, add, keys_of, other_names
from nano import guess

N_HEAD, R, ROT, D, DV = 4, 20, 6, 10, 14


def frequencies(k):
    """YaRN's frequencies; what it makes of the scores' scale, or, where a file has no multiplier for that, of the rotated part."""
    base, factor, multiplier = k("rope.freq_base", 10000.0), k("rope.scaling.factor", 1.0), k("rope.scaling.yarn_log_multiplier", 0.0)
    if k("rope.scaling.type", None) != "yarn":
        return inverse_frequencies(ROT, base) / factor, 1.0, 1.0
    theta = yarn_frequencies(ROT, base, factor, k("rope.scaling.original_context_length"))
    return theta, (multiplier * math.log(factor) + 1) ** 2, 1.0 if multiplier else 1 + 0.1 * math.log(factor)


def deepseek2(k, w, tokens, n_ctx, halves=False):
    """halves: how the indexer's rows are turned."""
    eps = k("attention.layer_norm_rms_epsilon")
    theta, sharper, mag = frequencies(k)
    later = np.array([math.log(t // k("attention.temperature_length", 8192) + 1) for t in range(len(tokens))])
    temperature = 1 + later * k("attention.temperature_scale", 0.0)

    top, chosen = k("attention.indexer.top_k", len(tokens)), None

    def choice(b, h, low):
        n, d = k("attention.indexer.head_count"), k("attention.indexer.key_length")
        q = split_heads(linear(low, b("indexer.attn_q_b")), n)
        key = layer_norm(linear(h, b("indexer.attn_k")), b("indexer.k_norm"), b("indexer.k_norm", ".bias"), 1e-6)[:, None]
        q, key = (np.concatenate([rotate(x[..., :ROT], theta, halves, mag), x[..., ROT:]], -1) for x in (q, key))
        return best_rows(q, key[:, 0], linear(h, b("indexer.proj")) / math.sqrt(n * d), top)

    def attend(b, h, l):
        nonlocal chosen
        if b("attn_q") is not None:
            q = linear(h, b("attn_q"))
        else:
            low = rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps)
            q = linear(low, b("attn_q_b"))
            if top < len(tokens) and k("attention.indexer.types", [True] * 9)[l]:
                chosen = choice(b, h, low)
        q = split_heads(q, N_HEAD)
        q = np.concatenate([q[..., :D], rotate(q[..., D:], theta, False, mag)], -1) * temperature[:, None, None]
        low = linear(h, b("attn_kv_a_mqa"))
        c, k_rot = rms_norm(low[:, :R], b("attn_kv_a_norm"), eps), rotate(low[:, None, R:], theta, False, mag)
        if b("attn_kv_b") is not None:  # keys and values of each head from the latent, as in the papers
            both = b("attn_kv_b").reshape(N_HEAD, D + DV, R)
            k_up, v_up = both[:, :D], both[:, D:]
        else:
            k_up, v_up = b("attn_k_b").transpose(0, 2, 1), b("attn_v_b")
        key = np.concatenate([np.einsum("tr,hdr->thd", c, k_up), np.repeat(k_rot, N_HEAD, 1)], -1)
        v = np.einsum("tr,her->the", c, v_up)
        return linear(merge_heads(attention(q, key, v, scale=sharper / math.sqrt(D + ROT), chosen=chosen)), b("attn_output"))

    def feed(b, h, l):
        if l < k("leading_dense_block_count", 0):
            return swiglu(b, h)
        return routed(k, b, h, of_group=k("expert_gating_func", 1)) + shared(b, h)

    return decoder(k, w, tokens, attend, feed)


def model(name, seed, more={}, split=False, r_q=0, bias=False, tied=False, n_shared=2, n_dense=1, draft=0, fused=False, mla=False, arch="deepseek2"):
    n_embd, n_ff, n_each, n_expert = 48, 72, 18, 8
    w = Weights(seed)
    w.embedding(70, n_embd, tied)
    for l in range(3 + draft):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        if l >= 3:
            continue
        if r_q:
            w.matrix(b + "attn_q_a", r_q, n_embd)
            w.norm(b + "attn_q_a_norm", r_q)
            w.matrix(b + "attn_q_b", N_HEAD * (D + ROT), r_q, gain=1.5)
        else:
            w.matrix(b + "attn_q", N_HEAD * (D + ROT), n_embd, gain=1.5)
        w.matrix(b + "attn_kv_a_mqa", R + ROT, n_embd, gain=1.5)
        w.norm(b + "attn_kv_a_norm", R)
        both = w.random.normal(size=(N_HEAD, D + DV, R)) * 1.5 / math.sqrt(R)
        if split:
            w.put(b + "attn_k_b.weight", both[:, :D].transpose(0, 2, 1))
            w.put(b + "attn_v_b.weight", both[:, D:])
        else:
            w.put(b + "attn_kv_b.weight", both.reshape(-1, R))
        w.matrix(b + "attn_output", n_embd, N_HEAD * DV)
        w.norm(b + "ffn_norm", n_embd)
        if l < n_dense:
            w.gated(l, n_embd, n_ff)
            continue
        w.experts(l, n_embd, n_each, n_expert)
        if bias:
            w.vector(b + "exp_probs_b.bias", n_expert, 0.5)
        if n_shared:
            w.shared_expert(l, n_embd, n_shared * n_each)
    w.norm("output_norm", n_embd)
    if fused:
        w.fuse_experts()
    sizes = {"attention.key_length": R + ROT, "attention.value_length": R, "attention.key_length_mla": D + ROT, "attention.value_length_mla": DV,
             "attention.head_count_kv": 1} if mla else {"attention.key_length": D + ROT, "attention.value_length": DV, "attention.head_count_kv": 4}
    experts = {"expert_count": n_expert, "expert_used_count": 3, "expert_shared_count": n_shared} if n_dense < 3 else {}
    keys = {**keys_of(3 + draft, n_embd, n_ff, N_HEAD, 1e-2), **sizes, **experts, "attention.kv_lora_rank": R, "rope.dimension_count": ROT,
            "expert_feed_forward_length": n_each, "rope.freq_base": 100.0, "leading_dense_block_count": n_dense, **more}
    if r_q:
        keys["attention.q_lora_rank"] = r_q
    add(name, arch, keys, w, other_names(functools.partial(deepseek2, halves=arch == "deepseek32")))


yarn = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}
three = {"expert_gating_func": 2, "expert_weights_scale": 2.5, "expert_weights_norm": True}
model("deepseek2-lite", 1121, {**yarn, "rope.scaling.yarn_log_multiplier": 0.7})
model("deepseek2-groups", 1122, {"expert_weights_scale": 3.0, "expert_group_count": 4, "expert_group_used_count": 2, "expert_gating_func": 1,
                                 **yarn}, r_q=22, tied=True, fused=True, n_dense=0)
del CASES["deepseek2-groups"].keys["leading_dense_block_count"], CASES["deepseek2-groups"].keys["rope.freq_base"]
model("deepseek2-three", 1123, {**three, "expert_group_count": 4, "expert_group_used_count": 2, **yarn, "rope.scaling.yarn_log_multiplier": 0.3},
      split=True, r_q=22, bias=True, mla=True)
model("deepseek2-flash", 1124, {**three, "expert_group_count": 1, "expert_group_used_count": 1, "nextn_predict_layers": 1}, split=True, r_q=22,
      bias=True, mla=True, draft=1, arch="glm4moelite")
guess("deepseek2-flash", own=True, leading_dense_block_count=0)
model("deepseek2-large", 1125, {**three, "attention.temperature_scale": 0.4, "attention.temperature_length": 5}, split=True, mla=True, n_shared=1)
model("deepseek2-no-shared", 1126, {"expert_weights_norm": True}, n_shared=0)
model("deepseek2-dense", 1127, {}, r_q=22, mla=True, split=True, n_dense=3)
model("mistral4", 1128, {"expert_gating_func": 1, "expert_weights_norm": True, "attention.temperature_scale": 0.1, "attention.temperature_length": 6, **yarn,
                         "rope.scaling.yarn_log_multiplier": 0.1}, split=True, r_q=22, mla=True, n_shared=1, arch="mistral4")


def indexer(name, n_head=12, d=8, layers=(0, 1, 2)):
    """Gives the case an indexer in these layers."""
    w = Weights(sum(map(ord, name)))
    for l in layers:
        b = f"blk.{l}.indexer."
        w.matrix(b + "attn_q_b", n_head * d, 22)
        w.matrix(b + "attn_k", d, 48)
        w.norm(b + "k_norm", d)
        w.vector(b + "k_norm.bias", d, 0.3)
        w.matrix(b + "proj", n_head, 48)
    CASES[name].tensors.update(w)
    CASES[name].keys.update({"attention.indexer.head_count": n_head, "attention.indexer.key_length": d})


late = {**three, "expert_group_count": 4, "expert_group_used_count": 2}
scaled = {**yarn, "rope.scaling.yarn_log_multiplier": 0.1}
# all rows are chosen of contexts that are no longer than the choice
model("deepseek32", 1129, {**late, **scaled, "attention.indexer.top_k": 64}, split=True, r_q=22, bias=True, mla=True, arch="deepseek32")
model("deepseek32-sparse", 1131, {**late, **scaled, "attention.indexer.top_k": 5}, split=True, r_q=22, bias=True, mla=True, arch="deepseek32")
model("glm-dsa", 1130, {**three, "attention.indexer.top_k": 6, "attention.indexer.types": [True, False, True], "nextn_predict_layers": 1}, split=True, r_q=22, bias=True,
      mla=True, draft=1, n_shared=1, arch="glm-dsa")
model("glm-dsa-whole", 1132, {**three, "attention.indexer.top_k": 7}, split=False, r_q=22, bias=True, n_shared=1, arch="glm-dsa")
indexer("deepseek32")
indexer("deepseek32-sparse")
indexer("glm-dsa", layers=(0, 2))
indexer("glm-dsa-whole")
guess("glm-dsa", own=True, leading_dense_block_count=0)
