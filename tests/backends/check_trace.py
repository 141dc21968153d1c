"""Checks a file of backends/trace: check_trace.py FILE TRACKS. Spans of a track nest; memory and its curve add up."""
import json
import sys

events = json.load(open(sys.argv[1]))
tracks = int(sys.argv[2])
names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
assert len(names) == tracks, names
assert {e["tid"] for e in events} == set(names)

counts = {}
for tid in names:
    spans = [e for e in events if e["ph"] == "X" and e["tid"] == tid]
    # in ns: what is written has three digits after the point
    spans = [(round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e) for e in spans]
    spans.sort(key=lambda s: (s[0], -s[1]))
    open_spans = []
    for begin, end, e in spans:
        while open_spans and open_spans[-1][1] <= begin:
            open_spans.pop()
        assert not open_spans or end <= open_spans[-1][1], f"{e} begins within {open_spans[-1]} and ends behind it"
        if e["cat"] in ("node", "prepares"):
            outer = open_spans[-1][2]
            assert outer["name"] == "run", f"{e} is no part of a run, but of {outer}"
            assert e["args"]["n"] <= outer["args"]["n"], f"{e} in {outer}"
        else:
            assert not open_spans, f"{e} is in {open_spans[-1]}"
        open_spans.append((begin, end, e))
        kind = e["name"] if e["cat"] == "backend" else e["cat"]
        counts[kind] = counts.get(kind, 0) + 1

    held = {}
    for e in sorted((e for e in events if e["tid"] == tid), key=lambda e: e["ts"] + e.get("dur", 0)):
        args = e["args"]
        if e["name"] == "alloc" and "failed" not in args:
            held[args["region"]] = held.get(args["region"], 0) + args["bytes"]
        elif e["name"] == "free":
            held[args["region"]] = held.get(args["region"], 0) - args["bytes"]
        elif e["ph"] == "C":
            for region, size in args.items():
                assert size == held.get(region, 0), f"{region}: {size} in the curve, {held.get(region, 0)} held"
    assert held and not any(held.values()), f"never freed: {held}"
    compiled = {e["args"]["plan"]: e["args"]["nodes"] for _, _, e in spans if e["name"] == "compile"}
    for _, _, e in spans:
        if e["name"] == "run":
            want = compiled[e["args"]["plan"]]
            assert want == e["args"]["nodes"], f"{e}: the plan has {want} nodes"

for name in ("compile", "run", "alloc", "free", "upload", "download"):
    assert counts.get(name), f"no {name}: {counts}"
print(len(events), "events,", ", ".join(f"{n} {name}" for name, n in sorted(counts.items())))
