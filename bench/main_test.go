package main

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args      []string
		workloads []workload
		scenarios int
		fails     bool
	}{
		"default":           {nil, []workload{{50, 5, 1}, {1000, 10, 1}}, len(scenarios), false},
		"one workload":      {[]string{"--objects", "10", "--phases", "2", "--packages", "100"}, []workload{{10, 2, 100}}, len(scenarios), false},
		"objects alone":     {[]string{"--objects", "10000"}, []workload{{10000, 10, 1}}, len(scenarios), false},
		"scenarios":         {[]string{"--scenarios", "install,delete"}, []workload{{50, 5, 1}, {1000, 10, 1}}, 2, false},
		"unknown scenario":  {[]string{"--scenarios", "instal"}, nil, 0, true},
		"no scenario":       {[]string{"--scenarios", ""}, nil, 0, true},
		"uneven phases":     {[]string{"--objects", "10", "--phases", "3"}, nil, 0, true},
		"no phases":         {[]string{"--phases", "0"}, nil, 0, true},
		"negative packages": {[]string{"--packages", "-1"}, nil, 0, true},
		"an argument":       {[]string{"install"}, nil, 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := parse(test.args)
			if (err != nil) != test.fails {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.workloads, o.workloads); diff != "" || len(o.scenarios) != test.scenarios {
				t.Errorf("%d scenarios, want %d; workloads (-want +got):\n%s", len(o.scenarios), test.scenarios, diff)
			}
		})
	}
}

func TestOnlyInstallNeedsNoInstallBefore(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		o := options{scenarios: map[string]bool{s.name: true}}
		if got, want := o.beyondInstall(), s.name != scenarioInstall; got != want {
			t.Errorf("%s: got %t, want %t", s.name, got, want)
		}
	}
	if i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == scenarioInstall }); i != 0 {
		t.Errorf("install is number %d, want first", i)
	}
}

func TestParallel(t *testing.T) {
	t.Parallel()
	var done [100]atomic.Int32
	if err := parallel(7, len(done), func(_, i int) error { done[i].Add(1); return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range done {
		if n := done[i].Load(); n != 1 {
			t.Errorf("%d was done %d times", i, n)
		}
	}
	stop := errors.New("stop")
	if err := parallel(3, 1000, func(_, i int) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the first error", err)
	}
}
