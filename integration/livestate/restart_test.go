package livestate_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// TestAPIServerRestarts: while the API server is away, records stay and the state has the error.
// Afterwards, watches continue from where they were interrupted.
func TestAPIServerRestarts(t *testing.T) {
	t.Parallel()
	s, err := startSandbox(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	e := newEnvIn(t, s)
	kept, changed, deleted := e.configMap(t, "kept"), e.configMap(t, "changed"), e.configMap(t, "deleted")
	f, _ := follow(t, e.config)
	f.Use("a", []schema.GroupKind{configMapKind, secretKind})
	f.synced(t, configMapKind, secretKind)
	f.watched(t, e.key("kept"), kept.ResourceVersion)
	listing := f.State(configMapKind).Listing

	require.NoError(t, s.KillComponent(t.Context(), sandbox.APIServer))
	eventually(t, "the error is shown", func() bool { return f.State(configMapKind).Err != nil })
	if state := f.State(configMapKind); !state.Synced || !state.Served {
		t.Errorf("records must stay: %+v", state)
	}
	if _, ok := f.Get(e.key("kept")); !ok {
		t.Error("records must stay")
	}
	require.NoError(t, s.StartComponent(t.Context(), sandbox.APIServer))
	e.set(t, changed, "1")
	require.NoError(t, e.admin.Delete(t.Context(), deleted))
	f.watched(t, e.key("changed"), changed.ResourceVersion)
	f.unknown(t, e.key("deleted"))
	f.watched(t, e.key("kept"), kept.ResourceVersion)
	eventually(t, "the errors have disappeared", func() bool {
		return f.State(configMapKind).Err == nil && f.State(secretKind).Err == nil
	})
	if state := f.State(configMapKind); state.Listing != listing {
		t.Errorf("the watch must continue without another list by us: %d, was %d", state.Listing, listing)
	}
	if told := f.told(e.key("kept")); !slices.Equal(told, []string{kept.ResourceVersion}) {
		t.Errorf("an unchanged object must not be reported: %q", told)
	}
}

// TestStoppingEndsInTime: a Cache stops while its API server does not answer.
func TestStoppingEndsInTime(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	config := e.config
	config.Host = "https://127.0.0.1:1"
	f, stop := follow(t, config)
	f.Use("a", []schema.GroupKind{configMapKind})
	eventually(t, "the error is shown", func() bool { return f.State(configMapKind).Err != nil })
	began := time.Now()
	stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("stopping took %v", took)
	}
}
