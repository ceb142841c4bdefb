package versions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/properties"
	"lockstep.run/lockstep/test/require"
)

func TestMain(m *testing.M) { properties.Main(m, 3000) }

var (
	anyVersion = rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(0, 2)
		text := fmt.Sprintf("%d.%d.%d", n.Draw(t, "major"), n.Draw(t, "minor"), n.Draw(t, "patch"))
		text += rapid.SampledFrom([]string{"", "", "", "-alpha", "-rc.1", "-rc.2", "-beta.rc"}).Draw(t, "prerelease")
		return text + rapid.SampledFrom([]string{"", "", "", "+1", "+2", "+10", "+a"}).Draw(t, "build")
	})
	anyCandidate = rapid.Custom(func(t *rapid.T) Candidate {
		c := Candidate{Version: rapid.SampledFrom([]string{"", "", "", "v"}).Draw(t, "v") + anyVersion.Draw(t, "version")}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			c.Version = rapid.SampledFrom([]string{"", "latest", "1", "1.2", "01.2.3", "vv1.0.0"}).Draw(t, "junk")
		case 1:
			c.Retracted = "because"
		case 2:
			c.NotInstallable = "because"
		case 3:
			c.Constraints = on("Kubernetes", rapid.SampledFrom([]string{">=1.29", "<1.29", "junk"}).Draw(t, "kubernetes"))
		case 4:
			c.Constraints = []corev1alpha1.AvailableConstraint{{Platforms: []string{"OpenShift"}}}
		}
		return c
	})
	anyPrereleases = rapid.SampledFrom([]*corev1alpha1.Prereleases{nil, {}, {Identifiers: []string{"rc"}}, {Identifiers: []string{"alpha", "r"}}})
)

// comparison is a term whose meaning the tests define independently.
type comparison struct{ operator, version string }

var anyComparisons = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) comparison {
	return comparison{rapid.SampledFrom([]string{"<", "<=", ">", ">=", "!="}).Draw(t, "operator"), anyVersion.Draw(t, "version")}
}), 0, 3)

func text(cs []comparison) string {
	var terms []string
	for _, c := range cs {
		terms = append(terms, c.operator+c.version)
	}
	return strings.Join(terms, ", ")
}

func hold(cs []comparison, v *semver.Version) bool {
	return !slices.ContainsFunc(cs, func(c comparison) bool {
		n := v.Compare(semver.MustParse(c.version))
		return !map[string]bool{"<": n < 0, "<=": n <= 0, ">": n > 0, ">=": n >= 0, "!=": n != 0}[c.operator]
	})
}

type situation struct {
	candidates []Candidate
	terms      []comparison
	request    Request
}

var anySituation = rapid.Custom(func(t *rapid.T) situation {
	s := situation{candidates: rapid.SliceOfN(anyCandidate, 1, 12).Draw(t, "candidates"), terms: anyComparisons.Draw(t, "terms")}
	s.request = Request{
		Selection:      corev1alpha1.VersionSelection{Version: text(s.terms), Prereleases: anyPrereleases.Draw(t, "prereleases")},
		Platform:       Platform{Kubernetes: "v1.29.4-gke.1"},
		AllowDowngrade: rapid.Bool().Draw(t, "allow"),
	}
	if rapid.Bool().Draw(t, "installed") {
		s.request.Installed = anyVersion.Draw(t, "installed")
		s.request.LastAttempted = rapid.SampledFrom([]string{s.request.Installed, anyVersion.Draw(t, "attempted")}).Draw(t, "last")
	}
	return s
})

// fits implements the rules independently.
func (s situation) fits(c Candidate) bool {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(c.Version, "v"))
	if err != nil || c.NotInstallable != "" || !hold(s.terms, v) {
		return false
	}
	if len(c.Constraints) > 0 && c.Constraints[0].Range != ">=1.29" {
		return false
	}
	if present := []string{s.request.Installed, s.request.LastAttempted}; c.Retracted != "" && !slices.Contains(present, v.String()) {
		return false
	}

	pre := s.request.Selection.Prereleases
	return v.Prerelease() == "" || pre != nil && (len(pre.Identifiers) == 0 || slices.ContainsFunc(pre.Identifiers, func(id string) bool {
		return slices.Contains(strings.Split(v.Prerelease(), "."), id)
	}))
}

