package measure

import (
	"math"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

func TestBackground(t *testing.T) {
	t.Parallel()
	entries := []sandbox.Entry{
		{User: harness.ManagerUser(), Verb: "patch", Received: at(90), Done: at(110)},
		{User: harness.ManagerUser(), Verb: "patch", Received: at(120), Done: at(140)},
		{User: harness.ManagerUser(), Verb: "watch", Received: at(150), Done: at(160)},
		{User: "someone", Verb: "patch", Received: at(170), Done: at(180)},
	}
	if got := backgroundOf(entries, Span{Start: at(0), End: at(100)}); got.Requests != 1 || math.Abs(got.Seconds-0.04) > 1e-9 {
		t.Errorf("got %+v, want the one request that arrived after the effect", got)
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var times []time.Duration
	for i := range 200 {
		times = append(times, time.Duration(200-i)*time.Millisecond)
	}
	if got, want := quantilesOf(times), (Quantiles{P50: 101, P90: 181, P99: 199, Max: 200}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := quantilesOf(times[:1]), (Quantiles{P50: 200, P90: 200, P99: 200, Max: 200}); got != want {
		t.Errorf("of one: got %+v, want %+v", got, want)
	}
}
