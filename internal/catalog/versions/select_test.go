package versions

import (
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

func candidates(texts ...string) []Candidate {
	out := make([]Candidate, len(texts))
	for i, text := range texts {
		out[i].Version = text
	}
	return out
}

func on(platform, versions string) []corev1alpha1.AvailableConstraint {
	return []corev1alpha1.AvailableConstraint{{Platform: platform, Range: versions}}
}

func within(constraint string, identifiers ...string) corev1alpha1.VersionSelection {
	s := corev1alpha1.VersionSelection{Version: constraint}
	if len(identifiers) > 0 {
		s.Prereleases = &corev1alpha1.Prereleases{Identifiers: identifiers}
	}
	return s
}

func all(constraint string) corev1alpha1.VersionSelection {
	return corev1alpha1.VersionSelection{Version: constraint, Prereleases: &corev1alpha1.Prereleases{}}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	offered := candidates("1.9.0", "0.9.0", "1.10.0", "2.0.0-rc.1", "2.0.0-beta.2", "junk")
	cases := []struct {
		reason     string
		candidates []Candidate
		request    Request
		want       string // the version, or empty
		is         string // the reason; empty for Resolved
		message    []string
	}{
		{reason: "without a constraint the highest release is chosen", candidates: offered, want: "1.10.0"},
		{reason: "a blank constraint has no effect", candidates: offered, request: Request{Selection: within(" ")}, want: "1.10.0"},
		{reason: "an exact version", candidates: offered, request: Request{Selection: within("1.9.0")}, want: "1.9.0"},
		{reason: "all prereleases take part in ranges", candidates: offered, request: Request{Selection: all(">=1")}, want: "2.0.0-rc.1"},
		{reason: "all prereleases take part without a constraint", candidates: offered, request: Request{Selection: all("")}, want: "2.0.0-rc.1"},
		{reason: "prereleases with an identifier take part", candidates: offered, request: Request{Selection: within("", "beta", "alpha")}, want: "2.0.0-beta.2"},
		{reason: "an identifier is a whole part", candidates: offered, request: Request{Selection: within("", "r", "bet")}, want: "1.10.0"},
		{reason: "an exact prerelease is chosen", candidates: offered, request: Request{Selection: within("2.0.0-beta.2")}, want: "2.0.0-beta.2"},
		{reason: "an exact prerelease is chosen with any identifiers", candidates: offered, request: Request{Selection: within("==v2.0.0-beta.2", "rc")}, want: "2.0.0-beta.2"},
		{
			reason: "a prerelease in a range lets none take part", candidates: offered, request: Request{Selection: within(">=2.0.0-beta")},
			is: corev1alpha1.ReasonNoMatchingVersion, message: []string{"2.0.0-rc.1 is a prerelease", "set spec.packageRef.prereleases: {}"},
		},
		{reason: "no version of a platform", candidates: []Candidate{{Version: "1.0.0", Constraints: on("Kubernetes", ">=1.30")}}, request: Request{Platform: Platform{Kubernetes: "junk"}},
			is: corev1alpha1.ReasonNoMatchingVersion, message: []string{`needs Kubernetes >=1.30, and the version here, "junk", is not a semantic version`}},
		{reason: "versions of platforms are compared without prerelease and build", candidates: []Candidate{{Version: "1.0.0", Constraints: on("Kubernetes", ">=1.29.4")}}, request: Request{Platform: Platform{Kubernetes: "v1.29.4-gke.1+x"}}, want: "1.0.0"},
		{
			reason: "constraints on a platform can be ignored", candidates: []Candidate{{Version: "1.0.0", Constraints: on("Kubernetes", ">=1.30")}},
			request: Request{Platform: Platform{Kubernetes: "v1.29.4"}, Ignored: []Filter{FilterKubernetes}}, want: "1.0.0",
		},
		{reason: "constraints on OpenShift do not apply elsewhere", candidates: []Candidate{{Version: "1.0.0", Constraints: on("OpenShift", ">=4.14")}}, want: "1.0.0"},
		{reason: "constraints on the manager do not apply to a build without a version", candidates: []Candidate{{Version: "1.0.0", Constraints: on("Lockstep", ">=4.14")}}, want: "1.0.0"},
		{
			reason: "a higher version for a newer manager is named", want: "1.0.0", message: []string{"1.1.0 needs Lockstep >=2, but this is v1.5.0"},
			candidates: []Candidate{{Version: "1.0.0"}, {Version: "1.1.0", Constraints: on("Lockstep", ">=2")}}, request: Request{Platform: Platform{Manager: "v1.5.0"}},
		},
		{
			reason: "a package for OpenShift", is: corev1alpha1.ReasonNoMatchingVersion, message: []string{"1.0.0 is for OpenShift only"},
			candidates: []Candidate{{Version: "1.0.0", Constraints: []corev1alpha1.AvailableConstraint{{Platforms: []string{"OpenShift"}}}}},
		},
		{
			reason: "retracted versions are not for ranges", candidates: []Candidate{{Version: "1.0.0"}, {Version: "1.1.0", Retracted: "loses data"}},
			want: "1.0.0", message: []string{"1.1.0 is retracted: loses data"},
		},
		{
			reason: "an exact constraint chooses a retracted version", candidates: []Candidate{{Version: "1.0.0"}, {Version: "1.1.0", Retracted: "loses data"}},
			request: Request{Selection: within("1.1.0")}, want: "1.1.0", message: []string{"it is retracted: loses data"},
		},
		{
			reason: "a retracted version stays where it is installed", candidates: []Candidate{{Version: "1.0.0"}, {Version: "1.1.0", Retracted: "loses data"}},
			request: Request{Installed: "1.1.0"}, want: "1.1.0", message: []string{"it is retracted: loses data"},
		},
		{
			reason: "a version that cannot be installed", candidates: []Candidate{{Version: "1.0.0", NotInstallable: "asks for template[0].ytt"}},
			is: corev1alpha1.ReasonNoMatchingVersion, message: []string{"1.0.0 cannot be installed: asks for template[0].ytt"},
		},
		{
			reason: "a version for ClusterPackages only is not for a Package", want: "1.0.0", message: []string{"2.0.0 is for ClusterPackages only"},
			candidates: []Candidate{{Version: "1.0.0"}, {Version: "2.0.0", Scopes: []corev1alpha1.Scope{corev1alpha1.ScopeCluster}}}, request: Request{Scope: corev1alpha1.ScopeNamespaced},
		},
		{
			reason: "a version for both", want: "1.0.0", request: Request{Scope: corev1alpha1.ScopeNamespaced},
			candidates: []Candidate{{Version: "1.0.0", Scopes: corev1alpha1.Scopes()}},
		},
		{reason: "no version is offered", is: corev1alpha1.ReasonUnknownPackage},
		{reason: "no constraint", candidates: offered, request: Request{Selection: within("1.0.0 || || 2")}, is: corev1alpha1.ReasonVersionInvalid, message: []string{`alternative ""`, `write it as ">=1.2, <2"`}},
		{
			reason: "no downgrade", candidates: offered, request: Request{Selection: within("1.9.0"), LastAttempted: "1.10.0", Installed: "1.10.0"},
			is: corev1alpha1.ReasonDowngradeRefused, message: []string{"spec.downgradePolicy: Allow", `1.10.0, which was chosen before and is not within "1.9.0"`, "1.10.0 stays installed"},
		},
		{reason: "a downgrade that is allowed", candidates: offered, request: Request{Selection: within("1.9.0"), LastAttempted: "1.10.0", AllowDowngrade: true}, want: "1.9.0"},
		{
			reason: "a version that vanished leads to no downgrade", candidates: offered, request: Request{LastAttempted: "3.0.0"},
			is: corev1alpha1.ReasonDowngradeRefused, message: []string{"chosen before and is no longer offered"},
		},
		{
			reason: "the installed version is used if none was attempted", candidates: offered, request: Request{Installed: "3.0.0"},
			is: corev1alpha1.ReasonDowngradeRefused,
		},
		{
			reason: "a lower build of one version is a downgrade", candidates: candidates("1.0.0+1"), request: Request{LastAttempted: "1.0.0+2"},
			is: corev1alpha1.ReasonDowngradeRefused,
		},
		{reason: "the version that was chosen before", candidates: offered, request: Request{LastAttempted: "v1.10.0"}, want: "1.10.0"},
		{reason: "equal versions are ordered by build", candidates: candidates("1.0.0+9", "1.0.0+10", "1.0.0"), want: "1.0.0+10"},
		{reason: "an exact version with build matches only itself", candidates: candidates("1.0.0+9", "1.0.0+10", "1.0.0"), request: Request{Selection: within("1.0.0+9")}, want: "1.0.0+9"},
		{reason: "an exact version with build as an alternative", candidates: candidates("1.0.0+9", "1.0.0+10", "2.0.0"), request: Request{Selection: within("=v1.0.0+9 || 3")}, want: "1.0.0+9"},
		{reason: "an exact version without build matches all builds", candidates: candidates("1.0.0+9", "1.0.0+10", "1.0.0"), request: Request{Selection: within("1.0.0")}, want: "1.0.0+10"},
	}

	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			got := Select(c.candidates, c.request)
			version := ""
			if got.Index >= 0 {
				version = c.candidates[got.Index].Version
			}
			if c.is == "" {
				c.is = corev1alpha1.ReasonResolved
			}
			if version != c.want || got.Reason != c.is {
				t.Errorf("chose %q, %s: %s", version, got.Reason, got.Message)
			}
			for _, part := range c.message {
				require.Contains(t, got.Message, part, "the message")
			}
		})
	}
}

func TestParseConstraintRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct{ reason, text, want string }{
		{"a word", "latest", `"latest" is not a constraint on versions: write it as ">=1.2, <2"`},
		{"an alternative that is missing", "1 || ", `"1 ||" is not a constraint on versions because of its alternative "": write it as ">=1.2, <2"`},
		{"an alternative that is wrong", "1 || => || 2", `because of its alternative "=>"`},
		{"too long", ">" + strings.Repeat(" ", 4096) + "1", "the constraint has 4098 bytes; the limit is 4096"},
		{"too many alternatives", "1" + strings.Repeat("||1", 32), `the constraint has 33 alternatives between "||"; the limit is 32`},
		{"too many comparisons", strings.Repeat(">1 ", 65), "the constraint has 65 comparisons; the limit is 64"},
		{"a long text is shown in part", strings.Repeat("é", 200), strings.Repeat("é", 99) + `…" is not a constraint`},
		{"what draws on a terminal is quoted", "\x1b[2J", `"\x1b[2J" is not a constraint`},
	}

	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			if got, err := ParseConstraint(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	cases := []struct {
		constraint, version string
		pre                 *corev1alpha1.Prereleases
		want                bool
	}{
		{"", "1.0.0", nil, true},
		{"", "v1.0.0", nil, true},
		{"", "1.0", nil, false},
		{"", "1.0.0-rc.1", nil, false},
		{"", "1.0.0-rc.1", &corev1alpha1.Prereleases{}, true},
		{"", "0.0.0-0", &corev1alpha1.Prereleases{}, true},
		{"1.0.0-rc.1", "1.0.0-rc.1", nil, true},
		{"1.0.0-rc.1", "1.0.0", nil, false},
		{"1 - 2||4.0.0", "4.0.0", nil, true},
		{"1 - 2||4.0.0", "2.9.0", nil, true},
		{"1 - 2||4.0.0", "3.0.0", nil, false},
		{">=1 <3 || ==5.0.0", "5.0.0", nil, true},
		{"!=1.0.0+a", "1.0.0+b", nil, false},
		{">=1.0.0+b", "1.0.0+a", nil, true},
		{strings.Repeat(" ", 4093) + ">=1", "1.0.0", nil, true},
	}

	for _, c := range cases {
		parsed, err := ParseConstraint(c.constraint)
		if err != nil {
			t.Errorf("%.100q: %v", c.constraint, err)
			continue
		}
		require.Equal(t, c.want, parsed.Matches(c.version, c.pre), fmt.Sprintf("%s within %.100q, prereleases %v", c.version, c.constraint, c.pre))
	}
}

