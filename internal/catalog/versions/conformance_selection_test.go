package versions_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/testing/conformance"
)

type selection struct {
	Constraint     string
	Prereleases    *corev1alpha1.Prereleases
	Candidates     []string
	ExtraPredicate *struct{ Name, RejectIfContains string }
}

// selected: the predicate stands for what makes a version not installable.
func selected(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[selection, struct {
		Valid         *bool
		Matching      []string
		Highest       *string
		ErrorMentions []string
	}](t, r)
	candidates := make([]versions.Candidate, len(in.Candidates))
	for i, text := range in.Candidates {
		candidates[i].Version = text
		if p := in.ExtraPredicate; p != nil && strings.Contains(text, p.RejectIfContains) {
			candidates[i].NotInstallable = p.Name
		}
	}
	got := versions.Select(candidates, versions.Request{Selection: corev1alpha1.VersionSelection{Version: in.Constraint, Prereleases: in.Prereleases}})
	var d differences
	if r.States("valid") {
		d.Unless(*want.Valid == (got.Reason != corev1alpha1.ReasonVersionInvalid), "%s", got.Message)
	}
	if r.States("matching") {
		fitting := fitting(got)
		slices.SortStableFunc(fitting, compareTexts)
		d.Unless(slices.Equal(fitting, want.Matching), "matching %v", fitting)
	}
	if r.States("highest") {
		highest := ""
		if got.Index >= 0 {
			highest = in.Candidates[got.Index]
		}
		d.Unless(deref(want.Highest) == highest, "highest %q: %s", highest, got.Message)
	}
	for _, part := range want.ErrorMentions {
		d.Unless(got.Index < 0 && strings.Contains(got.Message, part), "message %q", got.Message)
	}
	return d.String(), ""
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

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// matched: ranges as manifests and constraints share them, of versions in any form. A constraint is a range in which
// build metadata counts.
func matched(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[selection, struct {
		Valid    bool
		Matching []string
	}](t, r)
	ranges, err := manifest.ParseRange(in.Constraint)
	constraint, _ := versions.ParseConstraint(in.Constraint)
	isExcluded := func(text string) bool {
		_, err := versions.Parse(text)
		return err == nil && constraint != nil && !constraint.Matches(text, &corev1alpha1.Prereleases{})
	}
	var d differences
	d.Unless((err == nil) == want.Valid, "valid: %v", err)
	matching := []string{}
	for _, text := range in.Candidates {
		if v, errVersion := versions.ParseVersion(text); err == nil && errVersion == nil && ranges.Check(v) && !isExcluded(text) {
			matching = append(matching, text)
		}
	}
	slices.Sort(matching)
	slices.Sort(want.Matching)
	d.Unless(slices.Equal(matching, want.Matching), "matching %v", matching)
	return d.String(), ""
}

func parsedConstraint(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct{ Constraint string }, struct {
		Valid                             bool
		OrGroups, ComparatorsInFirstGroup *int
	}](t, r)
	const longest = 512 // of what newer releases of the library accept
	switch {
	case len(in.Constraint) > longest:
		return "", "the limit of a constraint is another one here"
	case in.Constraint == "" && !want.Valid:
		return "", "no constraint means any release"
	}
	_, err := versions.ParseConstraint(in.Constraint)
	var d differences
	d.Unless((err == nil) == want.Valid, "valid: %v", err)
	if parsed, err := manifest.ParseRange(in.Constraint); err == nil {
		groups := strings.Split(parsed.String(), " || ")
		d.Unless(want.OrGroups == nil || *want.OrGroups == len(groups), "%d alternatives", len(groups))
		terms := len(strings.Fields(groups[0]))
		d.Unless(want.ComparatorsInFirstGroup == nil || *want.ComparatorsInFirstGroup == terms, "%d terms", terms)
	}
	return d.String(), ""
}

