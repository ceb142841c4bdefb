package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/cli/author/schemacheck"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/objects"
)

// DisableAnnotation on a manifest names the rules that do not apply to the package, separated by
// commas.
const DisableAnnotation = "lint.lockstep.run/disable"

// Options choose the rules.
type Options struct {
	// Disable are the rules that do not run.
	Disable []string
	// From are the files of the package to upgrade; nil if there is none.
	From loader.Files
}

// Run returns the findings of the rules. The error for an invalid package is of type
// violation.Violations.
func Run(ctx context.Context, files loader.Files, opts Options) ([]Finding, error) {
	known := ruleNames()
	// A mistyped rule would otherwise be disabled without an effect.
	for _, name := range opts.Disable {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("the rule %q does not exist. %s", name, violation.Suggest(name, known, "The rules are: "+strings.Join(known, ", ")+"."))
		}
	}

	cases, err := load(ctx, files, true)
	if err != nil {
		return nil, err
	}
	if opts.From != nil {
		older, err := load(ctx, opts.From, false)
		if err != nil {
			// Its problems are text, because the reader would look for violations in the newer package.
			return nil, errors.New("the older package is invalid: " + err.Error())
		}
		pair(cases, older)
	}

	findings := []Finding{}
	for _, c := range cases {
		disabled := append(disabledRules(c.manifest), opts.Disable...)
		for _, rule := range Rules() {
			if !slices.Contains(disabled, rule.Name) {
				rule.check(c, newReporter(rule, c, &findings))
			}
		}
	}

	return unique(findings), nil
}

// load returns all cases of a package. With schemas, objects that the API server would refuse are
// an error.
func load(ctx context.Context, files loader.Files, schemas bool) ([]*oneCase, error) {
	session := schemacheck.NewSession(nil)
	var cases []*oneCase
	var failed error
	var refused violation.Violations
	byComponent := map[string][]*oneCase{}
	_, err := loader.Inspect(ctx, files, func(of loader.Case) {
		c, err := newCase(session, files, of)
		if schemas && err == nil {
			var report schemacheck.Report
			report, err = session.Check(ctx, of.Component, of.Package)
			refused = append(refused, report.Problems...)
		}

		failed = cmp.Or(failed, err)
		cases = append(cases, c)
		byComponent[of.Component] = append(byComponent[of.Component], c)
	})
	if err = cmp.Or(err, failed, refused.Sorted().Err()); err != nil {
		return nil, err
	}

	for _, c := range cases {
		c.siblings = byComponent[c.Component]
	}

	return cases, nil
}

// pair adds to each case the objects of its counterpart in an older package: the case of the same
// component and name, or the component's first case.
func pair(cases, older []*oneCase) {
	for _, c := range cases {
		var match *oneCase
		for _, o := range older {
			same := o.Component == c.Component && (o.namespace == "") == (c.namespace == "")
			if same && (match == nil || o.Name == c.Name && match.Name != c.Name) {
				match = o
			}
		}

		if match == nil {
			continue
		}
		c.former = map[objects.Key]*object{}
		for _, o := range match.objects {
			c.former[match.key(o)] = o
		}
	}
}

// Level is the severity of a rule.
type Level string

// Levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Info    Level = "info"
)

// levels, the most severe one first.
var levels = []Level{Error, Warning, Info}

// AtLeast reports whether a level is at least as severe as another.
func (l Level) AtLeast(other Level) bool {
	return slices.Index(levels, l) <= slices.Index(levels, other)
}

// Finding is a mistake that a rule found.
type Finding struct {
	Rule  string `json:"rule"`
	Level Level  `json:"level"`

	violation.Violation
}

// compare orders findings by level and place.
func (f Finding) compare(o Finding) int {
	return cmp.Or(
		cmp.Compare(slices.Index(levels, f.Level), slices.Index(levels, o.Level)),
		cmp.Compare(f.Component, o.Component), cmp.Compare(f.Path, o.Path), cmp.Compare(f.Document, o.Document),
		cmp.Compare(f.Rule, o.Rule), cmp.Compare(f.Object, o.Object), cmp.Compare(f.Field, o.Field), cmp.Compare(f.Details, o.Details),
	)
}

// reporter collects the findings of one rule in one case.
type reporter struct {
	base     Finding
	findings *[]Finding
}

// newReporter returns a reporter for a rule. A finding without another place is in the manifest.
func newReporter(rule Rule, c *oneCase, findings *[]Finding) reporter {
	base := Finding{rule.Name, rule.Level, violation.Violation{Component: c.Component, Path: "manifest.yaml"}}
	if _, ok := c.files["manifest.yml"]; ok {
		base.Path = "manifest.yml"
	}
	return reporter{base, findings}
}

// at reports a mistake in an object.
func (r reporter) at(o *object, field, remedy, format string, args ...any) {
	r.base.Path, r.base.Document, r.base.Line, r.base.Object = o.source.Path, o.source.Document, o.source.Line, o.source.Object
	r.manifest(field, remedy, format, args...)
}

// manifest reports a mistake in the manifest.
func (r reporter) manifest(field, remedy, format string, args ...any) {
	r.base.Field, r.base.Details, r.base.Remedy = field, fmt.Sprintf(format, args...), remedy
	*r.findings = append(*r.findings, r.base)
}

