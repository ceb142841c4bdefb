package claims_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/test/require"
)

func key(name string) objects.Key { return objects.Key{Kind: "Config", Namespace: "n", Name: name} }

func keys(names ...string) []objects.Key {
	list := make([]objects.Key, len(names))
	for i, name := range names {
		list[i] = key(name)
	}
	return list
}

func set(names ...string) map[objects.Key]struct{} {
	m := map[objects.Key]struct{}{}
	for _, name := range names {
		m[key(name)] = struct{}{}
	}
	return m
}

func holder(name string) objects.Owner {
	if name == "cluster" {
		return objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ClusterObjectDeployment", Name: name}, UID: "uid-cluster"}
	}
	return objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: name}, UID: types.UID("uid-" + name)}
}

// woken collects the owners that were told to try again.
type woken struct {
	mu    sync.Mutex
	names []string
}

func (w *woken) wake(h objects.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = append(w.names, h.Name)
}

func (w *woken) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := slices.Sorted(slices.Values(w.names))
	w.names = nil
	return names
}

func TestClaimIsAllOrNothing(t *testing.T) {
	t.Parallel()
	var w woken
	table := claims.NewTable(w.wake)
	require.NoError(t, table.Claim(holder("one"), keys("b", "c")))
	var err error
	var conflict *claims.Conflict
	for _, asked := range [][]objects.Key{keys("a", "b", "c", "d"), keys("a", "c", "b", "d")} {
		err = table.Claim(holder("two"), asked)
		if !errors.As(err, &conflict) || conflict.Key != key("b") || conflict.Holder != holder("one") || conflict.More != 1 {
			t.Fatalf("the first object in order, its winner and one more are to be named: %+v", err)
		}
	}

	for _, want := range []string{"Config n/b", "ObjectDeployment n/one", "1 more objects"} {
		require.Contains(t, err.Error(), want)
	}

	for _, name := range []string{"a", "d"} {
		if h, held := table.Holder(key(name)); held {
			t.Errorf("the loser got %s: %v", name, h)
		}
	}

	if err := table.Claim(holder("one"), keys("b", "c", "d")); err != nil {
		t.Errorf("a holder can claim again, and more: %v", err)
	}
}

func TestConflictNamesClusterScopedHolders(t *testing.T) {
	t.Parallel()
	table := claims.NewTable(func(objects.Owner) {})
	cluster := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ClusterObjectDeployment", Name: "one"}, UID: "1"}
	require.NoError(t, table.Claim(cluster, keys("a")))
	err := table.Claim(holder("two"), keys("a"))
	if err == nil || !strings.Contains(err.Error(), "belongs to ClusterObjectDeployment one:") || strings.Contains(err.Error(), "more objects") {
		t.Errorf("got %v", err)
	}
}

func TestConflictNamesTheRemedy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ holder, claimant, object, want string }{
		{"one", "two", "a", "or release it there (kubectl package release config/a -n n)"},
		{"cluster", "one", "a", "or release it there (kubectl package release config/a)"},
		{"one", "cluster", "a", "or release it there (kubectl package release config/a -n n); spec.collisionProtection: None here takes it over"},
		{"one", "two", "system:a.b", "(kubectl package release config/system:a.b -n n)"},
		{"one", "two", "a;curl x|sh", "(kubectl package release 'config/a;curl x|sh' -n n)"},
		{"one", "two", "a'$(x)", `(kubectl package release 'config/a'\''$(x)' -n n)`},
	} {
		table := claims.NewTable(func(objects.Owner) {})
		require.NoError(t, table.Claim(holder(tc.holder), keys(tc.object)))
		if err := table.Claim(holder(tc.claimant), keys(tc.object)); err == nil || !strings.HasSuffix(err.Error(), tc.want) {
			t.Errorf("%s claims from %s: %v, want %q", tc.claimant, tc.holder, err, tc.want)
		}
	}
}

// A package that was installed as a dependency releases no objects. Users either use it, or make it
// their own.
func TestConflictWithADependency(t *testing.T) {
	t.Parallel()
	conflict := claims.Conflict{Key: keys("a")[0], Holder: holder("one"), Adopt: "kubectl annotate package/one -n n adopt=true"}
	const want = "installed as a dependency: leave it out here, or delete this package and use that one; " +
		"to decide on its version and values, make it your own (kubectl annotate package/one -n n adopt=true)"
	if got := conflict.Reason(); !strings.HasSuffix(got, want) {
		t.Error(got)
	}
}