func filtered(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[selection, struct{ Kept []string }](t, r)
	candidates := make([]versions.Candidate, len(in.Candidates))
	for i, text := range in.Candidates {
		candidates[i].Version = text
	}
	got := fitting(versions.Select(candidates, versions.Request{Selection: corev1alpha1.VersionSelection{Prereleases: in.Prereleases}}))
	var d differences
	d.Unless(slices.Equal(got, want.Kept), "kept %v", got)
	return d.String(), ""
}

func ordered(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct{ Candidates []string }, struct{ Ascending []string }](t, r)
	slices.SortStableFunc(in.Candidates, compareTexts)
	var d differences
	d.Unless(slices.Equal(in.Candidates, want.Ascending), "%v", in.Candidates)
	return d.String(), ""
}

func compared(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct{ Left, Right string }, struct{ Result int }](t, r)
	got := compareTexts(in.Left, in.Right)
	var d differences
	d.Unless(got == want.Result, "%d", got)
	return d.String(), ""
}

func parsedVersions(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Mode   string
		Values []string
	}, struct {
		ValidEach  bool
		Normalized json.RawMessage
	}](t, r)
	var normalized []string
	if json.Unmarshal(want.Normalized, &normalized) != nil && len(want.Normalized) > 0 {
		normalized = []string{strings.Trim(string(want.Normalized), `"`)}
	}
	var d differences
	for i, text := range in.Values {
		v, err := versions.ParseVersion(text)
		if in.Mode == "strict" {
			v, err = versions.Parse(text)
		}
		d.Unless((err == nil && (in.Mode != "strict" || v.String() == text)) == want.ValidEach, "%q: %v", text, err)
		if err == nil && i < len(normalized) {
			d.Unless(v.String() == normalized[i], "%q is %s", text, v)
		}
	}
	return d.String(), ""
}

type installation struct {
	RefName, Constraints                 string
	Prereleases                          *corev1alpha1.Prereleases
	ControllerVersion, KubernetesVersion string
	Overrides                            []string
	Packages                             []struct{ RefName, Version, KubernetesVersionConstraint, ControllerVersionConstraint string }
}

// candidates are the versions that repositories offer of the package.
func (in installation) candidates() []versions.Candidate {
	var specs []corev1alpha1.AvailablePackageSpec
	for _, p := range in.Packages {
		v := corev1alpha1.AvailableVersion{Version: p.Version, Repository: "repository"}
		for platform, text := range map[string]string{"Kubernetes": p.KubernetesVersionConstraint, "PackageOperator": p.ControllerVersionConstraint} {
			if text != "" {
				v.Constraints = append(v.Constraints, corev1alpha1.AvailableConstraint{Platform: platform, Range: text})
			}
		}
		specs = append(specs, corev1alpha1.AvailablePackageSpec{PackageName: cmp.Or(p.RefName, in.RefName), Versions: []corev1alpha1.AvailableVersion{v}})
	}
	var out []versions.Candidate
	for _, o := range offers.Candidates(in.RefName, specs, nil, nil) {
		out = append(out, versions.Candidate{Version: o.Version.Version, Constraints: o.Version.Constraints})
	}
	return out
}

