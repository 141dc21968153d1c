"""Gemma 4: ../gemmas.py."""
from gemmas import *
from nano import add


def case(*rest, **more):
    add(*model(*rest, **more))


rotation = {"rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 16, "rope.dimension_count_swa": 10}
case("gemma4", 1601, [True, False, True, False, True, False], {**rotation, "attention.shared_kv_layers": 3, "final_logit_softcapping": 0.9},
      n_own=3, width=10, n_ff=[60, 60, 60, 76, 76, 76], factors=True)
case("gemma4-experts", 1602, [True, True, False], {**rotation, "expert_gating_func": 1, "expert_weights_norm": True, "attention.shared_kv_layers": 0}, kv=(4, 2), heads=(4, 6), k_is_v=True, n_expert=6,
      fused=True, scale="ffn_down_exps.scale", factors=True, tied=False)
case("gemma4-split", 1603, [True, False, True], {"attention.value_length": None, "attention.value_length_swa": None, "attention.shared_kv_layers": 1},
      n_own=2, n_expert=5, scale="ffn_gate_inp.per_expert_scale", extra=True)
case("gemma4-plain", 1604, [False, True], {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.freq_base": 300.0,
      "attention.head_count_kv": None, "embedding_length_per_layer_input": None}, kv=(4, 4), n_expert=4)
case("gemma4-common", 1605, [True, True, False], {**rotation, "rope.dimension_count_swa": 12, "attention.shared_kv_layers": 0, "final_logit_softcapping": 0.9}, width=10, factors=True)