// unique sorts findings and drops duplicates from several cases: findings of the same rule, place
// and field. Names of objects can differ between cases.
func unique(findings []Finding) []Finding {
	slices.SortStableFunc(findings, Finding.compare)
	seen := map[Finding]bool{}
	return slices.DeleteFunc(findings, func(f Finding) bool {
		// The remaining fields identify a finding.
		f.Line, f.Object, f.Remedy = 0, "", ""
		if f.Document != 0 {
			f.Details = ""
		}
		duplicate := seen[f]
		seen[f] = true
		return duplicate
	})
}

// object is one object of a case.
type object struct {
	*unstructured.Unstructured
	kind      schema.GroupKind
	phase     int
	phaseName string
	source    violation.Violation

	// home is the namespace that the object is created in.
	home string
}

// Content implements gates.Object.
func (o *object) Content() map[string]any { return o.Object }

// Home implements gates.Object.
func (o *object) Home() string { return o.home }

// is reports whether the object is of one of some kinds.
func (o *object) is(kinds ...schema.GroupKind) bool { return slices.Contains(kinds, o.kind) }

// annotated reports whether an annotation has a value.
func (o *object) annotated(key, value string) bool { return o.GetAnnotations()[key] == value }

// oneCase is a package as it would be installed in one case.
type oneCase struct {
	loader.Case

	// files of the component.
	files    loader.Files
	manifest *manifestsv1alpha1.PackageManifest
	objects  []*object
	checker  *schemacheck.Checker

	// namespace of the Package; empty for a ClusterPackage.
	namespace string
	// siblings are all cases of the component, this one included.
	siblings []*oneCase
	// former is the same case of an older package; nil without an older package.
	former map[objects.Key]*object

	// gates is the result of needs.
	gates []gates.Need[*object]
}

// newCase decodes the objects of a rendered case.
func newCase(session *schemacheck.Session, files loader.Files, of loader.Case) (*oneCase, error) {
	phases, err := schemacheck.Decode(of.Package)
	if err != nil {
		return nil, err
	}
	c := &oneCase{Case: of, files: files, manifest: of.Package.Manifest, namespace: of.For.Metadata.Namespace}
	if of.Component != "" {
		c.files = files.Below("components/" + of.Component)
	}

	var all []*unstructured.Unstructured
	for i, phase := range phases {
		for j, u := range phase {
			o := &object{
				Unstructured: u, kind: u.GroupVersionKind().GroupKind(), phase: i, phaseName: of.Package.Phases[i].Name, source: of.Package.Sources[i][j],
			}
			o.home = c.namespaceOf(o)
			c.objects = append(c.objects, o)
		}
		all = append(all, phase...)
	}

	c.checker, err = session.Checker(all)
	return c, err
}

// key identifies an object within the package.
func (c *oneCase) key(o *object) objects.Key {
	return objects.Key{Group: o.kind.Group, Kind: o.kind.Kind, Namespace: c.namespaceOf(o), Name: o.GetName()}
}

// namespaceOf returns the namespace that an object is created in.
func (c *oneCase) namespaceOf(o *object) string {
	if o.GetNamespace() != "" {
		return o.GetNamespace()
	}
	return c.namespace
}

// of returns the objects of some kinds.
func (c *oneCase) of(kinds ...schema.GroupKind) []*object {
	return slices.DeleteFunc(slices.Clone(c.objects), func(o *object) bool { return !o.is(kinds...) })
}

// inAnyCase reports whether an object of any case of the component matches.
func (c *oneCase) inAnyCase(matches func(*object) bool) bool {
	return slices.ContainsFunc(c.siblings, func(s *oneCase) bool { return slices.ContainsFunc(s.objects, matches) })
}

// probed reports whether a probe of the manifest evaluates an object.
func (c *oneCase) probed(o *object) bool {
	return slices.ContainsFunc(c.manifest.Spec.AvailabilityProbes, func(p corev1alpha1.ObjectSetProbe) bool {
		return len(p.Probes) > 0 && selects(p.Selector, o)
	})
}

// selects reports whether a probe's selector picks an object.
func selects(s corev1alpha1.ProbeSelector, o *object) bool {
	if s.Kind == nil || s.Kind.Group != o.kind.Group || s.Kind.Kind != o.kind.Kind {
		return false
	}
	if s.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Selector)
	return err == nil && selector.Matches(labels.Set(o.GetLabels()))
}

// The kinds that rules are about.
var (
	serviceKind   = schema.GroupKind{Kind: "Service"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	secretKind    = schema.GroupKind{Kind: "Secret"}
	claimKind     = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	podKind       = schema.GroupKind{Kind: "Pod"}
	crdKind       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiKind       = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	jobKind       = schema.GroupKind{Group: "batch", Kind: "Job"}
	cronJobKind   = schema.GroupKind{Group: "batch", Kind: "CronJob"}

	deploymentKind  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSetKind   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	replicaSetKind  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	workloadKinds   = []schema.GroupKind{deploymentKind, statefulSetKind, daemonSetKind, replicaSetKind}
	kindsWithPods   = append([]schema.GroupKind{podKind, jobKind, cronJobKind}, workloadKinds...)

	validatingKind = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}
	mutatingKind   = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}
)
