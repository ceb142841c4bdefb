package manifest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/fuzzing"
	"lockstep.run/lockstep/test/require"
)

const fuzzHead = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: shop}\n"

// FuzzManifest checks that any manifest is either read, or refused with a reason that names a
// field. Reading it twice gives the same result, and it keeps its meaning when it is written again.
//
// Code: manifest.go, decode.go, validate.go, probes.go, constraint.go, dependency.go,
// dependencycheck.go
func FuzzManifest(f *testing.F) {
	for _, text := range fuzzing.Examples(f, "manifest.yaml") {
		f.Add(text)
	}

	for _, seed := range []string{
		"spec:\n  version: 1.2.3+b\n  provider: acme\n  scopes: [Cluster, Namespaced]\n  phases: [{name: a}, {name: b}]\n  images: [{name: i, image: nginx:1}]\n",
		"spec:\n  scopes: [Clustr]\n  phasse: []\n  phases: [{name: a, class: hosted-cluster}, {name: a}]\n  packageName: a.b.c\n",
		"spec:\n  phases: [{name: a}]\n  scopes: [Cluster]\n  availabilityProbes:\n  - selector: {kind: {group: apps, kind: Deployment}, selector: {matchLabels: {a: b}}}\n    probes:\n    - condition: {type: Available, status: True}\n    - fieldsEqual: {fieldA: .a, fieldB: '.b | length'}\n    - cel: {rule: self.a == 1, message: m}\n",
		"spec:\n  phases: [{name: a}]\n  scopes: [Cluster]\n  filter: {conditions: [{name: x, expression: 'true'}], paths: [{glob: '**/x', expression: cond.x}]}\n  constraints: [{platform: [OpenShift], platformVersion: {name: Kubernetes, range: '>=1 && <2'}}, {uniqueInScope: {}}]\n",
		"spec:\n  phases: [{name: a}]\n  scopes: [Cluster]\n  components: {}\n  repositories: [{file: x}, {image: y}]\n  dependencies: [{image: {name: a, package: b.c, range: '>1'}}]\n  config: {openAPIV3Schema: {type: object, properties: {a: {type: string, default: b}}}}\ntest:\n  template: [{name: one, context: {package: {metadata: {name: n}}, config: {a: b}}}]\n  kubeconform: {kubernetesVersion: v1.36.3}\n",
		"spec:\n  scopes: [Namespaced]\n  version: 1.0.0\n  packageName: a.b.c\n  dependencies:\n  - {name: db, package: {name: d.e.f, version: '>=1, <2 || 3.x', prereleases: {identifiers: [rc]}}}\n" +
			"  - {name: certs, optional: true, api: {apiVersion: cert-manager.io/v1, kind: Certificate, fieldPaths: [spec.a.b-c]}}\n  provides: [{apiVersion: g.h/v1, kind: X}]\n",
		"spec:\n  scopes: [Namespaced]\n  packageName: a.b.c\n  dependencies: [{name: A, package: {name: a.b.c, version: x}}, {name: A, api: {apiVersion: a/b/c, kind: '', fieldPaths: ['.']}}, {}]\n",
	} {
		f.Add(fuzzHead + seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16<<10 {
			return
		}
		files := archive.Files{"manifest.yaml": []byte(text)}
		first, problems := Read(files, "")
		checkRead(t, first, problems)
		again, problemsAgain := Read(files, "")
		if !reflect.DeepEqual(problems.Sorted(), problemsAgain.Sorted()) || (again == nil) != (first == nil) {
			t.Fatalf("%v, then %v", problems, problemsAgain)
		}
		if len(problems) > 0 {
			return
		}
		written, err := yaml.Marshal(first.Manifest)
		require.NoError(t, err)
		second, secondProblems := Read(archive.Files{"manifest.yaml": written}, "")
		if len(secondProblems) > 0 || !sameManifest(first.Manifest, second.Manifest) {
			t.Fatalf("written again as\n%s\nit is %v\n%s", written, secondProblems, cmp.Diff(first.Manifest, second.Manifest, cmpopts.EquateEmpty()))
		}
	})
}

func sameManifest(a, b *manifestsv1alpha1.PackageManifest) bool {
	return cmp.Equal(a, b, cmpopts.EquateEmpty())
}

