package loader

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/config"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/expression"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/patch"
	"lockstep.run/lockstep/internal/loader/render"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/probes"
)

const loadTime = time.Minute // for one package; all other limits end it long before

// Load loads a package for one installation. The error is violation.Violations, or the cause of
// ctx.
func Load(ctx context.Context, files Files, opts Options) (*Package, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, loadTime, errLoadTime)
	defer cancel()
	// Problems of the manifest do not end the load. The rest of the package is checked as far as it
	// can be.
	l := &load{ctx: ctx, opts: &opts, unit: readUnit(files, opts.Component)}
	l.problems = l.unit.problems
	pkg := l.run()
	if cause := context.Cause(ctx); errors.Is(cause, errLoadTime) {
		return nil, violation.Violations{violation.Violation{Reason: violation.ReasonLimit, Component: l.unit.component}.
			Because("Split the package, or make its templates and expressions simpler.", "loading the package takes longer than %v", loadTime)}
	} else if cause != nil {
		return nil, fmt.Errorf("load the package: %w", cause)
	}

	// Sort first, so that only problems that are shown are searched for sensitive values.
	if problems := l.unit.mark(l.redact(l.problems.Sorted())); len(problems) > 0 {
		return nil, problems
	}

	pkg.Warnings = l.unit.mark(l.redact(l.warnings.Sorted()))
	return pkg, nil
}

// errLoadTime is the cause of the context if the loader's own time is over, to distinguish it from
// the caller's cancellation.
var errLoadTime = errors.New("loading takes too long")

// run takes the steps of a load in order. After a step that fails, it still reads the static files,
// so that one load reports as many problems as possible. The package is incomplete or nil if there
// are problems.
func (l *load) run() *Package {
	r := l.unit.result
	if r == nil {
		l.static()
		return nil
	}

	l.warnings = append(l.warnings, r.Warnings...)
	spec := &r.Manifest.Spec
	if env := l.opts.Environment; env != nil {
		// If the cluster does not meet the constraints, no template is rendered.
		unmet := append(r.Unmet(env, l.opts.ManagerVersion), l.notUnique()...)
		if len(unmet) > 0 {
			l.add(unmet...)
			return nil
		}
	}

	// A name that is valid for an object can have 253 characters.
	name := l.opts.Package.Metadata.Name
	if errs := validation.IsValidLabelValue(name); len(errs) > 0 {
		l.add(violation.Violation{Reason: violation.ReasonLabelsInvalid}.Because("Give the Package another name, of at most 63 characters.",
			"the name of the Package, %q, becomes the value of the label %s: %s", name, corev1alpha1.PackageLabel, errs[0]))
	}
	// Without the sensitive values, messages of the later steps could not be redacted.
	if !l.sensitiveValues() {
		return nil
	}

	l.scope()
	l.probes()
	patches := l.adjustments()
	if l.opts.static {
		out := l.newPackage(nil)
		out.Phases, out.Sources, _ = collect(l.static(), phasesOf(spec))
		return out
	}

	values, ok := l.config()
	if !ok {
		l.static()
		return nil
	}

	context, ok := l.context(values)
	if !ok {
		l.static()
		return nil
	}

	out := l.newPackage(values)
	objects := l.objects(context, patches)
	out.Provides = l.provided(objects)
	out.Images, out.OmittedImages = l.usedImages(objects)
	out.Phases, out.Sources, out.Sensitive = collect(objects, phasesOf(spec))
	if l.secrets.Empty() {
		out.Sensitive = nil
	}

	return out
}

// newPackage returns the package without its objects.
func (l *load) newPackage(values map[string]any) *Package {
	m := l.unit.result.Manifest
	return &Package{
		Name: l.unit.name, Manifest: m, Lock: l.unit.result.Lock, Config: values, Probes: m.Spec.AvailabilityProbes,
		Labels: wellKnownLabels(l.opts.Package.Metadata.Name, &m.Spec), CatalogName: cmp.Or(m.Spec.PackageName, l.unit.name),
		Dependencies: manifest.Dependencies(m.Spec.Dependencies), UniqueInScope: manifest.UniqueIn(m.Spec.Constraints, l.opts.scope()),
	}
}

// probes reports invalid probes of the manifest at their lines. The engine compiles them again for
// each revision.
func (l *load) probes() {
	_, err := probes.Compile(l.unit.result.Manifest.Spec.AvailabilityProbes)
	var all probes.Errors
	if !errors.As(err, &all) {
		return
	}
	for _, e := range all {
		l.add(l.unit.result.At(violation.ReasonProbeInvalid, "spec."+e.Path).Because(e.Remedy, "%s", e.Problem))
	}
}

