package lint

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

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
			r.manifest(document.Child("metadata.annotations", DisableAnnotation), violation.Suggest(name, known, "Remove it; `kubectl package lint --rules` lists the rules."), "there is no rule %q", name)
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
		r.manifest("spec.version", "Set a semantic version.", "there is no version")
	}
}

// noDisplay reports the missing fields that a catalogue shows.
func noDisplay(c *oneCase, r reporter) {
	if c.Component != "" || c.manifest.Spec.Version == "" {
		return // a catalogue shows the package, if it has a version
	}
	display := c.manifest.Spec.Display
	if display == nil {
		r.manifest("spec.display", "Add name, shortDescription and maintainers.", "it is missing")
		return
	}

	var missing []string
	if display.Name == "" {
		missing = append(missing, "name")
	}
	if display.ShortDescription == "" {
		missing = append(missing, "shortDescription")
	}

	if len(display.Maintainers) == 0 {
		missing = append(missing, "maintainers")
	}
	if len(missing) > 0 {
		r.manifest("spec.display", "Add them.", "it has no %s", strings.Join(missing, ", "))
	}
}

// undocumentedConfig reports keys of the configuration without a description.
func undocumentedConfig(c *oneCase, r reporter) {
	if schema := c.manifest.Spec.Config.OpenAPIV3Schema; schema != nil {
		undocumentedKeys(schema.Properties, "", r)
	}
}

// undocumentedKeys reports keys below a parent. Only keys without further keys need a description.
func undocumentedKeys(properties map[string]apiextensionsv1.JSONSchemaProps, parent string, r reporter) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		props, path := properties[name], parent+"."+name
		undocumentedKeys(props.Properties, path, r)
		if len(props.Properties) == 0 && props.Description == "" {
			r.manifest("spec.config.openAPIV3Schema"+strings.ReplaceAll(path, ".", ".properties."), "Describe its effect and its unit.", "the key %s has no description", path[1:])
		}
	}
}

// unusedImage reports images of the manifest that no template names. The name as a text suffices,
// because templates can compute the key.
func unusedImage(c *oneCase, r reporter) {
	for i, image := range c.manifest.Spec.Images {
		used := slices.ContainsFunc(c.files.Paths(), func(path string) bool {
			return strings.HasSuffix(path, ".gotmpl") && bytes.Contains(c.files[path], []byte(image.Name))
		})
		if !used {
			r.manifest(fmt.Sprintf("spec.images[%d]", i), "Remove it, or write {{ .images."+image.Name+" }} in a template.", "no template names the image %q", image.Name)
		}
	}
}
