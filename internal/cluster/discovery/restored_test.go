package discovery

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestRestored: the API server may be another one after a watch that broke, and
// is the same after one that ended in order.
func TestRestored(t *testing.T) {
	t.Parallel()
	const asked = 7 * time.Minute
	for name, tc := range map[string]struct {
		reason string
		// lasted is how long the watch lasted, failed whether the next request failed
		// once.
		lasted time.Duration
		failed bool
		want   int
	}{
		"in order":                   {"it lasted as long as it was asked for", asked, false, 0},
		"broken":                     {"the connection was cut, or the API server ended", asked - time.Second, false, 1},
		"in order, then no answer":   {"it was replaced at that very moment", asked, true, 1},
		"a while after it had ended": {"the process was stopped", 2 * asked, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				restored := 0
				c := &crds{Discovery: &Discovery{wake: make(chan struct{}, 1), crdsKnown: make(chan struct{})}}
				connect := func() {
					c.connected(time.Now().Add(asked))
					if c.wantVersion.Swap(false) {
						restored++
					}
				}
				c.Failed(errors.New("not there yet")) // before the first watch
				connect()
				time.Sleep(tc.lasted)
				if tc.failed {
					c.Failed(errors.New("connection refused"))
				}
				for range 2 {
					connect()
					time.Sleep(asked)
				}
				if restored != tc.want {
					t.Errorf("restored %d times, want %d: %s", restored, tc.want, tc.reason)
				}
			})
		})
	}
}
