package dependencies

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A change during the resolution of a Package enqueues that Package again, if it turns out to wait for it.
func TestChangesDuringAResolution(t *testing.T) {
	t.Parallel()
	enqueued := 0
	l := &Ledger{Enqueue: func(types.NamespacedName) { enqueued++ }}
	own := types.NamespacedName{Namespace: "team", Name: "shop"}
	change := func(name string) bool { return l.Changed(func(noted string) bool { return noted == name }) }
	for _, tc := range []struct {
		changes string
		want    int
	}{{"db", 1}, {"other", 0}} {
		enqueued = 0
		l.Open(own)
		l.Changed(func(name string) bool { return name == tc.changes })
		enqueued = 0 // by the note of the resolution before
		if l.Note(own, []string{"api", "db"}); enqueued != tc.want {
			t.Errorf("%s changes: %d are enqueued", tc.changes, enqueued)
		}
	}
	if enqueued = 0; !change("db") || enqueued != 1 || len(l.open) > 0 {
		t.Errorf("afterwards: %d are enqueued, %v", enqueued, l.open)
	}
	if l.Drop(own); change("db") || len(l.notes) > 0 {
		t.Error("it is enqueued after it was dropped")
	}
}
