package livestate

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
)

// TestFirstListMayFailForAWhile: an error that passes by itself is no news while
// nothing is known of the kind yet.
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
		"no answer":        {"the connection broke", errors.New("EOF"), 0, false, false},
		"busy":             {"it says when to come back", apierrors.NewTooManyRequests("busy", 1), 0, false, false},
		"failing":          {"it may be starting", apierrors.NewInternalError(errors.New("starting")), 0, false, false},
		"failing for long": {"that is no hiccup", apierrors.NewInternalError(errors.New("down")), limits.FirstListGrace, false, true},
		"forbidden":        {"someone has to grant it", apierrors.NewForbidden(configMaps.GroupResource(), "", errors.New("no")), 0, false, true},
		"a watch that was": {"what is known may be old", errors.New("EOF"), 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKind(schema.GroupKind{Kind: "ConfigMap"})
			c := &Cache{}
			c.options.KindChanged = func(schema.GroupKind) {}
			r := &run{cache: c, kind: k, began: time.Now().Add(-tc.age), identity: "crd", mapping: &meta.RESTMapping{Resource: configMaps}}
			k.current, k.synced = r, tc.synced
			r.failed(tc.err)
			if got := k.err != nil; got != tc.want {
				t.Errorf("%s: reported %t, want %t: %v", tc.reason, got, tc.want, k.err)
			}
		})
	}
}
