package livestate

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// TestFirstListMayFailForAWhile: a transient error is not reported while the kind has
// no records yet.
func TestFirstListMayFailForAWhile(t *testing.T) {
	t.Parallel()
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		age    time.Duration
		synced bool
		want   bool
	}{
		"no answer":          {"the connection broke", errors.New("EOF"), 0, false, false},
		"busy":               {"it states when to retry", apierrors.NewTooManyRequests("busy", 1), 0, false, false},
		"failing":            {"it might be starting", apierrors.NewInternalError(errors.New("starting")), 0, false, false},
		"failing for long":   {"it has lasted for too long", apierrors.NewInternalError(errors.New("down")), firstListGrace, false, true},
		"forbidden":          {"the right has to be granted", apierrors.NewForbidden(configMaps.GroupResource(), "", errors.New("no")), 0, false, true},
		"a watch that ended": {"the records can be old", errors.New("EOF"), 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKind(schema.GroupKind{Kind: "ConfigMap"})
			c := &Cache{}
			c.options.KindChanged = func(schema.GroupKind) {}
			r := &run{cache: c, kind: k, began: time.Now().Add(-tc.age), crd: "crd", resource: configMaps}
			k.current, k.synced = r, tc.synced
			r.requested(tc.err)
			if got := k.err != nil; got != tc.want {
				t.Errorf("%s: reported %t, want %t: %v", tc.reason, got, tc.want, k.err)
			}
		})
	}
}

// TestOldListOfObjects: a list of an API server that is behind does not reset records to an
// earlier state, and is not an error of the kind. If lists stay old, the cluster was restored
// from a backup.
func TestOldListOfObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKind(schema.GroupKind{Kind: "ConfigMap"})
		c := &Cache{options: Options{
			Changed:     func(objects.Key, *objects.Observed) {},
			KindChanged: func(schema.GroupKind) {},
		}}
		r := &run{cache: c, kind: k}
		k.current = r
		list := func(version string) error {
			obs := &objects.Observed{UID: "1", ResourceVersion: version, Watched: true}
			return r.Replace([]any{&listed{Change: Change{name{Namespace: "default", Name: "a"}, obs}}}, version)
		}
		want := func(version string) {
			t.Helper()
			if got := k.records.byName[name{Namespace: "default", Name: "a"}].ResourceVersion; got != version || k.err != nil {
				t.Errorf("the object is known at %s, want %s; the kind's error is %v", got, version, k.err)
			}
		}
		require.NoError(t, list("11"))
		r.UpdateResourceVersion("14")
		for range 2 {
			err := list("12")
			if !errors.Is(err, reflector.ErrOld) {
				t.Errorf("an older list is taken over: %v", err)
			}
			want("11")
			time.Sleep(limits.OldLists / 2)
		}
		if err := list("12"); err != nil {
			t.Error(err)
		}
		want("12")
		if r.requested(errors.New("no answer")); k.err == nil {
			t.Error("a later error is not reported")
		}
	})
}
