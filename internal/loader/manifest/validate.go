package manifest

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/validation"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/violation"
)

// checker collects the problems of a manifest.
type checker struct {
	r        *Result
	problems violation.Violations
}

func (c *checker) add(reason violation.Reason, field, remedy, format string, args ...any) {
	v := c.r.At(reason, field)
	v.Details, v.Remedy = fmt.Sprintf(format, args...), remedy
	c.problems = append(c.problems, v)
}

func (c *checker) invalid(field, remedy, format string, args ...any) {
	c.add(violation.ReasonManifestInvalid, field, remedy, format, args...)
}

// required reports an empty text; unprintable text as well, as names go into
// messages.
func (c *checker) required(field, value string) bool {
	if value == "" {
		c.invalid(field, "", "Required value")
		return false
	}
	if strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) }) {
		c.invalid(field, "", "control characters are not allowed")
		return false
	}
	if len(value) > validation.DNS1123SubdomainMaxLength {
		c.invalid(field, "", "%d characters; the limit is %d", len(value), validation.DNS1123SubdomainMaxLength)
		return false
	}
	return true
}

// unique reports a name that stands a second time.
func (c *checker) unique(seen map[string]bool, field, value string) {
	if seen[value] {
		c.invalid(field, "Choose another name.", "Duplicate value: %q", value)
	}
	seen[value] = true
}

func (r *Result) validate(files archive.Files) violation.Violations {
	c := &checker{r: r}
	spec := &r.Manifest.Spec
	c.required("metadata.name", r.Manifest.Name)
	c.scopes(spec.Scopes)
	c.phases(spec.Phases)
	c.probes(spec.AvailabilityProbes)
	c.release(spec)
	c.display(spec.Display, files)
	c.images(spec.Images)
	c.filter(&spec.Filter)
	c.constraints(spec.Constraints)
	c.repositories(spec)
	c.tests(&r.Manifest.Test)
	return append(c.problems, r.validateLock()...)
}

func (c *checker) scopes(scopes []manifestsv1alpha1.PackageManifestScope) {
	known := []string{string(manifestsv1alpha1.PackageManifestScopeCluster), string(manifestsv1alpha1.PackageManifestScopeNamespaced)}
	if len(scopes) == 0 {
		c.invalid("spec.scopes", "List Cluster, Namespaced or both.", "Required value")
	}
	for i, s := range scopes {
		if string(s) != known[0] && string(s) != known[1] {
			c.invalid(fmt.Sprintf("spec.scopes[%d]", i), violation.Suggest(string(s), known, "Supported: Cluster, Namespaced."), "Unsupported value: %q", s)
		}
	}
}

func (c *checker) phases(phases []manifestsv1alpha1.PackageManifestPhase) {
	if len(phases) == 0 {
		c.invalid("spec.phases", "List at least one phase.", "Required value")
	}
	if len(phases) > limits.PackagePhases {
		c.add(violation.ReasonLimit, "spec.phases", "", "%d phases; the limit is %d", len(phases), limits.PackagePhases)
		return
	}
	seen := map[string]bool{}
	for i, p := range phases {
		field := fmt.Sprintf("spec.phases[%d]", i)
		if c.required(field+".name", p.Name) {
			c.unique(seen, field+".name", p.Name)
		}
		if p.Class != "" {
			c.add(violation.ReasonUnsupported, field+".class", "Remove the class; the phase is then rolled out directly.",
				"phases with a class are not supported yet")
		}
	}
}

// release checks version and provider, which become label values.
func (c *checker) release(spec *manifestsv1alpha1.PackageManifestSpec) {
	if v := spec.Version; v != "" {
		label := strings.ReplaceAll(v, "+", "_")
		if _, err := semver.StrictNewVersion(v); err != nil {
			c.invalid("spec.version", "Write it as 1.2.3 or 1.2.3-rc.1.", "%q is no semantic version", v)
		} else if errs := validation.IsValidLabelValue(label); len(errs) > 0 {
			c.invalid("spec.version", "Shorten it.", "%q cannot be a label value: %s", label, errs[0])
		}
	}
	if p := spec.Provider; p != "" {
		if errs := validation.IsValidLabelValue(p); len(errs) > 0 {
			c.invalid("spec.provider", "Write free text into spec.display.", "%q cannot be a label value: %s", p, errs[0])
		}
	}
}

func (c *checker) display(d *manifestsv1alpha1.PackageManifestDisplay, files archive.Files) {
	if d == nil || d.Icon == "" {
		return
	}
	if _, ok := files[d.Icon]; !ok {
		c.invalid("spec.display.icon", "Give the path within the package.", "the package has no file %q", d.Icon)
	} else if !strings.HasSuffix(d.Icon, ".png") && !strings.HasSuffix(d.Icon, ".svg") {
		c.invalid("spec.display.icon", "Use a PNG or SVG file.", "%q is neither .png nor .svg", d.Icon)
	}
}

func (c *checker) images(images []manifestsv1alpha1.PackageManifestImage) {
	seen := map[string]bool{}
	for i, img := range images {
		field := fmt.Sprintf("spec.images[%d]", i)
		if c.required(field+".name", img.Name) {
			c.unique(seen, field+".name", img.Name)
		}
		if c.required(field+".image", img.Image) {
			if _, err := name.ParseReference(img.Image); err != nil {
				c.invalid(field+".image", "", "%q is no image reference", img.Image)
			}
		}
	}
}

// conditionName is what CEL can select from a map without quotes.
var conditionName = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

func (c *checker) filter(f *manifestsv1alpha1.PackageManifestFilter) {
	if n := len(f.Conditions) + len(f.Paths); n > limits.Expressions {
		c.add(violation.ReasonLimit, "spec.filter", "", "%d expressions; the limit is %d", n, limits.Expressions)
		return
	}
	seen := map[string]bool{}
	for i, cond := range f.Conditions {
		field := fmt.Sprintf("spec.filter.conditions[%d].name", i)
		if !conditionName.MatchString(cond.Name) {
			c.invalid(field, "Use letters, digits and _, and begin with no digit.", "%q cannot be the name of a condition", cond.Name)
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
			c.invalid(field, "", "Required value")
		case !doublestar.ValidatePattern(p.Glob):
			c.invalid(field, "", "%q is no valid pattern", p.Glob)
		}
	}
}

func (c *checker) repositories(spec *manifestsv1alpha1.PackageManifestSpec) {
	for i, r := range spec.Repositories {
		if (r.File == "") == (r.Image == "") {
			c.invalid(fmt.Sprintf("spec.repositories[%d]", i), "", "exactly one of file and image is needed")
		}
	}
	for i, d := range spec.Dependencies {
		field := fmt.Sprintf("spec.dependencies[%d].image", i)
		if d.Image == nil {
			continue
		}
		c.required(field+".name", d.Image.Name)
		c.required(field+".package", d.Image.Package)
		if c.required(field+".range", d.Image.Range) {
			c.versionRange(field+".range", d.Image.Range)
		}
	}
}

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
		c.unique(seen, field, tc.Name)
	}
	if k := t.Kubeconform; k != nil {
		c.required("test.kubeconform.kubernetesVersion", k.KubernetesVersion)
	}
}
