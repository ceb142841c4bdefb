package versions

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/test/require"
)

// FuzzSelect checks that constraints and versions of any text are either parsed or refused with a
// bounded message. A choice is one of the candidates, and within the constraint by the rules of
// manifests. A constraint keeps its meaning when it is written again.
//
// Code: constraint.go, filter.go, select.go, explain.go, version.go, highest.go, text.go
func FuzzSelect(f *testing.F) {
	for _, seed := range []struct{ constraint, versions, identifiers string }{
		{">=1.2, <2", "1.1.0 1.2.0 2.0.0-rc.1", ""},
		{"==1.0.0+a || !2 ~1.x", "1.0.0+a 1.0.0+b v3.0.0", "rc"},
		{"1.0.0 - 2.0.0 && ^1.2.3-beta.2", "1.5.0 latest 01.2.3", "beta rc"},
		{"||", "", ""},
	} {
		f.Add(seed.constraint, seed.versions, seed.identifiers, false)
	}

	f.Fuzz(func(t *testing.T, constraint, versions, identifiers string, downgrade bool) {
		if len(constraint) > 8<<10 || len(versions) > 4<<10 {
			return
		}
		selection := corev1alpha1.VersionSelection{Version: constraint}
		if identifiers != "" {
			selection.Prereleases = &corev1alpha1.Prereleases{Identifiers: strings.Fields(identifiers)}
		}
		candidates := []Candidate{}
		for text := range strings.FieldsSeq(versions) {
			candidates = append(candidates, Candidate{Version: text, Retracted: text, Constraints: on("Kubernetes", constraint)})
		}
		got := Select(candidates, Request{Selection: selection, LastAttempted: "1.0.0", AllowDowngrade: downgrade, Platform: Platform{Kubernetes: "v1.31.0"}})
		if got.Reason == "" || utf8.RuneCountInString(got.Message) > limits.MessageBytes/4 {
			t.Fatalf("reason %q, message %q", got.Reason, got.Message)
		}
		c, err := ParseConstraint(constraint)
		if (err != nil) != (got.Reason == corev1alpha1.ReasonVersionInvalid) {
			t.Fatalf("%v, and %s", err, got.Reason)
		}
		if err != nil {
			return
		}
		again, err := ParseConstraint(c.String())
		if err != nil {
			t.Fatalf("%q is read, and %q is not: %v", constraint, c.String(), err)
		}
		for i, candidate := range candidates {
			matches := c.Matches(candidate.Version, selection.Prereleases)
			if matches != again.Matches(candidate.Version, selection.Prereleases) || i == got.Index && !matches {
				t.Fatalf("%q is within %q: %v", candidate.Version, constraint, matches)
			}
			if v, err := Parse(candidate.Version); err == nil && matches && c.text != "" {
				r, err := manifest.ParseRange(c.text)
				require.NoError(t, err)
				if r.IncludePrerelease = true; !r.Check(v) {
					t.Fatalf("%q is within %q, and not in manifests", candidate.Version, constraint)
				}
			}
		}
	})
}