// config admits the configuration against the schema of the manifest. ok is false if templates must
// not be rendered with it.
func (l *load) config() (values map[string]any, ok bool) {
	r := l.unit.result
	schemaPath := field.NewPath("spec", "config", "openAPIV3Schema")
	schema, errs := config.Compile(l.ctx, schemaPath, r.Manifest.Spec.Config.OpenAPIV3Schema)
	for _, e := range errs {
		l.add(r.At(violation.ReasonManifestInvalid, e.Field).Because("", "%s", e.ErrorBody()))
	}

	if len(errs) > 0 {
		return nil, false
	}

	values, unknown, broken, errs := schema.Admit(l.ctx, field.NewPath("spec", "config"), l.opts.Config)
	// Package Operator drops unknown keys silently, so a package that was written for it keeps
	// working.
	for _, u := range unknown {
		v := violation.Violation{Reason: violation.ReasonConfigInvalid, Field: u.Field, Details: "unknown key", Remedy: u.Remedy}
		if r.Strict {
			l.add(v)
			continue
		}
		v.Details += ", dropped"
		l.warnings = append(l.warnings, v)
	}

	// Package Operator does not evaluate rules.
	if r.Strict {
		errs = append(errs, broken...)
		broken = nil
	}

	for _, e := range errs {
		l.add(violation.Violation{Reason: violation.ReasonConfigInvalid, Field: e.Field, Details: l.errorBody(e)})
	}

	for _, e := range broken {
		l.warnings = append(l.warnings, violation.Violation{Reason: violation.ReasonConfigInvalid, Field: e.Field, Details: l.errorBody(e)})
	}

	l.configFailed = len(errs) > 0
	return values, !l.configFailed
}

// context returns the values that templates and expressions see. ok is false if an image is not in
// the lock.
func (l *load) context(values map[string]any) (map[string]any, bool) {
	images, dependencies, problems := l.images()
	l.add(problems...)
	l.locked = l.lockedImages(images)
	seen := cmp.Or(l.opts.seen, &l.opts.Package)
	env := cmp.Or(l.opts.Environment, l.opts.testEnvironment, &manifestsv1alpha1.PackageEnvironment{})
	out, err := render.Context(*seen, *env, values, images, dependencies)
	if err != nil {
		l.add(violation.Violation{Reason: violation.ReasonConfigInvalid, Details: err.Error()})
	}
	return out, err == nil && len(problems) == 0
}

// images returns the references of images and dependencies by their names in the manifest. With
// StaticImages, a package can be rendered before its lock exists.
func (l *load) images() (images, dependencies map[string]string, problems violation.Violations) {
	r := l.unit.result
	if !l.opts.StaticImages {
		return r.Images(l.opts.ImageOverride)
	}

	images, dependencies = map[string]string{}, map[string]string{}
	for _, img := range r.Manifest.Spec.Images {
		images[img.Name] = StaticImage
	}

	for _, d := range r.Manifest.Spec.Dependencies {
		if d.Image != nil {
			dependencies[d.Image.Name] = StaticImage
		}
	}

	if r.Lock != nil {
		for _, img := range r.Lock.Spec.Images {
			images[img.Name] = StaticImage
		}
		for _, d := range r.Lock.Spec.Dependencies {
			dependencies[d.Name] = StaticImage
		}
	}

	return images, dependencies, nil
}

