package claims_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/test/require"
)

// recorded is a record in a test: the owner, the age of its set and the names of its objects.
type recorded struct {
	owner          string
	age            int
	uid            types.UID
	names          []string
	lost, unproven bool
	from           []types.UID
}

func (r recorded) record() claims.Record {
	return claims.Record{
		Owner: holder(r.owner), UID: r.uid, Lost: r.lost, Unproven: r.unproven, From: r.from,
		Created: time.Date(2026, 1, 1, 0, 0, -r.age, 0, time.UTC),
		Keys:    func() []objects.Key { return keys(r.names...) },
	}
}

// TestRestore checks that the record decides who holds an object after a restart, and that the
// object decides if several owners have it on record.
func TestRestore(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, reason string
		records      []recorded
		controls     map[string]string // owners by the object that they control
		want         string            // the holders of a, b and c
		held         []bool
	}{
		{"age", "the older set was claimed first",
			[]recorded{{owner: "two", age: 1, names: []string{"a", "b"}}, {owner: "one", age: 2, names: []string{"b", "c"}}},
			nil, "- one one", []bool{false, true}},
		{"same second", "the UID decides",
			[]recorded{{owner: "two", uid: "b", names: []string{"b"}}, {owner: "one", uid: "a", names: []string{"a", "b"}}},
			nil, "one one -", []bool{false, true}},
		{"a lost claim", "the cluster took an object over, and protects it by now",
			[]recorded{{owner: "one", age: 9, names: []string{"a", "b", "c"}, lost: true}, {owner: "cluster", names: []string{"a"}}},
			map[string]string{"a": "cluster", "b": "one"}, "cluster one -", []bool{false, true}},
		{"a loss that is not on record yet", "the cluster precedes namespaces",
			[]recorded{{owner: "one", age: 9, names: []string{"a", "b", "c"}}, {owner: "cluster", names: []string{"a"}}},
			map[string]string{"a": "one", "b": "one"}, "cluster one -", []bool{false, true}},
		{"a lost claim of the cluster", "a healthy holder keeps its objects",
			[]recorded{{owner: "cluster", age: 9, names: []string{"a"}, lost: true}, {owner: "one", names: []string{"a"}}},
			map[string]string{"a": "one"}, "one - -", []bool{false, true}},
		{"a forged claim", "none of its phases has started",
			[]recorded{{owner: "two", age: 9, uid: "a", names: []string{"a"}, unproven: true}, {owner: "one", uid: "b", names: []string{"a", "b"}}},
			nil, "one one -", []bool{false, true}},
		{"a forged claim of the cluster", "it is claimed again, in its own step",
			[]recorded{{owner: "cluster", age: 9, names: []string{"a"}, unproven: true}, {owner: "one", names: []string{"a", "b"}}},
			nil, "one one -", []bool{false, true}},
		{"a former claim", "the other one controls the object",
			[]recorded{{owner: "two", age: 9, names: []string{"a", "c"}}, {owner: "one", names: []string{"a", "b"}}},
			map[string]string{"a": "one"}, "one one -", []bool{false, true}},
		{"a former claim, and one that lost another object", "it keeps the object that it controls",
			[]recorded{{owner: "two", age: 9, names: []string{"a", "c"}}, {owner: "one", names: []string{"a", "b"}, lost: true}, {owner: "cluster", names: []string{"b"}}},
			map[string]string{"a": "one", "b": "cluster"}, "one cluster -", []bool{false, false, true}},
		{"each controls an object of the other", "an earlier engine decided by object; the older one has all of them",
			[]recorded{{owner: "two", age: 9, names: []string{"a", "b"}}, {owner: "one", names: []string{"a", "b"}}},
			map[string]string{"a": "one", "b": "two"}, "two two -", []bool{true, false}},
		{"handed over", "the successor has not adopted the object yet",
			[]recorded{{owner: "one", age: 9, names: []string{"a"}}, {owner: "two", names: []string{"a"}, from: []types.UID{"uid-one"}}},
			map[string]string{"a": "one"}, "two - -", []bool{true, true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			table := claims.NewTable(func(objects.Owner) {})
			records := make([]claims.Record, len(tc.records))
			for i := range records {
				records[i] = tc.records[i].record()
			}
			controllers := claims.Controllers{}
			for _, key := range claims.Contested(records) {
				controllers[key] = objects.Owner{}
				if name := tc.controls[key.Name]; name != "" {
					controllers[key] = holder(name)
				}
			}
			held := table.Restore(records, controllers)
			if !slices.Equal(held, tc.held) {
				t.Errorf("%s: the claims hold: %v, want %v", tc.reason, held, tc.held)
			}
			require.Equal(t, tc.want, holdersOf(table, "a", "b", "c"), fmt.Sprintf("%s: held by", tc.reason))
		})
	}
}

func holdersOf(table *claims.Table, names ...string) string {
	text := ""
	for i, name := range names {
		h, held := table.Holder(key(name))
		if i > 0 {
			text += " "
		}
		if !held {
			h.Name = "-"
		}
		text += h.Name
	}
	return text
}

// TestReclaim checks that a cluster-scoped owner takes an object from a namespaced one that has
// claimed it since, if it proves that it held it before.
func TestReclaim(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		since string
		by    recorded
		want  string
	}{
		{"one", recorded{owner: "cluster", names: []string{"a"}}, "cluster"},
		{"one", recorded{owner: "cluster", names: []string{"a"}, unproven: true}, "one"},
		{"cluster", recorded{owner: "one", names: []string{"a"}}, "cluster"},
		{"two", recorded{owner: "one", names: []string{"a"}}, "two"},
	} {
		table := claims.NewTable(func(objects.Owner) {})
		if err := table.ClaimOver(holder(tc.since), keys("a"), nil); err != nil {
			t.Fatal(err)
		}
		record := tc.by.record()
		require.Equal(t, tc.want == tc.by.owner, table.Reclaim(&record))
		require.Equal(t, tc.want, holdersOf(table, "a"))
	}
}

// TestRestoreInAnyOrder checks that the order of the owners does not matter, and that each object
// has one holder that has it on record.
func TestRestoreInAnyOrder(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		var all []recorded
		for i, owner := range rapid.SliceOfN(rapid.SampledFrom([]string{"one", "two", "cluster"}), 1, 5).Draw(t, "owners") {
			all = append(all, recorded{
				owner: owner, uid: types.UID(fmt.Sprint(i)), age: rapid.IntRange(0, 1).Draw(t, "age"),
				lost: rapid.Bool().Draw(t, "lost"), unproven: rapid.Bool().Draw(t, "unproven"),
				names: rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "names"),
			})
		}
		controllers := claims.Controllers{}
		for _, name := range names {
			if owner := rapid.SampledFrom([]string{"", "one", "two", "cluster"}).Draw(t, name); owner != "" {
				controllers[key(name)] = holder(owner)
			}
		}
		outcome := ""
		for range 2 {
			all = rapid.Permutation(all).Draw(t, "order")
			records := make([]claims.Record, len(all))
			for i := range all {
				records[i] = all[i].record()
			}
			table := claims.NewTable(func(objects.Owner) {})
			held := table.Restore(records, controllers)
			for i, r := range all {
				if r.lost && held[i] {
					t.Fatalf("a lost claim holds: %+v", r)
				}
			}
			if got := holdersOf(table, names...); outcome != "" && outcome != got {
				t.Fatalf("held by %s, and in another order by %s", got, outcome)
			} else {
				outcome = got
			}
		}
	})
}
