package versions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// Filter is a reason why a version does not fit.
type Filter string

// Filters in their order.
const (
	FilterVersion     Filter = "version"     // it is a semantic version
	FilterPrereleases Filter = "prereleases" // it is a release, or an admitted prerelease
	FilterPlatforms   Filter = "platforms"   // it is for this platform
	FilterKubernetes  Filter = "Kubernetes"  // it is for this version of Kubernetes
	FilterOpenShift   Filter = "OpenShift"   // it is for this version of OpenShift
	FilterManager     Filter = "Lockstep"    // it is for this version of the manager
	FilterConstraint  Filter = "constraint"  // it is within the constraint
	FilterAPI         Filter = "API"         // it provides the API
	FilterInstallable Filter = "installable" // it can be installed
	FilterRetracted   Filter = "retracted"   // it is not retracted, or is installed, or is named by the constraint
)

// filter is one step. why returns why it rejects a candidate, or "".
type filter struct {
	name      Filter
	takesPart bool
	why       func(i int) string
}

// pipeline returns the filters in their order. A filter takes part in explanations if the request
// or any candidate gives it something to decide, so that a message has no steps without a meaning.
func (s *selection) pipeline() []filter {
	states := func(platform Filter) bool {
		return slices.ContainsFunc(s.candidates, func(c Candidate) bool {
			return slices.ContainsFunc(c.Constraints, func(k corev1alpha1.AvailableConstraint) bool { return k.Platform == string(platform) })
		})
	}

	admitted := s.constraint.admission(s.request.Selection.Prereleases)
	filters := []filter{
		{name: FilterVersion, why: s.whyNoVersion},
		{name: FilterPrereleases, takesPart: !admitted.all, why: s.whyPrerelease(admitted)},
		{name: FilterPlatforms, why: s.whyPlatform},
	}

	p := s.request.Platform
	for _, of := range []struct {
		name    Filter
		version string
		absent  bool // constraints on its version do not apply
	}{{FilterKubernetes, p.Kubernetes, false}, {FilterOpenShift, p.OpenShift, p.OpenShift == ""}, {FilterManager, p.Manager, p.Manager == ""}} {
		if !of.absent && !slices.Contains(s.request.Ignored, of.name) && states(of.name) {
			filters = append(filters, filter{name: of.name, takesPart: true, why: s.whyPlatformVersion(string(of.name), of.version)})
		}
	}

	return append(filters,
		filter{name: FilterConstraint, takesPart: len(s.constraint.groups) > 0, why: s.whyConstraint()},
		filter{name: FilterAPI, takesPart: s.request.API != nil, why: s.whyAPI},
		filter{name: FilterInstallable, why: s.whyNotInstallable},
		filter{name: FilterRetracted, why: s.whyRetracted})
}

// whyNoVersion rejects text that is not a version; the filters after it rely on parsed versions.
func (s *selection) whyNoVersion(i int) string {
	if s.parsed[i] == nil {
		return "is not a semantic version"
	}
	return ""
}

// whyPrerelease rejects prereleases that the selection does not admit.
func (s *selection) whyPrerelease(admitted admission) func(int) string {
	why := "is a prerelease"
	if len(admitted.identifiers) > 0 {
		why = "is a prerelease without " + shortened(strings.Join(admitted.identifiers, " or "))
	}
	return func(i int) string {
		if admitted.admits(s.parsed[i]) {
			return ""
		}
		return why
	}
}

// whyPlatform rejects versions for other platforms, and constraints on platforms that this manager
// does not know: they might exclude this cluster.
func (s *selection) whyPlatform(i int) string {
	for _, c := range s.candidates[i].Constraints {
		if len(c.Platforms) > 0 && !slices.ContainsFunc(c.Platforms, s.isPlatform) {
			return "is for " + shortened(strings.Join(c.Platforms, " or ")) + " only"
		}
		if known := []string{string(FilterKubernetes), string(FilterOpenShift), string(FilterManager)}; c.Platform != "" && !slices.Contains(known, c.Platform) {
			return "is for a platform that does not exist: " + quoted(c.Platform)
		}
	}
	return ""
}

// isPlatform reports whether the cluster is of a platform. Every cluster is Kubernetes.
func (s *selection) isPlatform(name string) bool {
	return name == string(manifestsv1alpha1.PlatformKubernetes) ||
		name == string(manifestsv1alpha1.PlatformOpenShift) && s.request.Platform.OpenShift != ""
}

// whyPlatformVersion checks constraints on the version of a platform, without its prerelease and
// build metadata: v1.29.4-gke.1 is 1.29.4. Each range is parsed once.
func (s *selection) whyPlatformVersion(platform, version string) func(int) string {
	outcomes := map[string]string{}
	have, err := ParseVersion(version)
	outcome := func(text string) string {
		if err != nil {
			return fmt.Sprintf("needs %s %s, and the version here, %s, is not a semantic version", platform, shortened(text), quoted(version))
		}
		want, err := manifest.ParseRange(text)
		switch {
		case err != nil:
			return fmt.Sprintf("needs a version of %s that is not a range of versions: %s", platform, quoted(text))
		// Vendors mark their builds as prereleases, which ranges would exclude.
		case !want.Check(semver.New(have.Major(), have.Minor(), have.Patch(), "", "")):
			return fmt.Sprintf("needs %s %s, but this is %s", platform, shortened(text), version)
		}
		return ""
	}

	return func(i int) string {
		for _, c := range s.candidates[i].Constraints {
			if c.Platform != platform || strings.TrimSpace(c.Range) == "" {
				continue
			}
			why, seen := outcomes[c.Range]
			if !seen {
				why = outcome(c.Range)
				outcomes[c.Range] = why
			}
			if why != "" {
				return why
			}
		}
		return ""
	}
}

// whyConstraint rejects versions outside the selection's constraint.
func (s *selection) whyConstraint() func(int) string {
	why := "is not within " + quoted(s.constraint.text)
	return func(i int) string {
		if s.constraint.contains(s.parsed[i]) {
			return ""
		}
		return why
	}
}

// whyAPI rejects versions without the API that the request names.
func (s *selection) whyAPI(i int) string {
	if api := s.request.API; api != nil && !slices.Contains(s.candidates[i].Provides, *api) {
		return "does not provide " + api.String()
	}
	return ""
}

// whyNotInstallable rejects versions with a reason that no setting of the Package removes.
func (s *selection) whyNotInstallable(i int) string {
	c, scope := &s.candidates[i], s.request.Scope
	switch {
	case c.NotInstallable != "":
		return "cannot be installed: " + c.NotInstallable // its source bounds it, and it has a remedy
	case scope != "" && len(c.Scopes) > 0 && !slices.Contains(c.Scopes, scope):
		return "is for " + c.Scopes[0].Kind("Package") + "s only"
	}
	return ""
}

// whyRetracted permits a retracted version if it is installed, or if the constraint names it.
func (s *selection) whyRetracted(i int) string {
	if s.candidates[i].Retracted == "" || s.isPresent(i) || s.constraint.Names(s.parsed[i]) {
		return ""
	}
	return "is retracted: " + shortened(s.candidates[i].Retracted)
}

// isPresent reports whether a candidate is the version that is installed or was chosen last.
func (s *selection) isPresent(i int) bool {
	return slices.ContainsFunc([]string{s.request.Installed, s.request.LastAttempted}, func(text string) bool {
		v, err := Parse(text)
		return err == nil && Compare(v, s.parsed[i]) == 0
	})
}
