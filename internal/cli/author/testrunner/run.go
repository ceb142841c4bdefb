package testrunner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/schemacheck"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Options select the tests.
type Options struct {
	// Folder of the package with the fixtures; empty for an image.
	Folder string
	// Update writes fixtures.
	Update bool
	// IgnoreSchemas skips the checks of objects against schemas.
	IgnoreSchemas bool
}

// Outcome of a test case.
type Outcome string

// Outcomes.
const (
	Passed     Outcome = "passed"
	Failed     Outcome = "failed"
	NoFixtures Outcome = "no fixtures"
	// Updated means that the fixtures have changed.
	Updated Outcome = "updated"
)

// Case is the result of one test case.
type Case struct {
	Component string  `json:"component,omitempty"`
	Name      string  `json:"name"`
	Outcome   Outcome `json:"outcome"`
	// Fixtures is the folder, relative to the package.
	Fixtures string     `json:"fixtures"`
	Files    []FileDiff `json:"files,omitempty"`
}

// Result is the result of the tests of a package.
type Result struct {
	// Problems make the package invalid. Differences from fixtures are in Cases.
	Problems, Warnings violation.Violations
	// Cases that could be rendered.
	Cases []Case
	// Unchecked counts objects without a schema by kind.
	Unchecked map[string]int
}

// Run tests a package. The error means that the package cannot be tested.
func Run(ctx context.Context, files loader.Files, opts Options) (*Result, error) {
	r := &run{ctx: ctx, opts: opts, result: &Result{Unchecked: map[string]int{}}, sessions: map[string]*schemacheck.Session{}}
	warnings, err := loader.Inspect(ctx, files, func(of loader.Case) {
		if r.err == nil {
			r.err = errors.Join(r.schemas(of), r.fixtures(of))
		}
	})

	// An invalid package can have cases that were rendered, so its problems do not end the run.
	var wrong violation.Violations
	if err != nil && !errors.As(err, &wrong) {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}

	r.result.Problems = append(wrong, r.result.Problems...).Sorted()
	r.result.Warnings = append(warnings, r.result.Warnings...).Sorted()
	return r.result, nil
}

// run is one run of Run.
type run struct {
	ctx      context.Context
	opts     Options
	result   *Result
	err      error
	sessions map[string]*schemacheck.Session
}

// schemas checks the objects of a case. Doubts are problems if the manifest requests a check as
// strict as kubeconform's.
func (r *run) schemas(of loader.Case) error {
	if r.opts.IgnoreSchemas {
		return nil
	}
	settings := of.Package.Manifest.Test.Kubeconform
	session := r.sessions[of.Component]
	if session == nil {
		locations, err := r.locations(settings)
		if err != nil {
			return err
		}
		session = schemacheck.NewSession(locations)
		r.sessions[of.Component] = session
	}

	report, err := session.Check(r.ctx, of.Component, of.Package)
	if err != nil {
		return err
	}
	r.result.Problems = append(r.result.Problems, report.Problems...)
	if settings == nil {
		r.result.Warnings = append(r.result.Warnings, report.Doubts...)
		return nil
	}

	for _, doubt := range report.Doubts {
		doubt.Reason = violation.ReasonKubeconform
		r.result.Problems = append(r.result.Problems, doubt)
	}

	for kind, n := range report.Unchecked {
		r.result.Unchecked[kind] = max(n, r.result.Unchecked[kind])
	}

	return nil
}

// locations returns the further schemas of a manifest. An image has none, because its files are not
// on disk.
func (r *run) locations(settings *manifestsv1alpha1.PackageManifestTestKubeconform) (*schemacheck.Locations, error) {
	if settings == nil || len(settings.SchemaLocations) == 0 || r.opts.Folder == "" {
		return nil, nil
	}
	return schemacheck.NewLocations(settings.SchemaLocations, schemacheck.LocationOptions{
		Folder: r.opts.Folder, KubernetesVersion: settings.KubernetesVersion,
	})
}

// fixtures compares one case with its fixtures, or writes them.
func (r *run) fixtures(of loader.Case) error {
	if of.Name == "" || r.opts.Folder == "" {
		return nil
	}
	c := Case{Component: of.Component, Name: of.Name, Fixtures: folderOf(of.Component, of.Name), Outcome: Passed}
	// The name of a test case is a path here, and must not lead out of the folder.
	if !filepath.IsLocal(c.Fixtures) {
		return fmt.Errorf("%q is not a valid folder name", of.Name)
	}

	present, err := readFixtures(r.opts.Folder, c.Fixtures)
	if err != nil {
		return err
	}
	expected := expectedFixtures(of, present)
	c.Files = compare(c.Fixtures, present, expected)

	switch {
	case len(c.Files) == 0 && (present != nil || len(expected) == 0):
		// Version control cannot keep an empty folder.
	case r.opts.Update:
		if err := writeFixtures(r.opts.Folder, c.Fixtures, expected, present); err != nil {
			return err
		}
		c.Outcome = Updated
	case present == nil:
		c.Outcome, c.Files = NoFixtures, nil
	default:
		c.Outcome = Failed
	}

	r.result.Cases = append(r.result.Cases, c)
	return nil
}

// Mismatches returns the cases that differ from their fixtures as problems, and those
// without fixtures as warnings.
func (r *Result) Mismatches() (problems, warnings violation.Violations) {
	for _, c := range r.Cases {
		base := violation.Violation{Reason: violation.ReasonFixtureMismatch, Component: c.Component}
		switch c.Outcome {
		case NoFixtures:
			base.Details = fmt.Sprintf("the test case %q has no fixtures in %s", c.Name, c.Fixtures)
			base.Remedy = "Write them with `kubectl package test --update`."
			warnings = append(warnings, base)
		case Failed:
			for _, file := range c.Files {
				v := base
				// Paths of problems are relative to their component.
				v.Path = strings.TrimPrefix(c.Fixtures, "components/"+c.Component+"/") + "/" + file.Path
				v.Details = fmt.Sprintf("test case %q: %s", c.Name, file.Change)
				v.Remedy = "`kubectl package test` shows the difference, and --update accepts the new output."
				problems = append(problems, v)
			}
		}
	}

	return problems, warnings
}

// Validate tests a package. Test cases without fixtures are warnings.
func Validate(ctx context.Context, files loader.Files, opts Options) (content.Findings, error) {
	result, err := Run(ctx, files, opts)
	if err != nil {
		return content.Findings{}, err
	}
	mismatches, missing := result.Mismatches()
	return content.FindingsOf(append(result.Problems, mismatches...), append(result.Warnings, missing...)), nil
}