func TestHighest(t *testing.T) {
	t.Parallel()
	tags := []string{"latest", "v1", "v1.2", "1.2.0", "v1.10.0", "v2.0.0-rc.1"}
	for _, c := range []struct {
		selection  corev1alpha1.VersionSelection
		tags       []string
		want, fail string
	}{
		{within(""), tags, "v1.10.0", ""},
		{within("<1.10"), tags, "1.2.0", ""},
		{within("", "rc"), tags, "v2.0.0-rc.1", ""},
		{within(">=2"), tags, "", "no tag fits: of 6, these are left: 3 as semantic versions"},
		{within("~1.2-0"), []string{"v1", "v1.2.1-rc.1"}, "", "to let prereleases take part, set spec.tagSelection.prereleases: {}"},
		{within("?"), tags, "", "is not a constraint on versions"},
		{within(""), nil, "", "there are no tags"},
	} {
		got, err := Highest(c.selection, "spec.tagSelection", c.tags)
		if got != c.want || (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%+v: %q, %v", c.selection, got, err)
		}
	}
}

func TestPlatformOf(t *testing.T) {
	t.Parallel()
	env := manifestsv1alpha1.PackageEnvironment{
		Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: "v1.36.0"},
		OpenShift:  &manifestsv1alpha1.PackageEnvironmentOpenShift{Version: "4.20.1"},
	}
	require.Equal(t, Platform{Kubernetes: "v1.36.0", OpenShift: "4.20.1", Manager: "v1.2.3"}, PlatformOf(env, "v1.2.3"))
}
