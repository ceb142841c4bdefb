package queueing

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestKeyed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var begun []string
		gate := map[string]chan struct{}{}
		k := &Keyed{}
		for _, name := range []string{"slow-1", "slow-2", "fast-1"} {
			gate[name] = make(chan struct{})
			k.Run(name[:4], func() {
				mu.Lock()
				begun = append(begun, name)
				mu.Unlock()
				<-gate[name]
			})
		}
		check := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(begun)
			if !slices.Equal(begun, want) {
				t.Errorf("%s: %v have begun, want %v", what, begun, want)
			}
		}
		check("one of each key at a time", "fast-1", "slow-1")
		close(gate["slow-1"])
		check("the next one", "fast-1", "slow-1", "slow-2")
		close(gate["slow-2"])
		close(gate["fast-1"])
		synctest.Wait()
		if len(k.queues) > 0 {
			t.Errorf("%d keys are kept", len(k.queues))
		}
	})
}
