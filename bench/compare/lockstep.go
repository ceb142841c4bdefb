package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/bench/measure"
)

// scenarios are the benchmark's scenarios for the steps.
var scenarios = map[string]string{
	measure.Install: steps[0], measure.Upgrade: steps[1], measure.Rest: steps[2], measure.Drift: steps[3], measure.Delete: steps[4],
}

// rest is the length of the step without work.
const rest = 20 * time.Second

// lockstep runs the steps with the code of the benchmark, in phases of a tenth of the objects, each
// gated.
func lockstep(ctx context.Context, objects int) (map[string]figure, error) {
	log.SetLogger(logr.Discard()) // otherwise the client library complains, with a stack trace
	out := map[string]figure{}
	return out, measure.WithTester(ctx, "Lockstep", os.Stderr, func(tb testing.TB) {
		c := measure.Start(tb, measure.Workload{Objects: objects, Phases: 10, Packages: 1}, measure.Options{Rest: rest})
		for _, s := range slices.DeleteFunc(c.Scenarios(), func(s measure.Scenario) bool { return scenarios[s.Name] == "" }) {
			m := s.Run(c)
			f := figure{requests: m.Count.Requests, seconds: m.Span.Seconds()}
			if s.Name == measure.Rest { // its seconds are its length
				f.note = fmt.Sprintf("in %.0f s", f.seconds)
			}
			out[scenarios[s.Name]] = f
		}
	})
}
