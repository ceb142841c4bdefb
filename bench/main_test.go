package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/bench/measure"
	"lockstep.run/lockstep/test/require"
)

func TestParse(t *testing.T) {
	t.Parallel()
	thousand := measure.Workload{Objects: 1000, Phases: 10, Packages: 1}
	type want struct {
		Names     string
		First     measure.Workload
		Scenarios int
		Rest      time.Duration
	}

	tests := map[string]struct {
		args []string
		want want
	}{
		"default":        {nil, want{"50 1000 100x10 10000 1000x10 phases repository", measure.Workload{Objects: 50, Phases: 5, Packages: 1}, 10, 20 * time.Second}},
		"one workload":   {[]string{"--workload", "100x10"}, want{"100x10", measure.Workload{Objects: 10, Phases: 2, Packages: 100}, 7, 20 * time.Second}},
		"two workloads":  {[]string{"--workload", "20000,50"}, want{"20000 50", measure.Workload{Objects: 20000, Phases: 10, Packages: 1, Bytes: 800}, 7, time.Minute}},
		"another size":   {[]string{"--workload", "1000", "--objects", "10", "--phases", "2", "--packages", "20"}, want{"1000", measure.Workload{Objects: 10, Phases: 2, Packages: 20}, 11, time.Minute}},
		"some scenarios": {[]string{"--workload", "1000", "--scenarios", "delete", "--rest", "5m"}, want{"1000", thousand, 2, 5 * time.Minute}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := parse(test.args)
			require.NoError(t, err)
			var names []string
			for _, p := range o.presets {
				names = append(names, p.name)
			}
			first := o.presets[0]
			plan, err := first.plan()
			got := want{strings.Join(names, " "), first.workload, len(plan), first.rest}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v; (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ args, want string }{
		"unknown workload":               {"--workload 12", `unknown workload "12"`},
		"unknown scenario":               {"--scenarios instal", `scenario "instal"`},
		"uneven phases":                  {"--workload 50 --objects 10 --phases 3", "evenly"},
		"no phases":                      {"--phases 0", "evenly"},
		"negative packages":              {"--packages -1", "evenly"},
		"an argument":                    {"install", `unexpected argument "install"`},
		"transitions without gates":      {"--workload 50 --scenarios transitions", "cannot be measured"},
		"gates that stay closed":         {"--workload phases --scenarios install", "cannot be measured"},
		"neighbours of ready ones":       {"--workload 1000 --scenarios neighbour", "cannot be measured"},
		"a repository installs nothing":  {"--workload repository --scenarios drift", "cannot be measured"},
		"packages are not a repository":  {"--workload 50 --scenarios refresh", "cannot be measured"},
		"an unready one is not a target": {"--workload neighbour --scenarios transitions", "cannot be measured"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := parse(strings.Fields(test.args)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestPresetsAreValid(t *testing.T) {
	t.Parallel()
	for _, p := range presets {
		if _, err := p.plan(); err != nil || p.rest == 0 || p.about == "" {
			t.Errorf("%s: %v", p.name, err)
		}
	}
	if all, err := choose([]string{"all"}); err != nil || len(all) != len(presets) {
		t.Errorf("all are %d of %d, %v", len(all), len(presets), err)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for scenarios, want := range map[string]string{
		"delete,drift,install": "install drift delete", // ordered by their requirements
		"rest":                 "install rest",         // all work on installed packages
	} {
		plan, err := preset{scenarios: strings.Split(scenarios, ","), workload: measure.Workload{Objects: 1, Phases: 1, Packages: 1}}.plan()
		var got []string
		for _, s := range plan {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("%s: got %v, %v, want %s", scenarios, got, err, want)
		}
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	w, raw := measure.Workload{Objects: 50, Phases: 5, Packages: 1}, measure.RawTimes{Clients: 16, Rounds: 3, CreateSeconds: 0.5, DeleteSeconds: 0.25}
	install := measure.Measurement{
		Count: measure.Count{Requests: 78, Writes: 70, Reads: 8}, Span: 250 * time.Millisecond, CPU: 20 * time.Millisecond,
		Background: measure.Background{Requests: 2, Seconds: 1.5}, Memory: measure.Memory{RssAnon: 15, Most: 64},
		Notes: []string{"3 slices"},
	}
	r := result{name: "50", Workload: w, raw: raw, rows: []row{{measure.Install, install}}}
	want := `
50: 1 package of 50 ConfigMaps in 5 phases
raw, 16 clients, median of 3: 50 creates 0.50 s, 50 deletes 0.25 s

| scenario | requests | writes | dry runs | statuses | events | reads | lists | (refused) | seconds | × raw |    after it | CPU s | RssAnon MiB | VmHWM MiB |
| -------- | -------- | ------ | -------- | -------- | ------ | ----- | ----- | --------- | ------- | ----- | ----------- | ----- | ----------- | --------- |
| install  |       78 |     70 |        0 |        0 |      0 |     8 |     0 |         0 |   0.250 |  0.50 | 2 in 1.50 s |  0.02 |        15.0 |      64.0 |

- install: 3 slices

Budget: 2 limits, 1 exceeded

| workload | scenario |  measure | at most | measured |   kept |
| -------- | -------- | -------- | ------- | -------- | ------ |
| 50       |  install | requests |      77 |       78 | **no** |
| 50       |  install |  seconds |   0.300 |    0.250 |    yes |

`
	var got strings.Builder
	r.print(&got)
	require.Equal(t, 1, printBudget(&got, []result{r}), "limits are")
	require.Equal(t, want, got.String(), "output")
}
