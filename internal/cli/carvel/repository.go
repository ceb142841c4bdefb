package carvel

import (
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// repositorySpec is the spec of a PackageRepository.
type repositorySpec struct {
	SyncPeriod *metav1.Duration `json:"syncPeriod"`
	Paused     bool             `json:"paused"`
	Fetch      fetch            `json:"fetch"`
}

// fetch has the sources. kapp-controller uses the first one.
type fetch struct {
	Inline       *inlineFetch                       `json:"inline"`
	Image        *imageFetch                        `json:"image"`
	HTTP         *corev1alpha1.RepositoryHTTPSource `json:"http"`
	Git          *gitFetch                          `json:"git"`
	ImgpkgBundle *imageFetch                        `json:"imgpkgBundle"`
}

// imageFetch is an image, or a bundle of imgpkg.
type imageFetch struct {
	URL          string                             `json:"url"`
	Image        string                             `json:"image"`
	SubPath      string                             `json:"subPath"`
	SecretRef    *corev1alpha1.LocalSecretReference `json:"secretRef"`
	TagSelection *tagSelection                      `json:"tagSelection"`
}

// gitFetch is a git repository.
type gitFetch struct {
	URL          string                             `json:"url"`
	Ref          string                             `json:"ref"`
	SubPath      string                             `json:"subPath"`
	SecretRef    *corev1alpha1.LocalSecretReference `json:"secretRef"`
	RefSelection *tagSelection                      `json:"refSelection"`
}

// inlineFetch are files within the object.
type inlineFetch struct {
	Paths     map[string]string                    `json:"paths"`
	PathsFrom []corev1alpha1.RepositoryFilesSource `json:"pathsFrom"`
}

// tagSelection is the choice among tags.
type tagSelection struct {
	Semver selection `json:"semver"`
}

// repository turns a repository into a PackageRepository, or into a ClusterPackageRepository if it
// is in the global namespace.
func (i *item) repository() {
	kind, namespace, from := "PackageRepository", i.doc.GetNamespace(), repositorySpec{}
	if !i.read(&from) {
		return
	}
	if namespace == i.global {
		kind, namespace = "ClusterPackageRepository", ""
		i.lost("metadata.namespace", "it becomes a ClusterPackageRepository, whose Secrets have to be in the manager's namespace")
	}
	source := i.source(from.Fetch)
	if source == (corev1alpha1.RepositorySource{}) {
		i.lost("spec.fetch", "it has no supported source, so this repository was left out")
		return
	}
	i.emit(kind, i.metadata(namespace, nil), &corev1alpha1.PackageRepositorySpec{Source: source, Interval: i.interval(from.SyncPeriod, 30*time.Second), Paused: from.Paused})
}

// source takes the first kind that is set, as kapp-controller does.
func (i *item) source(from fetch) (to corev1alpha1.RepositorySource) {
	switch {
	case from.Inline != nil:
		to.Inline = &corev1alpha1.RepositoryInlineSource{Files: from.Inline.Paths, FilesFrom: from.Inline.PathsFrom}
	case from.Image != nil:
		to.Image = i.image("spec.fetch.image", from.Image, from.Image.URL)
	case from.HTTP != nil:
		to.HTTP = from.HTTP
		to.HTTP.URL, to.HTTP.SHA256 = i.address("spec.fetch.http.url", to.HTTP.URL), strings.ToLower(to.HTTP.SHA256)
	case from.Git != nil:
		git := from.Git
		to.Git = &corev1alpha1.RepositoryGitSource{
			URL: i.address("spec.fetch.git.url", git.URL), Ref: git.Ref, SubPath: git.SubPath, SecretRef: git.SecretRef,
			TagSelection: i.tags("spec.fetch.git.refSelection", git.RefSelection),
		}
	case from.ImgpkgBundle != nil:
		to.Image = i.image("spec.fetch.imgpkgBundle", from.ImgpkgBundle, from.ImgpkgBundle.Image)
	}

	return to
}

// image converts an image or a bundle of imgpkg.
func (i *item) image(field string, from *imageFetch, ref string) *corev1alpha1.RepositoryImageSource {
	to := &corev1alpha1.RepositoryImageSource{Ref: ref, SubPath: from.SubPath, TagSelection: i.tags(field+".tagSelection", from.TagSelection)}
	if from.SecretRef != nil {
		to.ImagePullSecrets = []corev1alpha1.LocalSecretReference{*from.SecretRef}
	}
	return to
}

// tags carries over the choice among tags.
func (i *item) tags(field string, from *tagSelection) *corev1alpha1.VersionSelection {
	if from == nil {
		return nil
	}
	to := i.selection(field+".semver", from.Semver)
	return &to
}

// address removes credentials from a URL. The user of SSH is not secret.
func (i *item) address(field, text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	if _, password := u.User.Password(); !password && u.Scheme == "ssh" {
		return text
	}
	u.User = nil
	i.lost(field, "its credentials were left out: put them into a Secret, and name that in secretRef")
	return u.String()
}
