"""Makes SentencePiece's compiled normalization; models/text/charsmap.h describes it."""
import struct


def charsmap(replacements):
    """SentencePiece's blob: a trie as a double array (each unit by trying), and the replacements.

    replacements: bytes -> bytes."""
    texts, place = b"", {}
    for text in replacements.values():
        if text not in place:
            place[text] = len(texts)
            texts += text + b"\0"
    trie = {}
    for key, text in replacements.items():
        node = trie
        for b in key:
            node = node.setdefault(b, {})
        node["value"] = place[text]
    units, bases = {0: 0}, set()  # no two nodes have one base, or each would have the other's children

    def lay(node, unit):
        labels = [0 if b == "value" else b for b in node]
        for offset in range(1, 1 << 21):
            at = [unit ^ offset ^ b for b in labels]
            if unit ^ offset not in bases and not any(i in units for i in at):
                break
        bases.add(unit ^ offset)
        for i in at:
            units[i] = 0
        units[unit] |= offset << 2 | 1 << 9 if offset % 256 == 0 else offset << 10
        units[unit] |= ("value" in node) << 8
        for b, child in node.items():
            if b == "value":
                units[unit ^ offset] = 1 << 31 | child
            else:
                units[unit ^ offset ^ b] = b
                lay(child, unit ^ offset ^ b)

    lay(trie, 0)
    data = struct.pack(f"<{max(units) + 1}I", *(units.get(i, 1 << 31) for i in range(max(units) + 1)))
    return struct.pack("<I", len(data)) + data + texts
