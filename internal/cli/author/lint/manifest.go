package lint

import (
	"slices"
	"strings"
	"unicode"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// noTests reports a manifest without test cases.
func noTests(c *oneCase, r reporter) {
	if len(c.manifest.Test.Template) == 0 {
		r.manifest("test.template", "Add a case, and run `kubectl package test --update`.", "there is no test case")
	}
}

// unknownRule reports names in the annotation that are not rules.
func unknownRule(c *oneCase, r reporter) {
	known := ruleNames()
	for _, name := range disabledRules(c.manifest) {
		if !slices.Contains(known, name) {
			r.manifest(document.Child("metadata.annotations", DisableAnnotation), violation.Suggest(name, known, "Remove it; docs/reference/lint-rules.md lists the rules."), "the rule %q does not exist", name)
		}
	}
}

// disabledRules returns the names in the manifest's annotation. They can be separated by commas or
// spaces.
func disabledRules(manifest *manifestsv1alpha1.PackageManifest) []string {
	return strings.FieldsFunc(manifest.Annotations[DisableAnnotation], func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// noVersion reports a manifest without a version.
func noVersion(c *oneCase, r reporter) {
	if c.manifest.Spec.Version == "" {
		r.manifest("spec.version", "Set a semantic version.", "the version is missing")
	}
}
