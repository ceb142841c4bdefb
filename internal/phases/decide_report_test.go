package phases_test

import (
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// With the drift policy Report, changes by others are reported and left alone; the package's own
// changes are made.
func TestDecideReportsDrift(t *testing.T) {
	t.Parallel()
	absent := func(c *phases.DecisionInput) { c.Live.Object = nil }
	unwritten := func(c *phases.DecisionInput) { c.Applied = phases.Applied{} }
	for name, tc := range map[string]struct {
		reason string
		given  given
		want   phases.Action
		// drift is part of the reported drift; empty for none.
		drift string
	}{
		"as wanted": {"no drift", nil, phases.None, ""},
		"changed": {"the values are others'",
			given{func(c *phases.DecisionInput) {
				c.Live.Object.Projection, c.Live.Object.Writer = digest("drift"), "tuner"
			}},
			phases.None, "was changed by field manager tuner"},
		"changed again and again": {"without a correction there is no throttling",
			given{func(c *phases.DecisionInput) {
				c.Live.Object.Projection, c.Applied.Contention = digest("drift"), &phases.Contention{Corrections: 20, Corrected: noon}
			}},
			phases.None, "was changed"},
		"deleted": {"by another client", given{absent}, phases.None, "was deleted"},
		"deleted before a restart": {"by the durable record it was written",
			given{absent, unwritten, func(c *phases.DecisionInput) { c.WrittenBefore = true }}, phases.None, "was deleted"},
		"never written": {"the package itself wants it", given{absent, unwritten}, phases.Create, ""},
		"deleted, and wanted with another content": {"the package itself changes it",
			given{absent, func(c *phases.DecisionInput) { c.Applied.Content = digest("older") }}, phases.Create, ""},
		"recreated by the engine": {"what the engine took away itself comes back",
			given{absent, func(c *phases.DecisionInput) { c.Applied, c.WrittenBefore = phases.Applied{Gone: true}, true }}, phases.Create, ""},
		"recreated by an engine that was stopped": {"no record names the client that deleted it",
			given{absent, unwritten, func(c *phases.DecisionInput) { c.WrittenBefore, c.Desired.Recreate = true, true }}, phases.Create, ""},
		"changed in an immutable field before a restart": {"Recreate applies to changes by the package",
			given{unwritten, func(c *phases.DecisionInput) {
				c.WrittenBefore, c.Desired.Recreate = true, true
				c.Applied.Failure = &phases.Failure{Immutable: true, Content: c.Desired.Content, UID: c.Live.Object.UID}
			}},
			phases.None, "cannot be changed back"},
		"freed": {"by any client", given{func(c *phases.DecisionInput) { c.Live.Object.Owners = nil }}, phases.None, "controller reference"},
		"wiped": {"its values are those of the package", given{func(c *phases.DecisionInput) { c.Live.Object.Unrecorded = true }}, phases.None, ""},
		"changed content": {"the package itself changes it",
			given{func(c *phases.DecisionInput) {
				c.Desired.Content, c.Live.Object.Projection = digest("newer"), digest("drift")
			}},
			phases.Change, ""},
		"unknown after a restart": {"a look tells", given{unwritten}, phases.Verify, ""},
		"someone else's": {"a collision is not drift",
			given{func(c *phases.DecisionInput) {
				c.Desired.Collision = objects.CollisionProtectionPrevent
				c.Live.Object.Owners = controlledBy("Someone", "helm", "helm")
			}},
			phases.Refuse, ""},
		"being deleted": {"it is waited for", given{func(c *phases.DecisionInput) { c.Live.Object.Terminating = true }}, phases.Wait, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := upToDate()
			c.Report = true
			for _, change := range tc.given {
				change(&c)
			}
			got := phases.Decide(c)
			if got.Action != tc.want || (got.Drift != "") != (tc.drift != "") || !strings.Contains(got.Drift, tc.drift) {
				t.Errorf("%s: got %s, drift %q; want %s, %q", tc.reason, got.Action, got.Drift, tc.want, tc.drift)
			}
		})
	}
}