func installSelected(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[installation, struct {
		Selected       *string
		Error          json.RawMessage
		RemainingAfter json.RawMessage
		ReportOmits    []string
	}](t, r)
	request := versions.Request{
		Selection: corev1alpha1.VersionSelection{Version: in.Constraints, Prereleases: in.Prereleases},
		Platform:  versions.Platform{Kubernetes: in.KubernetesVersion, Manager: in.ControllerVersion},
	}
	for _, name := range in.Overrides {
		request.Ignored = append(request.Ignored, filterNamed(name))
	}
	candidates := in.candidates()
	got := versions.Select(candidates, request)
	chosen := ""
	if got.Index >= 0 {
		chosen = candidates[got.Index].Version
	}
	var d differences
	d.Unless(deref(want.Selected) == chosen, "selected %q: %s", chosen, got.Message)
	left := map[versions.Filter]int{}
	for _, remaining := range got.Remaining {
		left[remaining.Filter] = remaining.Left
	}
	var remainingAfter map[string]int
	if json.Unmarshal(want.RemainingAfter, &remainingAfter) == nil {
		for name, n := range remainingAfter {
			have, takesPart := left[filterNamed(name)]
			d.Unless(takesPart && have == n, "%d after %s: %s", have, name, got.Message)
		}
	}
	for _, name := range want.ReportOmits {
		_, takesPart := left[filterNamed(name)]
		d.Unless(!takesPart, "%s takes part: %s", name, got.Message)
	}
	return d.String(), ""
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

func downgraded(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Available                         []string
		Constraints, LastAttemptedVersion string
		Downgradable                      bool
		Prereleases                       *corev1alpha1.Prereleases
	}, struct {
		Allowed                             bool
		StatusVersion, LastAttemptedVersion *string
		WorkloadTouched                     *bool
	}](t, r)
	candidates := make([]versions.Candidate, len(in.Available))
	for i, text := range in.Available {
		candidates[i].Version = text
	}
	got := versions.Select(candidates, versions.Request{
		Selection:     corev1alpha1.VersionSelection{Version: in.Constraints, Prereleases: in.Prereleases},
		LastAttempted: in.LastAttemptedVersion, AllowDowngrade: in.Downgradable,
	})
	chosen, highest := in.LastAttemptedVersion, ""
	if got.Index >= 0 {
		chosen = in.Available[got.Index]
	}
	if got.Highest >= 0 {
		highest = in.Available[got.Highest]
	}
	var d differences
	d.Unless(want.Allowed == (got.Index >= 0), "%s: %s", got.Reason, got.Message)
	d.Unless(want.LastAttemptedVersion == nil || *want.LastAttemptedVersion == chosen, "last attempted %q", chosen)
	d.Unless(want.StatusVersion == nil || *want.StatusVersion == highest || got.Highest < 0, "the highest that fits is %q", highest)
	d.Unless(want.WorkloadTouched == nil || !*want.WorkloadTouched || got.Index >= 0, "%s leaves what is installed", got.Reason)
	return d.String(), ""
}

func enqueued(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Event struct {
			RefName, Version, Namespace string
			Global                      bool
		}
		Installs []struct {
			Name, RefName, Constraints, Namespace string
			Prereleases                           *corev1alpha1.Prereleases
		}
	}, struct{ Enqueued []string }](t, r)
	got := []string{}
	for _, install := range in.Installs {
		c, err := versions.ParseConstraint(install.Constraints)
		local := in.Event.Global || in.Event.Namespace == install.Namespace
		if err == nil && local && install.RefName == in.Event.RefName && c.Matches(in.Event.Version, install.Prereleases) {
			got = append(got, install.Name)
		}
	}
	slices.Sort(got)
	slices.Sort(want.Enqueued)
	var d differences
	d.Unless(slices.Equal(got, want.Enqueued), "%v", got)
	return d.String(), ""
}

func tagSelected(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Constraint string
		Tags       []string
	}, struct{ Selected *string }](t, r)
	if strings.Contains(in.Constraint, ":") {
		return "", "a digest in place of a constraint is for dependencies"
	}
	got, err := versions.Highest(corev1alpha1.VersionSelection{Version: in.Constraint}, in.Tags)
	var d differences
	d.Unless(got == deref(want.Selected), "selected %q: %v", got, err)
	return d.String(), ""
}

// referenceResolved: an image with a constraint in place of its tag.
func referenceResolved(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Reference string
		Tags      []string
	}, struct {
		Reference string
		Error     json.RawMessage
	}](t, r)
	at := strings.LastIndex(in.Reference, ":")
	if at < strings.LastIndex(in.Reference, "/") {
		return "", "a reference without a tag has nothing to select by"
	}
	got := in.Reference
	if !strings.Contains(in.Reference, "@") && !slices.Contains(in.Tags, in.Reference[at+1:]) {
		tag, err := versions.Highest(corev1alpha1.VersionSelection{Version: in.Reference[at+1:]}, in.Tags)
		if got = in.Reference[:at+1] + tag; err != nil {
			got = ""
		}
	}
	var d differences
	d.Unless(got == want.Reference, "%q", got)
	return d.String(), ""
}