// An ObjectTemplate releases no objects either.
func TestConflictWithATemplate(t *testing.T) {
	t.Parallel()
	conflict := claims.Conflict{Key: keys("a")[0], Holder: holder("one")}
	conflict.Holder.Kind = "ObjectTemplate"
	if got := conflict.Reason(); !strings.HasSuffix(got, ": leave it out here, or let the template render another name") {
		t.Error(got)
	}
}

func TestLosersAreWoken(t *testing.T) {
	t.Parallel()
	claimed := func(table *claims.Table, h objects.Owner, names ...string) { _ = table.Claim(h, keys(names...)) }
	for _, tc := range []struct {
		name, reason string
		do           func(*claims.Table)
		want         []string
	}{
		{"release", "the winner has left", func(t *claims.Table) { t.Release(holder("one")) }, []string{"three", "two"}},
		{"retain less", "the winner gave something up", func(t *claims.Table) { t.Retain(holder("one"), set("a")) }, []string{"three", "two"}},
		{"retain an object that one waits for", "two does not want the free one",
			func(t *claims.Table) { t.Retain(holder("one"), set("a", "c")) }, []string{"three"}},
		{"release of an unwanted object", "no loser wants it", func(t *claims.Table) { t.Retain(holder("one"), set("b", "c")) }, nil},
		{"release by another", "none of the losers' objects is free",
			func(t *claims.Table) { claimed(t, holder("four"), "y"); t.Release(holder("four")) }, nil},
		{"another wish", "two claim other objects meanwhile",
			func(t *claims.Table) { claimed(t, holder("two"), "a", "d"); t.Retain(holder("one"), set("a")) }, []string{"three"}},
		{"retain all", "no object is free", func(t *claims.Table) { t.Retain(holder("one"), set("a", "b", "c")) }, nil},
		{"unknown owner", "it held no object", func(t *claims.Table) { t.Release(holder("unknown")) }, nil},
		{"loser released", "it does not want anything any more",
			func(t *claims.Table) { t.Release(holder("three")); t.Release(holder("one")) }, []string{"two"}},
		{"loser content with less", "it has all that it wants by now",
			func(t *claims.Table) { claimed(t, holder("two"), "z"); t.Release(holder("one")) }, []string{"three"}},
		{"twice", "a loser that did not ask again still waits",
			func(t *claims.Table) { t.Retain(holder("one"), set("a", "b")); t.Retain(holder("one"), set("a")) }, []string{"three", "three", "two"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var w woken
			table := claims.NewTable(w.wake)
			claimed(table, holder("one"), "a", "b", "c")
			claimed(table, holder("two"), "c", "d")
			claimed(table, holder("three"), "b", "c")
			w.take()
			tc.do(table)
			if got := w.take(); !slices.Equal(got, tc.want) {
				t.Errorf("%s: woke %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPreviousHandsItsClaimsOver(t *testing.T) {
	t.Parallel()
	var w woken
	table := claims.NewTable(w.wake)
	first, second, other := holder("first"), holder("second"), holder("other")
	require.NoError(t, table.Claim(first, keys("a", "b")))
	if err := table.Claim(second, keys("b", "c"), first.UID); err != nil {
		t.Fatalf("the predecessor has to yield: %v", err)
	}
	if err := table.Claim(other, keys("c"), first.UID); err == nil {
		t.Error("only those in spec.previous yield")
	}

	table.Release(first)
	if h, _ := table.Holder(key("b")); h != second {
		t.Errorf("the predecessor's end freed handed-over objects: %v", h)
	}

	table.Release(second)
	for _, name := range []string{"a", "b", "c"} {
		if h, held := table.Holder(key(name)); held {
			t.Errorf("%s is still held by %v", name, h)
		}
	}
}

func TestFreedRunsOutsideOfTheLock(t *testing.T) {
	t.Parallel()
	var table *claims.Table
	asked := false
	table = claims.NewTable(func(h objects.Owner) { asked = table.Claim(h, keys("a")) == nil })
	_ = table.Claim(holder("one"), keys("a"))
	_ = table.Claim(holder("two"), keys("a"))
	table.Release(holder("one"))
	if !asked {
		t.Error("the loser could not claim when it was woken")
	}
}

// TestClaims checks invariant 10. Owners request claims, give up and are deleted in any order. Each
// object has one holder, which got it together with all of its others. A loser is woken if an
// object that it wants becomes free, and only then. A cluster-scoped owner with collisionProtection
// None takes objects from namespaced ones, and these are notified.
func TestClaims(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e"}
	owners := []string{"one", "two", "three", "cluster"}
	rapid.Check(t, func(t *rapid.T) {
		var w woken
		table := claims.NewTable(w.wake)
		holds := map[string]map[objects.Key]struct{}{}
		waits := map[string]map[objects.Key]struct{}{} // for held objects
		for _, o := range owners {
			holds[o] = map[objects.Key]struct{}{}
		}
		t.Repeat(map[string]func(*rapid.T){
			"claim": func(t *rapid.T) {
				owner := rapid.SampledFrom(owners).Draw(t, "owner")
				wants := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "keys")
				over := set(rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "over")...)
				taken, overruled := map[objects.Key]struct{}{}, map[string]bool{}
				for _, name := range wants {
					for o, held := range holds {
						if _, has := held[key(name)]; !has || o == owner {
							continue
						}
						if _, takes := over[key(name)]; takes && owner == "cluster" {
							overruled[o] = true
							continue
						}
						taken[key(name)] = struct{}{}
					}
				}
				does, check := table.ClaimOver, rapid.Bool().Draw(t, "check")
				if check {
					does = table.Check
				}
				err := does(holder(owner), keys(wants...), over)
				if len(taken) > 0 != (err != nil) {
					t.Fatalf("%s claims %v: %v", owner, wants, err)
				}
				waits[owner] = taken
				if err != nil || check {
					overruled = nil
				} else {
					for _, held := range holds {
						maps.DeleteFunc(held, func(k objects.Key, _ struct{}) bool { return slices.Contains(keys(wants...), k) })
					}
					maps.Copy(holds[owner], set(wants...))
				}
				if got, want := w.take(), slices.Sorted(maps.Keys(overruled)); !slices.Equal(got, want) {
					t.Fatalf("woke %v, want those that are overruled, %v", got, want)
				}
				for _, o := range owners {
					if table.Overruled(holder(o)) != overruled[o] || table.Overruled(holder(o)) {
						t.Fatalf("%s: not overruled once: %t", o, overruled[o])
					}
				}
			},
			"retain": func(t *rapid.T) {
				owner := rapid.SampledFrom(owners).Draw(t, "owner")
				keeps := set(rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "keys")...)
				freed := maps.Clone(holds[owner])
				maps.DeleteFunc(holds[owner], func(k objects.Key, _ struct{}) bool { _, keep := keeps[k]; return !keep })
				maps.DeleteFunc(freed, func(k objects.Key, _ struct{}) bool { _, keep := keeps[k]; return keep })
				table.Retain(holder(owner), keeps)
				expectWoken(t, &w, waits, freed)
			},
			"release": func(t *rapid.T) {
				owner := rapid.SampledFrom(owners).Draw(t, "owner")
				freed := maps.Clone(holds[owner])
				clear(holds[owner])
				delete(waits, owner)
				table.Release(holder(owner))
				expectWoken(t, &w, waits, freed)
			},
			"": func(t *rapid.T) {
				for _, name := range names {
					want := ""
					for o, held := range holds {
						if _, has := held[key(name)]; has {
							want = o
						}
					}
					got, held := table.Holder(key(name))
					if held != (want != "") || got.Name != want {
						t.Fatalf("%s is held by %q, want %q", name, got.Name, want)
					}
				}
			},
		})
	})
}

func expectWoken(t *rapid.T, w *woken, waits map[string]map[objects.Key]struct{}, freed map[objects.Key]struct{}) {
	var want []string
	for owner, waiting := range waits {
		for k := range waiting {
			if _, is := freed[k]; is {
				want = append(want, owner)
				break
			}
		}
	}

	slices.Sort(want)
	if got := w.take(); !slices.Equal(got, want) {
		t.Fatalf("woke %v, want %v", got, want)
	}
}