func TestDescribeDrift(t *testing.T) {
	t.Parallel()
	var drifted []phases.Blocker
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		drifted = append(drifted, phases.Blocker{Key: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: name}, Message: "was changed"})
	}
	require.Contains(t, phases.DescribeDrift(drifted[:1]), "n/a was changed.")
	if got := phases.DescribeDrift(drifted); !strings.HasSuffix(got, "n/e was changed, and 2 more.") {
		t.Error(got)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	blocked := func(message string, names ...string) []phases.Blocker {
		var all []phases.Blocker
		for _, name := range names {
			all = append(all, phases.Blocker{Key: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: name}, Phase: "one", Message: message})
		}
		return all
	}

	refused := func(all []phases.Blocker) []phases.Blocker {
		for i := range all {
			all[i].Kind = phases.BlockRefused
		}
		return all
	}

	agents := func(all []phases.Blocker) []phases.Blocker {
		for i := range all {
			all[i].Agent = true
		}
		return all
	}

	all := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	elsewhere := blocked("exists already", "z")
	elsewhere[0].Phase = "two"
	for want, blocking := range map[string][]phases.Blocker{
		`Phase "one" failed: ConfigMap n/a: exists already`:                                                                              slices.Concat(blocked("exists already", "a"), elsewhere),
		`Phase "one" failed: ConfigMap n/a, ConfigMap n/b, ConfigMap n/c and 7 more: exists already`:                                     blocked("exists already", all...),
		`Phase "one" failed: ConfigMap n/a, ConfigMap n/b: exists already, ConfigMap n/c: no quota`:                                      slices.Concat(blocked("exists already", "a", "b"), blocked("no quota", "c")),
		`Phase "one" failed: ConfigMap n/a: ` + strings.Repeat("x", 400) + `, ConfigMap n/b: short, and 2 more`:                          slices.Concat(blocked(strings.Repeat("x", 400), "a"), blocked("short", "b"), blocked(strings.Repeat("y", 200), "c", "d")),
		`Phase "one" failed: ConfigMap n/a: ` + strings.Repeat("x", 508) + "…":                                                           blocked(strings.Repeat("x", 600), "a"),
		`Phase "one" failed: ConfigMap n/a: ` + strings.Repeat("x", 508) + "…, and 3 more":                                               slices.Concat(blocked(strings.Repeat("x", 600), "a"), blocked("no quota", "b", "c", "d")),
		`Phase "one" failed: ConfigMap n/a: ` + strings.Repeat("x", 800) + ". Raise the quota.":                                          agents(blocked(strings.Repeat("x", 800)+". Raise the quota.", "a")),
		`Phase "one" failed: ConfigMap n/a, ConfigMap n/b: is invalid: data: Required value. Correct the object in the package.`:         refused(blocked("is invalid: data: Required value", "a", "b")),
		`Phase "one" failed: ConfigMap n/a: .dat: field not declared in schema, did you mean "data"? Correct the object in the package.`: refused(blocked(`.dat: field not declared in schema, did you mean "data"?`, "a")),
	} {
		require.Equal(t, want, phases.Describe(blocking))
	}
}

// TestControlledBehindAFailure checks that a failing phase does not hide the objects that the
// revision controls in later phases.
func TestControlledBehindAFailure(t *testing.T) {
	t.Parallel()
	p := newPlayer()
	for _, line := range []string{
		"revision app-1 claimed succeeded opened=3", "  first: Config/a=1", "  second: Config/b=1", "  third: Config/c=1", "set app-1 entered",
		"live Config/a value=1 sick", "live Config/b value=1 ready", "live Config/c value=1 ready",
	} {
		require.NoError(t, p.do(line))
	}

	report := phases.Next(p.snapshot()).Reports[0]
	if len(report.Blocking) != 1 || report.Complete() {
		t.Fatalf("the first phase does not fail: %+v", report)
	}
	if len(report.Controlled) != 3 || report.InTransition() {
		t.Errorf("it controls %v, in transition: %t", report.Controlled, report.InTransition())
	}
}
