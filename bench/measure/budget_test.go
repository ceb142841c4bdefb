package measure

import (
	"testing"

	"lockstep.run/lockstep/test/require"
)

func TestBudget(t *testing.T) {
	t.Parallel()
	small, large := Workload{Objects: 50, Phases: 5, Packages: 1}, Workload{Objects: 1000, Phases: 10, Packages: 1}
	huge, many := Workload{Objects: 10000, Phases: 10, Packages: 1}, Workload{Objects: 10, Phases: 2, Packages: 100}
	large20 := Workload{Objects: 20000, Phases: 10, Packages: 1, Bytes: 800}
	tiny := Workload{Objects: 4, Phases: 2, Packages: 1000}
	offers := Workload{Objects: 20, Phases: 1, Packages: 1000, Kind: Offers}
	raw := RawTimes{CreateSeconds: 0.5, DeleteSeconds: 1}
	tests := map[string]struct {
		scenario string
		workload Workload
		slices   int
		want     []Limit
	}{
		"install of 20,000":          {Install, large20, 690, []Limit{{MeasureRequests, 21420}, {MeasureSeconds, 1}}},
		"delete of 20,000":           {Delete, large20, 690, []Limit{{MeasureRequests, 21400}}},
		"small install":              {Install, small, 0, []Limit{{MeasureRequests, 77}, {MeasureSeconds, 0.3}}},
		"large install":              {Install, large, 0, []Limit{{MeasureRequests, 1090}, {MeasureSeconds, 1}}},
		"many packages":              {Install, many, 0, []Limit{{MeasureRequests, 2500}, {MeasureSeconds, 3}}},
		"many tiny packages":         {Install, tiny, 0, []Limit{{MeasureRequests, 20000}, {MeasureSeconds, 25}}},
		"rest":                       {Rest, large, 0, []Limit{{MeasureRequests, 0}, {MeasureRssAnon, 40}}},
		"rest of 10,000":             {Rest, huge, 0, []Limit{{MeasureRequests, 0}, {MeasureRssAnon, 90}}},
		"publish":                    {Publish, offers, 0, []Limit{{MeasureRequests, 1003}, {MeasureRssAnon, 128}}},
		"refresh":                    {Refresh, offers, 0, []Limit{{MeasureRequests, 0}}},
		"new version":                {NewVersion, offers, 0, []Limit{{MeasureRequests, 3}, {MeasureRssAnon, 128}}},
		"drift":                      {Drift, large, 0, []Limit{{MeasureRequests, 3}, {MeasureSeconds, 0.05}}},
		"drift of 20,000":            {Drift, large20, 0, []Limit{{MeasureRequests, 3}, {MeasureSeconds, 0.25}}},
		"upgrade":                    {Upgrade, large, 0, []Limit{{MeasureRequests, 27}, {MeasureSeconds, 0.5}}},
		"upgrade of many":            {Upgrade, many, 0, []Limit{{MeasureRequests, 2700}}},
		"upgrade of 10,000":          {Upgrade, huge, 0, []Limit{{MeasureRequests, 27}}},
		"upgrade of all":             {UpgradeAll, large, 0, []Limit{{MeasureRequests, 4045}}},
		"raised version":             {Raise, large, 0, []Limit{{MeasureRequests, 1026}, {MeasureSeconds, 0.5}}},
		"history":                    {History, huge, 0, []Limit{{MeasureRequests, 270}, {MeasureRssAnon, 90}}},
		"history of many":            {History, tiny, 0, []Limit{{MeasureRequests, 270000}, {MeasureRssAnon, 160}}},
		"restart":                    {Restart, large, 0, []Limit{{MeasureChanges, 0}, {MeasureSeconds, 5}}},
		"delete":                     {Delete, large, 30, []Limit{{MeasureRequests, 1090}, {MeasureSeconds, 2}}},
		"delete a small one":         {Delete, small, 17, []Limit{{MeasureRequests, 104}, {MeasureSeconds, 2}}},
		"delete many":                {Delete, many, 0, []Limit{{MeasureRequests, 3000}}},
		"phase to phase":             {Transitions, large, 0, []Limit{{MeasureP50, 20}, {MeasureP99Ratio, 5}}},
		"along with a large package": {Neighbour, huge, 0, []Limit{{MeasureLater, 1}}},
		"something else":             {"none", large, 0, nil},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, Budget(test.scenario, test.workload, raw, Measurement{Slices: test.slices}), "limits")
		})
	}

	stored := Measurement{Slices: 690, Figures: map[string]float64{MeasureLargest: 65}}
	want := []Limit{{MeasureRequests, 27}, {MeasureLargest, 512}, {MeasureSlices, 1}}
	require.Equal(t, want, Budget(Upgrade, large20, raw, stored), "limits of stored objects")
	for _, s := range Scenarios() {
		if len(Budget(s.Name, large, raw, Measurement{})) == 0 {
			t.Errorf("scenario %s has no limit", s.Name)
		}
	}
}

func TestExceeded(t *testing.T) {
	t.Parallel()
	transitions := map[string]float64{MeasureP50: 20, MeasureP99Ratio: 6}
	tests := map[string]struct {
		reason string
		m      Measurement
		limits []Limit
		want   []Limit
	}{
		"no limits":    {"a row without a budget is never over it", Measurement{Span: 9e9}, nil, nil},
		"at the limit": {"a limit can be reached", Measurement{Span: 5e9}, []Limit{{MeasureSeconds, 5}}, nil},
		"over one":     {"each limit counts by itself", Measurement{Span: 6e9}, []Limit{{MeasureSeconds, 5}, {MeasureRequests, 0}}, []Limit{{MeasureSeconds, 5}}},
		"writes":       {"statuses and events are changes", Measurement{Count: Count{Statuses: 1}}, []Limit{{MeasureChanges, 0}}, []Limit{{MeasureChanges, 0}}},
		"reads":        {"reads are not writes", Measurement{Count: Count{Requests: 4, Reads: 4}}, []Limit{{MeasureChanges, 0}}, nil},
		"memory":       {"RssAnon is the budget, not VmHWM", Measurement{Memory: Memory{RssAnon: 2, Most: 9}}, []Limit{{MeasureRssAnon, 3}}, nil},
		"transitions":  {"the delay is judged by its median and against the watcher's", Measurement{Figures: transitions}, []Limit{{MeasureP50, 20}, {MeasureP99Ratio, 5}}, []Limit{{MeasureP99Ratio, 5}}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, Exceeded(test.limits, test.m), test.reason)
		})
	}
}
