"""Asks Prometheus. Prints what is wrong, a line each, and ends with 1.

prometheus.py RULES DASHBOARD    runs what `contrib` asks of it
prometheus.py --sent SINCE       waits for the target "alive", of which samples have to be there from before that time, s since 1970
prometheus.py --gone TARGET      waits until that target is there no more
"""

import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

API = "http://127.0.0.1:9090/api/v1/"
# Prometheus evaluates rules once a second here, and plumb watch has its first samples after some.
PATIENCE_S = 120


def get(path, **query):
    url = API + path + "?" + urllib.parse.urlencode(query)
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{query}: {error.read().decode()}") from error
    except OSError:
        return None


def until(what, seen):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = seen()
        if found:
            return found
        time.sleep(0.5)
    raise SystemExit(f"never: {what}")


def values(query):
    found = get("query", query=query)
    return found and found["result"]


def sent(since):
    until("a sample arrives", lambda: values('plumb_watch_up{target="alive"} == 1'))
    until("what waited arrives", lambda: min(seen("alive"), default=since) < since)
    until("a sample from after that arrives", lambda: max(seen("alive"), default=0) > since)
    labels = values('plumb_watch_rtt_seconds{target="alive",quantile="0.5"}')[0]["metric"]
    expected = {"job": "plumb-watch", "instance": "here", "probe": "icmp"}
    return [f"{labels} without {name}" for name, value in expected.items() if labels.get(name) != value]


def seen(target):
    found = values(f'plumb_watch_up{{target="{target}"}}[5m]')
    return [at for at, _ in found[0]["values"]] if found else []


def gone(target):
    # Prometheus takes a series without samples for gone after 5 minutes, and one that is marked at once.
    until("the target is gone", lambda: not values(f'plumb_watch_up{{target="{target}"}}'))
    return [] if values('plumb_watch_up{target="alive"}') else ["the other one is gone too"]


def main():
    if sys.argv[1] in ("--sent", "--gone"):
        wrong = sent(float(sys.argv[2])) if sys.argv[1] == "--sent" else gone(sys.argv[2])
        print("\n".join(wrong))
        return 1 if wrong else 0
    rules_file, dashboard = sys.argv[1:]
    until("plumb watch is scraped", lambda: values("plumb_watch_up == 1"))
    until("round trips are scraped", lambda: values('plumb_watch_rtt_seconds{quantile="0.5"}'))

    def evaluated():
        groups = get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return rules and all(rule["health"] != "unknown" for rule in rules) and rules

    rules = until("all rules are evaluated", evaluated)
    expected = open(rules_file, encoding="utf-8").read().count("- alert:")
    wrong = [f"{rule['name']}: {rule.get('lastError')}" for rule in rules if rule["health"] != "ok"]
    if len(rules) != expected:
        wrong.append(f"{len(rules)} rules of {expected}")
    # The dead target is one of those that the first rule names, and no other.
    until("the dead target is named", lambda: values('ALERTS{alertname="PlumbTargetDown",target="dead"}'))
    others = values('ALERTS{alertname="PlumbTargetDown",target!="dead"}')
    wrong += [f"an alert of {other['metric']}" for other in others]

    with open(dashboard, encoding="utf-8") as file:
        panels = json.load(file)["panels"]
    # Nothing here has them.
    without = {"Rates", "Certificates: days left", "Use of processors and memory"}
    for panel in panels:
        for target in panel["targets"]:
            seen = values(target["expr"].replace("$target", ".*"))
            if bool(seen) == (panel["title"] in without):
                wrong.append(f"{panel['title']}: {target['expr']} is {seen}")
    print(f"{len(rules)} rules, {len(panels)} panels")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