func checkRead(t *testing.T, r *Result, problems violation.Violations) {
	t.Helper()
	fuzzing.CheckViolations(t, problems)
	if r == nil && len(problems) == 0 {
		t.Fatal("neither a manifest nor a problem")
	}
	if r != nil {
		fuzzing.CheckViolations(t, r.Warnings)
		if r.Manifest == nil {
			t.Fatal("a result without a manifest")
		}
	}
}

// FuzzLock checks that for any lock, templates see a reference by digest for each of the manifest's
// images, or there is a problem with a reason.
//
// Code: lock.go
func FuzzLock(f *testing.F) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	head := "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nmetadata: {creationTimestamp: \"2026-01-01T00:00:00Z\"}\n"
	f.Add(head+"spec:\n  images: [{name: web, image: nginx:1, digest: "+digest+"}]\n", "web", "nginx:1")
	f.Add(head+"spec:\n  images: [{name: web, image: nginx:2, digest: x}, {name: web, image: '', digest: ''}]\n", "db", "UPPER")
	f.Add(head+"spec:\n  dependencies: [{name: d, image: quay.io/a/b, digest: "+digest[7:]+", version: v1}]\n", "", "")
	f.Fuzz(func(t *testing.T, lock, imageName, image string) {
		if len(lock)+len(imageName)+len(image) > 8<<10 {
			return
		}
		m := manifestsv1alpha1.PackageManifest{}
		m.APIVersion, m.Kind, m.Name = manifestsv1alpha1.GroupVersion.String(), manifestsv1alpha1.KindPackageManifest, "shop"
		m.Spec.Scopes = []manifestsv1alpha1.PackageManifestScope{manifestsv1alpha1.PackageManifestScopeCluster}
		m.Spec.Phases = []manifestsv1alpha1.PackageManifestPhase{{Name: "a"}}
		if imageName != "" {
			m.Spec.Images = []manifestsv1alpha1.PackageManifestImage{{Name: imageName, Image: image}}
		}
		text, err := yaml.Marshal(m)
		if err != nil {
			return
		}
		r, problems := Read(archive.Files{"manifest.yaml": text, "manifest.lock.yml": []byte(lock)}, "")
		fuzzing.CheckViolations(t, problems)
		if r == nil || len(problems) > 0 {
			return
		}
		images, dependencies, problems := r.Images(nil)
		fuzzing.CheckViolations(t, problems)
		if len(problems) > 0 {
			return
		}
		for _, refs := range []map[string]string{images, dependencies} {
			for key, ref := range refs {
				if _, err := name.NewDigest(ref); err != nil {
					t.Fatalf("%q is %q: %v", key, ref, err)
				}
			}
		}
		if _, ok := images[imageName]; imageName != "" && !ok {
			t.Fatalf("%q is missing in %v", imageName, images)
		}
	})
}

// FuzzRange checks that a range of versions has the same meaning in every spelling, and never takes
// long.
//
// Code: constraint.go
func FuzzRange(f *testing.F) {
	for _, seed := range [][2]string{{">=1.29 && <2", "v1.36.3"}, {"!1.2.3", "1.2.3-rc.1"}, {"1.x || ^3 || ~2.1", "3.4.5+b"}, {"==1", "v1.29.4-gke.1"}, {"1 - 2", "x"}} {
		f.Add(seed[0], seed[1])
	}

	f.Fuzz(func(t *testing.T, text, version string) {
		if len(text)+len(version) > 1<<10 {
			return
		}
		pv := &manifestsv1alpha1.PackageManifestPlatformVersionConstraint{Name: manifestsv1alpha1.PlatformKubernetes, Range: text}
		details := unmetVersion(version, pv)
		if again := unmetVersion(version, pv); again != details {
			t.Fatalf("%q, then %q", details, again)
		}
		c, err := ParseRange(text)
		v, errVersion := semver.NewVersion(version)
		if err != nil || errVersion != nil {
			if details == "" {
				t.Fatalf("met, although %v, %v", err, errVersion)
			}
			return
		}
		if other, err := ParseRange(strings.ReplaceAll(text, ",", "&&")); err != nil || other.Check(v) != c.Check(v) {
			t.Fatalf("%q with && in place of commas: %v", text, err)
		}
	})
}
