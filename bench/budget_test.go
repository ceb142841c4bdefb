package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBudget(t *testing.T) {
	t.Parallel()
	small, large, many := workload{50, 5, 1}, workload{1000, 10, 1}, workload{10, 2, 100}
	raw := rawTimes{CreateSeconds: 0.5, DeleteSeconds: 1}
	tests := map[string]struct {
		scenario string
		workload workload
		want     []limit
	}{
		"small install":       {scenarioInstall, small, []limit{{measureRequests, 77}, {measureSeconds, 0.3}}},
		"large install":       {scenarioInstall, large, []limit{{measureRequests, 1090}, {measureSeconds, 1}}},
		"many packages":       {scenarioInstall, many, []limit{{measureRequests, 2500}, {measureSeconds, 3}}},
		"rest":                {scenarioRest, large, []limit{{measureRequests, 0}, {measureRssAnon, 40 << 20}}},
		"rest of 10,000":      {scenarioRest, workload{10000, 10, 1}, []limit{{measureRequests, 0}, {measureRssAnon, 90 << 20}}},
		"drift":               {scenarioDrift, large, []limit{{measureRequests, 3}, {measureSeconds, 0.05}}},
		"upgrade":             {scenarioUpgrade, large, []limit{{measureRequests, 27}, {measureSeconds, 0.5}}},
		"restart":             {scenarioRestart, large, []limit{{measureWrites, 0}, {measureSeconds, 5}}},
		"delete":              {scenarioDelete, large, []limit{{measureRequests, 1090}, {measureSeconds, 2}}},
		"delete many":         {scenarioDelete, many, nil},
		"something else":      {"none", large, nil},
		"recreate among many": {scenarioRecreate, many, []limit{{measureRequests, 3}, {measureSeconds, 0.05}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, budget(test.scenario, test.workload, raw)); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRow(t *testing.T) {
	t.Parallel()
	w, raw := workload{50, 5, 2}, rawTimes{CreateSeconds: 0.5, DeleteSeconds: 0.25}
	m := measurement{count: count{Requests: 150, Statuses: 3}, span: time.Second, cpu: 20 * time.Millisecond, memory: memory{RssAnon: 3}}
	tests := map[string]struct{ perObject, rawSeconds, ratio float64 }{
		scenarioInstall: {1.5, 0.5, 2},
		scenarioDelete:  {1.5, 0.25, 4},
		scenarioUpgrade: {1.5, 0, 0},
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

func TestExceeded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		row    row
		want   []limit
	}{
		"no limits":    {"what has no budget is never over it", row{Seconds: 9}, nil},
		"at the limit": {"a limit may be reached", row{Seconds: 5, Budget: []limit{{measureSeconds, 5}}}, nil},
		"over one":     {"each limit counts by itself", row{Seconds: 6, Budget: []limit{{measureSeconds, 5}, {measureRequests, 0}}}, []limit{{measureSeconds, 5}}},
		"writes":       {"statuses and events are writes", row{count: count{Statuses: 1}, Budget: []limit{{measureWrites, 0}}}, []limit{{measureWrites, 0}}},
		"reads":        {"reads are none", row{count: count{Requests: 4, Reads: 4}, Budget: []limit{{measureWrites, 0}}}, nil},
		"memory":       {"RssAnon is the budget, not RSS", row{memory: memory{RssAnon: 2, RSS: 9}, Budget: []limit{{measureRssAnon, 3}}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, test.row.exceeded()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}
