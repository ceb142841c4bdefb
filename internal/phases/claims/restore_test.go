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
		{
			name: "age", reason: "the older set was claimed first",
			records: []recorded{{owner: "two", age: 1, names: []string{"a", "b"}}, {owner: "one", age: 2, names: []string{"b", "c"}}},
			want:    "- one one", held: []bool{false, true},
		},
		{
			name: "same second", reason: "the UID decides", want: "one one -", held: []bool{false, true},
			records: []recorded{{owner: "two", uid: "b", names: []string{"b"}}, {owner: "one", uid: "a", names: []string{"a", "b"}}},
		},
		{
			name: "a lost claim", reason: "the cluster took an object over, and protects it by now",
			records:  []recorded{{owner: "one", age: 9, names: []string{"a", "b", "c"}, lost: true}, {owner: "cluster", names: []string{"a"}}},
			controls: map[string]string{"a": "cluster", "b": "one"}, want: "cluster one -", held: []bool{false, true},
		},
		{
			name: "a loss that is not on record yet", reason: "the cluster precedes namespaces",
			records:  []recorded{{owner: "one", age: 9, names: []string{"a", "b", "c"}}, {owner: "cluster", names: []string{"a"}}},
			controls: map[string]string{"a": "one", "b": "one"}, want: "cluster one -", held: []bool{false, true},
		},
		{
			name: "a lost claim of the cluster", reason: "a healthy holder keeps its objects",
			records:  []recorded{{owner: "cluster", age: 9, names: []string{"a"}, lost: true}, {owner: "one", names: []string{"a"}}},
			controls: map[string]string{"a": "one"}, want: "one - -", held: []bool{false, true},
		},
		{
			name: "a forged claim", reason: "none of its phases has started", want: "one one -", held: []bool{false, true},
			records: []recorded{{owner: "two", age: 9, uid: "a", names: []string{"a"}, unproven: true}, {owner: "one", uid: "b", names: []string{"a", "b"}}},
		},
		{
			name: "a forged claim of the cluster", reason: "it is claimed again, in its own step", want: "one one -", held: []bool{false, true},
			records: []recorded{{owner: "cluster", age: 9, names: []string{"a"}, unproven: true}, {owner: "one", names: []string{"a", "b"}}},
		},
		{
			name: "a former claim", reason: "the other one controls the object", want: "one one -", held: []bool{false, true},
			records:  []recorded{{owner: "two", age: 9, names: []string{"a", "c"}}, {owner: "one", names: []string{"a", "b"}}},
			controls: map[string]string{"a": "one"},
		},
		{
			name: "a former claim, and one that lost another object", reason: "it keeps the object that it controls", want: "one cluster -", held: []bool{false, false, true},
			records:  []recorded{{owner: "two", age: 9, names: []string{"a", "c"}}, {owner: "one", names: []string{"a", "b"}, lost: true}, {owner: "cluster", names: []string{"b"}}},
			controls: map[string]string{"a": "one", "b": "cluster"},
		},
		{
			name: "each controls an object of the other", reason: "an earlier engine decided by object; the older one has all of them", want: "two two -", held: []bool{true, false},
			records:  []recorded{{owner: "two", age: 9, names: []string{"a", "b"}}, {owner: "one", names: []string{"a", "b"}}},
			controls: map[string]string{"a": "one", "b": "two"},
		},
		{
			name: "handed over", reason: "the successor has not adopted the object yet", want: "two - -", held: []bool{true, true},
			records:  []recorded{{owner: "one", age: 9, names: []string{"a"}}, {owner: "two", names: []string{"a"}, from: []types.UID{"uid-one"}}},
			controls: map[string]string{"a": "one"},
		},
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
			if got := holdersOf(table, "a", "b", "c"); got != tc.want {
				t.Errorf("%s: held by %s, want %s", tc.reason, got, tc.want)
			}
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
