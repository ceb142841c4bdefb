package queueing

import (
	"maps"
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
		k := &Keyed{Most: 1, Share: 1}
		for _, name := range []string{"slow-1", "slow-2", "fast-1"} {
			gate[name] = make(chan struct{})
			k.Run(name[:4], "team", func() {
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
				t.Errorf("%s: %v have started, want %v", what, begun, want)
			}
		}
		check("one of each key at a time", "fast-1", "slow-1")
		close(gate["slow-1"])
		check("the next one", "fast-1", "slow-1", "slow-2")
		close(gate["slow-2"])
		close(gate["fast-1"])
		synctest.Wait()
		if len(k.keys) > 0 {
			t.Errorf("%d keys are kept", len(k.keys))
		}
	})
}

// Each namespace has its share of a key, and its turn.
func TestKeyedShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, gates := map[string]bool{}, map[string]chan struct{}{}
		k := &Keyed{Most: 3, Share: 2}
		add := func(namespace, name string) {
			gate := make(chan struct{})
			gates[name] = gate
			k.Run("host", namespace, func() {
				mu.Lock()
				running[name] = true
				mu.Unlock()
				<-gate
				mu.Lock()
				delete(running, name)
				mu.Unlock()
			})
		}
		want := func(reason string, names ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := slices.Sorted(maps.Keys(running)); !slices.Equal(got, names) {
				t.Errorf("%s: %v run, want %v", reason, got, names)
			}
		}
		for _, name := range []string{"a1", "a2", "a3", "a4"} {
			add("a", name)
		}
		want("a share", "a1", "a2")
		add("b", "b1")
		add("c", "c1")
		want("room for one more", "a1", "a2", "b1")
		if running, waiting := k.Depth("host"); running != 3 || waiting != 3 {
			t.Errorf("%d run, %d wait", running, waiting)
		}
		close(gates["a1"])
		want("the turn of the first that waits", "a2", "a3", "b1")
		close(gates["a2"])
		want("the turn of the next namespace", "a3", "b1", "c1")
		for _, name := range []string{"a3", "a4", "b1", "c1"} {
			close(gates[name])
		}
		want("all are done")
		if len(k.keys) > 0 {
			t.Errorf("%d keys are kept", len(k.keys))
		}
	})
}
