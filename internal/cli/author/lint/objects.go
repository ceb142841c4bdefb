package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// notRendered reports that templates were skipped.
func notRendered(c *oneCase, r reporter) {
	if c.Unrendered != "" {
		r.manifest("test.template", "Add a test case with a configuration.", "templates were not rendered, so the rules about their objects were not checked: %s", c.Unrendered)
	}
}

// finalizer reports objects that are created with finalizers.
func finalizer(c *oneCase, r reporter) {
	for _, o := range c.objects {
		if names := o.GetFinalizers(); len(names) > 0 {
			r.at(o, "metadata.finalizers", "Let the controller set it.", "its deletion waits for %s", strings.Join(names, ", "))
		}
	}
}

// expression matches a template expression that reads the data of a package. Others, such as {{
// $labels.x }} of alerts, are content.
var expression = regexp.MustCompile(`\{\{(?:[^}]*[\s(|-])?\.(?:config|package|images|environment)\b[^}]*\}\}`)

// templateInPlainFile reports the first expression in each file that is not a template.
func templateInPlainFile(c *oneCase, r reporter) {
	for _, p := range c.files.Paths() {
		if ext := path.Ext(p); ext != ".yaml" && ext != ".yml" || strings.HasPrefix(path.Base(p), "manifest.") {
			continue
		}
		for i, line := range strings.Split(string(c.files[p]), "\n") {
			if found := expression.FindString(line); found != "" {
				r.base.Path, r.base.Line = p, i+1
				r.manifest("", "Name the file "+p+".gotmpl.", "%s is installed literally", found)
				break
			}
		}
	}
}

// autoscalerKind is the kind of autoscalers by metrics.
var autoscalerKind = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}

// replicasAndAutoscaler reports workloads with replicas that an autoscaler of the package changes.
func replicasAndAutoscaler(c *oneCase, r reporter) {
	for _, scaler := range c.of(autoscalerKind) {
		target := fields.Map(scaler.Object, "spec", "scaleTargetRef")
		for _, o := range c.of(workloadKinds...) {
			same := o.kind.Kind == target["kind"] && o.GetName() == target["name"] && c.namespaceOf(o) == c.namespaceOf(scaler)
			// The annotation also has the fields that the manifest ignores.
			ignored := slices.Contains(strings.Fields(o.GetAnnotations()[corev1alpha1.IgnoredFieldsAnnotation]), "/spec/replicas")
			if same && fields.Get(o.Object, "spec", "replicas") != nil && !ignored {
				r.at(o, "spec.replicas", "Leave it out, or name it under spec.ignoredFields.", "HorizontalPodAutoscaler %s changes it", scaler.GetName())
			}
		}
	}
}

// exactInteger is the largest integer that every reader of JSON keeps.
const exactInteger = 1 << 53 // up to this, JSON readers that use floating point keep all digits

// inExponents matches large numbers as templates print them.
var inExponents = regexp.MustCompile(`\b\d(\.\d+)?e\+\d\d\b`)

// numberAsFloat reports numbers that lose digits, and texts that a template has printed as floating
// point.
func numberAsFloat(c *oneCase, r reporter) {
	for _, o := range c.objects {
		wrongNumbers("", o.Object, func(field, problem string) {
			r.at(o, field, "Print it with int64 in the template, or write it as text.", "%s", problem)
		})
	}
}

// wrongNumbers calls report for each such number below a field.
func wrongNumbers(field string, v any, report func(field, problem string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range fields.Keys(v) {
			wrongNumbers(document.Child(field, key), v[key], report)
		}
	case []any:
		for i, item := range v {
			wrongNumbers(document.Index(field, i), item, report)
		}
	case int64:
		if v > exactInteger || v < -exactInteger {
			report(field, fmt.Sprintf("%d is above 2^53, so some readers of JSON lose digits", v))
		}
	case string:
		// A long text, such as a script or a certificate, can have such a number for other reasons.
		if found := inExponents.FindString(v); found != "" && len(v) < 4096 {
			report(field, fmt.Sprintf("%s is how a template prints a large number", found))
		}
	}
}

// noTests reports a manifest without test cases.
func noTests(c *oneCase, r reporter) {
	if len(c.manifest.Test.Template) == 0 {
		r.manifest("test.template", "Add a case, and run `kubectl package test --update`.", "the manifest has no test cases")
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

// keepData reports all objects that are lost along with the package in one finding, at the first of
// them.
func keepData(c *oneCase, r reporter) {
	var kinds, claims []string
	var first *object
	for _, o := range c.of(crdKind, claimKind) {
		if o.annotated(corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep) {
			continue
		}
		if first == nil {
			first = o
		}
		if o.is(crdKind) {
			kinds = append(kinds, fields.Text(o.Object, "spec", "names", "kind"))
		} else {
			claims = append(claims, o.GetName())
		}
	}

	if first == nil {
		return
	}
	var lost []string
	if len(kinds) > 0 {
		lost = append(lost, "every "+violation.Listed(kinds)+" in the cluster")
	}

	if len(claims) > 0 {
		lost = append(lost, "the data in "+violation.Listed(claims))
	}
	r.at(first, "metadata.annotations", "Annotate the objects to keep with "+corev1alpha1.DeletionPolicyAnnotation+": "+corev1alpha1.DeletionPolicyKeep+", or disable the rule if the deletion is intended.",
		"deleting the package deletes %s", strings.Join(lost, ", and "))
}

// imageRule returns a rule about images without a digest: with the tag latest or without a tag, or
// with any other tag.
func imageRule(latest bool) func(*oneCase, reporter) {
	const remedy = "List it under spec.images of the manifest, run `kubectl package update`, and write {{ .images.NAME }} in a template."
	return func(c *oneCase, r reporter) {
		for _, o := range c.of(kindsWithPods...) {
			fields.Containers(o.Object, func(path, _ string, container map[string]any) {
				image := fields.Text(container, "image")
				if image != "" && !strings.Contains(image, "@") && image != loader.StaticImage && hasLatestTag(image) == latest && !c.configured(image) {
					r.at(o, fmt.Sprintf("%s[name=%q].image", path, fields.Text(container, "name")), remedy, "%s", image)
				}
			})
		}
	}
}

// configured reports whether an image is a value of the configuration. Test cases and defaults only
// stand in for the image that each installation names.
func (c *oneCase) configured(image string) bool {
	values, err := json.Marshal(c.Package.Config)
	return err == nil && bytes.Contains(values, strconv.AppendQuote(nil, image))
}

// hasLatestTag reports whether a reference has the tag latest or none. A colon before the last
// slash belongs to the port.
func hasLatestTag(image string) bool {
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag == "" || tag == "latest"
}

// secretInImage reports plain files with values of Secrets, one finding for each field.
func secretInImage(c *oneCase, r reporter) {
	for _, o := range c.of(secretKind) {
		if strings.HasSuffix(o.source.Path, ".gotmpl") {
			continue // the values might come from the configuration
		}
		for _, field := range []string{"data", "stringData"} {
			for _, key := range fields.Keys(fields.Map(o.Object, field)) {
				if fields.Text(o.Object, field, key) != "" {
					r.at(o, field, "Read the value from a Secret of the cluster, with spec.configFrom of the Package.", "it has a value for %q", key)
					break
				}
			}
		}
	}
}
