package versions_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/test/conformance"
)

type expectation = conformance.Expectation

func TestConformance(t *testing.T) {
	conformance.Suite{
		Operations: map[string]conformance.Operation{
			"select": conformance.Of(selected), "match": conformance.Of(matched), "parse-constraint": conformance.Of(parsedConstraint),
			"wildcard-expansion": conformance.Of(expanded), "prerelease-filter": conformance.Of(filtered), "order": conformance.Of(ordered),
			"compare": conformance.Of(compared), "parse-version": conformance.Of(parsedVersions),
			"package-install-select":    conformance.Of(installSelected),
			"dependency-install-select": conformance.Of(tagSelected), "reference-resolve": conformance.Of(referenceResolved),
			"validate": conformance.Of(validated), "repository-revision": conformance.Of(revised), "global-list": conformance.Of(listed),
			"repository-filter": conformance.Of(repositoryFiltered),
		},
		Dialects: []string{"none", "masterminds", "crossplane"},
	}.Run(t)
}

type selection struct {
	Constraint     string
	Prereleases    *corev1alpha1.Prereleases
	Candidates     []string
	ExtraPredicate *struct{ Name, RejectIfContains string }
}

// choice considers all candidates. The predicate represents the reasons why a version cannot be
// installed.
func (in selection) choice() versions.Choice {
	candidates := make([]versions.Candidate, len(in.Candidates))
	for i, text := range in.Candidates {
		candidates[i].Version = text
		if p := in.ExtraPredicate; p != nil && strings.Contains(text, p.RejectIfContains) {
			candidates[i].NotInstallable = p.Name
		}
	}
	return versions.Select(candidates, versions.Request{Selection: corev1alpha1.VersionSelection{Version: in.Constraint, Prereleases: in.Prereleases}})
}

func selected(_ *testing.T, in selection, want *expectation) {
	got := in.choice()
	if in.Constraint == "" {
		want.Otherwise(conformance.EmptyRange)
	}
	want.Is("valid", got.Reason != corev1alpha1.ReasonVersionInvalid, got.Message)
	matching := fitting(got)
	slices.SortStableFunc(matching, compareTexts)
	want.Is("matching", matching)
	want.Is("highest", at(in.Candidates, got.Index), got.Message)
	conformance.Holds(want, "errorMentions", func(parts []string) bool {
		return got.Index < 0 && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(got.Message, part) })
	}, got.Message)
}

func at(all []string, index int) string {
	if index < 0 {
		return ""
	}
	return all[index]
}

func fitting(c versions.Choice) []string {
	out := []string{}
	for _, considered := range c.Considered {
		if considered.Why == "" {
			out = append(out, considered.Version)
		}
	}
	return out
}

func compareTexts(a, b string) int {
	x, errX := versions.ParseVersion(a)
	y, errY := versions.ParseVersion(b)
	if errX != nil || errY != nil {
		return 0
	}
	return versions.Compare(x, y)
}

// matched checks ranges in the form of manifests, and versions in any form.
func matched(_ *testing.T, in struct {
	Constraint string
	Candidates []string
}, want *expectation,
) {
	ranges, err := manifest.ParseRange(in.Constraint)
	matching := []string{}
	for _, text := range in.Candidates {
		if v, errVersion := versions.ParseVersion(text); err == nil && errVersion == nil && ranges.Check(v) {
			matching = append(matching, text)
		}
	}
	want.Is("valid", err == nil, err)
	want.Set("matching", matching)
}

func parsedConstraint(_ *testing.T, in struct{ Constraint string }, want *expectation) {
	const longest = 512 // newer releases of the library accept up to this
	switch {
	case len(in.Constraint) > longest && len(in.Constraint) <= limits.TemplatePatternBytes:
		want.Otherwise(conformance.LongConstraint)
	case strings.TrimSpace(in.Constraint) == "":
		want.Otherwise(conformance.EmptyRange)
	}

	_, err := versions.ParseConstraint(in.Constraint)
	want.Is("valid", err == nil, err)
	groups := [][]string{}
	if parsed, err := manifest.ParseRange(in.Constraint); err == nil {
		for group := range strings.SplitSeq(parsed.String(), " || ") {
			groups = append(groups, strings.Fields(group))
		}
	}

	want.Is("orGroups", len(groups))
	if len(groups) > 0 {
		want.Is("comparatorsInFirstGroup", len(groups[0]))
	}
}

