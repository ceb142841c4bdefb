package phases_test

import (
	"testing"

	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

func TestTemplates(t *testing.T) {
	t.Parallel()
	p := newPlayer()
	for _, line := range []string{
		"revision app-1 claimed succeeded opened=2 release=1",
		"  first: Config/a=1 Config/b=1",
		"  second: Config/c=1 Config/d=1",
		"revision app-2 claimed opened=1 release=2",
		"  first: Config/a=1 Config/b=2",
		"  second: Config/c=2 Config/e=2",
		"revision app-3 release=3",
		"  first: Config/a=3 Config/z=3",
	} {
		require.NoError(t, p.do(line))
	}

	got := map[string]string{}
	for key, tmpl := range phases.Templates(p.state) {
		got[key.Name] = string(tmpl.Desired.Raw) + " release " + tmpl.Metadata.Labels["version"]
	}

	want := map[string]string{
		"a": "1 release 1", // unchanged: as its writer had it
		"b": "2 release 2", // its phase is open in the newer revision
		"c": "1 release 1", // the newer revision has not reached it
		"d": "1 release 1", // the newer revision does not have it
		"e": "2 release 2", // it has not been written yet, and the revision has a claim
		// z and the third revision's a can belong to another owner, because that revision has no
		// claim.
	}

	require.Equal(t, want, got, "what live objects are compared with")
}
