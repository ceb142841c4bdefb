package repositories

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// refsOf returns the Secrets and ConfigMaps that a source names, sorted.
func refsOf(source *corev1alpha1.RepositorySource, namespace string) []sources.Ref {
	refs := pullSecrets(source, namespace)
	add := func(kind, name string) {
		refs = append(refs, sources.Ref{Kind: kind, Namespace: namespace, Name: name})
	}
	if source.HTTP != nil && source.HTTP.SecretRef != nil {
		add(sources.KindSecret, source.HTTP.SecretRef.Name)
	}
	if source.Git != nil && source.Git.SecretRef != nil {
		add(sources.KindSecret, source.Git.SecretRef.Name)
	}

	if source.Inline != nil {
		for _, from := range source.Inline.FilesFrom {
			if from.SecretRef != nil {
				add(sources.KindSecret, from.SecretRef.Name)
			}
			if from.ConfigMapRef != nil {
				add(sources.KindConfigMap, from.ConfigMapRef.Name)
			}
		}
	}

	slices.SortFunc(refs, func(a, b sources.Ref) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(refs)
}

// pullSecrets returns the pull secrets that a source names.
func pullSecrets(source *corev1alpha1.RepositorySource, namespace string) []sources.Ref {
	var refs []sources.Ref
	if source.Image != nil {
		for _, secret := range source.Image.ImagePullSecrets {
			refs = append(refs, sources.Ref{Kind: sources.KindSecret, Namespace: namespace, Name: secret.Name})
		}
	}
	return refs
}

// sourceHash identifies a source.
func sourceHash(source corev1alpha1.RepositorySource) string {
	encoded, _ := json.Marshal(source) // cannot fail: all of it is data
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

// hostOf returns the host that a source is fetched from; empty if there is none, or if it is
// unknown.
func hostOf(source *corev1alpha1.RepositorySource, image imagepolicy.Decision) string {
	switch {
	case source.Image != nil:
		if ref, err := name.ParseReference(cmp.Or(image.Pull, source.Image.Ref)); err == nil {
			return ref.Context().RegistryStr()
		}
	case source.HTTP != nil:
		return hostOfURL(source.HTTP.URL)
	case source.Git != nil:
		return hostOfURL(source.Git.URL)
	}
	return ""
}

// hostOfURL returns the host of a URL, or of user@host:path, in lower case.
func hostOfURL(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return strings.ToLower(u.Host)
	}
	host, _, _ := strings.Cut(text, ":") // user@host:path
	if _, after, found := strings.Cut(host, "@"); found {
		host = after
	}
	return strings.ToLower(host)
}

// describe names a source for people, without the parts behind the path of a URL, which can hold
// secrets.
func describe(source *corev1alpha1.RepositorySource) string {
	switch {
	case source.Image != nil:
		return source.Image.Ref
	case source.HTTP != nil:
		text, _, _ := strings.Cut(source.HTTP.URL, "?")
		return text
	case source.Git != nil:
		text, _, _ := strings.Cut(source.Git.URL, "?")
		return text
	}
	return "the files"
}