func parse(t *rapid.T, text string) *semver.Version {
	v, err := Parse(text)
	require.NoError(t, err)
	return v
}

func TestTheChoiceIsTheHighestThatFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anySituation.Draw(t, "situation")
		got := Select(s.candidates, s.request)
		highest := -1
		for i, c := range s.candidates {
			refused := i == got.Highest && got.Reason == corev1alpha1.ReasonDowngradeRefused
			if fits := got.Considered[i].Why == ""; s.fits(c) != (fits || refused) {
				t.Fatalf("%+v for %+v: %q", c, s.request, got.Considered[i].Why)
			}
			if s.fits(c) && (highest < 0 || Compare(parse(t, c.Version), parse(t, s.candidates[highest].Version)) > 0) {
				highest = i
			}
		}
		if (highest < 0) != (got.Highest < 0) || highest >= 0 && Compare(parse(t, s.candidates[highest].Version), parse(t, s.candidates[got.Highest].Version)) != 0 {
			t.Fatalf("the highest that fits is %d, and %d was found", highest, got.Highest)
		}
		if got.Message == "" || len(got.Message) > 2000 {
			t.Fatalf("message %q", got.Message)
		}
		if got.Index < 0 && got.Reason == corev1alpha1.ReasonResolved || got.Index >= 0 && got.Index != got.Highest {
			t.Fatalf("%+v", got)
		}
	})
}

func TestTheOrderOfCandidatesDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anySituation.Draw(t, "situation")
		first := Select(s.candidates, s.request)
		permuted := rapid.Permutation(s.candidates).Draw(t, "permuted")
		second := Select(permuted, s.request)
		if first.Message != second.Message || first.Reason != second.Reason {
			t.Fatalf("%s, %s\n%s, %s", first.Reason, first.Message, second.Reason, second.Message)
		}
		if first.Index >= 0 && s.candidates[first.Index].Version != permuted[second.Index].Version {
			t.Fatalf("%s and %s", s.candidates[first.Index].Version, permuted[second.Index].Version)
		}
	})
}

// A package follows its choices. It is never downgraded regardless of offered or withdrawn
// versions, and it stays if there is no choice.
func TestNoSequenceLeadsToADowngrade(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anySituation.Draw(t, "situation")
		s.request.AllowDowngrade, s.request.Installed, s.request.LastAttempted = false, "", ""
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			offered := rapid.SliceOfN(anyCandidate, 0, 6).Draw(t, "offered")
			s.request.Selection.Version = text(anyComparisons.Draw(t, "terms"))
			got := Select(offered, s.request)
			if got.Index < 0 {
				continue
			}
			chosen := offered[got.Index].Version
			if last := s.request.LastAttempted; last != "" && Compare(parse(t, chosen), parse(t, last)) < 0 {
				t.Fatalf("%s after %s", chosen, last)
			}
			s.request.LastAttempted = chosen
			if rapid.Bool().Draw(t, "succeeds") {
				s.request.Installed = chosen
			}
		}
	})
}

func TestCompareIsAnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		build := rapid.StringMatching(`1\.2\.3(-[0-9a]{1,2})?(\+[0-9a-]{1,3}(\.[0-9a]{1,2}){0,2})?`)
		vs := []*semver.Version{}
		for _, text := range rapid.SliceOfN(build, 3, 3).Draw(t, "versions") {
			if v, err := Parse(text); err == nil {
				vs = append(vs, v)
			}
		}
		for _, a := range vs {
			for _, b := range vs {
				if Compare(a, b) != -Compare(b, a) || (Compare(a, b) == 0) != (a.String() == b.String()) {
					t.Fatalf("%s and %s: %d, %d", a, b, Compare(a, b), Compare(b, a))
				}
				for _, c := range vs {
					if Compare(a, b) <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
						t.Fatalf("%s, %s, %s", a, b, c)
					}
				}
			}
		}
	})
}
