package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
)

func TestParseRange(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, version string
		want          bool
	}{
		{">=1.29 && <2", "1.30.0", true}, {">=1.29 && <2", "2.0.0", false}, {"==1.2.3", "1.2.3", true}, {"!1.2.3", "1.2.3", false},
		{"!=1.2.3", "1.2.4", true}, {">=1, !1.5.0", "1.5.0", false}, {"1.x || 3.x", "3.4.5", true},
	} {
		c, err := ParseRange(test.text)
		if err != nil || c.Check(semver.MustParse(test.version)) != test.want {
			t.Errorf("%s on %s: %v", test.text, test.version, err)
		}
	}

	for _, bad := range []string{"", "abc", strings.Repeat(">1,", 10_000)} {
		if _, err := ParseRange(bad); err == nil && bad != "" {
			t.Errorf("%.20s is accepted", bad)
		}
	}
}

func TestPinned(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("a", 64)
	for _, test := range []struct{ image, digest, want string }{
		{"nginx:1.2", "sha256:" + hex, "index.docker.io/library/nginx@sha256:" + hex},
		{"quay.io/x/y", hex, "quay.io/x/y@sha256:" + hex},
		{"quay.io/x/y@sha256:" + strings.Repeat("b", 64), "sha256:" + hex, "quay.io/x/y@sha256:" + hex},
		{"UPPER", "sha256:" + hex, ""}, {"nginx", "x", ""},
	} {
		if got, err := pinned(test.image, test.digest); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v", test.image, got, err)
		}
	}
}

// A text that is longer than a name is valid if a name is not required.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	image := "registry.example.com/" + strings.Repeat("team/", 20) + "app:v1.2.3@sha256:" + strings.Repeat("a", 64)
	image = strings.Replace(image, "team/", strings.Repeat("t", 90)+"/", 1)
	wide := strings.Repeat(">=1.0.0 || ", 40) + ">=1.0.0"
	for _, test := range []struct{ reason, spec, want string }{
		{"a long reference", "images: [{name: a, image: " + image + "}]", "Missing image in manifest.lock.yaml"},
		{"a reference that is too long", "images: [{name: a, image: registry.example.com/" + strings.Repeat("t/", 600) + "a}]", "is not a valid image reference"},
		{"no reference", "images: [{name: a}]", "spec.images[0].image: Required value"},
		{"a long range", "dependencies: [{image: {name: a, package: a.b, range: '" + wide + "'}}]", ""},
		{"no range", "dependencies: [{image: {name: a, package: a.b}}]", "spec.dependencies[0].image.range: Required value"},
	} {
		text := "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: shop}\nspec:\n  version: 1.0.0\n  scopes: [Cluster]\n  phases: [{name: a}]\n  " + test.spec + "\n"
		_, problems := Read(archive.Files{"manifest.yaml": []byte(text)}, "")
		switch {
		case test.want == "" && len(problems) > 0, test.want != "" && !strings.Contains(problems.Error(), test.want):
			t.Errorf("%s: %v", test.reason, problems)
		}
		if test.reason == "a long reference" && len(problems) != 1 {
			t.Errorf("%s: %v", test.reason, problems)
		}
	}
}

// A misspelt required field is not reported as missing as well. If Package Operator drops the field,
// it is missing, and both are reported.
func TestMisspeltFields(t *testing.T) {
	t.Parallel()
	const name = "metadata: {name: shop}"
	for _, test := range []struct{ metadata, spec, field, remedy string }{
		{name, "{version: 1.0.0, scopes: [Cluster], phasse: [{name: a}]}", "spec.phasse", `Did you mean "phases"?`},
		{name, "{version: 1.0.0, scopess: [Cluster], phases: [{name: a}]}", "spec.scopess", `Did you mean "scopes"?`},
		{name, "{version: 1.0.0, scopes: [Cluster], phases: [{nam: a}]}", "spec.phases[0].nam", `Did you mean "name"?`},
		{"metdata: {name: shop}", "{version: 1.0.0, scopes: [Cluster], phases: [{name: a}]}", "metdata", `Did you mean "metadata"?`},
		{name, "{version: 1.0.0, scopes: [Cluster]}", "spec.phases", "List at least one phase."},
	} {
		text := "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\n" + test.metadata + "\n"
		if test.spec != "" {
			text += "spec: " + test.spec + "\n"
		}
		_, problems := Read(archive.Files{"manifest.yaml": []byte(text)}, "")
		if len(problems) != 1 || problems[0].Field != test.field || problems[0].Remedy != test.remedy {
			t.Errorf("%s, %s: %v", test.metadata, test.spec, problems)
		}
		r, problems := Read(archive.Files{"manifest.yaml": []byte(strings.Replace(text, "version: 1.0.0, ", "", 1))}, "")
		if found := append(problems, r.Warnings...).Error(); !strings.Contains(found, test.field+": ") {
			t.Errorf("without a version: %s, %s: %s", test.metadata, test.spec, found)
		}
	}
}

// A null entry of a list of structs would decode to an empty struct.
func TestEmptyEntries(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: shop}\nspec:\n  version: 1.0.0\n  scopes: [Cluster]\n  phases: [{name: a}]\n"
	for more, field := range map[string]string{
		"  constraints: [null]\n":  "spec.constraints[0]",
		"  dependencies: [null]\n": "spec.dependencies[0]",
		"  config: {openAPIV3Schema: {properties: {a: {nullable: true, enum: [null]}}}}\n": "",
	} {
		_, problems := Read(archive.Files{"manifest.yaml": []byte(head + more)}, "")
		found := strings.Contains(problems.Error(), "the entry is empty")
		if found != (field != "") || found && (len(problems) != 1 || problems[0].Field != field) {
			t.Errorf("%s: %v", more, problems)
		}
	}
}

// Finding the line of a field takes longer the more fields there are. Problems beyond the number
// that is shown are not recorded.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: shop}\nspec: {version: 1.0.0, scopes: [Cluster], phases: [{name: a}]}\n"
	var unknown strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&unknown, "f%d: 1\n", i)
	}

	_, problems := Read(archive.Files{"manifest.yaml": []byte(head + unknown.String())}, "")
	if n := len(problems); n == 0 || n > limits.Violations+2 {
		t.Errorf("%d problems", n)
	}
}