// objects renders templates, reads all object files, and runs the checks that need several objects.
// It returns the objects in the order of files and documents.
func (l *load) objects(context map[string]any, patches *patch.Set) []*object {
	// Named conditions come first, because path rules, templates and annotations refer to them.
	evaluator, ok := l.conditions(expression.New(context))
	if !ok {
		l.static()
		return nil
	}

	r := l.unit.result
	out, problems := render.Render(l.ctx, render.Input{
		Files: l.unit.files, Context: context, Expressions: evaluator, Paths: r.Manifest.Spec.Filter.Paths, Strict: r.Strict,
		PathRule: func(i int) violation.Violation {
			return r.At(violation.ReasonFilterInvalid, fmt.Sprintf("spec.filter.paths[%d].expression", i))
		},
	})

	l.add(problems...)
	if out == nil {
		l.static()
		return nil
	}

	l.warnings = append(l.warnings, out.Warnings...)
	reader := l.reader(func(text string) (bool, error) { return evaluator.Bool(l.ctx, text) })
	reader.rendered, reader.patches, reader.secrets = out.Rendered, patches, l.secrets
	reader.locked, reader.rewritten = l.locked, l.rewritten
	read := reader.read(l.ctx, out.Files)
	l.add(read.problems...)
	l.warnings = append(l.warnings, read.warnings...)
	if l.opts.keep != nil {
		*l.opts.keep = *fixturesOf(out, read.left)
	}
	if len(read.problems) == 0 {
		// A patch or an entry that silently stops matching after an update would undo a change that
		// the user relies on. An object with a problem could be the one that it matches.
		unused := func(field, remedy string) {
			l.add(violation.Violation{Reason: violation.ReasonPatchInvalid, Field: field}.Because(remedy, "it matches no object of the package"))
		}
		for _, source := range patches.Unused() {
			unused(source, "Correct its target, or remove the patch.")
		}
		for _, f := range reader.ignored {
			if f.source != "" && !f.used.Load() {
				unused(f.source, "Correct its kind and name, or remove it.")
			}
		}
	}

	// This follows the reading of all files, since the scope of a kind can come from a definition
	// in any of them.
	l.defaultNamespaces(read.objects)
	if len(read.problems) == 0 {
		read.objects = append(read.objects, l.permissions(read.objects, reader.labels)...)
	}

	l.add(duplicates(read.objects, l.opts.scope(), l.opts.Package.Metadata.Namespace)...)
	l.add(exposedToAgents(read.objects)...)
	return read.objects
}

// fixturesOf splits the object files into rendered and static ones, without documents that
// conditions leave out.
func fixturesOf(out *render.Output, left map[string][]document.Span) *fixtures {
	f := &fixtures{Files{}, Files{}}
	for p, data := range out.Files {
		text := document.Without(data, left[p])
		switch {
		case len(bytes.TrimSpace(text)) == 0:
		case out.Rendered[p]:
			f.rendered[p] = text
		case isObjectFile(p):
			f.static[p] = text
		}
	}
	return f
}

// conditions evaluates the named conditions of the manifest. They cannot refer to each other.
func (l *load) conditions(e *expression.Evaluator) (*expression.Evaluator, bool) {
	values, ok := map[string]bool{}, true
	for i, c := range l.unit.result.Manifest.Spec.Filter.Conditions {
		value, err := e.Bool(l.ctx, c.Expression)
		if err != nil {
			l.add(l.unit.result.At(violation.ReasonFilterInvalid, fmt.Sprintf("spec.filter.conditions[%d].expression", i)).Because("", "%v", err))
			ok = false
		}
		values[c.Name] = value
	}
	return e.WithConditions(values), ok
}

// reader returns a reader of object files. condition is nil if templates are not rendered;
// condition annotations are then not evaluated.
func (l *load) reader(condition func(string) (bool, error)) *reader {
	r := &reader{opts: l.opts, condition: condition, ignored: l.ignoredEntries(), classes: map[string]string{}}
	name := l.opts.Package.Metadata.Name
	r.labels = map[string]string{corev1alpha1.PackageLabel: name, corev1alpha1.PackageInstanceLabel: name}
	if result := l.unit.result; result != nil {
		r.strict = result.Strict
		r.phases = []string{}
		unnamed := false
		for _, p := range result.Manifest.Spec.Phases {
			if unnamed = unnamed || p.Name == ""; p.Name != "" {
				r.phases = append(r.phases, p.Name)
				r.classes[p.Name] = cmp.Or(p.Class, r.classes[p.Name]) // a duplicate name is an error of the manifest
			}
		}
		spec := &result.Manifest.Spec
		lacking := len(spec.Phases) == 0 && len(manifest.Dependencies(spec.Dependencies)) == 0
		if lacking || unnamed && r.strict {
			r.phases = nil // it is an error of the manifest, and not of each object
		}
	}

	return r
}

// static reads files that are not templates, to report their problems at the same time.
func (l *load) static() []*object {
	read := l.reader(nil).read(l.ctx, l.unit.files)
	l.add(read.problems...)
	l.warnings = append(l.warnings, read.warnings...)
	return read.objects
}

// notUnique returns a violation for each other installation that uniqueInScope excludes. It refuses
// the package if the other installations are not known.
func (l *load) notUnique() violation.Violations {
	r := l.unit.result
	if !r.Unique() {
		return nil
	}
	if l.opts.Others == nil {
		return violation.Violations{r.At(violation.ReasonUnsupported, "spec.constraints").
			Because("", "uniqueInScope cannot be checked, because the other packages are not known here")}
	}
	meta := &l.opts.Package.Metadata
	return r.NotUnique(Other{Namespace: cmp.Or(l.opts.Namespace, meta.Namespace), Name: meta.Name}, l.opts.Others(l.unit.name))
}
