package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrint(t *testing.T) {
	t.Parallel()
	r := result{workload: workload{50, 5, 1}, Raw: rawTimes{16, 3, 0.5, 0.25}, Rows: []row{{
		Scenario: "install", count: count{Requests: 60, Writes: 52, Reads: 8, Watches: 2}, PerObject: 1.2, Seconds: 0.25, RawSeconds: 0.5, Raw: 0.5,
		memory: memory{RssAnon: 15 << 20, RSS: 60 << 20, VmHWM: 64 << 20}, Budget: []limit{{measureRequests, 59}, {measureSeconds, 0.3}},
	}}}
	want := `
1 package of 50 objects in 5 phases
raw, 16 clients, median of 3: 50 creates 0.50 s, 50 deletes 0.25 s

| scenario | requests | at most | per object | seconds | at most | × raw | CPU s | RssAnon MiB | RSS MiB | VmHWM MiB |
|----------|---------:|--------:|-----------:|--------:|--------:|------:|------:|------------:|--------:|----------:|
| install  |       60 |      59 |       1.20 |   0.250 |    0.30 |  0.50 |  0.00 |        15.0 |    60.0 |      64.0 |

| requests of | writes | dry runs | statuses | events | reads | lists | (refused) | apart: watches | Lease |
|-------------|-------:|---------:|---------:|-------:|------:|------:|----------:|---------------:|------:|
| install     |     52 |        0 |        0 |      0 |     8 |     0 |         0 |              2 |     0 |

over budget: install: requests 60, at most 59
`
	var got strings.Builder
	r.print(&got)
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	r.Rows[0].Requests = 59
	if lines := strings.Join(r.exceeded(), ""); lines != "all 2 limits are kept" {
		t.Errorf("at the limit it says %q", lines)
	}
}

func TestJSONHasEveryFigureAtTheTopOfARow(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(row{Budget: []limit{{measureSeconds, 1}}, RawSeconds: 1, Raw: 1})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"scenario", "requests", "requestsPerObject", "writes", "dryRuns", "statuses", "events", "reads", "lists", "refused", "watches", "leases",
		"seconds", "rawSeconds", "ratioToRaw", "managerCPUSeconds", "rssAnonBytes", "rssBytes", "vmHWMBytes", "budget",
	} {
		if _, ok := got[key]; !ok {
			t.Errorf("no %s in %s", key, raw)
		}
	}
}
