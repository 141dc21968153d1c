"""Maincoder 1B (Maincode 2025; the authors' modeling_maincoder.py): Q and K normalised after the rotation."""
from kin import *


kin("maincoder", "maincoder", 1661, {**sizes(14, 2, 10), "rope.dimension_count": 8, "rope.freq_base": 300.0}, qk_norm=True)
kin("maincoder-plain", "maincoder", 1662, YARN, tied=False, qk_norm=True)