// expanded checks that a wildcard and its expansion accept the same versions.
func expanded(_ *testing.T, in struct{ Constraints []string }, want *expectation) {
	conformance.Holds(want, "expansions", func(expansions [][]string) bool {
		return slices.EqualFunc(in.Constraints, expansions, func(text string, comparators []string) bool {
			wildcard, err := versions.ParseConstraint(text)
			expansion, errExpansion := versions.ParseConstraint(strings.Join(comparators, " "))
			return err == nil && errExpansion == nil && !slices.ContainsFunc(around(comparators), func(v string) bool {
				return wildcard.Matches(v, nil) != expansion.Matches(v, nil)
			})
		})
	})
}

// around returns versions at the ends of ranges, and their neighbours.
func around(comparators []string) []string {
	all := []string{"0.0.0", "999.0.0"}
	for _, c := range comparators {
		v, err := versions.ParseVersion(strings.TrimLeft(c, "<>=!~^ "))
		if err != nil {
			continue
		}
		major, minor, patch := v.IncMajor(), v.IncMinor(), v.IncPatch()
		all = append(all, v.String(), major.String(), minor.String(), patch.String())
	}
	return all
}

func filtered(_ *testing.T, in struct {
	Prereleases *corev1alpha1.Prereleases
	Candidates  []string
}, want *expectation,
) {
	want.Is("kept", fitting(selection{Prereleases: in.Prereleases, Candidates: in.Candidates}.choice()))
}

func ordered(_ *testing.T, in struct{ Candidates []string }, want *expectation) {
	slices.SortStableFunc(in.Candidates, compareTexts)
	want.Is("ascending", in.Candidates)
}

func compared(_ *testing.T, in struct{ Left, Right string }, want *expectation) {
	want.Is("result", compareTexts(in.Left, in.Right))
}

// parsedVersions checks the strict parser, for versions of repositories, and the tolerant one, for
// versions of platforms.
func parsedVersions(t *testing.T, in struct {
	Mode   string
	Values []string
}, want *expectation,
) {
	valid, normalized := []bool{}, []string{}
	for _, text := range in.Values {
		v, err := versions.ParseVersion(text)
		if in.Mode == "strict" {
			content, errContent := read(t, carvelPackage("shop.example.com", text))
			valid = append(valid, errContent == nil && len(content.Problems) == 0 && content.Packages[0].Versions[0].Version == text)
		} else {
			valid = append(valid, err == nil)
		}
		if err == nil {
			normalized = append(normalized, v.String())
		}
	}

	conformance.Holds(want, "validEach", func(each bool) bool { return !slices.Contains(valid, !each) }, valid)
	conformance.Holds(want, "normalized", func(texts oneOrMore) bool { return slices.Equal(texts, normalized) }, normalized)
}

// oneOrMore is a list, or its only text.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*o = oneOrMore{text}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(o))
}

type installation struct {
	RefName, Constraints                 string
	Prereleases                          *corev1alpha1.Prereleases
	ControllerVersion, KubernetesVersion string
	Overrides                            []string
	Packages                             []struct{ RefName, Version, KubernetesVersionConstraint, ControllerVersionConstraint string }
}

