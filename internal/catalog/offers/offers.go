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
	// Scope is the scope of the repository that offers it.
	Scope corev1alpha1.Scope
}

// Candidates returns the versions of a package without duplicates: the versions of the namespace's
// own repositories, and the versions of visible cluster repositories that no own repository offers.
// local is empty for a ClusterPackage. The specs can be in any order and belong to any packages. A
// nil visible means all repositories. The result has the order of the specs' parts.
func Candidates(name string, local, cluster []corev1alpha1.AvailablePackageSpec, visible func(repository string) bool) []Offered {
	return slices.AppendSeq([]Offered{}, Each(name, local, cluster, visible))
}

// Each is Candidates as an iterator.
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
					// A version belongs to the first repository that offers it: the namespace's own
					// before cluster repositories.
					seen[version.Version] = true
					if !yield(Offered{Version: *version, Scope: from.scope}) {
						return
					}
				}
			}
		}
	}
}

// Visible reports whether a cluster repository with this spec is visible to namespaces with these
// labels. An invalid selector selects no namespace.
func Visible(repository *corev1alpha1.PackageRepositorySpec, namespace labels.Set) bool {
	if repository.NamespaceSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(repository.NamespaceSelector)
	return err == nil && selector.Matches(namespace)
}

// Pending reports whether the offers of a repository are not known yet, because it was never
// fetched but will be.
func Pending(repository corev1alpha1.GenericPackageRepository) bool {
	status := repository.RepositoryStatus()
	if status.Artifact != nil || repository.RepositorySpec().Paused || repository.GetDeletionTimestamp() != nil {
		return false
	}
	c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionStalled)
	return c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != repository.GetGeneration()
}

// parts returns the specs of a package, ordered by part.
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

// Source returns the kind and name of the repository that offers the version, such as
// PackageRepository/stable.
func (o Offered) Source() string {
	return o.Scope.Kind("PackageRepository") + "/" + o.Version.Repository
}

// Inline reports whether the version's own files have its content, instead of an image.
func (o Offered) Inline() bool { return o.Version.Image == "" && len(o.Version.Files) > 0 }

// Candidate returns the part of the version that a selection reads.
func (o Offered) Candidate() versions.Candidate {
	return versions.Candidate{
		Version: o.Version.Version, Retracted: o.Version.Retracted, Constraints: o.Version.Constraints,
		NotInstallable: o.notInstallable(), Scopes: o.Version.Scopes, Provides: o.Version.Provides,
	}
}

// notInstallable returns why the version can never be installed; empty if it can be.
func (o Offered) notInstallable() string {
	switch {
	case len(o.Version.NotCarriedOver) > 0:
		return "it requires " + asked(o.Version.NotCarriedOver) + ", which packages do not support here: render it with the tools of kapp-controller, and make a package of the objects with kubectl package kickstart"
	case len(o.Version.Image) > limits.ReferenceBytes:
		return fmt.Sprintf("the reference of its image has %d bytes; the limit is %d", len(o.Version.Image), limits.ReferenceBytes)
	case o.Version.Image == "" && len(o.Version.Files) == 0:
		return "it has neither an image nor manifests"
	}
	return ""
}

// asked joins names, within the limit for names read from a repository.
func asked(names []string) string {
	const most = 160 // bytes of one name
	kept := make([]string, min(len(names), limits.NotCarriedOver+1))
	for i := range kept {
		kept[i] = strings.ToValidUTF8(names[i][:min(len(names[i]), most)], "")
	}
	return strings.Join(kept, ", ")
}

// FilesDigest returns a digest of paths and contents in the form of an image digest.
func FilesDigest(files map[string]string) string {
	encoded, _ := json.Marshal(files) // texts can always be encoded; the keys are sorted
	sum := sha256.Sum256(encoded)
	return "sha256:" + hex.EncodeToString(sum[:])
}
