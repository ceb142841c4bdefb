package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/validation"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/violation"
)

// checker collects the problems of a decoded manifest.
type checker struct {
	r        *Result
	problems violation.Violations
}

// add adds a problem at a field.
func (c *checker) add(reason violation.Reason, field, remedy, format string, args ...any) {
	c.problems = append(c.problems, c.r.At(reason, field).Because(remedy, format, args...))
}

// doubtful is invalid for input that only Package Operator accepts.
func (c *checker) doubtful(field, remedy, format string, args ...any) {
	c.problems = append(c.problems, c.r.Doubtful(c.r.At(violation.ReasonManifestInvalid, field).Because(remedy, format, args...))...)
}

// invalid is add with the reason of most problems.
func (c *checker) invalid(field, remedy, format string, args ...any) {
	c.add(violation.ReasonManifestInvalid, field, remedy, format, args...)
}

// required rejects text that is empty, too long or not printable, because names are used in
// messages.
func (c *checker) required(field, value string) bool {
	switch {
	case value == "":
		c.invalid(field, "", "Required value")
	case strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) }):
		c.invalid(field, "", "control characters are not allowed")
	case len(value) > validation.DNS1123SubdomainMaxLength:
		c.invalid(field, "", "%d characters; the limit is %d", len(value), validation.DNS1123SubdomainMaxLength)
	default:
		return true
	}
	return false
}

// oneOf requires one of the known values, with a suggestion for a misspelt one.
func (c *checker) oneOf(report func(field, remedy, format string, args ...any), field, value string, known ...string) {
	if !slices.Contains(known, value) {
		report(field, violation.Suggest(value, known, "Supported: "+strings.Join(known, ", ")+"."), "Unsupported value: %q", value)
	}
}

// unique reports a value that was seen before.
func (c *checker) unique(seen map[string]bool, field, value string) {
	if seen[value] {
		c.invalid(field, "Choose another name.", "Duplicate value: %q", value)
	}
	seen[value] = true
}

// validate checks all fields of the manifest, and then the lock.
func (r *Result) validate(files archive.Files) violation.Violations {
	c := &checker{r: r}
	spec := &r.Manifest.Spec
	c.required("metadata.name", r.Manifest.Name)
	c.scopes(spec.Scopes)
	c.phases(spec)
	c.probes(spec.AvailabilityProbes)
	CheckIgnoredFields(spec.IgnoredFields, c.invalid)
	c.version(spec)
	c.packageName("spec.packageName", spec.PackageName)
	c.release(spec.Release)
	c.display(spec.Display, files)
	c.images(spec.Images)
	c.filter(&spec.Filter)
	c.constraints(spec.Constraints)
	// Dependencies on images are looked up in them when the package is built.
	for i, repository := range spec.Repositories {
		if (repository.File == "") == (repository.Image == "") {
			c.doubtful(fmt.Sprintf("spec.repositories[%d]", i), "", "exactly one of file and image is needed")
		}
	}

	c.dependencies(spec)
	c.provides(spec.Provides)
	c.permissions(spec)
	if spec.SuccessDelaySeconds < 0 {
		c.invalid("spec.successDelaySeconds", "", "%d is below 0", spec.SuccessDelaySeconds)
	}

	c.tests(&r.Manifest.Test)
	return append(c.problems, r.validateLock()...)
}

// scopes requires at least one known scope.
func (c *checker) scopes(scopes []manifestsv1alpha1.PackageManifestScope) {
	if len(scopes) == 0 {
		c.invalid("spec.scopes", "List Cluster, Namespaced or both.", "Required value")
	}
	for i, s := range scopes {
		c.oneOf(c.doubtful, fmt.Sprintf("spec.scopes[%d]", i), string(s),
			string(manifestsv1alpha1.PackageManifestScopeCluster), string(manifestsv1alpha1.PackageManifestScopeNamespaced))
	}
}

