package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// manifestRules are about the manifest, and report in the first case.
var manifestRules = []Rule{
	{
		"no-tests", Warning,
		"The manifest has no test cases: nothing notices what a change of a template does.",
		once(noTests),
	},
	{
		"unknown-rule", Warning,
		"The manifest leaves out a rule that does not exist: a mistyped name, and what was meant is still reported.",
		once(unknownRule),
	},
	{
		"no-version", Warning,
		"The manifest states no version: unknown fields are dropped in clusters and not refused, and installations cannot be told apart.",
		once(noVersion),
	},
	{
		"no-display", Info,
		"The manifest lacks what a catalogue shows: a name, a short description, maintainers.",
		once(noDisplay),
	},
	{
		"undocumented-config", Info,
		"A configuration key has no description, which `kubectl package explain` would show.",
		once(undocumentedConfig),
	},
	{
		"unused-image", Info,
		"An image of the manifest is used by no template.",
		once(unusedImage),
	},
}

// once runs a rule for the first case of a component.
func once(check func(*oneCase, reporter)) func(*oneCase, reporter) {
	return func(c *oneCase, r reporter) {
		if c.first() {
			check(c, r)
		}
	}
}

func noTests(c *oneCase, r reporter) {
	if len(c.manifest.Test.Template) == 0 {
		r.manifest("test.template", "Add a case, and run `kubectl package test --update`.", "there is no test case")
	}
}

func unknownRule(c *oneCase, r reporter) {
	for _, name := range split(c.manifest.Annotations[DisableAnnotation]) {
		if !slices.Contains(r.known, name) {
			r.manifest(document.Child("metadata.annotations", DisableAnnotation), violation.Suggest(name, r.known, "Remove it; `kubectl package lint --rules` lists the rules."), "there is no rule %q", name)
		}
	}
}

func noVersion(c *oneCase, r reporter) {
	if c.manifest.Spec.Version == "" {
		r.manifest("spec.version", "State a semantic version.", "there is no version")
	}
}

func noDisplay(c *oneCase, r reporter) {
	if c.Component != "" {
		return // a catalogue shows the package
	}
	display := c.manifest.Spec.Display
	if display == nil {
		r.manifest("spec.display", "Add name, shortDescription and maintainers.", "there is none")
		return
	}
	var missing []string
	for _, field := range []struct {
		name  string
		there bool
	}{
		{"name", display.Name != ""},
		{"shortDescription", display.ShortDescription != ""},
		{"maintainers", len(display.Maintainers) > 0},
	} {
		if !field.there {
			missing = append(missing, field.name)
		}
	}
	if len(missing) > 0 {
		r.manifest("spec.display", "Add them.", "it has no %s", strings.Join(missing, ", "))
	}
}

func undocumentedConfig(c *oneCase, r reporter) {
	if schema := c.manifest.Spec.Config.OpenAPIV3Schema; schema != nil {
		walkConfig(schema, "", func(path string, props *apiextensionsv1.JSONSchemaProps) {
			if props.Description == "" {
				r.manifest("spec.config.openAPIV3Schema"+propertyPath(path), "Say what it does, and in what unit.", "the key %s has no description", path)
			}
		})
	}
}

// walkConfig visits the keys of a configuration, a mapping after what is in it.
func walkConfig(schema *apiextensionsv1.JSONSchemaProps, path string, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		props := schema.Properties[name]
		full := strings.TrimPrefix(path+"."+name, ".")
		if len(props.Properties) == 0 {
			visit(full, &props)
		}
		walkConfig(&props, full, visit)
	}
}

// propertyPath is where a key stands in the schema.
func propertyPath(path string) string {
	var b strings.Builder
	for name := range strings.SplitSeq(path, ".") {
		b.WriteString(".properties." + name)
	}
	return b.String()
}

func unusedImage(c *oneCase, r reporter) {
	for i, image := range c.manifest.Spec.Images {
		used := false
		for path, content := range c.files {
			used = used || strings.HasSuffix(path, ".gotmpl") && strings.Contains(string(content), image.Name)
		}
		if !used {
			r.manifest(fmt.Sprintf("spec.images[%d]", i), "Remove it, or write {{ .images."+image.Name+" }} where it belongs.", "no template names the image %q", image.Name)
		}
	}
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
