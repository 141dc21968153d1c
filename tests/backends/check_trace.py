"""Checks a file of backends/trace: check_trace.py FILE TRACKS. Spans of a track nest; memory and its curve add up. Nodes
of a device follow each other on a track of their own, while its runs are under way."""
import json
import sys

events = json.load(open(sys.argv[1]))
tracks = int(sys.argv[2])
names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
assert len(names) == tracks, names
assert {e["tid"] for e in events} == set(names)

ON_DEVICE = ": nodes on the device"


def busy(events):
    """The times from a run's begin to the end of the next call that waits for it, and the n of the runs."""
    found = []
    for e in sorted(events, key=lambda e: e["ts"]):
        begin, end = round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)
        if e["name"] == "run" and (not found or found[-1][1] is not None):
            found.append([begin, None, {e["args"]["n"]}])
        elif e["name"] == "run":
            found[-1][2].add(e["args"]["n"])
        elif e["name"] in ("wait", "download") and found and found[-1][1] is None:
            found[-1][1] = end
    return found


def check_device(tid, name):
    instance = [t for t, other in names.items() if other.startswith(name.removesuffix(ON_DEVICE) + ": ") and t != tid]
    assert len(instance) == 1, f"{name}: {instance}"
    spans = [e for e in events if e["ph"] == "X"]
    times = busy([e for e in spans if e["tid"] == instance[0] and e["cat"] == "backend"])
    before, at = 0, 0
    for e in (e for e in spans if e["tid"] == tid):  # in the order of the file
        begin, end = round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)
        assert e["cat"] in ("node", "prepares") and begin >= before, f"{e} begins before {before}"
        while times[at][1] is not None and begin >= times[at][1]:
            at += 1
        assert times[at][0] <= begin and end <= (times[at][1] or end), f"{e} is not within {times[at]}"
        assert e["args"]["n"] == 1 or e["args"]["n"] in times[at][2], f"{e} is in runs of {times[at][2]}"
        before = end
        counts["device node"] = counts.get("device node", 0) + 1


counts = {}
for tid in names:
    if names[tid].endswith(ON_DEVICE):
        check_device(tid, names[tid])
        continue
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

# results in host memory need no download
for name in ("compile", "run", "alloc", "free", "upload"):
    assert counts.get(name), f"no {name}: {counts}"
print(len(events), "events,", ", ".join(f"{n} {name}" for name, n in sorted(counts.items())))
