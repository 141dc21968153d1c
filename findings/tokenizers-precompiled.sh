#!/bin/sh
# SentencePiece's normalization is a compiled table, which the library `tokenizers` reads as its step Precompiled. It does not apply it as SentencePiece
# does: a character with its accents, of fewer than 6 bytes, becomes as a whole what the shortest string at its beginning becomes. So accents behind a
# ligature are lost, and the same model has other tokens in the two libraries.
# Seen with tokenizers 0.23.3, sentencepiece 0.2.3 and protobuf 7.36.1 (PyPI), with the rules nmt_nfkc: the ligature fi with U+0301 is "fi" in one, "fi" with U+0301 in the other.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3 -m venv py
py/bin/pip -q --disable-pip-version-check install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.1 2>/dev/null
cat >run.py <<'PY'
import io
import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import normalizers
model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b c d e f g", "the cat sat on the mat"] * 20), model_writer=model, vocab_size=30,
                                         normalization_rule_name="nmt_nfkc", hard_vocab_limit=False, minloglevel=2)
proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
step = normalizers.Precompiled(bytes(proto.normalizer_spec.precompiled_charsmap))
spm = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
print("tokenizers", tokenizers.__version__, "sentencepiece", sentencepiece.__version__)
got = []
for text in ("\ufb01\u0301x", "\u2460\u0301x", "\ufb01x"):
    got.append((step.normalize_str(text), spm.normalize(text).replace("\u2581", " ").strip()))
    print(ascii(text), "tokenizers:", ascii(got[-1][0]), "sentencepiece:", ascii(got[-1][1]))
raise SystemExit(got != [("fix", "fi\u0301x"), ("1x", "1\u0301x"), ("fix", "fix")])
PY
py/bin/python run.py
