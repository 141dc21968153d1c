"""The folders of folders.py as mlx-lm writes them: the experts of a layer in one tensor, and other changes of its own.

The names are those of mlx-lm's `sanitize` functions: a stacked matrix is switch_mlp.NAME, in two families experts.NAME."""
import re

import numpy as np

RENAMED = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
SWITCH = {"BailingMoeV2ForCausalLM", "DeepseekForCausalLM", "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "Ernie4_5_MoeForCausalLM",
          "Glm4MoeForCausalLM", "GraniteMoeHybridForCausalLM", "GraniteMoeSharedForCausalLM", "MiniMaxM2ForCausalLM", "MixtralForCausalLM",
          "OlmoeForCausalLM", "PhiMoEForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM", "Qwen3NextForCausalLM"}
EXPERTS = {"AfmoeForCausalLM", "Dots1ForCausalLM"}
SHIFTED = (".input_layernorm.weight", ".post_attention_layernorm.weight", "model.norm.weight", ".q_norm.weight", ".k_norm.weight")


def as_mlx(class_name, tensors, c):
    """The tensors of the config c as MLX has them; None: it does not have this class."""
    if class_name not in SWITCH | EXPERTS:
        return None
    out, parts = {}, {}
    for name, x in tensors.items():
        one = re.fullmatch(r"(.*)\.experts\.(\d+)\.(\w+)\.weight", name)
        if one:
            matrix = RENAMED.get(one[3], one[3])
            parts.setdefault(f"{one[1]}.{'experts' if class_name in EXPERTS else 'switch_mlp'}.{matrix}.weight", []).append(x)
        elif ".block_sparse_moe.input_linear." in name:
            for matrix, half in zip(("gate_proj", "up_proj"), np.split(x, 2, axis=1)):
                out[name.replace("input_linear", "switch_mlp." + matrix)] = half
        elif ".block_sparse_moe.output_linear." in name:
            out[name.replace("output_linear", "switch_mlp.down_proj")] = x
        elif class_name == "BailingMoeV2ForCausalLM" and name.endswith(".mlp.gate.weight"):
            out[name.replace("gate.weight", "gate.gate_proj.weight")] = x
        elif class_name == "DeepseekV3ForCausalLM" and name.endswith(".kv_b_proj.weight"):  # as mlx-lm writes it since MLA's matrices are split
            heads = x.reshape(c["num_attention_heads"], -1, x.shape[1])
            keys, values = np.split(heads, [c["qk_nope_head_dim"]], axis=1)
            out[name.replace("kv_b_proj", "embed_q")] = np.swapaxes(keys, 1, 2)
            out[name.replace("kv_b_proj", "unembed_out")] = values
        elif name.endswith("conv1d.weight") and x.ndim == 3:
            out[name] = np.moveaxis(x, 2, 1)
        elif class_name == "Qwen3NextForCausalLM" and name.endswith(SHIFTED):
            out[name] = x + 1
        else:
            out[name] = x
    out.update({name: np.stack(x) for name, x in parts.items()})
    return out
