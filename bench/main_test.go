package main

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/bench/measure"
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
		"default":        {nil, want{"50 1000 1000-revisions 100x10 10000 1000x10 phases repository", measure.Workload{Objects: 50, Phases: 5, Packages: 1}, 10, 20 * time.Second}},
		"one workload":   {[]string{"--workload", "1000x4"}, want{"1000x4", measure.Workload{Objects: 4, Phases: 2, Packages: 1000}, 8, time.Minute}},
		"two workloads":  {[]string{"--workload", "1000,50"}, want{"1000 50", thousand, 7, time.Minute}},
		"a size":         {[]string{"--objects", "20"}, want{"1000", measure.Workload{Objects: 20, Phases: 10, Packages: 1}, 7, time.Minute}},
		"a whole size":   {[]string{"--objects", "10", "--phases", "2", "--packages", "20"}, want{"1000", measure.Workload{Objects: 10, Phases: 2, Packages: 20}, 7, time.Minute}},
		"other pods":     {[]string{"--workload", "deployments", "--objects", "500"}, want{"deployments", measure.Workload{Objects: 500, Phases: 5, Packages: 1, Kind: measure.Deployments}, 10, 20 * time.Second}},
		"some scenarios": {[]string{"--workload", "1000", "--scenarios", "install,delete", "--rest", "5m"}, want{"1000", thousand, 2, 5 * time.Minute}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := parse(test.args)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range o.presets {
				names = append(names, p.name)
			}
			first := o.presets[0]
			got := want{strings.Join(names, " "), first.workload, len(first.scenarios), first.rest}
			if diff := cmp.Diff(test.want, got); diff != "" || !o.check {
				t.Errorf("check is %t; (-want +got):\n%s", o.check, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ args, want string }{
		"unknown workload":              {"--workload 12", `unknown workload "12"`},
		"unknown scenario":              {"--scenarios instal", `unknown scenario "instal"`},
		"no scenario":                   {"--scenarios=", "no scenario"},
		"uneven phases":                 {"--objects 10 --phases 3", "evenly"},
		"no phases":                     {"--phases 0", "evenly"},
		"negative packages":             {"--packages -1", "evenly"},
		"an argument":                   {"install", `unexpected argument "install"`},
		"sizes of two workloads":        {"--workload 50,1000 --objects 20", "one workload only"},
		"transitions without gates":     {"--workload 50 --scenarios transitions", "cannot be measured"},
		"gates that stay closed":        {"--workload phases --scenarios install", "cannot be measured"},
		"neighbours of ready ones":      {"--workload 1000 --scenarios neighbour", "cannot be measured"},
		"a repository installs nothing": {"--workload repository --scenarios drift", "cannot be measured"},
		"packages are no repository":    {"--workload 50 --scenarios refresh", "cannot be measured"},
		"an unready one is no target":   {"--workload neighbour --scenarios transitions", "cannot be measured"},
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
		if err := p.validate(); err != nil {
			t.Error(err)
		}
		if p.takes == 0 || p.rest == 0 || p.about == "" {
			t.Errorf("%s does not say what it is or how long it takes", p.name)
		}
	}
	if all, err := choose([]string{"all"}); err != nil || len(all) != len(presets) {
		t.Errorf("all are %d of %d, %v", len(all), len(presets), err)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason, scenarios, want string
	}{
		"requested ones":       {"scenarios run in an order in which each finds what it needs", "delete,drift,install", "install drift delete"},
		"an install is needed": {"all work on installed packages", "rest", "install rest"},
		"none is needed":       {"these install by themselves", "transitions", "transitions"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, s := range (preset{scenarios: strings.Split(test.scenarios, ",")}).plan() {
				got = append(got, s.Name)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%s: got %v, want %s", test.reason, got, test.want)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files []string
	for name, measured := range map[string]float64{"kept": 1, "exceeded": 3} {
		file := filepath.Join(dir, name+".json")
		limit := judged{Limit: measure.Limit{Measure: measure.MeasureRequests, AtMost: 2}, Measured: measured, Kept: measured < 2}
		rep := report{Workloads: []result{{Name: name, Workload: measure.Workload{Objects: 1, Phases: 1, Packages: 1}, Rows: []row{{Scenario: measure.Drift, Budget: []judged{limit}}}}}}
		if err := rep.write(file); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	var out strings.Builder
	if err := run(t.Context(), options{merge: files, check: true}, &out, io.Discard); !errors.Is(err, errOverBudget) {
		t.Errorf("got %v, want %v", err, errOverBudget)
	}
	for _, want := range []string{"kept: 1 package", "exceeded: 1 package", "Budget: 2 limits, 1 not kept"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if err := run(t.Context(), options{merge: files}, io.Discard, io.Discard); err != nil {
		t.Errorf("unchecked: %v", err)
	}
	if err := run(t.Context(), options{merge: []string{filepath.Join(dir, "absent")}}, io.Discard, io.Discard); err == nil {
		t.Error("a file that is not there is no error")
	}
}
