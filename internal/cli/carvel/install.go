package carvel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Annotations of PackageInstalls that change the installation.
const (
	downgradable     = "packaging.carvel.dev/downgradable"
	ignoreKubernetes = "packaging.carvel.dev/ignore-kubernetes-version-selection"
	extension        = "ext.packaging.carvel.dev/"
	yttPaths         = extension + "ytt-paths-from-secret-name"
	yttOverlays      = extension + "ytt-data-values-overlays"
	helmValues       = extension + "helm-template-values-from-secret-name"
	fetchPrefix      = extension + "fetch-"
	secretName       = "-secret-name"
)

// installSpec is the spec of a PackageInstall.
type installSpec struct {
	PackageRef         packageRef                    `json:"packageRef"`
	ServiceAccountName string                        `json:"serviceAccountName"`
	Cluster            *corev1alpha1.TargetReference `json:"cluster"`
	Values             []values                      `json:"values"`
	SyncPeriod         *metav1.Duration              `json:"syncPeriod"`
	NoopDelete         bool                          `json:"noopDelete"`
	DefaultNamespace   string                        `json:"defaultNamespace"`
	Paused             bool                          `json:"paused"`
	Canceled           bool                          `json:"canceled"`
	Dependencies       *dependencies                 `json:"dependencies"`
}

// packageRef names a package and its versions.
type packageRef struct {
	RefName          string    `json:"refName"`
	VersionSelection selection `json:"versionSelection"`
}

// values are the keys of a Secret, for the package or for one of its dependencies. The key has no
// effect: all keys count.
type values struct {
	Name      string `json:"name"`
	SecretRef struct {
		Name string `json:"name"`
		Key  string `json:"key"`
	} `json:"secretRef"`
}

// dependencies have the versions and values that replace the author's.
type dependencies struct {
	ManagedBy string `json:"managedBy"`
	Override  []struct {
		Name       string     `json:"name"`
		PackageRef packageRef `json:"packageRef"`
	} `json:"override"`
	Values []values `json:"values"`
}

// install turns a PackageInstall into a Package, which is paused if it would be installed
// differently.
func (i *item) install() {
	from, namespace := installSpec{}, i.doc.GetNamespace()
	if !i.read(&from) {
		return
	}
	to := corev1alpha1.PackageSpec{
		PackageRef: &corev1alpha1.PackageReference{
			Name: from.PackageRef.RefName, VersionSelection: i.selection("spec.packageRef.versionSelection", from.PackageRef.VersionSelection),
		},
		ServiceAccountName: from.ServiceAccountName, TargetRef: from.Cluster, Interval: i.interval(from.SyncPeriod, time.Minute),
		Paused: from.Paused || from.Canceled, Dependencies: i.dependencies(from.Dependencies),
	}
	if from.NoopDelete {
		to.DeletionPolicy = corev1alpha1.DeletionPolicyOrphan
	}
	if from.Cluster != nil && from.ServiceAccountName != "" {
		to.TargetRef = nil
		i.lost("spec.cluster", "it had no effect next to spec.serviceAccountName")
	}
	if from.DefaultNamespace != "" && from.DefaultNamespace != namespace {
		i.missing("spec.defaultNamespace", "the objects of a Package are in its own namespace: install it in %s, or as a ClusterPackage with spec.defaultNamespace", from.DefaultNamespace)
	}

	handled := i.annotations(&to)
	for n, v := range from.Values {
		to.ConfigFrom = append(to.ConfigFrom, i.secret(fmt.Sprintf("spec.values[%d]", n), v.SecretRef.Name)...)
	}
	if i.different && !to.Paused {
		to.Paused = true
		i.lost("", "spec.paused is set, because the installed objects would lack something: add it, then run kubectl package unpause %s", i.doc.GetName())
	}
	i.emit("Package", i.metadata(namespace, handled), &to)
}

// annotations carries over the annotations that change the installed objects, and returns them.
func (i *item) annotations(to *corev1alpha1.PackageSpec) map[string]bool {
	all, handled := i.doc.GetAnnotations(), map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		field := "annotation " + name
		switch {
		case name == downgradable:
			to.DowngradePolicy = corev1alpha1.DowngradePolicyAllow
		case name == yttPaths, strings.HasPrefix(name, yttPaths+"."):
			i.missing(field, "overlays of ytt are not run: write their changes as spec.patches")
		case name == yttOverlays:
			i.missing(field, "values that are overlays of ytt are not run: write them as plain values")
		case name == helmValues, strings.HasPrefix(name, helmValues+"."):
			to.ConfigFrom = append(to.ConfigFrom, i.secret(field, all[name])...)
		case strings.HasPrefix(name, extension+"helm-template-"):
			i.missing(field, "a package is not a release of Helm: its objects have the names that the package gives them")
		case strings.HasPrefix(name, fetchPrefix) && strings.HasSuffix(name, secretName):
			to.ImagePullSecrets = append(to.ImagePullSecrets, corev1alpha1.LocalSecretReference{Name: all[name]})
		default:
			continue
		}

		handled[name] = true
	}

	return handled
}

// dependencies carries over who installs them, and the versions and values that replace the
// author's.
func (i *item) dependencies(from *dependencies) *corev1alpha1.PackageDependencies {
	if from == nil {
		return nil
	}
	to := &corev1alpha1.PackageDependencies{Management: corev1alpha1.DependencyManagement(from.ManagedBy)}
	override := func(name string) *corev1alpha1.DependencyOverride {
		at := slices.IndexFunc(to.Overrides, func(o corev1alpha1.DependencyOverride) bool { return o.Name == name })
		if at < 0 {
			at, to.Overrides = len(to.Overrides), append(to.Overrides, corev1alpha1.DependencyOverride{Name: name})
		}
		return &to.Overrides[at]
	}

	for _, o := range from.Override {
		override(o.Name).Package = &corev1alpha1.DependencyPackageOverride{
			Name: o.PackageRef.RefName, VersionSelection: i.selection("spec.dependencies.override of "+o.Name, o.PackageRef.VersionSelection),
		}
	}
	for _, v := range from.Values {
		if sources := i.secret("spec.dependencies.values of "+v.Name, v.SecretRef.Name); len(sources) > 0 {
			override(v.Name).ConfigFrom = sources
		}
	}

	return to
}

// secret returns a source for each key of a Secret, in alphabetical order. The keys have to be in
// the input, because configFrom names each of them.
func (i *item) secret(field, name string) (sources []corev1alpha1.ValueSource) {
	keys, known := i.secrets[key(i.doc.GetNamespace(), name)]
	if !known {
		keys, known = i.secrets[key("", name)]
	}

	switch {
	case name == "":
		i.missing(field, "it names no Secret")
	case !known:
		i.missing(field, "Secret %s is not in the input, so its keys are not known: add it to the input, or add an entry to configFrom for each of its keys", name)
	}
	if id := key(i.doc.GetNamespace(), name); len(keys) > 0 && !i.noted[id] {
		i.noted[id] = true
		i.lost(field, "the values of Secret %s get sensitive: false, because any object can contain values of kapp-controller, and revisions and plans show them: remove it if only Secrets contain them", name)
	}
	for _, k := range keys {
		// A value of kapp-controller could be rendered into any object.
		sources = append(sources, corev1alpha1.ValueSource{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: name, Key: k, Sensitive: ptr.To(false)}})
	}
	return sources
}
