#!/bin/sh
# compressed-tensors packs integers of 3, 5, 6 and 7 bits in two ways under the same name, pack-quantized: up to 0.12 as many whole codes as fit in each word of 32 bits (ten of 3 bits), later all codes without gaps. Nothing in
# the file or in config.json says which but the number of words in a row, and the library reads a file of the other way without an error. With 7 bits the words of the old way are as many as those of 8 bits without gaps.
# Seen with compressed-tensors 0.12.2 and 0.20.1 and torch 2.13.0 (PyPI): the lines at the end. The first two are the words of a row of 64 codes, the third how many of them 0.20.1 reads as they were of what 0.12.2 has packed.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
for version in 0.12.2 0.20.1; do
    python3 -m venv "$version"
    "$version/bin/pip" install -q torch==2.13.0 "transformers<5.25" "compressed-tensors==$version" >/dev/null 2>&1
done
cat >run.py <<'END'
import importlib.metadata, sys
import torch
try:
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32
except ImportError:
    from compressed_tensors.compressors.quantized_compressors.pack_quantized import pack_to_int32, unpack_from_int32
codes = (torch.arange(64).reshape(1, 64) * 5 % 7 - 3).to(torch.int8)
version = importlib.metadata.version("compressed-tensors")
if sys.argv[1] == "pack":
    packed = {bits: pack_to_int32(codes, bits) for bits in (3, 4, 7, 8)}
    torch.save(packed, version + ".pt")
    print(version, {bits: p.shape[1] for bits, p in packed.items()})
else:
    packed = torch.load(sys.argv[2])
    print(version, "reads of the other:", {bits: int((unpack_from_int32(p, bits, torch.Size([1, 64])) == codes).sum()) if p.shape[1] * 32 // bits >= 64 else "too short" for bits, p in packed.items()})
END
for version in 0.12.2 0.20.1; do "$version/bin/python" run.py pack; done >got.txt 2>err.txt || cat err.txt
0.20.1/bin/python run.py read 0.12.2.pt >>got.txt 2>err.txt || cat err.txt
cat got.txt
cat >want.txt <<'END'
0.12.2 {3: 7, 4: 8, 7: 16, 8: 16}
0.20.1 {3: 6, 4: 8, 7: 14, 8: 16}
0.20.1 reads of the other: {3: 17, 4: 64, 7: 5, 8: 64}
END
diff want.txt got.txt
