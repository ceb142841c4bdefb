package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/bench/measure"
)

func TestPrint(t *testing.T) {
	t.Parallel()
	w, raw := measure.Workload{Objects: 50, Phases: 5, Packages: 1}, measure.RawTimes{Clients: 16, Rounds: 3, CreateSeconds: 0.5, DeleteSeconds: 0.25}
	install := measure.Measurement{
		Count: measure.Count{Requests: 78, Writes: 70, Reads: 8, Watches: 2}, Span: 250 * time.Millisecond, Served: measure.Served{Share: 0.5, InFlight: 3},
		Background: &measure.Background{Requests: 2, Seconds: 1.5}, Memory: measure.Memory{RssAnon: 15 << 20, RSS: 60 << 20, VmHWM: 64 << 20},
	}
	res := result{Name: "50", Workload: w, Raw: raw, Rows: []row{newRow(measure.Install, w, raw, install)}}
	want := `
50: 1 package of 50 ConfigMaps in 5 phases
raw, 16 clients, median of 3: 50 creates 0.50 s, 50 deletes 0.25 s

| scenario | requests | at most | per object | seconds | at most | × raw | API server | in flight |    after it | CPU s | RssAnon MiB | RSS MiB | VmHWM MiB |
|----------|---------:|--------:|-----------:|--------:|--------:|------:|-----------:|----------:|------------:|------:|------------:|--------:|----------:|
| install  |       78 |      77 |       1.56 |   0.250 |    0.30 |  0.50 |       50 % |       3.0 | 2 in 1.50 s |  0.00 |        15.0 |    60.0 |      64.0 |

| requests of | writes | dry runs | statuses | events | reads | lists | (refused) | apart: watches | Lease |
|-------------|-------:|---------:|---------:|-------:|------:|------:|----------:|---------------:|------:|
| install     |     70 |        0 |        0 |      0 |     8 |     0 |         0 |              2 |     0 |

Budget: 2 limits, 1 not kept

| workload | scenario |  measure | at most | measured |   kept |
|----------|---------:|---------:|--------:|---------:|-------:|
| 50       |  install | requests |      77 |       78 | **no** |
| 50       |  install |  seconds |   0.300 |    0.250 |    yes |
`
	var got strings.Builder
	res.print(&got)
	report{Workloads: []result{res}}.printBudget(&got)
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestPrintDelays(t *testing.T) {
	t.Parallel()
	r := row{
		Transitions: &measure.TransitionTimes{Count: 200, Manager: measure.Quantiles{P50: 8, P99: 12}, Watcher: measure.Quantiles{P50: 2, P99: 3}},
		Neighbours:  []measure.NeighbourTimes{{Round: "alone", Median: 0.5, Last: 1, Before: 0, After: 10}},
	}
	var got strings.Builder
	r.printTransitions(&got)
	r.printNeighbours(&got)
	row{Scenario: measure.Install, Seconds: 2, CPUSeconds: 0.5, Served: measure.Served{Share: 0.8}, Profile: []measure.ProfileShare{{Work: "sleep", Share: 0.25}}}.printProfile(&got)
	for _, want := range []string{"200 transitions", "4.00 times the watcher's", "| 12.0 |", "| alone          |   0.50 | 1.00 |", "0.50 s of processor time in install; the API server was at work for its requests in 80 % of the 2.00 s", "| sleep |  25 % |"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no %q in:\n%s", want, got.String())
		}
	}
}

func TestEveryMeasureHasAName(t *testing.T) {
	t.Parallel()
	for _, s := range measure.Scenarios() {
		for _, l := range measure.Budget(s.Name, measure.Workload{Objects: 1000, Phases: 10, Packages: 1}, measure.RawTimes{}, measure.Measurement{Stored: &measure.Stored{}}) {
			if measureNames[l.Measure] == "" {
				t.Errorf("%s of %s has no name", l.Measure, s.Name)
			}
		}
	}
}

func TestRow(t *testing.T) {
	t.Parallel()
	w, raw := measure.Workload{Objects: 50, Phases: 5, Packages: 2}, measure.RawTimes{CreateSeconds: 0.5, DeleteSeconds: 0.25}
	m := measure.Measurement{Count: measure.Count{Requests: 150, Statuses: 3}, Span: time.Second, CPU: 20 * time.Millisecond, Memory: measure.Memory{RssAnon: 3}}
	tests := map[string]struct{ perObject, rawSeconds, ratio float64 }{
		measure.Install: {1.5, 0.5, 2},
		measure.Delete:  {1.5, 0.25, 4},
		measure.Upgrade: {1.5, 0, 0},
	}
	for scenario, want := range tests {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			got := newRow(scenario, w, raw, m)
			if got.PerObject != want.perObject || got.RawSeconds != want.rawSeconds || got.Raw != want.ratio || got.Seconds != 1 || got.CPUSeconds != 0.02 {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestJSONHasEveryFigureAtTheTopOfARow(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(row{
		Budget: []judged{{}}, RawSeconds: 1, Raw: 1, Background: &measure.Background{}, Transitions: &measure.TransitionTimes{}, Neighbours: []measure.NeighbourTimes{{}}, Bytes: &measure.Bytes{},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"scenario", "requests", "requestsPerObject", "writes", "dryRuns", "statuses", "events", "reads", "lists", "refused", "watches", "leases",
		"seconds", "rawSeconds", "ratioToRaw", "managerCPUSeconds", "rssAnonBytes", "rssBytes", "vmHWMBytes", "budget", "served", "background", "transitions", "neighbours", "bytes",
	} {
		if _, ok := got[key]; !ok {
			t.Errorf("no %s in %s", key, raw)
		}
	}
}
