package measure

import (
	"math"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

func TestServed(t *testing.T) {
	t.Parallel()
	request := func(from, to int) sandbox.Entry {
		return sandbox.Entry{User: harness.ManagerUser(), Verb: "patch", Received: at(from), Done: at(to)}
	}
	watch, lease, other := request(0, 100), request(0, 100), request(0, 100)
	watch.Verb, lease.Object.Resource, other.User = "watch", "leases", "someone"
	tests := map[string]struct {
		reason  string
		entries []sandbox.Entry
		want    Served
	}{
		"nothing":           {"without requests no time is the API server's", nil, Served{}},
		"not counted":       {"watches, the Lease and others' requests delay no caller", []sandbox.Entry{watch, lease, other}, Served{}},
		"one after another": {"gaps are the manager's", []sandbox.Entry{request(10, 20), request(50, 80)}, Served{0.4, 1}},
		"at once":           {"what overlaps counts once as time, and as requests in flight", []sandbox.Entry{request(10, 50), request(20, 40), request(30, 50)}, Served{0.4, 2}},
		"any order":         {"requests are logged in the order of their ends", []sandbox.Entry{request(60, 70), request(0, 80)}, Served{0.8, 1.125}},
		"beyond the ends":   {"only requests within the span count", []sandbox.Entry{request(-50, 10), request(90, 150), request(200, 300)}, Served{0.2, 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := served(test.entries, Span{Start: at(0), End: at(100)})
			if math.Abs(got.Share-test.want.Share) > 1e-9 || math.Abs(got.InFlight-test.want.InFlight) > 1e-9 {
				t.Errorf("%s: got %+v, want %+v", test.reason, got, test.want)
			}
		})
	}
}

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