// offered are the versions that repositories offer of the package. Each repository has the name of
// its package.
func (in installation) offered() []offers.Offered {
	var specs []corev1alpha1.AvailablePackageSpec
	for _, p := range in.Packages {
		of := cmp.Or(p.RefName, in.RefName)
		v := corev1alpha1.AvailableVersion{Version: p.Version, Image: "registry.example/" + of, Repository: of}
		for platform, text := range map[string]string{"Kubernetes": p.KubernetesVersionConstraint, "Lockstep": p.ControllerVersionConstraint} {
			if text != "" {
				v.Constraints = append(v.Constraints, corev1alpha1.AvailableConstraint{Platform: platform, Range: text})
			}
		}
		specs = append(specs, corev1alpha1.AvailablePackageSpec{PackageName: of, Versions: []corev1alpha1.AvailableVersion{v}})
	}
	return offers.Candidates(in.RefName, specs, nil, nil)
}

func installSelected(_ *testing.T, in installation, want *expectation) {
	offered := in.offered()
	candidates := make([]versions.Candidate, len(offered))
	for i, o := range offered {
		candidates[i] = o.Candidate()
	}

	request := versions.Request{
		Selection: corev1alpha1.VersionSelection{Version: in.Constraints, Prereleases: in.Prereleases},
		Platform:  versions.Platform{Kubernetes: in.KubernetesVersion, Manager: in.ControllerVersion},
	}

	for _, name := range in.Overrides {
		request.Ignored = append(request.Ignored, filterNamed(name))
	}

	got := versions.Select(candidates, request)
	version, of := "", ""
	if got.Index >= 0 {
		version, of = offered[got.Index].Version.Version, offered[got.Index].Version.Repository
	}

	want.Is("selected", version, got.Message)
	want.Is("selectedRefName", of)
	want.Fails("error", got.Index < 0, got.Message)
	left := map[versions.Filter]int{}
	for _, remaining := range got.Remaining {
		left[remaining.Filter] = remaining.Left
	}

	takesPart := func(name string) bool { _, takes := left[filterNamed(name)]; return takes }
	conformance.Holds(want, "remainingAfter", func(after map[string]int) bool {
		for name, n := range after {
			if !takesPart(name) || left[filterNamed(name)] != n {
				return false
			}
		}
		return true
	}, left)

	conformance.Holds(want, "reportOmits", func(names []string) bool { return !slices.ContainsFunc(names, takesPart) }, left)
}

// filterNamed returns the filter that a row means.
func filterNamed(name string) versions.Filter {
	name = strings.ToLower(name)
	for part, filter := range map[string]versions.Filter{"kube": versions.FilterKubernetes, "controller": versions.FilterManager, "pre": versions.FilterPrereleases} {
		if strings.Contains(name, part) {
			return filter
		}
	}
	return versions.FilterConstraint
}

// tagSelected selects one of an image's tags.
func tagSelected(_ *testing.T, in struct {
	Constraint string
	Tags       []string
}, want *expectation,
) {
	switch {
	case strings.Contains(in.Constraint, ":"):
		want.Otherwise(conformance.DigestsOfDependencies)
	case in.Constraint == "":
		want.Otherwise(conformance.EmptyRange)
	}
	got, err := versions.Highest(corev1alpha1.VersionSelection{Version: in.Constraint}, "spec.tagSelection", in.Tags)
	want.Is("selected", got, err)
	want.Fails("error", err != nil, err)
	want.Is("requeue", false) // the next interval finds new tags
}

// referenceResolved checks that an image is any text that parses as one. Otherwise the tag is a
// range.
func referenceResolved(_ *testing.T, in struct {
	Reference string
	Tags      []string
}, want *expectation,
) {
	got := in.Reference
	ref, err := name.ParseReference(in.Reference)
	if tag, is := ref.(name.Tag); err == nil && is && !slices.Contains(in.Tags, tag.TagStr()) {
		want.Otherwise(conformance.TagsAreTags)
	}

	if colon := strings.LastIndex(in.Reference, ":"); err != nil && colon > strings.LastIndex(in.Reference, "/") {
		var tag string
		tag, err = versions.Highest(corev1alpha1.VersionSelection{Version: in.Reference[colon+1:]}, "spec.tagSelection", in.Tags)
		got = in.Reference[:colon+1] + tag
	}

	if err != nil {
		got = ""
	}

	want.Is("reference", got, err)
	want.Fails("error", err != nil, err)
}
