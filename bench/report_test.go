package main

import (
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/bench/measure"
	"lockstep.run/lockstep/test/require"
)

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
	if over := printBudget(&got, []result{r}); over != 1 {
		t.Errorf("%d limits are not kept", over)
	}
	require.Equal(t, want, got.String(), "output")
}
