package offers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
)

// Offered is one version of a package.
type Offered struct {
	Version corev1alpha1.AvailableVersion
	// Scope is that of the repository that offers it.
	Scope corev1alpha1.Scope
}

// Candidates returns the versions of the package name, each once: those of the namespace's own repositories, and those
// of cluster repositories that are visible and that no own repository offers. local is empty for a ClusterPackage. The
// specs may be in any order and of any packages; a nil visible represents all. The order is that of the specs' parts.
func Candidates(name string, local, cluster []corev1alpha1.AvailablePackageSpec, visible func(repository string) bool) []Offered {
	offered := []Offered{}
	for o := range Each(name, local, cluster, visible) {
		offered = append(offered, o)
	}
	return offered
}

// Each is Candidates one by one.
func Each(name string, local, cluster []corev1alpha1.AvailablePackageSpec, visible func(repository string) bool) iter.Seq[Offered] {
	return func(yield func(Offered) bool) {
		seen := map[string]bool{}
		for _, from := range []struct {
			specs []corev1alpha1.AvailablePackageSpec
			scope corev1alpha1.Scope
		}{{local, corev1alpha1.ScopeNamespaced}, {cluster, corev1alpha1.ScopeCluster}} {
			for _, spec := range parts(name, from.specs) {
				for i := range spec.Versions {
					version := &spec.Versions[i]
					hidden := from.scope == corev1alpha1.ScopeCluster && visible != nil && !visible(version.Repository)
					if seen[version.Version] || hidden {
						continue
					}
					seen[version.Version] = true
					if !yield(Offered{Version: *version, Scope: from.scope}) {
						return
					}
				}
			}
		}
	}
}

// Visible reports whether the repository of the cluster with this spec is for namespaces with these labels. A selector
// that cannot be read selects none.
func Visible(repository *corev1alpha1.PackageRepositorySpec, namespace labels.Set) bool {
	if repository.NamespaceSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(repository.NamespaceSelector)
	return err == nil && selector.Matches(namespace)
}

// Pending reports whether it is not known yet what a repository offers: it was never fetched, and will be.
func Pending(repository corev1alpha1.GenericPackageRepository) bool {
	status := repository.RepositoryStatus()
	if status.Artifact != nil || repository.RepositorySpec().Paused || repository.GetDeletionTimestamp() != nil {
		return false
	}
	c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionStalled)
	return c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != repository.GetGeneration()
}

// parts returns the specs of a package in the order of their parts.
func parts(name string, specs []corev1alpha1.AvailablePackageSpec) []*corev1alpha1.AvailablePackageSpec {
	found := []*corev1alpha1.AvailablePackageSpec{}
	for i := range specs {
		if specs[i].PackageName == name {
			found = append(found, &specs[i])
		}
	}
	slices.SortStableFunc(found, func(a, b *corev1alpha1.AvailablePackageSpec) int { return int(a.Part) - int(b.Part) })
	return found
}

// Source returns the kind and name of the repository that offers the version, such as PackageRepository/stable.
func (o Offered) Source() string {
	return o.Scope.Kind("PackageRepository") + "/" + o.Version.Repository
}

// Inline reports whether the content of the version is in its own files, not in an image.
func (o Offered) Inline() bool { return o.Version.Image == "" && len(o.Version.Files) > 0 }

// Candidate returns what a selection reads of the version.
func (o Offered) Candidate() versions.Candidate {
	return versions.Candidate{
		Version: o.Version.Version, Retracted: o.Version.Retracted, Constraints: o.Version.Constraints,
		NotInstallable: o.notInstallable(), Provides: o.Version.Provides,
	}
}

// notInstallable returns why the version cannot be installed at all; empty if it can.
func (o Offered) notInstallable() string {
	switch {
	case len(o.Version.NotCarriedOver) > 0:
		return "it asks for " + asked(o.Version.NotCarriedOver) + ", which packages do not have here: render it with the tools of kapp-controller, and make a package of the objects by kubectl package kickstart"
	case len(o.Version.Image) > limits.ReferenceBytes:
		return fmt.Sprintf("the reference of its image has %d bytes; the limit is %d", len(o.Version.Image), limits.ReferenceBytes)
	case o.Version.Image == "" && len(o.Version.Files) == 0:
		return "it has neither an image nor manifests"
	}
	return ""
}

// asked joins names, within what the reader of a repository keeps of them.
func asked(names []string) string {
	const most = 160 // bytes of one
	kept := make([]string, min(len(names), limits.NotCarriedOver+1))
	for i := range kept {
		kept[i] = strings.ToValidUTF8(names[i][:min(len(names[i]), most)], "")
	}
	return strings.Join(kept, ", ")
}

// FilesDigest returns a digest of paths and contents in the form of those of images.
func FilesDigest(files map[string]string) string {
	encoded, err := json.Marshal(files) // keys are sorted
	if err != nil {
		return "" // never, for strings
	}
	sum := sha256.Sum256(encoded)
	return "sha256:" + hex.EncodeToString(sum[:])
}