// phases checks the names and classes of phases. Each phase costs a step of the rollout, so their
// number is limited.
func (c *checker) phases(spec *manifestsv1alpha1.PackageManifestSpec) {
	phases := spec.Phases
	// A package can consist only of its dependencies.
	if len(phases) == 0 && !slices.ContainsFunc(spec.Dependencies, func(d manifestsv1alpha1.PackageManifestDependency) bool { return inCluster(&d) }) {
		c.invalid("spec.phases", "List at least one phase.", "Required value")
	}
	if len(phases) > limits.PackagePhases {
		c.add(violation.ReasonLimit, "spec.phases", "", "%d phases; the limit is %d", len(phases), limits.PackagePhases)
		return
	}

	seen := map[string]bool{}
	for i, p := range phases {
		field := fmt.Sprintf("spec.phases[%d]", i)
		if p.Name == "" {
			c.doubtful(field+".name", "Give it a name, or remove it.", "the phase has no name: no object can be in it")
		} else if c.required(field+".name", p.Name) {
			c.unique(seen, field+".name", p.Name)
		}
		if p.Class == "" {
			continue
		}
		// It becomes a label, and a part of the name of an ObjectSetPhase.
		if errs := validation.IsValidLabelValue(p.Class); len(errs) > 0 {
			c.invalid(field+".class", "", "%.100q is not a valid label value: %s", p.Class, errs[0])
		}
		if errs := validation.IsDNS1123Label(p.Name); p.Name != "" && len(errs) > 0 {
			c.invalid(field+".name", "", "the name of a phase with a class is a part of the name of an object: %s", errs[0])
		}
	}
}

// images checks the images that the lock pins.
func (c *checker) images(images []manifestsv1alpha1.PackageManifestImage) {
	seen := map[string]bool{}
	for i, img := range images {
		field := fmt.Sprintf("spec.images[%d]", i)
		if c.required(field+".name", img.Name) {
			c.unique(seen, field+".name", img.Name)
		}
		if _, err := name.ParseReference(img.Image); img.Image == "" {
			c.invalid(field+".image", "", "Required value")
		} else if err != nil || len(img.Image) > limits.ReferenceBytes {
			c.invalid(field+".image", "", "%.300q is not a valid image reference", img.Image)
		}
	}
}

// conditionName matches names that CEL can select from a map without quotes.
var conditionName = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// filter checks conditions and path rules. Package expression evaluates them.
func (c *checker) filter(f *manifestsv1alpha1.PackageManifestFilter) {
	if n := len(f.Conditions) + len(f.Paths); n > limits.Expressions {
		c.add(violation.ReasonLimit, "spec.filter", "", "%d expressions; the limit is %d", n, limits.Expressions)
		return
	}

	seen := map[string]bool{}
	for i, cond := range f.Conditions {
		field := fmt.Sprintf("spec.filter.conditions[%d].name", i)
		if !conditionName.MatchString(cond.Name) {
			c.invalid(field, "Use letters, digits and _, and do not start with a digit.", "%q cannot be the name of a condition", cond.Name)
			continue
		}
		c.unique(seen, field, cond.Name)
	}

	for i, p := range f.Paths {
		field := fmt.Sprintf("spec.filter.paths[%d].glob", i)
		switch {
		case len(p.Glob) > limits.TemplatePatternBytes:
			c.add(violation.ReasonLimit, field, "", "%d bytes; the limit is %d", len(p.Glob), limits.TemplatePatternBytes)
		case p.Glob == "":
			c.doubtful(field, "Remove the rule.", "no file matches an empty pattern")
		case !doublestar.ValidatePattern(p.Glob):
			c.invalid(field, "", "%q is not a valid pattern", p.Glob)
		}
	}
}

// tests checks the names of test cases, which are folders of fixtures.
func (c *checker) tests(t *manifestsv1alpha1.PackageManifestTest) {
	seen := map[string]bool{}
	for i, tc := range t.Template {
		field := fmt.Sprintf("test.template[%d].name", i)
		if !c.required(field, tc.Name) {
			continue
		}
		if errs := validation.IsConfigMapKey(tc.Name); len(errs) > 0 {
			c.invalid(field, "", "%q cannot be the name of a folder: %s", tc.Name, errs[0])
		}
		if seen[tc.Name] {
			c.doubtful(field, "Choose another name.", "Duplicate value: %q", tc.Name)
		}
		seen[tc.Name] = true
	}

	if k := t.Kubeconform; k != nil {
		c.required("test.kubeconform.kubernetesVersion", k.KubernetesVersion)
	}
}
