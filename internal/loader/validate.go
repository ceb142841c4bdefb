package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/expression"
	"lockstep.run/lockstep/internal/loader/render"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Validate checks a package and its components in each test case. If there are none, it checks each
// scope with defaults.
func Validate(ctx context.Context, files Files) (warnings violation.Violations, err error) {
	return Inspect(ctx, files, nil)
}

// Case is a test case, or the default configuration in one of the scopes.
type Case struct {
	Component string
	Name      string
	For       manifestsv1alpha1.TemplateContextPackage
	Package   *Package
	// Unrendered is why templates were not rendered. The package then has only the objects of other
	// files.
	Unrendered string
	// Rendered is the output of templates by path. Static has the object files that are not
	// templates. Both lack the documents that conditions leave out. Fixtures are compared with
	// them.
	Rendered, Static Files
}

// Inspect is Validate, but also calls visit for each case without problems.
func Inspect(ctx context.Context, files Files, visit func(Case)) (warnings violation.Violations, err error) {
	v := &validator{ctx: ctx, files: files, visit: visit}
	root := v.unit("")
	if root != nil && root.Spec.Components != nil {
		v.problems = append(v.problems, strayComponentFiles(files)...)
		for _, name := range componentNames(files) {
			v.unit(name)
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("validate the package: %w", context.Cause(ctx))
	}
	return v.warnings.Sorted(), v.problems.Err()
}

// validator collects the problems of all parts and test cases of a package.
type validator struct {
	ctx                context.Context
	files              Files
	visit              func(Case)
	problems, warnings violation.Violations
}

// render loads the package, and returns the problems and whether the templates could be executed.
// name is the name of the test case.
func (v *validator) render(opts Options, name string) (problems violation.Violations, executed bool) {
	var files fixtures
	opts.keep = &files
	pkg, err := Load(v.ctx, v.files, opts)
	if err == nil {
		v.warnings = append(v.warnings, pkg.Warnings...)
		if v.visit != nil {
			v.visit(Case{Component: opts.Component, Name: name, For: opts.Package, Package: pkg, Rendered: files.rendered, Static: files.static})
		}
	} else {
		errors.As(err, &problems)
	}
	return problems, files.rendered != nil
}

// unit checks one part of the package and returns its manifest; nil if it cannot be read.
func (v *validator) unit(component string) *manifestsv1alpha1.PackageManifest {
	u := readUnit(v.files, component)
	if u.result == nil {
		problems, _ := v.render(exampleOptions(component, false), "")
		v.problems = append(v.problems, problems...)
		return nil
	}

	for _, p := range Unread(u.files) {
		v.warnings = append(v.warnings, violation.Violation{Reason: violation.ReasonUnsupported, Path: p, Component: component}.
			Because("Rename it to "+strings.TrimSuffix(p, ".json")+".yaml: JSON is YAML, too.", "the object in a .json file is not installed"))
	}

	// They can explain problems, which leave no package with warnings.
	v.warnings = append(v.warnings, u.mark(u.result.Warnings)...)

	m := u.result.Manifest
	if len(m.Test.Template) == 0 {
		v.withoutTests(u)
		return m
	}

	for i := range m.Test.Template {
		v.testCase(u, i)
	}

	return m
}

// testCase loads the package in one of its test cases. A problem of its configuration is reported
// at the test case in the manifest.
func (v *validator) testCase(u *unit, i int) {
	tc := &u.result.Manifest.Test.Template[i]
	scopes := u.result.Manifest.Spec.Scopes
	opts := Options{Component: u.component}.withTestCase(tc).withScopes(scopes)
	if opts.scope() == corev1alpha1.ScopeCluster && !slices.Contains(scopes, manifestsv1alpha1.PackageManifestScopeNamespaced) {
		opts.DefaultNamespace, opts.anyNamespace = exampleNamespace, true
	}

	problems, _ := v.render(opts, tc.Name)
	for _, p := range problems {
		if p.Reason == violation.ReasonConfigInvalid {
			at := u.result.At(p.Reason, strings.Replace(p.Field, "spec.config", fmt.Sprintf("test.template[%d].context.config", i), 1))
			at.Component, at.Details, at.Remedy = p.Component, p.Details, p.Remedy
			p = at
		}
		v.problems = append(v.problems, p)
	}
}

// withoutTests loads the package in each of its scopes. A problem in one of two is a warning.
func (v *validator) withoutTests(u *unit) {
	m := u.result.Manifest
	if len(m.Spec.Scopes) != 2 || m.Spec.Scopes[0] == m.Spec.Scopes[1] {
		cluster := slices.Contains(m.Spec.Scopes, manifestsv1alpha1.PackageManifestScopeCluster)
		opts := exampleOptions(u.component, cluster)
		if cluster {
			opts.DefaultNamespace = exampleNamespace
		}
		v.problems = append(v.problems, v.withDefaults(u, opts)...)
		return
	}

	namespaced, cluster := v.withDefaults(u, exampleOptions(u.component, false)), v.withDefaults(u, exampleOptions(u.component, true))
	if i := slices.IndexFunc(namespaced, outOfScope("kind")); i >= 0 {
		// Other problems of a Package do not matter here, nor do the default namespaces of a
		// ClusterPackage.
		p := u.result.At(violation.ReasonObjectScope, "spec.scopes").Because("Leave Namespaced out.", "%s is cluster-scoped, and a Package may only bring objects of its own namespace", namespaced[i].Object)
		if slices.ContainsFunc(cluster, outOfScope("metadata.namespace")) {
			cluster = append(slices.DeleteFunc(cluster, outOfScope("metadata.namespace")), p)
		}
		namespaced = append(slices.DeleteFunc(namespaced, func(p violation.Violation) bool { return !slices.Contains(cluster, p) }), p)
	}

	both := func(p violation.Violation) bool { return slices.Contains(namespaced, p) && slices.Contains(cluster, p) }
	if len(namespaced) > 0 && len(cluster) > 0 && !slices.ContainsFunc(namespaced, both) {
		v.problems = append(append(v.problems, namespaced...), cluster...)
		return
	}

	for kind, problems := range map[string]violation.Violations{"Package": namespaced, "ClusterPackage": cluster} {
		for _, p := range problems {
			if both(p) {
				v.problems = append(v.problems, p)
			} else {
				p.Details = "as a " + kind + ": " + p.Details
				v.warnings = append(v.warnings, p)
			}
		}
	}
}

// outOfScope matches violations of a scope at a field.
func outOfScope(field string) func(violation.Violation) bool {
	return func(p violation.Violation) bool { return p.Reason == violation.ReasonObjectScope && p.Field == field }
}

// withDefaults loads the package with the default configuration. If mandatory values have no
// default, the package cannot be rendered without a test case, which is a warning and not a problem
// of the package.
func (v *validator) withDefaults(u *unit, opts Options) violation.Violations {
	var problems violation.Violations
	var needs []string
	found, rendered := v.render(opts, "")
	for _, p := range found {
		switch {
		case p.Reason == violation.ReasonConfigInvalid:
			needs = append(needs, p.Field)
		case !u.result.Strict && needsContext(p, rendered):
			p.Details = "with the default configuration: " + p.Details
			v.warnings = append(v.warnings, p)
		default:
			problems = append(problems, p)
		}
	}

	unrendered := ""
	if len(needs) > 0 {
		unrendered = "these have no default: " + strings.Join(needs, ", ")
		w := u.result.At(violation.ReasonConfigInvalid, "spec.config.openAPIV3Schema")
		w.Component = u.component
		w.Details = "templates were not rendered, because " + unrendered
		w.Remedy = "Add a test case with a configuration under test.template."
		v.warnings = append(v.warnings, w)
	}

	if len(needs) == 0 && len(found) > 0 {
		unrendered = found[0].Details
	}
	if v.visit != nil && unrendered != "" && len(problems) == 0 {
		// As much as possible of the package is visited.
		opts.static = true
		if pkg, err := Load(v.ctx, v.files, opts); err == nil {
			v.visit(Case{Component: u.component, For: opts.Package, Package: pkg, Unrendered: unrendered})
		}
	}

	return problems
}

// needsContext reports whether a problem can be due to the default configuration: templates and
// expressions often fail without values that every real installation sets.
func needsContext(p violation.Violation, rendered bool) bool {
	switch p.Reason {
	case violation.ReasonLimit:
		return false
	case violation.ReasonFilterInvalid, violation.ReasonInvalidCELCondition:
		return strings.HasPrefix(p.Details, expression.EvaluationFailed)
	}
	return rendered && strings.HasSuffix(p.Path, render.Suffix)
}
