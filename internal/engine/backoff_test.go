package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	reset, busy := errors.New("connection reset"), fmt.Errorf("apply: %w", apierrors.NewTooManyRequests("busy", 7))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "web", errors.New("exceeded quota"))
	for name, tc := range map[string]struct {
		reason   string
		err      error
		attempts int
		want     time.Duration
	}{
		"first":                {"it may pass at once", reset, 1, 100 * time.Millisecond},
		"fourth":               {"the pause doubles", reset, 4, 800 * time.Millisecond},
		"many":                 {"up to half a minute", reset, 1000, 30 * time.Second},
		"refused":              {"a user has to act", forbidden, 1, time.Second},
		"refused many times":   {"up to five minutes", forbidden, 1000, 5 * time.Minute},
		"too many requests":    {"as the API server asks", busy, 1, 7 * time.Second},
		"too many, many times": {"or longer", busy, 1000, 30 * time.Second},
	} {
		if got := backoff(tc.err, tc.attempts); got != tc.want {
			t.Errorf("%s: %s: %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}

// A retry forgets failures, and keeps the records of writes.
func TestRetry(t *testing.T) {
	t.Parallel()
	key := objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	now := time.Now()
	r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "web"}, UID: "uid"})
	r.applied[key] = &phases.Applied{
		UID: "written", ReadAt: now, Failure: &phases.Failure{Until: now.Add(time.Minute)}, Contention: &phases.Contention{Corrections: 9, Corrected: now},
	}
	r.Retry()
	require.Equal(t, &phases.Applied{UID: "written", ReadAt: time.Unix(0, 0)}, r.applied[key])
}
