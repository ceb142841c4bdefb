package render

import (
	"context"
	"errors"
	"fmt"
	"strings"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
)

// objectTemplate is the file name of a template without a package.
const objectTemplate = "template" + Suffix

// ofPackages are the functions that a template without a package lacks.
var ofPackages = []string{"getFile", "getFileGlob", "cel"}

// ObjectError is why a template without a package cannot be parsed or executed. Its text can quote
// values.
type ObjectError struct {
	// Line is the line of the template, counted from 1; 0 if unknown.
	Line            int
	Details, Remedy string
}

// Error returns line, details and remedy.
func (e *ObjectError) Error() string {
	text := e.Details
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, e.Details)
	}
	if e.Remedy != "" {
		text = strings.TrimSuffix(text, ".") + ". " + e.Remedy
	}
	return text
}

// Object executes a template without a package, on .config and .environment. It has the functions
// of packages, except those for files and expressions. Its error is an *ObjectError.
func Object(ctx context.Context, text string, config map[string]any, env manifestsv1alpha1.PackageEnvironment) ([]byte, error) {
	values, err := jsonValues(map[string]any{"config": config, "environment": env})
	if err != nil {
		return nil, &ObjectError{Details: err.Error()}
	}

	ctx, cancel := context.WithTimeoutCause(ctx, limits.ObjectTemplateTime, errRenderTime)
	defer cancel()
	r := &renderer{
		ctx: ctx, in: Input{Files: archive.Files{objectTemplate: []byte(text)}, Context: values.(map[string]any)}, alone: true,
		sources: map[string]bool{}, rendered: map[string][]byte{}, running: map[string]bool{}, unset: map[uintptr]map[string]any{},
	}

	if r.parse(); len(r.problems) > 0 {
		p := r.problems[0]
		return nil, objectError(p.Line, p.Details, p.Remedy)
	}

	data, err := r.file(objectTemplate)
	if err == nil && len(data) > limits.ObjectTemplateBytes {
		err = limitf("the output has more than %d bytes", limits.ObjectTemplateBytes)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, errRenderTime) {
		return nil, cause
	}
	if err != nil {
		p := r.problem(objectTemplate, err)
		return nil, objectError(p.Line, p.Details, p.Remedy)
	}

	return data, nil
}

// objectError rewords a problem for a template that belongs to no package.
func objectError(line int, details, remedy string) *ObjectError {
	details = strings.ReplaceAll(details, "the templates of the package", "the template")
	details = strings.ReplaceAll(details, objectTemplate, "the template")
	return &ObjectError{Line: line, Details: details, Remedy: remedy}
}
